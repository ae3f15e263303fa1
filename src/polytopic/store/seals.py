"""Seals: digests of the tables of a store, which reveal changes made by anything else.

The seal of a table is the sum of the digests of its rows, so rows can be added and removed without
reading the others. Label sets, labels and terms have no seal, because they can be recounted from
the ledger. Stores of earlier releases get their seals with the first change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from polytopic.store import schema
from polytopic.store.database import fetch, run_many
from polytopic.store.ledger import LedgerRows
from polytopic.store.schema import read_state

SIZE = 32  # bytes of a seal
ledger, labels, models, tokens, assignments = (
    table.c
    for table in (
        schema.documents,
        schema.labels,
        schema.models,
        schema.tokens,
        schema.assignments,
    )
)
CONTENT: dict[str, Select] = {  # the sealed columns, in the order in which they are hashed
    "documents": select(
        ledger.document,
        ledger.labels,
        ledger.time,
        ledger.first,
        ledger.learned,
        ledger.replaced,
        ledger.digest,
        ledger.text,
    ).where(ledger.learned > 0),  # 0: a blank row
    "revisions": select(schema.revisions),
    "forgotten": select(schema.forgotten),
    "settings": select(schema.settings),
    "tree": select(labels.label, labels.about).where(labels.about.is_not(None)),
    "models": select(
        models.id, models.time, models.name, models.origin, models.note, models.marked
    ),
    "state": select(schema.state.c.published, schema.state.c.current_model),
    "tokens": select(tokens.digest, tokens.name, tokens.role, tokens.time),
    "articles": select(schema.articles),
    "assignments": select(
        assignments.document,
        assignments.topics,
        assignments.known,
        assignments.model,
        assignments.revision,
        assignments.time,
        assignments.replaced,
    ),
}
READ_SEALS = select(schema.seals)
WRITE_SEAL = (
    update(schema.seals)
    .where(schema.seals.c.name == bindparam("own"))
    .values(digest=bindparam("digest"), revision=bindparam("revision"))
)
PROBLEMS = {
    "documents": "an id, labels, a time, a text or a revision of a document was changed.",
    "revisions": "the log of revisions was changed.",
    "forgotten": "the log of deletions was changed.",
    "settings": "the settings of the store were changed.",
    "tree": "the tree of labels was changed.",
    "models": "the list of published models was changed.",
    "state": "the number of the current model was changed.",
    "tokens": "the tokens were changed.",
    "articles": "what is known about acquired articles was changed.",
    "assignments": "the topics that models have assigned were changed.",
}


class Seals:
    """The seals of a store that is being changed.

    Parameters
    ----------
    connection : Connection
        A write transaction.
    revision : int
        The revision of the store. If the seals are of another revision, an earlier release has
        changed the store since, and all seals are computed again.
    """

    def __init__(self, connection: Connection, revision: int):
        self.connection, self._changed = connection, set[str]()
        rows = fetch(connection, READ_SEALS)
        self._sums = {row.name: int.from_bytes(row.digest, "big") for row in rows}
        if not _are_current(rows, revision):
            self._sums = {name: _sum(fetch(connection, CONTENT[name])) for name in CONTENT}
            connection.execute(delete(schema.seals))
            new_rows = [
                {"name": name, "revision": revision, "digest": _digest(total)}
                for name, total in self._sums.items()
            ]
            connection.execute(insert(schema.seals), new_rows)

    def add(self, name: str, rows: Iterable[Sequence]) -> None:
        """Add rows to the seal of a table."""
        self._sums[name] += _sum(rows)
        self._changed.add(name)

    def remove(self, name: str, rows: Iterable[Sequence]) -> None:
        """Remove rows from the seal of a table."""
        self._sums[name] -= _sum(rows)
        self._changed.add(name)

    def renew(self, name: str) -> None:
        """Compute the seal of a small table again."""
        self._sums[name] = _sum(fetch(self.connection, CONTENT[name]))
        self._changed.add(name)

    def write(self, revision: int) -> None:
        """Write the seals that have changed, for a revision."""
        rows = [(_digest(self._sums[name]), revision, name) for name in sorted(self._changed)]
        run_many(self.connection, WRITE_SEAL, ["digest", "revision", "own"], rows)


def _are_current(rows: Iterable[Row], revision: int) -> bool:
    """Return whether the seals are complete and up to date: each change seals the revisions."""
    revisions = {row.name: row.revision for row in rows}
    return revisions.keys() >= CONTENT.keys() and revisions["revisions"] == revision


def seal(connection: Connection, *names: str) -> None:
    """Seal small tables that were changed without a new revision."""
    schema.seals.create(connection, checkfirst=True)  # earlier releases did not
    revision = read_state(connection).revision
    seals = Seals(connection, revision)
    for name in names:
        seals.renew(name)
    seals.write(revision)


def upgrade_seals(connection: Connection, change: Callable[[], None]) -> None:
    """Add the seals of new tables, and renew that of the settings, which ``change`` changes.

    A seal that does not fit stays as it is. A store without seals gets them with the next change.
    """
    if not inspect(connection).has_table(schema.seals.name):
        change()
        return
    revision, name = read_state(connection).revision, "settings"
    stored = {row.name: row.digest for row in fetch(connection, READ_SEALS)}
    is_intact = stored.get(name) == _digest(_sum(fetch(connection, CONTENT[name])))
    change()
    for new in ("articles", "assignments"):
        digest = _digest(_sum(fetch(connection, CONTENT[new])))
        connection.execute(delete(schema.seals).where(schema.seals.c.name == new))
        row = {"name": new, "revision": revision, "digest": digest}
        connection.execute(insert(schema.seals), row)
    if is_intact:
        digest = _digest(_sum(fetch(connection, CONTENT[name])))
        run_many(connection, WRITE_SEAL, ["digest", "revision", "own"], [(digest, revision, name)])


def document_rows(
    rows: LedgerRows, first: Sequence[int], learned: Sequence[int], replaced: Sequence[int | None]
) -> Iterator[tuple]:
    """Return the sealed columns of ledger rows that were learned and replaced at revisions."""
    columns = rows.ids, rows.labels, rows.times, first, learned, replaced, rows.digests, rows.texts
    return zip(*columns, strict=True)


def find_tampering(connection: Connection) -> Iterator[str]:
    """Yield a sentence for each part that something other than a store has changed."""
    state = read_state(connection)
    ((last,),) = fetch(connection, select(func.max(schema.revisions.c.revision)))
    if (last or 0) != state.revision:
        yield "the log of revisions does not end with the revision of the store."
    published = fetch(connection, select(models.id, models.content))
    if state.current_model not in (None, *(row.id for row in published)):
        yield "the current model is missing."
    for row in published:
        try:
            parse_model(row.content, f"model {row.id}")
        except PolytopicError as error:
            yield str(error)
    if not inspect(connection).has_table(schema.seals.name):
        return
    seals = fetch(connection, READ_SEALS)
    if CONTENT.keys() - {row.name for row in seals}:
        yield "some seals are missing."
        return
    if not _are_current(seals, state.revision):  # an earlier release has changed the store
        return
    for name, _, digest in seals:
        if name not in CONTENT or digest != _digest(_sum(fetch(connection, CONTENT[name]))):
            yield PROBLEMS.get(name, f"there is a seal of the unknown table {name!r}.")


def _sum(rows: Iterable[Sequence]) -> int:
    return sum(
        int.from_bytes(blake2b(_encoded(row), digest_size=SIZE).digest(), "big") for row in rows
    )


def _encoded(row: Sequence) -> bytes:
    # NUL separates the values: databases accept no text that contains it
    values = [value.hex() if type(value) is bytes else str(value) for value in row]
    return "\0".join(values).encode(errors="surrogatepass")


def _digest(total: int) -> bytes:
    return (total % 256**SIZE).to_bytes(SIZE, "big")
