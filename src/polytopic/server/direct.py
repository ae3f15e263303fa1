"""Labels for documents in JSON, which is what most requests ask for, without detours.

FastAPI describes the route, and takes lines; a body of JSON is answered here, since what FastAPI
does for each request costs more than the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import Request
from fastapi.responses import Response
from pydantic_core import to_json
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from polytopic.corpus.document import Document
from polytopic.server.answers import suggestions
from polytopic.server.batching import Batches
from polytopic.server.bodies import JSON, media_type, read_json
from polytopic.server.schemas import Suggest
from polytopic.server.service import Service


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

    def __init__(self, service: Service):
        self.service = service
        self._check = service.guard.needs("read")
        self._batches = Batches(service.workers, self._one_each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        await self._check(request)
        asked = read_json(Suggest, await request.body())
        documents = [document.document(k) for k, document in enumerate(asked.documents, start=1)]
        if len(documents) == 1:
            found = await self._batches.run(asked.key, Asked(documents[0], asked))
        else:
            found = await self.service.workers.run(self._together, documents, asked)
        await Response(found, media_type=JSON)(scope, receive, send)

    def _one_each(self, batch: Sequence[Asked]) -> list[bytes]:
        """Return an answer for each document; all are asked for in the same way."""
        model, found = self._labelled([one.document for one in batch], batch[0].how)
        return [to_json({"model": model, "documents": [row]}) for row in found]

    def _together(self, documents: Sequence[Document], how: Suggest) -> bytes:
        """Return one answer for all documents."""
        model, found = self._labelled(documents, how)
        return to_json({"model": model, "documents": found})

    def _labelled(self, documents: Sequence[Document], how: Suggest) -> tuple[dict, list[dict]]:
        answering = self.service.live.answering
        found = suggestions(answering, documents, how)
        self.service.metrics.labelled(len(found))
        return answering.to_dict(), found


class JSONRoute(Route):
    """A route for bodies of JSON alone."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether a request is for this route."""
        match, found = super().matches(scope)
        if match is not Match.FULL or media_type(Request(scope)) != JSON:
            return Match.NONE, {}
        return match, {**found, "route": self}


def direct_route(service: Service) -> Route:
    """Return the route, which must come before FastAPI's."""
    return JSONRoute("/v1/suggest", JSONSuggest(service), methods=["POST"])
