"""The routes of the service, version 1."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Request
from fastapi.responses import Response
from pydantic import ValidationError

from polytopic.errors import PolytopicError
from polytopic.server import answers, checking, schemas
from polytopic.server.problems import told_of
from polytopic.server.service import Service
from polytopic.server.streams import NDJSON, Lines, answered

FAILURES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": meaning,
        "content": {"application/problem+json": {"schema": schemas.Problem.model_json_schema()}},
    }
    for status, meaning in {
        400: "The body is no JSON.",
        401: "A token is needed.",
        403: "The token may not do this.",
        404: "It is not there.",
        408: "The body came too slowly.",
        409: "It cannot be done as things are.",
        413: "The body is too large.",
        415: "The body is of another type.",
        422: "The request makes no sense.",
        503: "There is too much to do.",
    }.items()
}
SUGGEST = {  # what FastAPI cannot tell of a body with two types
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"anyOf": [{"$ref": "#/components/schemas/Suggest"}]},
            },
            NDJSON: {"schema": {"type": "string"}},
        },
    }
}
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Label = Annotated[str, Path(max_length=500)]


def routes(service: Service) -> APIRouter:
    """Return the routes of a service."""
    router = APIRouter(prefix="/v1", responses=FAILURES)
    reads, writes, rules = (Depends(service.guard.needs(r)) for r in ("read", "write", "admin"))
    live, workers = service.live, service.workers

    @router.post(
        "/suggest",
        dependencies=[reads],
        response_model=schemas.Suggestions,
        openapi_extra=SUGGEST,
    )
    async def suggest(request: Request, asked: Annotated[schemas.SuggestHow, Query()]) -> Any:
        """Label documents: one or many in JSON, or any number as lines of JSON (NDJSON).

        In JSON, what is asked for is in the body; for lines it is in the query.
        """
        kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        answering = live.answering

        async def answer(documents, how=asked):
            found = await workers.run(answers.suggestions, answering, documents, how)
            service.metrics.labelled(len(found))
            return found

        if kind == NDJSON:
            return Lines(answered(request, answer))
        if kind != "application/json":
            raise HTTPException(
                415, f"Content-Type == {kind!r}, must be application/json or {NDJSON}."
            )
        try:
            body = schemas.Suggest.model_validate_json(await request.body())
        except ValidationError as error:
            raise HTTPException(422, told_of(error)) from error
        documents = [document.document(k) for k, document in enumerate(body.documents, start=1)]
        return {"model": answering.to_dict(), "documents": await answer(documents, body)}

    @router.post("/explain", dependencies=[reads])
    async def explain(asked: schemas.Explain) -> dict[str, Any]:
        """Say why a text has its labels, word by word."""
        answering = live.answering
        found = await workers.run(answers.explanation, answering, asked)
        return {"model": answering.to_dict(), **found}

    @router.post("/learn", dependencies=[writes])
    async def learn(asked: schemas.Learn, key: Key = None) -> dict[str, Any]:
        """Learn documents; those that are known are corrected. Gives a receipt."""
        documents = [
            document.document(0, labels=document.labels, time=document.time)
            for document in asked.documents
        ]
        return await service.change("learn", documents, key=key)

    @router.post("/forget", dependencies=[writes])
    async def forget(asked: schemas.Forget, key: Key = None) -> dict[str, Any]:
        """Forget documents without a trace. Gives a receipt."""
        return await service.change("forget", asked.ids, key=key, purge=asked.purge)

    @router.post("/relabel", dependencies=[writes])
    async def relabel(asked: schemas.Relabel, key: Key = None) -> dict[str, Any]:
        """Give documents other labels. Gives a receipt."""
        return await service.change("relabel", asked.labels, key=key)

    @router.get("/labels", dependencies=[reads])
    async def labels(
        q: Annotated[str, Query(max_length=200)] = "",
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
        language: Annotated[str | None, Query(max_length=35)] = None,
    ) -> dict[str, Any]:
        """List the labels whose id or name holds a string."""
        answering = live.answering
        found = await workers.run(answers.label_list, answering, q, limit, language)
        return {"model": answering.to_dict(), "labels": found}

    @router.get("/labels/{label:path}", dependencies=[reads])
    async def label(
        label: Label, terms: Annotated[int, Query(ge=1, le=1000)] = 20, drift: bool = True
    ) -> dict[str, Any]:
        """Tell of a label: its terms, neighbours, place in the tree, documents over time, drift.

        Drift takes a while where much was learned since it was last asked for; ``drift=false``
        leaves it out.
        """
        answering = live.answering
        known = answers.known_label(answering, label)
        found = await workers.run(answers.label_facts, answering, known, terms)
        if drift:
            found["drift"] = await workers.run(answers.label_drift, answering, known)
        return {"model": answering.to_dict(), **found}

    @router.get("/drift", dependencies=[reads])
    async def drift() -> dict[str, Any]:
        """Judge the last periods of the store, each by a model of what was known before it."""
        answering = live.answering
        found = await workers.run(lambda: answering.drift)
        return {
            "model": answering.to_dict(),
            "by": None if found is None else found.by,
            "periods": [] if found is None else [period.to_dict() for period in found.periods],
        }

    @router.get("/queue", dependencies=[reads])
    async def queue(
        kind: Literal["unlabelled", "doubtful"] = "unlabelled",
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
    ) -> dict[str, Any]:
        """List documents of the store to check next.

        Those without labels, least certain first; or those with labels that suit them least.
        """
        answering = live.answering
        found = await workers.run(getattr(checking, kind), answering, limit)
        return {"model": answering.to_dict(), "documents": found}

    @router.get("/documents/{id:path}", dependencies=[reads])
    async def document(id: Annotated[str, Path(max_length=500)]) -> dict[str, Any]:
        """Return a document of the store; its words if the store keeps no texts."""
        store = live.store
        found = None if store is None else await workers.run(store.document, id)
        if found is None:
            raise HTTPException(404, f"document {id!r} is not known.")
        return found.to_dict()

    @router.get("/models", dependencies=[reads])
    async def models() -> dict[str, Any]:
        """List the published models, the newest first."""
        if live.store is None:
            return {"model": live.answering.to_dict(), "models": []}
        found = await workers.run(live.store.history)
        current = live.answering.to_dict() if live.revision is not None else None
        return {"model": current, "models": [model.to_dict() for model in found]}

    @router.post("/models", dependencies=[rules])
    async def publish(asked: schemas.Publish) -> dict[str, Any]:
        """Fit a model on the store, and let it answer."""
        how = asked.model_dump(exclude={"model", "note"})
        return await published(
            lambda store: store.publish(model=asked.model, note=asked.note, **how)
        )

    @router.post("/models/rollback", dependencies=[rules])
    async def rollback(asked: schemas.Rollback) -> dict[str, Any]:
        """Let an earlier published model answer."""
        return await published(lambda store: store.rollback(asked.number))

    async def published(change) -> dict[str, Any]:
        store = live.store
        if store is None:
            raise PolytopicError("a model file has no history; serve a store for that.")
        number = await workers.run(change, store)
        await workers.run(live.update)
        found = await workers.run(store.history)
        return next(model.to_dict() for model in found if model.id == number)

    return router


def health(service: Service) -> APIRouter:
    """Return the routes that tell whether the service is well."""
    router = APIRouter()

    @router.get("/health/live")
    async def is_live() -> dict[str, str]:
        """Tell that the service runs."""
        return {"status": "live"}

    @router.get("/health/ready", responses={503: FAILURES[503]})
    async def is_ready() -> dict[str, Any]:
        """Tell whether the service can answer."""
        if service.live.failure is not None:
            raise HTTPException(503, service.live.failure)
        try:
            return {"status": "ready", "model": service.live.answering.to_dict()}
        except PolytopicError as error:
            raise HTTPException(503, str(error)) from error

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Tell what Prometheus asks for."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return router
