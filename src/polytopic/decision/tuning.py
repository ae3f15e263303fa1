"""Which rule, and with which parameters: all of them on the same held-out scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from polytopic import metrics
from polytopic.decision.base import Rule
from polytopic.decision.estimator import knowing, world_score
from polytopic.decision.held_out import HeldOut, held_out
from polytopic.decision.normalisation import TNorm, TreeCohort, UnconstrainedCohort, WorldModel
from polytopic.decision.rules import MeanPlusStd, Threshold, TopK
from polytopic.decision.surface import DecisionSurface
from polytopic.metrics.label_sets import PER_DOCUMENT, f1, harmonic_mean

RATIOS = tuple(step / 100 for step in range(101))
SIZES = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80, 120)
KS = tuple(range(1, 11))
N_VALUES = 101  # of a threshold
SAMPLE = 1 << 21  # scores that they are chosen by

COUNTED = (*PER_DOCUMENT, "micro_f1", "document_f1")
DECIDED = ("macro_f1", "hierarchical_f1", "hierarchical_precision", "hierarchical_recall")


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

    The estimator is fitted once a fold. On the scores of the documents that it did not learn, all
    rules are tried with all their parameters: for each rule and size one pass over the scores
    counts the labels that are accepted, and those of them that are true, at all ratios.

    Parameters
    ----------
    estimator : estimator
        Gives the scores, see :class:`~polytopic.decision.LabelDecision`.
    X, Y
        Documents and labels, as the estimator takes them. Documents without a label count only
        if a rule may reject.
    rules : sequence of rules, default=None
        Rules to try; parameters that are not in the grid are kept. By default all for which
        there is what they need: :class:`WorldModel` for an estimator with a ``world_score``,
        :class:`TreeCohort` with a ``tree``.
    metric : str or function of true and predicted labels, default="samples_f1"
        What is to be highest: a measure of label sets in :mod:`polytopic.metrics`. Those that are
        counted by document cost least; for others labels are decided at each point of the grid.
    cv : int, "prefit", splitter or iterable of pairs of rows, default=5
        Folds, with equal shares of labels; or "prefit" for an estimator that is fitted, on other
        documents than these.
    grid : mapping, default=None
        Values to try: of ``"ratio"``, ``"size"``, ``"k"`` and ``"value"``. By default ratios in
        steps of .01, sizes 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80 and 120, the 1 to 10 best, and
        thresholds that accept from an eighth to eight times as many labels as are true.
    tree : LabelTree, default=None
        The tree of labels, for :class:`TreeCohort` and measures along the tree.

    Returns
    -------
    DecisionSurface
        The best rule, and what was measured at all points.

    Examples
    --------
    >>> from polytopic import NaiveBayes
    >>> from polytopic.decision import LabelDecision
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0], [4, 1, 0], [0, 3, 1], [1, 1, 0]]
    >>> Y = [["sport"], ["film"], ["film", "sport"], ["sport"], ["film"], ["film", "sport"]]
    >>> tuned = tune_decision(NaiveBayes(), X, Y, rules=[TopK(), WorldModel()], cv=3)
    >>> tuned.best_rule, round(tuned.best_score, 3)
    (WorldModel(ratio=0.21), 0.944)
    >>> model = LabelDecision(NaiveBayes(), tuned.best_rule).fit(X, Y)
    """
    wanted = _check_grid(grid)
    rules = None if rules is None else _check_rules(rules)
    name, decided = _check_metric(metric, tree)
    known = held_out(estimator, X, Y, cv)
    if rules is None:
        rules = _all_rules(known, tree)
    labelled = np.flatnonzero(np.diff(known.Y.indptr) > 0)
    if labelled.size < known.Y.shape[0] and not any(rule.reject for rule in rules):
        known = known.rows(labelled)
    if not labelled.size:
        raise ValueError("no held-out document has a label to measure by.")
    points: list[tuple[Rule, dict[str, Any]]] = []
    for rule in rules:
        if rule.needs_reference and known.reference is None:
            world_score(estimator, rule, X)  # says that there is none
        for candidate in _sizes(knowing(rule, known.classes, tree), wanted, known):
            points += _measured(candidate, wanted, known, name, decided)
    return DecisionSurface.of_points(points, name, known.scores.shape[0])


def _all_rules(known: HeldOut, tree) -> list[Rule]:
    rules: list[Rule] = [TopK(), Threshold(), MeanPlusStd(), UnconstrainedCohort(), TNorm()]
    if known.reference is not None:
        rules.append(WorldModel())
    if tree is not None:
        rules.append(TreeCohort(tree))
    return rules


def _check_rules(rules) -> list[Rule]:
    found = list(rules) if isinstance(rules, Iterable) else []
    if not found or not all(isinstance(rule, Rule) for rule in found):
        raise ValueError("rules must be a list of rules, such as [TNorm(), TopK()].")
    return found


