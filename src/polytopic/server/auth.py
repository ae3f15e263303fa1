"""Authentication: requests carry tokens, and the store keeps digests of them.

Programs send a token in the ``Authorization`` header, the pages in a cookie that scripts cannot
read. Browsers attach the cookie to requests from other sites as well, so a cookie allows a change
only if the request comes from one of the service's own pages.
"""

from __future__ import annotations

import secrets
from urllib.parse import quote, unquote, urlsplit

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from polytopic.store.tokens import ROLES, token_digest

TOKEN_COOKIE = "polytopic_token"  # noqa: S105  # the name of the cookie
CHALLENGE = {"WWW-Authenticate": "Bearer"}
CROSS_SITE = "The request comes from another site's page, must come from this service's own pages."


class Guard:
    """Checks that requests carry a token with sufficient rights.

    Parameters
    ----------
    store : Store or None
        The store that knows the tokens; without one, nothing can be changed.
    open_reading : bool
        Whether anyone may read without a token.
    own_token : str or None
        A further token with the role ``admin``, valid while the service runs.
    """

    def __init__(self, store, *, open_reading: bool, own_token: str | None = None):
        self.store, self.open_reading = store, open_reading
        self._own_digest = None if own_token is None else token_digest(own_token)

    def requires(self, role: str):
        """Return the dependency that rejects requests without a role."""

        async def check(request: Request) -> None:
            if role != "read" or not self.open_reading:
                await run_in_threadpool(self._check, request, role)

        return check

    def _check(self, request: Request, role: str) -> None:
        token = _token_of(request)
        if token is None:
            detail = f"A token with the role {role} is required. Run polytopic token create."
            raise HTTPException(401, detail, CHALLENGE)
        token_role = self.token_role(token)
        if token_role is None:
            raise HTTPException(401, "The token is not valid.", CHALLENGE)
        if ROLES.index(token_role) < ROLES.index(role):
            raise HTTPException(403, f"The token has the role {token_role}, must have {role}.")

    def role(self, request: Request) -> str | None:
        """Return the role of a request, or None if it has none."""
        try:
            token = _token_of(request)
        except HTTPException:  # sent by another site's page: treat the reader as signed out
            token = None
        role = None if token is None else self.token_role(token)
        return role or ("read" if self.open_reading else None)

    def token_role(self, token: str) -> str | None:
        """Return the role of a token, or None if it is not valid."""
        digest = token_digest(token)
        if self._own_digest is not None and secrets.compare_digest(digest, self._own_digest):
            return "admin"
        return None if self.store is None else self.store.tokens.role_of(token)


def _token_of(request: Request) -> str | None:
    """Return the token that a request carries."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    token = unquote(request.cookies.get(TOKEN_COOKIE, ""))
    if token and request.method not in ("GET", "HEAD"):
        check_same_origin(request)
    return token or None


def cookie_value(token: str) -> str:
    """Return a token as the value of a cookie, without characters that would need quotes."""
    return quote(token, safe="")


def check_same_origin(request: Request) -> None:
    """Reject a request that another site's page sent, with status 403."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        is_own = site in ("same-origin", "none")
    else:
        is_own = origin is None or urlsplit(origin).netloc == request.headers.get("Host")
    if not is_own:
        raise HTTPException(403, CROSS_SITE)
