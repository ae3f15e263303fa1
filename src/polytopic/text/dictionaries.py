"""simplemma's dictionaries, kept on disk in a form in which a word is found at once.

simplemma unpacks a whole dictionary before the first word is looked up: .2 s for English, 4 s and
400 MB for Finnish. So whoever needs a dictionary first leaves it unpacked, with its words in slots
by their hashes, where the compiled loops are kept; from then on it is checked and mapped to memory.
"""

import hashlib
import mmap
import sys
from array import array
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from zlib import crc32

import numba
import numpy as np
from simplemma.strategies.dictionaries import DefaultDictionaryFactory, DictionaryFactory
from simplemma.strategies.dictionaries.dictionary_factory import DATA_FOLDER
from simplemma.utils import normalize_apostrophes

from polytopic.errors import PolytopicError
from polytopic.files import new_file
from polytopic.kernels import cache_folder
from polytopic.kernels.dictionary import LEMMA, WORD, find_lemmas
from polytopic.text.letters import borders_of, bytes_of, packed

_FORMAT = f"slots 2, {sys.byteorder}".encode()
_WORD, _LEMMA = bytes([WORD]), bytes([LEMMA])
_ENTRY = _WORD + b"%b" + _LEMMA
_SEAL = 32  # bytes
_AT_ONCE = 1 << 16  # words to write


class KeptDictionary(Mapping):
    """The lemmas of words, read from a file that is mapped to memory.

    The file begins with a seal, which tells that it is whole and from what it was made. Then come
    the places where the slots begin, and where the last one ends; then the slots, each with the
    words whose hash is its number, and their lemmas; then the words that have apostrophes.
    """

    def __init__(self, data):
        self._data = data
        self._begin = int.from_bytes(data[_SEAL : _SEAL + 4], sys.byteorder)
        self._places = memoryview(data)[_SEAL : self._begin].cast("I")
        self._end, self._mask = self._places[-1], len(self._places) - 2

    def get(self, word, default=None):
        """Return the lemma of a word, the default if it is not known."""
        letters = word.encode()
        slot = crc32(letters) & self._mask
        begin, end = self._places[slot], self._places[slot + 1]
        if begin == end:
            return default
        entries = self._data[begin:end]
        place = entries.find(_ENTRY % letters)
        if place < 0:
            return default
        return entries[place + len(letters) + 2 :].partition(_WORD)[0].decode()

    def lemmas(self, letters):
        """Return the lemmas of many words as letters, empty for one that is not known."""
        data, places = bytes_of(self._data), np.frombuffer(self._places, dtype=np.uint32)
        starts, ends = borders_of(letters)
        begins, finishes = np.empty_like(starts), np.empty_like(ends)
        find_lemmas(bytes_of(letters), starts, ends, data, places, begins, finishes)
        return packed(self._data, begins, finishes)

    @cached_property
    def joint_words(self):
        """The words that have apostrophes, in lower case and with plain ones."""
        return frozenset(word.decode() for word in self._data[self._end :].split(_WORD)[1:])

    def __getitem__(self, word):
        lemma = self.get(word)
        if lemma is None:
            raise KeyError(word)
        return lemma

    def __iter__(self):
        for entry in self._data[self._begin + 1 : self._end].split(_WORD):
            yield entry.partition(_LEMMA)[0].decode()

    def __len__(self):
        return self._data[self._begin : self._end].count(_WORD)


class KeptDictionaries(DictionaryFactory):
    """simplemma's dictionaries, from disk where there is a place for them."""

    @staticmethod
    @lru_cache(maxsize=8)
    def get_dictionary(lang):
        """Return the dictionary of a language."""
        folder = _folder()
        if folder is None:
            return DefaultDictionaryFactory().get_dictionary(lang)
        path = folder / f"lemmas-{lang}.bin"
        with open(DATA_FOLDER / f"{lang}.plzma", "rb") as packed_file:
            seal = hashlib.file_digest(packed_file, lambda: hashlib.sha256(_FORMAT))
        kept = _open(path, seal)
        if kept is not None:
            return kept
        dictionary = DefaultDictionaryFactory().get_dictionary(lang)
        with suppress(PolytopicError):  # it cannot be written: the next process unpacks it again
            _write(dictionary, path, seal)
            kept = _open(path, seal)
        return dictionary if kept is None else kept


def _folder():
    """Return the folder of unpacked dictionaries; None where there is none."""
    return None if numba.config.DISABLE_JIT else cache_folder


def _open(path, seal):
    """Return the dictionary in a file; None if it cannot be read, or its seal is not right."""
    try:
        with open(path, "rb") as file:
            found = file.read(_SEAL)
            if hashlib.file_digest(file, seal.copy).digest() != found:
                return None
            return KeptDictionary(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError:
        return None


def _write(dictionary, path, seal):
    """Write a dictionary to a file."""
    seal = seal.copy()
    with new_file(path, PolytopicError) as file:
        file.seek(_SEAL)
        for part in _parts(dictionary):
            seal.update(part)
            file.write(part)
        file.seek(0)
        file.write(seal.digest())


def _parts(dictionary):
    """Yield what comes after the seal, piece by piece."""
    n_slots = 1 << len(dictionary).bit_length()
    entries, slots, sizes = bytearray(), array("i"), array("i")
    for word, lemma in dictionary.items():
        letters = word.encode()
        entry = _ENTRY % letters + lemma.encode()
        entries += entry
        slots.append(crc32(letters) & (n_slots - 1))
        sizes.append(len(entry))
    places = np.full(n_slots + 1, _SEAL + 4 * (n_slots + 1), dtype=np.uint32)
    places[1:] += np.cumsum(np.bincount(slots, sizes, n_slots)).astype(np.uint32)
    yield places.tobytes()
    letters, lengths = np.frombuffer(entries, dtype=np.uint8), np.asarray(sizes)
    ends, order = np.cumsum(lengths), np.argsort(slots, kind="stable")
    for begin in range(0, order.size, _AT_ONCE):
        some = order[begin : begin + _AT_ONCE]
        shifts = ends[some] - np.cumsum(lengths[some])
        yield letters[np.repeat(shifts, lengths[some]) + np.arange(lengths[some].sum())].tobytes()
    plain = map(normalize_apostrophes, dictionary)
    joint = sorted({word.lower() for word in plain if "'" in word})
    yield b"".join(_WORD + word.encode() for word in joint)
