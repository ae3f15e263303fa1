"""Access tokens for the service; a store keeps only their digests."""

from __future__ import annotations

import secrets
from hashlib import sha256
from reprlib import repr as short

from sqlalchemy import delete, insert, select

from polytopic.errors import StoreError
from polytopic.store import schema
from polytopic.store.database import Database, check_text, fetch
from polytopic.store.ledger import now
from polytopic.store.seals import seal

ROLES = ("read", "write", "admin")  # each role includes the ones before it
PREFIX = "polytopic_"


def new_token() -> str:
    """Return a random token."""
    return PREFIX + secrets.token_urlsafe(32)


def token_digest(token: str) -> str:
    """Return the digest of a token; tokens are random, so a fast digest is safe."""
    return sha256(token.encode()).hexdigest()


class Tokens:
    """The access tokens of a store.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from polytopic import Store
    >>> store = Store(f"{mkdtemp()}/news.db")
    >>> token = store.tokens.create("importer", "write")
    >>> store.tokens.role_of(token)
    'write'
    >>> store.tokens.revoke("importer")
    >>> store.tokens.all()
    []
    """

    def __init__(self, database: Database):
        self._database = database

    def create(self, name: str, role: str = "write", token: str | None = None) -> str:
        """Add a token and return it; by default, it is a new random one.

        Parameters
        ----------
        name : str
            A name to list and revoke the token by.
        role : {"read", "write", "admin"}, default="write"
            What the token permits; each role includes the ones before it.
        token : str, default=None
            The token, if it exists already.
        """
        if role not in ROLES:
            raise ValueError(f"role == {role!r}, must be one of {', '.join(ROLES)}.")
        token, table = new_token() if token is None else token, schema.tokens
        check_text("name", name)
        check_text("token", token)
        row = {"digest": token_digest(token), "name": name, "role": role, "time": now()}
        with self._database.writing() as connection:
            if fetch(connection, select(table).where(table.c.name == name)):
                raise StoreError(
                    f"a token {short(name)} exists; revoke it, or choose another name."
                )
            connection.execute(insert(table), row)
            seal(connection, "tokens")
        return token

    def revoke(self, name: str) -> None:
        """Revoke a token."""
        table = schema.tokens
        check_text("name", name)
        with self._database.writing() as connection:
            if not connection.execute(delete(table).where(table.c.name == name)).rowcount:
                raise StoreError(f"there is no token {short(name)}.")
            seal(connection, "tokens")

    def all(self) -> list[dict[str, str]]:
        """Return the name, role and creation time of each token, the oldest first."""
        columns = schema.tokens.c
        query = select(columns.name, columns.role, columns.time).order_by(columns.time)
        with self._database.reading() as connection:
            rows = fetch(connection, query)
        return [dict(zip(("name", "role", "time"), row, strict=True)) for row in rows]

    def role_of(self, token: str) -> str | None:
        """Return the role of a token, None if it is unknown or revoked."""
        columns = schema.tokens.c
        check_text("token", token)
        query = select(columns.role).where(columns.digest == token_digest(token))
        with self._database.reading() as connection:
            return next((role for (role,) in fetch(connection, query)), None)
