"""The terms of many texts, counted in one pass."""

from array import array
from collections import defaultdict
from collections.abc import Mapping
from numbers import Real

import numpy as np
from scipy.sparse import csr_matrix

Text = str | Mapping[str, str] | Mapping[str, float]
"""A text; or its fields, by name; or a bag of words: its terms with their counts."""


def count_terms(texts, lexicon, fields):
    """Count the terms of each text; see `Analyzer.count`."""
    if isinstance(texts, (str, bytes, Mapping)):
        raise ValueError(f"texts is one {type(texts).__name__}, must be a list of texts.")
    _check_fields(fields)
    tally = _Tally(lexicon, fields)
    for text in texts:
        tally.add(text)
    return tally.matrix()


class _Tally:
    """The texts read so far, as parts: runs of terms that weigh the same."""

    def __init__(self, lexicon, fields):
        self.fields = fields
        self.pattern_of = lexicon.pattern_of
        self.term_ids: defaultdict[str, int] = defaultdict()
        self.term_ids.default_factory = self.term_ids.__len__
        self.token_id = _TokenIds(lexicon, self.term_ids).__getitem__
        self.ids = array("q")  # a running number for each term, -1 for a dropped word
        self.weights = array("d")  # of each part
        self.part_ends = array("q")  # in ids
        self.text_ends = array("q", [0])  # in ids

    def add(self, text):
        """Read one more text; a document gives its content."""
        text = getattr(text, "content", text)
        if isinstance(text, str):
            self._add_string(text, 1.0)
        elif not isinstance(text, Mapping):
            raise TypeError(f"{self._name} is a {type(text).__name__}, must be a str or a mapping.")
        elif any(isinstance(value, str) for value in text.values()):
            self._add_fields(text)
        else:
            self._add_bag(text)
        self.text_ends.append(len(self.ids))

    def _add_string(self, text, weight):
        self.ids.extend(map(self.token_id, self.pattern_of(text).findall(text)))
        self._end_part(weight)

    def _add_fields(self, text):
        for name, value in text.items():
            if not isinstance(value, str):
                raise TypeError(
                    f"{self._name}[{name!r}] == {value!r}, must be a str, as its other fields are."
                )
            weight = self.fields.get(name, 1.0)
            if weight > 0:
                self._add_string(value, weight)

    def _add_bag(self, bag):
        for term, count in bag.items():
            if not isinstance(term, str):
                raise TypeError(f"{self._name} counts {term!r}, must count terms (str).")
            _check_weight(count, f"{self._name}[{term!r}]")
            if count > 0:
                self.ids.append(self.term_ids[term])
                self._end_part(count)

    def _end_part(self, weight):
        self.weights.append(weight)
        self.part_ends.append(len(self.ids))

    @property
    def _name(self):
        return f"texts[{len(self.text_ends) - 1}]"

    def matrix(self):
        """Return the counts with the terms that name their columns, in sorted order."""
        terms = sorted(self.term_ids)
        column = np.empty(len(terms) + 1, dtype=np.int64)
        column[[self.term_ids[term] for term in terms]] = np.arange(len(terms))
        column[-1] = -1
        columns = column[np.frombuffer(self.ids, dtype=np.int64)]
        return _sum_duplicates(columns, self._data(), np.array(self.text_ends), len(terms)), terms

    def _data(self):
        return np.repeat(np.array(self.weights), np.diff(self.part_ends, prepend=0))


class _TokenIds(dict):
    """The running number of each token's term, -1 for a dropped word."""

    def __init__(self, lexicon, term_ids):
        self.lexicon = lexicon
        self.term_ids = term_ids

    def __missing__(self, token):
        term = self.lexicon[token]
        self[token] = number = -1 if term is None else self.term_ids[term]
        return number


def _sum_duplicates(columns, data, indptr, n_columns):
    """Return the CSR matrix of entries that may come twice, or with column -1 to be left out."""
    kept = columns >= 0
    indptr = np.concatenate(([0], np.cumsum(kept)))[indptr]
    shape = (len(indptr) - 1, n_columns)
    matrix = csr_matrix((data[kept], columns[kept], indptr), shape=shape)
    matrix = matrix.tocsc().tocsr()  # sorts each row in linear time
    matrix.sum_duplicates()
    return matrix


def _check_fields(fields):
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields == {fields!r}, must be a mapping of field names to weights.")
    for name, weight in fields.items():
        _check_weight(weight, f"fields[{name!r}]")


def _check_weight(value, name):
    if not isinstance(value, Real):
        raise TypeError(f"{name} == {value!r}, must be a number.")
    if not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} == {value!r}, must be finite and >= 0.")
