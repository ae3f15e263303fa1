"""Maximal margin labeling (Kazawa, Izumitani, Taira and Maeda, NIPS 17, 2004).

``estimator``: :class:`MML`, which has a scorer once it is fitted; everything that users call.
``embedding``: label sets as vectors whose inner products are their similarities.
``training``: :class:`~polytopic.models.mml.training.DualAscent`, which learns the weights; and how
``C`` and the curves of probabilities are tuned on held-out documents.
``scoring``: :class:`~polytopic.models.mml.scoring.SetScorer`, which finds the best label sets from
the weights and the embedding.
``exact``: training and scoring for small problems, by listing all label sets, with any similarity
and any kernel: :class:`~polytopic.models.mml.exact.DualProblem`, and its scorer.
``training_kernels`` and ``search_kernels``: the compiled loops of training and scoring.
"""

from polytopic.models.mml.estimator import MML
from polytopic.models.mml.exact import label_sets

__all__ = ["MML", "label_sets"]
