"""EM for the word distributions of an equal mixture, on the table of counts.

Only the entries of label sets with two labels or more are uncertain. Each pair of a word and a
label among these has a *slot*; everything else is a constant. Label totals alone couple the slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from polytopic.kernels import mixture
from polytopic.kernels.blocks import block_borders, run_blocks

STANDSTILL = 1e-12  # steps that bend less are rounding, and no direction to jump along


class MixtureFit(NamedTuple):
    """Expected word counts of each label, the objective reached and the EM steps run."""

    label_counts: sparse.csr_matrix
    objective: float
    n_iter: int


def fit_equal_mixture(matrix, sets, *, smoothing, max_iter, tol, start=None, trace=None):
    """Climb J of Ueda & Saito, Eq. (6), by EM with SQUAREM steps that may not lower it.

    Parameters
    ----------
    matrix : csr_matrix of shape (n_label_sets, n_words)
        Word counts of each label set.
    sets : csr_matrix of shape (n_label_sets, n_labels)
        The label sets.
    smoothing, max_iter, tol : see :class:`~polytopic.PMM1`
    start : function from a number of slots to an array in (0, 1], default=None
        Weights of the slots that share an entry at the start; equal ones by default.
    trace : list, default=None
        Gets the objective of each point that EM continues from.
    """
    problem = _Slots(matrix, sets, smoothing)
    counts = problem.first_counts(np.ones if start is None else start)
    n_iter, previous = 0, -np.inf
    while problem.size and n_iter < max_iter:
        counts, objective, steps = _squarem_cycle(problem, counts, max_iter - n_iter)
        n_iter += steps
        if trace is not None:
            trace.append(objective)
        if objective - previous <= tol * problem.n_words:
            break
        previous = objective
    objective, _ = problem.em_step(counts)
    return MixtureFit(problem.label_counts(counts), objective + problem.constant(), n_iter or 1)


def _squarem_cycle(problem, counts, max_steps):
    """Take two EM steps, jump along them as far as J allows, and take a third (Varadhan 2008).

    Returns the new point, J at the best point seen before it, and the number of steps.
    """
    objective, once = problem.em_step(counts)
    if max_steps == 1:
        return once, objective, 1
    objective, twice = problem.em_step(once)
    change = once - counts
    bend = (twice - once) - change
    size = np.sqrt(_dot(bend, bend))
    if max_steps == 2 or size <= STANDSTILL * np.sqrt(_dot(twice, twice)):
        return twice, objective, 2
    length = max(1.0, np.sqrt(_dot(change, change)) / size)
    jump = np.maximum(counts + 2 * length * change + length**2 * bend, problem.certain)
    reached, after = problem.em_step(jump)
    return (after, reached, 3) if reached >= objective else (twice, objective, 3)


def _dot(one, other):
    """Return the inner product; a BLAS would let the number of its threads change the bits."""
    return float((one * other).sum())


class _Slots:
    """The uncertain part of a table, word by word, ready for EM."""

    def __init__(self, matrix, sets, smoothing):
        n_labels = sets.shape[1]
        set_sizes = np.diff(sets.indptr)
        several = np.flatnonzero(set_sizes > 1)
        self.smoothing, self.shape = smoothing, (n_labels, matrix.shape[1])
        single = sparse.diags_array((set_sizes == 1).astype(float)) @ matrix
        self.single = sparse.csr_matrix(sets.T @ single)
        self.single.eliminate_zeros()

        mixed, mixed_sets = matrix[several].tocsc(), sets[several]
        self._lay_out(mixed, mixed_sets)
        self.size = self.label.size
        self.n_words = float(mixed.sum())
        self.log_sizes = _dot(mixed.sum(axis=1).A1, np.log(set_sizes[several]))
        self.certain = _lookup(self.single, self.label, self.word)
        pseudo = self.certain + smoothing
        total = self.single.sum(axis=1).A1 + smoothing * matrix.shape[1]
        self.outside = total - np.bincount(self.label, weights=pseudo, minlength=n_labels)

    def _lay_out(self, mixed, sets):
        """Lay out the slots word by word, and point each entry to its slots."""
        args = mixed.indptr, mixed.indices, sets.indices, sets.indptr
        slots_indptr = mixture.count_slots(*args, sets.shape[1])
        entry_sizes = np.diff(sets.indptr)[mixed.indices]
        self.counts = mixed.data
        self.entry_indptr = np.concatenate([[0], np.cumsum(entry_sizes)])
        self.entry_slot = np.empty(self.entry_indptr[-1], dtype=np.int64)
        self.label = np.empty(slots_indptr[-1], dtype=np.int64)
        mixture.fill_slots(*args, slots_indptr, self.label, self.entry_slot)
        self.word = np.repeat(np.arange(mixed.shape[1]), np.diff(slots_indptr))
        # a block of words has its own entries and its own slots
        words = block_borders(self.entry_indptr[mixed.indptr])
        self.blocks = mixed.indptr[words]

    def first_counts(self, start):
        """Return the slots' counts when each entry is shared by these weights."""
        return self._shared(start(self.size))[1]

    def em_step(self, counts):
        """Return J (less its constant) at these counts of the slots, and the next counts."""
        pseudo = counts + self.smoothing
        total = self.outside + np.bincount(self.label, weights=pseudo, minlength=self.outside.size)
        theta = pseudo / total[self.label]
        likelihood, shared = self._shared(theta)
        prior = _dot(self.certain + self.smoothing, np.log(theta))
        prior -= _dot(self.outside, np.log(total))
        return likelihood + prior, shared

    def _shared(self, theta):
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

    def label_counts(self, counts):
        """Return the word counts of all labels, certain and expected ones."""
        slots = sparse.csr_matrix((counts - self.certain, (self.label, self.word)), self.shape)
        return sparse.csr_matrix(self.single + slots)

    def constant(self):
        """Return the part of J that no step changes."""
        pseudo = self.single.data + self.smoothing
        slots = self.certain + self.smoothing
        unseen = self.shape[0] * self.shape[1] - self.single.nnz
        everywhere = _dot(pseudo, np.log(pseudo))
        everywhere += unseen * self.smoothing * np.log(self.smoothing)
        return everywhere - _dot(slots, np.log(slots)) - self.log_sizes


def _lookup(matrix, row, column):
    """Return the values of a CSR matrix at these places, 0 where it has none."""
    if not row.size:
        return np.zeros(0)
    return np.asarray(matrix[row, column]).ravel()
