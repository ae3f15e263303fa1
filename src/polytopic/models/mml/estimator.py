"""The estimator of maximal margin labeling."""

from __future__ import annotations

import warnings
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from polytopic.counts import canonical_counts
from polytopic.labels import LabelSpace, read_targets, with_fallback
from polytopic.models.arrays import TUNED_BY_MARGINS, check_margins, check_tuned
from polytopic.models.base import LinearModel
from polytopic.models.checks import check_as_many, check_name, check_number_or, is_auto
from polytopic.models.label_sets import LabelSets
from polytopic.models.mml import tuning
from polytopic.models.mml.embedding import embed_sizes, rotate
from polytopic.models.mml.scoring import SetScorer
from polytopic.models.mml.training import DualAscent, Margins
from polytopic.models.words import softmax
from polytopic.parameters import check_number
from polytopic.text.weights import is_valid_counts, unit_rows

MOST_SETS = 1 << 16


class MML(LinearModel):
    r"""Maximal margin labeling: label sets as classes, with similar sets close to each other.

    A label set :math:`\lambda` has an embedding :math:`\phi(\lambda)`; inner products of embeddings
    are similarities of label sets. A document gets the set that scores best ([1]_, Eq. (5)):

    .. math:: f(x) = \arg\max_\lambda \langle W x, \phi(\lambda) \rangle

    over all label sets that are not empty. The weights maximize the margin between a document's
    own set and the others (Eq. (6)). Rows of ``X`` are scaled to unit length first.

    Parameters
    ----------
    C : float or "auto", default=1.0
        The cost of a violated margin. "auto" takes 0.3 or 1, whichever has the higher
        samples-averaged F1 (or subset accuracy, depending on ``goal``) on held-out documents. At
        most 12000 documents are used: in three folds or, from 2000 documents on, one of them.
    similarity : {"dice", "cosine"}, default="dice"
        Similarity of label sets. Dice excludes the empty set; cosine embeds it at the origin.
    labels : {"all", "neighbours"}, default="all"
        The label sets that a document is kept apart from: all of them, through working sets with
        the most violated one, or those with one label more or less, as in [1]_.
    goal : {"f", "exact"}, default="f"
        The margin for ``labels="all"``. "exact" has the margin of [1]_, in units of the distance
        between the sets, and one slack variable per set in the working set. "f" requires a margin
        of 1 - Dice, with one slack variable per document. Neighbours always have the margin of
        [1]_.
    rank : int or None, default=4
        Dimensions of the embedding of sizes for Dice. None is exact, and in double precision.
    tol : float, default=0.1
        Training ends when the gap between the objectives is at most this part of the dual one.
    max_iter : int, default=100
        Number of passes over the documents, at most.
    calibrate : bool, default=False
        Whether to calibrate probabilities on held-out documents.
    random_state : int, RandomState or None, default=0
        Determines the order in which documents are visited.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    tuned_ : dict
        What was tuned on held-out documents: ``C``, and the curves of probabilities.
    objective_ : float
        The dual objective.
    objectives_ : list of float
        The dual objective after each pass.
    dual_gap_ : float
        Gap between the primal and the dual objective over the working sets (for ``goal="f"``,
        over all label sets), measured during the last pass, while the weights still moved.
    max_violation_ : float
        The largest violation by a label set outside its document's working set, in the last pass.
    n_iter_ : int
        Number of passes.

    Notes
    -----
    ``decision_function`` gives the score of the best set with a label minus that of the best
    without it. ``predict_proba`` gives its probability by isotonic regression on held-out
    documents or, without ``calibrate``, the logistic function of the score, which is not
    calibrated.

    References
    ----------
    .. [1] Kazawa, Izumitani, Taira and Maeda, "Maximal Margin Labeling for Multi-Topic Text
       Categorization", NIPS 17, 2004.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = MML().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    """

    name = "mml"
    reads = "weights"
    has_set_posterior = True
    can_warm_start = True
    can_distribute = True

    _ascent: Any = None  # the DualAscent of a model that was fitted, not loaded

    def __init__(
        self,
        C=1.0,
        *,
        similarity="dice",
        labels="all",
        goal="f",
        rank=4,
        tol=0.1,
        max_iter=100,
        calibrate=False,
        random_state=0,
    ):
        self.C = C
        self.similarity = similarity
        self.labels = labels
        self.goal = goal
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.calibrate = calibrate
        self.random_state = random_state

    @property
    def needs_documents(self):
        """Whether something is to be tuned on documents."""
        return is_auto(self.C) or self.calibrate

    @property
    def can_continue(self):
        """Whether a warm start can begin from this model: if it was fitted, not loaded."""
        return self._ascent is not None

    # Learning

    def fit(self, X, y, *, tuned=None, warm=None, rows=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Weights of words, such as ltc or tf-idf.
        y : indicator of shape (n_docs, n_labels), or one collection of names per document
            Labels; 1-D means one label per document. Documents without a label or without a word
            are ignored.
        tuned : dict, default=None
            What an earlier fit has tuned (``tuned_``), to be reused. If ``C`` is to be tuned but
            missing, everything is tuned again.
        warm : MML, default=None
            A fitted model whose dual variables to start from. The weights then approximate the
            best ones differently than after a cold start. Requires ``labels="all"``.
        rows : array of shape (n_docs,), default=None
            With ``warm``, the row that each document had in the model's ``X``, -1 for none.
        """
        self._check_parameters()
        targets = read_targets(y)
        X = self._check_words(X, reset=True)
        check_as_many(X, targets.Y)
        is_labelled = targets.Y.getnnz(axis=1) > 0
        if not is_labelled.any():
            raise ValueError("Y has no labelled document; at least one is needed.")
        if warm is not None:
            self._check_warm(warm, rows, X.shape[0])
        self._set_labels(targets)
        used = np.flatnonzero(is_labelled & (X.getnnz(axis=1) > 0))
        X = unit_rows(X if used.size == X.shape[0] else X[used])
        Y = targets.Y[used][:, self._columns]
        if tuned is None or (is_auto(self.C) and "C" not in tuned):
            self.tuned_ = tuning.tune(self, X, Y)
        else:
            self.tuned_ = dict(tuned)
        start = None
        if warm is not None:
            start = warm.working_sets(self.classes_[self._columns], np.asarray(rows)[used])
        self._train(X, Y, used, start)
        return self

    def _train(self, X, Y, used, start):
        """Train on documents of unit length, all with labels; ``used`` has their rows."""
        single = self._form.kind == "single" and self.labels == "all"
        sizes = self._embed(1 if single else Y.shape[1], np.bincount(Y.getnnz(axis=1), minlength=2))
        order, margins = check_random_state(self.random_state), self._margins()
        ascent = DualAscent.begin(X, Y, sizes, self._dtype, order)
        if start is not None:
            ascent.start_from(start, Y, margins)
        ascent.run(margins, order, int(self.max_iter))
        self._set_trained(ascent, sizes)
        ascent.corpus = None  # a warm start needs the dual variables only
        self._ascent, self._used = ascent, used

    def fit_documents(self, documents, labels, sets, set_docs, *, tuned=None):
        """Learn from documents that are elsewhere, in parts.

        Parameters
        ----------
        documents : object
            It has ``sizes``, the number of documents by their number of labels; ``tune(model)``,
            which gives what :func:`polytopic.models.mml.tuning.tune` does; and ``train(sizes,
            dtype, margins, order, max_iter)``, which gives a ``DualAscent``.
        labels : sequence of str
            The labels of columns, sorted.
        sets : csr_matrix of shape (n_sets, n_labels)
            The label sets that occur, in sorted order.
        set_docs : ndarray of shape (n_sets,)
            How many documents have each.
        tuned : dict, default=None
            What an earlier fit has tuned, to be reused.
        """
        self._check_parameters()
        self._set_label_sets(labels, sets, set_docs)
        if tuned is None and self.needs_documents:
            tuned = documents.tune(self)
        self.tuned_ = dict(tuned or {})
        sizes = self._embed(len(labels), documents.sizes)
        order = check_random_state(self.random_state)
        ascent = documents.train(sizes, self._dtype, self._margins(), order, int(self.max_iter))
        self._set_trained(ascent, sizes)
        return self

    def _embed(self, n_labels, used):
        return embed_sizes(self.similarity, n_labels, used, self.rank)

    @property
    def _dtype(self):
        return np.float64 if self.rank is None else np.float32

    def _margins(self):
        C = float(self.tuned_.get("C", self.C))
        return Margins(self.labels, self.goal, C, float(self.tol))

    def _set_trained(self, ascent, sizes):
        """Take the weights that were learned; warn if training has not converged."""
        if not ascent.converged:
            warnings.warn(
                f"MML stopped after max_iter == {self.max_iter} passes with a gap of "
                f"{ascent.gap:.3g} at an objective of {ascent.objectives[-1]:.3g}; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.objectives_, self.n_iter_ = ascent.objectives, len(ascent.objectives)
        self.objective_ = ascent.objectives[-1] if ascent.objectives else 0.0
        self.dual_gap_, self.max_violation_ = ascent.gap, ascent.missed
        self._set_weights(*rotate(sizes.vectors, ascent.W))

    def _set_weights(self, vectors, weights):
        self._vectors, self._weights = vectors, weights
        self.n_features_in_ = weights.shape[0]
        self._allow(np.arange(self._columns.size))

    def working_sets(self, classes, rows):
        """Return the working sets of documents, to start another model from.

        Parameters
        ----------
        classes : ndarray
            The labels of the other model; its columns are used.
        rows : ndarray
            The row of each document in the ``X`` of this model's ``fit``, -1 for none.
        """
        place = np.full(rows.max(initial=-1) + 2, -1)
        known = self._used < place.size - 1
        place[self._used[known]] = np.flatnonzero(known)
        column = {label: k for k, label in enumerate(classes.tolist())}
        names = self.classes_[self._columns].tolist()
        return self._ascent.working_sets(place[rows], [column.get(name, -1) for name in names])

    # Files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {"weights": self._weights, "vectors": self._vectors, **self._label_arrays()}

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore the model from the arrays of :meth:`to_arrays`; predictions are the same bits.

        Raises ValueError for arrays that no model can have.
        """
        self._check_parameters()
        check_margins(arrays, len(labels), n_words)
        self._take_labels(arrays, labels, check_tuned(tuned, TUNED_BY_MARGINS))
        self._set_weights(arrays["vectors"], arrays["weights"])
        return self

    # Prediction

    def _allow(self, places):
        """Predict only labels at these places of the columns."""
        self._scorer = SetScorer(
            self._weights,
            self._vectors,
            self._columns,
            places,
            n_labels=self.classes_.size,
            single=self._form.kind == "single",
        )

    def restrict_to(self, allowed):
        """Return this model with only those labels where ``allowed`` is true."""
        model = copy(self)
        places = np.flatnonzero(allowed[self._columns])
        if not places.size:
            raise ValueError("no allowed label has a document.")
        model._allow(places)
        model._fallback = self._fallback_within(allowed)
        return model

    def predict_indicator(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = self._check_words(X)
        return with_fallback(X, self._scorer.best(X), self._fallback)

    def decision_function(self, X):
        """Return the score of the best set with each label minus that of the best without it.

        It is ``-inf`` for a label without documents, and ``inf`` for the only label.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind != "single":
            return self._scorer.margins(X)
        scores = self._scorer.label_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X):
        """Return one probability per document and label; see the notes of the class."""
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind == "single":
            return softmax(self._scorer.label_scores(X))
        return self._probabilities(X, self._scorer.margins(X))

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), margins and probabilities."""
        check_is_fitted(self)
        X = self._check_words(X)
        sets, margins = self._scorer.assess(X)
        return with_fallback(X, sets, self._fallback), margins, self._probabilities(X, margins)

    def _probabilities(self, X, margins):
        if "label_curve" not in self.tuned_:
            return special.expit(margins)
        proba = np.interp(margins, *self.tuned_["label_curve"])
        proba[X.getnnz(axis=1) == 0] = self.label_docs_ / self._n_docs
        proba[np.isneginf(margins)] = 0.0
        return proba

    def set_probability(self, X):
        """Return the probability that each document's predicted label set is right.

        By isotonic regression on its lead over the second best set, on held-out documents.
        """
        check_is_fitted(self)
        if "set_curve" not in self.tuned_:
            raise ValueError(
                "MML has no probabilities of label sets; fit it with calibrate=True on at least "
                f"{tuning.FEWEST} documents."
            )
        X = self._check_words(X)
        lead = self.lead(X)
        known = (X.getnnz(axis=1) > 0) | np.isposinf(lead)
        proba = np.interp(lead, *self.tuned_["set_curve"])
        return np.where(known, proba, self._fallback_docs / self._n_docs)

    def why_no_set_probability(self):
        """Return why :meth:`set_probability` is unavailable and what to do; "" if it is not."""
        if not self.calibrate:
            return "MML is not calibrated; use MML(calibrate=True)"
        if hasattr(self, "tuned_") and "set_curve" not in self.tuned_:
            return f"MML needs at least {tuning.FEWEST} documents to calibrate it"
        return ""

    def lead(self, X):
        """Return the score of the best label set minus that of the second best.

        It is ``inf`` where there is only one set.
        """
        check_is_fitted(self)
        return self._scorer.leads(self._check_words(X))

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return each document's best label sets, exactly, with a bound on every other set.

        The bound is the score of the next best set. A document without a known word has the most
        frequent label set first; all sets score 0 there.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Weights of words.
        n_best : int, default=3
            Number of label sets, at most 65536.
        """
        check_is_fitted(self)
        if self._form.kind == "single":
            raise ValueError(
                "y was 1-D, one label per document, so there are no label sets; use predict_proba."
            )
        check_scalar(n_best, "n_best", Integral, min_val=1, max_val=MOST_SETS)
        X, n_sets = self._check_words(X), int(n_best) + 1
        Y, scores = self._scorer.n_best(X, n_sets)
        rows = [tuple(labels) for labels in LabelSpace(self.classes_.tolist()).decode(Y)]
        sets = [list(filter(None, rows[k : k + n_sets])) for k in range(0, len(rows), n_sets)]
        most_frequent = tuple(self.classes_[self._fallback].tolist())
        for doc in np.flatnonzero(X.getnnz(axis=1) == 0):
            sets[doc] = [
                most_frequent,
                *(labels for labels in sets[doc] if labels != most_frequent),
            ]
        return LabelSets([listed[:n_best] for listed in sets], scores[:, :-1], scores[:, -1])

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set with a label (a column), as an indicator."""
        check_is_fitted(self)
        X = self._check_words(X)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        self._check_label(label, self._scorer.labels)
        return self._scorer.best_with(X, label)

    # Evidence

    def _word_contributions(self, x, y):
        x = self._check_words(x)
        return x.data, self._word_scores(x, y) / (sparse.linalg.norm(x) or 1.0)

    def top_words(self, label, k):
        """Return the ``k`` words with the highest weights for a label (a column), and these."""
        check_is_fitted(self)
        return self._scorer.top_words(label, k)

    def _word_scores(self, x, y):
        return self._scorer.word_scores(x.indices, sparse.csr_matrix(y).indices)

    # Checks

    def _check_words(self, X, *, reset=False):
        if not is_valid_counts(self, X, reset=reset):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        return canonical_counts(X)

    def _check_parameters(self):
        if not is_auto(self.C):
            check_number_or(" or 'auto'", self.C, "C")
            check_number(self.C, "C", min_val=0, include_boundaries="neither")
        check_name(self.similarity, "similarity", ("dice", "cosine"))
        check_name(self.labels, "labels", ("all", "neighbours"))
        check_name(self.goal, "goal", ("f", "exact"))
        if self.rank is not None:
            check_scalar(self.rank, "rank", Integral, min_val=1)
        check_number(self.tol, "tol", min_val=0, include_boundaries="neither")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)

    def _check_warm(self, warm, rows, n_docs):
        if self.labels != "all" or warm.labels != "all":
            raise ValueError("warm requires labels == 'all'; neighbours always start cold.")
        if not warm.can_continue:
            raise ValueError(
                "warm has no dual variables; pass a model that was fitted, not loaded."
            )
        if np.shape(rows) != (n_docs,):
            raise ValueError(
                f"rows has shape {np.shape(rows)}, must be ({n_docs},): for each document its row "
                "in warm's X, or -1."
            )
