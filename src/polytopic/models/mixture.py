"""What the mixture models share: a posterior over label sets, and answers from it."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.kernels import posterior
from polytopic.kernels import sets as set_kernels
from polytopic.kernels.blocks import map_rows, map_sets
from polytopic.labels import with_fallback
from polytopic.models import arrays, leave_one_out, mixture_tuning
from polytopic.models.base import CountModel
from polytopic.models.checks import check_name, check_number_or, is_auto
from polytopic.models.label_sets import LabelSets, find_sets, stack_sets
from polytopic.models.mixture_em import continue_mixture, fit_mixture
from polytopic.models.prior import PRIORS, SetPrior
from polytopic.models.words import shares
from polytopic.parameters import check_number

DECODES = ("f", "map", "greedy")
SEARCHES = ("greedy", "exact")
PAPERS_SMOOTHING, SMOOTHING = 1.0, 0.1
MOST_SETS = 1 << 16  # that can be listed for a document
NOWHERE = np.empty((0, 0))  # where nothing is to be written
NO_LABEL = np.zeros(0, dtype=bool)
TEMPERATURE = 4.0  # where it is to be chosen and there are no documents to choose by


class MixtureModel(CountModel):
    """A count model in which a document mixes the word distributions of its labels.

    A subclass says how, in prediction (``_family``) and in learning (``_learn_mixture``).
    """

    has_mixture = True
    has_set_posterior = True
    _array_specs = arrays.MIXTURE
    _tuned_ranges = arrays.TUNED_BY_MIXTURES

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
            if not 1e-6 <= self.temperature <= 1e6:
                raise ValueError(
                    f"temperature == {self.temperature}, must be between 1e-6 and 1e6, or 'auto'."
                )
        check_scalar(self.max_nodes, "max_nodes", Integral, min_val=0)
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_number(self.tol, "tol", min_val=0)

    @property
    def smoothing_(self):
        """The pseudo-count of every pair of a label and a word that is used."""
        if self.smoothing is None:
            return PAPERS_SMOOTHING if self.prior == "uniform" else SMOOTHING
        if is_auto(self.smoothing):
            return self.tuned_.get("smoothing", SMOOTHING)
        return self.smoothing

    @property
    def temperature_(self):
        """What log likelihoods are divided by in the posterior."""
        if is_auto(self.temperature):
            return self.tuned_.get("temperature", TEMPERATURE)
        return self.temperature

    @property
    def _prior_kind(self):
        return self.prior

    @property
    def needs_documents(self):
        """Whether something is to be chosen by documents."""
        return is_auto(self.smoothing) or is_auto(self.temperature)

    def _tune(self, X, Y):
        """Choose temperature and smoothing by documents that are left out one at a time."""
        names = ("smoothing", "temperature")
        wanted = {name for name in names if is_auto(getattr(self, name))}
        if self.prior == "uniform" and self.decode != "f" and "temperature" in wanted:
            self.tuned_["temperature"] = 1.0  # it changes no answer
            wanted.remove("temperature")
        if wanted:
            mixture_tuning.tune(self, X, Y, wanted)

    # What was learned

    def _set_state(self, labels, **state):
        super()._set_state(labels, **state)
        self._prior = SetPrior(self.prior, self._sets, self._set_docs)

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        course = {"objective": np.array([self.objective_]), "n_iter": np.array([self.n_iter_])}
        return super().to_arrays() | course

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit.

        Arrays that no model could have given raise ValueError.
        """
        super().from_arrays(arrays, labels=labels, n_words=n_words, tuned=tuned)
        self.objective_, self.n_iter_ = arrays["objective"].item(), arrays["n_iter"].item()
        return self

    def restrict_to(self, allowed):
        """Return this model with some of its labels only: those where ``allowed`` is true."""
        model = super().restrict_to(allowed)
        model._prior = self._prior.restricted(model._seen)
        return model

    def _estimate(self, matrix, sets):
        fit = self._learn_mixture(matrix, sets)
        self.objective_, self.n_iter_ = fit.objective, fit.n_iter
        return fit.label_counts

    def _learn_mixture(self, matrix, sets):
        return fit_mixture(
            matrix, sets, smoothing=self.smoothing_, max_iter=self.max_iter, tol=self.tol
        )

    def _relearned(self, matrix, sets, em_steps):
        """Return the labels' word counts after some EM steps on another table."""
        return continue_mixture(matrix, sets, self._theta, em_steps, smoothing=self.smoothing_)

    def _family(self):
        """Return how labels are mixed, for the kernels: kind, biases, Dirichlet parameters."""
        raise NotImplementedError

    def _problem(self, required=-1):
        """Return what the kernels need to know, apart from documents."""
        prior = self._prior if required < 0 else self._prior.holding(required)
        return self._pose(self._theta, self._seen, prior, required)

    def _pose(self, theta, allowed, prior, required=-1):
        temperature = float(self.temperature_)
        return posterior.Problem(
            theta,
            self._family(),
            np.flatnonzero(allowed),
            prior.arrays(),
            temperature,
            required,
        )

    # Answers

    def _best_sets(self, X):
        return self._choose_by(X, self._problem())

    def _choose_by(self, X, problem):
        """Return the label sets of documents, none for those without words."""
        if self.decode == "map" and self.search == "exact":
            return find_sets(X, problem, 1, self.max_nodes).first()
        return self._decided(X, problem, self.decode)

    def _decided(self, X, problem, decode):
        """Return the label sets that greedy search finds, or the best of the candidates."""

        def block(data, indices, indptr, rows):
            chosen = np.zeros((indptr.size - 1, self.classes_.size), dtype=bool)
            self._decide(data, indices, indptr, problem, decode, chosen)
            return chosen.sum(axis=1), np.nonzero(chosen)[1]

        return stack_sets(map_rows(block, X, self.classes_.size), self.classes_.size)

    def _decide(self, data, indices, indptr, problem, decode, chosen):
        """Write the label sets of a block of documents."""
        if decode == "greedy":
            posterior.greedy(data, indices, indptr, problem, chosen)
        else:
            by_f = decode == "f"
            out = chosen, NOWHERE, NOWHERE
            posterior.judge(data, indices, indptr, problem, by_f, NO_LABEL, *out)

    def _margins_and_marginals(self, X):
        return self._judged(X)[1:]

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), margins and probabilities in one pass.

        The same as the sets of ``predict``, ``decision_function`` and ``predict_proba`` on
        several labels. Where ``labels`` (columns) are asked for, margins are right for them and
        for the predicted ones only, and probabilities to the fourth digit, which is faster.
        """
        by_candidates = self.decode != "greedy" and (self.decode, self.search) != ("map", "exact")
        check_is_fitted(self)
        if not by_candidates or self._form.kind == "single":
            return super().assess(X)
        X = self._check_words(X)
        chosen, margins, marginals = self._judged(X, labels)
        return with_fallback(X, chosen, self._fallback), margins, marginals

    def _judged(self, X, labels=None):
        """Return the candidates that are chosen, margins and marginals."""
        n_labels = self.classes_.size
        asked = NO_LABEL
        if labels is not None:
            asked = np.zeros(n_labels, dtype=bool)
            asked[np.asarray(labels, dtype=np.int64)] = True
        margins, marginals = np.empty((X.shape[0], n_labels)), np.zeros((X.shape[0], n_labels))
        problem, by_f = self._problem(), self.decode == "f"

        def block(data, indices, indptr, rows):
            chosen = np.zeros((indptr.size - 1, n_labels), dtype=bool)
            out = chosen, margins[rows], marginals[rows]
            posterior.judge(data, indices, indptr, problem, by_f, asked, *out)
            return chosen.sum(axis=1), np.nonzero(chosen)[1]

        sets = stack_sets(map_rows(block, X, n_labels), n_labels)
        return sets, margins, marginals

    def predict_sets(self, X, n_best=3) -> LabelSets:
        """Return each document's best label sets, with a bound on every other set.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        n_best : int, default=3
            Label sets to give, at most 65536.

        Notes
        -----
        These are the most probable sets, whatever ``decode`` is. The log posterior is normalised
        over the candidates of ``predict_proba`` and the sets that the search has added. With
        ``search="exact"``, branch and bound goes on until the sets are proven to be the best, or
        ``max_nodes`` subproblems have been split; with ``search="greedy"``, the candidates are
        taken as they are, and the bound is the largest of any size of sets. A document without
        words has the best sets of the prior.
        """
        check_is_fitted(self)
        if self._form.kind == "single":
            raise ValueError(
                "y was 1-D, one label a document, so there are no label sets; use predict_proba."
            )
        check_scalar(n_best, "n_best", Integral, min_val=1, max_val=MOST_SETS)
        X = self._check_words(X)
        max_nodes = self.max_nodes if self.search == "exact" else 0
        return find_sets(X, self._problem(), int(n_best), max_nodes).named(self.classes_)

    def best_with(self, X, label):
        """Return each document's best label set that holds a label (a column), as an indicator.

        Found as ``search`` says, among the sets with the label.
        """
        check_is_fitted(self)
        X = self._check_words(X)
        self._check_label(label)
        max_nodes = self.max_nodes if self.search == "exact" else 0
        return find_sets(X, self._problem(label), 1, max_nodes).first()

    def log_prior(self, Y):
        """Return the log prior of each label set, as ``prior`` says; 0 for a uniform one."""
        check_is_fitted(self)
        return self._prior.log_prior(self._check_sets(None, Y))

    def _log_likelihood(self, X, sets, theta=None):
        out = np.empty(X.shape[0])
        theta, family = self._theta if theta is None else theta, self._family()
        map_sets(
            lambda *block: set_kernels.scores(*block[:5], theta, family, out[block[5]]), X, sets
        )
        return out

    # Leaving documents out

    def loo_log_likelihood(self, X, Y, *, em_steps=0):
        """Return the log likelihood of each learned document without its own counts.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts of documents that were learned.
        Y : labels
            The labels they were learned with.
        em_steps : int, default=0
            The document's counts are taken out exactly. Words that several labels share are
            first shared as before, then by this many EM steps for each document; biases of
            labels stay.
        """
        return leave_one_out.log_likelihood(self, X, Y, em_steps)

    def loo_predict(self, X, Y, *, em_steps=0):
        """Return the labels that each learned document would get without its own counts.

        Its label set counts one document less in the prior, too.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_words)
            Word counts of documents that were learned.
        Y : targets
            The labels they were learned with.
        em_steps : int, default=0
            See :meth:`loo_log_likelihood`.
        """
        return leave_one_out.predict(self, X, Y, em_steps)

    def _choose_left_out(self, part):
        if self._form.kind == "single":
            return super()._choose_left_out(part)
        return self._choose_by(part.X, self._pose(part.theta, part.allowed, part.prior))

    def _judge_left_out(self, part):
        """Return the log joints of the own and the most probable sets of documents; the latter."""
        if self._form.kind == "single":
            return super()._judge_left_out(part)
        problem = self._pose(part.theta, part.allowed, part.prior)
        chosen = self._decided(part.X, problem, "map")
        own, best = (
            self._log_likelihood(part.X, sets, part.theta) / self.temperature_
            + part.prior.log_prior(sets)
            for sets in (part.sets, chosen)
        )
        return own, best, chosen

    def _own_counts(self, X, sets):
        share = shares(X, sets, self._learned_weights(sets), self._theta)
        return np.repeat(X.data, np.repeat(np.diff(sets.indptr), np.diff(X.indptr))) * share

    def _learned_weights(self, sets):
        """Return the weights of labels in learning."""
        return np.ones(sets.nnz)

    # Reasons

    def _label_weights(self, X, sets, theta=None):
        weights = np.empty(sets.nnz)
        theta = self._theta if theta is None else theta
        _, bias, mixing = self._family()
        map_sets(
            lambda *block: set_kernels.label_weights(*block[:5], theta, bias, mixing, weights),
            X,
            sets,
        )
        return weights

    def _log_words(self, x, sets, theta=None):
        theta = self._theta if theta is None else theta
        return np.log(theta[x.indices][:, sets.indices] @ self._word_weights(x, sets, theta))

    def _word_weights(self, x, sets, theta):
        """Return the weights of the labels of one document in the account of its words."""
        return self._label_weights(x, sets, theta)

    def mixture(self, X, Y=None):
        """Return how much of each document each label says; rows sum to one.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_docs, n_words)
            Word counts.
        Y : labels, default=None
            Label sets that share the words; the predicted ones by default. A document without
            words gets equal shares of its labels.
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
        n_labels = np.diff(sets.indptr)
        words = self._shares(X, sets, theta=theta)
        count = np.repeat(X.data, np.repeat(n_labels, np.diff(X.indptr)))
        said = sparse.csr_matrix((count * words.share, (words.doc, words.label)), sets.shape)
        return self.proportions(said.toarray(), sets.toarray())

    def proportions(self, said, sets):
        """Return the shares of labels that say so many words of each document."""
        total = said.sum(axis=1, keepdims=True)
        equal = sets / sets.sum(axis=1, keepdims=True)
        return np.divide(said, total, out=equal, where=total > 0)
