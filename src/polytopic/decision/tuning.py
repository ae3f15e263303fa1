"""Tuning: the best rule and its parameters, on documents that the model has not learned.

`tune_decision` scores held-out documents once (`HeldOut`), tries every rule with all parameters on
these scores, and returns the results as a `DecisionSurface`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import cycle, product
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from polytopic import metrics
from polytopic.corpus.splits import folds
from polytopic.decision.estimator import (
    LabelDecision,
    has_world_score,
    holds_numbers,
    label_scores,
    takes_names,
    world_score,
)
from polytopic.decision.registry import RULES
from polytopic.decision.rules import Rule, TopK, check_scores
from polytopic.errors import PolytopicError
from polytopic.labels import LabelSpace, Targets, indicator, read_targets
from polytopic.metrics.label_sets import PER_DOCUMENT, f1, harmonic_mean
from polytopic.models import LabelSetClassifier, Model

N_THRESHOLDS = 101
SAMPLE = 1 << 21  # scores by which thresholds are chosen

TABLE_METRICS = ("samples_precision", "samples_recall", "document_f1", "subset_accuracy")
FIXED_RATIOS = (0.7, 0.8)  # of Figure 2a in Skorkovská et al.

COUNT_METRICS = (*PER_DOCUMENT, "micro_f1", "document_f1")  # computed in one pass over the scores
SET_METRICS = ("macro_f1", "hierarchical_f1", "hierarchical_precision", "hierarchical_recall")


def tune_decision(
    estimator,
    X,
    Y,
    rules: Sequence[Rule] | None = None,
    metric: str | Callable = "samples_f1",
    cv: Any = 5,
    *,
    grid: Mapping[str, Sequence] | None = None,
    tree=None,
) -> DecisionSurface:
    """Find the rule, its ratio and its size that are best on held-out documents.

    The estimator is fitted once per fold. All rules are tried, with all their parameters, on the
    scores of the documents that it has not learned. For each rule and size, one pass over the
    scores counts the accepted labels, and the correct ones among them, at all ratios.

    Parameters
    ----------
    estimator : estimator
        Gives the scores, see :class:`~polytopic.decision.LabelDecision`.
    X, Y
        Documents and labels in the form that the estimator takes. Documents without a label count
        only if a rule may reject.
    rules : sequence of rules, default=None
        Rules to try; parameters that are not in the grid are kept. By default, all rules that can
        be used: :class:`WorldModel` if the estimator has a ``world_score``, :class:`TreeCohort`
        with a ``tree``, and :class:`UnconstrainedCohort` with both kinds of cohort.
    metric : str or function of true and predicted labels, default="samples_f1"
        The metric of label sets to maximize, one of :mod:`polytopic.metrics`. Metrics that are
        means over documents are the fastest; for others, labels are decided at each point of the
        grid.
    cv : int, "prefit", splitter or iterable of pairs of rows, default=5
        Number of folds, which have equal shares of labels; or "prefit" for an estimator that was
        fitted on other documents.
    grid : mapping, default=None
        Values to try of ``"ratio"``, ``"size"``, ``"k"`` and ``"value"``. By default ratios in
        steps of .01, sizes 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80 and 120, the best 1 to 10 labels,
        and thresholds that accept from an eighth to eight times as many labels as are true.
        ``"cohort"`` may be given, too; by default, each rule keeps its own.
    tree : LabelTree, default=None
        The tree of labels, for :class:`TreeCohort` and hierarchical metrics.

    Returns
    -------
    DecisionSurface
        The best rule, and the metrics at all points.

    Examples
    --------
    >>> from polytopic import NaiveBayes
    >>> from polytopic.decision import LabelDecision, TopK, WorldModel
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0], [4, 1, 0], [0, 3, 1], [1, 1, 0]]
    >>> Y = [["sport"], ["film"], ["film", "sport"], ["sport"], ["film"], ["film", "sport"]]
    >>> tuned = tune_decision(NaiveBayes(), X, Y, rules=[TopK(), WorldModel()], cv=3)
    >>> tuned.best_rule, round(tuned.best_score, 3)
    (WorldModel(ratio=0.21), 0.944)
    >>> model = LabelDecision(NaiveBayes(), tuned.best_rule).fit(X, Y)
    """
    rules = None if rules is None else _check_rules(rules)
    values = _check_grid(grid, rules or ())
    name, decided_metric = _check_metric(metric, tree)
    held_out = score_held_out(estimator, X, Y, cv)
    if rules is None:
        rules = _usable_rules(held_out, tree)
    labelled = np.flatnonzero(np.diff(held_out.Y.indptr) > 0)
    if labelled.size < held_out.Y.shape[0] and not any(rule.reject for rule in rules):
        held_out = held_out.rows(labelled)
    if not labelled.size:
        raise ValueError("No held-out document has a label.")
    points: list[tuple[Rule, dict[str, float]]] = []
    for rule in rules:
        if rule.needs_reference and held_out.reference is None:
            world_score(estimator, rule, X)  # raises: there is none
        for candidate in _rules_to_sweep(rule, values, held_out, tree):
            points += _measure(candidate, values, held_out, name, decided_metric)
    return DecisionSurface.from_points(points, list(values), name, held_out.scores.shape[0])


@dataclass(frozen=True)
class HeldOut:
    """Scores, references and true labels of held-out documents.

    Attributes
    ----------
    scores : ndarray of shape (n_docs, n_labels)
        Scores of the labels, ``-inf`` where the model does not know one.
    reference : ndarray of shape (n_docs,) or None
        Scores under the general model, if there is one.
    Y : csr_matrix of shape (n_docs, n_labels)
        True labels.
    wordless : ndarray of bool, shape (n_docs,)
        Documents without words or scores, which get the ``fallback`` with any rule.
    fallback : csr_matrix of shape (n_docs, n_labels)
        Labels of these documents; no label for others.
    classes : tuple
        Labels of the columns.
    """

    scores: np.ndarray
    reference: np.ndarray | None
    Y: sparse.csr_matrix
    wordless: np.ndarray
    fallback: sparse.csr_matrix
    classes: tuple

    def rows(self, rows) -> HeldOut:
        """Return some of the documents."""
        return HeldOut(
            self.scores[rows],
            None if self.reference is None else self.reference[rows],
            self.Y[rows],
            self.wordless[rows],
            self.fallback[rows],
            self.classes,
        )


def score_held_out(estimator, X, Y, cv) -> HeldOut:
    """Score each fold by a model of the others, or all documents by a fitted model."""
    targets = read_targets(Y)
    if targets.form.kind == "single":
        raise ValueError("Y has one label per document (1-D), which leaves nothing to decide.")
    n_docs = X.shape[0] if sparse.issparse(X) else len(X)
    n_rows = targets.Y.shape[0]
    if n_docs != n_rows:
        raise ValueError(f"X has {n_docs} documents and Y has {n_rows}; the numbers must be equal.")
    if isinstance(cv, str):
        if cv != "prefit":
            raise ValueError(f"cv == {cv!r}, must be a number, 'prefit', a splitter or pairs.")
        return _score_fitted(estimator, X, targets)
    Y = targets.Y
    if not isinstance(estimator, LabelSetClassifier):
        Y = Y.toarray().astype(np.int64)  # what scikit-learn understands
    by_name = targets.form.kind == "names" and takes_names(estimator)
    y = LabelSpace(targets.labels).decode(Y) if by_name else Y
    parts = []
    for train, test in _splits(cv, X, Y, targets):
        decision = LabelDecision(estimator, TopK()).fit(take(X, train), take(y, train))
        known = decision.classes_.tolist() if by_name else targets.labels  # names may be missing
        part = _score(decision, take(X, test), targets.Y[test], known)
        parts.append(_spread(part, known, targets.labels))
    if not parts:
        raise ValueError("cv yields no split, must yield at least one.")
    return _join(parts)


def take(X, rows):
    """Return some documents of a matrix, a table or a list."""
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if isinstance(X, np.ndarray) else [X[row] for row in rows]


def _splits(cv, X, Y, targets):
    if hasattr(cv, "split"):
        return cv.split(X, Y.toarray() if sparse.issparse(Y) else Y)
    if isinstance(cv, Integral):
        return folds(targets.Y, int(cv))
    return [(np.asarray(train), np.asarray(test)) for train, test in cv]


def _score_fitted(estimator, X, targets: Targets) -> HeldOut:
    """Score documents by a fitted estimator, over its labels and the true ones."""
    known = list(range(targets.Y.shape[1]))
    known = np.asarray(getattr(estimator, "classes_", known)).tolist()
    if isinstance(targets.labels[0], str) != isinstance(known[0], str):
        raise ValueError(
            "Y and the estimator use different labels: one has names, the other columns; give Y in "
            "the form that the estimator was fitted on."
        )
    space = LabelSpace([*known, *targets.labels])
    part = _score(estimator, X, targets.over(space.ids), space.ids)
    if part.scores.shape[1] != len(known):
        raise ValueError(
            f"The estimator has {part.scores.shape[1]} scores for {len(known)} labels in classes_."
        )
    return _spread(part, known, space.ids)


def _spread(part: HeldOut, known: Sequence, labels: Sequence) -> HeldOut:
    """Return scores of the known labels as scores of all labels, ``-inf`` for the others."""
    if list(known) == list(labels):
        return part
    space = LabelSpace(labels)
    scores = np.full((part.scores.shape[0], len(space)), -np.inf, part.scores.dtype)
    columns = [space.index(label) for label in known]
    scores[:, columns] = part.scores
    fallback = indicator(
        np.array(columns, dtype=np.int64)[part.fallback.indices], part.fallback.indptr, len(space)
    )
    return HeldOut(scores, part.reference, part.Y, part.wordless, fallback, space.ids)


def _score(fitted, X, Y, classes) -> HeldOut:
    """Score documents by a fitted estimator, with or without a decision around it."""
    decision = fitted if isinstance(fitted, LabelDecision) else None
    model = fitted if decision is None else decision.estimator_
    known = {} if decision is None else {"unseen": decision.unseen, "n_labels": len(classes)}
    scores = check_scores(label_scores(model, X, **known))
    labels: Sequence[int] | np.ndarray = ()
    if isinstance(fitted, LabelDecision | Model):
        labels = fitted.fallback
    wordless = np.full(scores.shape[0], holds_numbers(X) and len(labels) > 0)
    if wordless.any():
        wordless[sparse.csr_matrix(X).nonzero()[0]] = False
    if len(labels):
        wordless |= ~(scores > -np.inf).any(axis=1)
    ends = np.cumsum([0, *(wordless * len(labels))])
    return HeldOut(
        scores,
        model.world_score(X) if has_world_score(model) else None,
        Y,
        wordless,
        indicator(np.tile(labels, wordless.sum()).astype(np.int64), ends, scores.shape[1]),
        tuple(classes),
    )


def _join(parts: list[HeldOut]) -> HeldOut:
    references = [part.reference for part in parts if part.reference is not None]
    return HeldOut(
        np.concatenate([part.scores for part in parts]),
        np.concatenate(references) if references else None,
        sparse.vstack([part.Y for part in parts], format="csr"),
        np.concatenate([part.wordless for part in parts]),
        sparse.vstack([part.fallback for part in parts], format="csr"),
        parts[0].classes,
    )


def _usable_rules(held_out: HeldOut, tree) -> list[Rule]:
    """Return all rules that have what they need, with their default parameters."""
    kinds = [entry.load() for entry in RULES.values()]
    if held_out.reference is None:
        kinds = [kind for kind in kinds if not kind.needs_reference]
    return [
        kind(tree=tree, **variant) if kind.needs_tree else kind(**variant)
        for kind in kinds
        if tree is not None or not kind.needs_tree
        for variant in _combinations(kind.variants)
    ]


def _combinations(values: Mapping[str, Sequence]) -> Iterable[dict[str, Any]]:
    """Yield all combinations of the values of parameters."""
    for setting in product(*values.values()):
        yield dict(zip(values, setting, strict=True))


def _check_rules(rules) -> list[Rule]:
    rules = list(rules) if isinstance(rules, Iterable) else []
    if not rules or not all(isinstance(rule, Rule) for rule in rules):
        raise ValueError("rules must be a list of rules, such as [TNorm(), TopK()].")
    return rules


def _check_grid(grid, rules) -> dict[str, Sequence]:
    """Return the values to try for each parameter; variants are tried only if the grid has them."""
    defaults: dict[str, Sequence] = {}
    variants: dict[str, Sequence] = {}
    for kind in (*(entry.load() for entry in RULES.values()), *rules):
        defaults |= kind.grid
        variants |= kind.variants
    chosen = {name: np.sort(np.unique(values)).tolist() for name, values in (grid or {}).items()}
    for name, values in chosen.items():
        if name not in defaults | variants or not values:
            known = ", ".join(defaults | variants)
            raise ValueError(f"grid has {name!r}: {values}; it needs values of {known}.")
        usual = defaults.get(name, ())
        whole = usual and all(isinstance(value, Integral) for value in usual)
        if whole and not all(isinstance(value, Integral) for value in values):
            raise ValueError(f"grid has {name!r}: {values}, must be whole numbers.")
    return defaults | chosen


def _check_metric(metric, tree):
    """Return the name of a metric, and its function if it needs the decided labels."""
    if callable(metric):
        return getattr(metric, "__name__", "metric"), lambda Y, Y_pred, classes: metric(Y, Y_pred)
    if metric not in COUNT_METRICS and metric not in SET_METRICS:
        raise ValueError(
            f"metric == {metric!r}, must be one of {', '.join(COUNT_METRICS + SET_METRICS)}, "
            "or a function."
        )
    if metric in COUNT_METRICS:
        return metric, None
    function = getattr(metrics, metric)
    if metric == "macro_f1":
        return metric, lambda Y, Y_pred, classes: function(Y, Y_pred)
    if tree is None:
        raise ValueError(f"metric == {metric!r} needs the tree of labels; pass tree.")
    return metric, lambda Y, Y_pred, classes: function(Y, Y_pred, tree, classes=classes)


def _rules_to_sweep(rule: Rule, grid, held_out: HeldOut, tree):
    """Yield the rule with every combination of its tuned parameters that are not swept."""
    rule = rule.with_labels(held_out.classes, tree)
    n_others = max(1, len(held_out.classes) - 1)
    names = [name for name in rule.variants if name in grid]
    names += [name for name in rule.grid if name != rule.swept]
    values = {
        name: sorted({min(size, n_others) for size in grid[name]}) if name == "size" else grid[name]
        for name in names
    }
    for setting in _combinations(values):
        yield _set_copy(rule, **setting)


def _set_copy(rule: Rule, **parameters) -> Rule:
    """Return a copy of the rule with other parameters, and with what it has learned."""
    return copy(rule).set_params(**parameters)


def _measure(rule: Rule, grid, held_out: HeldOut, name: str, decided_metric) -> list:
    """Return the rule at all values of its swept parameter, with its metrics."""
    if rule.swept is None:
        candidates, values = [rule], None
    else:
        values = grid[rule.swept] if len(grid[rule.swept]) else _thresholds(held_out)
        candidates = [_set_copy(rule, **{rule.swept: _to_python(value)}) for value in values]
        for candidate in (candidates[0], candidates[-1]):
            candidate._check_parameters()
    curves = _count_curves(rule, values, held_out)
    records = [
        {metric: float(curve[place]) for metric, curve in curves.items()}
        for place in range(len(candidates))
    ]
    if decided_metric is not None:
        for candidate, record in zip(candidates, records, strict=True):
            Y = _decide(candidate, held_out)
            record[name] = float(decided_metric(held_out.Y, Y, held_out.classes))
    return list(zip(candidates, records, strict=True))


def _count_curves(rule: Rule, values, held_out: HeldOut) -> dict[str, np.ndarray]:
    """Return the counted metrics at all values, from one pass over the scores."""
    n_true = np.diff(held_out.Y.indptr)
    n_fallback = np.diff(held_out.fallback.indptr)
    n_right = held_out.fallback.multiply(held_out.Y).sum(axis=1).A1
    order = slice(None, None, -1 if rule.falls else 1)

    def sums(accepted, right, rows):
        if not rule.reject:
            wordless = held_out.wordless[rows]
            accepted[wordless] = n_fallback[rows][wordless, None]
            right[wordless] = n_right[rows][wordless, None]
        true = n_true[rows, None]
        means = [metric(right, true, accepted).sum(axis=0) for metric in PER_DOCUMENT.values()]
        return np.array([*means, right.sum(axis=0), accepted.sum(axis=0)], dtype=np.float64)

    parts = rule.count(
        held_out.scores,
        held_out.Y,
        None if values is None else np.asarray(values)[order],
        reference=held_out.reference,
        measure=sums,
    )
    *totals, right, accepted = sum(parts)[:, order]
    curves = {name: total / n_true.size for name, total in zip(PER_DOCUMENT, totals, strict=True)}
    curves["micro_f1"] = f1(right, n_true.sum(), accepted)
    curves["document_f1"] = harmonic_mean(curves["samples_precision"], curves["samples_recall"])
    return curves


def _decide(rule: Rule, held_out: HeldOut) -> sparse.csr_matrix:
    """Return the labels of the held-out documents, with those of documents without words."""
    Y = rule.decide(held_out.scores, reference=held_out.reference)
    if rule.reject or not held_out.wordless.any():
        return Y
    rest = sparse.diags_array((~held_out.wordless).astype(np.float64))
    return sparse.csr_matrix(rest @ Y + held_out.fallback)


def _thresholds(held_out: HeldOut) -> np.ndarray:
    """Return thresholds that accept from an eighth to eight times as many labels as are true."""
    step = max(1, held_out.scores.size // SAMPLE)
    scores = held_out.scores[::step]
    scores = scores[np.isfinite(scores)]
    if not scores.size:
        return np.zeros(1)
    share = held_out.Y[::step].nnz / scores.size
    shares = np.minimum(1.0, share * np.geomspace(0.125, 8, N_THRESHOLDS))
    return np.unique(np.quantile(scores, 1 - shares).astype(np.float64))


def _to_python(value):
    """Return a number without NumPy's type."""
    return value.item() if isinstance(value, np.generic) else value


