"""What the service reads from the active model: plain values, computed off the event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import numpy as np
from fastapi import HTTPException
from pydantic_core import to_json

from polytopic.corpus.document import Document
from polytopic.errors import PolytopicError
from polytopic.labeler import Answer, Labeler
from polytopic.server.limits import NDJSON
from polytopic.server.live import ActiveModel, LiveModel
from polytopic.server.schemas import (
    DocumentsQuery,
    ExplainRequest,
    Item,
    SuggestOptions,
    TopicsQuery,
)
from polytopic.store import Store

MAX_SUGGESTIONS = 100_000  # in one response
MAX_SCORES = 4_000_000  # documents × labels of the model, for one response
MAX_REVIEWED = 2000  # newest documents that a review queue is drawn from
MAX_REVIEWED_LABELS = 2000  # with more labels, fewer documents: the product counts
EXCERPT_CHARACTERS = 300
EXCERPT_TERMS = 40  # of a document without a text


# Labels of documents


def check_scores(active: ActiveModel, items: Sequence[Item]) -> None:
    """Raise if labelling so many documents with so many labels would keep others waiting."""
    n_labels = active.labeler.classes_.size
    if len(items) > max(MAX_SCORES // max(n_labels, 1), 1):
        raise ValueError(
            f"{len(items):,} documents and a model with {n_labels:,} labels exceed {MAX_SCORES:,} "
            f"scores in one response. Send fewer documents, or {NDJSON}."
        )


def suggest(
    active: ActiveModel, items: Sequence[Item], options: SuggestOptions
) -> list[dict[str, Any]]:
    """Label documents."""
    labeler = active.labeler
    k = min(options.k, labeler.classes_.size)
    if len(items) * k > MAX_SUGGESTIONS:
        raise ValueError(
            f"{len(items):,} documents with {k:,} suggestions each exceed "
            f"{MAX_SUGGESTIONS:,} suggestions. Send fewer documents, a smaller k, or {NDJSON}."
        )
    if options.abstain is not None and options.abstain != labeler.abstain:
        labeler = copy(labeler)
        labeler.abstain = options.abstain
    answers = labeler.suggest(
        [item.content for item in items],
        options.k,
        include=options.include or None,
        exclude=options.exclude or None,
        level=options.level,
    )
    name = active.label_name
    if options.language is not None:
        name = cache(lambda label: labeler.name(label, options.language))
    if options.threshold is not None:
        answers = [_without_improbable(answer, options.threshold) for answer in answers]
    return [
        {"id": item.id, **answer.to_dict(name)} for item, answer in zip(items, answers, strict=True)
    ]


def _without_improbable(answer: Answer, threshold: float) -> Answer:
    """Return an answer without suggestions that are neither chosen nor probable enough."""
    return replace(
        answer, suggestions=[s for s in answer if s.chosen or s.probability >= threshold]
    )


def explain(active: ActiveModel, request: ExplainRequest) -> bytes:
    """Explain the labels of a text; encoded as JSON here because long texts have many reasons."""
    labeler, document = active.labeler, request.to_document("1")
    explanation = labeler.explain(
        document.content, request.labels, why_not=request.why_not or None, shares=request.shares
    )
    names = {reason.label: labeler.name(reason.label) for reason in explanation.labels}
    return to_json({"model": active.to_dict(), **explanation.to_dict(), "names": names})


# Labels


def find_label(active: ActiveModel, label: str) -> str:
    """Return the id of a label that is given by its id or name; status 404 if there is none."""
    id = active.labeler.resolve(label)
    if id not in set(active.labeler.classes_.tolist()):
        raise HTTPException(404, f"Label {label!r} is not known.")
    return id


def list_labels(
    active: ActiveModel, query: str, k: int | None = None, language: str | None = None
) -> list[dict[str, Any]]:
    """Return labels whose id or name contains a string: exact matches first, then prefixes."""
    labeler, part = active.labeler, query.casefold()
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
    matches = [
        row for row in rows if part in row["label"].casefold() or part in row["name"].casefold()
    ]
    if part:
        matches.sort(key=lambda row: _match_rank(part, row))
    return matches[:k]


def _match_rank(part: str, row: dict[str, Any]) -> int:
    """Return 0 for an exact match of the id or name, 1 for a prefix, 2 for others."""
    names = row["label"].casefold(), row["name"].casefold()
    return 0 if part in names else 1 if any(name.startswith(part) for name in names) else 2


def describe_label(active: ActiveModel, label: str, k: int) -> dict[str, Any]:
    """Return a label's ``k`` top terms, its neighbours, its place in the tree, and its counts."""
    labeler, tree = active.labeler, active.labeler.tree
    (facts,) = labeler.label_terms(k, [label])
    neighbours = labeler.neighbours(label)
    in_tree = tree is not None and label in tree
    return facts | {
        "children": tree.children(label) if in_tree else [],
        "ancestors": tree.ancestors(label) if in_tree else [],
        "together": [
            {"label": pair.second, "correlation": pair.correlation, "documents": pair.documents}
            for pair in neighbours.together
        ],
        "alike": neighbours.alike,
        "counts": _label_counts(active, label),
    }


