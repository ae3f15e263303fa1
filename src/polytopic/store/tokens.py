"""Tokens by which a store may be read and changed over HTTP."""

import secrets
from hashlib import sha256

ROLES = ("read", "write", "admin")  # each may do what those before it may
PREFIX = "polytopic_"


def new_token() -> str:
    """Return a token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def token_digest(token: str) -> str:
    """Return what is kept of a token, which is random enough not to need a slow digest."""
    return sha256(token.encode()).hexdigest()
