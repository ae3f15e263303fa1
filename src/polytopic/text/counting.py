"""Count the terms of many texts in one pass.

Texts are cut into blocks. `scan` finds the tokens of a block, and the terms of those that are in
the lexicon's table; the lexicon analyses the other tokens and adds them to the table. Terms get
columns (`NewColumns`, or the `KnownColumns` of a vocabulary); `sum_rows` adds up the rows.
"""

from collections.abc import Mapping
from itertools import chain, islice, pairwise
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from polytopic.kernels.blocks import block_borders, run_blocks
from polytopic.parameters import LARGEST_COUNT
from polytopic.text.kernels import PADDING, find_bounds, find_tokens, number_columns, sum_rows
from polytopic.text.packed_words import (
    Terms,
    TokenTable,
    bounds,
    byte_view,
    distinct,
    word_view,
)

Text = str | Mapping[str, str] | Mapping[str, float]
"""A text, the fields of a text by name, or a bag of words: terms with their counts."""

_FIRST_TEXTS, _MAX_TEXTS = 64, 8192  # read at once; few at first, to learn frequent tokens
FIRST_LINE = "\n"  # the name of the first line of a text among the weights of fields
_BLOCK = 1 << 18  # characters that one thread reads at once
_NONE = np.zeros(0, dtype=np.int32)
_KEEP_ORDER = _NONE
_NO_COLUMN_YET = -2
_NO_TERM = -3  # the column of a new token that has no term, such as a stop word


def count_terms(texts, lexicon, fields):
    """Count the terms of each text; see `Analyzer.count`."""
    columns = NewColumns()
    blocks = _read(texts, lexicon, fields, columns)
    terms, order = columns.sorted()
    return _matrix(blocks, order, len(terms)), terms


def count_known_terms(texts, lexicon, fields, vocabulary):
    """Count the terms of a vocabulary in each text; see `Analyzer.count_known`."""
    blocks = _read(texts, lexicon, fields, vocabulary.known_columns)
    return _matrix(blocks, _KEEP_ORDER, len(vocabulary))


def known_terms_by_blocks(texts, lexicon, fields, vocabulary, max_texts):
    """Yield the counts of texts as they arrive; see `Analyzer.count_known_by_blocks`."""
    for blocks in _read_batches(texts, lexicon, fields, vocabulary.known_columns, max_texts):
        yield _matrix(blocks, _KEEP_ORDER, len(vocabulary))


def known_terms_and_totals(texts, lexicon, fields, vocabulary, max_texts):
    """Yield the same counts, with the sum of the counts of all terms of each text, known or not."""
    for blocks in _read_batches(texts, lexicon, fields, vocabulary.known_columns, max_texts):
        totals = np.concatenate([_totals(*block) for block in blocks])
        yield _matrix(blocks, _KEEP_ORDER, len(vocabulary)), totals


def _read(texts, lexicon, fields, columns):
    """Return blocks of texts as columns of their terms, in the form that `sum_rows` takes."""
    return list(chain.from_iterable(_read_batches(texts, lexicon, fields, columns, _MAX_TEXTS)))


def _read_batches(texts, lexicon, fields, columns, max_texts):
    """Yield the blocks of each batch of texts; batches are small at first, then larger."""
    if isinstance(texts, (str, bytes, Mapping)):
        raise ValueError(f"texts is one {type(texts).__name__}, must be a list of texts.")
    check_fields(fields)
    texts, size, n_texts = iter(texts), min(_FIRST_TEXTS, max_texts), 0
    while batch := list(islice(texts, size)):
        yield _read_blocks(batch, n_texts, lexicon, fields, columns)
        n_texts += len(batch)
        size = min(8 * size, max_texts)


def _read_blocks(texts, n_before, lexicon, fields, columns):
    """Return the blocks of some texts, each scanned by one thread with the same table of tokens."""
    parts = _parts_in_blocks(texts, n_before, fields)
    table = lexicon.tokens.newest
    scans = _run(lambda part: scan(lexicon.spread(part.strings), lexicon.pattern, table), parts)
    new_columns = _learn([block.new_tokens for block in scans], lexicon, columns)
    return [_entries(*block, columns) for block in zip(parts, scans, new_columns, strict=True)]


