"""A run of the news desk: all sources into a store, with a receipt."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from polytopic.desk.articles import Article
from polytopic.desk.errors import AcquisitionError
from polytopic.desk.fetching import Fetcher, FetchLimits, Validators
from polytopic.desk.label_sources import LabelMapping
from polytopic.desk.near_duplicates import WINDOW, RecentSignatures, signature
from polytopic.desk.sources import Item, Reading, read_source
from polytopic.errors import ContentError, PolytopicError
from polytopic.store import Store
from polytopic.store.articles import ArticleFacts, PageVisit

LOG = logging.getLogger(__name__)
BATCH = 100  # articles per transaction
THREADS = 4  # sources that are read at once
WAITING = 64  # items that wait to be stored
MAX_ERRORS = 20  # of a source that a receipt lists
POLL = 0.2  # seconds between looks at whether a run was stopped


@dataclass
class SourceReport:
    """What a run did with one source.

    Attributes
    ----------
    source : str
        The source.
    failed : str or None
        Why it could not be read, or not to its end; None if it was.
    found : int
        Articles that were read.
    learned, corrected, unchanged : int
        Articles that were new, had other words, or were known in this form.
    not_modified : int
        Addresses that have not changed since the last run, as their servers said.
    copies : int
        Articles that are near-duplicates of another one.
    n_errors : int
        Articles that could not be read.
    errors : list of str
        The first reasons.
    """

    source: str
    failed: str | None = None
    found: int = 0
    learned: int = 0
    corrected: int = 0
    unchanged: int = 0
    not_modified: int = 0
    copies: int = 0
    n_errors: int = 0
    errors: list[str] = field(default_factory=list)

    def add_error(self, reason: str) -> None:
        """Count an article that could not be read."""
        self.n_errors += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(reason)


@dataclass(frozen=True)
class IngestionReceipt:
    """What a run did, source by source.

    Attributes
    ----------
    started, ended : str
        When the run began and ended.
    stopped : bool
        Whether it was stopped before all sources were read.
    revision_before, revision_after : int
        Revisions of the store.
    sources : list of SourceReport
        The reports of the sources, in their order.
    """

    started: str
    ended: str
    stopped: bool
    revision_before: int
    revision_after: int
    sources: list[SourceReport]

    @property
    def failed(self) -> list[str]:
        """The sources that failed."""
        return [report.source for report in self.sources if report.failed is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as plain values, ready for JSON."""
        names = ("found", "learned", "corrected", "unchanged", "not_modified", "copies", "n_errors")
        totals = {name: sum(getattr(one, name) for one in self.sources) for name in names}
        return asdict(self) | totals


def ingest(
    sources: Sequence[str],
    store: Store,
    *,
    limits: FetchLimits | None = None,
    mapping: LabelMapping | None = None,
    max_articles: int = 1000,
    stopped: threading.Event | None = None,
) -> IngestionReceipt:
    """Learn the articles of sources, and return a receipt.

    An article that the store has in the same words changes nothing; one with other words is
    corrected, and keeps its labels and its time. A source or an article that fails is reported and
    does not stop the others. A run may be stopped or killed at any time: what was stored remains,
    and the next run reads the rest.

    Parameters
    ----------
    sources : sequence of str
        Addresses of feeds (RSS, Atom), sitemaps and pages; folders of HTML, WARC archives and JSON
        lines.
    store : Store
        The store.
    limits : FetchLimits, default=None
        Limits of requests.
    mapping : LabelMapping, default=None
        Which labels new articles get for their categories or sections.
    max_articles : int, default=1000
        Articles that a feed or a sitemap may list; others are left out and reported.
    stopped : Event, default=None
        Ends the run when it is set.
    """
    stopped = threading.Event() if stopped is None else stopped
    started, before = _now(), store.revision
    run = _Run(store, mapping, sources)
    ended = threading.Event()  # the run, for whatever reason
    fetcher = Fetcher(limits or FetchLimits(), ended)
    reading = Reading(fetcher, _validators_of(store), max_articles, ended)
    items: queue.Queue = queue.Queue(WAITING)
    waiting: queue.Queue = queue.Queue()
    for number, source in enumerate(sources):
        waiting.put((number, source))
    threads = [
        threading.Thread(target=_read, args=(waiting, items, reading, ended), daemon=True)
        for _ in range(min(THREADS, len(sources)))
    ]
    for thread in threads:
        thread.start()
    n_open = len(sources)
    try:
        while n_open and not stopped.is_set():
            try:
                number, item = items.get(timeout=POLL)
            except queue.Empty:
                run.flush_all()  # while servers keep us waiting
                continue
            if isinstance(item, Item):
                run.add(number, item)
                continue
            n_open -= 1
            run.flush(number)
            if isinstance(item, AcquisitionError):
                run.reports[number].failed = str(item)
            elif isinstance(item, BaseException):
                raise item
        run.flush_all()
    finally:
        ended.set()
    return IngestionReceipt(started, _now(), bool(n_open), before, store.revision, run.reports)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _validators_of(store: Store):
    def find(address: str) -> Validators | None:
        visit = store.articles.visit(address)
        return None if visit is None else Validators(visit.etag, visit.modified)

    return find


