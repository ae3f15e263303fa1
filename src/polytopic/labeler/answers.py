"""What a labeler answers: suggested labels, why a text has its labels, labels in words, a map."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np

from polytopic.explain import Explanation, LabelMap, label_map
from polytopic.explain.reasons import Reasons
from polytopic.kernels.labeling import rank_labels
from polytopic.labeler.learning import vocabulary_view
from polytopic.labels import LabelSpace, widen
from polytopic.models.checks import require_counts
from polytopic.parameters import check_number

MANY_LABELS = 64  # for a text: so many are sorted faster with all others


class Suggestion(NamedTuple):
    """A label for a text.

    ``score`` ranks the labels of a text, ``probability`` is the model's, and ``chosen`` tells
    whether the label is in the predicted set.
    """

    label: str
    score: float
    probability: float
    chosen: bool


def ranked(labels, chosen, scores, proba, k) -> list[list[Suggestion]]:
    """Return the suggestions of each text: predicted labels first, then by score."""
    k = min(k, len(labels))
    n_found = np.maximum(k, chosen.sum(axis=1))
    if n_found.max() > MANY_LABELS:
        order = np.lexsort((-scores, ~chosen), axis=1)[:, : n_found.max()]
    else:
        order = np.zeros((len(chosen), n_found.max()), dtype=np.int64)
        rank_labels(scores.astype(np.float64, copy=False), chosen, k, order)
    columns = (np.take_along_axis(table, order, axis=1) for table in (scores, proba, chosen))
    rows = zip(n_found.tolist(), order.tolist(), *(c.tolist() for c in columns), strict=True)
    return [
        [
            Suggestion(labels[c], score, p, is_chosen)
            for c, score, p, is_chosen in islice(zip(*row, strict=True), n)
            if score > -np.inf
        ]
        for n, *row in rows
    ]


def check_abstention(abstain, rule, model) -> None:
    """Refuse to abstain where nothing tells how probable a label set is."""
    check_number(abstain, "abstain", min_val=0, max_val=1)
    if rule is not None:
        raise ValueError(
            f"abstain is for the model's own label sets, not for those of the rule "
            f"{type(rule).__name__}; leave out one of them."
        )
    lacking = _lacks_set_probability(model)
    if lacking:
        raise ValueError(f"abstain needs the probability of a label set{lacking}")


def _lacks_set_probability(model) -> str:
    """Say why a model does not tell how probable a label set is, and what does; "" if it does."""
    name = type(model).__name__
    if not hasattr(model, "predict_sets"):
        return f", which {name} does not give; use model='mml' or a mixture."
    if getattr(model, "predict_mode", "sets") != "sets":
        return f"; use {name}(predict_mode='sets')."
    return "" if getattr(model, "calibrate", True) else f"; use {name}(calibrate=True)."


def set_probability(model, X) -> np.ndarray:
    """Return how probable it is that all labels of each document are right.

    Calibrated, or by a mixture: the posterior of the most probable label set.
    """
    if hasattr(model, "set_proba"):
        return model.set_proba(X)
    return np.exp(model.predict_sets(X, 1).log_posterior[:, 0])


def certainty(model, X, *, own_sets: bool) -> np.ndarray:
    """Return how probable it is that all labels of each document are right.

    As if labels were independent where the model does not tell, or others than its own sets are
    given.
    """
    if own_sets and not _lacks_set_probability(model):
        return set_probability(model, X)
    proba = model.predict_proba(X)
    return np.maximum(proba, 1 - proba).prod(axis=1)


def explain_labels(labeler, text, given, why_not, sharer=None) -> Explanation:
    """Say why a text has its labels.

    ``given`` is an indicator row of labels to explain, or None for the predicted ones,
    ``why_not`` maps labels to their columns, and ``sharer`` is a mixture that shares words out
    instead of the model.
    """
    model, vocabulary = labeler.model_, labeler.vocabulary_
    counts, terms = labeler.analyzer_.count([text], labeler.fields)
    known = vocabulary.select(counts, terms)
    x = labeler._weigh(known)
    if given is None and labeler.rule is not None:
        given = labeler._choose(model, x)
    predicted, scores, proba = model.assess(x, () if given is None else given.indices)
    y = predicted if given is None else given
    if not y.nnz:
        raise ValueError("labels is empty, needs at least one label to explain.")
    for label, column in why_not.items():
        if column in y.indices:
            raise ValueError(f"why_not == {label!r} is one of the labels that are explained.")
    reasons = Reasons(model, vocabulary.terms, x, y, counts=known, sharer=sharer)
    return Explanation(
        labels=reasons.of_labels(scores[0], proba[0]),
        keywords=reasons.keywords(),
        ledger=reasons.ledger(),
        why_not=reasons.why_not(list(why_not.values())),
        unknown=[term for term in terms if term not in vocabulary],
        find_places=reasons.place_finder(labeler.analyzer_, text, labeler.fields or {}),
        unit=reasons.unit,
    )


def label_terms(labeler, column: int, k: int) -> dict:
    """Return one label with its documents, parent and ``k`` most characteristic terms."""
    model, terms, tree = labeler.model_, labeler.vocabulary_.terms, labeler.tree
    label = str(model.classes_[column])
    return {
        "label": label,
        "name": labeler.name(label),
        "parent": tree.parent(label) if tree and label in tree else None,
        "documents": int(model.label_docs_[column]),
        "words": [{"term": terms[word], **facts} for word, facts in _top_words(model, column, k)],
    }


def _top_words(model, column, k):
    """Yield a label's most characteristic words with their weights, or probability and lift."""
    if hasattr(model, "top_words"):
        words, weights = model.top_words(column, k)
        for word, weight in zip(words.tolist(), weights.tolist(), strict=True):
            yield word, {"weight": weight}
        return
    proba = model.word_proba_[column]
    lift = np.log(proba) - model.world_log_proba_
    for word in np.argsort(-proba * lift, kind="stable")[:k].tolist():
        yield word, {"probability": float(proba[word]), "lift": float(np.exp(lift[word]))}


def map_labels(labeler, n_pairs: int, n_terms: int) -> LabelMap:
    """Draw the map of the labels from the model, or a mixture beside it, and the counts."""
    counts = require_counts(labeler.counts_, "there is no map of its labels")
    model, labels = labeler.model_, labeler.classes_.tolist()
    speaker = model if hasattr(model, "word_proba_") else labeler._mixture_beside()
    words = vocabulary_view(counts, labeler.vocabulary_).matrix.sum(axis=0).A1
    topics = None
    if hasattr(model, "label_topics_"):
        topics = model.topic_word_proba_, model.label_topics_
    return label_map(
        labels,
        speaker.word_proba_,
        words / words.sum(),
        labeler.vocabulary_.terms,
        sets=widen(counts.indicator, counts.labels, LabelSpace(labels)),
        set_docs=counts.set_docs,
        names=[labeler.name(label) for label in labels],
        covariance=getattr(model, "label_covariance_", None),
        topics=topics,
        tree=labeler.tree,
        n_pairs=n_pairs,
        n_terms=n_terms,
    )
