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

from polytopic.array_specs import DOUBLE, REAL, ArraySpec, check_arrays
from polytopic.counts import LARGEST, canonical_counts
from polytopic.labels import LabelSpace, read_targets, with_fallback
from polytopic.models.base import LABEL_ARRAYS, LinearModel, check_label_arrays
from polytopic.models.checks import (
    LARGEST_WEIGHT,
    SMALLEST_DIVISOR,
    Ranges,
    check_cost,
    check_fits,
    check_name,
    check_number_or,
    check_same_length,
    check_tuned,
    is_auto,
)
from polytopic.models.mml.embedding import embed_sizes, rotate
from polytopic.models.mml.exact import (
    DualProblem,
    EmptySet,
    KernelScores,
    LinearScores,
    ListScorer,
    Pairs,
    SetList,
    gram_matrix,
)
from polytopic.models.mml.scoring import SetScorer
from polytopic.models.mml.training import MIN_DOCS, DualAscent, Margins, score_held_out, tune
from polytopic.models.results import LabelEvidence, LabelSets
from polytopic.parameters import check_number
from polytopic.text.weights import is_valid_counts, unit_rows

CELL_BYTES = 32  # of weights in four dimensions, twice, per word and label
MAX_SETS = 1 << 16  # per document in `predict_sets`

