"""The whole dual problem of Kazawa et al., Eq. (7), for small problems.

All label sets are listed, so any similarity of label sets and any kernel of documents will do. The
problem is dense, and is solved to within rounding error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from threadpoolctl import threadpool_limits

from polytopic.labels import stack_sets
from polytopic.text.weights import unit_rows

MAX_SETS = 1024  # in a list: those of ten labels
MAX_DUALS = 4000  # dual variables
GAP = 1e-12  # between the objectives, as a fraction of the dual one, at which training ends
STALLED = 5  # steps without a smaller gap after which no further progress is expected
CLOSED = 1e-7  # fraction of the dual objective up to which the gap counts as closed
ROUNDING = 1e-8  # fraction of the largest diagonal entry that a negative eigenvalue may have


def label_sets(labels: Sequence, *, empty: bool = False) -> list[frozenset]:
    """Return all sets of labels: smaller ones first, then in the order of their labels.

    This is the order of the rows of a matrix of similarities. ``labels`` are the ``classes_`` of
    the model, and ``empty`` says whether the empty set is the first.

    Examples
    --------
    >>> [sorted(labels) for labels in label_sets(["art", "film"], empty=True)]
    [[], ['art'], ['film'], ['art', 'film']]
    """
    sizes = range(0 if empty else 1, len(labels) + 1)
    return [frozenset(members) for size in sizes for members in combinations(labels, size)]


class EmptySet(NamedTuple):
    """What the empty label set is."""

    is_neighbour: bool  # documents with one label are separated from it
    is_answer: bool  # it may be predicted


# Lists of label sets


@dataclass(frozen=True)
class SetList:
    """Label sets: smaller ones first, then in the order of their labels.

    Attributes
    ----------
    members : ndarray of shape (n_sets, n_labels)
        Marks the labels of each.
    place : dict
        The place of each set in the list, by its labels.
    """

    members: np.ndarray
    place: dict[tuple[int, ...], int] = field(repr=False)

    @classmethod
    def of_sizes(cls, n_labels: int, sizes: Sequence[int]) -> SetList:
        """List the sets of certain sizes."""
        sets = [labels for size in sizes for labels in combinations(range(n_labels), size)]
        members = np.zeros((len(sets), n_labels), dtype=bool)
        for row, labels in zip(members, sets, strict=True):
            row[list(labels)] = True
        return cls(members, {labels: k for k, labels in enumerate(sets)})

    @classmethod
    def for_training(
        cls, n_labels: int, empty: EmptySet, *, neighbours: bool, single: bool
    ) -> SetList:
        """List what training and prediction need; raise if there are too many."""
        smallest = 0 if any(empty) else 1
        largest = min(n_labels, 1 + neighbours) if single else n_labels
        if sum(comb(n_labels, size) for size in range(min(largest, MAX_SETS) + 1)) > MAX_SETS:
            raise ValueError(
                f"solver == 'exact' lists the label sets of {n_labels:,} labels, must be at most "
                f"{MAX_SETS:,} sets (10 labels); use solver='fast' or fewer labels."
            )
        return cls.of_sizes(n_labels, range(smallest, largest + 1))

    @property
    def sizes(self) -> np.ndarray:
        """The number of labels of each set."""
        return self.members.sum(axis=1)

    def find(self, Y) -> np.ndarray:
        """Return the places of the sets of a sparse indicator."""
        labels, ends = Y.sorted_indices().indices.tolist(), Y.indptr.tolist()
        places = [self.place[tuple(labels[start:end])] for start, end in pairwise(ends)]
        return np.array(places, dtype=np.int64)

    def similarities(self, similarity: Any, classes: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the similarities of all pairs of sets, of the labels in some of the columns."""
        common, size = self.members @ self.members.T.astype(float), self.sizes.astype(float)
        if isinstance(similarity, str):
            with np.errstate(invalid="ignore"):
                if similarity == "dice":
                    S = 2 * common / (size[:, None] + size)
                elif similarity == "cosine":
                    S = common / np.sqrt(size[:, None] * size)
                else:
                    S = np.eye(size.size)
            return np.nan_to_num(S)  # the empty set is at the origin
        names = [tuple(columns[list(labels)].tolist()) for labels in self.place]
        if callable(similarity):
            S = _call_for_pairs(similarity, [frozenset(classes[list(n)].tolist()) for n in names])
        else:
            S = _select(similarity, names, classes.size)
        _check_definite(S, "similarity", "label sets")
        return S


