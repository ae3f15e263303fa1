"""Maximal margin labeling (Kazawa, Izumitani, Taira and Maeda, NIPS 17, 2004).

``estimator``: :class:`MML`, which has a scorer once it is fitted; everything that users call.
``embedding``: label sets as vectors whose inner products are their similarities.
``training``: :class:`~polytopic.models.mml.training.DualAscent`, which learns the weights.
``scoring``: :class:`~polytopic.models.mml.scoring.SetScorer`, which finds the best label sets by
weights and embedding.
``tuning``: tunes ``C`` and calibrates probabilities on held-out documents.
``kernels_training`` and ``kernels_search``: the compiled loops of training and scoring.
"""

from polytopic.models.mml.estimator import MML

__all__ = ["MML"]
