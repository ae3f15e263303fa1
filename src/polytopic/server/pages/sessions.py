"""The routes by which a reader gives a token, and takes it back."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from polytopic.server.bodies import check_type
from polytopic.server.pages.frame import Pages
from polytopic.server.tokens import TOKEN_COOKIE, is_from_the_page

FORM = "application/x-www-form-urlencoded"
FIELDS = 8  # of a form, which has two


def sessions(pages: Pages) -> APIRouter:
    """Return the routes by which a reader gives a token, and takes it back."""
    router = APIRouter()

    @router.get("/sign-in")
    async def sign_in(request: Request, next: str = "/"):
        """Ask for a token."""
        return await asked(request, next)

    async def asked(request: Request, target: str, status: int = 200) -> Response:
        about = {"next": _local(target), "failed": status != 200}
        return await pages.show(request, "sign_in.html", about.copy, status=status, public=True)

    @router.post("/sign-in", dependencies=[Depends(_own_page)])
    async def signed_in(request: Request) -> Response:
        """Take a token, and keep it in a cookie that no script can read."""
        check_type(request, FORM)
        body = (await request.body()).decode("utf-8", "replace")
        form = parse_qs(body, max_num_fields=FIELDS)
        token, target = (form.get(name, [""])[0].strip() for name in ("token", "next"))
        role = await pages.service.workers.run(pages.service.guard.role_of, token)
        if role is None:
            return await asked(request, target, 401)
        response = RedirectResponse(_local(target), 303)
        response.set_cookie(
            TOKEN_COOKIE,
            token,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    @router.post("/sign-out", dependencies=[Depends(_own_page)])
    async def sign_out(request: Request) -> Response:
        """Forget the token."""
        response = RedirectResponse("/", 303)
        response.delete_cookie(TOKEN_COOKIE)
        return response

    return router


def _own_page(request: Request) -> None:
    if not is_from_the_page(request):
        raise HTTPException(403, "this comes from another site's page, must be from our own.")


def _local(target: str) -> str:
    """Return a path of this service, the first page for anything else."""
    try:
        parts = urlsplit(target)
    except ValueError:  # what is no address at all
        return "/"
    outside = parts.scheme or parts.netloc or "\\" in target or not target.startswith("/")
    return "/" if outside or target.startswith("//") else target
