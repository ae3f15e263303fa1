"""What stands around every page: templates, languages, and what a reader may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from polytopic import __version__
from polytopic.errors import PolytopicError
from polytopic.explain.drawing import PALETTE, percent
from polytopic.server.live import Answering
from polytopic.server.pages.speech import (
    LANGUAGE_COOKIE,
    LANGUAGES,
    language_of,
    sentences,
    translator,
)
from polytopic.server.service import Service
from polytopic.server.tokens import TOKEN_COOKIE
from polytopic.store.tokens import ROLES

YEAR = 365 * 24 * 3600  # seconds


def address_of(request: Request) -> str:
    """Return the path and the query of a request."""
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


class SignInError(Exception):
    """A page needs a token that the reader has not given."""


class Pages:
    """What all pages share: templates, and what stands around their content.

    Parameters
    ----------
    app : FastAPI
        The application.
    service : Service
        What answers.
    """

    def __init__(self, app: FastAPI, service: Service):
        self.app, self.service = app, service
        self.templates = Environment(
            loader=PackageLoader(__package__),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters |= {
            "percent": lambda part: "–" if part is None else percent(part),
            "path": lambda text: quote(text, safe=""),
            "number": lambda n: f"{n:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
            "signed": lambda x: f"{x:+.2f}".replace("-", "\N{MINUS SIGN}"),
        }

    @property
    def answering(self) -> Answering | None:
        """What answers, None where nothing was learned yet."""
        try:
            return self.service.live.answering
        except PolytopicError:
            return None

    async def show(
        self,
        request: Request,
        template: str,
        gather: Callable[[], dict[str, Any]] = dict,
        *,
        status: int = 200,
        public: bool = False,
    ) -> Response:
        """Return a page of what ``gather`` gives, off the event loop."""

        def rendered() -> str:
            return self._rendered(request, template, gather, public)

        html = await self.service.workers.run(rendered)
        response = HTMLResponse(html, status, {"Cache-Control": "no-store"})
        asked = request.query_params.get("lang")
        if asked in LANGUAGES:
            response.set_cookie(
                LANGUAGE_COOKIE, asked, max_age=YEAR, httponly=True, samesite="strict"
            )
        return response

    def _rendered(self, request: Request, template: str, gather, public: bool) -> str:
        role = self.service.guard.role(request)
        if role is None and not public:
            raise SignInError
        language, answering = language_of(request), self.answering
        about = {
            "_": translator(language),
            "language": language,
            "languages": LANGUAGES,
            "sentences": sentences(language),
            "here": request.url.path,
            "address": address_of(request),
            "query": [(k, v) for k, v in request.query_params.multi_items() if k != "lang"],
            "role": role,
            "may_write": role is not None and ROLES.index(role) >= ROLES.index("write"),
            "may_rule": role == "admin",
            "signed_in": TOKEN_COOKIE in request.cookies,
            "has_store": self.service.live.store is not None,
            "answering": None if answering is None or role is None else answering.to_dict(),
            "version": __version__,
            "colours": len(PALETTE),
        }
        return self.templates.get_template(template).render(**about, **gather())
