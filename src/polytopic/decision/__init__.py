"""Decisions: which labels are enough, apart from how they are scored."""

from polytopic.decision.estimator import LabelDecision, apply_rule
from polytopic.decision.rules import Rule, Threshold, TopK, WorldModel

RULES = {rule.__name__: rule for rule in (Threshold, TopK, WorldModel)}

__all__ = ["RULES", "LabelDecision", "Rule", "Threshold", "TopK", "WorldModel", "apply_rule"]