def _read(
    waiting: queue.Queue, items: queue.Queue, reading: Reading, ended: threading.Event
) -> None:
    """Read sources, one after the other, and pass on their items; then None or the error."""

    def put(number: int, item: Any) -> bool:
        while not ended.is_set():
            try:
                items.put((number, item), timeout=POLL)
            except queue.Full:
                continue
            return True
        return False

    while not ended.is_set():
        try:
            number, source = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            for item in read_source(source, reading):
                if not put(number, item):
                    return
        except PolytopicError as error:  # reported, or raised again by the run
            put(number, error)
        except Exception as error:  # of a parser, say: the other sources must not suffer
            LOG.exception("%s cannot be read.", source)
            put(number, AcquisitionError(f"it cannot be read ({type(error).__name__})."))
        else:
            put(number, None)


class _Run:
    """Stores the items of sources in batches, and counts them."""

    def __init__(self, store: Store, mapping: LabelMapping | None, sources: Iterable[str]):
        self.store, self.mapping = store, mapping
        self.reports = [SourceReport(source) for source in sources]
        self._batches: list[list[Item]] = [[] for _ in self.reports]
        newest = store.articles.newest(WINDOW)
        self._recent = RecentSignatures(
            (one.document, one.signature) for one in newest if one.signature is not None
        )
        self._originals = {one.document: one.duplicate_of for one in newest if one.duplicate_of}

    def add(self, number: int, item: Item) -> None:
        """Add an item of a source; store the batch if it is large."""
        report = self.reports[number]
        if item.error is not None:
            report.add_error(item.error)
        if item.article is not None:
            report.found += 1
        elif item.visit is None and item.error is None:
            report.not_modified += 1
        if item.article is not None or item.visit is not None:
            self._batches[number].append(item)
        if len(self._batches[number]) >= BATCH:
            self.flush(number)

    def flush_all(self) -> None:
        """Store what has been read of all sources."""
        for number in range(len(self.reports)):
            self.flush(number)

    def flush(self, number: int) -> None:
        """Store what has been read of a source: documents first, so that none is lost.

        If the process ends before the rest is stored, the next run reads the same articles again,
        and finds them unchanged.
        """
        items, report = self._batches[number], self.reports[number]
        if not items:
            return
        self._batches[number] = []
        articles = {item.article.id: item.article for item in items if item.article is not None}
        stored = self._learn(list(articles.values()), report)
        facts = self._describe([one for one in articles.values() if one.id in stored], report)
        visits = []
        for item in items:
            if item.visit is None or (item.article and item.article.id not in stored):
                continue
            name = None if item.article is None else item.article.id
            validators = item.visit.validators
            visits.append(PageVisit(item.visit.address, name, validators.etag, validators.modified))
        self.store.articles.record(facts, visits)

    def _learn(self, articles: Sequence[Article], report: SourceReport) -> set[str]:
        """Learn articles; return the ids of those that were stored."""
        if not articles:
            return set()
        documents = [article.to_document(self._labels(article)) for article in articles]
        try:
            receipt = self.store.learn(documents, only_content=True)
        except ContentError as error:
            if len(articles) == 1:
                report.add_error(str(error))
                return set()
            return {name for one in articles for name in self._learn([one], report)}
        report.learned += receipt.learned
        report.corrected += receipt.corrected
        report.unchanged += receipt.unchanged
        return {article.id for article in articles}

    def _labels(self, article: Article) -> tuple[str, ...]:
        mapped = () if self.mapping is None else self.mapping.labels_of(article)
        return tuple(sorted({*article.labels, *mapped}))

    def _describe(self, articles: Sequence[Article], report: SourceReport) -> list[ArticleFacts]:
        """Return what is known about articles, and mark copies of others."""
        known = self.store.articles.read(article.id for article in articles)
        facts = []
        for article in articles:
            own, original = signature(article.text), None
            former = known.get(article.id)
            if former is not None and former.signature == own:
                original = former.duplicate_of
            elif own is not None:
                original = self._find_original(article.id, own)
            if own is not None:
                self._recent.add(article.id, own)
            if original is not None:
                self._originals[article.id] = original
                report.copies += 1
            facts.append(
                ArticleFacts(
                    article.id, article.address, article.author, article.language, original, own
                )
            )
        return facts

    def _find_original(self, name: str, own: bytes) -> str | None:
        """Return the first article that one is a copy of."""
        similar = self._recent.find(name, own)
        if similar is None:
            return None
        original = self._originals.get(similar, similar)
        return None if original == name else original
