"""The correlated labeling model."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.labels import read_targets
from polytopic.models.checks import check_as_many, check_name, check_pseudo_count, check_words
from polytopic.models.col_reasons import ColReasons
from polytopic.models.col_tuning import chosen_by_documents
from polytopic.models.label_training import fit_sets
from polytopic.models.topic_documents import TopicDocuments
from polytopic.models.topic_training import warn_of
from polytopic.parameters import check_number

TOPICS_A_LABEL, FEWEST_TOPICS = 3, 100  # by n_topics="auto"
EPOCHS, STEPS = 2, 50


class CoL(ColReasons):
    r"""Correlated labeling model: labels that go together, each made of topics of words.

    A document draws its labels from logistic normal shares, :math:`\eta \sim N(\mu, \Sigma)`,
    and for each of them shares of topics :math:`\theta_m \sim \mathrm{Dir}(\alpha_{c_m})`; each
    word comes from one of the labels, evenly, one of its topics :math:`z`, and from
    :math:`\beta_z` ([1]_, Eq. (2)). Given the labels, what is learned of :math:`\mu, \Sigma` and
    of :math:`\alpha, \beta` has nothing to do with each other.

    Parameters
    ----------
    n_topics : int or "auto", default=100
        Topics of words. "auto" is three for each label, and at least 100. With fewer topics than
        labels, labels have to share them.
    covariance : {"mcem", "variational"}, default="mcem"
        How :math:`\mu` and :math:`\Sigma` are learned: by Monte-Carlo EM, or by the variational
        updates of [1]_, which find little correlation where most documents have one label.
    predict_mode : {"weights", "sets", "paper"}, default="weights"
        How labels are found: by their shares of the document, its classes' weights; by a greedy
        search for the most probable label set; or, as in [1]_, by the posterior of each label
        alone. Weights and posteriors must be at least a part of the best label's, which is
        chosen by held-out documents.
    smoothing : float, default=0.05
        Pseudo-count of every pair of a topic and a word.
    batch_size : int, default=None
        Learn stepwise from batches of this many documents, in memory that grows with the batch;
        by default from all at once.
    max_iter : int, default=None
        EM steps at most, 50 by default; or times to go through the batches, 2 by default.
    tol : float, default=1e-3
        EM ends when a step raises the bound by less than this part of it.
    random_state : int, RandomState or None, default=0
        Which documents topics start from, and which are held out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    label_mean_ : ndarray of shape (n_labels,)
        :math:`\mu`, less what is common to all labels; ``-inf`` for a label without documents.
    label_covariance_ : ndarray of shape (n_labels, n_labels)
        :math:`P \Sigma P` with :math:`P = I - 1 1^\top / C`, all that the labels tell of it.
    topic_prior_ : ndarray of shape (n_labels, n_topics)
        :math:`\alpha`; 0 for a label without documents.
    label_topics_ : ndarray of shape (n_labels, n_topics)
        Labels in topic space: the mean posterior topic shares of each label's documents ([1]_,
        Eq. (17)); 0 for a label without documents. By batches, the last ones count most.
    topic_word_proba_ : ndarray of shape (n_topics, n_words)
        :math:`\beta`.
    word_proba_ : ndarray of shape (n_labels, n_words)
        Word distribution of each label, :math:`\sum_j \bar\alpha_{cj} \beta_j`.
    elbo_ : ndarray
        Course of the bound of the documents' log likelihood given their labels, with the log
        prior of the topics; EM never lowers it. By batches, one value for each time.
    label_objective_ : ndarray
        Course of the mean log likelihood of label sets, or of its variational bound.
    chosen_ : dict
        What was chosen by held-out documents.
    n_iter_ : int
        EM steps run, or times gone through the batches.

    Notes
    -----
    Topics start with one label each. With at least as many topics as labels they stay with it,
    since the others' part of them is too small to grow; with fewer, labels do share them.

    ``decision_function`` gives the log odds of a label's weight (with "paper", of its posterior).
    ``predict_proba`` gives the probability of a label by isotonic regression on held-out
    documents; with "sets" the marginals over the label sets that the search met; with "paper"
    the posterior of the label alone.

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

    def __init__(
        self,
        n_topics=100,
        *,
        covariance="mcem",
        predict_mode="weights",
        smoothing=0.05,
        batch_size=None,
        max_iter=None,
        tol=1e-3,
        random_state=0,
    ):
        self.n_topics = n_topics
        self.covariance = covariance
        self.predict_mode = predict_mode
        self.smoothing = smoothing
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # on scikit-learn's blobs, which are no counts
        return tags

    # Learning

    def fit(self, X, y, *, chosen=None):
        """Learn from documents.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts, not negative.
        y : indicator of shape (n_docs, n_labels), or one collection of names a document
            Labels; 1-D means one label a document. Documents without a label are ignored.
        chosen : dict, default=None
            What an earlier fit chose (``chosen_``), to be kept.
        """
        self._check_parameters()
        targets = read_targets(y)
        X = check_words(self, X, reset=True)
        check_as_many(X, targets.Y)
        labelled = np.flatnonzero(targets.Y.getnnz(axis=1))
        if not labelled.size:
            raise ValueError("Y has no labelled document; at least one is needed.")
        self._set_labels(targets)
        return self._fit_documents(TopicDocuments(X[labelled], targets.Y[labelled]), chosen)

    def fit_documents(self, documents, labels, sets, set_docs, *, chosen=None):
        """Learn from documents that are elsewhere, in parts.

        Parameters
        ----------
        documents : object
            What :class:`~polytopic.models.topic_documents.TopicDocuments` can do; all labelled.
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
        return self._fit_documents(documents, chosen)

    def _fit_documents(self, documents, chosen):
        self._columns = self._columns[_canonical_order(documents.label_sums(), self._columns)]
        documents = documents.over(self._columns)
        if chosen is None:
            self.chosen_ = chosen_by_documents(self, documents)
        else:
            self.chosen_ = dict(chosen)
        prior, objective = fit_sets(documents.sets(), self.covariance)
        course = self._learn(documents, self._steps, prior)
        self.label_objective_, self.elbo_ = np.array(objective), np.array(course.elbo)
        warn_of(course, self._steps)
        return self

    def _learn(self, documents, max_iter, prior):
        """Learn topics from documents whose labels all occur, and take all over."""
        random, how = check_random_state(self.random_state), {"smoothing": self.smoothing}
        topics = documents.start(self._n_topics(documents.label_docs.size), random)
        if self.batch_size is None:
            course = documents.learn(topics, **how, max_iter=max_iter, tol=self.tol)
        else:
            how |= {"batch_size": self.batch_size, "random": random}
            course = documents.learn_stepwise(topics, **how, max_iter=max_iter)
        self._set_state(course.topics, prior, documents.word_sums(), course.label_topics)
        return course

    def _n_topics(self, n_labels):
        if isinstance(self.n_topics, str):
            return max(TOPICS_A_LABEL * n_labels, FEWEST_TOPICS)
        return int(self.n_topics)

    @property
    def n_iter_(self) -> int:
        """EM steps run, or times gone through the batches."""
        check_is_fitted(self)
        return len(self.elbo_) - (self.batch_size is None)

    @property
    def _steps(self):
        if self.max_iter is not None:
            return int(self.max_iter)
        return STEPS if self.batch_size is None else EPOCHS

    # Checks

    def _check_parameters(self):
        if self.n_topics != "auto":
            check_scalar(self.n_topics, "n_topics", Integral, min_val=1)
        check_name(self.covariance, "covariance", ("mcem", "variational"))
        check_name(self.predict_mode, "predict_mode", ("weights", "sets", "paper"))
        check_pseudo_count(self.smoothing, "smoothing")
        for name in ("batch_size", "max_iter"):
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_number(self.tol, "tol", min_val=0)


def _canonical_order(label_sums, columns):
    """Return an order of columns of labels that does not depend on their names.

    It is by documents, then by the documents' words and their numbers of labels, then by which
    documents they are.
    """
    docs, words, others, which = label_sums[:, columns]
    return np.lexsort((which, others, words, -docs))