def _learn(new_tokens, lexicon, columns):
    """Return the columns of the new tokens of each block, which are packed."""
    packed = b"".join(new_tokens)
    if not packed:
        return [_NONE] * len(new_tokens)
    which, packed = distinct(packed, *bounds(packed))
    terms, numbers = lexicon.learn(packed)
    learned = columns.of_numbers(terms, numbers)
    learned[numbers < 0] = _NO_TERM
    learned = learned[which]
    sizes = [tokens.count(b"\0") for tokens in new_tokens]
    return np.split(learned, np.cumsum(sizes[:-1]))


def _entries(parts, scanned, new_columns, columns):
    """Return the columns of a block's terms and, as `sum_rows` takes them, its parts and rows."""
    entries, sizes = columns.of_scan(scanned), scanned.sizes
    if scanned.which.size:
        entries[scanned.new_places] = new_columns[scanned.which]
    if parts.terms:
        places = np.cumsum(sizes)[parts.term_parts]
        entries = np.insert(entries, places, columns.of_terms(parts.terms))
        sizes[parts.term_parts] = 1
    weights = np.array(parts.weights, dtype=np.float64)
    return entries, sizes, weights, np.array(parts.text_parts, dtype=np.int64)


def _matrix(blocks, order, n_columns):
    """Return the counts of all texts as a matrix with ordered columns."""
    if not blocks:
        return csr_matrix((0, n_columns))
    summed = _run(lambda block: _sum_block(block, order, n_columns), blocks)
    data, indices, sizes = map(np.concatenate, zip(*summed, strict=True))
    matrix = csr_matrix((sizes.size, n_columns))  # filled below, so that scipy checks nothing twice
    dtype = np.int32 if data.size <= np.iinfo(np.int32).max else np.int64
    matrix.indptr = np.zeros(sizes.size + 1, dtype=dtype)
    np.cumsum(sizes, out=matrix.indptr[1:])
    matrix.data, matrix.indices = data, indices.astype(dtype, copy=False)
    matrix.has_canonical_format = True
    return matrix


def _sum_block(block, order, n_columns):
    """Return the counts of a block of texts, their columns, and the number of them per text."""
    columns, part_sizes, weights, row_parts = block
    data, indices = np.empty(columns.size), np.empty(columns.size, np.int32)
    sizes = np.empty(row_parts.size, np.int64)
    n = sum_rows(columns, order, part_sizes, weights, row_parts, n_columns, data, indices, sizes)
    return data[:n], indices[:n], sizes


def _totals(columns, part_sizes, weights, row_parts):
    """Return the sum of the counts of all terms of each text of a block."""
    dropped = np.flatnonzero(columns == _NO_TERM)
    if dropped.size:
        parts = np.searchsorted(np.cumsum(part_sizes), dropped, side="right")
        part_sizes = part_sizes - np.bincount(parts, minlength=part_sizes.size)
    rows = np.repeat(np.arange(row_parts.size), row_parts)
    return np.bincount(rows, weights=part_sizes * weights, minlength=row_parts.size)


def _run(function, blocks):
    """Return the result of a function for each block, computed on all cores."""
    if len(blocks) == 1:
        return [function(blocks[0])]
    return run_blocks(lambda one: function(blocks[one.start]), np.arange(len(blocks) + 1))


def _parts_in_blocks(texts, n_before, fields):
    """Return the parts of texts, in blocks of about as many characters as one thread reads."""
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
    """Return the approximate number of characters of a text."""
    if isinstance(text, Mapping):
        return sum(map(_size, text.values()))
    return len(text) if isinstance(text, str) else 1


