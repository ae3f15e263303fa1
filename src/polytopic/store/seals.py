"""Seals: digests of all that a store holds, by which a change behind its back is seen.

The seal of a table is the sum of the digests of its rows, so that rows go in and come out without
reading the others. Label sets, labels and terms need none: they are counted afresh from the
ledger. Stores of earlier releases get their seals with the first change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from sqlalchemy import (
    Connection,
    Row,
    Select,
    bindparam,
    delete,
    func,
    insert,
    inspect,
    select,
    update,
)

from polytopic.errors import PolytopicError
from polytopic.modelfile import parse_model
from polytopic.store import tables
from polytopic.store.bags import Bags
from polytopic.store.database import fetch, run_many
from polytopic.store.state import read_state

SIZE = 32  # bytes of a seal
ledger, labels, models, tokens = (
    table.c for table in (tables.documents, tables.labels, tables.models, tables.tokens)
)
CONTENT: dict[str, Select] = {  # what is sealed, in the order of columns
    "documents": select(
        ledger.document,
        ledger.labels,
        ledger.time,
        ledger.first,
        ledger.learned,
        ledger.replaced,
        ledger.digest,
        ledger.text,
    ).where(ledger.learned > 0),  # the others are blank
    "revisions": select(tables.revisions),
    "forgotten": select(tables.forgotten),
    "settings": select(tables.settings),
    "tree": select(labels.label, labels.about).where(labels.about.is_not(None)),
    "models": select(
        models.id, models.time, models.name, models.origin, models.note, models.marked
    ),
    "state": select(tables.state.c.published, tables.state.c.current_model),
    "tokens": select(tokens.digest, tokens.name, tokens.role, tokens.time),
}
READ_SEALS = select(tables.seals)
WRITE_SEAL = (
    update(tables.seals)
    .where(tables.seals.c.name == bindparam("own"))
    .values(digest=bindparam("digest"), revision=bindparam("revision"))
)
PROBLEMS = {
    "documents": "an id, labels, a time, a text or a revision of a document was changed.",
    "revisions": "the log of revisions was changed.",
    "forgotten": "the log of what was forgotten was changed.",
    "settings": "the settings of the store were changed.",
    "tree": "the tree of labels was changed.",
    "models": "what is noted of published models was changed.",
    "state": "the number of the published model that answers was changed.",
    "tokens": "the tokens were changed.",
}


class Seals:
    """The seals of a store that is being changed.

    Parameters
    ----------
    connection : Connection
        The connection of who changes the store, alone.
    revision : int
        The revision of the store. If the seals are of another one, an earlier release has changed
        it since, and all is sealed afresh.
    """

    def __init__(self, connection: Connection, revision: int):
        self.connection, self._changed = connection, set[str]()
        rows = fetch(connection, READ_SEALS)
        self._sums = {row.name: int.from_bytes(row.digest, "big") for row in rows}
        if not _are_of(rows, revision):
            self._sums = {name: _sum(fetch(connection, CONTENT[name])) for name in CONTENT}
            connection.execute(delete(tables.seals))
            fresh = [
                {"name": name, "revision": revision, "digest": _digest(total)}
                for name, total in self._sums.items()
            ]
            connection.execute(insert(tables.seals), fresh)

    def add(self, name: str, rows: Iterable[Sequence]) -> None:
        """Put rows into the seal of a table."""
        self._sums[name] += _sum(rows)
        self._changed.add(name)

    def remove(self, name: str, rows: Iterable[Sequence]) -> None:
        """Take rows out of the seal of a table."""
        self._sums[name] -= _sum(rows)
        self._changed.add(name)

    def renew(self, name: str) -> None:
        """Seal a small table afresh."""
        self._sums[name] = _sum(fetch(self.connection, CONTENT[name]))
        self._changed.add(name)

    def write(self, revision: int) -> None:
        """Keep the seals that have changed, as those of a revision."""
        rows = [(_digest(self._sums[name]), revision, name) for name in sorted(self._changed)]
        run_many(self.connection, WRITE_SEAL, ["digest", "revision", "own"], rows)


def _are_of(rows: Iterable[Row], revision: int) -> bool:
    """Tell whether all seals are there, and of this revision, which one of them always is."""
    revisions = {row.name: row.revision for row in rows}
    return revisions.keys() >= CONTENT.keys() and revisions["revisions"] == revision


def seal(connection: Connection, *names: str) -> None:
    """Seal small tables that were changed, while the revision stays."""
    revision = read_state(connection).revision
    seals = Seals(connection, revision)
    for name in names:
        seals.renew(name)
    seals.write(revision)


def document_rows(
    bags: Bags, first: Sequence[int], learned: Sequence[int], replaced: Sequence[int | None]
) -> Iterator[tuple]:
    """Return rows of the ledger as they are sealed."""
    parts = bags.names, bags.labels, bags.times, first, learned, replaced, bags.digests, bags.texts
    return zip(*parts, strict=True)


def find_broken(connection: Connection) -> Iterator[str]:
    """Yield what was changed behind the store's back, a sentence each."""
    state = read_state(connection)
    ((last,),) = fetch(connection, select(func.max(tables.revisions.c.revision)))
    if (last or 0) != state.revision:
        yield "the log of revisions does not end with the store's own."
    query = select(models.id, models.content)
    found = fetch(connection, query)
    if state.current_model is not None and state.current_model not in [row.id for row in found]:
        yield "the published model that answers is not there."
    for row in found:
        try:
            parse_model(row.content, f"model {row.id}")
        except PolytopicError as error:
            yield str(error)
    if not inspect(connection).has_table(tables.seals.name):
        return
    kept = fetch(connection, READ_SEALS)
    if CONTENT.keys() - {row.name for row in kept}:
        yield "the seals of the store are not complete."
        return
    if not _are_of(kept, state.revision):  # an earlier release has changed the store
        return
    for name, _, digest in kept:
        if name not in CONTENT or digest != _digest(_sum(fetch(connection, CONTENT[name]))):
            yield PROBLEMS.get(name, f"there is a seal of {name!r}, which is not known.")


def _sum(rows: Iterable[Sequence]) -> int:
    return sum(
        int.from_bytes(blake2b(_encoded(row), digest_size=SIZE).digest(), "big") for row in rows
    )


def _encoded(row: Sequence) -> bytes:
    # no value holds the character between them, which databases do not take
    values = [value.hex() if type(value) is bytes else str(value) for value in row]
    return "\0".join(values).encode(errors="surrogatepass")


def _digest(total: int) -> bytes:
    return (total % 256**SIZE).to_bytes(SIZE, "big")
