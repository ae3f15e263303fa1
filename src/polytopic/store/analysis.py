"""Analysis of a store: changes of labels, drift of a stream, documents over time.

- :func:`diff` compares the words of labels at two revisions.
- :func:`drift` evaluates each period of a stream with a model of all documents before it.
- :func:`timeline` counts the documents of labels in each period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import bdtr, bdtrc, rel_entr
from sklearn.base import clone
from sqlalchemy import Connection, Text, func, select

from polytopic.counts import LabelSetCounts
from polytopic.labeler.reading import LabelReader, read_names
from polytopic.labels import LabelSpace, LabelTree, Targets, widen
from polytopic.metrics import samples_f1
from polytopic.models import CountModel
from polytopic.models.checks import check_name
from polytopic.models.registry import DEFAULT_COUNT_MODEL, create_model, find_model
from polytopic.store import schema
from polytopic.store.database import fetch
from polytopic.store.encoding import read_labels
from polytopic.store.ledger import (
    EFFECTIVE_TIME,
    IS_CURRENT,
    IS_LABELLED,
    Selection,
    check_times,
    read_ledger,
    read_time,
    revision_at,
)
from polytopic.store.reader import read_counts, resolve_terms
from polytopic.store.schema import last_revision, read_tree
from polytopic.store.terms import Terms
from polytopic.text import Vocabulary

PERIODS = ("day", "week", "month", "year")
MAX_PERIODS = 36  # that "auto" divides a timeline into, unless it takes more years
SIGNIFICANCE = 0.01  # of a trend


# Which labels changed, and in which words


@dataclass(frozen=True)
class TermChange:
    """A term of a label: its counts, and its shares of all words of the label."""

    term: str
    before: float
    after: float
    share_before: float
    share_after: float


@dataclass(frozen=True)
class LabelDifference:
    """How a label changed between two revisions.

    Attributes
    ----------
    label : str
        The label.
    documents_before, documents_after : int
        The number of its documents.
    words_before, words_after : int
        The number of words in its documents.
    divergence : float
        The Jensen-Shannon divergence of its word distributions in bits: 0 if they are equal, 1 if
        they have no word in common. It is 1 if only one revision has words, and 0 if none has.
    growing, falling : list of TermChange
        The terms whose share rose, and those whose share fell, the largest contributions to the
        divergence first.
    """

    label: str
    documents_before: float
    documents_after: float
    words_before: float
    words_after: float
    divergence: float
    growing: list[TermChange]
    falling: list[TermChange]

    @property
    def change(self) -> float:
        """The size of the change: the divergence times the documents of both revisions."""
        return self.divergence * (self.documents_before + self.documents_after)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


def diff(
    connection: Connection,
    before: Any,
    after: Any = None,
    *,
    k: int = 10,
    labels: Collection[str] | None = None,
) -> list[LabelDifference]:
    """Return the labels that changed between two revisions of a store; see :meth:`Store.diff`."""
    first, last = (
        read_counts(connection, Selection(revision=_read_revision(connection, name, moment)))
        for name, moment in (("before", before), ("after", after))
    )
    if labels:
        space = LabelSpace([*first.labels, *last.labels])
        mask = label_mask(space, read_tree(connection), labels)
        labels = [space.ids[column] for column in np.flatnonzero(mask)]
    return label_differences(first, last, k, labels=labels or None)


def _read_revision(connection: Connection, name: str, moment: Any) -> int:
    if isinstance(moment, str) and moment.isdecimal():
        moment = int(moment)
    last = last_revision(connection)
    try:
        return revision_at(connection, moment, last)
    except ValueError:
        raise ValueError(
            f"{name} == {moment!r}, must be a revision from 0 to {last}, or an ISO 8601 time, "
            "such as '2024-05-31T12:00:00Z'."
        ) from None


def label_mask(space: LabelSpace, tree: LabelTree | None, labels: Collection[str]) -> np.ndarray:
    """Return which labels are among ``labels`` (ids or names), or below one of them in a tree."""
    reader, mask = LabelReader(tree), np.zeros(len(space), dtype=bool)
    for label in read_names("labels", labels):
        mask[reader.branch(space, label)] = True
    return mask


def label_differences(
    before: LabelSetCounts,
    after: LabelSetCounts,
    k: int = 10,
    *,
    labels: Collection[str] | None = None,
) -> list[LabelDifference]:
    """Return how each label differs between two tables, the largest change first.

    Labels whose documents and words have not changed are left out and, if ``labels`` are given, so
    are all others.

    Examples
    --------
    >>> before = LabelSetCounts([({"goal": 3, "ball": 1}, ["sport"]), ({"moon": 2}, ["space"])])
    >>> after = before + LabelSetCounts([({"goal": 1, "race": 3}, ["sport"])])
    >>> (sport,) = label_differences(before, after)
    >>> sport.label, round(sport.divergence, 2), [change.term for change in sport.growing]
    ('sport', 0.22, ['race'])
    """
    space = LabelSpace([*before.labels, *after.labels])
    vocabulary = Vocabulary([*before.terms, *after.terms])
    is_included = np.full(len(space), True)
    if labels is not None:
        is_included = np.isin(np.array(space.ids, dtype=object), np.array([*labels], dtype=object))
    documents, words = zip(
        *(_count_by_label(table, space, vocabulary) for table in (before, after)), strict=True
    )
    changes = _LabelChanges(
        space,
        vocabulary,
        np.stack(documents, axis=1),
        *words,
        dtype=np.int64 if before.exact and after.exact else np.float64,
    )
    rows = np.flatnonzero(changes.is_changed & is_included)
    return sorted((changes.difference(row, k) for row in rows.tolist()), key=_largest_change)


def _count_by_label(table: LabelSetCounts, space: LabelSpace, vocabulary: Vocabulary):
    """Return the number of documents and the word counts of each label."""
    sets = widen(table.indicator, table.labels, space)
    words = sets.T @ vocabulary.select(table.matrix, table.terms)
    return sets.T @ table.set_docs, sparse.csr_matrix(words)


def _largest_change(difference: LabelDifference):
    n_documents = abs(difference.documents_after - difference.documents_before)
    return -difference.change, -n_documents, difference.label


class _LabelChanges:
    """Word counts of labels before and after, side by side in the columns of ``counts``.

    Each pair of a label and a term that occurs in either table is an entry; ``ends`` gives the
    entries of each label, as in a CSR matrix.
    """

    def __init__(self, space, vocabulary, documents, before, after, *, dtype):
        self.space, self.terms = space, vocabulary.terms
        self.documents, self.dtype = documents, dtype
        self.counts, label, self.columns = _side_by_side(before, after)
        self.ends = np.searchsorted(label, np.arange(len(space) + 1))
        self.is_changed = documents[:, 0] != documents[:, 1]
        self.is_changed[label[self.counts[:, 0] != self.counts[:, 1]]] = True
        self.words = np.zeros((len(space), 2))
        np.add.at(self.words, label, self.counts)
        self.shares = self.counts / np.maximum(self.words, np.finfo(float).tiny)[label]
        middle = self.shares.mean(axis=1, keepdims=True)
        self.parts = rel_entr(self.shares, middle).sum(axis=1) / (2 * np.log(2))
        sums = np.bincount(label, weights=self.parts, minlength=len(space))
        only_one = (self.words == 0).sum(axis=1) == 1
        self.divergence = np.where(only_one, 1.0, np.clip(sums, 0.0, 1.0))

    def difference(self, row: int, k: int) -> LabelDifference:
        """Return the difference of one label, with ``k`` growing and ``k`` falling terms."""
        entries = np.arange(self.ends[row], self.ends[row + 1])
        entries = entries[np.argsort(-self.parts[entries], kind="stable")]
        rise = self.shares[entries] @ [-1, 1]
        documents_before, documents_after = self.documents[row].astype(self.dtype).tolist()
        words_before, words_after = self.words[row].astype(self.dtype).tolist()
        return LabelDifference(
            label=self.space.ids[row],
            documents_before=documents_before,
            documents_after=documents_after,
            words_before=words_before,
            words_after=words_after,
            divergence=float(self.divergence[row]),
            growing=self._term_changes(entries[rise > 0][:k]),
            falling=self._term_changes(entries[rise < 0][:k]),
        )

    def _term_changes(self, entries: np.ndarray) -> list[TermChange]:
        terms = [self.terms[column] for column in self.columns[entries].tolist()]
        counts = self.counts[entries].astype(self.dtype).T.tolist()
        shares = self.shares[entries].T.tolist()
        return [TermChange(*change) for change in zip(terms, *counts, *shares, strict=True)]


def _side_by_side(
    before: sparse.csr_matrix, after: sparse.csr_matrix
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the values of two matrices at all entries of either, with their rows and columns."""
    n_columns, keys = before.shape[1], []
    for matrix in (before, after):
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        keys.append(rows * n_columns + matrix.indices)
    entries, places = np.unique(np.concatenate(keys), return_inverse=True)
    values = np.zeros((entries.size, 2))
    values[places[: before.nnz], 0] = before.data
    values[places[before.nnz :], 1] = after.data
    rows, columns = np.divmod(entries, max(n_columns, 1))
    return values, rows, columns


