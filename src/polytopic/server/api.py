"""The routes of the service, version 1."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Request
from fastapi.responses import Response

from polytopic.errors import PolytopicError, UnavailableError
from polytopic.server import answers, checking, schemas
from polytopic.server.bodies import JSON, body_of, check_type, media_type
from polytopic.server.openapi import BODY, READS, WRITES, failures, needs_token, takes
from polytopic.server.service import Service
from polytopic.server.streams import BLOCK, NDJSON, SUGGESTIONS, Lines, answered, lines_of
from polytopic.store.publishing import PublishedModel
from polytopic.store.receipts import Receipt

LINES = {NDJSON: {"schema": {"type": "string"}}}
READING = {"security": needs_token(always=False)}
TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Label = Annotated[str, Path(max_length=500)]


def routes(service: Service) -> APIRouter:
    """Return the routes of a service."""
    router = APIRouter(prefix="/v1")
    reads, writes, rules = (Depends(service.guard.needs(r)) for r in ("read", "write", "admin"))
    live, workers, writers = service.live, service.workers, service.writers

    @router.post(
        "/suggest",
        dependencies=[reads],
        response_model=schemas.Suggestions,
        responses={200: {"content": LINES}, **failures(*READS, *BODY, 409)},
        openapi_extra=takes(schemas.Suggest, schemas.SuggestOne, always=False, **LINES),
    )
    async def suggest(request: Request, asked: Annotated[schemas.SuggestHow, Query()]) -> Any:
        """Label documents: one or many in JSON, or any number as lines of JSON (NDJSON).

        In JSON, what is asked for is in the body; for lines it is in the query.
        """
        if media_type(request) != NDJSON:  # JSON has come to direct_route
            check_type(request, JSON, NDJSON)

        def answer(documents):
            # asked for each time: a long stream must not outlive a model that may not answer
            found = answers.suggestions(live.answering, documents, asked)
            service.metrics.labelled(len(found))
            return found

        blocks = lines_of(request, service.bodies, most=min(BLOCK, SUGGESTIONS // asked.limit))
        return Lines(answered(blocks, workers, answer))

    @router.post(
        "/explain",
        dependencies=[reads],
        response_model=schemas.Explanation,
        responses=failures(*READS, *BODY, 409),
        openapi_extra=takes(schemas.Explain, always=False),
    )
    async def explain(asked: Annotated[schemas.Explain, body_of(schemas.Explain)]) -> Any:
        """Say why a text has its labels, word by word."""
        found = await workers.run(answers.explanation, live.answering, asked)
        return Response(found, media_type=JSON)

    def changes(path: str, model: type[schemas.Request]):
        return router.post(
            path,
            dependencies=[writes],
            response_model=Receipt,
            responses=failures(*WRITES, *BODY),
            openapi_extra=takes(model),
        )

    @changes("/learn", schemas.Learn)
    async def learn(
        asked: Annotated[schemas.Learn, body_of(schemas.Learn)], key: Key = None
    ) -> Any:
        """Learn documents; those that are known are corrected. Gives a receipt."""
        documents = await workers.run(asked.to_documents)
        return await service.change("learn", documents, key=key)

    @changes("/forget", schemas.Forget)
    async def forget(
        asked: Annotated[schemas.Forget, body_of(schemas.Forget)], key: Key = None
    ) -> Any:
        """Forget documents without a trace. Gives a receipt."""
        return await service.change("forget", asked.ids, key=key, purge=asked.purge)

    @changes("/relabel", schemas.Relabel)
    async def relabel(
        asked: Annotated[schemas.Relabel, body_of(schemas.Relabel)], key: Key = None
    ) -> Any:
        """Give documents other labels. Gives a receipt."""
        return await service.change("relabel", asked.labels, key=key)

    @router.get(
        "/labels",
        dependencies=[reads],
        response_model=schemas.ListedLabels,
        responses=failures(*READS, 409, 422),
        openapi_extra=READING,
    )
    async def labels(asked: Annotated[schemas.FindLabels, Query()]) -> Any:
        """List the labels whose id or name holds a string."""
        answering = live.answering
        found = await workers.run(
            answers.label_list, answering, asked.q, asked.limit, asked.language
        )
        return {"model": answering.to_dict(), "labels": found}

    @router.get(
        "/labels/{label:path}",
        dependencies=[reads],
        response_model=schemas.LabelFacts,
        responses=failures(*READS, 404, 409, 422),
        openapi_extra=READING,
    )
    async def label(label: Label, asked: Annotated[schemas.TellLabel, Query()]) -> Any:
        """Tell of a label: its terms, neighbours, place in the tree, documents over time, drift.

        Drift takes a while where much was learned since it was last asked for; ``drift=false``
        leaves it out.
        """
        answering = live.answering
        known = await workers.run(answers.known_label, answering, label)
        found = await workers.run(answers.label_facts, answering, known, asked.terms)
        if asked.drift:
            found["drift"] = await workers.run(answers.label_drift, answering, known)
        return {"model": answering.to_dict(), **found}

    @router.get(
        "/drift",
        dependencies=[reads],
        response_model=schemas.StoreDrift,
        responses=failures(*READS, 409),
        openapi_extra=READING,
    )
    async def drift() -> Any:
        """Judge the last periods of the store, each by a model of what was known before it."""
        answering = live.answering
        found = await workers.run(lambda: answering.drift)
        return {
            "model": answering.to_dict(),
            "by": None if found is None else found.by,
            "periods": [] if found is None else [period.to_dict() for period in found.periods],
        }

    @router.get(
        "/queue",
        dependencies=[reads],
        response_model=schemas.Queue,
        responses=failures(*READS, 409, 422),
        openapi_extra=READING,
    )
    async def queue(asked: Annotated[schemas.AskQueue, Query()]) -> Any:
        """List documents of the store to check next.

        Those without labels, least certain first; or those with labels that suit them least.
        """
        answering = live.answering
        found = await workers.run(getattr(checking, asked.kind), answering, asked.limit)
        return {"model": answering.to_dict(), "documents": found}

    @router.get(
        "/documents/{id:path}",
        dependencies=[reads],
        response_model=schemas.StoredDocument,
        response_model_exclude_none=True,
        responses=failures(*READS, 404, 422),
        openapi_extra=READING,
    )
    async def document(id: Annotated[str, Path(max_length=500)]) -> Any:
        """Return a document of the store; its words if the store keeps no texts."""
        store = live.store
        found = None if store is None else await workers.run(store.document, id)
        if found is None:
            raise HTTPException(404, f"document {id!r} is not known.")
        return found.to_dict()

    @router.get(
        "/models",
        dependencies=[reads],
        response_model=schemas.History,
        responses=failures(*READS),
        openapi_extra=READING,
    )
    async def models() -> Any:
        """List the published models, the newest first."""
        if live.store is None:
            return {"model": live.answering.to_dict(), "models": []}
        found = await workers.run(live.store.history)
        current = live.answering.to_dict() if live.revision is not None else None
        return {"model": current, "models": [model.to_dict() for model in found]}

    def publishes(path: str, model: type[schemas.Request]):
        return router.post(
            path,
            dependencies=[rules],
            response_model=PublishedModel,
            responses=failures(*WRITES, *BODY),
            openapi_extra=takes(model),
        )

    @publishes("/models", schemas.Publish)
    async def publish(asked: Annotated[schemas.Publish, body_of(schemas.Publish)]) -> Any:
        """Fit a model on the store, and let it answer."""
        how = asked.model_dump(exclude={"model", "note"})
        return await published(
            lambda store: store.publish(model=asked.model, note=asked.note, **how)
        )

    @publishes("/models/rollback", schemas.Rollback)
    async def rollback(asked: Annotated[schemas.Rollback, body_of(schemas.Rollback)]) -> Any:
        """Let an earlier published model answer."""
        return await published(lambda store: store.rollback(asked.number))

    @router.post(
        "/models/refresh",
        dependencies=[rules],
        response_model=PublishedModel,
        responses=failures(*WRITES),
        openapi_extra={"security": needs_token()},
    )
    async def refresh() -> Any:
        """Fit the model that answers again, if something was learned or forgotten since.

        Returns the model that answers after that.
        """
        return await published(lambda store: store.refresh() or store.state()[1])

    async def published(change) -> dict[str, Any]:
        store = live.store
        if store is None:
            raise PolytopicError("a model file has no history; serve a store for that.")
        number = await writers.run(change, store)
        await writers.run(live.update)
        found = {model.id: model for model in await workers.run(store.history)}
        if number not in found:  # others may have deleted it
            raise PolytopicError(f"model {number} was purged by another change since.")
        return found[number].to_dict()

    return router


def health(service: Service) -> APIRouter:
    """Return the routes that tell whether the service is well."""
    router = APIRouter()

    @router.get("/health/live", response_model=schemas.IsLive)
    async def is_live() -> Any:
        """Tell that the service runs."""
        return {"status": "live"}

    @router.get("/health/ready", response_model=schemas.IsReady, responses=failures(503))
    async def is_ready() -> Any:
        """Tell whether the service can answer."""
        if service.live.failure is not None:
            raise UnavailableError(service.live.failure)
        try:
            return {"status": "ready", "model": service.live.answering.to_dict()}
        except PolytopicError as error:
            raise UnavailableError(str(error)) from error

    @router.get("/metrics", response_class=Response, responses={200: TEXT})
    async def metrics() -> Response:
        """Tell what Prometheus asks for."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return router
