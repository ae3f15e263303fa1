"""The result of tuning: the best rule, and the metrics of every rule with every parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from polytopic.decision.rules import Rule
from polytopic.errors import PolytopicError

SHOWN = ("samples_precision", "samples_recall", "document_f1", "subset_accuracy")
FIXED_RATIOS = (0.7, 0.8)  # of Figure 2a in Skorkovská et al.


@dataclass(frozen=True, repr=False)
class DecisionSurface:
    """The metrics of rules on held-out documents, from :func:`~polytopic.decision.tune_decision`.

    Attributes
    ----------
    best_rule : rule
        The best rule with its best parameters, for a :class:`~polytopic.decision.LabelDecision`.
    best_score : float
        Its metric on the held-out documents.
    best_rules : dict of str to rule
        Each kind of rule with its best parameters.
    metric : str
        The metric by which rules are compared.
    n_docs : int
        Number of held-out documents.
    surface : list of dict
        One point per rule and setting: ``rule`` (its name), its parameters (``size``, ``ratio``,
        ``k``, ``value``, ``cohort``; None for those it does not have), ``reject``, and the metrics
        by name.
        ``pandas.DataFrame(tuned.surface)`` makes it a table.
    """

    best_rule: Rule
    best_score: float
    best_rules: dict[str, Rule]
    metric: str
    n_docs: int
    surface: list[dict[str, Any]]

    @classmethod
    def of_points(
        cls,
        points: Sequence[tuple[Rule, dict[str, float]]],
        parameters: Sequence[str],
        metric: str,
        n_docs: int,
    ) -> DecisionSurface:
        """Find the best of these rules, given with their metrics; ``parameters`` were tuned.

        Points also have the parameters that choose between forms of a rule. Of neighbouring points
        with equal scores, the middle one is chosen: it is the farthest from worse ones.
        """
        shown = dict.fromkeys(
            [*parameters, *(name for rule, _ in points for name in rule.variants)]
        )
        records = [
            {
                "rule": type(rule).__name__,
                **{name: rule.get_params().get(name) for name in shown},
                "reject": rule.reject,
                **metrics,
            }
            for rule, metrics in points
        ]
        scores = [metrics[metric] for _, metrics in points]
        best = {}
        for name in dict.fromkeys(record["rule"] for record in records):
            own = [place for place, record in enumerate(records) if record["rule"] == name]
            best[name] = _middle_of_best([rule for rule, _ in points], own, scores)
        top = max(best.values(), key=lambda place: (scores[place], -place))
        rules = {name: _unfitted(points[place][0]) for name, place in best.items()}
        return cls(rules[records[top]["rule"]], scores[top], rules, metric, n_docs, records)

    def __repr__(self) -> str:
        columns = list(dict.fromkeys([self.metric, *SHOWN]))
        best = [(rule, self._at(rule)) for rule in self.best_rules.values()]
        best.sort(key=lambda pair: -pair[1][self.metric])
        rows = [["rule", *columns]]
        rows += [
            [describe_rule(rule), *(f"{point[name]:.4f}" for name in columns)]
            for rule, point in best
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        return "\n".join([f"{self.n_docs:,} held-out documents", *lines])

    def _at(self, rule: Rule) -> dict[str, Any]:
        """Return the point of a rule with its parameters."""
        wanted = {"rule": type(rule).__name__, "reject": rule.reject, **_parameters(rule)}
        return next(point for point in self.surface if wanted.items() <= point.items())

    def plot(self):
        """Draw the metric against the ratio for each rule, and for each size of the cohort.

        These are Figures 1 and 2 of Skorkovská et al., with a row for each kind of cohort. Needs
        matplotlib; returns its figure.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise PolytopicError(
                "matplotlib is not installed. Install it with: pip install 'polytopic[plots]'"
            ) from error
        with_size = [point for point in self.surface if point["size"] is not None]
        kinds = list(dict.fromkeys(point.get("cohort") for point in with_size))
        figure = Figure(
            figsize=(5 * (3 if kinds else 1), 4 * max(1, len(kinds))), layout="constrained"
        )
        layout = [["rules", f"ratio {kind}", f"size {kind}"] for kind in kinds]
        axes: dict[str, Any] = figure.subplot_mosaic(layout or [["rules"]])
        self._draw_rules(axes["rules"])
        for kind in kinds:
            own = [point for point in with_size if point.get("cohort") == kind]
            best = max(own, key=lambda point: point[self.metric])
            near = [p for p in own if p["ratio"] in (*FIXED_RATIOS, best["ratio"])]
            title = best["rule"] if kind is None else f'{best["rule"]}, cohort="{kind}"'
            _draw_lines(axes[f"ratio {kind}"], own, "ratio", "size", self.metric, title)
            _draw_lines(axes[f"size {kind}"], near, "size", "ratio", self.metric, title)
            axes[f"size {kind}"].set_xscale("log")
        return figure

    def _draw_rules(self, axes) -> None:
        """Draw the metric against the ratio; rules without one are horizontal lines."""
        styles = cycle([":", "--", "-."])
        for name, rule in self.best_rules.items():
            if rule.swept != "ratio":
                score = self._at(rule)[self.metric]
                axes.axhline(score, linestyle=next(styles), color="grey", label=describe_rule(rule))
                continue
            fixed = {"rule": name, **_fixed(rule)}
            own = [p for p in self.surface if fixed.items() <= p.items()]
            label = ", ".join([name, *(f"{key} {value}" for key, value in _fixed(rule).items())])
            axes.plot([p["ratio"] for p in own], [p[self.metric] for p in own], label=label)
        axes.set(xlabel="ratio", ylabel=self.metric, title=f"{self.n_docs:,} held-out documents")
        axes.legend(fontsize="small")


def describe_rule(rule: Rule) -> str:
    """Return a rule with its tuned parameters, such as ``TNorm(ratio=0.9)``."""
    settings = [f"{name}={getattr(rule, name):.4g}" for name in rule.grid]
    forms = {name: getattr(rule, name) for name in rule.variants}
    settings += [
        f"{name}={form!r}" for name, form in forms.items() if form != rule.variants[name][0]
    ]
    return f"{type(rule).__name__}({', '.join(settings + ['reject=True'] * rule.reject)})"


def _parameters(rule: Rule) -> dict[str, Any]:
    """Return the tuned parameters, and those that choose the form of the rule."""
    return {name: getattr(rule, name) for name in (*rule.grid, *rule.variants)}


def _draw_lines(axes, points, across: str, line: str, metric: str, title: str) -> None:
    """Draw the metric against one parameter, with a line for each value of another."""
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
    axes.set(xlabel=across, ylabel=metric, title=title)
    axes.legend(fontsize="x-small", ncols=2)


def _unfitted(rule: Rule) -> Rule:
    return type(rule)(**rule.get_params(deep=False))


def _middle_of_best(rules: Sequence[Rule], places: Sequence[int], scores: Sequence[float]) -> int:
    """Return the middle of the first run of highest scores along the swept parameter."""
    first = max(places, key=lambda place: (scores[place], -place))
    last = first
    while last + 1 in places and (
        scores[last + 1] == scores[first] and _fixed(rules[last + 1]) == _fixed(rules[first])
    ):
        last += 1
    return (first + last) // 2


def _fixed(rule: Rule) -> dict[str, Any]:
    """Return the parameters that are not swept."""
    return {name: value for name, value in _parameters(rule).items() if name != rule.swept}
