"""The route ``POST /v1/suggest``, which answers nearly all requests of a busy service.

It takes a JSON body with one or many documents, or a stream of lines (NDJSON) of any length.
:class:`SuggestRoute` is FastAPI's route with a fast path: a JSON body goes straight to
:class:`JSONSuggest`, because FastAPI's middleware, router and dependencies take longer than
everything else. :class:`~polytopic.server.app.Application` calls it behind the same limits, error
handlers and metrics as every other route; it checks the token itself. Streams take the usual route.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from polytopic.errors import PolytopicError
from polytopic.server import openapi, queries, schemas
from polytopic.server.limits import (
    JSON,
    NDJSON,
    SMALL,
    BodyMemory,
    check_media_type,
    decode_json,
    media_type,
    validate,
)
from polytopic.server.schemas import Item
from polytopic.server.service import Service
from polytopic.server.workers import Batcher, BusyError, Workers

PATH = "/v1/suggest"
JSON_BYTES = JSON.encode()
MAX_LINES = 256  # answered at once
MAX_SUGGESTIONS = 25_600  # in the answers to them
MAX_SCORES = 512_000  # lines × labels of the model
MAX_LINE_BYTES = 16 << 20
LONG_LINES = 1 << 20  # bytes of lines that take a while
TOO_MANY_LINES = "The service is reading too many long lines. Try again in a moment."
RETRY_INTERVAL = 0.05  # seconds until a stream tries again while the service is busy
LINES = {NDJSON: {"schema": {"type": "string"}}}


class SuggestRoute(APIRoute):
    """FastAPI's route, except that JSON bodies skip FastAPI's dependencies.

    Attributes
    ----------
    handle_json : JSONSuggest
        The fast path.
    """

    handle_json: JSONSuggest

    def is_fast(self, scope: Scope) -> bool:
        """Return whether a request is for this route and takes the fast path."""
        return scope["path"] == self.path and _is_json(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that FastAPI's router passes on."""
        handle = self.handle_json if _is_json(scope) else super().handle
        await handle(scope, receive, send)


def _is_json(scope: Scope) -> bool:
    if scope["method"] != "POST":
        return False
    for name, value in scope["headers"]:
        if name == b"content-type":
            return value == JSON_BYTES or media_type(value.decode("latin-1")) == JSON
    return False


