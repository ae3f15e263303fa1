"""The routes of the API, version 1, and those for monitoring."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Path, Query
from fastapi.responses import Response

from polytopic.errors import PolytopicError, UnavailableError
from polytopic.server import openapi, queries, schemas
from polytopic.server.limits import JSON, JSONBody, json_body
from polytopic.server.service import Service
from polytopic.store import Store
from polytopic.store.models import PublishedModel
from polytopic.store.receipts import Receipt

OPTIONAL_TOKEN = {"security": openapi.token(required=False)}
PLAIN_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)
]
Name = Annotated[str, Path(max_length=500)]


def add_api(app: FastAPI, service: Service) -> None:
    """Add the routes of the API to an application, except ``/v1/suggest``, which comes first."""
    router = APIRouter(prefix="/v1")
    _add_reading(router, service)
    _add_changes(router, service)
    _add_models(router, service)
    app.include_router(router)
    app.include_router(_monitoring(service))


def _add_reading(router: APIRouter, service: Service) -> None:
    """Add the routes that read from the active model and the store.

    The worker asks for the active model, which may change while a request waits.
    """
    live, workers, heavy_workers = service.live, service.workers, service.heavy_workers

    def get(path: str, response: type, *statuses: int, **settings: Any):
        return router.get(
            path,
            dependencies=[Depends(service.guard.requires("read"))],
            response_model=response,
            responses=openapi.errors(*openapi.READ_ERRORS, *statuses),
            openapi_extra=OPTIONAL_TOKEN,
            **settings,
        )

    @router.post(
        "/explain",
        dependencies=[Depends(service.guard.requires("read"))],
        response_model=schemas.ExplainResponse,
        responses=openapi.errors(*openapi.READ_ERRORS, *openapi.BODY_ERRORS, 409),
        openapi_extra=openapi.body(schemas.ExplainRequest, token_required=False),
    )
    async def explain(
        body: Annotated[JSONBody, json_body(schemas.ExplainRequest)],
    ) -> Any:
        """Explain the labels of a text word by word."""
        explainers = heavy_workers if body.is_large else workers
        content = await explainers.run(lambda: queries.explain(live.active, body.parse()))
        return Response(content, media_type=JSON)

    @get("/labels", schemas.LabelsResponse, 409, 422)
    async def labels(query: Annotated[schemas.LabelsQuery, Query()]) -> Any:
        """List the labels whose id or name contains a string."""

        def find() -> dict[str, Any]:
            active = live.active
            rows = queries.list_labels(active, query.q, query.k, query.language)
            return {"model": active.to_dict(), "labels": rows}

        return await heavy_workers.run(find)

    @get("/labels/{label:path}", schemas.LabelResponse, 404, 409, 422)
    async def label(label: Name, query: Annotated[schemas.LabelQuery, Query()]) -> Any:
        """Describe a label: terms, neighbours, place in the tree, documents over time, and drift.

        Drift takes a while if much has been learned since the last request for it; ``drift=false``
        omits it.
        """

        def describe() -> dict[str, Any]:
            active = live.active
            id = queries.find_label(active, label)
            facts = queries.describe_label(active, id, query.k)
            if query.drift:
                facts["drift"] = queries.label_drift(active, id)
            return {"model": active.to_dict(), **facts}

        return await heavy_workers.run(describe)

    @get("/drift", schemas.DriftResponse, 409)
    async def drift() -> Any:
        """Evaluate the last periods of the store, each with a model of the time before it."""

        def evaluate() -> dict[str, Any]:
            active = live.active
            result = active.drift
            periods = [] if result is None else [period.to_dict() for period in result.periods]
            by = None if result is None else result.by
            return {"model": active.to_dict(), "by": by, "periods": periods}

        return await heavy_workers.run(evaluate)

    @get("/queue", schemas.QueueResponse, 409, 422)
    async def queue(query: Annotated[schemas.QueueQuery, Query()]) -> Any:
        """List documents to review next.

        Either those without labels, least certain first; or those whose labels are doubtful.
        """
        unlabelled = query.kind == "unlabelled"
        review = queries.review_unlabelled if unlabelled else queries.review_doubtful

        def select() -> dict[str, Any]:
            active = live.active
            return {"model": active.to_dict(), "documents": review(active, query.k)}

        return await heavy_workers.run(select)

    @get("/documents", schemas.DocumentsResponse, 409, 422)
    async def documents(query: Annotated[schemas.DocumentsQuery, Query()]) -> Any:
        """Find documents by topic, time, probability and words, the newest first."""
        return await heavy_workers.run(lambda: queries.find_documents(live, query))

    @get("/topics", schemas.TopicsResponse, 409, 422)
    async def topics(query: Annotated[schemas.TopicsQuery, Query()]) -> Any:
        """Count the documents of each topic, and all documents, by day, week, month or year."""
        return await heavy_workers.run(lambda: queries.count_topics(live, query))

    @get("/documents/{id:path}", schemas.StoredDocument, 404, 422, response_model_exclude_none=True)
    async def document(id: Name) -> Any:
        """Return a document of the store: its text, or its counts if the store keeps no texts."""
        store = live.store
        result = None if store is None else await workers.run(store.document, id)
        if result is None:
            raise HTTPException(404, f"Document {id!r} is not known.")
        return result.to_dict()

    @get("/models", schemas.HistoryResponse)
    async def models() -> Any:
        """List the published models, newest first."""
        if live.store is None:
            return {"model": live.active.to_dict(), "models": []}
        history = await workers.run(live.store.history)
        current = live.active.to_dict() if live.revision is not None else None
        return {"model": current, "models": [model.to_dict() for model in history]}


def _add_changes(router: APIRouter, service: Service) -> None:
    """Add the routes that change the documents of the store; each returns a receipt."""

    def post(path: str, request: type[schemas.StrictModel]):
        return router.post(
            path,
            dependencies=[Depends(service.guard.requires("write"))],
            response_model=Receipt,
            responses=openapi.errors(*openapi.WRITE_ERRORS, *openapi.BODY_ERRORS),
            openapi_extra=openapi.body(request),
        )

    @post("/learn", schemas.LearnRequest)
    async def learn(
        body: Annotated[JSONBody, json_body(schemas.LearnRequest)],
        key: IdempotencyKey = None,
    ) -> Any:
        """Learn documents; those with a known id are corrected. Returns a receipt."""

        def change(store: Store) -> Receipt:
            return store.learn(body.parse().to_documents(), key=key)

        return await service.change("learn", change)

    @post("/forget", schemas.ForgetRequest)
    async def forget(
        body: Annotated[JSONBody, json_body(schemas.ForgetRequest)],
        key: IdempotencyKey = None,
    ) -> Any:
        """Forget documents exactly. Returns a receipt."""

        def change(store: Store) -> Receipt:
            request = body.parse()
            return store.forget(request.ids, purge=request.purge, key=key)

        return await service.change("forget", change)

    @post("/relabel", schemas.RelabelRequest)
    async def relabel(
        body: Annotated[JSONBody, json_body(schemas.RelabelRequest)],
        key: IdempotencyKey = None,
    ) -> Any:
        """Replace the labels of documents. Returns a receipt."""

        def change(store: Store) -> Receipt:
            return store.relabel(body.parse().labels, key=key)

        return await service.change("relabel", change)


def _add_models(router: APIRouter, service: Service) -> None:
    """Add the routes that change the active model; each returns the model that answers then."""
    live, writers = service.live, service.writers

    def post(path: str, statuses: tuple[int, ...], description: dict[str, Any]):
        return router.post(
            path,
            dependencies=[Depends(service.guard.requires("admin"))],
            response_model=PublishedModel,
            responses=openapi.errors(*openapi.WRITE_ERRORS, *statuses),
            openapi_extra=description,
        )

    async def activate(change) -> dict[str, Any]:
        store = live.store
        if store is None:
            raise PolytopicError("A model file has no history. Serve a store instead.")
        number = await writers.run(change, store)
        await writers.run(live.update)
        history = {model.id: model for model in await service.workers.run(store.history)}
        if number not in history:
            raise PolytopicError(f"Model {number} has since been deleted by another change.")
        return history[number].to_dict()

    @post("/models", openapi.BODY_ERRORS, openapi.body(schemas.PublishRequest))
    async def publish(
        body: Annotated[JSONBody, json_body(schemas.PublishRequest)],
    ) -> Any:
        """Fit a model on the store and publish it."""
        request = body.parse().model_dump()
        if request["rule"] is None:
            del request["rule"]  # that of the store
        return await activate(lambda store: store.publish(**request))

    @post("/models/rollback", openapi.BODY_ERRORS, openapi.body(schemas.RollbackRequest))
    async def rollback(
        body: Annotated[JSONBody, json_body(schemas.RollbackRequest)],
    ) -> Any:
        """Return to an earlier published model."""
        return await activate(lambda store: store.rollback(body.parse().number))

    @post("/models/refresh", (), {"security": openapi.token()})
    async def refresh() -> Any:
        """Fit the active model again if the store has changed since."""
        return await activate(lambda store: store.refresh() or store.monitor.state().current_model)


def _monitoring(service: Service) -> APIRouter:
    """Return the routes for monitoring."""
    router = APIRouter()

    @router.get("/health/live", response_model=schemas.LiveResponse)
    async def is_live() -> Any:
        """Report that the service is running."""
        return {"status": "live"}

    @router.get(
        "/health/ready", response_model=schemas.ReadyResponse, responses=openapi.errors(503)
    )
    async def is_ready() -> Any:
        """Report whether the service can answer."""
        if service.live.failure is not None:
            raise UnavailableError(service.live.failure)
        try:
            return {"status": "ready", "model": service.live.active.to_dict()}
        except PolytopicError as error:
            raise UnavailableError(str(error)) from error

    @router.get("/metrics", response_class=Response, responses={200: PLAIN_TEXT})
    async def metrics() -> Response:
        """Return metrics for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return router
