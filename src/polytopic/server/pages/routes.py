"""The pages' routes: each gathers what a template shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from polytopic.errors import PolytopicError, UnavailableError
from polytopic.explain.label_map_html import WIDTH, strokes
from polytopic.server import answers, checking
from polytopic.server.live import Answering
from polytopic.server.pages import charts
from polytopic.server.pages.frame import Pages, SignInError, address_of
from polytopic.server.pages.reference import routes_of
from polytopic.server.pages.sessions import sessions
from polytopic.server.pages.speech import language_of
from polytopic.server.service import Service

HERE = Path(__file__).parent
MODELS = ("pmm1", "pmm2", "pdmm", "nb", "mml", "col", "boostexter")
QUEUED = 20  # documents to check that are listed
MOST_LABELS = 2000  # listed at once
MOST_ON_MAP = 400  # labels that are drawn


def add_pages(app: FastAPI, service: Service) -> None:
    """Give an application its pages."""
    pages = Pages(app, service)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    for router in (_text(pages), _labels(pages), _models(pages), sessions(pages)):
        app.include_router(router, include_in_schema=False)

    _show_problems(app, pages)

    @app.exception_handler(SignInError)
    async def _(request: Request, error: SignInError) -> Response:
        return RedirectResponse(f"/sign-in?next={quote(address_of(request), safe='')}", 303)


def _show_problems(app: FastAPI, pages: Pages) -> None:
    """Let people who ask for a page see a problem as a page."""

    def shown(handler: Any) -> Any:
        async def show(request: Request, error: Exception) -> Response:
            response = await handler(request, error)
            if not _is_page(request):
                return response
            about = json.loads(response.body)
            return await pages.show(
                request, "error.html", about.copy, status=response.status_code, public=True
            )

        return show

    for kind, handler in list(app.exception_handlers.items()):
        if kind is not Exception:  # what nobody foresaw may befall this page, too
            app.exception_handlers[kind] = shown(handler)


def _text(pages: Pages) -> APIRouter:
    """Return the routes of texts: one to label, those to check, and the reference."""
    router = APIRouter()
    service = pages.service

    @router.get("/")
    async def text(request: Request, id: Annotated[str | None, Query(max_length=500)] = None):
        """Label a text, and correct it."""

        def gather():
            store = service.live.store
            found = None if store is None or id is None else store.document(id)
            if id is not None and found is None:
                raise HTTPException(404, f"document {id!r} is not known.")
            answering = pages.answering
            return {
                "document": None if found is None else found.to_dict(),
                "shares": answering is not None and _shares_beside(answering),
            }

        return await pages.show(request, "text.html", gather)

    @router.get("/check")
    async def check(request: Request):
        """List what to check next."""

        def gather():
            answering = pages.answering
            found = [] if answering is None else checking.unlabelled(answering, QUEUED)
            return {"unlabelled": found, "names": _names(request, pages)}

        return await pages.show(request, "check.html", gather)

    @router.get("/parts/doubtful")
    async def doubtful(request: Request):
        """List documents whose labels are in doubt: a part of a page, since it takes a while."""

        def gather():
            answering = pages.answering
            found = [] if answering is None else checking.doubtful(answering, QUEUED)
            return {"doubtful": found, "names": _names(request, pages)}

        return await pages.show(request, "doubtful.html", gather)

    @router.get("/docs")
    async def docs(request: Request):
        """Tell programs' authors of the routes."""

        def gather():
            return {"routes": list(routes_of(pages.app.openapi())), "base": request.base_url}

        return await pages.show(request, "docs.html", gather)

    return router


