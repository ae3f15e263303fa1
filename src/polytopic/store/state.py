"""The state of a store: its revision, the digest of its counts, and the model that answers."""

from __future__ import annotations

from sqlalchemy import Connection, Row, select

from polytopic.errors import DamagedError
from polytopic.store import tables
from polytopic.store.database import fetch

READ_STATE = select(tables.state)


def read_state(connection: Connection, *, to_change: bool = False) -> Row:
    """Return the one row of the state; ``to_change`` holds it until the transaction ends."""
    rows = fetch(connection, READ_STATE.with_for_update() if to_change else READ_STATE)
    if len(rows) != 1:
        raise DamagedError(f"its state has {len(rows)} rows, must have 1")
    return rows[0]


def last_revision(connection: Connection) -> int:
    """Return how often the store has changed."""
    return read_state(connection).revision
