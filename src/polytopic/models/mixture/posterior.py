"""The posterior over label sets: its prior, and the search for the best sets."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from polytopic.kernels.blocks import map_rows, map_sets
from polytopic.labels import LabelSpace, indicator, stack_sets
from polytopic.models.mixture import branch_kernels, candidate_kernels, likelihood_kernels
from polytopic.models.mixture.tuning_kernels import LeaveOneOutPrior
from polytopic.models.results import LabelSets

DISCOUNT = 0.75  # taken from the documents of each seen set, for sets that were not seen
MAX_SHARE = 1.0 - 1e-12  # of documents with a label: the next document may still lack it
PRIORS = ("labelset", "labels", "uniform")
UNLIMITED = 1 << 62  # fits int64, which the kernels count in
NO_MARGINS = np.empty((0, 0))
NO_LABELS = np.zeros(0, dtype=bool)


class SetPrior:
    r"""Prior probability of label sets.

    - ``"labelset"``: :math:`P(y) = \max(n_y - \delta, 0)/n + \lambda P_0(y)`, the share of the
      documents with this set, discounted by :math:`\delta`; the mass :math:`\lambda` that the
      discounts free is distributed by :math:`P_0`;
    - ``"labels"``: :math:`P_0(y) \propto \prod_{l \in y} p_l \prod_{l \notin y} (1 - p_l)` over
      all sets but the empty one, where :math:`p_l` is the share of documents with label :math:`l`;
    - ``"uniform"``: all sets are equally likely; the log prior is given as 0.

    Parameters
    ----------
    kind : {"labelset", "labels", "uniform"}
        One of these.
    sets : csr_matrix of shape (n_seen, n_labels)
        The distinct label sets of the training documents.
    set_docs : ndarray of shape (n_seen,)
        Number of documents with each set.

    Attributes
    ----------
    sets, set_docs
        As given, followed by each label that has documents but no set of its own, with 0 documents,
        so that every label alone is a candidate.
    """

    def __init__(self, kind, sets, set_docs):
        self.kind = kind
        self.sets, self.set_docs = _with_singles(sets, set_docs)
        # fixed seed: keys must be the same for the same labels, whatever was seen
        self.label_keys = np.random.default_rng(0).integers(
            1, 2**64, size=sets.shape[1], dtype=np.uint64, endpoint=False
        )
        self.keys = self._keys(self.sets)
        self.rows = np.argsort(self.keys, kind="stable")
        self._weigh()

    def _keys(self, sets):
        """Return a hash of each set, the exclusive-or of its labels' keys."""
        keys = np.zeros(sets.shape[0], dtype=np.uint64)
        rows = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))
        np.bitwise_xor.at(keys, rows, self.label_keys[sets.indices])
        return keys

    def _weigh(self):
        """Set the log priors: ``base + log_odds[labels].sum()``, and ``log_seen`` of seen sets."""
        n_docs = self.set_docs.sum()
        self.base, self.log_odds = 0.0, np.zeros(self.sets.shape[1])
        if self.kind != "uniform":
            share = np.minimum(self.sets.T @ self.set_docs / n_docs, MAX_SHARE)
            none = np.log1p(-share).sum()
            with np.errstate(divide="ignore"):  # a label without documents has log odds -inf
                self.log_odds = np.log(share) - np.log1p(-share)
            self.base = none - np.log(-np.expm1(none))
        if self.kind == "labelset":
            self.base += np.log(np.minimum(self.set_docs, DISCOUNT).sum() / n_docs)
        self.log_seen = self.base + self.sets @ self.log_odds
        if self.kind == "labelset":
            discounted = np.maximum(self.set_docs - DISCOUNT, 0.0) / n_docs
            with np.errstate(divide="ignore"):  # nothing is left of a weight below the discount
                self.log_seen = np.logaddexp(np.log(discounted), self.log_seen)

    def arrays(self) -> candidate_kernels.Prior:
        """Return the prior as the kernels read it."""
        return candidate_kernels.Prior(
            self.sets.indices.astype(np.int64),
            self.sets.indptr.astype(np.int64),
            self.log_seen,
            float(self.base),
            self.log_odds,
            self.label_keys,
            self.keys[self.rows],
            self.rows,
        )

    def log_prior(self, sets) -> np.ndarray:
        """Return the log prior of each row of an indicator, ``-inf`` for the empty set."""
        sets = sparse.csr_matrix(sets)
        out = self.base + sets @ self.log_odds
        keys, ordered = self._keys(sets), self.keys[self.rows]
        first, last = np.searchsorted(ordered, keys), np.searchsorted(ordered, keys, "right")
        for row in np.flatnonzero(first < last):
            labels = set(sets[row].indices.tolist())
            for seen in self.rows[first[row] : last[row]]:
                if labels == set(self.sets[seen].indices.tolist()):
                    out[row] = self.log_seen[seen]
        return np.where(np.diff(sets.indptr) > 0, out, -np.inf)

    def restrict_to(self, allowed) -> SetPrior:
        """Return the same prior with only the seen sets whose labels are all allowed."""
        return self._select(self.sets @ (~allowed).astype(np.float64) == 0)

    def with_label(self, label) -> SetPrior:
        """Return the same prior with only the seen sets that contain a label."""
        return self._select(self.sets[:, [label]].toarray()[:, 0] > 0)

    def _select(self, selected):
        prior = copy(self)
        prior.sets, prior.set_docs = self.sets[selected], self.set_docs[selected]
        prior.log_seen, prior.keys = self.log_seen[selected], self.keys[selected]
        prior.rows = np.argsort(prior.keys, kind="stable")
        return prior

    def without(self, row) -> SetPrior:
        """Return the prior with one document less in the label set of a row."""
        prior = copy(self)
        prior.set_docs = self.set_docs.copy()
        prior.set_docs[row] = max(self.set_docs[row] - 1.0, 0.0)
        if prior.set_docs[row] == 0:
            without_docs = self.sets.T @ prior.set_docs == 0
            selected = self.sets @ without_docs.astype(np.float64) == 0
            selected[row] &= self.sets.indptr[row + 1] - self.sets.indptr[row] == 1
            prior = prior._select(selected)
        if prior.set_docs.size:
            prior._weigh()
        return prior

    def leave_one_out(self, rows, sets) -> LeaveOneOutPrior | None:
        """Return :meth:`without` for many documents at once; None if no document would be left.

        Document ``d`` has the label set of row ``rows[d]``, which is row ``d`` of ``sets``.
        """
        n_docs = self.set_docs.sum() - 1.0
        if not n_docs > 0:
            return None
        own_docs = np.maximum(self.set_docs[rows] - 1.0, 0.0)
        label_docs = self.sets.T @ self.set_docs
        own_label_docs = label_docs[sets.indices] - 1.0
        base, log_odds, own_log_odds = (
            np.zeros(rows.size),
            np.zeros(label_docs.size),
            own_label_docs * 0.0,
        )
        if self.kind != "uniform":
            share = np.minimum(label_docs / n_docs, MAX_SHARE)
            own_share = np.minimum(own_label_docs / n_docs, MAX_SHARE)
            with np.errstate(divide="ignore"):
                log_odds = np.log(share) - np.log1p(-share)
                own_log_odds = np.log(own_share) - np.log1p(-own_share)
            base = _log_base(np.log1p(-share), sets, np.log1p(-own_share))
        own_log_odds[own_label_docs <= 0] = -np.inf
        log_discounted = np.full(self.set_docs.size, -np.inf)
        own_log_discounted = np.full(rows.size, -np.inf)
        if self.kind == "labelset":
            discounts = np.minimum(self.set_docs, DISCOUNT)
            freed = discounts.sum() - discounts[rows] + np.minimum(own_docs, DISCOUNT)
            base += np.log(freed / n_docs)
            with np.errstate(divide="ignore"):
                log_discounted = np.log(np.maximum(self.set_docs - DISCOUNT, 0.0) / n_docs)
                own_log_discounted = np.log(np.maximum(own_docs - DISCOUNT, 0.0) / n_docs)
        return LeaveOneOutPrior(
            rows,
            sets.indices.astype(np.int64),
            sets.indptr.astype(np.int64),
            base,
            own_log_odds,
            own_log_discounted,
            own_docs == 0,
            log_odds,
            log_discounted,
        )