# Drift of a stream


@dataclass(frozen=True)
class LabelPeriod:
    """A label in a period.

    Attributes
    ----------
    label : str
        The label.
    documents : int
        The number of its documents in the period.
    expected : float or None
        The number of documents that its earlier share of all documents predicts.
    perplexity : float or None
        The perplexity of its documents, see :class:`Period`; None for a new label.
    trend : str
        "new" if no earlier document has the label; "growing" or "vanishing" if it has
        significantly more documents than before (and at least two), or fewer; otherwise "". The
        test compares the rates of two Poisson processes, two-sided, at a level of 1%: of a hundred
        labels that do not change, expect one to be reported. The first period has no trends.
    """

    label: str
    documents: int
    expected: float | None
    perplexity: float | None
    trend: str


@dataclass(frozen=True)
class Period:
    """A day, week, month or year, evaluated with a model of all documents before it.

    Attributes
    ----------
    start : str
        Its first day (UTC).
    documents, words : int
        The number of labelled documents, and of words in them.
    perplexity : float or None
        ``exp(-log likelihood / words)`` of the known words, given the documents' labels. None if
        there was no model yet.
    unknown : float or None
        The share of words that occur in no earlier document.
    samples_f1 : float or None
        The samples-averaged F1 of the labels that the model predicts for the documents.
    new_label_documents : int
        How many documents have new labels only, and so no perplexity; 0 without a model.
    labels : list of LabelPeriod
        The labels that have documents in the period, or are expected to have at least one.
    """

    start: str
    documents: int
    words: int
    perplexity: float | None
    unknown: float | None
    samples_f1: float | None
    new_label_documents: int
    labels: list[LabelPeriod]

    def trending(self, trend: str) -> list[LabelPeriod]:
        """Return the labels with a trend, the largest change first."""
        labels = [label for label in self.labels if label.trend == trend]
        return sorted(
            labels, key=lambda label: (-abs(label.documents - (label.expected or 0)), label.label)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Drift:
    """How a stream of documents drifts.

    Attributes
    ----------
    by : str
        The length of a period: "day", "week", "month" or "year".
    periods : list of Period
        The periods that have documents, in order.
    """

    by: str
    periods: list[Period]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)

    def plot(self):
        """Plot the periods with matplotlib; return the figure."""
        from polytopic.store.drift_plot import plot_drift

        return plot_drift(self)


