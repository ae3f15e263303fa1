"""Priors over label sets."""

from __future__ import annotations

from copy import copy
from itertools import pairwise

import numpy as np
from scipy import sparse

from polytopic.kernels.left_out import LeftOutPrior
from polytopic.kernels.posterior import Prior
from polytopic.labels import indicator

DISCOUNT = 0.75  # taken from the documents of each seen set, for the sets not seen
SUREST = 1.0 - 1e-12  # a label on every document may still be missing from the next
PRIORS = ("labelset", "labels", "uniform")


class SetPrior:
    r"""How likely a label set is before its document is read.

    - ``"labelset"``: :math:`P(y) = \max(n_y - \delta, 0)/n + \lambda P_0(y)`, the share of the
      set's documents, discounted by :math:`\delta` for the sets that were not seen; these get
      the mass :math:`\lambda` that was taken, by :math:`P_0`;
    - ``"labels"``: :math:`P_0(y) \propto \prod_{l \in y} p_l \prod_{l \notin y} (1 - p_l)` over
      all sets but the empty one, :math:`p_l` being the label's share of documents;
    - ``"uniform"``: all sets are equally likely; the logarithm is given as 0.

    Parameters
    ----------
    kind : {"labelset", "labels", "uniform"}
        Which of these.
    sets : csr_matrix of shape (n_seen, n_labels)
        The label sets seen, each once.
    set_docs : ndarray of shape (n_seen,)
        Number of documents of each.

    Notes
    -----
    ``sets`` is kept with every label that has documents also as a set of its own, so that none is
    forgotten among the candidates.
    """

    def __init__(self, kind, sets, set_docs):
        self.kind = kind
        self.sets, self.set_docs = _with_singles(sets, set_docs)
        # the same for the same labels, whatever was seen
        self.label_keys = np.random.default_rng(0).integers(
            1, 2**64, size=sets.shape[1], dtype=np.uint64, endpoint=False
        )
        self.keys = self._keys(self.sets)
        self.rows = np.argsort(self.keys, kind="stable")
        self._weigh()

    def _keys(self, sets):
        """Return a number for each set, which other sets hardly share."""
        keys = np.zeros(sets.shape[0], dtype=np.uint64)
        rows = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))
        np.bitwise_xor.at(keys, rows, self.label_keys[sets.indices])
        return keys

    def _weigh(self):
        """Find the log priors: ``base + log_odds[labels].sum()``, and ``log_seen`` of seen sets."""
        n_docs = self.set_docs.sum()
        self.base, self.log_odds = 0.0, np.zeros(self.sets.shape[1])
        if self.kind != "uniform":
            share = np.minimum(self.sets.T @ self.set_docs / n_docs, SUREST)
            none = np.log1p(-share).sum()
            with np.errstate(divide="ignore"):  # a label without documents: never
                self.log_odds = np.log(share) - np.log1p(-share)
            self.base = none - np.log(-np.expm1(none))
        if self.kind == "labelset":
            self.base += np.log(np.minimum(self.set_docs, DISCOUNT).sum() / n_docs)
        self.log_seen = self.base + self.sets @ self.log_odds
        if self.kind == "labelset":
            kept = np.maximum(self.set_docs - DISCOUNT, 0.0) / n_docs
            with np.errstate(divide="ignore"):  # less than a document was seen
                self.log_seen = np.logaddexp(np.log(kept), self.log_seen)

    def arrays(self):
        """Return what the kernels read."""
        return Prior(
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
        """Return the log prior of each row of an indicator; ``-inf`` of the empty set."""
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

    def restricted(self, allowed) -> SetPrior:
        """Return the same prior, with only the seen sets whose labels are all allowed."""
        return self._keeping(self.sets @ (~allowed).astype(np.float64) == 0)

    def holding(self, label) -> SetPrior:
        """Return the same prior, with only the seen sets that hold a label."""
        return self._keeping(self.sets[:, [label]].toarray()[:, 0] > 0)

    def _keeping(self, kept):
        prior = copy(self)
        prior.sets, prior.set_docs = self.sets[kept], self.set_docs[kept]
        prior.log_seen, prior.keys = self.log_seen[kept], self.keys[kept]
        prior.rows = np.argsort(prior.keys, kind="stable")
        return prior

    def without(self, row) -> SetPrior:
        """Return the prior with a document less in the label set of a row."""
        prior = copy(self)
        prior.set_docs = self.set_docs.copy()
        prior.set_docs[row] = max(self.set_docs[row] - 1.0, 0.0)
        if prior.set_docs[row] == 0:
            gone = self.sets.T @ prior.set_docs == 0
            kept = self.sets @ gone.astype(np.float64) == 0
            kept[row] &= self.sets.indptr[row + 1] - self.sets.indptr[row] == 1
            prior = prior._keeping(kept)
        if prior.set_docs.size:
            prior._weigh()
        return prior

    def left_out(self, rows, sets) -> LeftOutPrior | None:
        """Return the priors with a document less each, in the set of its row; None if none is left.

        ``sets`` are those of the rows. The same as :meth:`without` for each.
        """
        n_docs = self.set_docs.sum() - 1.0
        if not n_docs > 0:
            return None
        own_docs = np.maximum(self.set_docs[rows] - 1.0, 0.0)
        label_docs = self.sets.T @ self.set_docs
        left = label_docs[sets.indices] - 1.0
        base, log_odds, own_log_odds = np.zeros(rows.size), np.zeros(label_docs.size), left * 0.0
        if self.kind != "uniform":
            share = np.minimum(label_docs / n_docs, SUREST)
            own_share = np.minimum(left / n_docs, SUREST)
            with np.errstate(divide="ignore"):
                log_odds = np.log(share) - np.log1p(-share)
                own_log_odds = np.log(own_share) - np.log1p(-own_share)
            base = _log_base(np.log1p(-share), sets, np.log1p(-own_share))
        own_log_odds[left <= 0] = -np.inf
        log_kept, own_log_kept = np.full(self.set_docs.size, -np.inf), np.full(rows.size, -np.inf)
        if self.kind == "labelset":
            given = np.minimum(self.set_docs, DISCOUNT).sum() - np.minimum(
                self.set_docs[rows], DISCOUNT
            )
            base += np.log((given + np.minimum(own_docs, DISCOUNT)) / n_docs)
            with np.errstate(divide="ignore"):
                log_kept = np.log(np.maximum(self.set_docs - DISCOUNT, 0.0) / n_docs)
                own_log_kept = np.log(np.maximum(own_docs - DISCOUNT, 0.0) / n_docs)
        return LeftOutPrior(
            rows,
            sets.indices.astype(np.int64),
            sets.indptr.astype(np.int64),
            base,
            own_log_odds,
            own_log_kept,
            own_docs == 0,
            log_odds,
            log_kept,
        )


def as_tuples(sets) -> list[tuple]:
    """Return the rows of an indicator as sorted tuples."""
    labels = sets.indices.tolist()
    return [tuple(sorted(labels[a:b])) for a, b in pairwise(sets.indptr.tolist())]


def _log_base(log_missing, sets, own_log_missing):
    """Return the log of what ``P_0`` is proportional to for each row, without any of its labels.

    Labels are missing with these probabilities, those of a row's own set with their own.
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
    """Return the sets, and after them the labels that have documents but no set of their own."""
    alone = sets[np.diff(sets.indptr) == 1].indices
    rest = np.setdiff1d(np.flatnonzero(sets.T @ set_docs), alone)
    singles = indicator(rest, np.arange(rest.size + 1), sets.shape[1])
    stacked = sparse.csr_matrix(sparse.vstack([sets, singles], format="csr"))
    return stacked, np.concatenate([set_docs, np.zeros(rest.size)])
