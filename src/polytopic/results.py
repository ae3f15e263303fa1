"""Results as lines of JSON: answers to documents, and documents that were selected."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

SELECTED = "selected"  # the key under which a document tells what it was selected for


def finite(number: float, digits: int = 6) -> float | None:
    """Return a rounded number for JSON, which has no infinity."""
    return round(number, digits) if math.isfinite(number) else None


def answer(
    id: str, suggestions: Iterable[Any], abstained: bool, name: Callable[[str], str]
) -> dict[str, Any]:
    """Return what is told of a document: its labels, and the suggestions.

    ``name`` gives the name of a label, which is told where it is another than the label.
    """
    suggestions = list(suggestions)
    told = {
        "id": id,
        "labels": sorted([s.label for s in suggestions if s.chosen]),
        "suggestions": [_told(s, name(s.label)) for s in suggestions],
    }
    return told | {"abstained": True} if abstained else told


def _told(suggestion: Any, name: str) -> dict[str, Any]:
    label, score, probability, _ = suggestion
    numbers = {"score": finite(score), "probability": finite(probability)}
    return {"label": label, **({"name": name} if name != label else {}), **numbers}


def selected_line(document: Any, origin: str | Mapping[str, Any], found: Mapping) -> str:
    """Return a document as it came, and what was found in it, as a line of JSON.

    ``origin`` is the line of JSON that it was read from, or what else the row of a table held.
    """
    told = {topic: _of_topic(*what) for topic, what in found.items()}
    if isinstance(origin, str) and f'"{SELECTED}"' not in origin:
        body = origin.rstrip().removesuffix("}")  # nothing of the line is changed
        return f'{body}, "{SELECTED}": {json.dumps(told, ensure_ascii=False)}}}\n'
    content = json.loads(origin) if isinstance(origin, str) else document.to_dict() | dict(origin)
    return json.dumps({**content, SELECTED: told}, ensure_ascii=False) + "\n"


def _of_topic(labels: list[str], share: float | None) -> dict[str, Any]:
    return {"labels": labels} if share is None else {"labels": labels, "share": finite(share)}
