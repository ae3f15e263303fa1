"""Who may do what: requests carry tokens, of which the store keeps the digests."""

from __future__ import annotations

import secrets

from fastapi import HTTPException, Request
from fastapi.concurrency import run_in_threadpool

from polytopic.store.tokens import ROLES, token_digest


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
            if role == "read" and self.open_reading:
                return
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not token:
                raise HTTPException(
                    401,
                    f"a token with the role {role} is needed; polytopic token create makes one.",
                    {"WWW-Authenticate": "Bearer"},
                )
            found = await run_in_threadpool(self._role, token.strip())
            if found is None:
                raise HTTPException(401, "the token is not known.", {"WWW-Authenticate": "Bearer"})
            if ROLES.index(found) < ROLES.index(role):
                raise HTTPException(403, f"the token has the role {found}, {role} is needed.")

        return check

    def _role(self, token: str) -> str | None:
        digest = token_digest(token)
        if self._own is not None and secrets.compare_digest(digest, self._own):
            return "admin"
        return None if self.store is None else self.store.token_role(digest)