def _check_grid(grid) -> dict[str, Sequence]:
    given = {name: np.sort(np.unique(values)).tolist() for name, values in (grid or {}).items()}
    defaults: dict[str, Sequence] = {"ratio": RATIOS, "size": SIZES, "k": KS, "value": ()}
    for name, values in given.items():
        if name not in defaults or not values:
            raise ValueError(
                f"grid has {name!r}: {values}; it needs values of {', '.join(defaults)}."
            )
        if name in ("size", "k") and not all(isinstance(value, Integral) for value in values):
            raise ValueError(f"grid has {name!r}: {values}, must be whole numbers.")
    return defaults | given


def _check_metric(metric, tree):
    """Return the name of a measure, and its function where labels must be decided for it."""
    if callable(metric):
        return getattr(metric, "__name__", "metric"), lambda Y, found, classes: metric(Y, found)
    if metric not in COUNTED and metric not in DECIDED:
        raise ValueError(
            f"metric == {metric!r}, must be one of {', '.join(COUNTED + DECIDED)}, or a function."
        )
    if metric in COUNTED:
        return metric, None
    measure = getattr(metrics, metric)
    if metric == "macro_f1":
        return metric, lambda Y, found, classes: measure(Y, found)
    if tree is None:
        raise ValueError(f"metric == {metric!r} needs the tree of labels; give tree.")
    return metric, lambda Y, found, classes: measure(Y, found, tree, classes=classes)


def _sizes(rule: Rule, grid, known: HeldOut):
    """Yield the rule with each size of its cohort, or by itself if it has none."""
    if not hasattr(rule, "size"):
        yield rule
        return
    n_others = max(1, len(known.classes) - 1)
    for size in sorted({min(size, n_others) for size in grid["size"]}):
        yield _with(rule, size=size)


def _with(rule: Rule, **parameters) -> Rule:
    """Return the rule with other parameters; what it has learned is kept."""
    return copy(rule).set_params(**parameters)


def _measured(rule: Rule, grid, known: HeldOut, name: str, decided) -> list:
    """Return the rule at all values of the parameter that is swept, and what it reaches."""
    if rule.swept is None:
        candidates, values = [rule], None
    else:
        values = grid[rule.swept]
        values = _thresholds(known) if rule.swept == "value" and not len(values) else values
        candidates = [_with(rule, **{rule.swept: _plain(value)}) for value in values]
        for candidate in (candidates[0], candidates[-1]):
            candidate._check_parameters()
    curves = _counted(rule, values, known)
    records = [
        {measure: float(curve[place]) for measure, curve in curves.items()}
        for place in range(len(candidates))
    ]
    if decided is not None:
        for candidate, record in zip(candidates, records, strict=True):
            record[name] = float(decided(known.Y, _labels(candidate, known), known.classes))
    return list(zip(candidates, records, strict=True))


def _counted(rule: Rule, values, known: HeldOut) -> dict[str, np.ndarray]:
    """Return the measures that are counted by document, at all values, from one pass."""
    n_true = np.diff(known.Y.indptr)
    n_fallback = np.diff(known.fallback.indptr)
    n_right = known.fallback.multiply(known.Y).sum(axis=1).A1
    falls = rule.swept == "k"  # label sets shrink where it falls

    def sums(taken, right, rows):
        if not rule.reject:
            lost = known.wordless[rows]
            taken[lost] = n_fallback[rows][lost, None]
            right[lost] = n_right[rows][lost, None]
        true = n_true[rows, None]
        means = [measure(right, true, taken).sum(axis=0) for measure in PER_DOCUMENT.values()]
        return np.array([*means, right.sum(axis=0), taken.sum(axis=0)], dtype=np.float64)

    swept = None if values is None else np.asarray(values)[:: -1 if falls else 1]
    parts = rule.count(known.scores, known.Y, swept, reference=known.reference, measure=sums)
    *totals, right, taken = sum(parts)[:, :: -1 if falls else 1]
    curves = {name: total / n_true.size for name, total in zip(PER_DOCUMENT, totals, strict=True)}
    precision, recall = (curves[f"samples_{side}"] for side in ("precision", "recall"))
    curves["micro_f1"] = f1(right, n_true.sum(), taken)
    curves["document_f1"] = harmonic_mean(precision, recall)
    return curves


def _labels(rule: Rule, known: HeldOut) -> sparse.csr_matrix:
    """Return the labels of the held-out documents, with those of documents without words."""
    Y = rule.decide(known.scores, reference=known.reference)
    if rule.reject or not known.wordless.any():
        return Y
    rest = sparse.diags_array((~known.wordless).astype(np.float64))
    return sparse.csr_matrix(rest @ Y + known.fallback)


def _thresholds(known: HeldOut) -> np.ndarray:
    """Return thresholds that accept from an eighth to eight times as many labels as are true."""
    step = max(1, known.scores.size // SAMPLE)
    scores = known.scores[::step]
    scores = scores[np.isfinite(scores)]
    if not scores.size:
        return np.zeros(1)
    share = known.Y[::step].nnz / scores.size
    shares = np.minimum(1.0, share * np.geomspace(0.125, 8, N_VALUES))
    return np.unique(np.quantile(scores, 1 - shares).astype(np.float64))


def _plain(value):
    """Return a number without NumPy's type."""
    return value.item() if isinstance(value, np.generic) else value
