"""EM for the word distributions of mixed labels, on the table of counts.

Only the entries of label sets with two labels or more are uncertain. Each pair of a word and a
label among these has a *slot*; everything else is a constant. Label totals alone couple the slots.
A *point* of EM is the slots' expected counts, followed by those of pairs of labels if labels have
biases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from polytopic.kernels import mixture
from polytopic.kernels.blocks import block_borders, run_blocks
from polytopic.models.arrays import lookup

STANDSTILL = 1e-12  # steps that bend less are rounding, and no direction to jump along


class MixtureFit(NamedTuple):
    """Expected word counts of each label, biases, the objective reached and the EM steps run."""

    label_counts: sparse.csr_matrix
    bias: np.ndarray | None
    objective: float
    n_iter: int


def fit_mixture(
    matrix, sets, *, smoothing, max_iter, tol, bias_smoothing=None, start=None, trace=None
):
    """Climb J of Ueda & Saito, Eq. (6), by EM with SQUAREM steps that may not lower it.

    Parameters
    ----------
    matrix : csr_matrix of shape (n_label_sets, n_words)
        Word counts of each label set.
    sets : csr_matrix of shape (n_label_sets, n_labels)
        The label sets.
    smoothing, max_iter, tol : see :class:`~polytopic.PMM1`
    bias_smoothing : float, default=None
        Pseudo-count of biases, see :class:`~polytopic.PMM2`; None for equal weights.
    start : function from a number of slots to an array in (0, 1], default=None
        Weights of the slots that share an entry at the start; equal ones by default.
    trace : list, default=None
        Gets the objective of each point that EM continues from.
    """
    if bias_smoothing is None:
        problem = _Slots(matrix, sets, smoothing)
    else:
        problem = _BiasedSlots(matrix, sets, smoothing, bias_smoothing)
    point = problem.first_point(np.ones if start is None else start)
    n_iter, previous = 0, -np.inf
    while problem.size and n_iter < max_iter:
        point, objective, steps = _squarem_cycle(problem, point, max_iter - n_iter)
        n_iter += steps
        if trace is not None:
            trace.append(objective)
        if objective - previous <= tol * problem.n_words:
            break
        previous = objective
    objective, _ = problem.em_step(point)
    return MixtureFit(
        problem.label_counts(point),
        problem.bias(point),
        objective + problem.constant(),
        n_iter or 1,
    )


def continue_mixture(matrix, sets, theta, n_steps, *, smoothing, bias=None) -> sparse.csr_matrix:
    """Return the word counts of each label after EM steps from given parameters.

    The table may be another than that of the parameters: its counts are first shared by
    ``theta`` (n_words, n_labels), then ``n_steps`` whole steps are taken. Biases stay.
    """
    problem = (
        _Slots(matrix, sets, smoothing)
        if bias is None
        else _BiasedSlots(matrix, sets, smoothing, 1.0)
    )
    fixed = () if bias is None else (bias,)
    _, point = problem.shared(theta[problem.word, problem.label], *fixed)
    for _ in range(n_steps):
        slots, _ = problem.theta(point[: problem.size])
        _, point = problem.shared(slots, *fixed)
    return problem.label_counts(point)


def _squarem_cycle(problem, point, max_steps):
    """Take two EM steps, jump along them as far as J allows, and take a third (Varadhan 2008).

    Returns the new point, J at the best point seen before it, and the number of steps.
    """
    objective, once = problem.em_step(point)
    if max_steps == 1:
        return once, objective, 1
    objective, twice = problem.em_step(once)
    change = once - point
    bend = (twice - once) - change
    # words alone say how far, so that biases which cannot move change nothing
    size, moved, whole = (_norm(part[: problem.size]) for part in (bend, change, twice))
    if max_steps == 2 or size <= STANDSTILL * whole:
        return twice, objective, 2
    length = max(1.0, moved / size)
    jump = np.maximum(point + 2 * length * change + length**2 * bend, problem.least)
    reached, after = problem.em_step(jump)
    return (after, reached, 3) if reached >= objective else (twice, objective, 3)


def _norm(vector):
    return np.sqrt(_dot(vector, vector))


def _dot(one, other):
    """Return the inner product; a BLAS would let the number of its threads change the bits."""
    return float((one * other).sum())


class _Slots:
    """The uncertain part of a table, word by word, ready for EM with equal weights."""

    def __init__(self, matrix, sets, smoothing):
        n_labels = sets.shape[1]
        set_sizes = np.diff(sets.indptr)
        several = np.flatnonzero(set_sizes > 1)
        self.smoothing, self.shape = smoothing, (n_labels, matrix.shape[1])
        single = sparse.diags_array((set_sizes == 1).astype(float)) @ matrix
        self.single = sparse.csr_matrix(sets.T @ single)
        self.single.eliminate_zeros()

        mixed, self.sets = matrix[several].tocsc(), sets[several]
        self._lay_out(mixed)
        self.size = self.label.size
        self.n_words = float(mixed.sum())
        self.log_sizes = _dot(mixed.sum(axis=1).A1, np.log(set_sizes[several]))
        self.certain = self.least = lookup(self.single, self.label, self.word)
        pseudo = self.certain + smoothing
        total = self.single.sum(axis=1).A1 + smoothing * matrix.shape[1]
        self.outside = total - np.bincount(self.label, weights=pseudo, minlength=n_labels)

    def _lay_out(self, mixed):
        """Lay out the slots word by word, and point each entry to its slots."""
        args = mixed.indptr, mixed.indices, self.sets.indices, self.sets.indptr
        slots_indptr = np.empty(mixed.shape[1] + 1, dtype=np.int64)
        mixture.count_slots(*args, self.shape[0], slots_indptr)
        entry_sizes = np.diff(self.sets.indptr)[mixed.indices]
        self.counts, self.entry_set = mixed.data, mixed.indices
        self.entry_indptr = np.concatenate([[0], np.cumsum(entry_sizes)])
        self.entry_slot = np.empty(self.entry_indptr[-1], dtype=np.int64)
        self.label = np.empty(slots_indptr[-1], dtype=np.int64)
        mixture.fill_slots(*args, slots_indptr, self.label, self.entry_slot)
        self.word = np.repeat(np.arange(mixed.shape[1]), np.diff(slots_indptr))
        # a block of words has its own entries and its own slots
        words = block_borders(self.entry_indptr[mixed.indptr])
        self.blocks = mixed.indptr[words]

    def first_point(self, start):
        """Return the point where each entry is shared by these weights."""
        return self.shared(start(self.size))[1]

    def em_step(self, point):
        """Return J (less its constant) at a point, and the next point."""
        theta, prior = self.theta(point)
        likelihood, shared = self.shared(theta)
        return likelihood + prior, shared

    def theta(self, counts):
        """Return the slots' probabilities, and their part of the log prior."""
        pseudo = counts + self.smoothing
        total = self.outside + np.bincount(self.label, weights=pseudo, minlength=self.outside.size)
        theta = pseudo / total[self.label]
        prior = _dot(self.certain + self.smoothing, np.log(theta))
        return theta, prior - _dot(self.outside, np.log(total))

    def shared(self, theta):
        """Return the entries' log likelihood, and the slots' counts shared by ``theta``."""
        shared = np.zeros(self.size)

        def block(rows):
            return mixture.expected_counts(
                self.counts[rows],
                self.entry_slot,
                self.entry_indptr[rows.start : rows.stop + 1],
                theta,
                shared,
            )

        return sum(run_blocks(block, self.blocks)), self.certain + shared

    def label_counts(self, point):
        """Return the word counts of all labels, certain and expected ones."""
        expected = point[: self.size] - self.certain
        slots = sparse.csr_matrix((expected, (self.label, self.word)), self.shape)
        return sparse.csr_matrix(self.single + slots)

    def bias(self, point):
        """Return the biases: none."""
        return

    def constant(self):
        """Return the part of J that no step changes."""
        return self._constant_prior() - self.log_sizes

    def _constant_prior(self):
        pseudo = self.single.data + self.smoothing
        slots = self.certain + self.smoothing
        unseen = self.shape[0] * self.shape[1] - self.single.nnz
        everywhere = _dot(pseudo, np.log(pseudo))
        everywhere += unseen * self.smoothing * np.log(self.smoothing)
        return everywhere - _dot(slots, np.log(slots))


