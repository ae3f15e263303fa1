"""Structured logs: one event per line, as text or as JSON."""

from __future__ import annotations

import logging
from typing import Any, TextIO

from polytopic.errors import PolytopicError


def new_log(form: str, level: str, stream: TextIO) -> Any:
    """Return a log that writes events from a level on to a stream, as "text" or "json"."""
    try:
        import structlog
    except ModuleNotFoundError as error:
        raise PolytopicError(
            "structlog, which writes logs, is not installed. Install it with: pip install "
            "'polytopic[desk]'"
        ) from error

    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0),
    ]
    return structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
    )