@dataclass(frozen=True)
class DocumentStream:
    """The labelled documents of a store, with their times.

    They are read first, and evaluated after the transaction: fitting a model per period takes long,
    and a long read transaction would keep an SQLite file from being cleaned of deleted documents.

    Attributes
    ----------
    X, Y : csr_matrix
        Counts and label indicators.
    space : LabelSpace
        The columns of Y.
    times : sequence of str
        The times of the documents.
    since : str or None
        The start of the first period to report; earlier documents train its model.
    reported : ndarray of bool
        The labels to report.
    """

    X: sparse.csr_matrix
    Y: sparse.csr_matrix
    space: LabelSpace
    times: Sequence[str]
    since: str | None
    reported: np.ndarray

    @classmethod
    def read(
        cls,
        connection: Connection,
        *,
        since: Any = None,
        until: Any = None,
        labels: Collection[str] | None = None,
    ) -> DocumentStream:
        """Read the documents of a store; the parameters are those of :meth:`Store.drift`."""
        first, end = read_time("since", since), read_time("until", until)
        if first is not None and end is not None and first >= end:
            raise ValueError(f"since == {str(since)!r}, must be before until == {str(until)!r}.")
        terms = Terms(connection)
        selection = Selection(revision=last_revision(connection), until=end)
        rows = read_ledger(connection, len(terms), *selection.conditions())
        X, _, targets = resolve_terms(rows, terms)
        space = LabelSpace(targets.labels)
        reported = np.full(len(space), True)
        if labels:
            reported = label_mask(space, read_tree(connection), labels)
        return cls(X, targets.Y, space, rows.effective_times, first, reported)

    def split(self, by: str) -> Iterator[tuple[str | None, np.ndarray]]:
        """Yield the first day and the documents of each period; None for all before ``since``."""
        times = np.array(self.times, dtype=str)
        is_earlier = np.zeros(times.size, dtype=bool)
        if self.since is not None:
            is_earlier = times < self.since
        if is_earlier.any():
            yield None, np.flatnonzero(is_earlier)
        starts = first_days(times.astype("U10").astype("datetime64[D]"), by)
        rows = np.flatnonzero(~is_earlier)
        rows = rows[np.argsort(starts[rows], kind="stable")]
        days, begins = np.unique(starts[rows], return_index=True)
        ends = [*begins[1:].tolist(), rows.size]
        for day, begin, end in zip(days.tolist(), begins.tolist(), ends, strict=False):
            yield day.isoformat(), rows[begin:end]


