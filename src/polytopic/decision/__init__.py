"""Decisions: which labels are enough, apart from how they are scored."""

from polytopic.decision.base import Rule
from polytopic.decision.estimator import LabelDecision, apply_rule
from polytopic.decision.normalisation import TNorm, TreeCohort, UnconstrainedCohort, WorldModel
from polytopic.decision.rules import MeanPlusStd, Threshold, TopK
from polytopic.decision.surface import DecisionSurface
from polytopic.decision.tuning import tune_decision

RULES = {
    rule.__name__: rule
    for rule in (TopK, Threshold, MeanPlusStd, WorldModel, UnconstrainedCohort, TreeCohort, TNorm)
}

__all__ = [
    "RULES",
    "DecisionSurface",
    "LabelDecision",
    "MeanPlusStd",
    "Rule",
    "TNorm",
    "Threshold",
    "TopK",
    "TreeCohort",
    "UnconstrainedCohort",
    "WorldModel",
    "apply_rule",
    "tune_decision",
]
