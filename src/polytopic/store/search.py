"""Finding documents: by topic, time, probability and words.

Words are found through an index of the terms of documents (FTS5 in SQLite, a tsvector in
PostgreSQL). The first search for words creates it, later ones add what is new. In an SQLite file,
forgetting a document deletes the index, which overwrites its pages, and the next search creates it
again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    column,
    func,
    inspect,
    literal,
    select,
    table,
    text,
    tuple_,
    union_all,
)
from sqlalchemy.exc import OperationalError

from polytopic.errors import DamagedError, StoreError
from polytopic.labeler.reading import LabelReader, read_names
from polytopic.parameters import check_number
from polytopic.store import schema
from polytopic.store.analysis import PERIODS, Timeline, all_periods, first_days
from polytopic.store.assignments import ANY, Topic, read_topics
from polytopic.store.database import Database, fetch
from polytopic.store.encoding import decode_rows, read_json, read_labels
from polytopic.store.ledger import IS_CURRENT, check_times, read_time
from polytopic.store.schema import assignments, read_tree, topics
from polytopic.store.terms import Terms

MAX_PAGE = 1000  # documents
MAX_QUERIES = 50  # labels that are looked up one by one
BATCH = 2000  # documents added to the index of words per transaction
WORDS, INDEXED = "polytopic_words", "polytopic_indexed"
CREATE_WORDS = {
    "sqlite": [
        f"CREATE VIRTUAL TABLE {WORDS} USING fts5(terms, content='', detail=none, columnsize=0, "
        "tokenize=\"unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'\")",
    ],
    "postgresql": [
        f'CREATE TABLE {WORDS} ("row" bigint PRIMARY KEY, terms tsvector NOT NULL)',
        f"CREATE INDEX {WORDS}_terms ON {WORDS} USING gin (terms)",
    ],
}
INSERT_WORDS = {
    "sqlite": text(f"INSERT INTO {WORDS} (rowid, terms) VALUES (:row, :terms)"),  # noqa: S608
    "postgresql": text(
        f'INSERT INTO {WORDS} ("row", terms) '
        "SELECT :row, array_to_tsvector(string_to_array(:terms, ' '))"
    ),
}
ledger = schema.documents
indexed = table(INDEXED, Column("row", BigInteger, nullable=False))


# Pages of documents


@dataclass(frozen=True)
class Match:
    """A document that was found.

    Attributes
    ----------
    id : str
        Its id.
    time : str
        Its time, or the time when it was first learned if it has none.
    labels : list of str
        The labels that it was learned with.
    topics : list of Topic
        The labels that a model has assigned to it, best first.
    known : float or None
        The share of its words that the model knew; None, like all that follow, if no model has
        assigned labels yet.
    model, revision : int or None
        The number of the model, None if it was not published, and the revision of the model's
        documents.
    assigned : str or None
        When the labels were assigned.
    content : str, dict or None
        Its text or fields if the store keeps texts; counts if it was learned with counts.
    address, author, language, duplicate_of : str or None
        What the news desk knows about it: of a copy, also the id of the article that it copies.
    """

    id: str
    time: str
    labels: list[str]
    topics: list[Topic]
    known: float | None
    model: int | None
    revision: int | None
    assigned: str | None
    content: Any = None
    address: str | None = None
    author: str | None = None
    language: str | None = None
    duplicate_of: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON, with the text if it is kept."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        content = values.pop("content")
        values["topics"] = [topic._asdict() for topic in self.topics]
        if isinstance(content, str):
            values["text"] = content
        elif content is not None:
            are_fields = content and all(isinstance(value, str) for value in content.values())
            values["fields" if are_fields else "counts"] = content
        return values


@dataclass(frozen=True)
class Page(Sequence[Match]):
    """Documents that were found, newest first, and where the next page begins.

    Attributes
    ----------
    matches : list of Match
        The documents.
    next : str or None
        What to pass as ``after`` to get the next page; None on the last one.
    """

    matches: list[Match]
    next: str | None

    def __getitem__(self, place):
        return self.matches[place]

    def __len__(self) -> int:
        return len(self.matches)


class Criteria(NamedTuple):
    """What documents are looked for: labels (None for any), times, probability and words."""

    labels: list[str] | None
    since: str | None
    until: str | None
    min_probability: float | None
    words: list[str] | None

    def conditions(self, dialect: str) -> list[Any]:
        """Return the conditions on entries of topics, except for the one on labels."""
        conditions: list[Any] = []
        if self.since is not None:
            conditions.append(topics.c.time >= self.since)
        if self.until is not None:
            conditions.append(topics.c.time < self.until)
        if self.min_probability is not None and self.labels is not None:
            conditions.append(topics.c.probability >= self.min_probability)
        if self.words is not None:
            conditions.append(topics.c.row.in_(_match(dialect, self.words)))
        return conditions


def read_criteria(
    connection: Connection, analyzer, *, topic, since, until, min_probability, words: str | None
) -> Criteria:
    """Check what a user looks for, and return it as the store keeps it."""
    labels = None
    if topic is not None:
        names = [topic] if isinstance(topic, str) else read_names("topic", topic)
        labels = _branches(connection, names)
    if min_probability is not None:
        check_number(min_probability, "min_probability", min_val=0, max_val=1)
        if labels is None:
            raise ValueError("min_probability is the least probability of a topic; give a topic.")
    terms = None
    if words is not None:
        terms = sorted({part for term in analyzer.terms(words) for part in term.split()})
        if not terms:
            raise ValueError(f"text == {words[:80]!r} has no word to look for.")
    return Criteria(
        labels, read_time("since", since), read_time("until", until), min_probability, terms
    )


def _branches(connection: Connection, names: Collection[str]) -> list[str]:
    """Return labels, given by id or name, and those below them in the tree."""
    tree = read_tree(connection)
    reader = LabelReader(tree)
    own = {reader.resolve(name) for name in names}
    below = {b for a in own if tree and a in tree for b in tree.descendants(a)}
    return sorted(own | below)


def find_page(connection: Connection, criteria: Criteria, k: int, after: str | None) -> Page:
    """Return the newest ``k`` documents that meet all criteria."""
    conditions = criteria.conditions(connection.dialect.name)
    if after is not None:
        conditions.append(tuple_(topics.c.time, topics.c.row) < _read_cursor(after))
    query = _page_query(criteria.labels, conditions, k + 1)
    places = [(time, row) for time, row in connection.execute(query)]
    matches = _read_matches(connection, places[:k])
    cursor = f"{places[k - 1][0]}~{places[k - 1][1]}" if len(places) > k else None
    return Page(matches, cursor)


def _read_cursor(after: str):
    time, _, row = after.rpartition("~")
    if not time or not row.isdecimal() or len(row) > 18:
        raise ValueError(f"after == {after[:80]!r}, must be what the previous page gave as next.")
    return tuple_(literal(time), literal(int(row)))


def _page_query(labels: Sequence[str] | None, conditions: list[Any], n: int) -> Select:
    """Return the query of times and rows, the newest first, each row once."""
    columns, order = (topics.c.time, topics.c.row), (topics.c.time.desc(), topics.c.row.desc())
    labels = [ANY] if labels is None else labels
    if len(labels) > MAX_QUERIES:
        in_branch = topics.c.label.in_(labels)
        query = select(*columns).where(in_branch, *conditions).group_by(*columns)
        return query.order_by(*order).limit(n)
    parts = [
        select(*columns).where(topics.c.label == label, *conditions).order_by(*order).limit(n)
        for label in labels
    ]
    if len(parts) == 1:
        return parts[0]
    found = union_all(*(select(part.subquery()) for part in parts)).subquery()
    query = select(found.c.time, found.c.row).group_by(found.c.time, found.c.row)
    return query.order_by(found.c.time.desc(), found.c.row.desc()).limit(n)


def _read_matches(connection: Connection, places: Sequence[tuple[str, int]]) -> list[Match]:
    own, both, facts = assignments.c, ledger.c, schema.articles.c
    is_own = and_(own.document == both.document, own.replaced.is_(None))
    query = (
        select(
            both.row,
            both.document,
            both.labels,
            both.text,
            own.topics,
            own.known,
            own.model,
            own.revision,
            own.time,
            facts.address,
            facts.author,
            facts.language,
            facts.duplicate_of,
        )
        .select_from(
            ledger.outerjoin(assignments, is_own).outerjoin(
                schema.articles, facts.document == both.document
            )
        )
        .where(both.row.in_([row for _, row in places]))
    )
    rows = {row.row: row for row in connection.execute(query)}
    return [
        Match(
            id=row.document,
            time=time,
            labels=read_labels(row.labels),
            topics=[] if row.topics is None else read_topics(row.topics),
            known=row.known,
            model=row.model,
            revision=row.revision,
            assigned=row.time,
            content=None if row.text is None else read_json(row.text, "a text"),
            address=row.address,
            author=row.author,
            language=row.language,
            duplicate_of=row.duplicate_of,
        )
        for time, row in ((time, rows[number]) for time, number in places)
    ]


def count_topics(connection: Connection, criteria: Criteria, by: str) -> Timeline:
    """Count the documents that meet all criteria, and those of each topic, in each period."""
    conditions = criteria.conditions(connection.dialect.name)
    if criteria.labels is not None:
        conditions.append(topics.c.label.in_([*criteria.labels, ANY]))
    day = func.substr(topics.c.time, 1, 10, type_=Text).label("day")
    keys = topics.c.label, day
    n = func.count(type_=Integer).label("n")
    rows = fetch(connection, select(*keys, n).where(*conditions).group_by(*keys))
    if not rows:
        return Timeline(PERIODS[0] if by == "auto" else by, [], [], {})
    check_times(row.day for row in rows)
    days = np.array([row.day for row in rows], dtype="datetime64[D]")
    starts = all_periods(days, by)
    places = np.searchsorted(starts, first_days(days, by)).tolist()
    counts: dict[str, list[int]] = {}
    for row, place in zip(rows, places, strict=True):
        counts.setdefault(row.label, [0] * starts.size)[place] += row.n
    documents = counts.pop(ANY, [0] * starts.size)
    labels = dict(sorted(counts.items()))
    return Timeline(by, [start.isoformat() for start in starts.tolist()], documents, labels)


class TopicShares(NamedTuple):
    """A number of documents, and how many of them have each topic."""

    documents: int
    labels: dict[str, int]


def newest_topics(
    connection: Connection, n_newest: int, n_before: int
) -> tuple[TopicShares, TopicShares]:
    """Return the topics of the newest documents, and of those before them.

    Documents of the same time are not divided, so there may be a few more.
    """
    bounds = [_time_of(connection, n) for n in (n_newest, n_newest + n_before)]
    shares, until = [], None
    for since in bounds:
        criteria = Criteria(None, since, until, None, None)
        conditions = criteria.conditions(connection.dialect.name)
        n = func.count(type_=Integer).label("n")
        query = select(topics.c.label, n).where(*conditions).group_by(topics.c.label)
        counts = {row.label: row.n for row in fetch(connection, query)}
        shares.append(TopicShares(counts.pop(ANY, 0), counts))
        if since is None:  # there are no documents before
            shares.append(TopicShares(0, {}))
            break
        until = since
    return shares[0], shares[1]


def _time_of(connection: Connection, place: int) -> str | None:
    """Return the time of the document at a place, the newest being the first; None if none is."""
    query = select(topics.c.time).where(topics.c.label == ANY).order_by(topics.c.time.desc())
    return connection.execute(query.offset(place - 1).limit(1)).scalar()


# The index of words


def _match(dialect: str, words: Sequence[str]) -> Select:
    """Return the query of the rows that contain all words."""
    if dialect == "sqlite":
        quoted = " AND ".join('"' + word.replace('"', '""') + '"' for word in words)
        rows = table(WORDS, column("rowid", BigInteger), column(WORDS, Text))
        return select(rows.c.rowid).where(rows.c[WORDS].op("MATCH")(bindparam(None, quoted)))
    quoted = " & ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words)
    rows = table(WORDS, column("row", BigInteger), column("terms"))
    query = text("CAST(:words AS tsquery)").bindparams(words=quoted)
    return select(rows.c.row).where(rows.c.terms.op("@@")(query))


def update_words(database: Database) -> None:
    """Add documents to the index of words that are not in it yet, batch by batch."""
    while True:
        with database.reading() as connection:
            if _is_complete(connection):
                return
        try:
            with database.writing() as connection:
                _add_words(connection)
        except OperationalError as error:
            if "fts5" in str(error.orig):
                raise StoreError("this SQLite has no FTS5, which finding words needs.") from error
            raise


def _last_row(connection: Connection) -> int:
    return connection.execute(select(func.max(ledger.c.row))).scalar() or 0


def _is_complete(connection: Connection) -> bool:
    if not inspect(connection).has_table(INDEXED):
        return False
    return _last_indexed(connection) >= _last_row(connection)


def _last_indexed(connection: Connection) -> int:
    rows = fetch(connection, select(indexed.c.row))
    if len(rows) != 1:
        raise DamagedError("the index of words does not say which documents it has")
    return rows[0].row


def _add_words(connection: Connection) -> None:
    dialect = connection.dialect.name
    if not inspect(connection).has_table(INDEXED):
        for statement in CREATE_WORDS[dialect]:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(f'CREATE TABLE {INDEXED} ("row" bigint NOT NULL)')
        connection.execute(indexed.insert().values(row=0))
    last = _last_indexed(connection)
    columns = ledger.c.row, ledger.c.terms, ledger.c.counts
    query = select(*columns).where(IS_CURRENT, ledger.c.row > last).order_by(ledger.c.row)
    rows = fetch(connection, query.limit(BATCH))
    names = Terms(connection).names
    counts = decode_rows([row.terms for row in rows], [row.counts for row in rows], len(names))
    places = counts.indices.tolist()
    values = [
        {"row": row.row, "terms": _join(names[place] for place in places[start:end])}
        for row, (start, end) in zip(rows, pairwise(counts.indptr.tolist()), strict=True)
    ]
    if values:
        connection.execute(INSERT_WORDS[dialect], values)
    end = rows[-1].row if len(rows) == BATCH else _last_row(connection)
    connection.execute(indexed.update().values(row=end))


def _join(terms: Iterable[str | None]) -> str:
    """Return the words of terms, separated by single spaces."""
    return " ".join(dict.fromkeys(word for term in terms if term for word in term.split()))


def delete_words(connection: Connection, rows: Sequence[int]) -> None:
    """Remove rows of the ledger from the index of words; in a file, delete the index."""
    if not inspect(connection).has_table(INDEXED):
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"DROP TABLE {WORDS}")
        connection.exec_driver_sql(f"DROP TABLE {INDEXED}")
        return
    remove = text(f'DELETE FROM {WORDS} WHERE "row" = :row')  # noqa: S608  # our own name
    connection.execute(remove, [{"row": row} for row in rows])
