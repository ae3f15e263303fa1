"""The one list of decision rules, for model files, commands and tuning; it imports none."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polytopic.decision.rules import Rule


@dataclass(frozen=True)
class RuleEntry:
    """A decision rule, and where to find it.

    Attributes
    ----------
    name : str
        Name of the class, which model files store.
    module : str
        Module that defines it.
    option : str or None
        Value of ``polytopic train --rule`` that chooses it, if there is one.
    settings : tuple of str
        Parameters that have a command-line option.
    """

    name: str
    module: str = "polytopic.decision.rules"
    option: str | None = None
    settings: tuple[str, ...] = ()

    def load(self) -> type[Rule]:
        """Import the class."""
        return getattr(import_module(self.module), self.name)


# Where rules are equally good, tuning takes the first of them.
RULES = {
    entry.name: entry
    for entry in (
        RuleEntry("TopK"),
        RuleEntry("Threshold"),
        RuleEntry("MeanPlusStd", option="mean-plus-std"),
        RuleEntry("UnconstrainedCohort", option="cohort", settings=("ratio", "size")),
        RuleEntry("TNorm", option="t-norm", settings=("ratio",)),
        RuleEntry("WorldModel", option="world-model", settings=("ratio",)),
        RuleEntry("TreeCohort", option="tree-cohort", settings=("ratio",)),
    )
}
