"""Drift: how a stream of documents departs from what was known before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import bdtr, bdtrc
from sklearn.base import clone

from polytopic.counts import LabelSetCounts
from polytopic.labeler.learning import named_model
from polytopic.labels import LabelSpace, Targets, widen
from polytopic.metrics import samples_f1
from polytopic.models import PMM1, CountModel
from polytopic.models.checks import check_name
from polytopic.store.bags import read_bags
from polytopic.store.differences import label_mask
from polytopic.store.reading import named
from polytopic.store.selection import Selection, read_time
from polytopic.store.state import last_revision
from polytopic.store.terms import Terms

if TYPE_CHECKING:
    from polytopic.store.store import Store

PERIODS = ("day", "week", "month", "year")
CHANCE = 0.01  # of calling a label growing or vanishing that is as frequent as before


@dataclass(frozen=True)
class LabelPeriod:
    """A label in a period.

    Attributes
    ----------
    label : str
        The label.
    documents : int
        Its documents in the period.
    expected : float or None
        How many it would have had at its earlier share of all documents.
    perplexity : float or None
        That of its documents, see :class:`Period`; None for a new label.
    trend : str
        "new" if no earlier document has it; "growing" or "vanishing" if it has more documents,
        two at least, or fewer than before (a test of the rates of two Poisson processes,
        two-sided, with an error of 1%: of a hundred labels that do not change, one may be told
        by chance); else "". In the first period there is none.
    """

    label: str
    documents: int
    expected: float | None
    perplexity: float | None
    trend: str


@dataclass(frozen=True)
class Period:
    """A day, week, month or year with documents, judged by a model of all documents before it.

    Attributes
    ----------
    start : str
        Its first day (UTC).
    documents, words : int
        Its labelled documents, and their words.
    perplexity : float or None
        ``exp(-log likelihood / words)`` of the words that were known before, given the documents'
        labels: from how many words, as it were, each was drawn. None if there was no model.
    unknown : float or None
        The share of words that no earlier document has.
    f : float or None
        The samples F1 of the labels that the model gives them before it learns them.
    new_label_documents : int
        Documents with new labels only, which no perplexity can be told of; none where there was
        no model.
    labels : list of LabelPeriod
        The labels that have documents in it, or would have one at least at their earlier share.
    """

    start: str
    documents: int
    words: int
    perplexity: float | None
    unknown: float | None
    f: float | None
    new_label_documents: int
    labels: list[LabelPeriod]

    def trending(self, trend: str) -> list[LabelPeriod]:
        """Return the labels of a trend, what changed most first."""
        own = [label for label in self.labels if label.trend == trend]
        return sorted(own, key=lambda one: (-abs(one.documents - (one.expected or 0)), one.label))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Drift:
    """What :func:`drift` found.

    Attributes
    ----------
    by : str
        "day", "week", "month" or "year".
    periods : list of Period
        The periods with documents, in order.
    """

    by: str
    periods: list[Period]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)

    def plot(self):
        """Draw the periods with matplotlib; return the figure."""
        from polytopic.store.drift_drawing import draw

        return draw(self)


def drift(
    store: Store,
    *,
    by: str = "day",
    since: Any = None,
    until: Any = None,
    labels: Collection[str] | None = None,
) -> Drift:
    """Judge each period of a store's labelled documents by what was known before it.

    A model is fitted from nothing for each period, on all documents of earlier ones, and nothing
    of it is tuned: the store's model, or PMM1 if that one does not learn from counts.

    Parameters
    ----------
    store : Store
        The store.
    by : {"day", "week", "month", "year"}, default="day"
        How long a period is. A document without a time has that at which it was first learned.
    since, until : datetime or ISO 8601 string, default=None
        Times between which periods are told, the second one excluded. What came before is known
        to the first period.
    labels : collection of str, default=None
        Labels to tell of, with those below them in the tree; all by default. Perplexities and
        words are those of all documents.
    """
    check_name(by, "by", PERIODS)
    first, last = read_time("since", since), read_time("until", until)
    if first is not None and last is not None and first >= last:
        raise ValueError(f"since == {str(since)!r}, must be before until == {str(until)!r}.")
    stream = _read_stream(store, last)
    told = np.full(len(stream.space), True)
    if labels:
        told = label_mask(stream.space, store.tree, labels)
    past = _Past(stream, _count_model(store.model), told)
    periods = []
    for start, rows in stream.periods(by, first):
        if start is not None:
            periods.append(past.judge(start, rows))
        past.learn(rows)
    return Drift(by, periods)


@dataclass(frozen=True)
class _Stream:
    """Labelled documents: their counts, label sets and times."""

    X: sparse.csr_matrix
    Y: sparse.csr_matrix
    space: LabelSpace
    moments: Sequence[str]

    def periods(self, by: str, since: str | None) -> Iterator[tuple[str | None, np.ndarray]]:
        """Yield the first day of each period, and its documents; those before all under None."""
        moments = np.array(self.moments, dtype=str)
        earlier = np.zeros(moments.size, dtype=bool) if since is None else moments < since
        if earlier.any():
            yield None, np.flatnonzero(earlier)
        starts = first_days(moments.astype("U10").astype("datetime64[D]"), by)
        rows = np.flatnonzero(~earlier)
        rows = rows[np.argsort(starts[rows], kind="stable")]
        days, begin = np.unique(starts[rows], return_index=True)
        ends = [*begin[1:].tolist(), rows.size]
        for day, a, b in zip(days.tolist(), begin.tolist(), ends, strict=False):
            yield day.isoformat(), rows[a:b]


def first_days(days: np.ndarray, by: str) -> np.ndarray:
    """Return the first day of the period of each day."""
    if by in ("month", "year"):
        return days.astype(f"datetime64[{by[0].upper()}]").astype("datetime64[D]")
    after_monday = (days.astype(np.int64) + 3) % 7  # day 0 was a Thursday
    return days - after_monday if by == "week" else days


def _read_stream(store: Store, until: str | None) -> _Stream:
    with store._database.reading() as connection:
        revision = last_revision(connection)
        terms = Terms(connection)
        conditions = Selection(revision=revision, until=until).conditions()
        bags = read_bags(connection, len(terms), *conditions)
    X, _, targets = named(bags, terms)
    return _Stream(X, targets.Y, LabelSpace(targets.labels), bags.moments)


def _count_model(name: str) -> CountModel:
    model = named_model(name)
    return model if isinstance(model, CountModel) else PMM1()


class _Past:
    """What is known of the documents so far; it tells of the labels where ``told`` is true."""

    def __init__(self, stream: _Stream, model: CountModel, told: np.ndarray):
        self.stream, self.model, self.told = stream, model, told
        self.counts = LabelSetCounts()  # of all terms: its columns are those of the stream

    def learn(self, rows: np.ndarray) -> None:
        """Add documents."""
        targets = Targets(self.stream.Y[rows], self.stream.space.ids)
        self.counts += LabelSetCounts.from_matrix(self.stream.X[rows], targets)

    def judge(self, start: str, rows: np.ndarray) -> Period:
        """Return what is to be told of the documents of a period."""
        X, Y = self.stream.X[rows], self.stream.Y[rows]
        n_words, unknown, f, strange = X.sum(), None, None, 0
        log_likelihood = known = np.zeros(rows.size)  # of known words
        if self.counts.n_docs:
            terms = np.flatnonzero(self.counts.document_frequency)
            sets = Y[:, self._labels()]
            judged = np.diff(sets.indptr) > 0
            strange = int((~judged).sum())
            known = X[:, terms].sum(axis=1).A1
            unknown = float(1 - known.sum() / n_words) if n_words else None
            known = np.where(judged, known, 0.0)
            if terms.size:
                model, judged = self._fitted(terms), judged & (known > 0)
                log_likelihood = _log_likelihood(model, X[:, terms], sets, judged)
                f = samples_f1(Y, self._widened(model.choose(X[:, terms])))
        return Period(
            start=start,
            documents=rows.size,
            words=int(n_words),
            perplexity=_perplexity(log_likelihood.sum(), known.sum()),
            unknown=unknown,
            f=f,
            new_label_documents=strange,
            labels=list(self._tell_labels(Y, log_likelihood, known)),
        )

    def _labels(self) -> np.ndarray:
        """Return the columns of the labels that are known."""
        columns = [self.stream.space.index(label) for label in self.counts.labels]
        return np.array(columns, dtype=np.intp)

    def _fitted(self, terms: np.ndarray) -> CountModel:
        """Return a model of what is known, of the terms that occur."""
        return clone(self.model).fit_counts(self.counts.select(terms, range(terms.size)))

    def _widened(self, sets) -> sparse.csr_matrix:
        """Return sets of known labels as sets of all."""
        return widen(sets, self.counts.labels, self.stream.space)

    def _tell_labels(self, Y, log_likelihood, known) -> Iterator[LabelPeriod]:
        n_docs, n_earlier = Y.shape[0], self.counts.n_docs
        documents = Y.getnnz(axis=0)
        earlier = np.zeros(documents.size, dtype=np.int64)
        earlier[self._labels()] = self.counts.indicator.T @ self.counts.set_docs
        expected = earlier / max(n_earlier, 1) * n_docs
        trend = _trends(documents, n_docs, earlier, n_earlier)
        sums, words = Y.T @ log_likelihood, Y.T @ known
        for k in np.flatnonzero(self.told & ((documents > 0) | (expected >= 1))).tolist():
            yield LabelPeriod(
                label=self.stream.space.ids[k],
                documents=int(documents[k]),
                expected=float(expected[k]) if n_earlier else None,
                perplexity=_perplexity(sums[k], words[k]) if earlier[k] else None,
                trend=str(trend[k]),
            )


def _log_likelihood(model: CountModel, X, sets, judged: np.ndarray) -> np.ndarray:
    """Return the log likelihood of documents, 0 for those not judged."""
    found = np.zeros(judged.size)
    if judged.any():
        found[judged] = model.log_likelihood(X[judged], sets[judged])
    return found


def _perplexity(log_likelihood: float, n_words: float) -> float | None:
    return float(np.exp(-log_likelihood / n_words)) if n_words else None


def _trends(now: np.ndarray, n_now: int, earlier: np.ndarray, n_earlier: int) -> np.ndarray:
    """Return the trend of each label by its documents now and earlier, and by those of all.

    If the rate is the same, each document of the label is one of now with the same probability
    (Przyborowski and Wilenski, "Homogeneity of results in testing samples from Poisson series",
    1940).
    """
    if not n_earlier:
        return np.full(now.size, "")
    total, share = now + earlier, n_now / (n_now + n_earlier)
    fewer = bdtr(now, total, share) < CHANCE / 2
    more = (now > 1) & (bdtrc(now - 1, total, share) < CHANCE / 2)  # one is no growth
    changed = np.select([more, fewer], ["growing", "vanishing"], "")
    return np.where((earlier == 0) & (now > 0), "new", changed)