def _log_base(log_missing, sets, own_log_missing):
    r"""Return the log of :math:`P_0` without any label, up to its empty set, for each row.

    ``log_missing`` has the log probability that each label is missing; those of a row's own labels
    are replaced by ``own_log_missing``.
    """
    base = np.empty(sets.shape[0])
    for row in range(base.size):
        own = slice(sets.indptr[row], sets.indptr[row + 1])
        missing = log_missing.copy()
        missing[sets.indices[own]] = own_log_missing[own]
        none = missing.sum()
        base[row] = none - np.log(-np.expm1(none))
    return base


def _with_singles(sets, set_docs):
    """Return the sets, followed by the labels that have documents but no set of their own."""
    single_labels = sets[np.diff(sets.indptr) == 1].indices
    rest = np.setdiff1d(np.flatnonzero(sets.T @ set_docs), single_labels)
    singles = indicator(rest, np.arange(rest.size + 1), sets.shape[1])
    stacked = sparse.csr_matrix(sparse.vstack([sets, singles], format="csr"))
    return stacked, np.concatenate([set_docs, np.zeros(rest.size)])


class LabelSetPosterior:
    r"""The posterior :math:`P(y \mid x) \propto \exp(\ell(x \mid y) / T)\, P(y)` of a mixture.

    Parameters
    ----------
    theta : ndarray of shape (n_words, n_labels)
        Word probabilities of each label.
    family : Family
        How labels are mixed.
    allowed : ndarray of bool of shape (n_labels,)
        The labels that a set may have.
    prior : SetPrior
        :math:`P(y)`; its seen sets have allowed labels only.
    temperature : float
        :math:`T`.
    required : int, default=-1
        A label that every set must have, as all seen sets of ``prior`` do; -1 for none.
    greedy_tables : tuple of ndarrays, default=None
        Tables for the fast greedy search of PMM1, see
        :func:`~polytopic.models.mixture.candidate_kernels.greedy_sets_of_pmm1`.
    """

    def __init__(
        self, theta, family, allowed, prior, temperature, *, required=-1, greedy_tables=None
    ):
        self._allowed, self._greedy_tables = allowed, greedy_tables
        self.problem = candidate_kernels.Problem(
            theta, family, np.flatnonzero(allowed), prior.arrays(), float(temperature), required
        )

    @property
    def _n_labels(self):
        return self._allowed.size

    def choose(self, X, decode) -> sparse.csr_matrix:
        """Return each document's label set: ``decode`` is "f", "map" or "greedy".

        Documents without words get an empty set.
        """

        def block(data, indices, indptr, rows):
            chosen = np.zeros((indptr.size - 1, self._n_labels), dtype=bool)
            if decode == "greedy":
                self._search_greedily(data, indices, indptr, chosen)
            else:
                out = chosen, NO_MARGINS, NO_MARGINS
                candidate_kernels.assess(
                    data, indices, indptr, self.problem, decode == "f", NO_LABELS, *out
                )
            return chosen.sum(axis=1), np.nonzero(chosen)[1]

        return stack_sets(map_rows(block, X, self._n_labels), self._n_labels)

    def _search_greedily(self, data, indices, indptr, chosen):
        if self._greedy_tables is None:
            candidate_kernels.greedy_sets(data, indices, indptr, self.problem, chosen)
        else:
            candidate_kernels.greedy_sets_of_pmm1(
                data, indices, indptr, *self._greedy_tables, self._allowed, chosen
            )

    def assess(self, X, decode, labels=None):
        """Return the sets of :meth:`choose`, and the margins and probabilities of the labels.

        With ``labels`` (columns), only their margins and those of the chosen labels are exact, and
        probabilities only to about four digits.
        """
        n_labels = self._n_labels
        exact_labels = NO_LABELS
        if labels is not None:
            exact_labels = np.zeros(n_labels, dtype=bool)
            exact_labels[np.asarray(labels, dtype=np.int64)] = True
        margins, marginals = np.empty((X.shape[0], n_labels)), np.zeros((X.shape[0], n_labels))

        def block(data, indices, indptr, rows):
            chosen = np.zeros((indptr.size - 1, n_labels), dtype=bool)
            out = chosen, margins[rows], marginals[rows]
            candidate_kernels.assess(
                data, indices, indptr, self.problem, decode == "f", exact_labels, *out
            )
            return chosen.sum(axis=1), np.nonzero(chosen)[1]

        sets = stack_sets(map_rows(block, X, n_labels), n_labels)
        return sets, margins, marginals

    def best_sets(self, X, n_best, max_nodes) -> RankedSets:
        """Return each document's best label sets, with a bound on all others.

        Branch and bound splits at most ``max_nodes`` nodes per document; with 0, the best
        candidates are returned as they are.
        """
        n_docs, n_labels = X.shape[0], self._n_labels
        max_nodes = int(min(max_nodes, UNLIMITED))
        values, bounds, totals = np.empty((n_docs, n_best)), np.empty(n_docs), np.empty(n_docs)

        def block(data, indices, indptr, rows):
            sets = np.zeros((indptr.size - 1, n_best, n_labels), dtype=bool)
            out = sets, values[rows], bounds[rows], totals[rows]
            branch_kernels.best_sets(data, indices, indptr, self.problem, n_best, max_nodes, *out)
            return sets.sum(axis=2).ravel(), np.nonzero(sets)[2]

        blocks = map_rows(block, X, n_best * n_labels)
        return RankedSets(stack_sets(blocks, n_labels), values, bounds, totals)


