"""What the service computes: answers as plain values, off the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from math import isfinite
from typing import Any

from fastapi import HTTPException
from pydantic_core import to_json

from polytopic.corpus.document import Document
from polytopic.labeler import Labeler
from polytopic.server.live import Answering
from polytopic.server.schemas import Explain, SuggestHow
from polytopic.server.streams import NDJSON

MOST = 100_000  # suggestions in one answer


def suggestions(
    answering: Answering, documents: Sequence[Document], asked: SuggestHow
) -> list[dict]:
    """Label documents as a request asks for."""
    labeler = answering.labeler
    each = min(asked.limit, labeler.classes_.size)
    if len(documents) * each > MOST:
        raise ValueError(
            f"{len(documents):,} documents with {each:,} suggestions each are more than {MOST:,} "
            f"suggestions; send fewer documents, a smaller limit, or lines ({NDJSON})."
        )
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


def explanation(answering: Answering, asked: Explain) -> bytes:
    """Say why a text has its labels, in JSON: long texts have many reasons."""
    labeler, document = answering.labeler, asked.document(1)
    found = labeler.explain(
        document.content, asked.labels, why_not=asked.why_not or None, shares=asked.shares
    )
    names = {reason.label: labeler.name(reason.label) for reason in found.labels}
    return to_json({"model": answering.to_dict(), **found.to_dict(), "names": names})


def known_label(answering: Answering, label: str) -> str:
    """Return the id of a label that is given by its id or a name; status 404 if it is not known."""
    found = answering.labeler.resolve(label)
    if found not in set(answering.labeler.classes_.tolist()):
        raise HTTPException(404, f"label {label!r} is not known.")
    return found


def label_list(
    answering: Answering, query: str, limit: int | None = None, language: str | None = None
) -> list[dict[str, Any]]:
    """Return labels whose id or name holds a string, those first that are it or begin with it."""
    labeler, wanted = answering.labeler, query.casefold()
    documents = labeler.model_.label_docs_.tolist()
    rows = (
        {
            "label": label,
            "name": labeler.name(label, language),
            "parent": _parent(labeler, label),
            "documents": n,
        }
        for label, n in zip(labeler.classes_.tolist(), documents, strict=True)
    )
    found = [
        row for row in rows if wanted in row["label"].casefold() or wanted in row["name"].casefold()
    ]
    if wanted:
        found.sort(key=lambda row: _distance(wanted, row))
    return found[:limit]


def _distance(wanted: str, row: dict[str, Any]) -> int:
    """Return 0 for a label of that id or name, 1 for one that begins with it, 2 for others."""
    names = row["label"].casefold(), row["name"].casefold()
    return 0 if wanted in names else 1 if any(n.startswith(wanted) for n in names) else 2


def label_facts(answering: Answering, label: str, n_terms: int) -> dict[str, Any]:
    """Return what is known of a label: its terms, its neighbours, and its place in the tree."""
    labeler, tree = answering.labeler, answering.labeler.tree
    (facts,) = labeler.label_terms(n_terms, [label])
    found = labeler.neighbours(label)
    inside = tree is not None and label in tree
    return facts | {
        "children": tree.children(label) if inside else [],
        "ancestors": tree.ancestors(label) if inside else [],
        "together": [
            {
                "label": pair.second,
                "correlation": pair.correlation,
                "documents": pair.documents,
            }
            for pair in found.together
        ],
        "alike": found.alike,
        "counts": _counts(answering, label),
    }


def label_drift(answering: Answering, label: str) -> list[dict[str, Any]]:
    """Return the periods of a store in which a label has documents, or should have."""
    found = answering.drift
    return [
        {"start": period.start} | asdict(one)
        for period in ([] if found is None else found.periods)
        for one in period.labels
        if one.label == label
    ]


def _counts(answering: Answering, label: str) -> dict[str, Any] | None:
    """Return the documents of a label by time."""
    found = answering.timeline
    if found is None:
        return None
    own = found.labels.get(label, [0] * len(found.starts))
    return {"by": found.by, "starts": found.starts, "documents": own}


def _parent(labeler: Labeler, label: str) -> str | None:
    tree = labeler.tree
    return tree.parent(label) if tree is not None and label in tree else None
