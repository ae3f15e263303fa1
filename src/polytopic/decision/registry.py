"""The decision rules by name: the one place that lists them.

Model files, commands and tuning read this list. It imports no rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polytopic.models.registry import load

if TYPE_CHECKING:
    from polytopic.decision.rules import Rule


@dataclass(frozen=True)
class RuleEntry:
    """What is known about a decision rule without loading it.

    ``polytopic train --rule`` offers the rules that have an ``option``.

    Attributes
    ----------
    name : str
        Name of the class, which model files store.
    module : str
        Module that defines it.
    option : str or None
        Its name on the command line, if it has one.
    settings : tuple of str
        Parameters that have a command-line option.
    unstored : mapping of str to value
        Parameters that older model files do not have, with the values that they stand for.
    """

    name: str
    module: str = "polytopic.decision.rules"
    option: str | None = None
    settings: tuple[str, ...] = ()
    unstored: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> type[Rule]:
        """Return the class."""
        return load(f"{self.module}:{self.name}")


# If several rules are equally good, tuning chooses the first.
RULES = {
    entry.name: entry
    for entry in (
        RuleEntry("TopK"),
        RuleEntry("Threshold"),
        RuleEntry("MeanPlusStd", option="mean-plus-std"),
        RuleEntry(
            "UnconstrainedCohort",
            option="cohort",
            settings=("ratio", "size", "cohort"),
            unstored={"cohort": "best"},
        ),
        RuleEntry("TNorm", option="t-norm", settings=("ratio",)),
        RuleEntry("WorldModel", option="world-model", settings=("ratio",)),
        RuleEntry("TreeCohort", option="tree-cohort", settings=("ratio",)),
    )
}

AUTO = "auto"  # the best rule on held-out documents
RULE_NAMES = (AUTO, *(entry.option for entry in RULES.values() if entry.option))
