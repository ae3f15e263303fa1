"""Labels: their ids and names, their tree, and the forms of a target ``Y``."""

from polytopic.labels.targets import (
    LabelSpace,
    TargetForm,
    Targets,
    canonical,
    indicator,
    read_targets,
    stack_sets,
    widen,
    with_fallback,
)
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
    "stack_sets",
    "widen",
    "with_fallback",
]