def first_days(days: np.ndarray, by: str) -> np.ndarray:
    """Return the first day of the period of each day."""
    if by in ("month", "year"):
        return days.astype(f"datetime64[{by[0].upper()}]").astype("datetime64[D]")
    weekday = (days.astype(np.int64) + 3) % 7  # day 0 was a Thursday
    return days - weekday if by == "week" else days


def drift(stream: DocumentStream, model: str, *, by: str = "day") -> Drift:
    """Evaluate each period of a stream with a model of all documents before it.

    The model is fitted from scratch for each period, without tuning.

    Parameters
    ----------
    stream : DocumentStream
        The documents.
    model : str
        The name of a model; PMM1 replaces a model that does not learn from counts.
    by : {"day", "week", "month", "year"}, default="day"
        The length of a period.
    """
    check_name(by, "by", PERIODS)
    learns_from_counts = find_model(model).learns_from == "counts"
    count_model = create_model(model if learns_from_counts else DEFAULT_COUNT_MODEL)
    history = _History(stream, count_model)
    periods = []
    for start, rows in stream.split(by):
        if start is not None:
            periods.append(history.evaluate(start, rows))
        history.learn(rows)
    return Drift(by, periods)


class _History:
    """The documents so far, and what they predict for the next period."""

    def __init__(self, stream: DocumentStream, model: CountModel):
        self.stream, self.model = stream, model
        self.counts = LabelSetCounts()  # of all terms: its columns are those of the stream

    def learn(self, rows: np.ndarray) -> None:
        """Add documents."""
        targets = Targets(self.stream.Y[rows], self.stream.space.ids)
        self.counts += LabelSetCounts.from_matrix(self.stream.X[rows], targets)

    def evaluate(self, start: str, rows: np.ndarray) -> Period:
        """Evaluate the documents of a period."""
        X, Y = self.stream.X[rows], self.stream.Y[rows]
        n_words, unknown, f1, n_new = X.sum(), None, None, 0
        log_likelihood = n_known = np.zeros(rows.size)  # of known words
        if self.counts.n_docs:
            terms = np.flatnonzero(self.counts.document_frequency)
            sets = Y[:, self._known_labels()]
            has_known_label = np.diff(sets.indptr) > 0
            n_new = int((~has_known_label).sum())
            n_known = X[:, terms].sum(axis=1).A1
            unknown = float(1 - n_known.sum() / n_words) if n_words else None
            n_known = np.where(has_known_label, n_known, 0.0)
            if terms.size:
                model = self._fit(terms)
                log_likelihood = _log_likelihood(model, X[:, terms], sets, n_known > 0)
                predicted = model.predict_indicator(X[:, terms])
                f1 = samples_f1(Y, widen(predicted, self.counts.labels, self.stream.space))
        return Period(
            start=start,
            documents=rows.size,
            words=int(n_words),
            perplexity=_perplexity(log_likelihood.sum(), n_known.sum()),
            unknown=unknown,
            samples_f1=f1,
            new_label_documents=n_new,
            labels=list(self._label_periods(Y, log_likelihood, n_known)),
        )

    def _known_labels(self) -> np.ndarray:
        """Return the columns of the labels that occur so far."""
        columns = [self.stream.space.index(label) for label in self.counts.labels]
        return np.array(columns, dtype=np.intp)

    def _fit(self, terms: np.ndarray) -> CountModel:
        """Return a model of the documents so far, over the terms that occur in them."""
        return clone(self.model).fit_counts(self.counts.select(terms, range(terms.size)))

    def _label_periods(self, Y, log_likelihood, n_known) -> Iterator[LabelPeriod]:
        n_docs, n_earlier = Y.shape[0], self.counts.n_docs
        documents = Y.getnnz(axis=0)
        earlier = np.zeros(documents.size, dtype=np.int64)
        earlier[self._known_labels()] = self.counts.indicator.T @ self.counts.set_docs
        expected = earlier / max(n_earlier, 1) * n_docs
        trend = _trends(documents, n_docs, earlier, n_earlier)
        sums, words = Y.T @ log_likelihood, Y.T @ n_known
        reported = self.stream.reported & ((documents > 0) | (expected >= 1))
        for label in np.flatnonzero(reported).tolist():
            yield LabelPeriod(
                label=self.stream.space.ids[label],
                documents=int(documents[label]),
                expected=float(expected[label]) if n_earlier else None,
                perplexity=_perplexity(sums[label], words[label]) if earlier[label] else None,
                trend=str(trend[label]),
            )


