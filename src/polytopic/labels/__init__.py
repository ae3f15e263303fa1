"""Labels: their ids and names, their tree, and the forms in which a target may come."""

from polytopic.labels.levels import Level
from polytopic.labels.space import LabelSpace, canonical, indicator, widen, with_fallback
from polytopic.labels.targets import TargetForm, Targets, read_targets
from polytopic.labels.tree import LabelTree

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