class _BiasedSlots(_Slots):
    """The same, with weights of labels that depend on the labels beside them."""

    def __init__(self, matrix, sets, smoothing, bias_smoothing):
        super().__init__(matrix, sets, smoothing)
        self.bias_smoothing = bias_smoothing
        beside = sparse.coo_matrix(self.sets.T @ self.sets)
        apart = beside.row != beside.col
        order = np.lexsort((beside.col[apart], beside.row[apart]))
        self.one, self.other = beside.row[apart][order], beside.col[apart][order]
        self.least = np.concatenate([self.certain, np.zeros(self.one.size)])

    def first_point(self, start):
        """Return the point where biases are equal and entries shared by these weights."""
        point = super().first_point(start)
        point[self.size :] = 0.0
        return point

    def em_step(self, point):
        """Return J (less its constant) at a point, and the next point (Eq. (16), (17))."""
        theta, prior = self.theta(point[: self.size])
        bias = self.bias(point)
        prior += self.bias_smoothing * float(np.log(2.0 * bias[self.one, self.other]).sum())
        likelihood, after = self.shared(theta, bias)
        return likelihood + prior, after

    def shared(self, theta, bias=None):
        """Return the entries' log likelihood, and the point they are shared to."""
        if bias is None:
            bias = np.full((self.shape[0], self.shape[0]), 0.5)
        weights = np.empty(self.sets.nnz)
        mixture.bias_weights(self.sets.indices, self.sets.indptr, bias, weights)
        shared = np.zeros(self.size)

        def block(rows):
            said = np.zeros(weights.size)
            likelihood = mixture.biased_counts(
                self.counts[rows],
                self.entry_slot,
                self.entry_indptr[rows.start : rows.stop + 1],
                self.entry_set[rows],
                self.sets.indptr,
                weights,
                theta,
                shared,
                said,
            )
            return likelihood, said

        likelihoods, said = zip(*run_blocks(block, self.blocks), strict=True)
        pairs = np.zeros(bias.shape)
        mixture.bias_counts(self.sets.indices, self.sets.indptr, bias, weights, sum(said), pairs)
        after = np.concatenate([self.certain + shared, pairs[self.one, self.other]])
        return sum(likelihoods), after

    def bias(self, point):
        """Return alpha: how labels that occur together share their words, else one half."""
        counts = np.zeros((self.shape[0], self.shape[0]))
        counts[self.one, self.other] = point[self.size :] + self.bias_smoothing / 2
        total = counts + counts.T
        bias = np.full(counts.shape, 0.5)
        np.divide(counts, total, out=bias, where=total > 0)
        # exactly one together
        lower = np.tril_indices(bias.shape[0], -1)
        bias[lower] = 1.0 - bias.T[lower]
        return bias

    def constant(self):
        """Return the part of J that no step changes: also that of equal biases."""
        return self._constant_prior() + self.shape[0] ** 2 * self.bias_smoothing * np.log(0.5)
