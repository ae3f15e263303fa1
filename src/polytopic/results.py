"""Results as lines of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

SELECTED = "selected"  # the key under which a document tells what it was selected for


def finite(number: float, digits: int = 6) -> float | None:
    """Return a rounded number for JSON, which has no infinity."""
    return round(number, digits) if math.isfinite(number) else None


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