# The result


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
    def from_points(
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
        columns = dict.fromkeys(
            [*parameters, *(name for rule, _ in points for name in rule.variants)]
        )
        records = [
            {
                "rule": type(rule).__name__,
                **{name: rule.get_params().get(name) for name in columns},
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
        rules = {name: _copy_unfitted(points[place][0]) for name, place in best.items()}
        return cls(rules[records[top]["rule"]], scores[top], rules, metric, n_docs, records)

    def __repr__(self) -> str:
        columns = list(dict.fromkeys([self.metric, *TABLE_METRICS]))
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
        setting = {"rule": type(rule).__name__, "reject": rule.reject, **_parameters(rule)}
        return next(point for point in self.surface if setting.items() <= point.items())

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
            fixed = {"rule": name, **_unswept(rule)}
            own = [p for p in self.surface if fixed.items() <= p.items()]
            label = ", ".join([name, *(f"{key} {value}" for key, value in _unswept(rule).items())])
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


def _copy_unfitted(rule: Rule) -> Rule:
    return type(rule)(**rule.get_params(deep=False))


def _middle_of_best(rules: Sequence[Rule], places: Sequence[int], scores: Sequence[float]) -> int:
    """Return the middle of the first run of highest scores along the swept parameter."""
    first = max(places, key=lambda place: (scores[place], -place))
    last = first
    while last + 1 in places and (
        scores[last + 1] == scores[first] and _unswept(rules[last + 1]) == _unswept(rules[first])
    ):
        last += 1
    return (first + last) // 2


def _unswept(rule: Rule) -> dict[str, Any]:
    """Return the parameters that are not swept."""
    return {name: value for name, value in _parameters(rule).items() if name != rule.swept}
