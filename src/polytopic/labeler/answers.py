"""What a labeler answers: suggested labels, why a text has its labels, and labels in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polytopic.explain import Explanation
from polytopic.explain.reasons import Reasons
from polytopic.labels import LabelTree


class Suggestion(NamedTuple):
    """A label for a text.

    ``score`` ranks the labels of a text, ``probability`` is the model's, and ``chosen`` tells
    whether the label is in the predicted set.
    """

    label: str
    score: float
    probability: float
    chosen: bool


def ranked(labels, chosen, scores, proba, k) -> list[Suggestion]:
    """Return one text's suggestions: predicted labels first, then by score."""
    order = np.lexsort((-scores, ~chosen))[: max(k, chosen.sum())]
    columns = [c for c in order.tolist() if scores[c] > -np.inf]
    rows = zip(columns, scores[columns].tolist(), proba[columns].tolist(), strict=True)
    return [Suggestion(labels[c], s, p, bool(chosen[c])) for c, s, p in rows]


def explain_labels(labeler, text, given, why_not) -> Explanation:
    """Say why a text has its labels.

    ``given`` is an indicator row of labels to explain, or None for the predicted ones, and
    ``why_not`` maps labels to their columns.
    """
    model, vocabulary = labeler.model_, labeler.vocabulary_
    counts, terms = labeler.analyzer_.count([text], labeler.fields)
    x = vocabulary.select(counts, terms)
    if given is None and labeler.rule is not None:
        given = labeler._choose(model, x)
    predicted, scores, proba = model.assess(x, () if given is None else given.indices)
    y = predicted if given is None else given
    if not y.nnz:
        raise ValueError("labels is empty, needs at least one label to explain.")
    for label, column in why_not.items():
        if column in y.indices:
            raise ValueError(f"why_not == {label!r} is one of the labels that are explained.")
    reasons = Reasons(model, vocabulary.terms, x, y)
    return Explanation(
        labels=reasons.of_labels(scores[0], proba[0]),
        keywords=reasons.keywords(),
        ledger=reasons.ledger(),
        why_not=reasons.why_not(list(why_not.values())),
        unknown=[term for term in terms if term not in vocabulary],
        find_places=reasons.place_finder(labeler.analyzer_, text, labeler.fields or {}),
    )


def label_terms(model, terms, tree: LabelTree | None, column: int, k: int) -> dict:
    """Return one label with its documents, parent and ``k`` most characteristic terms."""
    label = str(model.classes_[column])
    proba = model.word_proba_[column]
    lift = np.log(proba) - model.world_log_proba_
    return {
        "label": label,
        "name": tree.names.get(label, label) if tree else label,
        "parent": tree.parent(label) if tree and label in tree else None,
        "documents": int(model.label_docs_[column]),
        "words": [
            {"term": terms[w], "probability": float(proba[w]), "lift": float(np.exp(lift[w]))}
            for w in np.argsort(-proba * lift, kind="stable")[:k]
        ],
    }
