"""Rendering of pages: templates, translations, charts, and what all pages share.

Charts are drawn by the templates, as SVG without a script.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from polytopic import __version__
from polytopic.errors import PolytopicError
from polytopic.explain.display import PALETTE, percent
from polytopic.server.auth import TOKEN_COOKIE
from polytopic.server.live import ActiveModel
from polytopic.server.service import Service
from polytopic.store.tokens import ROLES

LANGUAGES = {"en": "English", "cs": "Čeština"}
LANGUAGE_COOKIE = "polytopic_language"
YEAR = 365 * 24 * 3600  # seconds
CHART_WIDTH, CHART_HEIGHT = 600, 120  # of the SVG view box
KEPT_HEADERS = ("allow", "connection", "retry-after", "www-authenticate")  # of a problem document


# Languages


def language_of(request: Request) -> str:
    """Return the language of a page: from the query, a cookie, or the browser's settings."""
    chosen = request.query_params.get("lang") or request.cookies.get(LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return chosen
    for part in request.headers.get("Accept-Language", "").split(","):
        code = part.partition(";")[0].partition("-")[0].strip().lower()
        if code in LANGUAGES:
            return code
    return "en"


@cache
def translations(language: str) -> Mapping[str, str]:
    """Return the translations of English sentences; none for English itself."""
    if language == "en":
        return {}
    return json.loads((files(__package__) / "languages" / f"{language}.json").read_text("utf-8"))


def translator(language: str) -> Callable[..., str]:
    """Return the function that translates a sentence and fills in its placeholders."""
    known = translations(language)

    def translate(sentence: str, **values: object) -> str:
        return known.get(sentence, sentence).format(**values)

    return translate


# Pages


class SignInError(Exception):
    """The page requires a token."""


class Pages:
    """Renders templates with what all pages share.

    Parameters
    ----------
    app : FastAPI
        The application.
    service : Service
        What all routes share.
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
            "signed": lambda x: f"{round(x, 2) or 0:+.2f}".replace("-", "\N{MINUS SIGN}"),
        }

    @property
    def active(self) -> ActiveModel | None:
        """The active model; None if nothing has been learned yet."""
        try:
            return self.service.live.active
        except PolytopicError:
            return None

    async def render(
        self,
        request: Request,
        template: str,
        get_content: Callable[[], dict[str, Any]] = dict,
        *,
        status: int = 200,
        public: bool = False,
        heavy: bool = False,
    ) -> Response:
        """Return a page with the variables that ``get_content`` returns; runs in a worker.

        Pages that are not ``public`` raise :class:`SignInError` for readers without a role. Those
        whose content takes time that grows with the store are ``heavy``.
        """
        workers = self.service.heavy_workers if heavy else self.service.workers
        html = await workers.run(self._render, request, template, get_content, public)
        return self._respond(request, html, status)

    def render_problem(self, request: Request, problem: JSONResponse) -> Response:
        """Return the page that shows a problem document.

        It needs neither a worker nor the store, since either may be the problem.
        """
        shared, content = self._shared(request, None), json.loads(bytes(problem.body))
        html = self.templates.get_template("error.html").render(**shared, **content)
        response = self._respond(request, html, problem.status_code)
        response.headers.update({k: v for k, v in problem.headers.items() if k in KEPT_HEADERS})
        return response

    def _respond(self, request: Request, html: str, status: int) -> Response:
        response = HTMLResponse(html, status)
        chosen = request.query_params.get("lang")
        if chosen in LANGUAGES:
            response.set_cookie(
                LANGUAGE_COOKIE, chosen, max_age=YEAR, httponly=True, samesite="strict"
            )
        return response

    def _render(self, request: Request, template: str, get_content, public: bool) -> str:
        role = self.service.guard.role(request)
        if role is None and not public:
            raise SignInError
        shared = self._shared(request, role)
        return self.templates.get_template(template).render(**shared, **get_content())

    def _shared(self, request: Request, role: str | None) -> dict[str, Any]:
        """Return the variables of all pages."""
        language, active = language_of(request), self.active
        return {
            "_": translator(language),
            "language": language,
            "languages": LANGUAGES,
            "translations": translations(language),
            "here": request.url.path,
            "address": address_of(request),
            "query": [(k, v) for k, v in request.query_params.multi_items() if k != "lang"],
            "role": role,
            "may_write": role is not None and ROLES.index(role) >= ROLES.index("write"),
            "is_admin": role == "admin",
            "signed_in": TOKEN_COOKIE in request.cookies,
            "has_store": self.service.live.store is not None,
            "active": None if active is None or role is None else active.to_dict(),
            "version": __version__,
            "colours": len(PALETTE),
        }


def address_of(request: Request) -> str:
    """Return the path and the query of a request."""
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


# Charts


class Bar(NamedTuple):
    """A bar of a bar chart."""

    x: float
    y: float
    width: float
    height: float
    start: str
    value: float


class Point(NamedTuple):
    """A point of a line chart."""

    x: float
    y: float
    start: str
    value: float


def bars(starts: Sequence[str], values: Sequence[float]) -> list[Bar]:
    """Return one bar per value; the highest one has the height of the chart."""
    highest, step = max([*values, 1]), CHART_WIDTH / max(len(values), 1)
    return [
        Bar(
            round(k * step + step * 0.1, 2),
            round(CHART_HEIGHT * (1 - value / highest), 2),
            round(step * 0.8, 2),
            round(CHART_HEIGHT * value / highest, 2),
            start,
            value,
        )
        for k, (start, value) in enumerate(zip(starts, values, strict=True))
    ]


def points(starts: Sequence[str], values: Sequence[float | None], top: float) -> list[Point]:
    """Return one point per value, on a scale from 0 to ``top``; None values are left out."""
    step = CHART_WIDTH / max(len(values), 1)
    return [
        Point(round((k + 0.5) * step, 2), round(CHART_HEIGHT * (1 - value / top), 2), start, value)
        for k, (start, value) in enumerate(zip(starts, values, strict=True))
        if value is not None
    ]
