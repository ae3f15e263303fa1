"""Lines of JSON that come and go, however many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from fastapi import HTTPException, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from polytopic.corpus.document import Document
from polytopic.errors import PolytopicError
from polytopic.server.bodies import Bodies, read_json
from polytopic.server.schemas import NewDocument
from polytopic.server.work import BusyError, Workers

NDJSON = "application/x-ndjson"
BLOCK = 256  # lines answered at once
SUGGESTIONS = 25_600  # in their answers
LONGEST = 16 << 20  # bytes of a line
FULL = "the service reads too many long lines; try again in a moment."
PAUSE = 0.05  # seconds until an answer is tried again where there is too much to do


async def lines_of(
    request: Request, bodies: Bodies, most: int = BLOCK
) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body in blocks of ``most`` at most, as they come.

    Lines that are not complete, or not answered yet, count among the bodies that are in memory.
    """
    rest, n_held = bytearray(), 0
    try:
        async for chunk in request.stream():
            n_held += len(chunk)
            bodies.n_bytes += len(chunk)
            if bodies.are_too_many:
                raise HTTPException(503, FULL, {"Retry-After": "1", "Connection": "close"})
            *lines, last = chunk.split(b"\n")
            if lines:
                lines[0] = bytes(rest) + lines[0]
                rest.clear()
            rest += last
            if len(rest) > LONGEST:
                raise HTTPException(413, f"a line has more than {LONGEST:,} bytes; it ends here.")
            lines = list(filter(bytes.strip, lines))
            for start in range(0, len(lines), most):  # at once: a slow stream need not wait
                yield lines[start : start + most]
            bodies.n_bytes -= n_held - len(rest)
            n_held = len(rest)
        if rest.strip():
            yield [bytes(rest)]
    finally:
        bodies.n_bytes -= n_held


def read_line(line: bytes, number: int) -> Document | dict[str, Any]:
    """Return the document of a line, or what is wrong with it."""
    try:
        return read_json(NewDocument, line).document(number)
    except ValueError as error:
        return {"line": number, "error": str(error)}


def answer_lines(
    lines: Sequence[bytes], number: int, answer: Callable[[Sequence[Document]], Sequence[dict]]
) -> bytes:
    """Return a line for each line: an answer, or what is wrong with it.

    ``number`` is that of the first line, and ``answer`` gives the answers to documents.
    """
    read = [read_line(line, k) for k, line in enumerate(lines, start=number)]
    documents = [one for one in read if isinstance(one, Document)]
    found = iter(answer(documents) if documents else ())
    return _lines(next(found) if isinstance(one, Document) else one for one in read)


async def answered(
    blocks: AsyncIterator[list[bytes]],
    workers: Workers,
    answer: Callable[[Sequence[Document]], Sequence[dict]],
) -> AsyncIterator[bytes]:
    """Yield lines of answers to blocks of lines, in their order.

    What fails before the first answer is raised; after that it is told in a last line.
    """
    number = 0
    try:
        async for block in blocks:
            arguments = (answer_lines, block, number + 1, answer)
            yield await (_patient(workers, *arguments) if number else workers.run(*arguments))
            number += len(block)
    except ClientDisconnect:
        return
    except (HTTPException, PolytopicError, ValueError) as error:
        if not number:
            raise
        yield _lines([{"line": number + 1, "error": getattr(error, "detail", None) or str(error)}])


async def _patient(workers: Workers, *arguments: Any) -> Any:
    """Run something for a stream that was begun, which waits where there is too much to do."""
    while True:
        try:
            return await workers.run(*arguments)
        except BusyError:
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