@dataclass(frozen=True)
class RankedSets:
    """The best label sets of documents, best first, by columns of labels.

    Attributes
    ----------
    sets : csr_matrix of shape (n_docs * n_best, n_labels)
        The sets as an indicator, ``n_best`` rows per document.
    values : ndarray of shape (n_docs, n_best)
        Their log posterior, up to a constant; ``-inf`` where there are fewer sets.
    bounds : ndarray of shape (n_docs,)
        No other set has a higher value.
    totals : ndarray of shape (n_docs,)
        Log of the total mass of all sets that were evaluated.
    """

    sets: sparse.csr_matrix
    values: np.ndarray
    bounds: np.ndarray
    totals: np.ndarray

    def first(self) -> sparse.csr_matrix:
        """Return the best set of each document."""
        return self.sets[:: self.values.shape[1]]

    def to_label_sets(self, classes) -> LabelSets:
        """Return the sets by label ids, with normalized log posteriors."""
        rows = LabelSpace(classes.tolist()).decode(self.sets)
        n_best = self.values.shape[1]
        sets = [
            [tuple(labels) for labels in rows[start : start + n_best] if labels]
            for start in range(0, len(rows), n_best)
        ]
        return LabelSets(sets, self.values - self.totals[:, None], self.bounds - self.totals)


def log_likelihoods(X, sets, theta, family) -> np.ndarray:
    """Return the log likelihood of each document under its label set, ``-inf`` if it is empty."""
    out = np.empty(X.shape[0])

    def block(data, indices, indptr, labels, ends, rows):
        likelihood_kernels.log_likelihoods(
            data, indices, indptr, labels, ends, theta, family, out[rows]
        )

    map_sets(block, X, sets)
    return out


def label_weights(X, sets, theta, family) -> np.ndarray:
    """Return the weight of each label in each document's mixture, in the order of ``sets``."""
    out = np.empty(sets.nnz)

    def block(data, indices, indptr, labels, ends, rows):
        likelihood_kernels.label_weights(
            data, indices, indptr, labels, ends, theta, family.bias, family.mixing, out
        )

    map_sets(block, X, sets)
    return out
