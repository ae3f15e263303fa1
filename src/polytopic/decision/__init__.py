"""Decision rules: how many of the scored labels a document gets.

``rules`` has the base class :class:`Rule` and the rules, which turn scores into label sets with the
compiled loops in ``kernels``; ``registry`` lists them. ``estimator`` applies a rule to the scores
of any estimator (:class:`LabelDecision`). ``tuning`` finds the best rule on held-out documents.
Modules are imported when one of their names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polytopic.decision.registry import RULES

if TYPE_CHECKING:
    from polytopic.decision.estimator import LabelDecision, apply_rule
    from polytopic.decision.rules import (
        MeanPlusStd,
        Rule,
        Threshold,
        TNorm,
        TopK,
        TreeCohort,
        UnconstrainedCohort,
        WorldModel,
    )
    from polytopic.decision.tuning import DecisionSurface, describe_rule, tune_decision

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
    "describe_rule",
    "tune_decision",
]

_MODULES = {name: entry.module for name, entry in RULES.items()} | {
    "Rule": "polytopic.decision.rules",
    "LabelDecision": "polytopic.decision.estimator",
    "apply_rule": "polytopic.decision.estimator",
    "DecisionSurface": "polytopic.decision.tuning",
    "describe_rule": "polytopic.decision.tuning",
    "tune_decision": "polytopic.decision.tuning",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
