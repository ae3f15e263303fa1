"""Parametric mixture models: a document mixes the word distributions of its labels."""

from __future__ import annotations

import numpy as np

from polytopic.kernels import mixture
from polytopic.kernels.sets import BIASED, EQUAL, Family
from polytopic.models.arrays import BIASED_MIXTURE
from polytopic.models.checks import check_pseudo_count
from polytopic.models.mixture import MixtureModel
from polytopic.models.mixture_em import continue_mixture, fit_mixture

SMALLEST = 1e-30  # float32 holds probabilities above it, their inverses and products


class PMM1(MixtureModel):
    r"""Parametric mixture model with equal label weights.

    A document draws its words from the mean of the distributions of its labels ([1]_, Eq. (3)):

    .. math:: \varphi_i = \frac{1}{|L|} \sum_{l \in L} \theta_{li}

    A label set is as probable as :math:`P(y \mid x) \propto \exp(\ell(x \mid y) / T)\, P(y)`.
    The paper's own reading is ``PMM1(prior="uniform", decode="greedy")``. ``predict_proba``
    gives each label's marginal, and ``decision_function`` the log posterior of the best set with
    the label minus that of the best without it, over these candidates: the label sets of the
    training documents, and each label alone; the best of them after labels have been added or
    removed one at a time as long as that pays; and all sets one label away from that one.

    Parameters
    ----------
    smoothing : float, "auto" or None, default=None
        Pseudo-count of every pair of a label and a word; :math:`\xi - 1` in [1]_. None is the
        paper's 1.0 with ``prior="uniform"``, else 0.1; "auto" is chosen as the temperature is.
    prior : {"labelset", "labels", "uniform"}, default="labelset"
        How likely label sets are beforehand: by their documents, with some mass for sets that
        were not seen; by each label's documents; or all the same. See
        :class:`~polytopic.models.SetPrior`.
    temperature : float or "auto", default="auto"
        What log likelihoods are divided by, since words of a text are less independent than the
        model thinks. "auto" is chosen in ``fit`` by documents that are left out one at a time,
        and then kept, also by ``partial_fit`` and ``forget``.
    decode : {"f", "map", "greedy"}, default="f"
        Which label set is the answer: the one with the best expected F, the most probable one,
        or that of a greedy search, which adds labels as long as the posterior rises ([1]_,
        section 3.3).
    search : {"greedy", "exact"}, default="greedy"
        Whether the most probable set is looked for among the candidates, or by branch and bound
        among all label sets, with a proof. For ``predict_sets``, and ``decode="map"``.
    max_nodes : int, default=200
        Subproblems that an exact search may split for a document.
    max_iter : int, default=200
        EM steps to run at most.
    tol : float, default=1e-5
        EM stops when three steps raise the objective by less than this for each word that
        has several labels to come from.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    counts_ : LabelSetCounts
        The table of the documents learned so far.
    word_proba_ : ndarray of shape (n_labels, n_words)
        Word distribution of each label, :math:`\theta` in [1]_.
    smoothing_, temperature_ : float
        What is used.
    tuned_ : dict
        What was chosen by documents.
    objective_ : float
        Log posterior of the parameters, :math:`J` of [1]_, Eq. (6); EM never lowers it.
    n_iter_ : int
        EM steps run.

    References
    ----------
    .. [1] Ueda and Saito, "Parametric Mixture Models for Multi-Labeled Text", NIPS 15, 2002.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]]
    >>> model = PMM1().fit(X, [["sport"], ["film"], ["film", "sport"]])
    >>> model.classes_, model.predict([[9, 9, 1]])
    (array(['film', 'sport'], dtype=object), array([[1, 1]]))
    """

    name = "pmm1"

    def _family(self):
        return Family(EQUAL)

    def _set_state(self, labels, **state):
        super()._set_state(labels, **state)
        self._rough = None
        if self.prior == "uniform" and self.decode == "greedy":
            small = np.float32 if self._theta.min() > SMALLEST else np.float64
            self._rough = np.stack(
                [self._log_theta, self._theta], axis=1, dtype=small, casting="same_kind"
            )

    def _decide(self, data, indices, indptr, problem, decode, chosen):
        if decode == "greedy" and self._rough is not None and problem.theta is self._theta:
            tables = self._theta, self._log_theta, self._rough
            mixture.greedy_sets(data, indices, indptr, *tables, self._seen, chosen)
        else:
            super()._decide(data, indices, indptr, problem, decode, chosen)


class PMM2(MixtureModel):
    r"""Parametric mixture model with biases between pairs of labels.

    As :class:`PMM1`, but where two labels meet, one may say more than the other ([1]_, Eq. (4)
    and (5)); with :math:`k` labels

    .. math:: \varphi_i = \sum_{l \in L} c_l \theta_{li}, \qquad
              c_l = \frac{2}{k^2} \sum_{m \in L} \alpha_{lm}, \qquad
              \alpha_{lm} + \alpha_{ml} = 1

    With all biases one half it is PMM1.

    Parameters
    ----------
    smoothing, prior, temperature, decode, search, max_nodes, max_iter, tol
        See :class:`PMM1`.
    bias_smoothing : float, default=1.0
        Pseudo-count of each bias, :math:`\zeta - 1` in [1]_.

    Attributes
    ----------
    bias_ : ndarray of shape (n_labels, n_labels)
        :math:`\alpha` in [1]_: how much ``bias_[l, m]`` of what both say is the part of ``l``;
        one half on the diagonal and for labels that never met.
    classes_, counts_, word_proba_, smoothing_, temperature_, tuned_, objective_, n_iter_
        See :class:`PMM1`; the objective is not concave, EM reaches a local maximum.

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
    _array_specs = BIASED_MIXTURE

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
        bias_smoothing=1.0,
    ):
        super().__init__(
            smoothing=smoothing,
            prior=prior,
            temperature=temperature,
            decode=decode,
            search=search,
            max_nodes=max_nodes,
            max_iter=max_iter,
            tol=tol,
        )
        self.bias_smoothing = bias_smoothing

    def _check_parameters(self):
        super()._check_parameters()
        check_pseudo_count(self.bias_smoothing, "bias_smoothing")

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        return super().to_arrays() | {"bias": self.bias_}

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Take over what :meth:`to_arrays` gave; prediction is then the same to the bit.

        Arrays that no model could have given raise ValueError.
        """
        super().from_arrays(arrays, labels=labels, n_words=n_words, tuned=tuned)
        self.bias_ = arrays["bias"]
        return self

    def _learn_mixture(self, matrix, sets):
        fit = fit_mixture(
            matrix,
            sets,
            smoothing=self.smoothing_,
            bias_smoothing=self.bias_smoothing,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.bias_ = fit.bias
        return fit

    def _relearned(self, matrix, sets, em_steps):
        return continue_mixture(
            matrix, sets, self._theta, em_steps, smoothing=self.smoothing_, bias=self.bias_
        )

    def _learned_weights(self, sets):
        weights = np.empty(sets.nnz)
        mixture.bias_weights(sets.indices, sets.indptr, self.bias_, weights)
        return weights

    def _family(self):
        return Family(BIASED, bias=self.bias_)
