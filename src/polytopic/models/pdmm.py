"""Parametric Dirichlet mixture model: each document has its own mixture of its labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polytopic.kernels.sets import BOUND, PAPER, Family
from polytopic.models.checks import check_name
from polytopic.models.mixture import MixtureModel

LIKELIHOODS = {"bound": BOUND, "paper": PAPER}
LIMITS = 1e-6, 1e6  # of Dirichlet parameters


class PDMM(MixtureModel):
    r"""Parametric Dirichlet mixture model.

    As :class:`PMM1`, but the weights of a document's labels are its own, drawn from a Dirichlet
    distribution ([1]_, Eq. (4)–(6)). Given a label set, their posterior is found by variational
    Bayes, Eq. (29) and (30), with :math:`\gamma` its parameters and :math:`\phi` the words'
    labels. Word distributions are learned as those of PMM1.

    Parameters
    ----------
    smoothing, prior, temperature, decode, search, max_nodes, max_iter, tol
        See :class:`PMM1`.
    mixing : float, sequence of n_labels floats, or mapping of label to float, default=1.0
        Parameters :math:`\alpha` of the Dirichlet prior, in the order of ``classes_``. Labels
        that a mapping does not name have 1.
    likelihood : {"bound", "paper"}, default="bound"
        How well a label set suits a document: the lower bound of the log evidence; or [1]_, Eq.
        (35), the log likelihood of the mean weights. These were fitted to the same document, so
        the paper's likelihood hardly punishes a useless label.

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
    """

    name = "pdmm"

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
        mixing=1.0,
        likelihood="bound",
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
        self.mixing = mixing
        self.likelihood = likelihood

    def _check_parameters(self):
        super()._check_parameters()
        check_name(self.likelihood, "likelihood", LIKELIHOODS)

    def _check_labels(self, labels):
        _dirichlet(self.mixing, labels)
        if isinstance(self.mixing, Mapping) and not hasattr(self, "classes_"):
            unknown = sorted(set(self.mixing) - set(labels), key=str)
            if unknown:
                raise ValueError(f"mixing names {unknown[0]!r}, which is no label.")

    def _set_state(self, labels, **state):
        self._mixing = _dirichlet(self.mixing, labels)
        super()._set_state(labels, **state)

    def _family(self):
        return Family(LIKELIHOODS[self.likelihood], mixing=self._mixing)

    def _word_weights(self, x, sets, theta):
        if self.likelihood == "paper":
            return self._mixture(x, sets, theta)[0, sets.indices]
        return super()._word_weights(x, sets, theta)

    def proportions(self, said, sets):
        r"""Return the mean of the posterior, whose parameters are :math:`\gamma`."""
        empty = said.sum(axis=1, keepdims=True) == 0
        gamma = np.where(empty, sets, said + sets * self._mixing)
        return gamma / gamma.sum(axis=1, keepdims=True)


def _dirichlet(mixing, labels) -> np.ndarray:
    """Return the Dirichlet parameter of each label."""
    values = _numbers(mixing, labels)
    if values.ndim == 0:
        values = np.full(len(labels), float(values))
    if values.size != len(labels):
        raise ValueError(
            f"mixing has {values.size} numbers and there are {len(labels)} labels; "
            "they must be as many."
        )
    if not ((values >= LIMITS[0]) & (values <= LIMITS[1])).all():
        raise ValueError(f"mixing == {mixing!r}, must be between {LIMITS[0]} and {LIMITS[1]}.")
    return values


def _numbers(mixing, labels) -> np.ndarray:
    """Return one number, or one for each label."""
    given = mixing
    if isinstance(mixing, Mapping):
        given = [mixing.get(label, 1.0) for label in labels]
    try:
        values = np.array(given)
    except ValueError:  # lists of several lengths
        values = np.array(None)
    if values.dtype.kind not in "biuf" or values.ndim > 1:
        raise ValueError(
            f"mixing == {mixing!r}, must be a number, a list of one for each label, or a mapping "
            "of labels to numbers."
        )
    return values.astype(np.float64)
