"""Labels for documents in JSON, which is what most requests ask for, without detours.

FastAPI describes the route, and takes lines; a body of JSON is answered before it comes there,
since what FastAPI does for each request costs more than the labels.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from pydantic_core import to_json
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from polytopic.corpus.document import Document
from polytopic.server.answers import suggestions
from polytopic.server.batching import Batches
from polytopic.server.bodies import JSON, read_large_json
from polytopic.server.schemas import Suggest
from polytopic.server.service import Service

LOG = logging.getLogger(__name__)
PATH = "/v1/suggest"


class Asked(NamedTuple):
    """A document to label, and how."""

    document: Document
    how: Suggest


class JSONSuggest:
    """Labels documents, one or many; requests of one that wait together are answered together.

    Parameters
    ----------
    service : Service
        What answers.
    """

    path = PATH  # what its requests are counted under

    def __init__(self, service: Service):
        self.service = service
        self._check = service.guard.needs("read")
        self._batches = Batches(service.workers, self._one_each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["route"] = self
        if not self.service.guard.open_reading:
            await self._check(Request(scope, receive))
        asked = await read_large_json(self.service.workers, Suggest, await _body(receive))
        if len(asked.documents) == 1:
            document = asked.documents[0].document(1)
            found = await self._batches.run(asked.key, Asked(document, asked))
        else:
            found = await self.service.workers.run(self._together, asked)
        length = str(len(found)).encode()
        headers = [(b"content-type", JSON.encode()), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": found})

    def _one_each(self, batch: Sequence[Asked]) -> list[bytes]:
        """Return an answer for each document; all are asked for in the same way."""
        model, found = self._labelled([one.document for one in batch], batch[0].how)
        return [to_json({"model": model, "documents": [row]}) for row in found]

    def _together(self, asked: Suggest) -> bytes:
        """Return one answer for all documents."""
        documents = [document.document(k) for k, document in enumerate(asked.documents, start=1)]
        model, found = self._labelled(documents, asked)
        return to_json({"model": model, "documents": found})

    def _labelled(self, documents: Sequence[Document], how: Suggest) -> tuple[dict, list[dict]]:
        answering = self.service.live.answering
        found = suggestions(answering, documents, how)
        self.service.metrics.labelled(len(found))
        return answering.to_dict(), found


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def is_direct(scope: Scope) -> bool:
    """Tell whether a request is for labels of documents in JSON."""
    if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
        return False
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    return len(types) == 1 and types[0].partition(b";")[0].strip().lower() == JSON.encode()


class Told:
    """Tells failures as problem documents, as the application does.

    Parameters
    ----------
    answer : ASGI application
        What answers.
    handlers : dict
        What makes a response of an exception, by its class.
    """

    def __init__(self, answer: ASGIApp, handlers: Mapping[Any, Any]):
        self.answer, self.handlers = answer, handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            await self.answer(scope, receive, send)
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind in self.handlers)
            if kind is Exception:
                LOG.exception("a request failed")
            response = await self.handlers[kind](Request(scope, receive), error)
            await response(scope, receive, send)


class Application(FastAPI):
    """FastAPI's application, but for what most requests ask for, which is answered directly.

    Attributes
    ----------
    direct : ASGI application or None
        What answers them.
    """

    direct: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self.direct is not None and is_direct(scope):
            await self.direct(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
