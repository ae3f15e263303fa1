"""The decision rule of a labeler, tuned on documents that its model has not learned."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from polytopic.corpus.splits import stratified_split
from polytopic.counts import DocumentRows
from polytopic.decision.registry import RULE_NAMES, RULES
from polytopic.decision.tuning import tune_decision
from polytopic.labeler.held_out import learn_without
from polytopic.metrics import samples_f1

if TYPE_CHECKING:
    from polytopic.decision.rules import Rule
    from polytopic.labeler.estimator import Labeler

HELD_OUT = 0.2  # share of the documents that a rule is tuned on
MIN_DOCS = 20  # with fewer, rules keep their default parameters
MAX_DOCS = 20_000  # that a rule for a count model is tuned on a part of


def check_rule_name(name: object) -> None:
    """Raise unless a value is the name of a rule that can be tuned, or "auto"."""
    if name not in RULE_NAMES:
        raise ValueError(f"rule == {name!r}, must be one of {', '.join(RULE_NAMES)}.")


def named_rule(name: str) -> Rule | None:
    """Return a rule with default parameters; None for "auto"."""
    check_rule_name(name)
    kinds = [entry.load() for entry in RULES.values() if entry.option == name]
    return kinds[0]() if kinds else None


def tune_rule(labeler: Labeler, rows: DocumentRows, name: str) -> Rule | None:
    """Return a rule with the parameters that are best on held-out documents.

    A model of the other documents, with the hyper-parameters of the labeler's, scores a fifth of
    them.

    Parameters
    ----------
    labeler : Labeler
        A fitted labeler.
    rows : DocumentRows
        The documents that it was fitted on; for a count model, some of them.
    name : str
        The rule, as on the command line; "auto" is the best one, or None if the model's own
        decision is as good.
    """
    rule, n_docs = named_rule(name), rows.X.shape[0]
    if n_docs < MIN_DOCS:
        return rule
    names = rows.label_names
    train, test = (np.sort(part) for part in stratified_split(names, HELD_OUT))
    plain = copy(labeler)
    plain.rule, plain.abstain, plain.guarantee, plain.keep_documents = None, None, None, False
    part = learn_without(plain, labeler.state_, rows, train, test)
    if part is None:
        return rule
    X = part.weigh(part.vocabulary.select(rows.X[test], rows.terms))
    labels = [names[place] for place in test.tolist()]
    rules = None if rule is None else [rule]
    if rule is not None and rule.needs_tree:
        rules = [type(rule)(tree=labeler.tree)]
    tuned = tune_decision(part.model, X, labels, rules, cv="prefit", tree=labeler.tree)
    if rule is None:
        own = samples_f1(labels, part.space.decode(part.model.predict_indicator(X)))
        return tuned.best_rule if tuned.best_score > own else None
    return tuned.best_rule
