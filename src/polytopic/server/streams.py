"""Lines of JSON that come and go, however many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from fastapi import HTTPException, Request
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from polytopic.corpus.document import Document
from polytopic.errors import PolytopicError
from polytopic.server.problems import told_of
from polytopic.server.schemas import NewDocument
from polytopic.server.work import BusyError

NDJSON = "application/x-ndjson"
BLOCK = 256  # documents answered at once
LONGEST = 16 << 20  # bytes of a line
PAUSE = 0.05  # seconds until an answer is tried again where there is too much to do


async def lines_of(request: Request) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body in blocks, as they come."""
    rest, block = b"", []
    async for chunk in request.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST:
            raise HTTPException(413, f"a line has more than {LONGEST:,} bytes; it ends here.")
        for line in filter(bytes.strip, lines):
            block.append(line)
            if len(block) == BLOCK:
                yield block
                block = []
        if block:  # what has come is answered, so that a slow stream need not wait
            yield block
            block = []
    if rest.strip():
        yield [rest]


def read_line(line: bytes, number: int) -> Document | dict[str, Any]:
    """Return the document of a line, or what is wrong with it."""
    try:
        return NewDocument.model_validate_json(line, strict=True).document(number)
    except ValidationError as error:
        reason = told_of(error)
    except ValueError as error:
        reason = str(error)
    return {"line": number, "error": reason}


async def answered(
    request: Request, answer: Callable[[Sequence[Document]], Any]
) -> AsyncIterator[bytes]:
    """Yield a line for each line of a body, in their order: an answer, or what is wrong with it.

    What fails before the first answer is raised; after that it is told in a last line.
    """
    number = 0
    try:
        async for block in lines_of(request):
            read = [read_line(line, number + k) for k, line in enumerate(block, start=1)]
            documents = [one for one in read if isinstance(one, Document)]
            found = iter(await _answers(answer, documents, wait=number > 0) if documents else ())
            yield _lines(next(found) if isinstance(one, Document) else one for one in read)
            number += len(block)
    except ClientDisconnect:
        return
    except (HTTPException, PolytopicError, ValueError) as error:
        if not number:
            raise
        yield _lines([{"line": number + 1, "error": getattr(error, "detail", None) or str(error)}])


async def _answers(answer: Callable, documents: Sequence[Document], *, wait: bool) -> list:
    """Return answers; a stream that was begun waits where there is too much to do."""
    while True:
        try:
            return await answer(documents)
        except BusyError:
            if not wait:
                raise
        await asyncio.sleep(PAUSE)


def _lines(rows: Iterable[dict]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


class Lines(Response):
    """Lines that are sent while others still come, which is why nobody else may listen."""

    media_type = NDJSON

    def __init__(self, lines: AsyncIterator[bytes]):
        self._lines, self.status_code, self.background = lines, 200, None
        self.init_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines; nothing before the first is there, which may fail."""
        first = await anext(self._lines, b"")
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
