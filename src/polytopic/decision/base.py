"""What the rules share: scores are read in blocks of documents, labels come out sparse."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from polytopic.kernels.blocks import run_blocks
from polytopic.kernels.decisions import accept, count_accepted
from polytopic.labels import indicator

BLOCK_CELLS = 1 << 17  # scores looked at together


class Rule(BaseEstimator):
    """A rule that accepts labels by their scores.

    A subclass says from which score on labels are accepted (``_cut``, see
    :mod:`polytopic.kernels.decisions`), for values of the parameter that ``swept`` names.
    """

    needs_reference = False
    needs_classes = False
    swept: str | None = None
    swept_type: type = np.float64
    reject: bool

    def fit(self, scores=None, Y=None, *, classes=None):
        """Learn what must be known of the columns; most rules learn nothing.

        Parameters
        ----------
        scores : ndarray of shape (n_docs, n_labels), default=None
            Not used.
        Y : ignored
            Not used.
        classes : sequence of labels, default=None
            Labels of the columns, for a rule that knows how labels are related.
        """
        return self

    def decide(self, scores, *, reference=None) -> sparse.csr_matrix:
        """Return the accepted labels of each document as an indicator.

        Parameters
        ----------
        scores : ndarray of shape (n_docs, n_labels)
            One score for each document and label; higher is better, ``-inf`` is none.
        reference : ndarray of shape (n_docs,), default=None
            Score of each document under a general model, for rules that need it.
        """
        values = None if self.swept is None else [getattr(self, self.swept)]

        def labels(scores, cut, ties, rows):
            found, ends = np.empty(scores.size, np.int32), np.empty(len(scores), np.int64)
            return accept(scores, cut, ties, found, ends) and (found[: ends[-1]].copy(), ends)

        parts = self.over_blocks(labels, scores, reference, values)
        lengths = [np.diff(ends, prepend=0) for _, ends in parts]
        indptr = np.concatenate([[0], *lengths]).cumsum()
        indices = np.concatenate([np.empty(0, np.int32), *(found for found, _ in parts)])
        return indicator(indices, indptr, np.shape(scores)[1])

    def count(self, scores, Y, values, *, reference=None, measure=None) -> list:
        """Count the accepted labels for many values of the swept parameter in one pass.

        Parameters
        ----------
        scores, reference
            As in :meth:`decide`.
        Y : csr_matrix of shape (n_docs, n_labels)
            The true labels.
        values : array of shape (n_values,)
            Values of the parameter, ordered so that label sets shrink; None if there is none.
        measure : function
            Gets ``taken`` and ``right``, arrays (documents of a block, n_values) of how many
            labels are accepted and how many of them are true, and the block's slice.

        Returns
        -------
        list
            What ``measure`` returned for each block.
        """
        indices, indptr = Y.indices.astype(np.int64), Y.indptr.astype(np.int64)

        def counts(scores, cut, ties, rows):
            taken, right = np.empty(cut.shape, np.int32), np.empty(cut.shape, np.int32)
            own = indptr[rows.start : rows.stop + 1]
            known = count_accepted(scores, cut, ties, indices, own, taken, right)
            return known and (measure(taken, right, rows),)

        return [part[0] for part in self.over_blocks(counts, scores, reference, values)]

    def over_blocks(self, function, scores, reference, values) -> list:
        """Call ``function(scores, cut, ties, rows)`` for each block of documents.

        It returns something false if it has met NaN.
        """
        if not isinstance(self.reject, bool | np.bool_):
            raise TypeError(f"reject == {self.reject!r}, must be True or False.")
        self._check_parameters()
        scores = check_scores(scores)
        self._check_columns(scores)
        if self.needs_reference:
            reference = check_reference(reference, scores, type(self).__name__)
        values = np.zeros(1) if values is None else np.asarray(values, dtype=self.swept_type)

        def run(rows):
            block = np.ascontiguousarray(scores[rows])
            if block.dtype not in (np.float32, np.float64):
                block = block.astype(np.float64)
            own = reference[rows] if self.needs_reference else None
            block = self._normalised(block)
            cut = np.empty((len(block), values.size), block.dtype)
            ties = np.empty(cut.shape, np.int32)
            self._cut(block, own, values, cut, ties)
            return function(block, cut, ties, rows)

        n_docs, n_labels = scores.shape
        step = max(1, BLOCK_CELLS // n_labels)
        borders = np.append(np.arange(0, n_docs, step), n_docs)
        parts = run_blocks(run, borders) if n_docs else []
        if not all(parts):
            raise ValueError("scores hold NaN; a label without a score is -inf.")
        return parts

    def _check_parameters(self):
        """Refuse parameters that make no sense."""

    def _check_columns(self, scores):
        """Refuse scores of other labels than the rule knows."""

    def _normalised(self, scores):
        """Return the scores that cuts are made on."""
        return scores

    def _cut(self, scores, reference, values, cut, ties):
        """Set the cuts of a block of documents."""
        raise NotImplementedError


def check_scores(scores):
    """Return scores as an array of numbers, one row a document."""
    scores = np.asarray(scores)
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ValueError(
            f"scores have the shape {scores.shape}; one row a document, one column a label needed."
        )
    return scores if scores.dtype.kind in "biuf" else scores.astype(np.float64)


def check_reference(reference, scores, rule):
    """Return one finite number a document."""
    if reference is None:
        raise ValueError(f"{rule} needs reference, each document's score under a general model.")
    reference = np.asarray(reference, dtype=np.float64)
    if reference.shape != scores.shape[:1] or not np.isfinite(reference).all():
        raise ValueError(
            f"reference has the shape {reference.shape}; "
            f"{scores.shape[0]} finite numbers are needed, one a document."
        )
    return reference
