"""Maximal margin labeling."""

from __future__ import annotations

import warnings
from collections import Counter
from copy import copy
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from polytopic.counts import canonical_counts
from polytopic.kernels import labeling
from polytopic.kernels.blocks import map_rows
from polytopic.labels import LabelSpace, read_targets, with_fallback
from polytopic.models import margin_tuning
from polytopic.models.checks import check_as_many, check_name, check_number_or, check_sets, is_auto
from polytopic.models.classifier import LabelSetClassifier
from polytopic.models.label_embedding import by_vectors, embed_sizes, rotated
from polytopic.models.label_sets import LabelSets, stack_sets
from polytopic.models.margin_training import train
from polytopic.models.words import Account, WordLabels, softmax

MOST_SETS = 1 << 16


class MML(LabelSetClassifier, BaseEstimator):
    r"""Maximal margin labeling: label sets as classes, similar ones close to each other.

    A label set :math:`\lambda` has an embedding :math:`\phi(\lambda)` whose inner products are the
    similarities of label sets, and a document the set that scores best ([1]_, Eq. (5)):

    .. math:: f(x) = \arg\max_\lambda \langle W x, \phi(\lambda) \rangle

    over all label sets that are not empty. The weights have the largest margin between a
    document's own set and the others (Eq. (6)). Rows of ``X`` are divided by their length first.

    Parameters
    ----------
    C : float or "auto", default=1.0
        What a violated margin costs. "auto" takes the best labelling F of 0.1, 0.3, 1 and 3 (or
        exact match, as ``goal`` says) in cross-validation on 3000 documents at most.
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
        Whether to fit probabilities on held-out documents, in three folds of 12000 at most.
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
            What an earlier fit chose (``chosen_``), to be kept.
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
        X, Y = X[known], targets.Y[known][:, self._columns]
        X = normalize(X) if known.size else X  # scikit-learn refuses to normalize nothing
        self.chosen_ = dict(chosen or {})
        if chosen is None:
            margin_tuning.tune(self, X, Y)
        self._learn(X, Y, known, warm, rows)
        return self

    def _learn(self, X, Y, known, warm=None, rows=None):
        """Train on documents of unit length, all with labels."""
        single = self._form.kind == "single" and self.labels == "all"
        sizes = embed_sizes(
            self.similarity,
            1 if single else Y.shape[1],
            np.bincount(Y.getnnz(axis=1), minlength=2),
            self.rank,
        )
        start = None if warm is None else warm.duals_over(self.classes_[self._columns], rows, known)
        trained = train(
            X,
            Y,
            sizes,
            np.float64 if self.rank is None else np.float32,
            labels=self.labels,
            goal=self.goal,
            C=float(self.chosen_.get("C", self.C)),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            order=check_random_state(self.random_state),
            start=start,
        )
        if not trained.converged:
            warnings.warn(
                f"MML stopped after max_iter == {self.max_iter} passes with a gap of "
                f"{trained.gap:.3g} at an objective of {trained.objectives[-1]:.3g}; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.objectives_, self.n_iter_ = trained.objectives, len(trained.objectives)
        self.objective_ = trained.objectives[-1] if trained.objectives else 0.0
        self.dual_gap_, self.max_violation_ = trained.gap, trained.missed
        self._duals = trained, known
        self._set_weights(*rotated(sizes.vectors, trained.W))

    def _set_labels(self, targets):
        """Take over the labels and how often they and their sets occur."""
        names = any(isinstance(label, str) for label in targets.labels)
        self.classes_ = np.array(targets.labels, dtype=object if names else None)
        self._form = targets.form
        self.label_docs_ = targets.Y.getnnz(axis=0)
        self._columns = np.flatnonzero(self.label_docs_)
        Y = targets.Y.sorted_indices()
        sets = Counter(
            tuple(Y.indices[start:stop].tolist())
            for start, stop in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)
            if stop > start
        )
        commonest = min(sets, key=lambda labels: (-sets[labels], labels))
        self._fallback = np.array(commonest, dtype=np.int64)
        self._n_docs, self._fallback_docs = sets.total(), sets[commonest]

    def _set_weights(self, vectors, weights):
        self._vectors, self._weights = vectors, weights
        self.n_features_in_ = weights.shape[0]
        self._open = np.arange(self._columns.size)  # of the columns, those that may be answered

    def duals_over(self, classes, rows, known):
        """Return the dual variables of documents by row, over other labels, to start from.

        ``rows`` has this model's row of each document, and ``known`` those documents that count.
        """
        trained, own = self._duals
        place = np.full(rows.max(initial=-1) + 2, -1)
        place[own[own < place.size - 1]] = np.flatnonzero(own < place.size - 1)
        column = {label: k for k, label in enumerate(classes.tolist())}
        names = self.classes_[self._columns].tolist()
        return trained.sets_of(place[rows[known]], [column.get(name, -1) for name in names])

    # Arrays for files

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return {
            "weights": self._weights,
            "vectors": self._vectors,
            "columns": self._columns,
            "fallback": self._fallback,
            "label_docs": self.label_docs_,
            "docs": np.array([self._n_docs, self._fallback_docs]),
        }

    def from_arrays(self, arrays, *, labels, n_words, chosen=None):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit."""
        self._check_parameters()
        weights, vectors, columns = (arrays[name] for name in ("weights", "vectors", "columns"))
        if (
            weights.shape != (n_words, vectors.shape[1], columns.size)
            or arrays["label_docs"].shape != (len(labels),)
            or arrays["docs"].shape != (2,)
            or not arrays["fallback"].size
            or not min(columns.min(), arrays["fallback"].min()) >= 0
            or not max(columns.max(), arrays["fallback"].max()) < len(labels)
            or len(vectors) > columns.size + 1
        ):
            raise ValueError("arrays of the model have other sizes than its labels and words")
        if not all(np.isfinite(array).all() for array in (weights, vectors)):
            raise ValueError("arrays of the model hold infinite weights")
        names = any(isinstance(label, str) for label in labels)
        self.classes_ = np.array(labels, dtype=object if names else None)
        self._form = read_targets([["a"]]).form
        self.chosen_, self.label_docs_ = dict(chosen or {}), arrays["label_docs"]
        self._columns, self._fallback = columns, arrays["fallback"]
        self._n_docs, self._fallback_docs = arrays["docs"].tolist()
        self._set_weights(vectors, weights)
        return self

    # Checks

    def _check_parameters(self):
        if not is_auto(self.C):
            check_number_or(" or 'auto'", self.C, "C")
            check_scalar(self.C, "C", Real, min_val=0, include_boundaries="neither")
            if not np.isfinite(self.C):
                raise ValueError(f"C == {self.C}, must be finite.")
        check_name(self.similarity, "similarity", ("dice", "cosine"))
        check_name(self.labels, "labels", ("all", "neighbours"))
        check_name(self.goal, "goal", ("f", "exact"))
        if self.rank is not None:
            check_scalar(self.rank, "rank", Integral, min_val=1)
        check_scalar(self.tol, "tol", Real, min_val=0, include_boundaries="neither")
        if not np.isfinite(self.tol):
            raise ValueError(f"tol == {self.tol}, must be finite.")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)

    def _check_warm(self, warm, rows, n_docs):
        if self.labels != "all" or warm.labels != "all":
            raise ValueError("warm is for labels='all'; neighbours always start cold.")
        if not hasattr(warm, "_duals"):
            raise ValueError("warm has no dual variables; give a model that was fitted here.")
        if np.shape(rows) != (n_docs,):
            raise ValueError(f"rows must have one row of warm's X, or -1, for each of {n_docs}.")

    def _check_words(self, X, *, reset=False):
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        return canonical_counts(X)

    # Answers

    @property
    def needs_documents(self):
        """Whether something is to be chosen by documents."""
        return is_auto(self.C) or self.calibrate

    @property
    def fallback(self):
        """Columns of the most frequent label set, which documents without words get."""
        return self._fallback

    def restricted(self, allowed):
        """Return this model with some of its labels only: those where ``allowed`` is true."""
        model = copy(self)
        model._open = np.flatnonzero(allowed[self._columns])
        if not model._open.size:
            raise ValueError("none of the labels that are allowed has a document.")
        if not allowed[self._fallback].all():
            docs = np.where(allowed, self.label_docs_, -1)
            model._fallback = np.argmax(docs, keepdims=True)
        return model

    def predict(self, X):
        """Return each document's labels, in the form of the ``Y`` that was learned.

        A document without a known word gets the most frequent label set.
        """
        Y = self.choose(X)
        return self.classes_[Y.indices] if self._form.kind == "single" else self._form.give_back(Y)

    def choose(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = self._check_words(X)
        return with_fallback(X, self._marked(X, labeling.best_sets), self._fallback)

    def decision_function(self, X):
        """Return the score of the best set with each label less that of the best without it.

        It is ``-inf`` for a label without documents, and ``inf`` for one that is alone.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind != "single":
            return self._margins(X)
        scores = self._label_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X):
        """Return one probability for each document and label; see the notes of the class."""
        check_is_fitted(self)
        X = self._check_words(X)
        if self._form.kind == "single":
            return softmax(self._label_scores(X))
        return self._probabilities(X, self._margins(X))

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), margins and probabilities."""
        sets, X = self.choose(X), self._check_words(X)
        margins = self._margins(X)
        return sets, margins, self._probabilities(X, margins)

    def set_proba(self, X):
        """Return the probability that the whole label set of each document is right.

        By isotonic regression on its lead over the second best set, on held-out documents.
        """
        check_is_fitted(self)
        if "set_curve" not in self.chosen_:
            raise ValueError(
                "MML knows no probability of label sets; fit it with calibrate=True, on "
                f"{margin_tuning.FEWEST} documents or more."
            )
        X = self._check_words(X)
        proba = np.interp(self.lead(X), *self.chosen_["set_curve"])
        return np.where(X.getnnz(axis=1) > 0, proba, self._fallback_docs / self._n_docs)

    def lead(self, X):
        """Return how much more the best label set scores than the second best."""
        scores = self._n_best(self._check_words(X), 2)[1]
        return np.where(np.isfinite(scores[:, 1]), scores[:, 0] - scores[:, 1], 0.0)

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return each document's best label sets, exactly, with a bound on every other set.

        ``log_posterior`` has their scores, and ``bound`` is the score of the next best set.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Weights of words.
        n_best : int, default=3
            Label sets to give, at most 65536.
        """
        check_is_fitted(self)
        if self._form.kind == "single":
            raise ValueError(
                "y was 1-D, one label a document, so there are no label sets; use predict_proba."
            )
        check_scalar(n_best, "n_best", Integral, min_val=1, max_val=MOST_SETS)
        n_sets = int(n_best) + 1
        Y, scores = self._n_best(self._check_words(X), n_sets)
        rows = LabelSpace(self.classes_.tolist()).decode(Y)
        sets = [
            [tuple(labels) for labels in rows[start : start + n_best] if labels]
            for start in range(0, len(rows), n_sets)
        ]
        return LabelSets(sets, scores[:, :-1], scores[:, -1])

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return each document's best label set that holds a label (a column), as an indicator."""
        check_is_fitted(self)
        X = self._check_words(X)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        place = np.flatnonzero(self._columns[self._open] == label)
        if not place.size:
            name = self.classes_[label]
            raise ValueError(f"label {str(name)!r} has no documents, or is not allowed.")
        wanted = int(place[0])
        return self._marked(X, lambda Z, sizes, out: labeling.best_with(Z, sizes, wanted, out))

    def _sizes(self):
        n_labels = 1 if self._form.kind == "single" else self._open.size
        vectors = self._vectors[: n_labels + 1].astype(self._weights.dtype)
        return by_vectors(vectors, empty=False)

    def _map_scores(self, function, X, answers=1):
        """Call ``function(Z, rows)`` for blocks of documents with their scores.

        Where it gives many answers a document, blocks are smaller.
        """
        X = normalize(X).astype(self._weights.dtype)
        weights = self._weights
        if X.shape[1] != weights.shape[0]:
            raise ValueError(f"X has {X.shape[1]} words, the model {weights.shape[0]}.")

        def block(data, indices, indptr, rows):
            Z = np.empty((indptr.size - 1, *weights.shape[1:]), weights.dtype)
            labeling.project(data, indices, indptr, weights, Z)
            if self._open.size < self._columns.size:
                Z = np.ascontiguousarray(Z[:, :, self._open])
            return function(Z, rows)

        return map_rows(block, X, (8 + answers) * self._columns.size)

    def _marked(self, X, mark):
        """Return the label sets that ``mark(Z, sizes, chosen)`` marks."""
        sizes, columns = self._sizes(), self._columns[self._open]

        def block(Z, rows):
            chosen = np.zeros((Z.shape[0], columns.size), dtype=bool)
            mark(Z, sizes, chosen)
            return chosen.sum(axis=1), columns[np.nonzero(chosen)[1]]

        return stack_sets(self._map_scores(block, X), self.classes_.size)

    def _margins(self, X):
        sizes, columns = self._sizes(), self._columns[self._open]
        margins = np.full((X.shape[0], self.classes_.size), -np.inf)

        def block(Z, rows):
            out = np.empty((Z.shape[0], columns.size))
            labeling.margins(Z, sizes, out)
            margins[rows, columns] = out

        self._map_scores(block, X)
        return margins

    def _label_scores(self, X):
        """Return the score of each single label."""
        scores = np.full((X.shape[0], self.classes_.size), -np.inf)
        vector = self._vectors[1].astype(self._weights.dtype)

        def block(Z, rows):
            scores[rows, self._columns[self._open]] = np.einsum("q,dqj->dj", vector, Z)

        self._map_scores(block, X)
        return scores

    def _n_best(self, X, n_best):
        """Return the best label sets, ``n_best`` rows a document, and their scores."""
        sizes, columns = self._sizes(), self._columns[self._open]
        scores = np.empty((X.shape[0], n_best))

        def block(Z, rows):
            found = np.zeros((Z.shape[0], n_best, columns.size), dtype=bool)
            labeling.n_best_sets(Z, sizes, n_best, found, scores[rows])
            return found.sum(axis=2).ravel(), columns[np.nonzero(found)[2]]

        return stack_sets(self._map_scores(block, X, n_best), self.classes_.size), scores

    def _probabilities(self, X, margins):
        if "label_curve" not in self.chosen_:
            return expit(margins)
        proba = np.interp(margins, *self.chosen_["label_curve"])
        proba[X.getnnz(axis=1) == 0] = self.label_docs_ / self._n_docs
        proba[np.isneginf(margins)] = 0.0
        return proba

    # Reasons

    temperature_ = 1.0

    @property
    def world_log_proba_(self):
        """What words say without labels: nothing."""
        return np.zeros(self.n_features_in_)

    def log_prior(self, Y):
        """Return zero for each label set: the words say all."""
        return np.zeros(check_sets(None, Y, self.classes_).shape[0])

    def account(self, x, y) -> Account:
        """Return what one document's score of a label set is made of, for words of unit weight."""
        x = self._check_words(x)
        length = sparse.linalg.norm(x)
        words = self._word_scores(x, y).sum(axis=1)
        return Account(words / length if length else words, 0.0)

    def label_contributions(self, x, y):
        """Return what each stored word adds to the score for each label of the set."""
        x = normalize(self._check_words(x))
        return x.data[:, None] * self._word_scores(x, y)

    def _word_scores(self, x, y):
        """Return the weights of a document's words for the labels of a set, at its size."""
        y = sparse.csr_matrix(y)
        size = min(y.nnz, len(self._vectors) - 1)
        column = np.full(self.classes_.size, -1)
        column[self._columns] = np.arange(self._columns.size)
        places = column[y.indices]
        weights = self._weights[x.indices][:, :, places].astype(np.float64)
        scores = np.einsum("q,wqj->wj", self._vectors[size], weights)
        scores[:, places < 0] = 0.0  # labels without documents have no words
        return scores

    def word_labels(self, X, Y=None) -> WordLabels:
        """Share each word among the labels of its document, by what speaks for them.

        Words that speak for none of the labels are shared equally.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        sets = self.choose(X) if Y is None else check_sets(X, Y, self.classes_)
        doc, word, label, share = [], [], [], []
        for d in range(X.shape[0]):
            x, y = X[d], sets[d]
            speaks = np.maximum(x.data[:, None] * self._word_scores(x, y), 0.0)
            speaks[speaks.sum(axis=1) == 0] = 1.0
            doc.append(np.full(speaks.size, d))
            word.append(np.repeat(x.indices, y.nnz))
            label.append(np.tile(y.indices, x.nnz))
            share.append((speaks / speaks.sum(axis=1, keepdims=True)).ravel())
        return WordLabels(*(np.concatenate(part) for part in (doc, word, label, share)))

    def top_words(self, label, k):
        """Return the ``k`` words that speak most for a label (a column), and their weights."""
        place = np.flatnonzero(self._columns == label)
        if not place.size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        weights = self._weights[:, :, int(place[0])].astype(np.float64) @ self._vectors[1]
        top = np.argsort(-weights, kind="stable")[:k]
        return top, weights[top]
