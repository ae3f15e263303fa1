"""Words in a kept dictionary, see `polytopic.text.dictionaries`."""

import numpy as np

from polytopic.kernels import compiled

WORD, LEMMA = 0xFF, 0xFE  # the bytes before words and lemmas, which are in no UTF-8


def _crc_table():
    """Return what each byte makes of the last eight bits of a CRC-32."""
    table = np.arange(256)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ 0xEDB88320, table >> 1)
    return table


_CRC = _crc_table()


@compiled
def find_lemmas(letters, starts, ends, data, places, begins, finishes):
    """Find the lemmas of words; a word is ``letters[start:end]``.

    Parameters
    ----------
    letters : ndarray of uint8
        The bytes of the words.
    starts, ends : ndarray of int64
        Where each is.
    data : ndarray of uint8
        Entries, each ``WORD``, a word, ``LEMMA`` and its lemma, in slots by the words' CRC-32.
    places : ndarray of uint32
        Where each slot begins, a power of two, and where the last one ends.
    begins, finishes : ndarray of int64
        Take where the lemma of each word is in the data, zeros for a word that is not there.
    """
    for word in range(starts.size):
        crc = np.int64(0xFFFFFFFF)
        for i in range(starts[word], ends[word]):
            crc = _CRC[(crc ^ letters[i]) & 0xFF] ^ crc >> 8
        begins[word] = (crc ^ 0xFFFFFFFF) & (places.size - 2)
    for word in range(starts.size):  # by itself, so that many places are fetched at the same time
        slot = begins[word]
        begins[word], finishes[word] = places[slot], places[slot + 1]
    for word in range(starts.size):
        start, size = starts[word], ends[word] - starts[word]
        place, last = begins[word], finishes[word]
        begins[word] = finishes[word] = 0
        while place < last:
            place += 1
            same = 0
            while same < size and data[place + same] == letters[start + same]:
                same += 1
            found = same == size and data[place + same] == LEMMA
            begin = place + same + 1
            while place < last and data[place] != WORD:
                place += 1
            if found:
                begins[word], finishes[word] = begin, place
                break