def _log_likelihood(model: CountModel, X, sets, rows: np.ndarray) -> np.ndarray:
    """Return the log likelihood of the documents of a mask, 0 for the others."""
    values = np.zeros(rows.size)
    if rows.any():
        values[rows] = model.log_likelihood(X[rows], sets[rows])
    return values


def _perplexity(log_likelihood: float, n_words: float) -> float | None:
    return float(np.exp(-log_likelihood / n_words)) if n_words else None


def _trends(now: np.ndarray, n_now: int, earlier: np.ndarray, n_earlier: int) -> np.ndarray:
    """Return the trend of each label, by its documents now and earlier and by those of all.

    If the rate is constant, each document of the label belongs to the present period with the same
    probability (Przyborowski and Wilenski, "Homogeneity of results in testing samples from Poisson
    series", 1940).
    """
    if not n_earlier:
        return np.full(now.size, "")
    total, share = now + earlier, n_now / (n_now + n_earlier)
    is_vanishing = bdtr(now, total, share) < SIGNIFICANCE / 2
    is_growing = (now > 1) & (bdtrc(now - 1, total, share) < SIGNIFICANCE / 2)
    trend = np.select([is_growing, is_vanishing], ["growing", "vanishing"], "")
    return np.where((earlier == 0) & (now > 0), "new", trend)


# Documents over time


@dataclass(frozen=True)
class Timeline:
    """The number of labelled documents in each period.

    Attributes
    ----------
    by : str
        The length of a period: "day", "week", "month" or "year".
    starts : list of str
        The first day of each period (UTC), including those without documents.
    documents : list of int
        The number of documents in each period.
    labels : dict of str to list of int
        The number of documents of each label in each period.
    """

    by: str
    starts: list[str]
    documents: list[int]
    labels: dict[str, list[int]]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


def timeline(connection: Connection, *, by: str = "auto") -> Timeline:
    """Count the labelled documents of a store in each period; see :meth:`Store.timeline`."""
    check_name(by, "by", ("auto", *PERIODS))
    days, sets, counts = _read_days(connection)
    if not counts.size:
        return Timeline("day" if by == "auto" else by, [], [], {})
    if by == "auto":
        by = next((p for p in PERIODS if all_periods(days, p).size <= MAX_PERIODS), PERIODS[-1])
    starts = all_periods(days, by)
    places = np.searchsorted(starts, first_days(days, by))
    documents = np.bincount(places, counts, starts.size).astype(int)
    by_label: dict[str, Counter] = {}
    for place, labels, n in zip(places.tolist(), sets, counts.tolist(), strict=True):
        for label in read_labels(labels):
            by_label.setdefault(label, Counter())[place] += n
    return Timeline(
        by,
        [start.isoformat() for start in starts.tolist()],
        documents.tolist(),
        {label: [n[k] for k in range(starts.size)] for label, n in sorted(by_label.items())},
    )


def _read_days(connection: Connection) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return days and label sets, and how many documents have both."""
    day = func.substr(EFFECTIVE_TIME, 1, 10, type_=Text).label("day")
    dated = select(day, schema.documents.c.labels).where(IS_CURRENT, IS_LABELLED).subquery()
    keys = dated.c.day, dated.c.labels
    rows = fetch(connection, select(*keys, func.count()).group_by(*keys))
    days, sets, counts = zip(*rows, strict=True) if rows else ((), (), ())
    check_times(days)
    return np.array(days, dtype="datetime64[D]"), list(sets), np.array(counts, dtype=np.int64)


def all_periods(days: np.ndarray, by: str) -> np.ndarray:
    """Return the first days of all periods from the first day to the last."""
    every_day = np.arange(days.min(), days.max() + 1)
    return np.unique(first_days(every_day, by))
