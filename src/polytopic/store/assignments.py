"""Topics of documents: what models assign to them, and the entries by which they are found.

Each document has an entry per topic in the table ``topics``, which follows from the ledger and the
assignments: the labels that it was learned with or, if it has none, those that a model has assigned
to it. Changes of the ledger and assignments write these entries in their own transactions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sqlalchemy import (
    BigInteger,
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from polytopic.errors import DamagedError
from polytopic.labeler import Labeler
from polytopic.labeler.answers import assign_labels
from polytopic.labeler.state import known_shares
from polytopic.store import models, schema
from polytopic.store.database import Database, fetch, fetch_where_in, run_many
from polytopic.store.encoding import decode_rows, read_json, read_labels
from polytopic.store.ledger import EFFECTIVE_TIME, IS_CURRENT, LedgerRows, now
from polytopic.store.schema import assignments, read_state, topics
from polytopic.store.seals import Seals
from polytopic.store.terms import Terms

BATCH = 1000  # documents per transaction
DIGITS = 6  # of stored scores and probabilities
ANY = ""  # the label of the entry that each document has
ledger = schema.documents

# Statements are built once: building one takes longer than running it.
SEALED = ("document", "topics", "known", "model", "revision", "time", "replaced")
READ_ASSIGNMENTS = select(assignments)
READ_ASSIGNED = READ_ASSIGNMENTS.where(assignments.c.replaced.is_(None))
INSERT_ASSIGNMENT = insert(assignments)
CLOSE_ASSIGNMENT = (
    update(assignments).where(assignments.c.id == bindparam("own")).values(replaced=bindparam("at"))
)
DELETE_ASSIGNMENT = delete(assignments).where(assignments.c.id == bindparam("own"))
READ_PLACES = select(ledger.c.row, ledger.c.document, ledger.c.labels, EFFECTIVE_TIME).where(
    IS_CURRENT
)
INSERT_ENTRY = insert(topics)
DELETE_ENTRY = delete(topics).where(
    topics.c.label == bindparam("its_label"),
    topics.c.time == bindparam("its_time"),
    topics.c.row == bindparam("its_row"),
)
_is_assigned = and_(
    assignments.c.document == ledger.c.document,
    assignments.c.replaced.is_(None),
)
_is_outdated = or_(
    assignments.c.id.is_(None),
    assignments.c.model.is_distinct_from(bindparam("model", type_=BigInteger)),
    assignments.c.time < bindparam("marked", type_=Text),
)
_FROM = ledger.outerjoin(assignments, _is_assigned)
READ_OUTDATED = (
    select(ledger.c.row, ledger.c.document, ledger.c.terms, ledger.c.counts)
    .select_from(_FROM)
    .where(IS_CURRENT, ledger.c.row > bindparam("after"), _is_outdated)
    .order_by(ledger.c.row)
    .limit(BATCH)
)
COUNT_OUTDATED = select(func.count()).select_from(_FROM).where(IS_CURRENT, _is_outdated)


class Topic(NamedTuple):
    """A label that a model has assigned to a document, with its score and probability.

    A score or probability that is not finite is None.
    """

    label: str
    score: float | None
    probability: float | None


@dataclass(frozen=True)
class Assignment:
    """What a model has assigned to a document.

    Attributes
    ----------
    topics : list of Topic
        The labels, best first.
    known : float
        The share of the document's words that the model knew.
    model, revision : int or None
        The number of the model, None if it was not published, and the revision of the model's
        documents.
    time : str
        When the labels were assigned.
    replaced : str or None
        When others replaced them; None if they are current.
    """

    topics: list[Topic]
    known: float
    model: int | None
    revision: int | None
    time: str
    replaced: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self) | {"topics": [topic._asdict() for topic in self.topics]}


def read_topics(text: str) -> list[Topic]:
    """Return the topics of an assignment."""
    values = read_json(text, "an assignment")
    try:
        return [Topic(str(label), score, probability) for label, score, probability in values]
    except (TypeError, ValueError) as error:
        raise DamagedError("an assignment is not a list of topics") from error


def _write_topics(suggestions) -> str:
    rows = [[s.label, _rounded(s.score), _rounded(s.probability)] for s in suggestions]
    return json.dumps(rows, ensure_ascii=False)


def _rounded(value: float) -> float | None:
    return round(value, DIGITS) if math.isfinite(value) else None


# Entries


class Place(NamedTuple):
    """A row of the ledger: its number, document, labels (JSON) and time."""

    row: int
    document: str
    labels: str
    effective_time: str | None


def places_of(rows: LedgerRows) -> list[Place]:
    """Return rows of the ledger as places."""
    columns = rows.numbers, rows.ids, rows.labels, rows.effective_times
    return [Place(*values) for values in zip(*columns, strict=True)]


def write_entries(connection: Connection, ids: Iterable[str], time: str) -> None:
    """Write the entries of documents with new rows in the ledger.

    ``time`` is the time of the present revision, which is not in the log yet.
    """
    rows = fetch_where_in(connection, READ_PLACES, ledger.c.document, ids)
    _insert_entries(connection, _entries_of(connection, rows, time))


def delete_entries(connection: Connection, places: Sequence[Place]) -> None:
    """Delete the entries of documents, before their assignments change."""
    _delete_entries(connection, _entries_of(connection, places, None))


def _entries_of(
    connection: Connection, places: Sequence[Row | Place], time: str | None
) -> list[tuple]:
    assigned = _read_assigned(connection, [p.document for p in places if p.labels == "[]"])
    entries: list[tuple] = []
    for place in places:
        own = assigned.get(place.document)
        entries += _entries(place, None if own is None else own.topics, time)
    return entries


def _entries(row: Row | Place, assigned: str | None, time: str | None) -> Iterator[tuple]:
    """Yield the entries of a document: label, time, row and probability."""
    when = row.effective_time or time
    yield ANY, when, row.row, 1.0
    for label in read_labels(row.labels):
        yield label, when, row.row, 1.0
    if row.labels == "[]" and assigned is not None:
        yield from _topic_entries(row, assigned, str(when))


def _topic_entries(row: Row | Place, assigned: str, when: str) -> Iterator[tuple]:
    for topic in read_topics(assigned):
        yield topic.label, when, row.row, topic.probability or 0.0


def _insert_entries(connection: Connection, entries: Sequence[tuple]) -> None:
    run_many(connection, INSERT_ENTRY, ["label", "time", "row", "probability"], entries)


def _delete_entries(connection: Connection, entries: Iterable[tuple]) -> None:
    keys = [entry[:3] for entry in entries]
    run_many(connection, DELETE_ENTRY, ["its_label", "its_time", "its_row"], keys)


def fill_entries(connection: Connection) -> None:
    """Write the entries of all documents of a store of an earlier schema."""
    connection.execute(delete(topics))
    last = 0
    while rows := fetch(
        connection,
        READ_PLACES.where(ledger.c.row > last).order_by(ledger.c.row).limit(10 * BATCH),
    ):
        _insert_entries(connection, [entry for row in rows for entry in _entries(row, None, None)])
        last = rows[-1].row


def find_mismatches(connection: Connection) -> Iterator[str]:
    """Yield a sentence for each way in which topics do not follow from the ledger."""
    rows = fetch(connection, READ_PLACES)
    assigned = {row.document: row for row in fetch(connection, READ_ASSIGNED)}
    expected = {
        entry
        for row in rows
        for entry in _entries(
            row, assigned[row.document].topics if row.document in assigned else None, None
        )
    }
    columns = topics.c.label, topics.c.time, topics.c.row, topics.c.probability
    stored = {tuple(row) for row in fetch(connection, select(*columns))}
    if stored != expected:
        yield "the topics of documents do not match the ledger and what models have assigned."
    known = {row.document for row in rows}
    everyone = select(assignments.c.document).distinct()
    if any(row.document not in known for row in fetch(connection, everyone)):
        yield "topics are assigned to documents that are not in the ledger."


# Assignments


def _read_assigned(connection: Connection, ids: Iterable[str]) -> dict[str, Row]:
    """Return the current assignments of documents, by id."""
    ids = list(ids)
    if not ids:
        return {}
    rows = fetch_where_in(connection, READ_ASSIGNED, assignments.c.document, ids)
    return {row.document: row for row in rows}


def close_assignments(connection: Connection, seals: Seals, ids: Iterable[str], time: str) -> None:
    """End the assignments of documents whose words have changed."""
    _close(connection, seals, list(_read_assigned(connection, ids).values()), time)


def _close(connection: Connection, seals: Seals, rows: Sequence[Row], time: str) -> None:
    if rows:
        run_many(connection, CLOSE_ASSIGNMENT, ["own", "at"], [(row.id, time) for row in rows])
        seals.remove("assignments", map(_sealed, rows))
        seals.add("assignments", [(*_sealed(row)[:-1], time) for row in rows])


def _delete(connection: Connection, seals: Seals, rows: Sequence[Row]) -> None:
    if rows:
        run_many(connection, DELETE_ASSIGNMENT, ["own"], [(row.id,) for row in rows])
        seals.remove("assignments", map(_sealed, rows))


def _sealed(row: Row) -> tuple:
    return tuple(getattr(row, name) for name in SEALED)


def delete_assignments(connection: Connection, seals: Seals, ids: Iterable[str]) -> None:
    """Delete all assignments of documents, also former ones."""
    rows = fetch_where_in(connection, READ_ASSIGNMENTS, assignments.c.document, ids)
    _delete(connection, seals, rows)


def delete_labels(connection: Connection, seals: Seals, labels: Iterable[str]) -> None:
    """Delete all assignments of labels that no document and no tree has any more."""
    known = {row.label for row in fetch(connection, select(schema.labels.c.label))}
    gone = set(labels) - known
    if not gone:
        return
    rows = [
        row
        for row in fetch(connection, READ_ASSIGNMENTS)
        if gone.intersection(topic.label for topic in read_topics(row.topics))
    ]
    _delete(connection, seals, rows)
    current = {row.document: row for row in rows if row.replaced is None}
    for place in fetch_where_in(connection, READ_PLACES, ledger.c.document, current):
        if place.labels == "[]":
            topics_of = current[place.document].topics
            _delete_entries(connection, _topic_entries(place, topics_of, place.effective_time))


def read_history(connection: Connection, name: str) -> list[Assignment]:
    """Return the assignments of a document, the newest first."""
    rows = fetch_where_in(connection, READ_ASSIGNMENTS, assignments.c.document, [name])
    rows.sort(key=lambda row: row.id, reverse=True)
    return [
        Assignment(
            read_topics(row.topics), row.known, row.model, row.revision, row.time, row.replaced
        )
        for row in rows
    ]


class Target(NamedTuple):
    """The model that assigns topics.

    Attributes
    ----------
    labeler : Labeler
        The labeler that answers.
    number : int or None
        The number of the published model, None if none is published.
    """

    labeler: Labeler
    number: int | None


class Assigner:
    """Assigns topics to the documents of a store that have none from its current model.

    Documents are read, labelled and written batch by batch, so that other processes may read and
    change the store meanwhile. A batch is not written if another model has become current, or a
    document that the model has seen was forgotten; a document is skipped if it has changed.
    """

    def __init__(self, database: Database):
        self._database = database
        self._scanned: tuple[Any, int] = None, 0  # what all rows up to a number were assigned by
        self._columns: tuple[Any, np.ndarray] | None = None

    def run(self, target: Target, limit: int | None = None) -> int:
        """Assign topics to at most ``limit`` documents; return how many."""
        n_docs = 0
        while limit is None or n_docs < limit:
            n_written = self._run_batch(target)
            if n_written is None:
                break
            n_docs += n_written
        return n_docs

    def count(self, number: int | None) -> int:
        """Return how many documents have no topics of the current model."""
        with self._database.reading() as connection:
            parameters = {"model": number, "marked": _marked_at(connection, number)}
            return connection.execute(COUNT_OUTDATED, parameters).scalar_one()

    def _run_batch(self, target: Target) -> int | None:
        """Assign topics to a batch of documents; return None if there is none to assign."""
        with self._database.reading() as connection:
            state = read_state(connection)
            if state.current_model != target.number:
                return None
            marked = _marked_at(connection, target.number)
            by = target.number, marked, _last_deletion(connection)
            after = self._scanned[1] if self._scanned[0] == by else 0
            rows = fetch(
                connection,
                READ_OUTDATED,
                {"after": after, "model": target.number, "marked": marked},
            )
            counts, known = self._count(connection, target.labeler, state.revision, rows)
        if not rows:
            return None
        labeler = target.labeler
        assigned = assign_labels(labeler, labeler.state_, counts, known)
        written = [
            (row.row, row.document, _write_topics(suggestions), share)
            for row, suggestions, share in zip(rows, assigned, known.tolist(), strict=True)
        ]
        with self._database.writing() as connection:
            if read_state(connection).current_model != target.number:
                return None
            if models.has_lost_documents(connection, labeler):
                return None
            n_written = _write(connection, target, written)
        self._scanned = by, rows[-1].row
        return n_written

    def _count(
        self, connection: Connection, labeler: Labeler, revision: int, rows: Sequence[Row]
    ) -> tuple[sparse.csr_matrix, np.ndarray]:
        """Return the counts of known words, and the share of all words that they are."""
        vocabulary, key = labeler.vocabulary_, (labeler.state_, revision)
        if self._columns is None or self._columns[0] != key:
            names = Terms(connection).names
            self._columns = key, vocabulary.columns(names)  # type: ignore[arg-type]  # None: deleted
        columns = self._columns[1]
        counts = decode_rows(
            [row.terms for row in rows], [row.counts for row in rows], columns.size
        )
        places = columns[counts.indices]
        totals = np.asarray(counts.sum(axis=1)).ravel()
        ends = np.concatenate([[0], np.cumsum(places >= 0)])[counts.indptr]
        shape = len(rows), len(vocabulary)
        X = sparse.csr_matrix((counts.data[places >= 0], places[places >= 0], ends), shape=shape)
        X.sort_indices()
        return X, known_shares(X, totals)


def _marked_at(connection: Connection, number: int | None) -> str | None:
    """Return when a document of a published model was forgotten, None if none was."""
    table, log = schema.models.c, schema.revisions.c
    query = select(log.time).join(schema.models, table.marked == log.revision)
    return connection.execute(query.where(table.id == number)).scalar()


def _last_deletion(connection: Connection) -> int | None:
    return connection.execute(select(func.max(schema.forgotten.c.revision))).scalar()


def _write(connection: Connection, target: Target, assigned: Sequence[tuple]) -> int:
    """Write the assignments of documents that have not changed; return their number."""
    ids, time = [document for _, document, *_ in assigned], now()
    rows = fetch_where_in(connection, READ_PLACES, ledger.c.document, ids)
    places = {row.row: row for row in rows}
    assigned = [one for one in assigned if one[0] in places]
    former = _read_assigned(connection, ids)
    same: list[Row] = []
    different: list[Row] = []
    added: list[tuple] = []
    entries: list[tuple] = []
    outdated: list[tuple] = []
    source = target.labeler.state_.fitted_from
    revision = None if source is None else source.selection.revision
    for row, document, written, known in assigned:
        earlier, place = former.get(document), places[row]
        if earlier is not None:
            (same if _labels(earlier.topics) == _labels(written) else different).append(earlier)
        added.append((document, written, known, target.number, revision, time, None))
        if place.labels == "[]":
            if earlier is not None:
                outdated += _topic_entries(place, earlier.topics, place.effective_time)
            entries += _topic_entries(place, written, place.effective_time)
    seals = Seals(connection, read_state(connection).revision)
    _delete(connection, seals, same)
    _close(connection, seals, different, time)
    run_many(connection, INSERT_ASSIGNMENT, SEALED, added)
    seals.add("assignments", added)
    _delete_entries(connection, outdated)
    _insert_entries(connection, entries)
    seals.write(read_state(connection).revision)
    return len(added)


def _labels(written: str) -> set[str]:
    return {topic.label for topic in read_topics(written)}
