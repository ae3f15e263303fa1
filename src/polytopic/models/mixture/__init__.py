"""Mixture models: PMM1, PMM2 and PDMM.

- `estimators` has the three models. They share `MixtureModel`, which learns a table of counts and
  answers from a posterior; each model adds its `Family`, that is, how labels are mixed.
- `em` learns the word distributions of the labels from the table (those of PDMM as in PMM1).
- `posterior` combines likelihood and `SetPrior` into a `LabelSetPosterior`, which the models ask
  for label sets, margins and probabilities.
- `tuning` tunes temperature and smoothing on leave-one-out predictions, which come from
  `polytopic.models.leave_one_out`.
- `likelihood_kernels` scores and bounds one label set, `candidate_kernels` compares the likely sets
  of a document, `branch_kernels` searches all sets, `tuning_kernels` serves `tuning`.
"""

from polytopic.models.mixture.estimators import PDMM, PMM1, PMM2, MixtureModel
from polytopic.models.mixture.posterior import LabelSetPosterior, SetPrior

__all__ = ["PDMM", "PMM1", "PMM2", "LabelSetPosterior", "MixtureModel", "SetPrior"]
