"""The estimator of the correlated labeling model."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from polytopic.array_specs import DOUBLE, REAL, ArraySpec, check_arrays, check_memory
from polytopic.counts import LARGEST
from polytopic.labels import read_targets, stack_sets, with_fallback
from polytopic.models.base import LABEL_ARRAYS, DocumentModel, check_label_arrays
from polytopic.models.checks import (
    ROUNDING,
    SMALLEST_DIVISOR,
    Ranges,
    check_name,
    check_pseudo_count,
    check_same_length,
    check_sets,
    check_size,
    check_tuned,
    check_words,
    is_auto,
)
from polytopic.models.col.label_prior import LabelPrior, cholesky, fit_label_prior
from polytopic.models.col.prediction import DEFAULTS, Predictor, log_odds, tune
from polytopic.models.col.topics import Topics
from polytopic.models.col.training import TopicDocuments, label_topics, random_topics
from polytopic.models.results import LabelSets, WordLabels, WordScores
from polytopic.parameters import check_number

TOPICS_PER_LABEL, MAX_TOPICS = (1, 8), 2000  # that n_topics="auto" tries
EARLIER_TOPICS_PER_LABEL = 3  # in files of "auto" that were saved before it was tuned
STEPS, PASSES = 50, 2  # defaults of max_iter, without and with batches
MIN_DOCS = 30  # needed for tuning
MAX_HELD_OUT, TUNING_STEPS = 3000, 8
SMALLEST_SINGLE = float(np.finfo(np.float32).smallest_subnormal)
SINGLE_ROUNDING = 1e-3  # largest error of sums of probabilities, in single precision

# The arrays of a model in files: topics of labels, words of topics, the prior of labels, the trace
# of learning, and the labels
TOPICS = LABEL_ARRAYS | {
    "alpha": ArraySpec(DOUBLE, ("n_columns", "n_topics"), SMALLEST_DIVISOR, LARGEST),
    "beta": ArraySpec(REAL, ("n_words", "n_topics"), SMALLEST_SINGLE, 1 + ROUNDING),
    "label_topics": ArraySpec(DOUBLE, ("n_columns", "n_topics"), 0, 1 + ROUNDING),
    "mean": ArraySpec(DOUBLE, ("n_columns",), -1e3, 1e3),
    "covariance": ArraySpec(DOUBLE, ("n_columns", "n_columns"), -1e6, 1e6),
    "size_proba": ArraySpec(DOUBLE, ("n_sizes",), 0, 1),
    "words": ArraySpec(DOUBLE, ("n_words",), 0, LARGEST),
    "elbo": ArraySpec(DOUBLE, ("n_steps",)),
    "label_objective": ArraySpec(DOUBLE, ("n_label_steps",)),
}
TUNED: Ranges = {
    "threshold": (-LARGEST, 0),  # below the best label's score
    "temperature": (1e-6, 1e6),
    "topics_per_label": (1, MAX_TOPICS),
    "label_curve": None,
}

FAMILIES = {"joint": "joint", "paper": "factored"}  # of posteriors, by ``inference``


class CoL(DocumentModel):
    r"""Correlated labeling model: correlated labels, each a mixture of topics of words.

    A document draws its labels from logistic normal shares, :math:`\eta \sim N(\mu, \Sigma)`,
    and topic shares :math:`\theta_m \sim \mathrm{Dir}(\alpha_{c_m})` for each label. Each word
    comes from one of the labels with equal probability, then from one of its topics :math:`z`,
    and is drawn from :math:`\beta_z` ([1]_, Eq. (2)). Given the labels, :math:`\mu, \Sigma` and
    :math:`\alpha, \beta` are learned independently.

    Parameters
    ----------
    n_topics : int or "auto", default="auto"
        Number of topics. "auto" means one per label, or eight, whichever has the higher
        samples-averaged F1 on held-out documents, but at most 2000 topics; with fewer than 30
        documents, one per label. Eight is the ratio of [1]_ on Reuters. With fewer topics than
        labels, labels share topics.
    inference : {"joint", "paper"}, default="joint"
        The family of posteriors. "joint" keeps the label and the topic of a word together, has a
        tighter bound, and is fast. "paper" has independent factors for them, updated by Eq. (4)
        to (6) of [1]_ over all topics; with it, :math:`\mu` and :math:`\Sigma` are those of Eq.
        (10) and (11).
    init : {"labels", "random"}, default="labels"
        What topics start from: the words of each label, which gives every label its own topics
        and the best predictions; or the words of the corpus at random weights, so that labels
        share topics.
    covariance : {"mcem", "variational"}, default="mcem"
        How to learn :math:`\mu` and :math:`\Sigma`: by Monte Carlo EM, or by the variational
        updates of [1]_, which find little correlation if most documents have one label.
    predict_mode : {"weights", "sets", "paper"}, default="weights"
        How to find labels: by class weights, their shares of the document's words; by a greedy
        search for the most probable label set; or, as in [1]_, by the posterior of each label
        alone, given :math:`\mu` and :math:`\Sigma`. Weights and posteriors are compared with a
        fraction of the best label's, which is tuned on held-out documents.
    smoothing : float, default=0.05
        Pseudo-count of every pair of a topic and a word.
    batch_size : int, default=None
        Learn stepwise from batches of this many documents, in memory that grows with the batch;
        by default from all documents at once.
    max_iter : int, default=None
        Largest number of EM steps, by default 50; with batches, passes over them, by default 2.
    tol : float, default=1e-3
        EM ends once a step raises the bound by less than this fraction of it.
    random_state : int, RandomState or None, default=0
        Selects the documents that topics start from, and those that are held out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    label_mean_ : ndarray of shape (n_labels,)
        :math:`\mu`, centred unless ``inference="paper"``; ``-inf`` for a label without documents.
    label_covariance_ : ndarray of shape (n_labels, n_labels)
        :math:`P \Sigma P` with :math:`P = I - 1 1^\top / C`, the part of :math:`\Sigma` that
        label sets identify; :math:`\Sigma` itself with ``inference="paper"``.
    topic_prior_ : ndarray of shape (n_labels, n_topics)
        :math:`\alpha`; 0 for a label without documents.
    label_topics_ : ndarray of shape (n_labels, n_topics)
        Labels in topic space: the mean posterior topic shares of each label's documents ([1]_,
        Eq. (17)); 0 for a label without documents. With batches, later ones weigh more.
    topic_word_proba_ : ndarray of shape (n_topics, n_words)
        :math:`\beta`.
    word_proba_ : ndarray of shape (n_labels, n_words)
        Word distribution of each label, :math:`\sum_j \bar\alpha_{cj} \beta_j`.
    elbo_ : ndarray
        Lower bound of the documents' log likelihood given their labels, plus the log prior of
        the topics, before each EM step and after the last; it never falls. With batches, one
        value per pass.
    label_objective_ : ndarray
        Mean log likelihood of label sets, or its variational bound, after each step.
    tuned_ : dict
        Settings tuned on held-out documents; ``topics_per_label`` is what "auto" chose.
    n_iter_ : int
        Number of EM steps, or of passes over the batches.

    Notes
    -----
    With ``init="labels"`` every topic starts with one label. With at least as many topics as labels
    it stays with that label; with fewer, labels share topics.

    The model of [1]_ is ``CoL(inference="paper", init="random", covariance="variational",
    predict_mode="paper")``.

    ``decision_function`` returns the log odds of a label's weight (with "paper", of its
    posterior). ``predict_proba`` returns the probability of a label by isotonic regression on
    held-out documents; with "sets", the marginals over the label sets that the search visits;
    with "paper", the posterior of the label alone.

    References
    ----------
    .. [1] Wang, Huang and Zhu, "A Generative Probabilistic Model for Multi-Label Classification",
       ICDM 2008.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = CoL(n_topics=4).fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    """

    name = "col"
    has_word_proba = True
    has_set_posterior = True
    has_topics = True
    can_distribute = True

    def __init__(
        self,
        n_topics="auto",
        *,
        inference="joint",
        init="labels",
        covariance="mcem",
        predict_mode="weights",
        smoothing=0.05,
        batch_size=None,
        max_iter=None,
        tol=1e-3,
        random_state=0,
    ):
        self.n_topics = n_topics
        self.inference = inference
        self.init = init
        self.covariance = covariance
        self.predict_mode = predict_mode
        self.smoothing = smoothing
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # Learning

    def fit(self, X, y, *, tuned=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts, non-negative.
        y : indicator of shape (n_docs, n_labels), or one collection of names per document
            Labels; 1-D means one label per document. Documents without labels are ignored.
        tuned : dict, default=None
            Settings that an earlier fit tuned (``tuned_``), to be used again.
        """
        self._check_parameters()
        targets = read_targets(y)
        X = check_words(self, X, reset=True)
        check_same_length(X, targets.Y)
        labelled = np.flatnonzero(targets.Y.getnnz(axis=1))
        if not labelled.size:
            raise ValueError("Y has no labelled document; at least one is needed.")
        self._set_labels(targets)
        return self._fit_documents(TopicDocuments(X[labelled], targets.Y[labelled]), tuned)

    def fit_documents(self, documents, labels, sets, set_docs, *, tuned=None):
        """Learn from documents that are elsewhere, for example on a cluster.

        Parameters
        ----------
        documents : object
            Has the methods of :class:`~polytopic.models.col.training.TopicDocuments`.
        labels : sequence of str
            Label of each column, sorted.
        sets : csr_matrix of shape (n_sets, n_labels)
            Distinct label sets, sorted.
        set_docs : ndarray of shape (n_sets,)
            Number of documents of each label set.
        tuned : dict, default=None
            Settings that an earlier fit tuned, to be used again.
        """
        self._check_parameters()
        self._set_label_sets(labels, sets, set_docs)
        return self._fit_documents(documents, tuned)

    def _fit_documents(self, documents, tuned):
        self._columns = self._columns[_canonical_order(documents.label_sums(), self._columns)]
        documents = documents.with_labels(self._columns)
        self.tuned_ = self._tune(documents) if tuned is None else dict(tuned)
        sets, docs = documents.label_sets()
        prior, objective = self._learn_prior(sets, docs)
        n_topics = self._count_topics(documents, self.tuned_.get("topics_per_label"))
        trace = self._learn_topics(documents, n_topics, self._n_steps)
        self._set_state(trace.topics, prior, documents.word_sums(), trace.label_topics)
        self.label_objective_, self.elbo_ = np.array(objective), np.array(trace.elbo)
        trace.warn_unless_converged(self._n_steps)
        return self

    def _learn_prior(self, sets, docs):
        """Learn the mean and covariance of labels from distinct label sets."""
        as_published = self.inference == "paper"
        return fit_label_prior(sets, docs, self.covariance, as_published=as_published)

    def _count_topics(self, documents, per_label):
        """Return the number of topics, given how many each label has with "auto"."""
        if not is_auto(self.n_topics):
            return int(self.n_topics)
        per_label = int(per_label or EARLIER_TOPICS_PER_LABEL)
        return min(per_label * documents.label_docs.size, MAX_TOPICS)

    def _learn_topics(self, documents, n_topics, max_iter):
        """Learn topics from documents in which every label occurs."""
        random = check_random_state(self.random_state)
        smoothing = float(self.smoothing)
        start = label_topics if self.init == "labels" else random_topics
        topics = replace(start(documents, n_topics, random), family=FAMILIES[self.inference])
        if self.batch_size is None:
            return documents.fit(
                topics, smoothing=smoothing, max_iter=max_iter, tol=float(self.tol)
            )
        return documents.fit_stepwise(
            topics,
            smoothing=smoothing,
            max_iter=max_iter,
            batch_size=int(self.batch_size),
            random=random,
        )

    def _tune(self, documents):
        """Tune settings on a fifth of the documents, with topics learned from the rest."""
        nonempty, auto = documents.nonempty(), is_auto(self.n_topics)
        single = self._form.kind == "single"  # the best label alone, so only topics are tuned
        if nonempty.size < MIN_DOCS or (single and not auto):
            return DEFAULTS | ({"topics_per_label": TOPICS_PER_LABEL[0]} if auto else {})
        order = check_random_state(self.random_state).permutation(nonempty)
        n_held_out = min(nonempty.size // 5, MAX_HELD_OUT)
        training = documents.take(np.sort(order[n_held_out:]))
        seen = np.flatnonzero(training.label_docs)
        training, prior = training.with_labels(seen), None
        if self.predict_mode != "weights":
            prior, _ = self._learn_prior(*training.label_sets())
        label_docs = self.label_docs_[self._columns[seen]]
        X, Y = documents.rows(order[:n_held_out])
        truth = Y.toarray() > 0
        best, top = {}, -1.0
        for per_label in TOPICS_PER_LABEL if auto else [None]:
            n_topics = self._count_topics(training, per_label)
            topics = self._learn_topics(training, n_topics, min(self._n_steps, TUNING_STEPS)).topics
            predictor = Predictor.build(
                self.predict_mode, topics, prior, label_docs, columns=np.arange(seen.size)
            )
            tuned, f1 = tune(predictor, X, truth[:, seen], truth.sum(axis=1), single=single)
            if f1 > top:
                best, top = tuned | ({"topics_per_label": per_label} if auto else {}), f1
            if n_topics == MAX_TOPICS:
                break
        return best

    def _set_state(self, topics, prior, words, label_topics):
        """Set what was learned, and derive what prediction reads."""
        self._words, self._label_topics = words, label_topics
        self.n_features_in_ = words.size
        self._predictor = Predictor.build(
            self.predict_mode, topics, prior, self.label_docs_[self._columns], self._columns
        )
        world = words + float(self.smoothing)
        self.world_log_proba_ = np.log(world / world.sum())

    @property
    def _n_steps(self):
        if self.max_iter is not None:
            return int(self.max_iter)
        return STEPS if self.batch_size is None else PASSES

    def _check_parameters(self):
        if not is_auto(self.n_topics):
            check_size(self.n_topics, "n_topics")
        check_name(self.inference, "inference", tuple(FAMILIES))
        check_name(self.init, "init", ("labels", "random"))
        check_name(self.covariance, "covariance", ("mcem", "variational"))
        check_name(self.predict_mode, "predict_mode", ("weights", "sets", "paper"))
        check_pseudo_count(self.smoothing, "smoothing")
        for name in ("batch_size", "max_iter"):
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_number(self.tol, "tol", min_val=0)

    # What was learned

    def _spread(self, values, rest):
        """Return values of labels with documents, in the first dimension, for all labels."""
        out = np.full((self.classes_.size, *values.shape[1:]), rest, dtype=values.dtype)
        out[self._columns] = values
        return out

    @property
    def n_iter_(self) -> int:
        """Number of EM steps, or of passes over the batches."""
        check_is_fitted(self)
        return len(self.elbo_) - (self.batch_size is None)

    @property
    def label_mean_(self):
        """Mean of the log label shares."""
        check_is_fitted(self)
        return self._spread(self._predictor.prior.mean, -np.inf)

    @property
    def label_covariance_(self):
        """Covariance of the log label shares."""
        check_is_fitted(self)
        return self._spread(self._spread(self._predictor.prior.covariance, 0.0).T, 0.0)

    @property
    def topic_prior_(self):
        """Dirichlet parameters of each label's topics."""
        check_is_fitted(self)
        return self._spread(self._predictor.topics.alpha, 0.0)

    @property
    def label_topics_(self):
        """Mean posterior topic shares of each label's documents."""
        check_is_fitted(self)
        return self._spread(self._label_topics, 0.0)

    @property
    def topic_word_proba_(self):
        """Word distribution of each topic."""
        check_is_fitted(self)
        return self._predictor.topics.beta.T

    @property
    def word_proba_(self):
        """Word distribution of each label; that of the corpus for a label without documents."""
        check_is_fitted(self)
        out = np.tile(np.exp(self.world_log_proba_), (self.classes_.size, 1))
        out[self._columns] = self._predictor.theta.T
        return out

    @property
    def temperature_(self):
        """Divisor of the log likelihoods of label sets."""
        return self.tuned_.get("temperature", 1.0)

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        topics, prior = self._predictor.topics, self._predictor.prior
        return {
            "alpha": topics.alpha,
            "beta": topics.beta,
            "mean": prior.mean,
            "covariance": prior.covariance,
            "size_proba": prior.size_proba,
            "words": self._words,
            "label_topics": self._label_topics,
            "elbo": self.elbo_,
            "label_objective": self.label_objective_,
            **self._label_arrays(),
        }

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        _check_topics(arrays, len(labels), n_words)
        tuned = check_tuned(tuned, TUNED)
        if "threshold" not in tuned:
            raise ValueError("the tuned values have no threshold")
        self._restore_labels(arrays, labels, tuned)
        prior = LabelPrior(*(arrays[name] for name in ("mean", "covariance", "size_proba")))
        topics = Topics(arrays["alpha"], arrays["beta"], FAMILIES[self.inference])
        self._set_state(topics, prior, arrays["words"], arrays["label_topics"])
        self.elbo_, self.label_objective_ = arrays["elbo"], arrays["label_objective"]
        return self

    def restrict_to(self, allowed):
        """Return a copy that predicts only the labels where ``allowed`` is true."""
        model = copy(self)
        model._predictor = self._predictor.restrict_to(allowed[self._columns])
        model._fallback = self._fallback_within(allowed)
        return model

    # Labels of documents

    def decision_function(self, X):
        """Return the log odds of each label's weight, or of its posterior with "paper".

        They are ``-inf`` for a label without documents, and ``inf`` for the only label.
        """
        check_is_fitted(self)
        scores = self._scores(check_words(self, X))
        if self._form.kind == "single" and scores.shape[1] == 2:
            return scores[:, 1]
        return scores

    def _scores(self, X):
        """Return the log odds of labels; those of their document shares without words."""
        return self._spread(log_odds(self._predictor.log_scores(X)).T, -np.inf).T

    def predict_proba(self, X):
        """Return one probability per document and label; see the notes of the class."""
        check_is_fitted(self)
        X = check_words(self, X)
        if self._form.kind == "single":
            return self._spread(np.exp(self._predictor.log_scores(X)).T, 0.0).T
        return self._probabilities(X, self._scores(X))

    def _probabilities(self, X, scores):
        if self.predict_mode == "sets":
            proba = self._search(X).marginals(self.classes_.size)
        elif "label_curve" in self.tuned_:
            proba = np.interp(scores, *self.tuned_["label_curve"])
        else:
            proba = np.exp(-np.logaddexp(0.0, -scores))
        proba[X.getnnz(axis=1) == 0] = self.label_docs_ / self._n_docs
        proba[np.isneginf(scores)] = 0.0
        return proba

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities."""
        check_is_fitted(self)
        X = check_words(self, X)
        scores = self._scores(X)
        return self.predict_indicator(X), scores, self._probabilities(X, scores)

    def predict_indicator(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a CSR indicator, whatever the form of ``Y``."""
        check_is_fitted(self)
        X = check_words(self, X)
        if self.predict_mode == "sets" and self._form.kind != "single":
            sets = self._search(X).best(self.classes_.size)
        else:
            blocks = self._predictor.map_log_scores(X, self._sizes_and_labels)
            sets = stack_sets(blocks, self.classes_.size)
        return with_fallback(X, sets, self._fallback)

    def _sizes_and_labels(self, scores):
        """Return the sizes of label sets and their labels: the best label, or all near it."""
        if self._form.kind == "single":
            return np.ones(len(scores), dtype=np.int64), self._columns[scores.argmax(axis=1)]
        relative = scores - scores.max(axis=1, keepdims=True)
        chosen = (relative >= self.tuned_["threshold"]) & np.isfinite(scores)
        chosen = self._spread(chosen.T, False).T
        return chosen.sum(axis=1), np.nonzero(chosen)[1]

    def _search(self, X, label=None):
        return self._predictor.search_sets(X, self.temperature_, label)

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return the best label sets of each document that a greedy search visits.

        The log posterior is normalized over the visited sets. No other set is above ``bound``,
        which combines the best likelihood of any label shares with the best prior of any size.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        n_best : int, default=3
            Number of label sets, or fewer if the search visits fewer.
        """
        check_is_fitted(self)
        if self._form.kind == "single":
            raise ValueError(
                "y was 1-D, one label per document, so there are no label sets; use predict_proba."
            )
        check_scalar(n_best, "n_best", Integral, min_val=1)
        return self._search(check_words(self, X)).to_label_sets(self.classes_, int(n_best))

    def why_no_set_probability(self):
        """Return why :meth:`set_probability` is unavailable and what to do; "" if it is not."""
        if self.predict_mode == "sets":
            return ""
        return f"CoL(predict_mode={self.predict_mode!r}) has none; use CoL(predict_mode='sets')"

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return the best visited label set that contains a label (a column), as an indicator."""
        check_is_fitted(self)
        check_scalar(label, "label", Integral, min_val=0, max_val=self.classes_.size - 1)
        self._check_label(label, self._columns[self._predictor.label_shares > 0])
        inside = int(np.flatnonzero(self._columns == label)[0])
        return self._search(check_words(self, X), inside).best(self.classes_.size)

    # Likelihoods and explanations

    def bound(self, X, Y) -> np.ndarray:
        """Return a lower bound of each document's log likelihood, given its labels."""
        X, sets = self._check_labelled(X, Y)
        return self._predictor.topics.bound(X, sets)

    def relevance(self, X, Y) -> np.ndarray:
        """Return how relevant each word is for each label ([1]_, Eq. (18)).

        It is the mean, over the documents of a label, of the log probability of the word under
        the label's topics in that document; NaN for a label without documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        Y : labels
            Labels of the documents, as in ``fit``.
        """
        X, sets = self._check_labelled(X, Y)
        topics = self._predictor.topics
        total = np.zeros((self._columns.size, X.shape[1]))
        for labels, shares in topics.infer(X, sets, topics.scoring).topic_share_blocks():
            with threadpool_limits(1, "blas"):  # the number of threads would change the last bits
                np.add.at(total, labels, np.log(shares @ topics.beta.T.astype(np.float64)))
        docs = sets.getnnz(axis=0)[:, None]
        return self._spread(np.where(docs, total / np.maximum(docs, 1), np.nan), np.nan)

    def _check_labelled(self, X, Y):
        """Return documents, and their label sets over the labels that have topics."""
        check_is_fitted(self)
        X = check_words(self, X)
        sets = check_sets(X, Y, self.classes_)
        inside = sets[:, self._columns].sorted_indices()
        if not (np.diff(inside.indptr) == np.diff(sets.indptr)).all():
            raise ValueError("Y has a label without documents in training; it has no topics.")
        if not np.diff(inside.indptr).all():
            raise ValueError("Y has a document without labels; at least one is needed.")
        return X, inside

    def log_prior(self, Y):
        """Return the log prior of each label set; ``-inf`` with labels without documents."""
        check_is_fitted(self)
        sets = check_sets(None, Y, self.classes_)
        inside = sets[:, self._columns]
        known = np.diff(inside.indptr) == np.diff(sets.indptr)
        return np.where(known, self._predictor.prior.log_prior(inside), -np.inf)

    def class_perplexity(self, X, Y) -> float:
        """Return the inverse geometric mean of the true labels' weights ([1]_, Eq. (15)).

        With "paper", posteriors take the place of weights. Labels without documents do not count.
        """
        check_is_fitted(self)
        X = check_words(self, X)
        truth = check_sets(X, Y, self.classes_)[:, self._columns]
        if not truth.nnz:
            raise ValueError("Y has no label with documents, needs at least 1.")
        return float(np.exp(-self._predictor.log_scores(X)[truth.nonzero()].mean()))

    def explain_words(self, x, y) -> WordScores:
        """Return what the score of a label set is made of, for one document."""
        check_is_fitted(self)
        x, sets = check_words(self, x), check_sets(None, y, self.classes_)
        return WordScores(
            weights=x.data,
            word_scores=np.log(self._word_proba(sets.indices, x.indices).mean(axis=1)),
            corpus_scores=self.world_log_proba_[x.indices],
            temperature=float(self.temperature_),
            log_prior=float(self.log_prior(sets)[0]),
        )

    def word_labels(self, X, Y=None) -> WordLabels:
        """Return the share of each label of a document's set in each of its words."""
        check_is_fitted(self)
        X = check_words(self, X)
        sets = self.predict_indicator(X) if Y is None else check_sets(X, Y, self.classes_)
        words, places = np.unique(X.indices, return_inverse=True)
        own = sparse.csr_matrix((X.data, places, X.indptr), shape=(X.shape[0], words.size))
        proba = self._word_proba(np.arange(self.classes_.size), words)
        labels = WordLabels.from_distributions(own, sets, np.ones(sets.nnz), proba)
        return labels._replace(word=words[labels.word])

    def _word_proba(self, labels, words):
        """Return the probabilities of words under labels, (n_words, n_labels)."""
        places = np.full(self.classes_.size, -1)
        places[self._columns] = np.arange(self._columns.size)
        inside = places[labels]
        world = np.exp(self.world_log_proba_[words])[:, None]  # for labels without documents
        return np.where(inside >= 0, self._predictor.theta[np.ix_(words, inside)], world)


def _canonical_order(label_sums, columns):
    """Return an order of label columns that does not depend on the labels' names.

    Labels are ordered by their numbers of documents, of words and of labels of these documents,
    and then by which documents they have.
    """
    docs, words, labels, identity = label_sums[:, columns]
    return np.lexsort((identity, labels, words, -docs))


def _check_topics(arrays, n_labels, n_words):
    """Raise if arrays are not topics of this number of labels and words."""
    sizes = check_arrays(arrays, TOPICS, n_labels=n_labels, n_words=n_words)
    check_label_arrays(arrays, ascending=False)
    check_memory(8 * n_words * sizes["n_columns"], arrays)  # the words of labels
    if not sizes["n_topics"]:
        raise ValueError("there is no topic")
    if (np.abs(arrays["beta"].sum(axis=0, dtype=np.float64) - 1) > SINGLE_ROUNDING).any():
        raise ValueError("the words of a topic must have probabilities that sum to one")
    if not 2 <= sizes["n_sizes"] <= sizes["n_columns"] + 1:
        raise ValueError("there are more sizes of label sets than labels, or none")
    if abs(arrays["size_proba"].sum() - 1) > ROUNDING:
        raise ValueError("the sizes of label sets must have probabilities that sum to one")
    if not arrays["size_proba"][1:].all():
        raise ValueError("every size of label sets from one on must have a probability above 0")
    _check_covariance(arrays["covariance"])


def _check_covariance(covariance):
    if not np.array_equal(covariance, covariance.T):
        raise ValueError("'covariance' must be symmetric")
    try:
        cholesky(covariance)
    except np.linalg.LinAlgError:
        raise ValueError("'covariance' must have no negative eigenvalue") from None
