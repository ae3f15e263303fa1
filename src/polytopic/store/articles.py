"""What is known about documents that the news desk has acquired, and the addresses it visited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from polytopic.store import schema
from polytopic.store.database import Database, fetch, fetch_where_in, run_many
from polytopic.store.ledger import IS_CURRENT, now, stored_time
from polytopic.store.schema import articles, read_state, visits
from polytopic.store.seals import Seals

RETENTION = timedelta(days=60)  # of visits, which are then made again as if for the first time
FACTS = ("document", "address", "author", "language", "duplicate_of", "signature")
ledger = schema.documents

READ_ARTICLES = select(articles)
READ_VISITS = select(visits)
READ_IDS = select(ledger.c.document).where(IS_CURRENT)
INSERT_ARTICLE = insert(articles)
DELETE_ARTICLE = delete(articles).where(articles.c.document == bindparam("own"))
INSERT_VISIT = insert(visits)
DELETE_VISIT = delete(visits).where(visits.c.address == bindparam("own"))


class ArticleFacts(NamedTuple):
    """What is known about an article besides its text: it copies the article ``duplicate_of``."""

    document: str
    address: str | None = None
    author: str | None = None
    language: str | None = None
    duplicate_of: str | None = None
    signature: bytes | None = None


class PageVisit(NamedTuple):
    """An address that was fetched, its document if it has one, and its validators."""

    address: str
    document: str | None
    etag: str | None
    modified: str | None


class Articles:
    """What a store knows about acquired articles."""

    def __init__(self, database: Database):
        self._database = database

    def read(self, ids: Iterable[str]) -> dict[str, ArticleFacts]:
        """Return what is known about documents, by id."""
        with self._database.reading() as connection:
            rows = fetch_where_in(connection, READ_ARTICLES, articles.c.document, list(ids))
        return {row.document: ArticleFacts(*row) for row in rows}

    def newest(self, n_articles: int) -> list[ArticleFacts]:
        """Return the articles with signatures that were learned last, the oldest first."""
        has_signature = articles.c.signature.is_not(None)
        same = articles.c.document == ledger.c.document
        query = (
            select(articles)
            .join(ledger, same)
            .where(IS_CURRENT, has_signature)
            .order_by(ledger.c.row.desc())
            .limit(n_articles)
        )
        with self._database.reading() as connection:
            rows = fetch(connection, query)
        return [ArticleFacts(*row) for row in reversed(rows)]

    def visit(self, address: str) -> PageVisit | None:
        """Return the last visit of an address, None if there was none."""
        with self._database.reading() as connection:
            rows = fetch_where_in(connection, READ_VISITS, visits.c.address, [address])
        return next((PageVisit(*row[:4]) for row in rows), None)

    def record(self, facts: Sequence[ArticleFacts], visited: Sequence[PageVisit] = ()) -> None:
        """Record facts and visits; those of documents that were forgotten meanwhile are dropped."""
        facts_by_id = {one.document: one for one in facts}
        visits_by_address = {one.address: one for one in visited}
        ids = {*facts_by_id, *(one.document for one in visited if one.document is not None)}
        ids |= {one.duplicate_of for one in facts if one.duplicate_of is not None}
        with self._database.writing() as connection:
            present = fetch_where_in(connection, READ_IDS, ledger.c.document, ids)
            known = {row.document for row in present}
            added = [
                one if one.duplicate_of in known else one._replace(duplicate_of=None)
                for name, one in facts_by_id.items()
                if name in known
            ]
            former = fetch_where_in(connection, READ_ARTICLES, articles.c.document, facts_by_id)
            stored = {ArticleFacts(*row) for row in former}
            self._replace(
                connection,
                [one for one in stored if one.document in known and one not in set(added)],
                [one for one in added if one not in stored],
            )
            time = now()
            run_many(connection, DELETE_VISIT, ["own"], [(name,) for name in visits_by_address])
            rows = [
                (*one, time)
                for one in visits_by_address.values()
                if one.document is None or one.document in known
            ]
            names = ["address", "document", "etag", "modified", "time"]
            run_many(connection, INSERT_VISIT, names, rows)
            oldest = stored_time(datetime.now(UTC) - RETENTION)
            connection.execute(delete(visits).where(visits.c.time < oldest))

    @staticmethod
    def _replace(connection, removed: Sequence[ArticleFacts], added: Sequence[ArticleFacts]):
        if not (removed or added):
            return
        revision = read_state(connection).revision
        seals = Seals(connection, revision)
        run_many(connection, DELETE_ARTICLE, ["own"], [(one.document,) for one in removed])
        run_many(connection, INSERT_ARTICLE, FACTS, added)
        seals.remove("articles", removed)
        seals.add("articles", added)
        seals.write(revision)


def delete_articles(connection: Connection, seals: Seals, ids: Sequence[str]) -> None:
    """Delete what is known about documents, also from what is known about others."""
    names = list(dict.fromkeys(ids))
    rows = fetch_where_in(connection, READ_ARTICLES, articles.c.document, names)
    run_many(connection, DELETE_ARTICLE, ["own"], [(row.document,) for row in rows])
    seals.remove("articles", rows)
    copies = fetch_where_in(connection, READ_ARTICLES, articles.c.duplicate_of, names)
    if copies:
        is_copy = articles.c.document == bindparam("own")
        forget = update(articles).where(is_copy).values(duplicate_of=None)
        run_many(connection, forget, ["own"], [(row.document,) for row in copies])
        seals.remove("articles", copies)
        facts = [ArticleFacts(*row)._replace(duplicate_of=None) for row in copies]
        seals.add("articles", facts)
    gone = {(name,) for name in names}
    pages = fetch_where_in(connection, READ_VISITS, visits.c.document, names)
    gone |= {(row.address,) for row in pages}
    run_many(connection, DELETE_VISIT, ["own"], sorted(gone))


def find_lost_articles(connection: Connection) -> Iterator[str]:
    """Yield a sentence if something is known about documents that are not in the ledger."""
    known = {row.document for row in fetch(connection, READ_IDS)}
    if any(row.document not in known for row in fetch(connection, select(articles.c.document))):
        yield "there are facts about articles that are not in the ledger."
