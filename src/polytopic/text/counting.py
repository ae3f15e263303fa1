"""The terms of many texts, counted in one pass."""

from collections.abc import Mapping
from itertools import chain, islice, pairwise
from numbers import Real

import numpy as np
from scipy.sparse import csr_matrix

from polytopic.kernels.blocks import block_borders, run_blocks
from polytopic.kernels.rows import sum_rows
from polytopic.parameters import LARGEST_COUNT
from polytopic.text.columns import NewColumns
from polytopic.text.letters import borders_of, distinct
from polytopic.text.scanning import scan

Text = str | Mapping[str, str] | Mapping[str, float]
"""A text; or its fields, by name; or a bag of words: its terms with their counts."""

_FIRST_TEXTS, _MOST_TEXTS = 64, 8192  # read at once; what the first teach, the next know
_BLOCK = 1 << 18  # characters that one thread reads at once
_AS_IT_IS = np.zeros(0, dtype=np.int32)


def count_terms(texts, lexicon, fields):
    """Count the terms of each text; see `Analyzer.count`."""
    columns = NewColumns()
    blocks = _read(texts, lexicon, fields, columns)
    terms, order = columns.sorted()
    return _matrix(blocks, order, len(terms)), terms


def count_known_terms(texts, lexicon, fields, vocabulary):
    """Count the terms of a vocabulary in each text; see `Analyzer.count_known`."""
    blocks = _read(texts, lexicon, fields, vocabulary.known_columns)
    return _matrix(blocks, _AS_IT_IS, len(vocabulary))


def known_terms_by_blocks(texts, lexicon, fields, vocabulary, most):
    """Yield the counts of texts as they come; see `Analyzer.count_known_by_blocks`."""
    for blocks in _read_some(texts, lexicon, fields, vocabulary.known_columns, most):
        yield _matrix(blocks, _AS_IT_IS, len(vocabulary))


def _read(texts, lexicon, fields, columns):
    """Return blocks of texts as columns of their terms: what `sum_rows` takes."""
    return list(chain.from_iterable(_read_some(texts, lexicon, fields, columns, _MOST_TEXTS)))


def _read_some(texts, lexicon, fields, columns, most):
    """Yield the blocks of the next texts, of few at first."""
    if isinstance(texts, (str, bytes, Mapping)):
        raise ValueError(f"texts is one {type(texts).__name__}, must be a list of texts.")
    check_fields(fields)
    texts, size, n_texts = iter(texts), min(_FIRST_TEXTS, most), 0
    while some := list(islice(texts, size)):
        yield _read_blocks(some, n_texts, lexicon, fields, columns)
        n_texts += len(some)
        size = min(8 * size, most)


def _read_blocks(texts, n_before, lexicon, fields, columns):
    """Return more blocks, each read by one thread; all know the same tokens."""
    parts = _parts_in_blocks(texts, n_before, fields)
    table = lexicon.tokens.newest
    scans = _run(lambda own: scan(own.strings, lexicon.pattern, table), parts)
    learned = _learn([own.new_tokens for own in scans], lexicon, columns)
    return [_entries(*three, columns) for three in zip(parts, scans, learned, strict=True)]


def _learn(new_tokens, lexicon, columns):
    """Return the columns of new tokens, as many lists of them, each token with a zero after it."""
    letters = b"".join(new_tokens)
    if not letters:
        return [_AS_IT_IS] * len(new_tokens)
    which, letters = distinct(letters, *borders_of(letters))
    found = columns.of_numbers(*lexicon.learn(letters))[which]
    sizes = [own.count(b"\0") for own in new_tokens]
    return np.split(found, np.cumsum(sizes[:-1]))


def _entries(parts, found, learned, columns):
    """Return the columns of a block's terms, and how many are in each part."""
    entries, sizes = columns.of_scan(found), found.sizes
    if found.which.size:
        entries[found.new_places] = learned[found.which]
    if parts.terms:
        places = np.cumsum(sizes)[parts.term_parts]
        entries = np.insert(entries, places, columns.of_terms(parts.terms))
        sizes[parts.term_parts] = 1
    weights = np.array(parts.weights, dtype=np.float64)
    return entries, sizes, weights, np.array(parts.text_parts, dtype=np.int64)


