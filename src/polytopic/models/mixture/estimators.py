"""Mixture models: a document mixes the word distributions of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral

import numpy as np
from scipy import sparse, special
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import DOUBLE, WHOLE, ArraySpec
from polytopic.counts import LARGEST
from polytopic.labels import with_fallback
from polytopic.models import leave_one_out
from polytopic.models.checks import (
    ROUNDING,
    SMALLEST_DIVISOR,
    check_mixture,
    check_name,
    check_number_or,
    check_pseudo_count,
    is_auto,
)
from polytopic.models.count_model import COUNTS, CountModel
from polytopic.models.mixture import tuning
from polytopic.models.mixture.em import continue_mixture, count_mixture, fit_mixture
from polytopic.models.mixture.likelihood_kernels import (
    BIASED,
    BOUND,
    EQUAL,
    PAPER,
    Family,
    bias_weights,
)
from polytopic.models.mixture.posterior import (
    PRIORS,
    LabelSetPosterior,
    SetPrior,
    label_weights,
    log_likelihoods,
)
from polytopic.models.results import LabelSets, WordScores, counts_by_label, word_shares
from polytopic.parameters import check_number

DECODES = ("f", "map", "greedy")
SEARCHES = ("greedy", "exact")
ESTIMATES = ("em", "nb")
LIKELIHOODS = {"bound": BOUND, "paper": PAPER}
PAPER_SMOOTHING, SMOOTHING = 1.0, 0.1
TEMPERATURE = 4.0  # of "auto" if there are no documents to tune it on
MAX_SETS = 1 << 16  # per document in `predict_sets`
SMALLEST = 1e-30  # float32 can hold larger probabilities, their inverses and their products
MIXING_LIMITS = TEMPERATURE_LIMITS = 1e-6, 1e6

# The arrays of a model in files: those of its counts, and the trace of learning
MIXTURE = COUNTS | {
    "objective": ArraySpec(DOUBLE, (1,), -np.inf, np.inf),
    "n_iter": ArraySpec(WHOLE, (1,), 0),
}


class MixtureModel(CountModel):
    """A count model in which a document mixes the word distributions of its labels.

    A subclass defines how labels are mixed, in prediction (``_family``) and in learning
    (``_learn_mixture``).
    """

    has_mixture = True
    has_set_posterior = True
    _array_specs = MIXTURE
    _tuned_ranges = {  # noqa: RUF012
        "smoothing": (SMALLEST_DIVISOR, LARGEST),
        "temperature": TEMPERATURE_LIMITS,
    }
    _greedy_tables: tuple | None = None

    def __init__(
        self,
        *,
        smoothing=None,
        prior="labelset",
        temperature="auto",
        decode="f",
        search="greedy",
        max_nodes=200,
        max_iter=200,
        tol=1e-5,
    ):
        self.smoothing = smoothing
        self.prior = prior
        self.temperature = temperature
        self.decode = decode
        self.search = search
        self.max_nodes = max_nodes
        self.max_iter = max_iter
        self.tol = tol

    # Settings

    def _check_parameters(self):
        if self.smoothing is not None and not is_auto(self.smoothing):
            check_number_or(", 'auto' or None", self.smoothing, "smoothing")
            super()._check_parameters()
        for name, known in (("prior", PRIORS), ("decode", DECODES), ("search", SEARCHES)):
            check_name(getattr(self, name), name, known)
        if not is_auto(self.temperature):
            check_number_or(" or 'auto'", self.temperature, "temperature")
            check_number(self.temperature, "temperature", min_val=0, include_boundaries="neither")
            low, high = TEMPERATURE_LIMITS
            if not low <= float(self.temperature) <= high:
                raise ValueError(
                    f"temperature == {self.temperature}, must be between 1e-6 and 1e6, or 'auto'."
                )
        check_scalar(self.max_nodes, "max_nodes", Integral, min_val=0)
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_number(self.tol, "tol", min_val=0)

    @property
    def smoothing_(self):
        """The pseudo-count in use."""
        if self.smoothing is None:
            return PAPER_SMOOTHING if self.prior == "uniform" else SMOOTHING
        if is_auto(self.smoothing):
            return self.tuned_.get("smoothing", SMOOTHING)
        return float(self.smoothing)

    @property
    def temperature_(self):
        """The temperature in use."""
        if is_auto(self.temperature):
            return self.tuned_.get("temperature", TEMPERATURE)
        return float(self.temperature)

    @property
    def needs_documents(self):
        """Whether a parameter is to be tuned on documents."""
        return is_auto(self.smoothing) or is_auto(self.temperature)

    def _tune(self, X, Y):
        """Tune temperature and smoothing on leave-one-out predictions, where they are "auto"."""
        names = ("smoothing", "temperature")
        parameters = {name for name in names if is_auto(getattr(self, name))}
        if self.prior == "uniform" and self.decode != "f" and "temperature" in parameters:
            self.tuned_["temperature"] = 1.0  # it would change no prediction
            parameters.remove("temperature")
        if parameters:
            tuning.tune(self, X, Y, parameters)

    # Learning

    def _estimate(self, matrix, sets):
        fit = self._learn_mixture(matrix, sets)
        self.objective_, self.n_iter_ = fit.objective, fit.n_iter
        return fit.label_counts

    def _learn_mixture(self, matrix, sets):
        return fit_mixture(
            matrix,
            sets,
            smoothing=self.smoothing_,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )

    def _continue_em(self, matrix, sets, em_steps):
        """Return the labels' word counts after some more EM steps, on another table."""
        return continue_mixture(matrix, sets, self._theta, em_steps, smoothing=self.smoothing_)

    def _set_state(self, labels, **state):
        super()._set_state(labels, **state)
        self._prior = self._full_prior = self._make_prior()

    def _make_prior(self):
        return SetPrior(self.prior, self._sets, self._set_docs)

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        training = {"objective": np.array([self.objective_]), "n_iter": np.array([self.n_iter_])}
        return super().to_arrays() | training

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        super().from_arrays(arrays, labels=labels, n_words=n_words, tuned=tuned)
        self.objective_, self.n_iter_ = arrays["objective"].item(), arrays["n_iter"].item()
        return self

    def restrict_to(self, allowed):
        """Return a copy of this model that answers only with labels where ``allowed`` is true."""
        model = super().restrict_to(allowed)
        model._prior = self._prior.restrict_to(model._seen)
        return model

    # The posterior over label sets

    def _family(self) -> Family:
        """Return how labels are mixed."""
        raise NotImplementedError

    def _posterior(self, required=-1) -> LabelSetPosterior:
        """Return the posterior over label sets, or over those with a required label."""
        return LabelSetPosterior(
            self._theta,
            self._family(),
            self._seen,
            self._prior if required < 0 else self._prior.with_label(required),
            self.temperature_,
            required=required,
            greedy_tables=self._greedy_tables,
        )

    def _posterior_without(self, group) -> LabelSetPosterior:
        """Return the posterior of a model that never saw a document of a leave-one-out group."""
        prior = self._full_prior.without(group.table_row)
        return LabelSetPosterior(
            group.theta, self._family(), group.allowed, prior, self.temperature_
        )

    # Predictions

    def _best_sets(self, X):
        return self._choose_by(self._posterior(), X)

    def _choose_by(self, posterior, X):
        """Return the label sets of documents, empty ones for documents without words."""
        if self.decode == "map" and self.search == "exact":
            return posterior.best_sets(X, 1, self.max_nodes).first()
        return posterior.choose(X, self.decode)

    def _margins_and_marginals(self, X):
        return self._posterior().assess(X, self.decode)[1:]

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), margins and probabilities in one pass.

        These are the results of ``predict``, ``decision_function`` and ``predict_proba`` for
        several labels per document. With ``labels`` (columns), which is faster, margins are exact
        only for these and for the predicted labels, and probabilities to four digits.
        """
        by_candidates = self.decode != "greedy" and (self.decode, self.search) != ("map", "exact")
        check_is_fitted(self)
        if not by_candidates or self._form.kind == "single":
            return super().assess(X)
        X = self._check_words(X)
        chosen, margins, marginals = self._posterior().assess(X, self.decode, labels)
        return with_fallback(X, chosen, self._fallback), margins, marginals

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return each document's most probable label sets, with a bound on all others.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        n_best : int, default=3
            Number of label sets per document, at most 65536.

        Notes
        -----
        ``decode`` makes no difference here. Log posteriors are normalized over the candidates of
        ``predict_proba`` and the sets that the search adds. With ``search="exact"``, branch and
        bound continues until the sets are proven to be the best, or ``max_nodes`` subproblems have
        been split. With ``search="greedy"``, the sets are the best candidates, and the bound holds
        for all sets of any size. A document without words has the best sets of the prior.
        """
        check_is_fitted(self)
        if self._form.kind == "single":
            raise ValueError(
                "y was 1-D, one label per document, so there are no label sets; use predict_proba."
            )
        check_scalar(n_best, "n_best", Integral, min_val=1, max_val=MAX_SETS)
        X = self._check_words(X)
        best = self._posterior().best_sets(X, int(n_best), self._nodes_to_split)
        return best.to_label_sets(self.classes_)

    def best_with(self, X, label):
        """Return each document's best label set that contains a label (a column), as an indicator.

        ``search`` decides whether it is the best candidate or proven to be the best.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        self._check_label(label)
        return self._posterior(label).best_sets(X, 1, self._nodes_to_split).first()

    @property
    def _nodes_to_split(self):
        return self.max_nodes if self.search == "exact" else 0

    def log_prior(self, Y):
        """Return the log prior of each label set; 0 for a uniform prior."""
        check_is_fitted(self)
        return self._prior.log_prior(self._check_sets(None, Y))

    def _log_likelihood(self, X, sets, theta=None):
        theta = self._theta if theta is None else theta
        return log_likelihoods(X, sets, theta, self._family())

    # Leave-one-out

    def loo_log_likelihood(self, X, Y, *, em_steps=0):
        """Return the log likelihood of each training document without its own counts.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts of training documents.
        Y : labels
            The labels that they were learned with.
        em_steps : int, default=0
            The document's counts are subtracted exactly. Words that several labels share keep
            their shares, or take this many EM steps per document to new ones. Biases are kept.
        """
        return leave_one_out.log_likelihood(self, X, Y, em_steps)

    def loo_predict(self, X, Y, *, em_steps=0):
        """Return the labels that each training document would get without its own counts.

        The prior also counts one document fewer for its label set.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts of training documents.
        Y : labels
            The labels that they were learned with.
        em_steps : int, default=0
            See :meth:`loo_log_likelihood`.
        """
        return leave_one_out.predict(self, X, Y, em_steps)

    def _loo_sets(self, group):
        if self._form.kind == "single":
            return super()._loo_sets(group)
        return self._choose_by(self._posterior_without(group), group.X)

    def _loo_audit(self, group):
        """Return the log joints of documents' own and most probable sets, and the latter."""
        if self._form.kind == "single":
            return super()._loo_audit(group)
        prior = self._full_prior.without(group.table_row)
        chosen = self._posterior_without(group).choose(group.X, "map")
        own, best = (
            self._log_likelihood(group.X, sets, group.theta) / self.temperature_
            + prior.log_prior(sets)
            for sets in (group.sets, chosen)
        )
        return own, best, chosen

    def _own_counts(self, X, sets):
        share = word_shares(X, sets, self._training_weights(sets), self._theta)
        return counts_by_label(X, sets) * share

    def _training_weights(self, sets):
        """Return the weights that the labels of sets have in learning."""
        return np.ones(sets.nnz)

    # Explanations

    def _label_weights(self, X, sets, theta=None):
        return label_weights(X, sets, self._theta if theta is None else theta, self._family())

    def _log_words(self, x, sets, theta=None):
        theta = self._theta if theta is None else theta
        return np.log(theta[x.indices][:, sets.indices] @ self._word_weights(x, sets, theta))

    def _word_weights(self, x, sets, theta):
        """Return the weights of the labels in the breakdown of one document's words."""
        return self._label_weights(x, sets, theta)

    def mixture(self, X, Y=None):
        """Return the share of each label in each document; rows sum to one.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        Y : labels, default=None
            Label sets of the documents; the predicted ones by default. The labels of a document
            without words get equal shares.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        sets = self._check_sets(X, Y)
        n_labels = np.diff(sets.indptr)
        if not n_labels.all():
            raise ValueError(
                f"document {np.argmin(n_labels)} has no label; its words need one to belong to."
            )
        return self._mixture(X, sets)

    def _mixture(self, X, sets, theta=None):
        words = self._shares(X, sets, theta=theta)
        count = counts_by_label(X, sets) * words.share
        label_words = sparse.csr_matrix((count, (words.doc, words.label)), sets.shape)
        return self.proportions(label_words.toarray(), sets.toarray())

    def proportions(self, label_words, sets):
        """Return the shares of labels, given the number of words of each label per document."""
        total = label_words.sum(axis=1, keepdims=True)
        equal = sets / sets.sum(axis=1, keepdims=True)
        return np.divide(label_words, total, out=equal, where=total > 0)


class PMM1(MixtureModel):
    r"""Parametric mixture model with equal label weights.

    A document draws its words from the mean of the distributions of its labels ([1]_, Eq. (3)):

    .. math:: \varphi_i = \frac{1}{|L|} \sum_{l \in L} \theta_{li}

    The posterior of a label set is :math:`P(y \mid x) \propto \exp(\ell(x \mid y) / T)\, P(y)`.
    The paper's own version is ``PMM1(prior="uniform", decode="greedy")``.

    ``predict_proba`` returns the marginal probability of each label, and ``decision_function`` the
    log posterior of the best set with the label minus that of the best set without it. Both are
    computed over these candidates: the label sets of the training documents and each label alone;
    the set that is reached from the best of them by adding or removing one label at a time; and all
    sets that differ from that one in one label.

    Parameters
    ----------
    smoothing : float, "auto" or None, default=None
        Pseudo-count of every label and word; :math:`\xi - 1` in [1]_. None means the paper's 1.0
        with ``prior="uniform"``, otherwise 0.1; "auto" tunes it together with the temperature.
    prior : {"labelset", "labels", "uniform"}, default="labelset"
        Prior of label sets: by the number of documents with the set, with some mass for sets
        that were not seen; by the number of documents with each label; or uniform. See
        :class:`~polytopic.models.SetPrior`.
    temperature : float or "auto", default="auto"
        Divisor :math:`T` of the log likelihood, which makes up for words being less independent
        than the model assumes. "auto" tunes it in ``fit`` on leave-one-out predictions, and keeps
        it in ``partial_fit`` and ``forget``.
    decode : {"f", "map", "greedy"}, default="f"
        Which label set to predict: the one with the best expected F, the most probable one, or
        the result of a greedy search that adds labels as long as the posterior rises ([1]_,
        section 3.3).
    search : {"greedy", "exact"}, default="greedy"
        Whether the most probable set is the best candidate, or is found among all label sets by
        branch and bound, with a proof. Applies to ``predict_sets`` and to ``decode="map"``.
    max_nodes : int, default=200
        Maximum number of subproblems that an exact search splits per document.
    max_iter : int, default=200
        Maximum number of EM steps.
    tol : float, default=1e-5
        EM stops when three steps raise the objective by less than this per word of documents
        with several labels.
    estimate : {"em", "nb"}, default="em"
        How word distributions are learned: by EM, which divides the words of a document among its
        labels; or as naive Bayes does, where each word counts for all of them. Predictions mix
        labels either way. The baseline NBM of [2]_ is
        ``PMM1(estimate="nb", prior="uniform", decode="greedy").fit(X > 0, Y)``: it learns from the
        number of documents with a word.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    counts_ : LabelSetCounts
        Table of all documents learned so far.
    word_proba_ : ndarray of shape (n_labels, n_words)
        Word distribution of each label, :math:`\theta` in [1]_.
    smoothing_, temperature_ : float
        The values in use.
    tuned_ : dict
        The values that were tuned on documents.
    objective_ : float
        Log posterior of the parameters, :math:`J` of [1]_, Eq. (6); EM never lowers it.
    n_iter_ : int
        Number of EM steps.

    References
    ----------
    .. [1] Ueda and Saito, "Parametric Mixture Models for Multi-Labeled Text", NIPS 15, 2002.
    .. [2] Sato and Nakagawa, "Bayesian Document Generative Model with Explicit Multiple
       Topics", EMNLP-CoNLL 2007.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = PMM1().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[9, 9, 1]])
    (array(['film', 'sport'], dtype=object), array([[1, 1]]))
    """

    name = "pmm1"

    def __init__(
        self, *, smoothing=None, prior="labelset", temperature="auto", decode="f",
        search="greedy", max_nodes=200, max_iter=200, tol=1e-5, estimate="em",
    ):  # fmt: skip
        super().__init__(
            smoothing=smoothing, prior=prior, temperature=temperature, decode=decode,
            search=search, max_nodes=max_nodes, max_iter=max_iter, tol=tol,
        )  # fmt: skip
        self.estimate = estimate

    def _check_parameters(self):
        super()._check_parameters()
        check_name(self.estimate, "estimate", ESTIMATES)

    def _learn_mixture(self, matrix, sets):
        if self.estimate == "nb":
            return count_mixture(matrix, sets, smoothing=self.smoothing_)
        return super()._learn_mixture(matrix, sets)

    def _continue_em(self, matrix, sets, em_steps):
        if self.estimate == "nb":
            return sparse.csr_matrix(sets.T @ matrix)
        return super()._continue_em(matrix, sets, em_steps)

    def _own_counts(self, X, sets):
        return counts_by_label(X, sets) if self.estimate == "nb" else super()._own_counts(X, sets)

    def _family(self):
        return Family(EQUAL)

    def _set_state(self, labels, **state):
        super()._set_state(labels, **state)
        self._greedy_tables = None
        if self.prior == "uniform" and self.decode == "greedy":
            small = np.float32 if self._theta.min() > SMALLEST else np.float64
            rough = np.stack(
                [self._log_theta, self._theta], axis=1, dtype=small, casting="same_kind"
            )
            self._greedy_tables = self._theta, self._log_theta, rough


class PMM2(MixtureModel):
    r"""Parametric mixture model with biases between pairs of labels.

    Like :class:`PMM1`, but of two labels that occur together, one may contribute more words than
    the other ([1]_, Eq. (4) and (5)); with :math:`k` labels

    .. math:: \varphi_i = \sum_{l \in L} c_l \theta_{li}, \qquad
              c_l = \frac{2}{k^2} \sum_{m \in L} \alpha_{lm}, \qquad
              \alpha_{lm} + \alpha_{ml} = 1

    If all biases are one half, it is PMM1.

    Parameters
    ----------
    smoothing, prior, temperature, decode, search, max_nodes, max_iter, tol
        See :class:`PMM1`.
    bias_smoothing : float, default=1.0
        Pseudo-count of each bias, :math:`\zeta - 1` in [1]_.

    Attributes
    ----------
    bias_ : ndarray of shape (n_labels, n_labels)
        :math:`\alpha` in [1]_: ``bias_[l, m]`` is the share of label ``l`` in the words that
        ``l`` and ``m`` produce together; one half on the diagonal and for labels that never
        occur together.
    classes_, counts_, word_proba_, smoothing_, temperature_, tuned_, objective_, n_iter_
        See :class:`PMM1`; the objective is not concave, so EM reaches a local maximum.

    References
    ----------
    .. [1] Ueda and Saito, "Parametric Mixture Models for Multi-Labeled Text", NIPS 15, 2002.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [4, 1, 0]]
    >>> model = PMM2().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.bias_.round(2)
    array([[0.5 , 0.31],
           [0.69, 0.5 ]])
    """

    name = "pmm2"
    _array_specs = MIXTURE | {"bias": ArraySpec(DOUBLE, ("n_labels", "n_labels"), 0, 1)}

    def __init__(
        self, *, smoothing=None, prior="labelset", temperature="auto", decode="f",
        search="greedy", max_nodes=200, max_iter=200, tol=1e-5, bias_smoothing=1.0,
    ):  # fmt: skip
        super().__init__(
            smoothing=smoothing, prior=prior, temperature=temperature, decode=decode,
            search=search, max_nodes=max_nodes, max_iter=max_iter, tol=tol,
        )  # fmt: skip
        self.bias_smoothing = bias_smoothing

    def _check_parameters(self):
        super()._check_parameters()
        check_pseudo_count(self.bias_smoothing, "bias_smoothing")

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return super().to_arrays() | {"bias": self.bias_}

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        super().from_arrays(arrays, labels=labels, n_words=n_words, tuned=tuned)
        self.bias_ = arrays["bias"]
        if (np.abs(self.bias_ + self.bias_.T - 1) > ROUNDING).any():
            raise ValueError("biases of two labels must sum to one")
        return self

    def _learn_mixture(self, matrix, sets):
        fit = fit_mixture(
            matrix,
            sets,
            smoothing=self.smoothing_,
            bias_smoothing=float(self.bias_smoothing),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )
        self.bias_ = fit.bias
        return fit

    def _continue_em(self, matrix, sets, em_steps):
        return continue_mixture(
            matrix, sets, self._theta, em_steps, smoothing=self.smoothing_, bias=self.bias_
        )

    def _training_weights(self, sets):
        weights = np.empty(sets.nnz)
        bias_weights(sets.indices, sets.indptr, self.bias_, weights)
        return weights

    def _family(self):
        return Family(BIASED, bias=self.bias_)


class PDMM(MixtureModel):
    r"""Parametric Dirichlet mixture model: each document has its own mixture of its labels.

    Like :class:`PMM1`, but the label weights of a document are drawn from a Dirichlet distribution
    ([1]_, Eq. (4)–(6)). Their posterior given a label set is found by variational Bayes, Eq. (29)
    and (30), where :math:`\gamma` are its parameters and :math:`\phi` the labels of the words. Word
    distributions are learned as in PMM1.

    ``mixture`` returns the shares of a document's labels, :math:`\gamma / \sum \gamma`, and
    ``word_labels`` the labels of its words, under any label set. ``word_labels(X, Y, mixture=…)``
    returns what they would be under other shares.

    Parameters
    ----------
    smoothing, prior, temperature, decode, search, max_nodes, max_iter, tol
        See :class:`PMM1`.
    mixing : float, sequence of n_labels floats, or mapping of label to float, default=1.0
        Parameters :math:`\alpha` of the Dirichlet prior, in the order of ``classes_``. Labels
        that a mapping does not name have 1.
    likelihood : {"bound", "paper"}, default="bound"
        Likelihood of a label set: the lower bound of the log evidence; or [1]_, Eq. (35), the log
        likelihood at the mean weights. These weights are fitted to the same document, so the
        paper's likelihood hardly penalizes a useless label.

    Attributes
    ----------
    classes_, counts_, word_proba_, smoothing_, temperature_, tuned_, objective_, n_iter_
        See :class:`PMM1`.

    References
    ----------
    .. [1] Sato and Nakagawa, "Bayesian Document Generative Model with Explicit Multiple
       Topics", EMNLP-CoNLL 2007.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = PDMM().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.mixture([[9, 3, 1]], [["film", "sport"]]).round(2)
    array([[0.28, 0.72]])

    The labels of each word (rows), and what they would be if both labels had the same share:

    >>> document, labels = [[9, 3, 1]], [["film", "sport"]]
    >>> model.word_labels(document, labels).share.reshape(3, 2).round(2)
    array([[0.02, 0.98],
           [0.91, 0.09],
           [0.3 , 0.7 ]])
    >>> model.word_labels(document, labels, mixture=[[0.5, 0.5]]).share.reshape(3, 2).round(2)
    array([[0.04, 0.96],
           [0.97, 0.03],
           [0.54, 0.46]])
    """

    name = "pdmm"
    can_set_mixture = True

    def __init__(
        self, *, smoothing=None, prior="labelset", temperature="auto", decode="f",
        search="greedy", max_nodes=200, max_iter=200, tol=1e-5, mixing=1.0,
        likelihood="bound",
    ):  # fmt: skip
        super().__init__(
            smoothing=smoothing, prior=prior, temperature=temperature, decode=decode,
            search=search, max_nodes=max_nodes, max_iter=max_iter, tol=tol,
        )  # fmt: skip
        self.mixing = mixing
        self.likelihood = likelihood

    def _check_parameters(self):
        super()._check_parameters()
        check_name(self.likelihood, "likelihood", LIKELIHOODS)

    def _check_labels(self, labels):
        _dirichlet_parameters(self.mixing, labels)
        if isinstance(self.mixing, Mapping) and not self.is_fitted:
            unknown = sorted(set(self.mixing) - set(labels), key=str)
            if unknown:
                raise ValueError(f"mixing names {unknown[0]!r}, which is not a label.")

    def _set_state(self, labels, **state):
        self._mixing = _dirichlet_parameters(self.mixing, labels)
        super()._set_state(labels, **state)

    def _family(self):
        return Family(LIKELIHOODS[self.likelihood], mixing=self._mixing)

    def _word_weights(self, x, sets, theta):
        if self.likelihood == "paper":
            return self._mixture(x, sets, theta)[0, sets.indices]
        return super()._word_weights(x, sets, theta)

    # Explanations under a given mixture

    def word_labels(self, X, Y=None, *, mixture=None):
        r"""Return the share of each label of a document's set in each of its words.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        Y : labels, default=None
            Label sets that share the words; by default the labels with a share in ``mixture`` or,
            without that, the predicted ones.
        mixture : array of shape (n_docs, n_labels), default=None
            Shares of the labels in each document, in place of those that :meth:`mixture` finds.
            Rows are normalized to sum to one; labels outside of ``Y`` must have 0. A label of
            ``Y`` with share 0 gets no word.

        Notes
        -----
        In a document with the :math:`N` words :math:`w`, the shares :math:`\pi` stand for the
        posterior with this mean and the mass of every posterior of the document,
        :math:`\gamma = \pi (N + \sum_l \alpha_l)`, so that Eq. (28) of the paper gives

        .. math:: \phi_{wl} \propto \theta_{lw} \exp \Psi(\gamma_l)

        With the document's own mixture, these are the shares that are returned without one.
        """
        if mixture is None:
            return super().word_labels(X, Y)
        check_is_fitted(self)
        X = self._check_words(X)
        sets, gamma = self._given_posterior(X, Y, mixture)
        doc = np.repeat(np.arange(X.shape[0]), np.diff(sets.indptr))
        largest = gamma.max(axis=1)[doc]  # weights relative to it cannot all underflow
        own = gamma[doc, sets.indices]
        return self._shares(X, sets, np.exp(special.psi(own) - special.psi(largest)))

    def explain_words(self, x, y, *, mixture=None):
        """Return what the log posterior of a label set is made of, for one document.

        Parameters
        ----------
        x : {array, sparse matrix} of shape (1, n_words)
            Word counts of the document.
        y : labels
            Its label set.
        mixture : array of shape (1, n_labels), default=None
            Shares of the labels, see :meth:`word_labels`. The log likelihood is then that of these
            shares: the lower bound for the posterior that they stand for, or Eq. (35) of the
            paper. A label with share 0 counts only in the prior.
        """
        if mixture is None:
            return super().explain_words(x, y)
        check_is_fitted(self)
        x = self._check_words(x)
        sets, gamma = self._given_posterior(x, y, mixture)
        labels = np.flatnonzero(gamma[0])
        gamma, prior = gamma[0, labels], self._mixing[labels]
        log_weights, mixing = np.log(gamma / gamma.sum()), 0.0
        if self.likelihood == "bound" and x.nnz:
            log_weights = special.psi(gamma) - special.psi(gamma.sum())
            mixing = float((prior - gamma) @ log_weights) + _log_beta(gamma) - _log_beta(prior)
        log_theta = self._log_theta[x.indices][:, labels]
        return WordScores(
            weights=x.data,
            word_scores=special.logsumexp(log_theta + log_weights, axis=1),
            corpus_scores=self.world_log_proba_[x.indices],
            mixing=mixing,
            temperature=float(self.temperature_),
            log_prior=float(self.log_prior(sets)[0]),
        )

    def _given_posterior(self, X, Y, mixture):
        """Return label sets, and the Dirichlet parameters that given shares stand for."""
        sets = None if Y is None else self._check_sets(X, Y)
        mixture = check_mixture(X, mixture, sets, self.classes_)
        if sets is None:
            sets = sparse.csr_matrix(mixture > 0, dtype=np.float64)
        mass = X.sum(axis=1).A1 + (mixture > 0) @ self._mixing
        return sets, mixture * mass[:, None]

    def proportions(self, label_words, sets):
        r"""Return the mean of the posterior, whose parameters are :math:`\gamma`."""
        empty = label_words.sum(axis=1, keepdims=True) == 0
        gamma = np.where(empty, sets, label_words + sets * self._mixing)
        return gamma / gamma.sum(axis=1, keepdims=True)


def _log_beta(parameters) -> float:
    """Return the logarithm of the Dirichlet distribution's normalizing constant."""
    return float(special.gammaln(parameters).sum() - special.gammaln(parameters.sum()))


def _dirichlet_parameters(mixing, labels) -> np.ndarray:
    """Return the Dirichlet parameter of each label."""
    values = _as_numbers(mixing, labels)
    if values.ndim == 0:
        values = np.full(len(labels), float(values))
    if values.size != len(labels):
        raise ValueError(
            f"mixing has {values.size} numbers, but there are {len(labels)} labels; "
            "give one number per label."
        )
    low, high = MIXING_LIMITS
    if not ((values >= low) & (values <= high)).all():
        raise ValueError(f"mixing == {mixing!r}, must be between {low} and {high}.")
    return values


def _as_numbers(mixing, labels) -> np.ndarray:
    """Return one number, or one for each label."""
    numbers = mixing
    if isinstance(mixing, Mapping):
        numbers = [mixing.get(label, 1.0) for label in labels]
    try:
        values = np.array(numbers)
    except ValueError:  # nested lists of different lengths
        values = np.array(None)
    if values.dtype.kind not in "biuf" or values.ndim > 1:
        raise ValueError(
            f"mixing == {mixing!r}, must be a number, a list of one number per label, or a mapping "
            "of labels to numbers."
        )
    return values.astype(np.float64)
