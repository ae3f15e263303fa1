"""Published models: labelers kept in a store, and the documents that they were fitted on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, delete, func, insert, select, update

from polytopic.errors import DamagedError, StoreError
from polytopic.labeler import Labeler
from polytopic.labeler.files import from_bytes, to_bytes
from polytopic.labeler.state import FittedFrom
from polytopic.models.registry import find_model, model_names
from polytopic.store import erasure, schema
from polytopic.store.database import Database, fetch
from polytopic.store.ledger import Selection, now
from polytopic.store.reader import read_counts, source_selection
from polytopic.store.schema import Settings, read_state, read_tree
from polytopic.store.seals import seal


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
        The documents that it was fitted on; the revision is None if they are not of this store.
    note : str or None
        The publisher's note.
    marked : int or None
        The revision at which one of its documents was forgotten, if any was.
    current : bool
        Whether it is the current model.
    bytes : int
        Its size.
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
class CurrentModel:
    """The published model that answers, and whether it may.

    Attributes
    ----------
    id, name, origin, marked
        As in :class:`PublishedModel`.
    is_newest : bool
        Whether no model was published after it.
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
    def is_pinned(self) -> bool:
        """Whether it answers as it is, even if the store has learned more.

        This holds for a model that was rolled back to, published as of an earlier revision, or
        fitted elsewhere.
        """
        return not self.is_newest or self.origin.is_past or self.origin.revision is None

    @property
    def refits_automatically(self) -> bool:
        """Whether it is fitted again, from counts, when the store has changed."""
        return not self.is_pinned and find_model(self.name).learns_from == "counts"

    @property
    def n_revisions_behind(self) -> int:
        """How many revisions of the store it should have learned but has not."""
        return 0 if self.is_pinned else self.last - (self.origin.revision or 0)

    @property
    def must_refit(self) -> bool:
        """Whether it must not answer as it was published."""
        return self.marked is not None or (
            self.refits_automatically and self.n_revisions_behind > 0
        )

    @property
    def can_refresh(self) -> bool:
        """Whether fitting it again would give another model."""
        return self.marked is not None or self.n_revisions_behind > 0

    @property
    def refit_as_of(self) -> int | None:
        """The revision to fit it again as of, None for the last one."""
        return self.origin.revision if self.is_pinned else None

    def check_refreshable(self) -> None:
        """Raise if it must be fitted again, but its documents are unknown."""
        is_unknown = self.origin.revision is None or self.origin.base is not None
        if self.marked is not None and is_unknown:
            raise StoreError(
                f"model {self.id} was not fitted on this store alone and may have seen a document "
                f"that has since been forgotten (revision {self.marked}), so it no longer answers; "
                "publish another model (polytopic store publish)."
            )


def read_current(connection: Connection) -> CurrentModel | None:
    """Return the current model, None if no model is published."""
    state = read_state(connection)
    number = state.current_model
    if number is None:
        return None
    table = schema.models.c
    rows = fetch(connection, select(table.id, table.name, table.origin, table.marked))
    row = next((row for row in rows if row.id == number), None)
    if row is None or row.name not in model_names():
        raise DamagedError(f"the published model {number} is missing")
    is_newest = number == max(row.id for row in rows)
    origin = Selection.from_json(row.origin)
    return CurrentModel(number, row.name, origin, row.marked, is_newest, state.revision)


class StoreState(NamedTuple):
    """The revision of a store, and the number of its current model, None if it has none."""

    revision: int
    current_model: int | None


class Monitor:
    """What a service that follows a store polls."""

    def __init__(self, database: Database):
        self._database = database

    def state(self) -> StoreState:
        """Return the revision and the number of the current model."""
        with self._database.reading() as connection:
            state = read_state(connection)
            return StoreState(state.revision, state.current_model)

    def must_refresh(self) -> bool:
        """Return whether the current model has seen a forgotten document and needs a refresh.

        Models that are fitted again automatically do not need one.
        """
        with self._database.reading() as connection:
            current = read_current(connection)
        return (
            current is not None and current.marked is not None and not current.refits_automatically
        )

    def has_forgotten_since(self, revision: int) -> bool:
        """Return whether a document was forgotten after a revision."""
        with self._database.reading() as connection:
            ((last,),) = fetch(connection, select(func.max(schema.forgotten.c.revision)))
        return last is not None and last > revision


def read_labeler(connection: Connection, number: int) -> Labeler:
    """Return the labeler of a published model, as it was published."""
    table = schema.models.c
    query = select(table.content, table.origin).where(table.id == number)
    row = next(iter(fetch(connection, query)), None)
    if row is None:
        raise _no_model(number)
    source = FittedFrom(connection.engine.url, Selection.from_json(row.origin), number)
    return from_bytes(row.content, f"model {number}", fitted_from=source)