def label_drift(active: ActiveModel, label: str) -> list[dict[str, Any]]:
    """Return the periods of the store in which a label has documents, or was expected to."""
    drift = active.drift
    return [
        {"start": period.start} | asdict(one)
        for period in ([] if drift is None else drift.periods)
        for one in period.labels
        if one.label == label
    ]


def _label_counts(active: ActiveModel, label: str) -> dict[str, Any] | None:
    """Return the documents of a label over time."""
    timeline = active.timeline
    if timeline is None:
        return None
    documents = timeline.labels.get(label, [0] * len(timeline.starts))
    return {"by": timeline.by, "starts": timeline.starts, "documents": documents}


def _parent(labeler: Labeler, label: str) -> str | None:
    tree = labeler.tree
    return tree.parent(label) if tree is not None and label in tree else None


# Documents by topic


def find_documents(live: LiveModel, query: DocumentsQuery) -> dict[str, Any]:
    """Return a page of the documents of a store."""
    store, name = _require_store(live), _label_name(live)
    page = store.find(**query.model_dump())
    documents = []
    for match in page:
        found = match.to_dict()
        found["topics"] = [topic | {"name": name(topic["label"])} for topic in found["topics"]]
        documents.append(found | {"excerpt": _cut(match.content)})
    return {"model": live.current, "documents": documents, "next": page.next}


def count_topics(live: LiveModel, query: TopicsQuery) -> dict[str, Any]:
    """Return the number of documents of each topic in each period."""
    counts = _require_store(live).count_topics(**query.model_dump())
    return {"model": live.current, **counts.to_dict()}


def _require_store(live: LiveModel) -> Store:
    if live.store is None:
        raise PolytopicError("A model file has no documents. Serve a store instead.")
    return live.store


def _label_name(live: LiveModel) -> Callable[[str], str]:
    """Return what names labels; nothing does before a label was learned."""
    return str if live.current is None else live.active.label_name


# Documents to review


def review_unlabelled(active: ActiveModel, k: int) -> list[dict[str, Any]]:
    """Return the ``k`` documents without labels whose labels are least certain."""
    labeler = active.labeler
    documents = _newest(active, labelled=False)
    if not documents:
        return []
    certainty = labeler.certainty(documents)
    first = np.argsort(certainty, kind="stable")[:k].tolist()
    predicted = labeler.predict([documents[i] for i in first])
    return [
        _excerpt(documents[i]) | {"suggested": labels, "certainty": float(certainty[i])}
        for i, labels in zip(first, predicted, strict=True)
    ]


def review_doubtful(active: ActiveModel, k: int) -> list[dict[str, Any]]:
    """Return the ``k`` labelled documents whose labels are most likely wrong.

    The list is empty for models that were fitted on a part of the store.
    """
    labeler = active.labeler
    is_exact = labeler.model_.audit_method == "leave-one-out"
    if active.store is None or active.is_part or (is_exact and labeler.counts_ is None):
        return []
    documents = _newest(active, labelled=True, as_of=active.revision)
    suspects = labeler.audit(documents, k=k) if documents else []
    return [
        _excerpt(documents[suspect.index])
        | {
            "suggested": suspect.better,
            "missing": suspect.missing,
            "extra": suspect.extra,
            "words": suspect.words,
        }
        for suspect in suspects
    ]


def _newest(active: ActiveModel, **selection: Any) -> list[Document]:
    """Return the newest documents, as many as can be reviewed in a few seconds."""
    store, n_labels = active.store, active.labeler.classes_.size
    n_docs = MAX_REVIEWED * MAX_REVIEWED_LABELS // max(n_labels, MAX_REVIEWED_LABELS)
    return [] if store is None else list(store.documents(newest=max(n_docs, 1), **selection))


def _excerpt(document: Document) -> dict[str, Any]:
    """Return a document's id, labels, and the beginning of its text or its most frequent terms."""
    labels = list(document.labels)
    return {"id": document.id, "labels": labels, "excerpt": _cut(document.content)}


def _cut(content: str | Mapping[str, Any] | None) -> str:
    """Return the beginning of a text or of fields, or the most frequent of counted terms."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content[:EXCERPT_CHARACTERS]
    if all(isinstance(value, str) for value in content.values()):
        return "\n".join(content.values())[:EXCERPT_CHARACTERS]
    terms = sorted(content, key=lambda term: (-content[term], term))[:EXCERPT_TERMS]
    return ", ".join(terms)[:EXCERPT_CHARACTERS]
