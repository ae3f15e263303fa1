"""The routes of the pages: each collects what its template shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from polytopic.decision.registry import RULE_NAMES
from polytopic.errors import PolytopicError, UnavailableError
from polytopic.explain.html import WIDTH, strokes
from polytopic.models.registry import model_names
from polytopic.server import queries
from polytopic.server.auth import TOKEN_COOKIE, check_same_origin, cookie_value
from polytopic.server.limits import STATIC, check_media_type
from polytopic.server.live import ActiveModel
from polytopic.server.openapi import read_routes
from polytopic.server.pages.rendering import (
    Pages,
    SignInError,
    address_of,
    bars,
    language_of,
    points,
)
from polytopic.server.service import Service

HERE = Path(__file__).parent
FORM = "application/x-www-form-urlencoded"
MAX_FORM_FIELDS = 8  # the form has two
QUEUE_LENGTH = 20  # documents to review
LABEL_TERMS = 20
MAX_LABELS = 2000  # on one page
MAX_LEVELS = 50  # of a tree that is shown as one; templates nest functions as deeply
MAX_MAP_LABELS = 400  # drawn on the map


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages to an application."""
    pages = Pages(app, service)
    app.mount(STATIC, WholeFiles(directory=HERE / "static"), name="static")
    for add_routes in (_add_texts, _add_labels, _add_models, _add_sign_in):
        router = APIRouter()
        add_routes(router, pages)
        app.include_router(router, include_in_schema=False)
    _show_problems_as_pages(app, pages)

    @app.exception_handler(SignInError)
    async def _(request: Request, error: SignInError) -> Response:
        return RedirectResponse(f"/sign-in?next={quote(address_of(request), safe='')}", 303)


class WholeFiles(StaticFiles):
    """Serves whole files: from Starlette 0.39 to 0.49, reading ``Range`` takes quadratic time."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as if it had no ``Range``, as a server may."""
        headers = [field for field in scope["headers"] if field[0] != b"range"]
        await super().__call__({**scope, "headers": headers}, receive, send)


def _show_problems_as_pages(app: FastAPI, pages: Pages) -> None:
    """Wrap all exception handlers, so that a browser that asks for a page gets one."""

    def wrap(handler: Any) -> Any:
        async def handle(request: Request, error: Exception) -> Response:
            problem = await handler(request, error)
            return pages.render_problem(request, problem) if _wants_page(request) else problem

        return handle

    for kind, handler in list(app.exception_handlers.items()):
        app.exception_handlers[kind] = wrap(handler)


def _wants_page(request: Request) -> bool:
    """Return whether a browser asks for a page, rather than a program for data."""
    is_api = request.url.path.startswith(("/v1/", "/health/", "/metrics", "/openapi.json"))
    return not is_api and "text/html" in request.headers.get("Accept", "")


def _add_texts(router: APIRouter, pages: Pages) -> None:
    """Add the pages of one text, of the texts to review, and of the API."""
    service = pages.service

    @router.get("/")
    async def text(request: Request, id: Annotated[str | None, Query(max_length=500)] = None):
        """Label a text and correct its topics."""

        def get_content():
            store = service.live.store
            document = None if store is None or id is None else store.document(id)
            if id is not None and document is None:
                raise HTTPException(404, f"Document {id!r} is not known.")
            active = pages.active
            return {
                "document": None if document is None else document.to_dict(),
                "shares": active is not None and _needs_mixture(active),
            }

        return await pages.render(request, "text.html", get_content)

    async def show_queue(request: Request, template: str, name: str, find_texts: Any) -> Response:
        def get_content():
            active = pages.active
            queue = [] if active is None else find_texts(active, QUEUE_LENGTH)
            return {name: queue, "names": _label_namer(request, pages)}

        return await pages.render(request, template, get_content, heavy=True)

    @router.get("/check")
    async def review(request: Request):
        """List the texts to review."""
        return await show_queue(request, "check.html", "unlabelled", queries.review_unlabelled)

    @router.get("/parts/doubtful")
    async def doubtful(request: Request):
        """List texts with doubtful topics; fetched separately because it takes a while."""
        return await show_queue(request, "doubtful.html", "doubtful", queries.review_doubtful)

    @router.get("/docs")
    async def docs(request: Request):
        """Describe the API."""

        def get_content():
            return {"routes": list(read_routes(pages.app.openapi())), "base": request.base_url}

        return await pages.render(request, "docs.html", get_content)


def _add_labels(router: APIRouter, pages: Pages) -> None:
    """Add the pages of all labels, of one label, and of the map."""

    @router.get("/labels")
    async def labels(request: Request, q: Annotated[str, Query(max_length=200)] = ""):
        """List the labels, as a tree if there is one."""

        def get_content():
            active = pages.active
            if active is None:
                return {"q": q, "rows": [], "tree": None, "more": 0}
            rows = queries.list_labels(active, q, language=language_of(request))
            more = max(0, len(rows) - MAX_LABELS)
            tree = None if q or more else _label_tree(active, rows, _label_namer(request, pages))
            return {"q": q, "rows": rows[:MAX_LABELS], "tree": tree, "more": more}

        return await pages.render(request, "labels.html", get_content, heavy=True)

    @router.get("/labels/{label:path}")
    async def label(request: Request, label: str):
        """Describe a label."""

        def get_content():
            active = _require_active(pages)
            facts = queries.describe_label(active, queries.find_label(active, label), LABEL_TERMS)
            counts = facts["counts"]
            return {
                "facts": facts,
                "known": set(active.labeler.classes_.tolist()),
                "names": _label_namer(request, pages),
                "bars": counts and bars(counts["starts"], counts["documents"]),
            }

        return await pages.render(request, "label.html", get_content, heavy=True)

    @router.get("/parts/drift/{label:path}")
    async def label_drift(request: Request, label: str):
        """Show a label's drift; fetched separately because it takes a while."""

        def get_content():
            active = _require_active(pages)
            return {"periods": queries.label_drift(active, queries.find_label(active, label))}

        return await pages.render(request, "label_drift.html", get_content, heavy=True)

    @router.get("/map")
    async def map_(request: Request):
        """Draw the map of labels."""

        def get_content():
            label_map = _require_active(pages).map
            is_drawn = len(label_map.labels) <= MAX_MAP_LABELS
            return {
                "map": label_map,
                "path": " ".join(strokes(label_map.dendrogram)) if is_drawn else None,
                "width": WIDTH,
                "names": _label_namer(request, pages),
            }

        return await pages.render(request, "map.html", get_content, heavy=True)