def read_current_labeler(
    connection: Connection, current: CurrentModel, like: Labeler | None
) -> Labeler:
    """Return the labeler of the current model, with the present tree of labels.

    It has its counts, unless it must be fitted again. ``like`` is returned if it is this labeler.
    """
    tree, as_published = read_tree(connection), not current.must_refit
    source = FittedFrom(connection.engine.url, current.origin, current.id)
    if (
        like is not None
        and as_published
        and like.tree == tree
        and like.state_.fitted_from == source
    ):
        return like
    labeler = read_labeler(connection, current.id).set_params(tree=tree)
    if as_published and current.origin.revision is not None:
        counts = read_counts(connection, current.origin)
        if not set(labeler.vocabulary_).issubset(counts.terms):
            raise DamagedError(f"it lacks terms that model {current.id} was fitted on")
        labeler.set_state(labeler.state_.with_counts(counts))
    return labeler


def pack_labeler(url, labeler: Labeler) -> bytes:
    """Return a labeler as bytes, without counts if the store at ``url`` has them."""
    return to_bytes(labeler, counts=source_selection(url, labeler).revision is None)


def publish(
    connection: Connection,
    labeler: Labeler,
    content: bytes,
    note: str | None,
    keep: int | None,
    settings: Settings,
) -> int:
    """Keep a labeler, packed as ``content``, as the current model; return its number.

    One that was fitted elsewhere learns the documents that the store learns from now on, if it has
    its counts or documents, and counts words like the store.
    """
    state = read_state(connection, for_update=True)
    table, number = schema.models, state.published + 1
    origin = source_selection(connection.engine.url, labeler)
    if origin.revision is None and _can_learn(labeler, settings):
        last = state.revision
        origin = Selection(revision=last, read_at=last, base=number, after=last)
    row = {
        "id": number,
        "time": now(),
        "name": labeler.model_.name,
        "origin": origin.to_json(),
        "note": note,
        "marked": _last_deletion(connection, origin),
        "content": content,
    }
    connection.execute(insert(table), row)
    connection.execute(update(schema.state).values(published=number, current_model=number))
    if keep is not None:
        newest = select(table.c.id, table.c.origin).order_by(table.c.id.desc()).limit(keep)
        kept = {row.id: Selection.from_json(row.origin).base for row in fetch(connection, newest)}
        needed = {*kept, *(base for base in kept.values() if base is not None)}
        if connection.execute(delete(table).where(table.c.id.not_in(needed))).rowcount:
            erasure.overwrite_table(connection, "models")
    seal(connection, "models", "state")
    return number


def _can_learn(labeler: Labeler, settings: Settings) -> bool:
    """Return whether a labeler that was fitted elsewhere can learn the documents of a store."""
    state = labeler.state_
    is_count_model = state.model.learns_from == "counts"
    has_data = state.table is not None if is_count_model else state.documents is not None
    return (
        has_data
        and state.analyzer == settings.analyzer
        and (labeler.fields or {}) == (settings.fields or {})
    )


def has_lost_documents(connection: Connection, labeler: Labeler) -> bool:
    """Return whether a document that a labeler may have been fitted on has been forgotten."""
    origin = source_selection(connection.engine.url, labeler)
    return _last_deletion(connection, origin) is not None


def _last_deletion(connection: Connection, origin: Selection) -> int | None:
    """Return the last revision at which a document of a selection may have been forgotten.

    The times and labels of forgotten documents are not kept, so a part counts as the whole.
    """
    if origin.read_at is None:
        return None
    columns = schema.forgotten.c
    of_origin = columns.learned <= origin.revision, columns.revision > origin.read_at
    ((last,),) = fetch(connection, select(func.max(columns.revision)).where(*of_origin))
    return last


def roll_back(connection: Connection, number: int | None) -> int:
    """Make an earlier model current, by default the one before; return its number."""
    current = read_state(connection, for_update=True).current_model
    if current is None:
        raise StoreError("no model is published, so there is none to roll back to.")
    table = schema.models.c
    is_target = table.id < current if number is None else table.id == number
    query = select(table.id, table.marked).where(is_target).order_by(table.id.desc()).limit(1)
    model = next(iter(fetch(connection, query)), None)
    if model is None and number is None:
        raise StoreError(f"there is no model before model {current} to roll back to.")
    if model is None:
        raise _no_model(number)
    if model.marked is not None:
        raise StoreError(
            f"model {model.id} has seen a document that has since been forgotten (revision "
            f"{model.marked}); polytopic store refresh publishes a model that has not."
        )
    connection.execute(update(schema.state).values(current_model=model.id))
    seal(connection, "state")
    return model.id


def _no_model(number: int | None) -> StoreError:
    return StoreError(
        f"there is no published model {number}; polytopic store history lists the models."
    )


def read_history(connection: Connection) -> list[PublishedModel]:
    """Return all published models, the newest first."""
    table = schema.models.c
    current = read_state(connection).current_model
    size = func.length(table.content, type_=Integer).label("bytes")
    columns = table.id, table.time, table.name, table.origin, table.note, table.marked, size
    return [
        PublishedModel(
            id=row.id,
            time=row.time,
            name=row.name,
            origin=Selection.from_json(row.origin),
            note=row.note,
            marked=row.marked,
            current=row.id == current,
            bytes=row.bytes,
        )
        for row in fetch(connection, select(*columns).order_by(table.id.desc()))
    ]
