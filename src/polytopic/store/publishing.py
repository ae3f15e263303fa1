"""Published models: kept in the store, each with what it was fitted on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from polytopic.errors import StoreError
from polytopic.labeler.files import from_bytes
from polytopic.store import erasure, tables
from polytopic.store.reading import origin_of, set_origin
from polytopic.store.selection import Selection, now


@dataclass(frozen=True)
class PublishedModel:
    """A published model.

    Attributes
    ----------
    id : int
        Its number.
    time : str
        When it was published.
    name : str
        The name of the model, such as "pmm1".
    origin : Selection
        What it was fitted on; without a revision if it comes from elsewhere.
    note : str or None
        What its publisher says of it.
    marked : int or None
        The revision at which a document that it had seen was forgotten.
    current : bool
        Whether it is the one that answers.
    bytes : int
        How large it is.
    """

    id: int
    time: str
    name: str
    origin: Selection
    note: str | None
    marked: int | None
    current: bool
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


def history(connection: Connection) -> list[PublishedModel]:
    """Return all published models, the newest first."""
    table = tables.models.c
    current = connection.execute(select(tables.state.c.current_model)).scalar_one()
    rows = connection.execute(
        select(
            table.id,
            table.time,
            table.name,
            table.origin,
            table.note,
            table.marked,
            func.length(table.content).label("bytes"),
        ).order_by(table.id.desc())
    )
    return [
        PublishedModel(
            row.id,
            row.time,
            row.name,
            Selection.from_json(row.origin),
            row.note,
            row.marked,
            row.id == current,
            row.bytes,
        )
        for row in rows
    ]


def publish(
    connection: Connection, labeler, content: bytes, note: str | None, keep: int | None
) -> int:
    """Keep a fitted labeler, as these bytes, and let it answer; return its number."""
    state = connection.execute(select(tables.state).with_for_update()).one()
    table, number = tables.models, state.published + 1
    origin = origin_of(connection, labeler)
    row = {
        "id": number,
        "time": now(),
        "name": labeler.model_.name,
        "origin": origin.to_json(),
        "note": note,
        "marked": _forgotten_since(connection, origin),
        "content": content,
    }
    connection.execute(insert(table), row)
    connection.execute(update(tables.state).values(published=number, current_model=number))
    if keep is not None:
        kept = select(table.c.id).order_by(table.c.id.desc()).limit(keep)
        if connection.execute(delete(table).where(table.c.id.not_in(kept))).rowcount:
            erasure.overwrite_table(connection, "models")
    return number


def _forgotten_since(connection: Connection, origin: Selection) -> int | None:
    """Return the last revision at which something was forgotten that may be in the origin.

    What is forgotten leaves no time or labels, so that a part counts as the whole.
    """
    if origin.read_at is None:
        return None
    gone = tables.forgotten.c
    seen = gone.learned <= origin.revision, gone.revision > origin.read_at
    return connection.execute(select(func.max(gone.revision)).where(*seen)).scalar()


def roll_back(connection: Connection, number: int | None) -> int:
    """Let an earlier model answer, the one before if none is named; return its number."""
    current = connection.execute(
        select(tables.state.c.current_model).with_for_update()
    ).scalar_one()
    if current is None:
        raise StoreError("no model is published, so there is none to go back to.")
    table = tables.models.c
    own = table.id < current if number is None else table.id == number
    found = connection.execute(
        select(table.id, table.marked).where(own).order_by(table.id.desc()).limit(1)
    ).one_or_none()
    if found is None:
        raise StoreError(
            f"there is no model before {current} to go back to."
            if number is None
            else f"there is no published model {number}; history lists them."
        )
    if found.marked is not None:
        raise StoreError(
            f"model {found.id} has seen a document that was forgotten since (revision "
            f"{found.marked}); refresh publishes one that has not."
        )
    connection.execute(update(tables.state).values(current_model=found.id))
    return found.id


def read_current(connection: Connection):
    """Return the labeler that answers, if any, and whether it goes on to as it is.

    So does one that is older than the newest one, or that was fitted as of an earlier moment.
    """
    number = connection.execute(select(tables.state.c.current_model)).scalar_one()
    if number is None:
        return None, False
    newest = connection.execute(select(func.max(tables.models.c.id))).scalar_one()
    labeler = read(connection, number)
    return labeler, number != newest or labeler.origin_.is_past


def current_mark(connection: Connection) -> int | None:
    """Return the revision at which a document was forgotten that the current model had seen."""
    table = tables.models.c
    own = select(table.marked).where(table.id == tables.state.c.current_model)
    return connection.execute(own).scalar()


def read(connection: Connection, number: int):
    """Return the labeler of a published model."""
    table = tables.models.c
    row = connection.execute(
        select(table.content, table.origin).where(table.id == number)
    ).one_or_none()
    if row is None:
        raise StoreError(f"there is no published model {number}; history lists them.")
    labeler = from_bytes(row.content, f"model {number}")
    return set_origin(connection.engine.url, labeler, Selection.from_json(row.origin))
