"""BoosTexter of Schapire and Singer (2000): boosted one-word rules.

``estimator`` holds the rules: how they are learned and applied, and how they explain a score.
``kernels`` holds the compiled boosting rounds.
"""

from polytopic.models.boostexter.estimator import BoosTexter, WordRule

__all__ = ["BoosTexter", "WordRule"]
