"""EM for the word distributions of labels, on the table of counts by label set.

Only entries of label sets with two or more labels are uncertain. Each word and each label that
may have produced it form a *slot*; everything else is constant, and only the label totals couple
the slots. A *point* of EM is the vector of the slots' expected counts, followed, for PMM2, by the
expected counts of pairs of labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from polytopic.counts import look_up_counts
from polytopic.kernels.blocks import block_borders, run_blocks
from polytopic.models.mixture import likelihood_kernels as kernels

TINY = np.finfo(np.float64).tiny

STANDSTILL = 1e-12  # a smaller bend, relative to the point, is rounding and gives no direction


class MixtureFit(NamedTuple):
    """Expected word counts of each label, biases, the objective reached and the EM steps run."""

    label_counts: sparse.csr_matrix
    bias: np.ndarray | None
    objective: float
    n_iter: int


def fit_mixture(
    matrix, sets, *, smoothing, max_iter, tol, bias_smoothing=None, start=None, trace=None
) -> MixtureFit:
    """Maximise J of Ueda & Saito, Eq. (6), by EM with safeguarded SQUAREM steps.

    Parameters
    ----------
    matrix : csr_matrix of shape (n_label_sets, n_words)
        Word counts of each label set.
    sets : csr_matrix of shape (n_label_sets, n_labels)
        The label sets.
    smoothing, max_iter, tol : see :class:`~polytopic.PMM1`
    bias_smoothing : float, default=None
        Pseudo-count of the biases, see :class:`~polytopic.PMM2`; None for equal weights.
    start : function from a number of slots to an array in (0, 1], default=None
        Initial weights of the slots that share an entry; equal by default.
    trace : list, default=None
        Receives the objective after each cycle.
    """
    if bias_smoothing is None:
        problem = Slots(matrix, sets, smoothing)
    else:
        problem = BiasedSlots(matrix, sets, smoothing, bias_smoothing)
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


def count_mixture(matrix, sets, *, smoothing) -> MixtureFit:
    """Count each word for all labels of its set, as naive Bayes does, instead of running EM.

    The objective is J of the word distributions that follow, which EM would raise.
    """
    problem = Slots(matrix, sets, smoothing)
    label_counts = sparse.csr_matrix(sets.T @ matrix)
    objective, _ = problem.em_step(look_up_counts(label_counts, problem.label, problem.word))
    return MixtureFit(label_counts, None, objective + problem.constant(), 1)


def continue_mixture(matrix, sets, theta, n_steps, *, smoothing, bias=None) -> sparse.csr_matrix:
    """Return the word counts of each label after EM steps from given parameters.

    The table need not be the one that the parameters were learned from: its counts are first
    distributed by ``theta`` (n_words, n_labels), then ``n_steps`` full steps follow. Biases are
    kept fixed.
    """
    problem = (
        Slots(matrix, sets, smoothing)
        if bias is None
        else BiasedSlots(matrix, sets, smoothing, 1.0)
    )
    fixed = () if bias is None else (bias,)
    _, point = problem.distribute(theta[problem.word, problem.label], *fixed)
    for _ in range(n_steps):
        slots, _ = problem.theta(point[: problem.size])
        _, point = problem.distribute(slots, *fixed)
    return problem.label_counts(point)


def _squarem_cycle(problem, point, max_steps):
    """Take two EM steps, extrapolate if that does not lower J, and take a third step.

    See Varadhan and Roland (2008). Returns the new point, J at the best point before it, and the
    number of steps.
    """
    objective, once = problem.em_step(point)
    if max_steps == 1:
        return once, objective, 1
    objective, twice = problem.em_step(once)
    change = once - point
    bend = (twice - once) - change
    # words alone determine the length, so that biases that cannot move have no influence
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
    """Return the inner product; the bits of a BLAS's would depend on its number of threads."""
    return float((one * other).sum())