def _matrix(blocks, order, n_columns):
    """Return the counts of all texts, with columns in their order."""
    if not blocks:
        return csr_matrix((0, n_columns))
    summed = _run(lambda block: _sum_block(block, order, n_columns), blocks)
    data, indices, sizes = map(np.concatenate, zip(*summed, strict=True))
    matrix = csr_matrix((sizes.size, n_columns))  # its parts are known to be right, so unchecked
    dtype = np.int32 if data.size <= np.iinfo(np.int32).max else np.int64
    matrix.indptr = np.zeros(sizes.size + 1, dtype=dtype)
    np.cumsum(sizes, out=matrix.indptr[1:])
    matrix.data, matrix.indices = data, indices.astype(dtype, copy=False)
    matrix.has_canonical_format = True
    return matrix


def _sum_block(block, order, n_columns):
    """Return the counts of a block of texts, their columns, and how many each text has."""
    columns, part_sizes, weights, row_parts = block
    data, indices = np.empty(columns.size), np.empty(columns.size, np.int32)
    sizes = np.empty(row_parts.size, np.int64)
    n = sum_rows(columns, order, part_sizes, weights, row_parts, n_columns, data, indices, sizes)
    return data[:n], indices[:n], sizes


def _run(function, blocks):
    """Return what a function makes of each block, on all cores."""
    if len(blocks) == 1:
        return [function(blocks[0])]
    return run_blocks(lambda one: function(blocks[one.start]), np.arange(len(blocks) + 1))


def _parts_in_blocks(texts, n_before, fields):
    """Return the parts of texts, about as many characters at once as one thread reads."""
    if not _are_strings(texts):
        texts = [getattr(text, "content", text) for text in texts]
    sizes = list(map(len if _are_strings(texts) else _size, texts))
    if sum(sizes) <= _BLOCK:
        return [_Parts(texts, fields, n_before)]
    borders = block_borders(np.cumsum([0, *sizes]), entries=_BLOCK).tolist()
    return [_Parts(texts[a:b], fields, n_before + a) for a, b in pairwise(borders)]


def _are_strings(texts):
    return set(map(type, texts)) == {str}


def _size(text):
    """Return about how many characters a text has."""
    if isinstance(text, Mapping):
        return sum(map(_size, text.values()))
    return len(text) if isinstance(text, str) else 1


class _Parts:
    """Texts as parts, each a string whose terms weigh the same, or one term of a bag of words."""

    def __init__(self, texts, fields, n_before):
        self.fields, self.n_before = fields, n_before
        self.terms: list[str] = []
        self.term_parts: list[int] = []  # where the terms are; the string is empty there
        self.strings: list[str] = []
        self.weights: list[float] = []
        self.text_parts: list[int] = []  # how many parts each text has
        if _are_strings(texts):
            self.strings, self.weights, self.text_parts = (
                texts,
                [1.0] * len(texts),
                [1] * len(texts),
            )
            return
        for text in texts:
            n_parts = len(self.strings)
            self._add(text)
            self.text_parts.append(len(self.strings) - n_parts)

    def _add(self, text):
        if isinstance(text, str):
            self._add_part(text, 1.0)
        elif not isinstance(text, Mapping):
            raise TypeError(f"{self._name} is a {type(text).__name__}, must be a str or a mapping.")
        elif any(isinstance(value, str) for value in text.values()):
            self._add_fields(text)
        else:
            self._add_bag(text)

    def _add_fields(self, text):
        for name, value in text.items():
            if not isinstance(value, str):
                raise TypeError(
                    f"{self._name}[{name!r}] == {value!r}, must be a str, as its other fields are."
                )
            weight = self.fields.get(name, 1.0)
            if weight > 0:
                self._add_part(value, weight)

    def _add_bag(self, bag):
        for term, count in bag.items():
            if not isinstance(term, str):
                raise TypeError(f"{self._name} counts {term!r}, must count terms (str).")
            _check_weight(count, f"{self._name}[{term!r}]")
            if count > 0:
                self.terms.append(term)
                self.term_parts.append(len(self.strings))
                self._add_part("", count)

    def _add_part(self, string, weight):
        self.strings.append(string)
        self.weights.append(weight)

    @property
    def _name(self):
        return f"texts[{self.n_before + len(self.text_parts)}]"


def check_fields(fields) -> None:
    """Refuse what are no weights of fields."""
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields == {fields!r}, must be a mapping of field names to weights.")
    for name, weight in fields.items():
        _check_weight(weight, f"fields[{name!r}]")


def _check_weight(value, name):
    if not isinstance(value, Real):
        raise TypeError(f"{name} == {value!r}, must be a number.")
    if not 0 <= value <= LARGEST_COUNT:  # type: ignore[operator]  # false for NaN, too
        raise ValueError(f"{name} == {value!r}, must be >= 0 and <= 2**53.")