def _add_models(router: APIRouter, pages: Pages) -> None:
    """Add the page of the published models."""

    @router.get("/models")
    async def models(request: Request):
        """List the published models."""

        def get_content():
            store = pages.service.live.store
            return {
                "history": [] if store is None else store.history(),
                "models": model_names(),
                "rules": RULE_NAMES,
                "default": None if store is None else store.model,
            }

        return await pages.render(request, "models.html", get_content)

    @router.get("/parts/quality")
    async def quality(request: Request):
        """Show the quality over time; fetched separately because it takes a while."""

        def get_content():
            active = pages.active
            drift = None if active is None else active.drift
            periods = [] if drift is None else drift.periods
            starts = [period.start for period in periods]
            return {
                "periods": periods,
                "by": None if drift is None else drift.by,
                "f": points(starts, [period.samples_f1 for period in periods], 1.0),
                "bars": bars(starts, [period.documents for period in periods]),
                "names": _label_namer(request, pages),
            }

        return await pages.render(request, "quality.html", get_content, heavy=True)


def _add_sign_in(router: APIRouter, pages: Pages) -> None:
    """Add the routes that store a token in a cookie, and delete it."""
    guard, workers = pages.service.guard, pages.service.workers

    async def show_form(request: Request, target: str, status: int = 200) -> Response:
        content = {"next": _local_path(target), "failed": status != 200}
        return await pages.render(request, "sign_in.html", content.copy, status=status, public=True)

    @router.get("/sign-in")
    async def sign_in_form(request: Request, next: str = "/"):
        """Ask for a token."""
        return await show_form(request, next)

    @router.post("/sign-in", dependencies=[Depends(check_same_origin)])
    async def sign_in(request: Request) -> Response:
        """Store a token in a cookie that scripts cannot read."""
        check_media_type(request, FORM)
        body = (await request.body()).decode("utf-8", "replace")
        form = parse_qs(body, max_num_fields=MAX_FORM_FIELDS)
        token, target = (form.get(name, [""])[0].strip() for name in ("token", "next"))
        if await workers.run(guard.token_role, token) is None:
            return await show_form(request, target, 401)
        response = RedirectResponse(_local_path(target), 303)
        response.set_cookie(
            TOKEN_COOKIE,
            cookie_value(token),
            httponly=True,
            samesite="strict",
            # the service itself speaks plain HTTP; browsers name the scheme that they use
            secure=request.headers.get("Origin", "").startswith("https:"),
        )
        return response

    @router.post("/sign-out", dependencies=[Depends(check_same_origin)])
    async def sign_out(request: Request) -> Response:
        """Delete the cookie."""
        response = RedirectResponse("/", 303)
        response.delete_cookie(TOKEN_COOKIE)
        return response


def _local_path(target: str) -> str:
    """Return a path of this service; the start page if ``target`` leads elsewhere."""
    try:
        parts = urlsplit(target)
    except ValueError:  # not a URL
        return "/"
    is_elsewhere = parts.scheme or parts.netloc or "\\" in target or not target.startswith("/")
    return "/" if is_elsewhere or target.startswith("//") else target


def _require_active(pages: Pages) -> ActiveModel:
    try:
        return pages.service.live.active
    except UnavailableError:
        raise
    except PolytopicError as error:
        raise HTTPException(404, "Nothing has been learned yet.") from error


def _needs_mixture(active: ActiveModel) -> bool:
    """Return whether a mixture must be fitted in addition, to share out the words of a text."""
    labeler = active.labeler
    return not labeler.model_.has_word_proba and labeler.counts_ is not None


def _label_namer(request: Request, pages: Pages) -> Callable[[str], str]:
    """Return the function that names a label in the reader's language."""
    active, language = pages.active, language_of(request)

    def name(label: str) -> str:
        return label if active is None else active.labeler.name(label, language)

    return name


def _label_tree(active: ActiveModel, rows, names) -> list[dict[str, Any]] | None:
    """Return the tree as nested nodes, without branches that have no documents.

    None if there is no tree, or one that is too deep to be shown.
    """
    tree = active.labeler.tree
    if tree is None or tree.depth > MAX_LEVELS:
        return None
    documents = {row["label"]: row["documents"] for row in rows}
    used = {a for label in documents if label in tree for a in (label, *tree.ancestors(label))}

    def node(label):
        return {
            "label": label,
            "name": names(label),
            "documents": documents.get(label),
            "children": [node(child) for child in tree.children(label) if child in used],
        }

    outside = [
        {"label": label, "name": names(label), "documents": n, "children": []}
        for label, n in documents.items()
        if label not in tree
    ]
    return [node(root) for root in tree.roots if root in used] + outside