def add_suggest_route(app: FastAPI, service: Service) -> SuggestRoute:
    """Add the route to an application, and return it."""

    async def suggest(
        request: Request, options: Annotated[schemas.SuggestOptions, Query()]
    ) -> Response:
        """Label documents: one or many as JSON, or any number as lines of JSON (NDJSON).

        A JSON body contains the options; with NDJSON they are in the query.
        """
        check_media_type(request, JSON, NDJSON)  # JSON itself takes the fast path

        def answer(items: Sequence[Item]) -> list[dict]:
            # asks for the active model per block: it may change or vanish during a long stream
            answers = queries.suggest(service.live.active, items, options)
            service.metrics.count_labelled(len(answers))
            return answers

        n_labels = service.live.active.labeler.classes_.size
        max_lines = min(MAX_LINES, MAX_SUGGESTIONS // options.k, MAX_SCORES // max(n_labels, 1))
        blocks = read_lines(request, service.memory, max(max_lines, 1))
        return LineResponse(answer_blocks(blocks, workers_for, answer))

    def workers_for(lines: Sequence[bytes]) -> Workers:
        is_long = sum(map(len, lines)) > LONG_LINES
        return service.heavy_workers if is_long else service.workers

    app.router.add_api_route(
        PATH,
        suggest,
        methods=["POST"],
        route_class_override=SuggestRoute,
        dependencies=[Depends(service.guard.requires("read"))],
        response_model=schemas.SuggestResponse,
        responses={
            200: {"content": LINES},
            **openapi.errors(*openapi.READ_ERRORS, *openapi.BODY_ERRORS, 409),
        },
        openapi_extra=openapi.body(
            schemas.SuggestRequest, schemas.SuggestOneRequest, token_required=False, **LINES
        ),
    )
    route = next(route for route in app.routes if isinstance(route, SuggestRoute))
    route.handle_json = JSONSuggest(service)
    return route


# JSON


def parse_request(body: bytes) -> schemas.SuggestRequest | schemas.SuggestOneRequest:
    """Return a JSON body as a request for one document, or for many."""
    value = decode_json(body)
    if isinstance(value, dict) and "documents" in value:
        return validate(schemas.SuggestRequest, value)
    return validate(schemas.SuggestOneRequest, value)


class JSONSuggest:
    """Labels the documents of a JSON body.

    Small requests with one document that wait at the same time are answered as one batch. All other
    requests are answered by the thread for heavy ones, which also parses large bodies: their values
    would take far more memory than their bytes while they wait.

    Parameters
    ----------
    service : Service
        What all routes share.
    """

    def __init__(self, service: Service):
        self.service = service
        self._check_token = service.guard.requires("read")
        self._batcher = Batcher(service.workers, self._answer_each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as an ASGI application."""
        if not self.service.guard.open_reading:
            await self._check_token(Request(scope, receive))
        content = await self._answer(await _read_body(receive))
        length = str(len(content)).encode()
        headers = [(b"content-type", JSON_BYTES), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, body: bytes) -> bytes:
        """Return the response to a body."""
        if len(body) > SMALL:
            return await self.service.heavy_workers.run(self._answer_large, body)
        request = parse_request(body)
        if len(request.documents) > 1:
            return await self.service.heavy_workers.run(self._answer_all, request)
        item = request.documents[0].to_item(1)
        return await self._batcher.run(request.key, (item, request))

    def _answer_large(self, body: bytes) -> bytes:
        """Return the response to a body that is not parsed yet."""
        return self._answer_all(parse_request(body))

    def _answer_each(self, batch: Sequence[tuple[Item, schemas.SuggestOptions]]) -> list[bytes]:
        """Return one response per document; all have equal options."""
        _, options = batch[0]
        model, answers = self._label([item for item, _ in batch], options)
        return [to_json({"model": model, "documents": [answer]}) for answer in answers]

    def _answer_all(self, request: schemas.SuggestRequest | schemas.SuggestOneRequest) -> bytes:
        """Return one response for all documents of a request."""
        items = [one.to_item(n) for n, one in enumerate(request.documents, start=1)]
        queries.check_scores(self.service.live.active, items)
        model, answers = self._label(items, request)
        return to_json({"model": model, "documents": answers})

    def _label(
        self, items: Sequence[Item], options: schemas.SuggestOptions
    ) -> tuple[dict, list[dict]]:
        active = self.service.live.active
        answers = queries.suggest(active, items, options)
        self.service.metrics.count_labelled(len(answers))
        return active.to_dict(), answers


async def _read_body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


# Lines


async def read_lines(
    request: Request, memory: BodyMemory, max_lines: int = MAX_LINES
) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body as they arrive, in blocks of at most ``max_lines``.

    Lines that are incomplete or not answered yet count towards the memory of all bodies.
    """
    rest, n_held = bytearray(), 0
    try:
        async for chunk in request.stream():
            n_held += len(chunk)
            memory.n_bytes += len(chunk)
            if memory.is_full_for(n_held):
                headers = {"Retry-After": "1", "Connection": "close"}
                raise HTTPException(503, TOO_MANY_LINES, headers)
            *lines, last = chunk.split(b"\n")
            if lines:
                lines[0] = bytes(rest) + lines[0]
                rest.clear()
            rest += last
            if len(rest) > MAX_LINE_BYTES:
                raise HTTPException(413, f"A line is longer than {MAX_LINE_BYTES:,} bytes.")
            lines = list(filter(bytes.strip, lines))
            for start in range(0, len(lines), max_lines):  # now, in case the stream is slow
                yield lines[start : start + max_lines]
            memory.n_bytes -= n_held - len(rest)
            n_held = len(rest)
        if rest.strip():
            yield [bytes(rest)]
    finally:
        memory.n_bytes -= n_held


async def answer_blocks(
    blocks: AsyncIterator[list[bytes]],
    workers_for: Callable[[Sequence[bytes]], Workers],
    answer: Callable[[Sequence[Item]], Sequence[dict]],
) -> AsyncIterator[bytes]:
    """Yield the answers to blocks of lines, in order; ``workers_for`` selects those of a block.

    An error before the first answer is raised; later ones become the last line.
    """
    n_lines = 0
    try:
        async for block in blocks:
            workers, arguments = workers_for(block), (_answer_block, block, n_lines + 1, answer)
            yield await (_retry(workers, *arguments) if n_lines else workers.run(*arguments))
            n_lines += len(block)
    except ClientDisconnect:
        return
    except (HTTPException, PolytopicError, ValueError) as error:
        if not n_lines:
            raise
        detail = error.detail if isinstance(error, HTTPException) else str(error)
        yield _to_lines([{"line": n_lines + 1, "error": detail}])


async def _retry(workers: Workers, *arguments: Any) -> Any:
    """Run a call of a stream that has begun: if the service is busy, wait."""
    while True:
        try:
            return await workers.run(*arguments)
        except BusyError:
            await asyncio.sleep(RETRY_INTERVAL)


def _answer_block(
    lines: Sequence[bytes], number: int, answer: Callable[[Sequence[Item]], Sequence[dict]]
) -> bytes:
    """Return a line per line, an answer or an error; ``number`` is that of the first line."""
    parsed = [_parse_line(line, n) for n, line in enumerate(lines, start=number)]
    items = [one for one in parsed if isinstance(one, Item)]
    answers = iter(answer(items) if items else ())
    return _to_lines(next(answers) if isinstance(one, Item) else one for one in parsed)


def _parse_line(line: bytes, number: int) -> Item | dict[str, Any]:
    """Return the document of a line, or its error."""
    try:
        return validate(schemas.NewDocument, decode_json(line)).to_item(number)
    except ValueError as error:
        return {"line": number, "error": str(error)}


def _to_lines(rows: Iterable[dict]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


class LineResponse(Response):
    """Sends lines while the request still arrives.

    Starlette's ``StreamingResponse`` would listen for a disconnect meanwhile, and so swallow parts
    of the body.
    """

    media_type = NDJSON

    def __init__(self, lines: AsyncIterator[bytes]):
        self._lines, self.status_code, self.background = lines, 200, None
        self.init_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines; the response starts with the first one, which may still raise."""
        first = await anext(self._lines, b"")
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
