"""Look up words in a cached dictionary, see `polytopic.text.dictionary`.

========================  =========================================================================
``letters``               bytes of all words to look up; a word is ``letters[starts[w]:ends[w]]``
``data``                  the dictionary: entries ``WORD word LEMMA lemma``, grouped into slots
``places``                where each slot begins in ``data``, and where the last one ends
``lemma_starts, …_ends``  the result: the lemma of word ``w`` is ``data[lemma_starts[w]:…ends[w]]``
========================  =========================================================================

The number of slots is a power of two; a word is in the slot given by the last bits of its CRC-32.
"""

import numpy as np

from polytopic.kernels import compiled

WORD, LEMMA = 0xFF, 0xFE  # the bytes before words and lemmas, which occur in no UTF-8


def _crc_table():
    """Return the effect of each byte on the last eight bits of a CRC-32."""
    table = np.arange(256)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ 0xEDB88320, table >> 1)
    return table


_CRC = _crc_table()


@compiled
def find_lemmas(letters, starts, ends, data, places, lemma_starts, lemma_ends):
    """Set where the lemma of each word is in ``data``; 0 and 0 for a word that is not there.

    Equivalent, for each word, to::

        slot = zlib.crc32(word) % (places.size - 1)
        entries = data[places[slot] : places[slot + 1]].split(WORD)
        lemma = next((e.split(LEMMA)[1] for e in entries if e.split(LEMMA)[0] == word), b"")
    """
    for word in range(starts.size):
        crc = np.int64(0xFFFFFFFF)
        for i in range(starts[word], ends[word]):
            crc = _CRC[(crc ^ letters[i]) & 0xFF] ^ crc >> 8
        lemma_starts[word] = (crc ^ 0xFFFFFFFF) & (places.size - 2)
    for word in range(starts.size):  # a loop of its own, so that many places are fetched at once
        slot = lemma_starts[word]
        lemma_starts[word], lemma_ends[word] = places[slot], places[slot + 1]
    for word in range(starts.size):
        start, size = starts[word], ends[word] - starts[word]
        place, last = lemma_starts[word], lemma_ends[word]
        lemma_starts[word] = lemma_ends[word] = 0
        while place < last:
            place += 1
            same = 0
            while same < size and data[place + same] == letters[start + same]:
                same += 1
            found = same == size and data[place + same] == LEMMA
            lemma_start = place + same + 1
            while place < last and data[place] != WORD:
                place += 1
            if found:
                lemma_starts[word], lemma_ends[word] = lemma_start, place
                break
