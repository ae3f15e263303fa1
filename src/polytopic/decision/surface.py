"""What tuning has found: the best rule, and what every rule reaches with every parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from polytopic.decision.base import Rule
from polytopic.errors import PolytopicError

PARAMETERS = ("size", "ratio", "k", "value")
SHOWN = ("samples_precision", "samples_recall", "document_f1", "subset_accuracy")
FIXED_RATIOS = (0.7, 0.8)  # of Figure 2a


@dataclass(frozen=True, repr=False)
class DecisionSurface:
    """What rules reach on held-out documents, from :func:`~polytopic.decision.tune_decision`.

    Attributes
    ----------
    best_rule : rule
        The best rule with its best parameters, for a :class:`~polytopic.decision.LabelDecision`.
    best_score : float
        What it reaches on the held-out documents.
    best_rules : dict of str to rule
        The best parameters of each kind of rule.
    metric : str
        The measure that they are best in.
    n_docs : int
        Held-out documents.
    surface : list of dict
        What was measured: for each point ``rule`` (its name), its parameters (``size``,
        ``ratio``, ``k``, ``value``; None for one that it has not), ``reject``, and the measures
        by name. ``pandas.DataFrame(tuned.surface)`` makes it a table.
    """

    best_rule: Rule
    best_score: float
    best_rules: dict[str, Rule]
    metric: str
    n_docs: int
    surface: list[dict[str, Any]]

    @classmethod
    def of_points(cls, points: Sequence[tuple[Rule, dict]], metric: str, n_docs: int):
        """Find the best of measured rules.

        Of points with equal scores, next to each other, the middle one is the best: it is the
        farthest from what is worse.
        """
        records = [_record(rule, measures) for rule, measures in points]
        best = {}
        for name in dict.fromkeys(record["rule"] for record in records):
            own = [place for place, record in enumerate(records) if record["rule"] == name]
            best[name] = _middle_of_best(records, own, metric)
        top = max(best.values(), key=lambda place: (records[place][metric], -place))
        rules = {name: _unfitted(points[place][0]) for name, place in best.items()}
        score = records[top][metric]
        return cls(rules[records[top]["rule"]], score, rules, metric, n_docs, records)

    def __repr__(self) -> str:
        columns = list(dict.fromkeys([self.metric, *SHOWN]))
        best = [(rule, self._at(rule)) for rule in self.best_rules.values()]
        best.sort(key=lambda pair: -pair[1][self.metric])
        rows = [["rule", *columns]]
        rows += [[told(rule), *(f"{point[name]:.4f}" for name in columns)] for rule, point in best]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        return "\n".join([f"{self.n_docs:,} held-out documents", *lines])

    def _at(self, rule: Rule) -> dict:
        """Return what was measured of a rule."""
        wanted = _record(rule, {})
        return next(point for point in self.surface if wanted.items() <= point.items())

    def plot(self):
        """Draw the measure against the ratio for each rule, and for each size of the cohort.

        These are Figures 1 and 2 of Skorkovská et al. Needs matplotlib; returns its figure.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise PolytopicError(
                "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
            ) from error
        cohort = [point for point in self.surface if point["size"] is not None]
        figure = Figure(figsize=(5 * (3 if cohort else 1), 4), layout="constrained")
        axes = figure.subplots(1, 3 if cohort else 1, squeeze=False)[0]
        self._draw_rules(axes[0])
        if cohort:
            _draw_lines(axes[1], cohort, "ratio", "size", self.metric)
            near = [p for p in cohort if p["ratio"] in (*FIXED_RATIOS, self._cohort_ratio)]
            _draw_lines(axes[2], near, "size", "ratio", self.metric)
            axes[2].set_xscale("log")
        return figure

    @property
    def _cohort_ratio(self) -> float:
        return next(r.ratio for r in self.best_rules.values() if hasattr(r, "size"))

    def _draw_rules(self, axes) -> None:
        """Draw the measure against the ratio; rules without one are level lines."""
        styles = cycle([":", "--", "-."])
        for name, rule in self.best_rules.items():
            if rule.swept != "ratio":
                score = self._at(rule)[self.metric]
                axes.axhline(score, linestyle=next(styles), color="grey", label=told(rule))
                continue
            size = getattr(rule, "size", None)
            own = [p for p in self.surface if p["rule"] == name and p["size"] == size]
            label = name if size is None else f"{name}, size {size}"
            axes.plot([p["ratio"] for p in own], [p[self.metric] for p in own], label=label)
        axes.set(xlabel="ratio", ylabel=self.metric, title=f"{self.n_docs:,} held-out documents")
        axes.legend(fontsize="small")


def _draw_lines(axes, points, across: str, line: str, metric: str) -> None:
    """Draw the measure against one parameter, a line for each value of another."""
    values = list(dict.fromkeys(point[line] for point in points))
    for place, value in enumerate(values):
        own = [point for point in points if point[line] == value]
        shade = place / max(1, len(values) - 1)
        axes.plot(
            [p[across] for p in own],
            [p[metric] for p in own],
            color=(0.9 * (1 - shade), 0.2 + 0.4 * shade, 0.8 * shade),
            label=f"{line} {value}",
        )
    axes.set(xlabel=across, ylabel=metric, title="UnconstrainedCohort")
    axes.legend(fontsize="x-small", ncols=2)


def _record(rule: Rule, measures: dict) -> dict[str, Any]:
    """Return a point of the surface."""
    parameters = {name: getattr(rule, name, None) for name in PARAMETERS}
    return {"rule": type(rule).__name__, **parameters, "reject": rule.reject, **measures}


def told(rule: Rule) -> str:
    """Return a rule with its parameters, short."""
    values = {name: getattr(rule, name) for name in PARAMETERS if hasattr(rule, name)}
    settings = [f"{name}={value:.4g}" for name, value in values.items()]
    return f"{type(rule).__name__}({', '.join(settings + ['reject=True'] * rule.reject)})"


def _unfitted(rule: Rule) -> Rule:
    return type(rule)(**rule.get_params(deep=False))


def _middle_of_best(records: Sequence[dict], places: Sequence[int], metric: str) -> int:
    """Return the middle of the first run of highest scores, of one size."""
    first = max(places, key=lambda place: (records[place][metric], -place))
    best, size = records[first][metric], records[first]["size"]
    last = first
    while last + 1 in places and (
        records[last + 1][metric] == best and records[last + 1]["size"] == size
    ):
        last += 1
    return (first + last) // 2