def _call_for_pairs(similarity, sets):
    S = np.empty((len(sets), len(sets)))
    for row, one in enumerate(sets):
        for column, other in enumerate(sets[: row + 1]):
            S[row, column] = S[column, row] = similarity(one, other)
    return S


def _select(matrix, names, n_labels):
    """Return the rows and columns of sets in a matrix over the list of all sets."""
    try:
        matrix = np.asarray(matrix, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"similarity is a {type(matrix).__name__}, must be dice, cosine, identity, a callable "
            "or a matrix of numbers."
        ) from None
    n_sets = 2 ** min(n_labels, 30)
    if matrix.shape not in ((n_sets, n_sets), (n_sets - 1, n_sets - 1)):
        raise ValueError(
            f"similarity has the shape {matrix.shape}, must have a row and a column for each of "
            f"the {n_sets - 1:,} sets of {n_labels} labels, or {n_sets:,} with the empty set first."
        )
    has_empty = len(matrix) == n_sets
    if () in names and not has_empty:
        raise ValueError(
            f"similarity has {len(matrix)} rows, must have {n_sets}, that of the empty set first: "
            "with this value of empty, it is a label set."
        )
    set_list = SetList.of_sizes(n_labels, range(0 if has_empty else 1, n_labels + 1))
    places = [set_list.place[labels] for labels in names]
    return matrix[np.ix_(places, places)]


def _check_definite(matrix, name, things):
    """Raise unless a matrix is positive semidefinite up to rounding."""
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} contains values that are not finite numbers.")
    if not np.allclose(matrix, matrix.T, rtol=1e-7, atol=1e-9):
        raise ValueError(f"{name} is not symmetric, must be the same in either order.")
    slack = ROUNDING * max(float(np.diag(matrix).max(initial=0.0)), 1e-300)
    try:
        np.linalg.cholesky(matrix + slack * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} is not positive definite, must be an inner product of {things}."
        ) from None


# Kernels of documents


def gram_matrix(kernel: Any, X, Z) -> np.ndarray:
    """Return the kernel of each document of ``X`` and each of ``Z``.

    Parameters
    ----------
    kernel : {"linear", "precomputed"} or callable
        A callable gets the documents as arrays. "precomputed" means that ``X`` has one column
        for each document of ``Z`` already.
    X, Z : csr_matrix
        Documents in rows.
    """
    if not callable(kernel):
        return X.toarray() if kernel == "precomputed" else (unit_rows(X) @ unit_rows(Z).T).toarray()
    gram = np.asarray(kernel(X.toarray(), Z.toarray()), dtype=np.float64)
    if gram.shape != (X.shape[0], Z.shape[0]):
        raise ValueError(
            f"kernel returns an array of the shape {gram.shape} for {X.shape[0]} and "
            f"{Z.shape[0]} documents, must be {(X.shape[0], Z.shape[0])}."
        )
    return gram


@dataclass(frozen=True)
class LinearScores:
    """Scores of label sets by weights of words, (n_words, n_sets)."""

    weights: np.ndarray

    def __call__(self, X) -> np.ndarray:
        """Return the score of each set for each document."""
        return unit_rows(X) @ self.weights

    def select(self, sets: np.ndarray) -> LinearScores:
        """Return the same for some of the sets."""
        return LinearScores(self.weights[:, sets])


@dataclass(frozen=True)
class KernelScores:
    """Scores of label sets by the documents that were learned, (n_docs, n_sets)."""

    kernel: Any
    documents: Any  # a sparse matrix or, for "precomputed", their columns
    coefficients: np.ndarray

    def __call__(self, X) -> np.ndarray:
        """Return the score of each set for each document."""
        if callable(self.kernel):
            return gram_matrix(self.kernel, X, self.documents) @ self.coefficients
        return X[:, self.documents] @ self.coefficients

    def select(self, sets: np.ndarray) -> KernelScores:
        """Return the same for some of the sets."""
        return replace(self, coefficients=self.coefficients[:, sets])


# The dual problem


