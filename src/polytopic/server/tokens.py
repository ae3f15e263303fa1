"""Who may do what: requests carry tokens, of which the store keeps the digests.

Programs send a token in a header, the page in a cookie that no script can read. What a cookie
comes with must be from the page itself where it changes something: another site's page could send
it, too.
"""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from polytopic.store.tokens import ROLES, token_digest

TOKEN_COOKIE = "polytopic_token"  # noqa: S105  # its name
ASKS = {"WWW-Authenticate": "Bearer"}


class Guard:
    """Lets requests pass that carry a token with enough rights.

    Parameters
    ----------
    store : Store or None
        Where tokens are; without one nothing can be changed.
    open_reading : bool
        Whether reading needs no token: on a machine's own address.
    own : str or None
        A token for this run of the service, which may do everything.
    """

    def __init__(self, store, *, open_reading: bool, own: str | None = None):
        self.store, self.open_reading = store, open_reading
        self._own = None if own is None else token_digest(own)

    def needs(self, role: str):
        """Return the dependency that asks for a role."""

        async def check(request: Request) -> None:
            if role != "read" or not self.open_reading:
                await run_in_threadpool(self._require, request, role)

        return check

    def _require(self, request: Request, role: str) -> None:
        token = _sent(request)
        if token is None:
            sentence = f"a token with the role {role} is needed; polytopic token create makes one."
            raise HTTPException(401, sentence, ASKS)
        found = self.role_of(token)
        if found is None:
            raise HTTPException(401, "the token is not known.", ASKS)
        if ROLES.index(found) < ROLES.index(role):
            raise HTTPException(403, f"the token has the role {found}, {role} is needed.")

    def role(self, request: Request) -> str | None:
        """Return the role that a request has, None for none."""
        try:
            token = _sent(request)
        except HTTPException:  # another site's page sends it, whose reader has not signed in
            token = None
        found = None if token is None else self.role_of(token)
        return found or ("read" if self.open_reading else None)

    def role_of(self, token: str) -> str | None:
        """Return the role of a token, None for one that is not known."""
        digest = token_digest(token)
        if self._own is not None and secrets.compare_digest(digest, self._own):
            return "admin"
        return None if self.store is None else self.store.token_role(digest)


def _sent(request: Request) -> str | None:
    """Return the token that a request carries."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    token = request.cookies.get(TOKEN_COOKIE, "")
    if token and request.method not in ("GET", "HEAD") and not is_from_the_page(request):
        raise HTTPException(403, "this comes from another site's page, must be from our own.")
    return token or None


def is_from_the_page(request: Request) -> bool:
    """Tell whether a request comes from a page of this service, as browsers tell it."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or urlsplit(origin).netloc == request.headers.get("Host")
