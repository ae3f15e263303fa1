"""Maximal margin labeling."""

from __future__ import annotations

import warnings
from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from polytopic.labels import read_targets
from polytopic.models import margin_tuning
from polytopic.models.checks import check_as_many, check_name, check_number_or, is_auto
from polytopic.models.label_embedding import embed_sizes, rotated
from polytopic.models.margin_reasons import MarginReasons
from polytopic.models.margin_training import train
from polytopic.parameters import check_number
from polytopic.text.weights import unit_rows


class MML(MarginReasons):
    r"""Maximal margin labeling: label sets as classes, similar ones close to each other.

    A label set :math:`\lambda` has an embedding :math:`\phi(\lambda)` whose inner products are the
    similarities of label sets, and a document the set that scores best ([1]_, Eq. (5)):

    .. math:: f(x) = \arg\max_\lambda \langle W x, \phi(\lambda) \rangle

    over all label sets that are not empty. The weights have the largest margin between a
    document's own set and the others (Eq. (6)). Rows of ``X`` are divided by their length first.

    Parameters
    ----------
    C : float or "auto", default=1.0
        What a violated margin costs. "auto" takes 0.3 or 1, by the samples F1 (or subset accuracy,
        as ``goal`` says) on held-out documents: of 12000 at most, each of three folds in its turn
        or, from 2000 documents on, one of them.
    similarity : {"dice", "cosine"}, default="dice"
        Similarity of label sets. The empty set is left out for Dice, and at the origin for cosine.
    labels : {"all", "neighbours"}, default="all"
        The label sets that a document is kept apart from: all, through working sets with the
        most violated one, or, as in [1]_, those with one label more or less.
    goal : {"f", "exact"}, default="f"
        What all labels are kept apart by. "exact" has the margin of [1]_ in units of the distance
        between the sets, and a slack for each set in the working set; "f" asks for a margin of
        1 - Dice, with one slack a document. Neighbours always have the margin of [1]_.
    rank : int or None, default=4
        Dimensions of the embedding of sizes for Dice; None is exact, and in double precision.
    tol : float, default=0.1
        Training ends when the gap between the objectives is this part of the dual one.
    max_iter : int, default=100
        Passes over the documents at most.
    calibrate : bool, default=False
        Whether to fit probabilities on documents that are held out so, too.
    random_state : int, RandomState or None, default=0
        The order in which documents are visited.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    chosen_ : dict
        What was chosen by documents: ``C``, and the curves of probabilities.
    objective_ : float
        The dual objective.
    dual_gap_ : float
        Gap between the primal and the dual objective over the working sets (for ``goal="f"``,
        over all label sets), as the last pass saw it while the weights still moved.
    max_violation_ : float
        The largest violation by a label set outside its document's working set, in the last pass.
    n_iter_ : int
        Passes run.

    Notes
    -----
    ``decision_function`` gives the score of the best set with a label less that of the best
    without it, ``predict_proba`` its probability by isotonic regression on held-out documents
    or, without ``calibrate``, the logistic function of the score, which is not calibrated.

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # directions alone do not tell blobs apart
        return tags

    @property
    def needs_documents(self):
        """Whether something is to be chosen by documents."""
        return is_auto(self.C) or self.calibrate

    # Learning

    def fit(self, X, y, *, chosen=None, warm=None, rows=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Weights of words, such as ltc or tf-idf.
        y : indicator of shape (n_docs, n_labels), or one collection of names a document
            Labels; 1-D means one label a document. Documents without a label or without a word
            are not learned from.
        chosen : dict, default=None
            What an earlier fit chose (``chosen_``), to be kept. Where it lacks a ``C`` that is
            to be chosen, all is chosen again.
        warm : MML, default=None
            A fitted model whose dual variables to start from. The result is then another
            approximation of the best weights than that of a cold start. For ``labels="all"``.
        rows : array of shape (n_docs,), default=None
            With ``warm``, the row that each document had in the model's ``X``, -1 for none.
        """
        self._check_parameters()
        targets = read_targets(y)
        X = self._check_words(X, reset=True)
        check_as_many(X, targets.Y)
        documents = targets.Y.getnnz(axis=1) > 0
        if not documents.any():
            raise ValueError("Y has no labelled document; at least one is needed.")
        if warm is not None:
            self._check_warm(warm, rows, X.shape[0])
        self._set_labels(targets)
        known = np.flatnonzero(documents & (X.getnnz(axis=1) > 0))
        X = unit_rows(X if known.size == X.shape[0] else X[known])
        Y = targets.Y[known][:, self._columns]
        if chosen is None or (is_auto(self.C) and "C" not in chosen):
            self.chosen_ = margin_tuning.chosen(self, X, Y)
        else:
            self.chosen_ = dict(chosen)
        self._learn(X, Y, known, warm, rows)
        return self

    def fit_documents(self, documents, labels, sets, set_docs, *, chosen=None):
        """Learn from documents that are elsewhere, in parts.

        Parameters
        ----------
        documents : object
            It has ``sizes``, how many documents have so many labels; ``choose(model)``, which
            gives what :func:`polytopic.models.margin_tuning.chosen` does; and
            ``train(sizes, dtype, **settings)``, which gives the state of training.
        labels : sequence of str
            The labels of columns, sorted.
        sets : csr_matrix of shape (n_sets, n_labels)
            The label sets that occur, in sorted order.
        set_docs : ndarray of shape (n_sets,)
            How many documents have each.
        chosen : dict, default=None
            What an earlier fit chose, to be kept.
        """
        self._check_parameters()
        self._set_label_sets(labels, sets, set_docs)
        if chosen is None and self.needs_documents:
            chosen = documents.choose(self)
        self.chosen_ = dict(chosen or {})
        sizes = self._embed(len(labels), documents.sizes)
        self._take_over(documents.train(sizes, self._dtype, **self._settings()), sizes)
        return self

    def _learn(self, X, Y, known, warm=None, rows=None):
        """Train on documents of unit length, all with labels."""
        single = self._form.kind == "single" and self.labels == "all"
        sizes = self._embed(1 if single else Y.shape[1], np.bincount(Y.getnnz(axis=1), minlength=2))
        start = None if warm is None else warm.duals_over(self.classes_[self._columns], rows, known)
        trained = train(X, Y, sizes, self._dtype, **self._settings(), start=start)
        self._take_over(trained, sizes)
        trained.corpus = None  # only the dual variables are needed from here on
        self._duals = trained, known

    def _embed(self, n_labels, used):
        return embed_sizes(self.similarity, n_labels, used, self.rank)

    @property
    def _dtype(self):
        return np.float64 if self.rank is None else np.float32

    def _settings(self):
        return {
            "labels": self.labels,
            "goal": self.goal,
            "C": float(self.chosen_.get("C", self.C)),
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "order": check_random_state(self.random_state),
        }

    def _take_over(self, trained, sizes):
        """Take the weights that were learned, and tell if that has not come to an end."""
        if not trained.converged:
            warnings.warn(
                f"MML stopped after max_iter == {self.max_iter} passes with a gap of "
                f"{trained.gap:.3g} at an objective of {trained.objectives[-1]:.3g}; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.objectives_, self.n_iter_ = trained.objectives, len(trained.objectives)
        self.objective_ = trained.objectives[-1] if trained.objectives else 0.0
        self.dual_gap_, self.max_violation_ = trained.gap, trained.missed
        self._set_weights(*rotated(sizes.vectors, trained.W))

    def duals_over(self, classes, rows, known):
        """Return the dual variables of documents by row, over other labels, to start from.

        ``rows`` has this model's row of each document, and ``known`` those documents that count.
        """
        (trained, own), rows = self._duals, np.asarray(rows)
        place = np.full(rows.max(initial=-1) + 2, -1)
        place[own[own < place.size - 1]] = np.flatnonzero(own < place.size - 1)
        column = {label: k for k, label in enumerate(classes.tolist())}
        names = self.classes_[self._columns].tolist()
        return trained.sets_of(place[rows[known]], [column.get(name, -1) for name in names])

    # Checks

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
            raise ValueError("warm is for labels='all'; neighbours always start cold.")
        if not hasattr(warm, "_duals"):
            raise ValueError("warm has no dual variables; give a model that was fitted here.")
        if np.shape(rows) != (n_docs,):
            raise ValueError(f"rows must have one row of warm's X, or -1, for each of {n_docs}.")