@dataclass(frozen=True)
class Solution:
    """The solution of the dual problem.

    Attributes
    ----------
    coefficients : ndarray of shape (n_docs, n_sets)
        What each document adds to the score of each set, by a unit of its kernel (Eq. (8)).
    objectives : list of float
        The dual objective after each step.
    gap : float
        Primal minus dual objective.
    """

    coefficients: np.ndarray
    objectives: list[float]
    gap: float

    @property
    def converged(self) -> bool:
        """Whether the gap is closed."""
        return not self.objectives or self.gap <= CLOSED * self.objectives[-1]


class Pairs(NamedTuple):
    """Pairs of a document and a label set that it is separated from."""

    doc: np.ndarray
    own: np.ndarray  # the label set of the document
    other: np.ndarray  # the other set

    @classmethod
    def of_documents(cls, Y, set_list: SetList, empty: EmptySet, *, neighbours: bool) -> Pairs:
        """Pair each document with all label sets, or with those of one label more or less."""
        first = 0 if empty.is_neighbour or set_list.sizes[0] else 1  # the empty set is the first
        n_others = Y.shape[1] if neighbours else len(set_list.members) - first - 1
        if Y.shape[0] * n_others > MAX_DUALS:
            raise ValueError(
                f"solver == 'exact' has a dual variable for each of {Y.shape[0]:,} documents and "
                f"{n_others:,} label sets, {Y.shape[0] * n_others:,} in all, must be at most "
                f"{MAX_DUALS:,}; use solver='fast' or fewer documents."
            )
        own, members = set_list.find(Y), set_list.members.astype(np.int64)
        apart = members[own] @ (1 - members.T) + (1 - members[own]) @ members.T
        is_other = apart == 1 if neighbours else apart > 0
        is_other[:, :first] = False
        doc, other = np.nonzero(is_other)
        return cls(doc, own[doc], other)


@dataclass(frozen=True)
class DualProblem:
    r"""The dual problem, Eq. (7), for any kernel :math:`k` and similarity :math:`S`.

    There is a variable :math:`0 \le \alpha \le C` for each pair of a document :math:`x` with the
    set :math:`L` and another set :math:`\lambda`. The distance of two sets is
    :math:`\sqrt{S(L, L) + S(\lambda, \lambda) - 2 S(L, \lambda)}`, which is
    :math:`\sqrt{2 (1 - S(L, \lambda))}` if every set has a similarity of 1 to itself.

    Attributes
    ----------
    kernel : ndarray of shape (n_docs, n_docs)
        Of the documents.
    S : ndarray of shape (n_sets, n_sets)
        Similarities of label sets.
    pairs : Pairs
        The documents, and the label sets that they are separated from.
    """

    kernel: np.ndarray
    S: np.ndarray
    pairs: Pairs

    def __post_init__(self):
        _check_definite(self.kernel, "kernel", "documents")

    @cached_property
    def distance(self) -> np.ndarray:
        """The distance of the two sets of each pair."""
        S, (_, own, other) = self.S, self.pairs
        square = S[own, own] + S[other, other] - 2 * S[own, other]
        if (square <= ROUNDING * np.abs(np.diag(S)).max(initial=1e-300)).any():
            raise ValueError(
                "similarity gives two label sets a distance of zero, must distinguish them."
            )
        return np.sqrt(square)

    def quadratic_form(self) -> np.ndarray:
        """Return the matrix of the quadratic term, (n_pairs, n_pairs)."""
        doc, own, other = self.pairs
        steps = (self.S[own] - self.S[other]) / self.distance[:, None]
        Q = (steps[:, own] - steps[:, other]) / self.distance
        Q *= self.kernel[np.ix_(doc, doc)]
        return (Q + Q.T) / 2

    def solve(self, C: float, max_iter: int) -> Solution:
        """Return what maximizes the dual objective."""
        alpha, objectives, gap = maximize(self.quadratic_form(), C, max_iter)
        added = np.zeros((len(self.kernel), len(self.S)))
        np.add.at(added, (self.pairs.doc, self.pairs.own), alpha / self.distance)
        np.add.at(added, (self.pairs.doc, self.pairs.other), -alpha / self.distance)
        return Solution(added @ self.S, objectives, gap)


