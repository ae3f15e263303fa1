"""Labels of new documents: weights and posteriors of labels, search for label sets, tuning.

Arrays over labels have the labels that occur in training only, as ``Predictor.columns`` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, logsumexp

from polytopic.kernels.blocks import map_rows
from polytopic.labels import indicator
from polytopic.metrics import samples_f1
from polytopic.models.calibration import rising_curve
from polytopic.models.col import kernels
from polytopic.models.col.topics import Topics
from polytopic.models.results import LabelSets

WEIGHT_STEPS = 6  # EM steps for class weights; with more, they follow single words too closely
N_CANDIDATES = 10  # labels that the search builds label sets from
DEFAULTS = {"threshold": float(np.log(0.5)), "temperature": 1.0}
TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0)
N_THRESHOLDS = 100


@dataclass(frozen=True)
class Predictor:
    """What prediction reads.

    Attributes
    ----------
    mode : {"weights", "sets", "paper"}
        ``predict_mode`` of the estimator.
    topics : Topics
        Topics of the labels.
    prior : LabelPrior or None
        Prior of labels and label sets; None if only weights are needed.
    theta : ndarray of shape (n_words, n_labels)
        Word distribution of each label.
    label_shares : ndarray of shape (n_labels,)
        Share of each label in all labels of training documents; 0 if it is not allowed.
    columns : ndarray of shape (n_labels,)
        Column of each label in the indicators that are returned.
    """

    mode: str
    topics: Topics
    prior: Any
    theta: np.ndarray
    label_shares: np.ndarray
    columns: np.ndarray

    @classmethod
    def build(cls, mode, topics, prior, label_docs, columns) -> Predictor:
        """Derive word distributions and shares of labels from what was learned."""
        shares = label_docs / label_docs.sum()
        return cls(mode, topics, prior, topics.label_words(), shares, columns)

    def restrict_to(self, allowed) -> Predictor:
        """Return a copy that predicts only the labels where ``allowed`` is true."""
        shares = np.where(allowed, self.label_shares, 0.0)
        if not shares.any():
            raise ValueError("no allowed label has a document.")
        return replace(self, label_shares=shares / shares.sum())

    def log_scores(self, X) -> np.ndarray:
        """Return log class weights, or log posteriors in mode "paper"; their sum per row is 1."""
        if self.mode == "paper":
            return self._log_posteriors(X)
        blocks = self._map_weights(X, lambda weights, *_: weights)
        with np.errstate(divide="ignore"):
            return np.log(np.vstack(blocks))

    def map_log_scores(self, X, function) -> list:
        """Return ``function(log_scores)`` for each block of documents."""
        if self.mode == "paper":
            return [function(self._log_posteriors(X))]

        def block(weights, *_):
            with np.errstate(divide="ignore"):
                return function(np.log(weights))

        return self._map_weights(X, block)

    def _log_posteriors(self, X):
        """Return the log posterior of each label alone, with bounds as likelihoods (Eq. (9))."""
        n_docs, n_labels = X.shape[0], self.label_shares.size
        scores = np.full((n_docs, n_labels), -np.inf)
        for label in np.flatnonzero(self.label_shares):
            alone = indicator(np.full(n_docs, label), np.arange(n_docs + 1), n_labels)
            scores[:, label] = self.topics.bound(X, alone) + self._log_labels[label]
        return log_softmax(scores, axis=1)

    @cached_property
    def _log_labels(self):
        """The log prior of each label alone, by the mean and covariance of labels."""
        if self.topics.family == "factored":
            return self.prior.log_label_bounds()
        return self.prior.log_labels()

    def _map_weights(self, X, function):
        """Return ``function(weights, bounds, documents, rows)`` for each block of documents."""

        def block(data, indices, indptr, rows):
            weights = np.empty((indptr.size - 1, self.label_shares.size))
            bounds = np.empty(indptr.size - 1)
            kernels.class_weights(
                data, indices, indptr, self.theta, self.label_shares, WEIGHT_STEPS, weights, bounds
            )
            return function(weights, bounds, (data, indices, indptr), rows)

        n_labels = self.label_shares.size
        return map_rows(block, X, n_labels) or [np.zeros((0, n_labels))]

    def search_sets(self, X, temperature, label=None) -> VisitedSets:
        """Return the label sets that a greedy search visits.

        Log likelihoods are divided by ``temperature``. If given a ``label``, all sets contain it.
        """
        shares = np.ascontiguousarray(np.exp(self.prior.log_shares.T))
        n_docs, n_candidates = X.shape[0], min(N_CANDIDATES, self.label_shares.size)
        n_sets = n_candidates * (n_candidates + 1) // 2
        candidates = np.empty((n_docs, n_candidates), dtype=np.int64)
        members = np.zeros((n_docs, n_sets), dtype=np.int64)
        values, bounds = np.full((n_docs, n_sets), -np.inf), np.empty(n_docs)

        def block(weights, block_bounds, documents, rows):
            bounds[rows] = block_bounds
            if label is not None:
                weights[:, label] = np.inf
            order = np.argsort(-weights, axis=1, kind="stable")[:, :n_candidates]
            possible = np.take_along_axis(weights, order, axis=1) > 0
            candidates[rows] = np.where(possible, order, -1)
            kernels.search_label_sets(
                *documents,
                self.theta,
                candidates[rows],
                label is not None,
                shares,
                self.prior.log_scales[: n_candidates + 1],
                temperature,
                members[rows],
                values[rows],
            )

        self._map_weights(X, block)
        bounds = bounds / temperature + np.log(self.prior.size_proba.max())
        labels = np.where(candidates >= 0, self.columns[candidates], -1)
        return VisitedSets(labels, members, values, bounds)


@dataclass(frozen=True)
class VisitedSets:
    """Label sets that a search visited.

    Attributes
    ----------
    labels : ndarray of shape (n_docs, n_candidates)
        Columns of the labels that each document's sets consist of; -1 if there are fewer.
    members : ndarray of shape (n_docs, n_sets)
        Sets, as bits over ``labels``.
    values : ndarray of shape (n_docs, n_sets)
        Unnormalized log posterior of each set; ``-inf`` if there are fewer.
    bounds : ndarray of shape (n_docs,)
        Upper bound of the values of all label sets, visited or not.
    """

    labels: np.ndarray
    members: np.ndarray
    values: np.ndarray
    bounds: np.ndarray

    def best(self, n_labels) -> sparse.csr_matrix:
        """Return the best set of each document as an indicator."""
        top = self.values.argmax(axis=1)[:, None]
        members = np.take_along_axis(self.members, top, axis=1)
        inside = (members >> np.arange(self.labels.shape[1]) & 1).astype(bool)
        ends = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
        return indicator(self.labels[inside], ends, n_labels).sorted_indices()

    def marginals(self, n_labels) -> np.ndarray:
        """Return the probability of each label over the visited sets."""
        proba = np.exp(self.values - logsumexp(self.values, axis=1, keepdims=True))
        out = np.zeros((self.labels.shape[0], n_labels))
        for i in range(self.labels.shape[1]):
            rows = np.flatnonzero(self.labels[:, i] >= 0)
            inside = np.where(self.members[rows] >> i & 1, proba[rows], 0.0)
            out[rows, self.labels[rows, i]] = np.minimum(inside.sum(axis=1), 1.0)
        return out

    def to_label_sets(self, classes, n_best) -> LabelSets:
        """Return the ``n_best`` sets of each document by name."""
        order = np.argsort(-self.values, axis=1, kind="stable")[:, :n_best]
        values = np.take_along_axis(self.values, order, axis=1)
        members = np.take_along_axis(self.members, order, axis=1)
        total = logsumexp(self.values, axis=1)
        sets = [
            [_names(classes, labels, bits) for bits in row[value > -np.inf].tolist()]
            for labels, row, value in zip(self.labels, members, values, strict=True)
        ]
        return LabelSets(sets, values - total[:, None], self.bounds - total)


def _names(classes, labels, bits):
    inside = np.sort(labels[bits >> np.arange(labels.size) & 1 == 1])
    return tuple(classes[inside].tolist())


def log_odds(log_proba) -> np.ndarray:
    """Return the log odds of rows of log probabilities that sum to one.

    The odds of the largest one are computed from the sum of the others, which may be tiny.
    """
    top = log_proba.argmax(axis=1)[:, None]
    others = log_proba.copy()
    np.put_along_axis(others, top, -np.inf, axis=1)
    best = np.take_along_axis(log_proba, top, axis=1)
    with np.errstate(divide="ignore"):  # the only label has infinite odds
        odds = others - np.log1p(-np.exp(np.minimum(others, 0.0)))
        np.put_along_axis(odds, top, best - logsumexp(others, axis=1, keepdims=True), axis=1)
    return odds


# Tuning by held-out documents


def tune(predictor, X, truth, n_true, *, single=False) -> tuple[dict, float]:
    """Return the settings that label held-out documents best, and their samples-averaged F1.

    Parameters
    ----------
    predictor : Predictor
        Learned without these documents.
    X : csr_matrix of shape (n_docs, n_words)
        Word counts.
    truth : bool ndarray of shape (n_docs, n_labels)
        Labels, as far as the predictor knows them.
    n_true : ndarray of shape (n_docs,)
        Number of all labels of each document.
    single : bool, default=False
        Whether the best label alone is predicted, which needs no settings.

    Returns
    -------
    tuned : dict
        ``threshold`` of log scores relative to the best label, ``temperature`` of label sets,
        and, in mode "weights", ``label_curve`` from log odds to probabilities.
    f1 : float
        The samples-averaged F1 that they reach.
    """
    tuned = dict(DEFAULTS)
    if predictor.mode == "sets" and not single:
        tuned["temperature"], f1 = best_temperature(predictor, X, truth)
        return tuned, f1
    scores = predictor.log_scores(X)
    relative = scores - scores.max(axis=1, keepdims=True)
    if single:
        return tuned, _f1_above(0.0, relative, truth, n_true)
    tuned["threshold"] = best_threshold(relative, truth, n_true)
    if predictor.mode == "weights":
        tuned["label_curve"] = rising_curve(log_odds(scores).ravel(), truth.ravel())
    return tuned, _f1_above(tuned["threshold"], relative, truth, n_true)


def best_threshold(relative, truth, n_true) -> float:
    """Return the threshold with the best samples-averaged F1.

    Scores are ``relative`` to the best label of each document. If no threshold makes a
    difference, return the default.
    """
    values = relative[truth & (relative < 0)]
    if not values.size:
        return DEFAULTS["threshold"]
    best, top = 0.0, -1.0
    values = values[np.isfinite(values)]
    candidates = np.quantile(values, np.linspace(0, 1, N_THRESHOLDS)) if values.size else []
    for threshold in np.unique([*candidates, 0.0]):  # 0: the best label alone
        f1 = _f1_above(threshold, relative, truth, n_true)
        if f1 > top:
            best, top = float(threshold), f1
    return best


def _f1_above(threshold, relative, truth, n_true) -> float:
    """Return the samples-averaged F1 of the labels that reach a threshold."""
    chosen = relative >= threshold
    return (2 * (chosen & truth).sum(axis=1) / (chosen.sum(axis=1) + n_true)).mean()


def best_temperature(predictor, X, truth) -> tuple[float, float]:
    """Return the temperature with the best samples-averaged F1, and it; the lowest if they tie."""
    best, top = 1.0, -1.0
    for temperature in TEMPERATURES:
        Y_pred = predictor.search_sets(X, temperature).best(truth.shape[1]).toarray()
        f1 = samples_f1(truth.astype(int), Y_pred)
        if f1 > top:
            best, top = temperature, f1
    return best, top
