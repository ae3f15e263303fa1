"""Labels: their ids and names, their tree, and the forms of a target ``Y``."""

from polytopic.labels.space import LabelSpace, canonical, indicator, widen, with_fallback
from polytopic.labels.targets import TargetForm, Targets, read_targets
from polytopic.labels.tree import LabelTree, Level

__all__ = [
    "LabelSpace",
    "LabelTree",
    "Level",
    "TargetForm",
    "Targets",
    "canonical",
    "indicator",
    "read_targets",
    "widen",
    "with_fallback",
]