# The arrays of a model in files: weights of words for labels, vectors of the sizes of label sets,
# and the labels
MARGINS = LABEL_ARRAYS | {
    "weights": ArraySpec(REAL, ("n_words", "rank", "n_columns"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
    "vectors": ArraySpec(REAL, ("n_sizes", "rank"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
}
# With a list of label sets: weights of words for each set
SET_ARRAYS = LABEL_ARRAYS | {
    "set_weights": ArraySpec(DOUBLE, ("n_words", "n_sets"), -LARGEST_WEIGHT, LARGEST_WEIGHT),
}
TUNED: Ranges = {"C": (SMALLEST_DIVISOR, LARGEST), "set_curve": None, "label_curve": None}

EMPTY = {  # values of the parameter
    "neighbour": EmptySet(is_neighbour=True, is_answer=False),
    "answer": EmptySet(is_neighbour=False, is_answer=True),
    "both": EmptySet(is_neighbour=True, is_answer=True),
    "out": EmptySet(is_neighbour=False, is_answer=False),
}


class MML(LinearModel):
    r"""Maximal margin labeling: label sets as classes, with similar sets close to each other.

    A label set :math:`\lambda` has an embedding :math:`\phi(\lambda)`; inner products of embeddings
    are similarities of label sets. A document gets the set that scores best ([1]_, Eq. (5)):

    .. math:: f(x) = \arg\max_\lambda \langle W x, \phi(\lambda) \rangle

    over all label sets that are not empty. The weights maximize the margin between a document's
    own set and the others (Eq. (6)). Rows of ``X`` are scaled to unit length first, except for a
    ``kernel`` that is not linear.

    Parameters
    ----------
    C : float or "auto", default=1.0
        The cost of a violated margin. "auto" takes 0.3 or 1, whichever has the higher
        samples-averaged F1 (or subset accuracy, depending on ``goal``) on held-out documents. At
        most 12000 documents are used: in three folds, or one of these for 2000 documents or more.
    similarity : {"dice", "cosine", "identity"}, callable or matrix, default="dice"
        Similarity of label sets. All but the first two require ``solver="exact"``: "identity"
        makes label sets orthonormal classes (Eqs. (2) and (3)), a callable gets two frozensets of
        labels, and a matrix has a row and a column for each set of
        :func:`polytopic.models.mml.label_sets` of ``classes_``, with the empty set first or
        without it. They must be positive definite.
    labels : {"all", "neighbours"}, default="all"
        The label sets that a document is separated from: all of them, through working sets that
        grow by the most violated set; or those with one label more or less, as in [1]_.
    goal : {"f", "exact"}, default="f"
        The margin for ``labels="all"``. "exact" has the margin of [1]_, in units of the distance
        between the sets, and one slack variable per set in the working set. "f" requires a margin
        of 1 - Dice, with one slack variable per document. Neighbours and ``solver="exact"`` always
        have the margin of [1]_.
    rank : int or None, default=4
        Number of dimensions of the embedding of sizes for Dice. None is exact, and in double
        precision. For ``solver="fast"``.
    tol : float, default=0.1
        Training ends when the gap between the objectives is at most this fraction of the dual one.
        For ``solver="fast"``; the exact solver closes the gap.
    max_iter : int, default=100
        Maximum number of passes over the documents or, for ``solver="exact"``, of steps.
    calibrate : bool, default=False
        Whether to calibrate probabilities on held-out documents.
    random_state : int, RandomState or None, default=0
        Determines the order in which documents are visited. For ``solver="fast"``.
    empty : {"neighbour", "answer", "both", "out"} or None, default=None
        The role of the empty label set. "neighbour": a document with one label is separated from it
        (footnote 3 of [1]_), but it is never predicted. "answer": it is predicted where every other
        set scores below it, but is not used in training; with neighbours, cosine
        and tf-idf, this reproduces Table 4 of [1]_. "both" is both of these, and "out" neither.
        None is "neighbour" for cosine and "out" for every other similarity. Dice and cosine embed
        it at the origin, so it scores 0. A 1-D ``y`` never gets it as an answer.
    solver : {"fast", "exact"}, default="fast"
        "fast" climbs the dual objective with linear weights, document by document. "exact" solves
        the dual problem (7) of [1]_ as a whole, over all label sets or over neighbours, for every
        ``similarity`` and ``kernel``. It lists all label sets, so there may be 10 labels at most,
        and 4000 dual variables: pairs of a document and a label set.
    kernel : {"linear", "precomputed"} or callable, default="linear"
        Kernel of documents. "linear" is that of rows of unit length. All others require
        ``solver="exact"``: with "precomputed", ``X`` holds the kernel of each document and each
        that was fitted; a callable gets two arrays of rows, as they are, and returns their kernel
        matrix.

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
        Gap between the primal and the dual objective over the working sets (for ``goal="f"`` and
        ``solver="exact"``, over all label sets), measured during the last pass, while the weights
        still moved.
    max_violation_ : float
        The largest violation by a label set outside its document's working set, in the last pass.
    n_iter_ : int
        Number of passes.

    Notes
    -----
    ``decision_function`` returns the score of the best set with a label minus that of the best
    without it. ``predict_proba`` returns its probability by isotonic regression on held-out
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
    _scorer: SetScorer | ListScorer

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
        empty=None,
        solver="fast",
        kernel="linear",
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
        self.empty = empty
        self.solver = solver
        self.kernel = kernel

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags

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
            Weights of words, such as ltc or tf-idf; for ``kernel="precomputed"``, the kernel of
            all pairs of documents.
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
        check_same_length(X, targets.Y)
        if self._is_precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X has the shape {X.shape}, must be square: kernel == 'precomputed' needs the "
                "kernel of all pairs of documents."
            )
        is_labelled = targets.Y.getnnz(axis=1) > 0
        if not is_labelled.any():
            raise ValueError("Y has no labelled document; at least one is needed.")
        if warm is not None:
            self._check_warm(warm, rows, X.shape[0])
        self._set_labels(targets)
        used = np.flatnonzero(is_labelled & (X.getnnz(axis=1) > 0))
        X = X if used.size == X.shape[0] else X[used]
        X = unit_rows(X) if self._is_linear else X
        Y = targets.Y[used][:, self._columns]
        if self.solver == "fast":
            check_fits(self, X.shape[1], Y.shape[1], CELL_BYTES)
        if tuned is None or (is_auto(self.C) and "C" not in tuned):
            self.tuned_ = tune(self, X, Y)
        else:
            self.tuned_ = dict(tuned)
        if self.solver == "exact":
            self._solve(X, Y, used)
            return self
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

    def _solve(self, X, Y, used):
        """Solve the whole dual problem of documents with words and labels, in rows ``used``."""
        single, neighbours = self._form.kind == "single", self.labels == "neighbours"
        set_list = SetList.for_training(
            self._columns.size, self._empty, neighbours=neighbours, single=single
        )
        pairs = Pairs.of_documents(Y, set_list, self._empty, neighbours=neighbours)
        S = set_list.similarities(self.similarity, self.classes_, self._columns)
        X = X[:, used] if self._is_precomputed else X
        problem = DualProblem(gram_matrix(self.kernel, X, X), S, pairs)
        solution = problem.solve(self._cost, int(self.max_iter))
        self._set_progress(solution.objectives, solution.gap, 0.0, solution.converged)
        scores: LinearScores | KernelScores
        if self._is_linear:
            scores = LinearScores(X.T @ solution.coefficients)
        else:
            documents = used if self._is_precomputed else X
            scores = KernelScores(self.kernel, documents, solution.coefficients)
        self._ascent = None
        self._set_list_scorer(set_list, scores, single=single)

    def _set_list_scorer(self, set_list, scores, *, single):
        self._list_scorer = ListScorer.of_answers(
            set_list, scores, self._columns, self.classes_.size, self._empty, single=single
        )
        self._allow(np.arange(self._columns.size))

    def fit_documents(self, documents, labels, sets, set_docs, *, tuned=None):
        """Learn from documents that are elsewhere, for example on a cluster.

        Parameters
        ----------
        documents : object
            Has the attribute ``sizes``, the number of documents by their number of labels; the
            method ``tune(model)``, which returns what :func:`polytopic.models.mml.training.tune`
            returns; and ``train(sizes, dtype, margins, order, max_iter)``, which returns a
            ``DualAscent``.
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
        if self.solver == "exact":
            raise ValueError("solver == 'exact' cannot learn in parts; use solver='fast'.")
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
        has_empty = self._empty.is_neighbour
        return embed_sizes(self.similarity, n_labels, used, self.rank, has_empty=has_empty)

    @property
    def _empty(self) -> EmptySet:
        """What the empty label set is."""
        is_cosine = isinstance(self.similarity, str) and self.similarity == "cosine"
        return EMPTY[self.empty or ("neighbour" if is_cosine else "out")]

    @property
    def _is_linear(self):
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _dtype(self):
        return np.float64 if self.rank is None else np.float32

    @property
    def _cost(self):
        return float(self.tuned_.get("C", self.C))

    def _margins(self):
        return Margins(self.labels, self.goal, self._cost, float(self.tol))

    def _set_progress(self, objectives, gap, missed, converged):
        """Take what training has measured; warn if it has not converged."""
        if not converged:
            warnings.warn(
                f"MML stopped after max_iter == {self.max_iter} passes with a gap of "
                f"{gap:.3g} at an objective of {objectives[-1]:.3g}; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5 if self.solver == "fast" else 4,
            )
        self.objectives_, self.n_iter_ = objectives, len(objectives)
        self.objective_ = objectives[-1] if objectives else 0.0
        self.dual_gap_, self.max_violation_ = gap, missed

    def _set_trained(self, ascent, sizes):
        """Take the weights that were learned."""
        self._set_progress(ascent.objectives, ascent.gap, ascent.missed, ascent.converged)
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
        """Return what was learned as plain arrays.

        With ``solver="exact"``, only for a linear kernel, and not for a function as a similarity.
        """
        if self.solver == "exact":
            if not self._is_linear or callable(self.similarity):
                name = "similarity" if self._is_linear else "kernel"
                raise ValueError(
                    f"{name} == {getattr(self, name)!r} cannot be stored in a file; "
                    "use kernel='linear', and a similarity by name or as a matrix."
                )
            return {"set_weights": self._list_scorer.set_weights, **self._label_arrays()}
        return {"weights": self._weights, "vectors": self._vectors, **self._label_arrays()}

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        if self.solver == "exact":
            sizes = _check_set_weights(arrays, len(labels), n_words, empty=self._empty.is_answer)
            self._restore_labels(arrays, labels, check_tuned(tuned, TUNED))
            set_list = SetList.of_sizes(self._columns.size, sizes)
            self.n_features_in_ = n_words
            self._set_list_scorer(set_list, LinearScores(arrays["set_weights"]), single=False)
            return self
        sizes = check_arrays(arrays, MARGINS, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        if not 2 <= sizes["n_sizes"] <= sizes["n_columns"] + 1 or not sizes["rank"]:
            raise ValueError(
                f"there are vectors for {sizes['n_sizes']} sizes of label sets, "
                f"must be for 2 to {sizes['n_columns'] + 1}"
            )
        self._restore_labels(arrays, labels, check_tuned(tuned, TUNED))
        self._set_weights(arrays["vectors"], arrays["weights"])
        return self

    def held_out_scores(self, X, Y, folds):
        """Return the margins of held-out documents; if ``C`` is tuned, those of the best one."""
        return score_held_out(self, X, Y, folds)

    # Prediction

    def _allow(self, places):
        """Predict only labels at these places of the columns."""
        if self.solver == "exact":
            self._scorer = self._list_scorer.restrict_to(places)
            return
        self._scorer = SetScorer(
            self._weights,
            self._vectors,
            self._columns,
            places,
            n_labels=self.classes_.size,
            single=self._form.kind == "single",
            has_empty=self._empty.is_answer,
        )

    def restrict_to(self, allowed):
        """Return a copy that predicts only the labels where ``allowed`` is true."""
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
            return special.softmax(self._scorer.label_scores(X), axis=1)
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
                f"{MIN_DOCS} documents."
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
        if self.is_fitted and "set_curve" not in self.tuned_:
            return f"MML needs at least {MIN_DOCS} documents to calibrate it"
        return ""

    def lead(self, X):
        """Return the score of the best label set minus that of the second best.

        It is ``inf`` where there is only one set.
        """
        check_is_fitted(self)
        return self._scorer.leads(self._check_words(X))

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return each document's best label sets, exactly, with a bound on every other set.

        The bound is the score of the next best set. A document with no known words has the most
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
        check_scalar(n_best, "n_best", Integral, min_val=1, max_val=MAX_SETS)
        X, n_sets = self._check_words(X), int(n_best) + 1
        Y, scores = self._scorer.n_best(X, n_sets)
        rows = [tuple(labels) for labels in LabelSpace(self.classes_.tolist()).decode(Y)]
        n_listed = np.isfinite(scores).sum(axis=1).tolist()
        sets = [rows[k * n_sets :][:n] for k, n in enumerate(n_listed)]
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

    def label_evidence(self, x, labels) -> LabelEvidence:
        """Return what the margins of labels (columns of ``classes_``) are made of.

        ``x`` is one document. The margin of a label is the score of the best set with it minus that
        of the best set without it, and each is a sum over words. An infinite margin, of a label
        without documents or of the only one, is not made of words.
        """
        check_is_fitted(self)
        x = self._check_words(x)
        by_word = np.zeros((x.nnz, len(labels)))
        margins = self._scorer.assess(x)[1][0, labels]
        is_sum = np.isfinite(margins)
        for k in np.flatnonzero(is_sum):
            label = labels[k]
            others = np.ones(self.classes_.size, dtype=bool)
            others[label] = False
            for sign, sets in (
                (1.0, self.best_with(x, label)),
                (-1.0, self.restrict_to(others).predict_indicator(x)),
            ):
                by_word[:, k] += sign * self._word_contributions(x, sets)[1].sum(axis=1)
        return LabelEvidence(x.data, by_word, np.where(is_sum, 0.0, margins))

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
            check_cost(self.C, "C")
        check_name(self.solver, "solver", ("fast", "exact"))
        self._check_similarity()
        self._check_kernel()
        if self.empty is not None:
            check_name(self.empty, "empty", tuple(EMPTY))
        check_name(self.labels, "labels", ("all", "neighbours"))
        check_name(self.goal, "goal", ("f", "exact"))
        if self.rank is not None:
            check_scalar(self.rank, "rank", Integral, min_val=1)
        check_number(self.tol, "tol", min_val=0, include_boundaries="neither")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.calibrate, "calibrate", (Integral, np.bool_), min_val=0, max_val=1)

    def _check_similarity(self):
        known = ("dice", "cosine") if self.solver == "fast" else ("dice", "cosine", "identity")
        if isinstance(self.similarity, str) and self.similarity != "identity":
            check_name(self.similarity, "similarity", known)
        elif self.solver == "fast":
            raise ValueError(
                f"similarity == {self.similarity!r} requires solver='exact'; solver == 'fast' has "
                "dice and cosine."
            )

    def _check_kernel(self):
        if not callable(self.kernel):
            check_name(self.kernel, "kernel", ("linear", "precomputed"))
        if not self._is_linear and self.solver == "fast":
            raise ValueError(
                f"kernel == {self.kernel!r} requires solver='exact'; solver == 'fast' has linear."
            )
        if self._is_precomputed and self.needs_documents:
            raise ValueError(
                "kernel == 'precomputed' has no documents to tune on; give C as a number, and "
                "calibrate=False."
            )

    def _check_warm(self, warm, rows, n_docs):
        if self.solver == "exact" or warm.solver == "exact":
            raise ValueError("warm requires solver == 'fast'; the exact solver always starts cold.")
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


def _check_set_weights(arrays, n_labels, n_words, *, empty):
    """Return the sizes of the sets that have weights; raise if arrays do not fit together.

    They are either all sets of the labels that have documents, with or without the empty set, or
    the single labels alone.
    """
    n_sets = check_arrays(arrays, SET_ARRAYS, n_labels=n_labels, n_words=n_words)["n_sets"]
    check_label_arrays(arrays)
    n_columns = arrays["columns"].size
    if n_sets == n_columns:
        return range(1, 2)
    if n_columns > 60 or n_sets != 2**n_columns - (not empty):
        raise ValueError(f"there are weights of {n_sets} sets of {n_columns} labels, must be all")
    return range(0 if empty else 1, n_columns + 1)