@threadpool_limits.wrap(limits=1, user_api="blas")  # threads would change the last bits
def maximize(Q: np.ndarray, C: float, max_iter: int) -> tuple[np.ndarray, list[float], float]:
    """Maximize ``alpha.sum() - alpha @ Q @ alpha / 2`` for ``0 <= alpha <= C``.

    This is an interior-point method with Mehrotra's predictor and corrector: at the maximum, the
    slope ``1 - Q @ alpha`` is ``upper - lower``, multipliers of the limits that are zero where
    ``C - alpha`` or ``alpha`` is not. Each step takes these products towards zero. The matrix may
    be singular. Returns the variables, the objective after each step, and the gap.
    """
    alpha = np.full(len(Q), C / 2)
    slope = 1 - Q @ alpha
    lower, upper = np.maximum(-slope, 0.0) + 1.0, np.maximum(slope, 0.0) + 1.0
    objectives: list[float] = []
    best, best_gap, n_stalled = alpha, np.inf, 0
    while len(Q) and len(objectives) < max_iter and n_stalled < STALLED:
        try:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                alpha, lower, upper = _step_inside(Q, C, alpha, slope, lower, upper)
        except (np.linalg.LinAlgError, ValueError):  # the limits of rounding, or of range
            break
        slope = 1 - Q @ alpha
        objective = float(alpha.sum() + alpha @ slope) / 2
        gap = max(float(C * np.maximum(slope, 0.0).sum() - alpha @ slope), 0.0)
        objectives.append(objective)
        n_stalled = 0 if gap < best_gap else n_stalled + 1
        if gap < best_gap:
            best, best_gap = alpha, gap
        if gap <= GAP * objective:
            break
    if not objectives:
        return best, objectives, 0.0
    objectives[-1] = float(best.sum() - best @ Q @ best / 2)
    return best, objectives, best_gap


def _step_inside(Q, C, alpha, slope, lower, upper):
    """Return better variables and multipliers, all of them positive."""
    room = C - alpha
    factor = linalg.cho_factor(Q + np.diag(lower / alpha + upper / room), overwrite_a=True)
    error = slope - upper + lower

    def direction(low, high):
        """Return changes such that both products become zero, plus ``low`` and ``high``."""
        low, high = low - alpha * lower, high - room * upper
        change = linalg.cho_solve(factor, error + low / alpha - high / room)
        return change, (low - lower * change) / alpha, (high + upper * change) / room

    def longest(change, lower_change, upper_change):
        """Return how far one can go, up to 1, until one of the numbers is zero."""
        values = np.concatenate([alpha, room, lower, upper])
        changes = np.concatenate([change, -change, lower_change, upper_change])
        falling = changes < 0
        return min(1.0, float((-values[falling] / changes[falling]).min(initial=np.inf)))

    mean = (alpha @ lower + room @ upper) / (2 * alpha.size)
    straight = direction(0.0, 0.0)
    length = longest(*straight)
    d, d_lower, d_upper = (length * change for change in straight)
    after = (alpha + d) @ (lower + d_lower) + (room - d) @ (upper + d_upper)
    target = mean * (after / (2 * alpha.size) / mean) ** 3
    d, d_lower, d_upper = straight
    centred = direction(target - d * d_lower, target + d * d_upper)
    length = 0.995 * longest(*centred)
    d, d_lower, d_upper = (length * change for change in centred)
    return alpha + d, lower + d_lower, upper + d_upper


# Prediction


