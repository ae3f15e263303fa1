"""What the service computes: answers as plain values, off the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isfinite
from typing import Any

from polytopic.corpus.document import Document
from polytopic.labeler import Labeler
from polytopic.server.live import Answering
from polytopic.server.schemas import Explain, SuggestHow


def suggestions(
    answering: Answering, documents: Sequence[Document], asked: SuggestHow
) -> list[dict]:
    """Label documents as a request asks for."""
    labeler = answering.labeler
    if asked.abstain is not None and asked.abstain != labeler.abstain:
        labeler = abstaining(labeler, asked.abstain)
    answers = labeler.suggest(
        documents,
        asked.limit,
        include=asked.include or None,
        exclude=asked.exclude or None,
        level=asked.level,
    )
    name = cache(lambda label: labeler.name(label, asked.language))
    return [
        {
            "id": document.id,
            "labels": sorted(s.label for s in found if s.chosen),
            "suggestions": [
                {
                    "label": s.label,
                    "score": s.score if isfinite(s.score) else None,
                    "probability": s.probability if isfinite(s.probability) else None,
                    "chosen": s.chosen,
                    "name": name(s.label),
                }
                for s in found
                if asked.threshold is None or s.chosen or s.probability >= asked.threshold
            ],
            "abstained": labeler.abstain is not None and not any(s.chosen for s in found),
        }
        for document, found in zip(documents, answers, strict=True)
    ]


def abstaining(labeler: Labeler, probability: float) -> Labeler:
    """Return a labeler that answers as another, but abstains otherwise."""
    from copy import copy

    other = copy(labeler)
    other.abstain = probability
    return other


def explanation(answering: Answering, asked: Explain) -> dict[str, Any]:
    """Say why a text has its labels."""
    labeler, document = answering.labeler, asked.document(1)
    found = labeler.explain(
        document.content, asked.labels, why_not=asked.why_not or None, shares=asked.shares
    )
    names = {reason.label: labeler.name(reason.label) for reason in found.labels}
    return found.to_dict() | {"names": names}


def label_list(answering: Answering, query: str, limit: int) -> list[dict[str, Any]]:
    """Return labels whose id or name holds a string."""
    labeler, wanted = answering.labeler, query.casefold()
    documents = labeler.model_.label_docs_.tolist()
    rows = (
        {
            "label": label,
            "name": labeler.name(label),
            "parent": _parent(labeler, label),
            "documents": n,
        }
        for label, n in zip(labeler.classes_.tolist(), documents, strict=True)
    )
    found = [
        row for row in rows if wanted in row["label"].casefold() or wanted in row["name"].casefold()
    ]
    return found[:limit]


def label_facts(answering: Answering, label: str, n_terms: int) -> dict[str, Any]:
    """Return what is known of a label: its terms, its neighbours, and its place in the tree."""
    labeler, tree = answering.labeler, answering.labeler.tree
    (facts,) = labeler.label_terms(n_terms, [label])
    found = answering.map
    pairs = [pair for pair in (*found.positive, *found.negative) if label in pair[:2]]
    inside = tree is not None and label in tree
    return facts | {
        "children": tree.children(label) if inside else [],
        "ancestors": tree.ancestors(label) if inside else [],
        "together": [
            {
                "label": pair.second if pair.first == label else pair.first,
                "correlation": pair.correlation,
                "documents": pair.documents,
            }
            for pair in pairs
        ],
        "alike": found.dendrogram.nearest(label),
    }


def _parent(labeler: Labeler, label: str) -> str | None:
    tree = labeler.tree
    return tree.parent(label) if tree is not None and label in tree else None
