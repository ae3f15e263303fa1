"""simplemma's dictionaries, cached on disk in a form that can be searched without loading it.

simplemma decompresses a whole dictionary before it looks up the first word: 0.2 s for English, 4 s
and 400 MB for Finnish. So the first process that needs a dictionary writes it, decompressed and
with its words in slots by hash, to the folder of cached kernels. Later processes verify that file
and map it to memory.
"""

import hashlib
import mmap
import sys
from array import array
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from zlib import crc32

import numpy as np
import simplemma
from simplemma.strategies import DefaultDictionaryFactory, DictionaryFactory

from polytopic.errors import PolytopicError
from polytopic.files import new_file
from polytopic.kernels import cache_folder
from polytopic.text.kernels import LEMMA, WORD, find_lemmas
from polytopic.text.packed_words import bounds, byte_view, cut

_FORMAT = f"slots 3, {sys.byteorder}, simplemma {simplemma.__version__}"
_WORD, _LEMMA = bytes([WORD]), bytes([LEMMA])
_ENTRY = _WORD + b"%b" + _LEMMA
_DIGEST_SIZE = 32  # bytes
_WRITE_BLOCK = 1 << 16  # words
_STRAIGHT_APOSTROPHES = str.maketrans("\u2019\u02bc", "''")


class MappedDictionary(Mapping):
    """The lemmas of words, read from a file that is mapped to memory.

    The file holds, in this order: a digest of its content and of what it was made from; where each
    slot starts, and where the last one ends; the slots, each with the words of one hash and their
    lemmas; the words with apostrophes.
    """

    def __init__(self, data):
        self._data = data
        self._start = int.from_bytes(data[_DIGEST_SIZE : _DIGEST_SIZE + 4], sys.byteorder)
        self._places = memoryview(data)[_DIGEST_SIZE : self._start].cast("I")
        self._end, self._mask = self._places[-1], len(self._places) - 2

    def get(self, word, default=None):
        """Return the lemma of a word, or the default if the word is unknown."""
        letters = word.encode()
        slot = crc32(letters) & self._mask
        start, end = self._places[slot], self._places[slot + 1]
        if start == end:
            return default
        entries = self._data[start:end]
        place = entries.find(_ENTRY % letters)
        if place < 0:
            return default
        return entries[place + len(letters) + 2 :].partition(_WORD)[0].decode()

    def lemmas(self, packed):
        """Return the lemmas of packed words, an empty one for each unknown word."""
        data, places = byte_view(self._data), np.frombuffer(self._places, dtype=np.uint32)
        starts, ends = bounds(packed)
        lemma_starts, lemma_ends = np.empty_like(starts), np.empty_like(ends)
        find_lemmas(byte_view(packed), starts, ends, data, places, lemma_starts, lemma_ends)
        return cut(self._data, lemma_starts, lemma_ends)

    @cached_property
    def apostrophe_words(self):
        """The words with apostrophes, in lower case and with straight apostrophes."""
        return frozenset(word.decode() for word in self._data[self._end :].split(_WORD)[1:])

    def __getitem__(self, word):
        lemma = self.get(word)
        if lemma is None:
            raise KeyError(word)
        return lemma

    def __iter__(self):
        for entry in self._data[self._start + 1 : self._end].split(_WORD):
            yield entry.partition(_LEMMA)[0].decode()

    def __len__(self):
        return self._data[self._start : self._end].count(_WORD)


class CachedDictionaryFactory(DictionaryFactory):
    """Returns simplemma's dictionaries from the cache if there is one, else from simplemma."""

    @staticmethod
    @lru_cache(maxsize=8)
    def get_dictionary(lang):
        """Return the dictionary of a language."""
        if cache_folder is None:
            return DefaultDictionaryFactory().get_dictionary(lang)
        path = cache_folder / f"lemmas-{lang}.bin"
        digest = hashlib.sha256(f"{_FORMAT}, {lang}".encode())
        cached = _open(path, digest)
        if cached is not None:
            return cached
        dictionary = DefaultDictionaryFactory().get_dictionary(lang)
        with suppress(PolytopicError):  # not writable: work without a cache
            _write(dictionary, path, digest)
            cached = _open(path, digest)
        return dictionary if cached is None else cached


def _open(path, digest):
    """Return the dictionary in a file, or None if it cannot be read or its digest is wrong."""
    try:
        with open(path, "rb") as file:
            expected = file.read(_DIGEST_SIZE)
            if hashlib.file_digest(file, digest.copy).digest() != expected:
                return None
            return MappedDictionary(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError:
        return None


def _write(dictionary, path, digest):
    digest = digest.copy()
    with new_file(path, PolytopicError) as file:
        file.seek(_DIGEST_SIZE)
        for part in content(dictionary):
            digest.update(part)
            file.write(part)
        file.seek(0)
        file.write(digest.digest())


def content(dictionary):
    """Yield what follows the digest in the file of a dictionary, piece by piece."""
    n_slots = 1 << len(dictionary).bit_length()
    entries, slots, sizes = bytearray(), array("i"), array("i")
    for word, lemma in dictionary.items():
        letters = word.encode()
        entry = _ENTRY % letters + lemma.encode()
        entries += entry
        slots.append(crc32(letters) & (n_slots - 1))
        sizes.append(len(entry))
    places = np.full(n_slots + 1, _DIGEST_SIZE + 4 * (n_slots + 1), dtype=np.uint32)
    places[1:] += np.cumsum(np.bincount(slots, sizes, n_slots)).astype(np.uint32)
    yield places.tobytes()
    letters, lengths = np.frombuffer(entries, dtype=np.uint8), np.asarray(sizes)
    ends, order = np.cumsum(lengths), np.argsort(slots, kind="stable")
    for start in range(0, order.size, _WRITE_BLOCK):
        block = order[start : start + _WRITE_BLOCK]
        shifts = ends[block] - np.cumsum(lengths[block])
        yield letters[np.repeat(shifts, lengths[block]) + np.arange(lengths[block].sum())].tobytes()
    straight = (word.translate(_STRAIGHT_APOSTROPHES) for word in dictionary)
    with_apostrophes = sorted({word.lower() for word in straight if "'" in word})
    yield b"".join(_WORD + word.encode() for word in with_apostrophes)