def _labels(pages: Pages) -> APIRouter:
    """Return the routes of labels: all, one, and the map."""
    router = APIRouter()

    @router.get("/labels")
    async def labels(request: Request, q: Annotated[str, Query(max_length=200)] = ""):
        """List the labels, as a tree if there is one."""

        def gather():
            answering = pages.answering
            if answering is None:
                return {"q": q, "rows": [], "tree": None, "more": 0}
            rows = answers.label_list(answering, q, language=language_of(request))
            more = max(0, len(rows) - MOST_LABELS)
            tree = None if q or more else _tree(answering, rows, _names(request, pages))
            return {"q": q, "rows": rows[:MOST_LABELS], "tree": tree, "more": more}

        return await pages.show(request, "labels.html", gather)

    @router.get("/labels/{label:path}")
    async def label(request: Request, label: str):
        """Tell of one label."""

        def gather():
            answering = _needed(pages)
            known = answers.known_label(answering, label)
            facts = answers.label_facts(answering, known, 20)
            counts = facts["counts"]
            return {
                "facts": facts,
                "known": set(answering.labeler.classes_.tolist()),
                "names": _names(request, pages),
                "bars": counts and charts.bars(counts["starts"], counts["documents"]),
            }

        return await pages.show(request, "label.html", gather)

    @router.get("/parts/drift/{label:path}")
    async def label_drift(request: Request, label: str):
        """Tell of a label's drift: a part of its page, since it takes a while."""

        def gather():
            answering = _needed(pages)
            found = answers.label_drift(answering, answers.known_label(answering, label))
            return {"periods": found}

        return await pages.show(request, "label_drift.html", gather)

    @router.get("/map")
    async def label_map(request: Request):
        """Draw the map of labels."""

        def gather():
            found = _needed(pages).map
            drawn = len(found.labels) <= MOST_ON_MAP
            return {
                "map": found,
                "path": " ".join(strokes(found.dendrogram)) if drawn else None,
                "width": WIDTH,
                "names": _names(request, pages),
            }

        return await pages.show(request, "map.html", gather)

    return router


def _models(pages: Pages) -> APIRouter:
    """Return the routes of models: their history, and how good they are over time."""
    router = APIRouter()

    @router.get("/models")
    async def models(request: Request):
        """List the published models."""

        def gather():
            store = pages.service.live.store
            history = [] if store is None else store.history()
            return {
                "history": history,
                "models": MODELS,
                "default": None if store is None else store.model,
            }

        return await pages.show(request, "models.html", gather)

    @router.get("/parts/quality")
    async def quality(request: Request):
        """Tell of the quality over time: a part of a page, since it takes a while."""

        def gather():
            answering = pages.answering
            found = None if answering is None else answering.drift
            periods = [] if found is None else found.periods
            starts = [period.start for period in periods]
            return {
                "periods": periods,
                "by": None if found is None else found.by,
                "f": charts.points(starts, [period.f for period in periods], 1.0),
                "bars": charts.bars(starts, [period.documents for period in periods]),
                "names": _names(request, pages),
            }

        return await pages.show(request, "quality.html", gather)

    return router


def _is_page(request: Request) -> bool:
    """Tell whether a person asks: for a page, not for what programs read."""
    for_programs = request.url.path.startswith(("/v1/", "/health/", "/metrics", "/openapi.json"))
    return not for_programs and "text/html" in request.headers.get("Accept", "")


def _needed(pages: Pages) -> Answering:
    try:
        return pages.service.live.answering
    except UnavailableError:
        raise
    except PolytopicError as error:
        raise HTTPException(404, "nothing has been learned yet.") from error


def _shares_beside(answering: Answering) -> bool:
    """Tell whether another model must say how much of a text each label is."""
    labeler = answering.labeler
    return not hasattr(labeler.model_, "word_proba_") and labeler.counts_ is not None


def _names(request: Request, pages: Pages) -> Callable[[str], str]:
    """Return what names a label in the reader's language."""
    answering, language = pages.answering, language_of(request)

    def name(label: str) -> str:
        return label if answering is None else answering.labeler.name(label, language)

    return name


def _tree(answering: Answering, rows, names) -> list[dict[str, Any]] | None:
    """Return the tree as nested nodes, with those alone that have documents below them."""
    tree = answering.labeler.tree
    if tree is None:
        return None
    documents = {row["label"]: row["documents"] for row in rows}
    used = {a for label in documents if label in tree for a in (label, *tree.ancestors(label))}

    def node(label):
        inside = [node(child) for child in tree.children(label) if child in used]
        return {
            "label": label,
            "name": names(label),
            "documents": documents.get(label),
            "children": inside,
        }

    outside = [
        {"label": label, "name": names(label), "documents": n, "children": []}
        for label, n in documents.items()
        if label not in tree
    ]
    return [node(root) for root in tree.roots if root in used] + outside
