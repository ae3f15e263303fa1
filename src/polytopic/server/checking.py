"""What to check next: documents of the store whose labels are least certain, or most in doubt."""

from __future__ import annotations

from typing import Any

import numpy as np

from polytopic.corpus.document import Document
from polytopic.labeler.learning import sees_documents
from polytopic.server.live import Answering

MOST = 2000  # documents that are judged, the newest
SHOWN = 300  # characters of a text
TERMS = 40  # shown of a document without a text


def unlabelled(answering: Answering, limit: int) -> list[dict[str, Any]]:
    """Return documents without labels, those first of whose labels the model is least certain."""
    labeler = answering.labeler
    documents = _newest(answering, labelled=False)
    if not documents:
        return []
    certainty = labeler.certainty(documents)
    first = np.argsort(certainty, kind="stable")[:limit].tolist()
    answers = labeler.predict([documents[k] for k in first])
    return [
        _shown(documents[k]) | {"suggested": labels, "certainty": float(certainty[k])}
        for k, labels in zip(first, answers, strict=True)
    ]


def doubtful(answering: Answering, limit: int) -> list[dict[str, Any]]:
    """Return labelled documents that other labels suit better, most suspicious first.

    None for a model that a document cannot be taken out of (mml, col, boostexter), or that has not
    seen all.
    """
    labeler = answering.labeler
    if (
        answering.store is None
        or sees_documents(labeler.model_)
        or labeler.counts_ is None
        or labeler.fitted_from_.selection.is_part
    ):
        return []
    documents = _newest(answering, labelled=True, as_of=answering.revision)
    found = labeler.audit(documents, k=limit) if documents else []
    return [
        _shown(documents[suspect.index])
        | {
            "suggested": suspect.better,
            "missing": suspect.missing,
            "extra": suspect.extra,
            "words": suspect.words,
        }
        for suspect in found
    ]


def _newest(answering: Answering, **which: Any) -> list[Document]:
    store = answering.store
    return [] if store is None else list(store.documents(newest=MOST, **which))


def _shown(document: Document) -> dict[str, Any]:
    """Return what tells people of a document, its labels, and how its text begins."""
    if document.text is not None:
        text = document.text
    elif document.fields is not None:
        text = "\n".join(document.fields.values())
    else:
        counts = document.counts or {}
        text = ", ".join(sorted(counts, key=lambda term: (-counts[term], term))[:TERMS])
    return {"id": document.id, "labels": list(document.labels), "begins": text[:SHOWN]}