@dataclass(frozen=True)
class ListScorer:
    """Scores label sets one by one, as :class:`~polytopic.models.mml.scoring.SetScorer` does.

    Attributes
    ----------
    set_list : SetList
        Label sets that may be predicted, over ``columns``.
    scores : LinearScores or KernelScores
        Gives their scores.
    columns : ndarray
        The labels that have documents.
    n_labels : int
        Number of labels, with documents or without.
    """

    set_list: SetList
    scores: LinearScores | KernelScores
    columns: np.ndarray
    n_labels: int

    @classmethod
    def of_answers(cls, set_list, scores, columns, n_labels, empty, *, single) -> ListScorer:
        """Return a scorer of those sets that may be predicted."""
        sizes = set_list.sizes
        chosen = np.flatnonzero((sizes == 1) if single else (sizes > 0) | empty.is_answer)
        return cls(set_list, scores, columns, n_labels)._choose(chosen)

    def _choose(self, chosen) -> ListScorer:
        members = self.set_list.members[chosen]
        place = {tuple(np.flatnonzero(row).tolist()): k for k, row in enumerate(members)}
        return replace(self, set_list=SetList(members, place), scores=self.scores.select(chosen))

    @property
    def set_weights(self) -> np.ndarray:
        """The weights of words for each set, (n_words, n_sets)."""
        if not isinstance(self.scores, LinearScores):
            raise ValueError("words have weights with kernel == 'linear' only.")
        return self.scores.weights

    def restrict_to(self, places) -> ListScorer:
        """Return a scorer of those sets that have only labels at these places of ``columns``."""
        barred = np.ones(self.columns.size, dtype=bool)
        barred[places] = False
        return self._choose(np.flatnonzero(~self.set_list.members[:, barred].any(axis=1)))

    @property
    def labels(self):
        """The labels that may be predicted."""
        return self.columns[self.set_list.members.any(axis=0)]

    def _stack(self, members) -> sparse.csr_matrix:
        return stack_sets(
            [(members.sum(axis=1), self.columns[np.nonzero(members)[1]])], self.n_labels
        )

    def best(self, X) -> sparse.csr_matrix:
        """Return each document's best label set."""
        return self._stack(self.set_list.members[self.scores(X).argmax(axis=1)])

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set that contains a label, which must be allowed."""
        places = np.flatnonzero(self.set_list.members[:, self.columns == label].ravel())
        return self._stack(self.set_list.members[places[self.scores(X)[:, places].argmax(axis=1)]])

    def n_best(self, X, n_best):
        """Return the best label sets, ``n_best`` rows per document, and their scores."""
        scores = self.scores(X)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :n_best]
        best_scores = np.full((X.shape[0], n_best), -np.inf)
        best_scores[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
        members = np.zeros((X.shape[0], n_best, self.columns.size), dtype=bool)
        members[:, : order.shape[1]] = self.set_list.members[order]
        return self._stack(members.reshape(-1, self.columns.size)), best_scores

    def leads(self, X):
        """Return the score of each document's best label set minus that of the second best."""
        best, second = self.n_best(X, 2)[1].T
        return best - second

    def margins(self, X):
        """Return the score of the best set with each label minus that of the best without it."""
        return self.assess(X)[1]

    def assess(self, X):
        """Return each document's best label set, and the margins of all labels."""
        scores, members = self.scores(X), self.set_list.members
        margins = np.full((X.shape[0], self.n_labels), -np.inf)
        for place in np.flatnonzero(members.any(axis=0)):
            has = members[:, place]
            best_without = scores[:, ~has].max(axis=1, initial=-np.inf)
            margins[:, self.columns[place]] = scores[:, has].max(axis=1) - best_without
        return self._stack(members[scores.argmax(axis=1)]), margins

    def label_scores(self, X):
        """Return the score of each single label."""
        set_scores, out = self.scores(X), np.full((X.shape[0], self.n_labels), -np.inf)
        for labels, k in self.set_list.place.items():
            if len(labels) == 1:
                out[:, self.columns[labels[0]]] = set_scores[:, k]
        return out

    # Words

    def _weights(self, labels) -> np.ndarray:
        """Return the weights of all words for a set of places in ``columns``."""
        weights = self.set_weights
        if labels not in self.set_list.place:
            raise ValueError("this label set cannot be predicted, so its words have no weights.")
        return weights[:, self.set_list.place[labels]]

    def word_scores(self, words, labels):
        """Return the weights of words for a set, each shared by the labels of the set equally."""
        places = np.searchsorted(self.columns, labels)
        known = np.isin(labels, self.columns)
        scores = np.zeros((len(words), len(labels)))
        if known.any():
            weights = self._weights(tuple(sorted(places[known].tolist())))[words]
            scores[:, known] = weights[:, None] / known.sum()
        return scores

    def top_words(self, label, k):
        """Return the ``k`` words with the highest weights for a label alone, and the weights."""
        place = np.flatnonzero(self.columns == label)
        if not place.size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        weights = self._weights((int(place[0]),))
        top = np.argsort(-weights, kind="stable")[:k]
        return top, weights[top]