class _Parts:
    """Texts as parts: a string whose terms have one weight, or one term of a bag of words."""

    def __init__(self, texts, fields, n_before):
        self.fields, self.n_before = fields, n_before
        self.title = fields.get(FIRST_LINE, 1.0)
        self.terms: list[str] = []
        self.term_parts: list[int] = []  # the parts that are terms, whose strings are empty
        self.strings: list[str] = []
        self.weights: list[float] = []
        self.text_parts: list[int] = []  # number of parts of each text
        if _are_strings(texts) and self.title == 1.0:
            self.strings, n = texts, len(texts)
            self.weights, self.text_parts = [1.0] * n, [1] * n
            return
        for text in texts:
            n_parts = len(self.strings)
            self._add(text)
            self.text_parts.append(len(self.strings) - n_parts)

    def _add(self, text):
        if isinstance(text, str):
            self._add_string(text)
        elif not isinstance(text, Mapping):
            raise TypeError(f"{self._name} is a {type(text).__name__}, must be a str or a mapping.")
        elif any(isinstance(value, str) for value in text.values()):
            self._add_fields(text)
        else:
            self._add_bag(text)

    def _add_string(self, text):
        head, _, rest = text.partition("\n")
        if self.title == 1.0 or not rest.strip():
            self._add_part(text, 1.0)
            return
        self._add_part(head, self.title)
        self._add_part(rest, 1.0)

    def _add_fields(self, text):
        for name, value in text.items():
            if not isinstance(value, str):
                raise TypeError(
                    f"{self._name}[{name!r}] == {value!r}, must be a str like the other fields."
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
    """Raise unless this is a mapping of field names to weights."""
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields == {fields!r}, must be a mapping of field names to weights.")
    for name, weight in fields.items():
        _check_weight(weight, f"fields[{name!r}]")


def _check_weight(value, name):
    if not isinstance(value, Real):
        raise TypeError(f"{name} == {value!r}, must be a number.")
    if not 0 <= value <= LARGEST_COUNT:  # type: ignore[operator]  # false for NaN, too
        raise ValueError(f"{name} == {value!r}, must be >= 0 and <= 2**53.")


class Scan(NamedTuple):
    """The terms of strings, in order.

    Attributes
    ----------
    table : TokenTable
        The known tokens.
    numbers : ndarray of int32
        The number of each term, -1 for an unknown token.
    sizes : ndarray of shape (n_strings,)
        Number of terms of each string.
    new_places : ndarray
        Where the numbers are -1.
    new_tokens : bytes
        The distinct unknown tokens, packed.
    which : ndarray of int32
        Which of them is at each of these places.
    """

    table: TokenTable
    numbers: np.ndarray
    sizes: np.ndarray
    new_places: np.ndarray
    new_tokens: bytes
    which: np.ndarray


def scan(strings, pattern, table):
    """Find the tokens of strings, and the terms of those that the table knows."""
    is_ascii = all(map(str.isascii, strings))
    texts = strings if is_ascii else [text.encode("utf-8", "surrogatepass") for text in strings]
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    data = ("\0".join(texts).encode() if is_ascii else b"\0".join(texts)) + bytes(PADDING)
    text = byte_view(data)
    kinds = pattern.kinds(0x7F if is_ascii else text.max())
    token_bounds = np.empty(text.size + 1, np.int64)
    token_bounds = token_bounds[: find_bounds(text, kinds, token_bounds)]
    n_tokens = token_bounds.size // 2
    numbers, n_terms = np.empty(n_tokens, np.int32), np.zeros(sizes.size, np.int64)
    new, words = np.empty((3, n_tokens), np.int64), word_view(data)
    n_new = find_tokens(text, words, sizes, token_bounds, table.slots, numbers, n_terms, new)
    places, starts, ends = new[:, :n_new]
    which, new_tokens = distinct(data, starts, ends) if n_new else (_NONE, b"")
    return Scan(table, numbers[: n_terms.sum()], n_terms, places, new_tokens, which)


class NewColumns:
    """A column for each term, in the order of first occurrence; `sorted` puts them in order.

    A term that is given both by name and by number gets several columns, which `sorted` merges.
    """

    def __init__(self):
        self._n = 0
        self._named: dict[str, int] = {}  # columns of terms that were given by name
        # terms that were given by number: their `Terms`, their numbers, and the column of the first
        self._numbered: list[tuple[Terms, np.ndarray, int]] = []
        self._columns: np.ndarray | None = None  # of all terms of the last of these

    def of_terms(self, terms):
        """Return the columns of terms given by name."""
        new = [term for term in dict.fromkeys(terms) if term not in self._named]
        self._named.update(zip(new, range(self._n, self._n + len(new)), strict=True))
        self._n += len(new)
        return list(map(self._named.__getitem__, terms))

    def of_scan(self, scan):
        """Return the columns of the terms of a scan, -1 where the token is unknown."""
        return self.of_numbers(scan.table.terms, scan.numbers)

    def of_numbers(self, terms, numbers):
        """Return the columns of terms given by number, -1 for -1."""
        if self._numbered and self._numbered[-1][0] is not terms:
            self._columns = None
        columns, new = np.empty(numbers.size, np.int32), np.empty(numbers.size, np.int32)
        n_new = number_columns(numbers, self._of_all(len(terms), numbers), self._n, columns, new)
        new = new[:n_new]
        self._numbered.append((terms, new, self._n))
        self._n += new.size
        return columns

    def _of_all(self, n_terms, numbers):
        """Return an array of the columns of all terms, which is valid for these numbers."""
        if self._columns is None and 8 * numbers.size < n_terms:  # too few to initialize all
            columns = np.empty(n_terms, dtype=np.int32)
            columns[numbers] = _NO_COLUMN_YET
            return columns
        known = _NONE if self._columns is None else self._columns
        if self._columns is None or known.size < n_terms:
            more = np.full(n_terms + n_terms // 2 - known.size, _NO_COLUMN_YET, dtype=np.int32)
            self._columns = np.concatenate([known, more])
        return self._columns

    def sorted(self):
        """Return the terms in sorted order, and the position of each column among them."""
        sources = {id(terms): terms for terms, *_ in self._numbered}
        if len(sources) == 1 and not self._named:
            (terms,) = sources.values()
            if 4 * self._n > len(terms):
                return _sort_terms(terms, np.concatenate([new for _, new, _ in self._numbered]))
        names = [""] * self._n
        for name, column in self._named.items():
            names[column] = name
        for terms, new, first in self._numbered:
            names[first : first + new.size] = terms.names(new)
        distinct = sorted(set(names))
        places = dict(zip(distinct, range(len(distinct)), strict=True))
        return distinct, np.fromiter(map(places.__getitem__, names), np.int32, len(names))


def _sort_terms(terms, numbers):
    """Return the terms with these numbers in sorted order, and the position of each number."""
    ranks = terms.rank()[numbers]
    by_rank = np.full(len(terms), -1, dtype=np.int32)
    by_rank[ranks] = numbers
    used = by_rank >= 0
    return terms.names(by_rank[used]), (np.cumsum(used, dtype=np.int32) - 1)[ranks]


class KnownColumns:
    """The columns of a vocabulary, -1 for all other terms.

    The columns of a table's terms are looked up by name once, and then found by number.
    """

    def __init__(self, index):
        self.index = index
        self._cache: tuple[Terms | None, np.ndarray] = None, np.full(1, -1, dtype=np.int32)

    def of_terms(self, terms):
        """Return the columns of terms given by name, -1 for unknown ones."""
        get = self.index.get
        return [get(term, -1) for term in terms]

    def of_scan(self, scan):
        """Return the columns of the terms of a scan, -1 where the token is unknown."""
        return self._of_table(scan.table)[scan.numbers]

    def of_numbers(self, terms, numbers):
        """Return the columns of terms given by number, -1 for unknown ones."""
        columns = np.full(numbers.size, -1, dtype=np.int32)
        columns[numbers >= 0] = self.of_terms(terms.names(numbers[numbers >= 0]))
        return columns

    def _of_table(self, table):
        """Return the columns of a table's terms, followed by -1."""
        terms, columns = self._cache  # read once: another thread may replace it
        n_known = columns.size - 1 if terms is table.terms else 0
        if n_known < table.n_terms or terms is not table.terms:
            more = self.of_terms(table.terms.names(np.arange(n_known, table.n_terms)))
            columns = np.concatenate([columns[:n_known], np.array([*more, -1], dtype=np.int32)])
            self._cache = table.terms, columns
        return columns
