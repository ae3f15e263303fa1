"""Published models: kept in the store, each with what it was fitted on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Integer, delete, func, insert, select, update

from polytopic.errors import DamagedError, StoreError
from polytopic.labeler import Labeler
from polytopic.labeler.files import from_bytes
from polytopic.labeler.learning import sees_documents
from polytopic.labeler.state import FittedFrom
from polytopic.models import MODELS
from polytopic.store import erasure, tables
from polytopic.store.database import fetch
from polytopic.store.reading import origin_of, read_counts
from polytopic.store.seals import seal
from polytopic.store.selection import Selection, now
from polytopic.store.settings import read_tree
from polytopic.store.state import read_state


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


@dataclass(frozen=True)
class Current:
    """The published model that answers.

    Attributes
    ----------
    id, name, origin, marked
        As in :class:`PublishedModel`.
    is_newest : bool
        Whether none was published after it.
    last : int
        The revision of the store.
    """

    id: int
    name: str
    origin: Selection
    marked: int | None
    is_newest: bool
    last: int

    @property
    def stays(self) -> bool:
        """Whether it is meant to answer as it is, whatever is learned.

        It was rolled back to, or published as of an earlier moment, or fitted elsewhere.
        """
        return not self.is_newest or self.origin.is_past or self.origin.revision is None

    @property
    def follows(self) -> bool:
        """Whether it is fitted again, from counts, whenever the store has changed."""
        return not self.stays and not sees_documents(MODELS[self.name])

    @property
    def behind(self) -> int:
        """How many revisions of the store it lacks and should have."""
        return 0 if self.stays else self.last - (self.origin.revision or 0)

    @property
    def is_outdated(self) -> bool:
        """Whether it must not answer as it was published."""
        return self.marked is not None or (self.follows and self.behind > 0)

    @property
    def can_refresh(self) -> bool:
        """Whether fitting it again would give another model."""
        return self.marked is not None or self.behind > 0

    @property
    def as_of(self) -> int | None:
        """The revision to fit it again as of, None for the last one."""
        return self.origin.revision if self.stays else None

    def is_read_as(self, connection: Connection, labeler: Labeler) -> bool:
        """Tell whether a labeler is what :func:`read` returned of it, and has learned no more."""
        return labeler.fitted_from_ == FittedFrom(connection.engine.url, self.origin, self.id)

    def check_refreshable(self) -> None:
        """Raise if it must be fitted again, and the store does not know what it was fitted on."""
        if self.marked is not None and self.origin.revision is None:
            raise StoreError(
                f"model {self.id} was not fitted on this store and may have seen a document that "
                f"was forgotten since (revision {self.marked}), so it no longer answers; publish "
                "another model (polytopic store publish)."
            )


def history(connection: Connection) -> list[PublishedModel]:
    """Return all published models, the newest first."""
    table = tables.models.c
    current = read_state(connection).current_model
    rows = fetch(
        connection,
        select(
            table.id,
            table.time,
            table.name,
            table.origin,
            table.note,
            table.marked,
            func.length(table.content, type_=Integer).label("bytes"),
        ).order_by(table.id.desc()),
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
    state = read_state(connection, to_change=True)
    table, number = tables.models, state.published + 1
    origin = origin_of(connection.engine.url, labeler)
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
    seal(connection, "models", "state")
    return number


def is_marked(connection: Connection, labeler: Labeler) -> bool:
    """Tell whether something was forgotten since a labeler was fitted that it may have seen."""
    return _forgotten_since(connection, origin_of(connection.engine.url, labeler)) is not None


def _forgotten_since(connection: Connection, origin: Selection) -> int | None:
    """Return the last revision at which something was forgotten that may be in the origin.

    What is forgotten leaves no time or labels, so that a part counts as the whole.
    """
    if origin.read_at is None:
        return None
    gone = tables.forgotten.c
    seen = gone.learned <= origin.revision, gone.revision > origin.read_at
    ((last,),) = fetch(connection, select(func.max(gone.revision)).where(*seen))
    return last


def roll_back(connection: Connection, number: int | None) -> int:
    """Let an earlier model answer, the one before if none is named; return its number."""
    current = read_state(connection, to_change=True).current_model
    if current is None:
        raise StoreError("no model is published, so there is none to go back to.")
    table = tables.models.c
    own = table.id < current if number is None else table.id == number
    query = select(table.id, table.marked).where(own).order_by(table.id.desc()).limit(1)
    found = next(iter(fetch(connection, query)), None)
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
    seal(connection, "state")
    return found.id


def read_current(connection: Connection) -> Current | None:
    """Return what is known of the published model that answers, None if there is none."""
    state = read_state(connection)
    number = state.current_model
    if number is None:
        return None
    table = tables.models.c
    rows = fetch(connection, select(table.id, table.name, table.origin, table.marked))
    row = next((row for row in rows if row.id == number), None)
    if row is None or row.name not in MODELS:
        raise DamagedError(f"the published model {number} is not there")
    is_newest = number == max(row.id for row in rows)
    origin = Selection.from_json(row.origin)
    return Current(number, row.name, origin, row.marked, is_newest, state.revision)


def read_labeler(connection: Connection, current: Current, like: Labeler | None) -> Labeler:
    """Return the labeler of the published model that answers, with the counts it was fitted on.

    It comes without them if it must be fitted again. ``like`` is returned if it is that labeler.
    """
    tree, as_it_is = read_tree(connection), not current.is_outdated
    if like is not None and as_it_is and like.tree == tree and current.is_read_as(connection, like):
        return like
    labeler = read(connection, current.id)
    labeler.set_params(tree=tree)
    if as_it_is and current.origin.revision is not None:
        labeler.take_counts(read_counts(connection, current.origin, current.last))
    return labeler


def read(connection: Connection, number: int) -> Labeler:
    """Return the labeler of a published model."""
    table = tables.models.c
    query = select(table.content, table.origin).where(table.id == number)
    row = next(iter(fetch(connection, query)), None)
    if row is None:
        raise StoreError(f"there is no published model {number}; history lists them.")
    source = FittedFrom(connection.engine.url, Selection.from_json(row.origin), number)
    return from_bytes(row.content, f"model {number}", fitted_from=source)