class Slots:
    """The uncertain part of a table, word by word, for EM with equal weights (PMM1).

    Parameters
    ----------
    matrix, sets, smoothing : see :func:`fit_mixture`

    Attributes
    ----------
    word, label : ndarray of shape (n_slots,)
        Word and label of each slot.
    certain : ndarray of shape (n_slots,)
        Counts of the same words and labels from label sets with one label.
    least : ndarray
        Lower limit of a point.
    n_words : float
        Total count of the uncertain entries.
    """

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
        self.certain = self.least = look_up_counts(self.single, self.label, self.word)
        pseudo = self.certain + smoothing
        total = self.single.sum(axis=1).A1 + smoothing * matrix.shape[1]
        self.outside = total - np.bincount(self.label, weights=pseudo, minlength=n_labels)

    def _lay_out(self, mixed):
        """Assign numbers to the slots, word by word, and point each entry to its slots."""
        args = mixed.indptr, mixed.indices, self.sets.indices, self.sets.indptr
        slots_indptr = np.empty(mixed.shape[1] + 1, dtype=np.int64)
        kernels.count_slots(*args, self.shape[0], slots_indptr)
        entry_sizes = np.diff(self.sets.indptr)[mixed.indices]
        self.counts, self.entry_set = mixed.data, mixed.indices
        self.entry_indptr = np.concatenate([[0], np.cumsum(entry_sizes)])
        self.entry_slot = np.empty(self.entry_indptr[-1], dtype=np.int64)
        self.label = np.empty(slots_indptr[-1], dtype=np.int64)
        kernels.fill_slots(*args, slots_indptr, self.label, self.entry_slot)
        self.word = np.repeat(np.arange(mixed.shape[1]), np.diff(slots_indptr))
        # blocks of whole words, so that no two blocks share an entry or a slot
        words = block_borders(self.entry_indptr[mixed.indptr])
        self.blocks = mixed.indptr[words]

    def first_point(self, start):
        """Return the point where each entry is distributed by initial weights."""
        return self.distribute(start(self.size))[1]

    def em_step(self, point):
        """Return J at a point, up to its constant, and the next point (Eq. (18), (21))."""
        theta, prior = self.theta(point)
        likelihood, after = self.distribute(theta)
        return likelihood + prior, after

    def theta(self, counts):
        """Return the slots' probabilities, and their part of the log prior."""
        pseudo = counts + self.smoothing
        total = self.outside + np.bincount(self.label, weights=pseudo, minlength=self.outside.size)
        theta = pseudo / total[self.label]
        prior = _dot(self.certain + self.smoothing, np.log(theta))
        return theta, prior - _dot(self.outside, np.log(total))

    def distribute(self, theta):
        """Return the entries' log likelihood, and the point where ``theta`` distributes them."""
        expected = np.zeros(self.size)

        def block(rows):
            return kernels.expected_counts(
                self.counts[rows],
                self.entry_slot,
                self.entry_indptr[rows.start : rows.stop + 1],
                theta,
                expected,
            )

        return sum(run_blocks(block, self.blocks)), self.certain + expected

    def label_counts(self, point):
        """Return the word counts of all labels, certain and expected."""
        expected = point[: self.size] - self.certain
        slots = sparse.csr_matrix((expected, (self.label, self.word)), self.shape)
        return sparse.csr_matrix(self.single + slots)

    def bias(self, point) -> np.ndarray | None:
        """Return the biases at a point; None for equal weights."""
        return None

    def constant(self):
        """Return the part of J that is the same at every point."""
        return self._constant_prior() - self.log_sizes

    def _constant_prior(self):
        pseudo = self.single.data + self.smoothing
        slots = self.certain + self.smoothing
        unseen = self.shape[0] * self.shape[1] - self.single.nnz
        everywhere = _dot(pseudo, np.log(pseudo))
        everywhere += unseen * self.smoothing * np.log(self.smoothing)
        return everywhere - _dot(slots, np.log(slots))


class BiasedSlots(Slots):
    """The same with biases between the labels of a set (PMM2).

    Parameters
    ----------
    matrix, sets, smoothing, bias_smoothing : see :func:`fit_mixture`
    """

    def __init__(self, matrix, sets, smoothing, bias_smoothing):
        super().__init__(matrix, sets, smoothing)
        self.bias_smoothing = bias_smoothing
        together = sparse.coo_matrix(self.sets.T @ self.sets)
        apart = together.row != together.col
        order = np.lexsort((together.col[apart], together.row[apart]))
        self.one, self.other = together.row[apart][order], together.col[apart][order]
        self.least = np.concatenate([self.certain, np.zeros(self.one.size)])

    def first_point(self, start):
        """Return the point where biases are equal and entries distributed by initial weights."""
        point = super().first_point(start)
        point[self.size :] = 0.0
        return point

    def em_step(self, point):
        """Return J at a point, up to its constant, and the next point (Eq. (16), (17))."""
        theta, prior = self.theta(point[: self.size])
        bias = self.bias(point)
        own = np.maximum(
            2.0 * bias[self.one, self.other], TINY
        )  # its prior weight may be tiny, too
        prior += self.bias_smoothing * float(np.log(own).sum())
        likelihood, after = self.distribute(theta, bias)
        return likelihood + prior, after

    def distribute(self, theta, bias=None):
        """Return the entries' log likelihood, and the point where these parameters lead."""
        if bias is None:
            bias = np.full((self.shape[0], self.shape[0]), 0.5)
        weights = np.empty(self.sets.nnz)
        kernels.bias_weights(self.sets.indices, self.sets.indptr, bias, weights)
        expected = np.zeros(self.size)

        def block(rows):
            label_words = np.zeros(weights.size)
            likelihood = kernels.biased_counts(
                self.counts[rows],
                self.entry_slot,
                self.entry_indptr[rows.start : rows.stop + 1],
                self.entry_set[rows],
                self.sets.indptr,
                weights,
                theta,
                expected,
                label_words,
            )
            return likelihood, label_words

        likelihoods, label_words = zip(*run_blocks(block, self.blocks), strict=True)
        pairs = np.zeros(bias.shape)
        kernels.bias_counts(
            self.sets.indices, self.sets.indptr, bias, weights, sum(label_words), pairs
        )
        after = np.concatenate([self.certain + expected, pairs[self.one, self.other]])
        return sum(likelihoods), after

    def bias(self, point) -> np.ndarray:
        """Return alpha at a point, one half for labels that never occur together."""
        counts = np.zeros((self.shape[0], self.shape[0]))
        counts[self.one, self.other] = point[self.size :] + self.bias_smoothing / 2
        total = counts + counts.T
        bias = np.full(counts.shape, 0.5)
        np.divide(counts, total, out=bias, where=total > 0)
        lower = np.tril_indices(bias.shape[0], -1)
        bias[lower] = 1.0 - bias.T[lower]  # alpha[l, m] + alpha[m, l] is exactly 1
        return bias

    def constant(self):
        """Return the part of J that is the same at every point, that of equal biases included."""
        return self._constant_prior() + self.shape[0] ** 2 * self.bias_smoothing * np.log(0.5)
