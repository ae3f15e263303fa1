"""The estimator that combines linear machines, centroids and neighbours for thousands of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import ArraySpec, check_arrays, check_rows
from polytopic.counts.sampling import draw_documents
from polytopic.kernels.blocks import map_rows
from polytopic.labels import indicator
from polytopic.models.base import check_label_arrays
from polytopic.models.calibration import rising_curve
from polytopic.models.checks import check_cost, check_name
from polytopic.models.large import ranking_kernels as kernels
from polytopic.models.large.candidates import (
    NO_LABEL,
    CandidateModel,
    Candidates,
    column_words,
    word_rows,
)
from polytopic.models.large.combining import (
    CandidateCombination,
    check_candidate_combination,
    choose_sets,
)
from polytopic.models.large.machines import (
    ARRAYS as MACHINE_ARRAYS,
)
from polytopic.models.large.machines import (
    CUT,
    arrays_of,
    machine_arrays,
    restore_machines,
    train_machines,
)
from polytopic.models.neighbours.estimator import Neighbours
from polytopic.models.neighbours.kernels import find_nearest

GOALS = ("f", "exact")
MIN_DOCS = 30  # documents to combine the sources on
HELD_OUT = 10  # one of so many documents is held out,
MIN_HELD_OUT, MAX_HELD_OUT = 1000, 5000  # at least (but not more than a third), and at most
RANKED_AT_ONCE = 1024  # documents whose features are in memory
NEAR_CENTROID = 0.3  # cosine from which on a label is predicted if there is neither
NO_COMBINATION = [0.0, 1.0, *[0.0] * (kernels.N_FEATURES - 2)]  # the centroid alone decides
BLOCK_LABELS = 4000  # as if there were so many: blocks have enough rows, and there are enough
TINY = 1e-12

ARRAYS = MACHINE_ARRAYS | {
    "rows_data": ArraySpec(("float32",), ("n_row_entries",), -1.001, 1.001),
    "rows_indices": ArraySpec(("int32",), ("n_row_entries",), 0, below="n_rows"),
    "rows_indptr": ArraySpec(("int64",), ("n_words+1",), 0),
    "row_labels": ArraySpec(("int32",), ("n_members",), 0, below="n_columns"),
    "row_ends": ArraySpec(("int64",), ("n_rows+1",), 0),
}


class CandidateStack(CandidateModel):
    r"""A ranking of candidate labels for vocabularies of thousands of labels.

    Three sources score labels: linear machines (:class:`ShortlistSVM`), the cosine with the
    centroid of each label's documents, and the labels of the 100 nearest documents. The best 50
    labels of each, up to 100 in turn, are the candidates of a document. A logistic regression on
    the scores, ranks and frequencies of candidates ranks them; isotonic regression turns its
    scores into probabilities. Regression and curve are fitted on held-out documents. The most
    probable candidates are predicted, so many that the expected F1 is highest.

    Everything that is learned is sparse: there is no array of words × labels or documents × labels.

    Parameters
    ----------
    C : float, default=1.0
        See :class:`ShortlistSVM`.
    machines : bool, default=True
        Whether to train linear machines. Without them, training takes about a tenth of the time.
    goal : {"f", "exact"}, default="f"
        What to predict: the set with the highest expected F1, or labels that are more likely right
        than wrong.
    random_state : int, RandomState or None, default=0
        Determines which documents are held out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    tuned_ : dict
        What was tuned on held-out documents: the combination of the sources, and the curve of
        probabilities of sets.

    Notes
    -----
    ``decision_function`` returns the log odds of candidates by the regression, ``predict_proba``
    their probabilities. See :class:`CandidateModel` for the form of the answers.

    A tenth of the documents is held out, 5000 at most; below 10,000 documents it is a larger part,
    up to a third. With fewer than 30 documents, there is no combination: the machines decide, or
    the centroids if there are none.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]] * 20
    >>> Y = [["sport"], ["film"], ["film", "sport"]] * 20
    >>> model = CandidateStack().fit(X, Y)
    >>> model.classes_[model.decision_function([[4, 0, 1]]).toarray().argmax()]
    'sport'
    """

    name = "candidate-stack"
    needs_documents = True
    _combination: CandidateCombination | None

    def __init__(self, C=1.0, *, machines=True, goal="f", random_state=0):
        self.C = C
        self.machines = machines
        self.goal = goal
        self.random_state = random_state

    # Learning

    def _learn(self, X, Y, tuned):
        X = X.astype(np.float32)
        if tuned is None:
            tuned = self._tune(X, Y) if X.shape[0] >= MIN_DOCS else {}
        self._set_tuned(tuned)
        self._learn_sources(X, Y)

    def _learn_sources(self, X, Y):
        if self.machines:
            machines = train_machines(X, Y, cost=float(self.C))
        else:
            machines = sparse.csr_matrix((Y.shape[1], X.shape[1]), dtype=np.float32)
        self._set_sources(sparse.csr_matrix(machines.T), sparse.csr_matrix(X.T), Y)

    def _set_sources(self, machines, by_word, Y):
        """Set what scores are computed from: machines, words × documents, and their labels."""
        for matrix in (machines, by_word):
            matrix.sort_indices()
        self._machines, self._by_word, self._row_labels = machines, by_word, Y
        self._centroids = unit_centroids(by_word, Y)
        self._log_n = np.log(np.maximum(Y.getnnz(axis=0), 1)).astype(np.float32)

    def _tune(self, X, Y) -> dict[str, Any]:
        """Return the combination of the sources, fitted on held-out documents."""
        n_docs = X.shape[0]
        n_held_out = max(n_docs // HELD_OUT, min(n_docs // 3, MIN_HELD_OUT))
        held_out = draw_documents(n_docs, min(n_held_out, MAX_HELD_OUT), self.random_state)
        train, test = np.setdiff1d(np.arange(n_docs), held_out), np.sort(held_out)
        self._learn_sources(X[train], Y[train])
        everything, none = np.ones(Y.shape[1], dtype=bool), np.zeros(0, dtype=np.int64)
        labels, features = self._features(X[test], everything, none)
        right = is_right(labels, Y[test])
        used = labels != NO_LABEL
        missed = float((Y[test].getnnz(axis=1) - right.sum(axis=1)).mean())
        combination = CandidateCombination.fit(features[used], right[used], missed)
        if combination is None:
            return {}
        self._combination = combination
        proba = np.where(used, combination.proba(combination.scores(features)), 0.0)
        chosen = self._choose(None, proba, used) & used
        whole = (chosen == right).all(axis=1) & (right.sum(axis=1) == Y[test].getnnz(axis=1))
        return {
            **combination._asdict(),
            "set_curve": rising_curve(log_chance(proba, chosen), whole),
        }

    def _set_tuned(self, tuned: Mapping[str, Any]) -> None:
        self.tuned_, self._combination = dict(tuned), None
        if tuned:
            parts = (tuned[name] for name in CandidateCombination._fields)
            self._combination = CandidateCombination(*parts)

    def _check_parameters(self):
        check_cost(self.C, "C")
        check_scalar(self.machines, "machines", (bool, np.bool_))
        check_name(self.goal, "goal", GOALS)

    # Files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        data, indices, indptr = arrays_of(self._by_word)
        return {
            **machine_arrays(self._machines),
            "rows_data": data,
            "rows_indices": indices,
            "rows_indptr": indptr,
            "row_labels": self._row_labels.indices.astype(np.int32),
            "row_ends": self._row_labels.indptr.astype(np.int64),
            **self._label_arrays(),
        }

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        sizes = check_arrays(arrays, ARRAYS, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        check_rows("rows_indices", arrays["rows_indices"], arrays["rows_indptr"])
        check_rows("row_labels", arrays["row_labels"], arrays["row_ends"], empty=False)
        self._restore_labels(arrays, labels, {})
        check_candidate_combination(tuned or {})
        self._set_tuned(tuned or {})
        n_columns = self._columns.size
        machines = restore_machines(arrays, n_columns, n_words)
        parts = tuple(arrays[f"rows_{name}"] for name in ("data", "indices", "indptr"))
        by_word = sparse.csr_matrix(parts, shape=(n_words, sizes["n_rows"]))
        Y = indicator(arrays["row_labels"], arrays["row_ends"], n_columns)
        self._set_sources(sparse.csr_matrix(machines.T), by_word, Y)
        self._allowed = np.ones(n_columns, dtype=bool)
        self.n_features_in_ = n_words
        return self

    # Scores

    def _features(self, X, allowed, extra) -> tuple[np.ndarray, np.ndarray]:
        """Return the candidates of documents, and the features of each."""
        n_places = min(min(kernels.MAX_CANDIDATES, allowed.size) + extra.size, allowed.size)
        labels = np.full((X.shape[0], n_places), NO_LABEL, np.int32)
        features = np.zeros((*labels.shape, kernels.N_FEATURES), np.float32)
        sources = [*arrays_of(self._machines), *arrays_of(self._centroids)]
        sources += arrays_of(self._by_word)
        sources += [self._row_labels.indices.astype(np.int32)]
        sources += [self._row_labels.indptr.astype(np.int64), self._log_n]

        def block(data, indices, indptr, rows):
            kernels.rank_candidates(
                data, indices, indptr, *sources, allowed, extra, labels[rows], features[rows]
            )

        map_rows(block, X.astype(np.float32), BLOCK_LABELS)
        return labels, features

    def _rank(self, X, allowed, extra):
        labels, scores = [], []
        for begin in range(0, max(X.shape[0], 1), RANKED_AT_ONCE):
            part, features = self._features(X[begin : begin + RANKED_AT_ONCE], allowed, extra)
            labels.append(part)
            scores.append(self._feature_scores(features))
        return Candidates(np.vstack(labels), np.vstack(scores))

    def _feature_scores(self, features):
        if self._combination is None and self.machines:
            return features[..., 0].astype(np.float64) - CUT
        if self._combination is None:
            return features[..., 1].astype(np.float64) - np.log(NEAR_CENTROID)
        return self._combination.scores(features)

    def _proba(self, scores):
        return expit(scores) if self._combination is None else self._combination.proba(scores)

    def _choose(self, scores, proba, used):
        if self._combination is None:
            return scores > 0
        if self.goal == "exact":
            return proba > 0.5
        return choose_sets(proba, self._combination.missed)

    def set_probability(self, X):
        """Return the probability that each document's predicted label set is right.

        By isotonic regression, on held-out documents, on the probability that it would have if
        labels were independent.
        """
        check_is_fitted(self)
        reason = self.why_no_set_probability()
        if reason:
            raise ValueError(f"set_probability is not available: {reason}.")
        X = self._check_words(X)
        candidates = self._candidates(X)
        proba = np.where(candidates.used, self._proba(candidates.values), 0.0)
        chance = log_chance(proba, self._chosen(candidates))
        whole = np.interp(chance, *self.tuned_["set_curve"])
        return np.where(X.getnnz(axis=1) > 0, whole, self._fallback_docs / self._n_docs)

    def why_no_set_probability(self):
        """Return why :meth:`set_probability` is unavailable and what to do; "" if it is not."""
        if self.is_fitted and "set_curve" not in self.tuned_:
            return f"CandidateStack needs at least {MIN_DOCS} documents to combine its sources"
        return ""

    # Explaining

    def _word_evidence(self, x, columns):
        """Return what one unit of each word adds: by the machines, and by the centroids.

        The score rises with the logarithm of a cosine; each word contributes in proportion to its
        part of the cosine. What the neighbours add, and the frequency and ranks of labels, is not
        made of words.
        """
        by_word = word_rows(self._machines, x.indices, columns)
        log_n = self._log_n[columns].astype(np.float64)
        if self._combination is None and self.machines:
            return by_word
        weights = NO_COMBINATION if self._combination is None else self._combination.weights
        by_word *= weights[0] + weights[8] * log_n - weights[15]
        to_centroid = word_rows(self._centroids, x.indices, columns)
        cosine = x.data @ to_centroid
        rise = np.log(np.maximum(cosine, kernels.FLOOR) / kernels.FLOOR)
        slope = np.divide(rise, cosine, out=np.zeros_like(rise), where=cosine > TINY)
        return by_word + (weights[1] + weights[9] * log_n - weights[16]) * slope * to_centroid

    def neighbours(self, X) -> Neighbours:
        """Return the learned documents that are most similar to each document, and vote for labels.

        Rows count the learned documents that have labels and words.
        """
        check_is_fitted(self)
        X = self._scaled(self._check_words(X)).astype(np.float32)
        n_learned = self._row_labels.shape[0]
        by_word = arrays_of(self._by_word)

        def block(data, indices, indptr, rows):
            shape = indptr.size - 1, min(kernels.N_NEAREST, n_learned)
            nearest, similarity = np.empty(shape, np.int32), np.zeros(shape, np.float32)
            find_nearest(data, indices, indptr, *by_word, n_learned, similarity, nearest)
            return nearest, similarity

        blocks = map_rows(block, X, BLOCK_LABELS)
        return Neighbours(*map(np.vstack, zip(*blocks, strict=True)))

    def _column_words(self, column):
        return column_words(self._machines if self.machines else self._centroids, column)


def unit_centroids(by_word, Y) -> sparse.csr_matrix:
    """Return the sums of each label's documents in unit length, as words × labels.

    ``by_word`` is words × documents, and ``Y`` their labels.
    """
    sums = sparse.csr_matrix(by_word @ Y.astype(np.float32))
    sums.sort_indices()
    squares = np.bincount(
        sums.indices, weights=np.square(sums.data, dtype=np.float64), minlength=Y.shape[1]
    )
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
    sums.data /= lengths.astype(np.float32)[sums.indices]
    return sums


def is_right(labels, Y) -> np.ndarray:
    """Return which candidates (n_docs, n_places) are labels of their documents."""
    Y = Y.sorted_indices()
    own = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)) * Y.shape[1] + Y.indices
    keys = np.arange(labels.shape[0])[:, None] * Y.shape[1] + labels
    return np.isin(keys, own) & (labels != NO_LABEL)


def log_chance(proba, chosen) -> np.ndarray:
    """Return the log probability of label sets if labels are independent."""
    return np.log(np.maximum(np.where(chosen, proba, 1 - proba), TINY)).sum(axis=1)
