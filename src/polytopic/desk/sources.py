"""Sources of articles: feeds, sitemaps, pages, folders of pages, WARC archives and JSON lines."""

from __future__ import annotations

import calendar
import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from polytopic.desk.addresses import check_address, is_web_address, normalize_address
from polytopic.desk.articles import Article, Listing, read_page, read_record, read_time
from polytopic.desk.errors import AcquisitionError, RefusedError, ResponseError
from polytopic.desk.fetching import Fetcher, Response, Validators
from polytopic.errors import PolytopicError
from polytopic.lines import read_lines

PAGES = (".html", ".htm", ".xhtml")
ARCHIVES = (".warc", ".warc.gz")
RECORDS = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
GZIP = b"\x1f\x8b"  # how gzipped content begins
MAX_SITEMAPS = 50  # that a sitemap of sitemaps may list
HTML_TYPES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True)
class Item:
    """What a source yields: an article, or why there is none.

    Attributes
    ----------
    place : str
        Where it was: an address, a file, or a line.
    article : Article or None
        The article; None if it could not be read or has not changed.
    error : str or None
        Why it could not be read.
    visit : Visit or None
        A request to remember when the article is stored.
    """

    place: str
    article: Article | None = None
    error: str | None = None
    visit: Visit | None = None


@dataclass(frozen=True)
class Visit:
    """An address that was fetched, with what the server gave to ask for changes."""

    address: str
    validators: Validators


class Reading:
    """What sources need: the fetcher, and the validators of earlier visits.

    Parameters
    ----------
    fetcher : Fetcher
        Fetches addresses.
    validators_of : callable
        Returns the validators of an address that was fetched before, else None.
    max_articles : int
        Largest number of articles that a feed or a sitemap may list.
    stopped : Event
        Ends reading when it is set.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        validators_of: Callable[[str], Validators | None],
        max_articles: int,
        stopped: threading.Event,
    ):
        self.fetcher, self.validators_of = fetcher, validators_of
        self.max_articles, self.stopped = max_articles, stopped

    def fetch(self, address: str) -> Response:
        """Fetch an address, unless it has not changed since the last visit."""
        return self.fetcher.fetch(address, self.validators_of(normalize_address(address)))


def read_source(source: str, reading: Reading) -> Iterator[Item]:
    """Yield the items of a source; raise an AcquisitionError if it cannot be read at all."""
    if is_web_address(source):
        check_address(source)
        yield from _read_web(source, reading)
        return
    path, name = Path(source), source.lower()
    if path.is_dir():
        yield from _read_folder(path)
    elif not path.is_file():
        raise AcquisitionError(f"{source!r} is neither an address nor a file or folder.")
    elif name.endswith(ARCHIVES):
        yield from _read_archive(path)
    elif name.endswith(RECORDS):
        yield from _read_records(source)
    elif name.endswith(PAGES):
        yield _read_file(path, path.name)
    else:
        endings = ", ".join((*PAGES, *ARCHIVES, *RECORDS))
        raise AcquisitionError(f"{source!r} must be a folder, or end with one of {endings}.")


# The web


def _read_web(address: str, reading: Reading) -> Iterator[Item]:
    response = reading.fetch(address)
    visit = Visit(normalize_address(address), response.validators)
    if response.content is None:  # nothing has changed
        yield Item(address)
        return
    content = _unzipped(response.content, address, reading.fetcher.limits.max_bytes)
    root = _root_of(content)
    if root in ("urlset", "sitemapindex"):
        listings = _read_sitemap(content, response.address, reading)
    elif response.media_type not in HTML_TYPES or root in ("rss", "feed", "RDF"):
        listings = _read_feed(content, response.address)
    else:
        yield _page_item(response, None, visit)
        return
    is_complete = True
    for number, listing in enumerate(listings):
        if reading.stopped.is_set():
            return
        if number == reading.max_articles:
            reason = f"it lists more than {number:,} articles; the others are left out."
            yield Item(address, error=reason)
            break
        item = _read_listed(listing, reading)
        is_complete = is_complete and item.error is None
        yield item
    if is_complete:  # else the next run must read the list again
        yield Item(address, visit=visit)


def _read_listed(listing: Listing, reading: Reading) -> Item:
    try:
        response = reading.fetch(listing.address)
        if response.content is None:
            return Item(listing.address)
        visit = Visit(normalize_address(listing.address), response.validators)
        return _page_item(response, listing, visit)
    except AcquisitionError as error:
        return Item(listing.address, error=str(error))


def _page_item(response: Response, listing: Listing | None, visit: Visit) -> Item:
    try:
        if response.media_type and response.media_type not in HTML_TYPES:
            raise ResponseError(
                f"{response.address[:200]!r} is of type {response.media_type[:80]!r}, must be HTML."
            )
        article = read_page(response.content or b"", response.address, listing)
    except AcquisitionError as error:
        # remembered as well: the same page would fail again
        return Item(response.address, error=str(error), visit=visit)
    return Item(response.address, article, visit=visit)


def _unzipped(content: bytes, address: str, max_bytes: int) -> bytes:
    """Return the content of a gzipped sitemap."""
    if not content.startswith(GZIP):
        return content
    try:
        unpacked = zlib.decompressobj(47).decompress(content, max_bytes + 1)
    except zlib.error as error:
        raise ResponseError(f"{address[:200]!r} is damaged ({error}).") from error
    if len(unpacked) > max_bytes:
        raise ResponseError(f"{address[:200]!r} has more than {max_bytes:,} bytes.")
    return unpacked


def _parse_xml(content: bytes):
    """Return the root of an XML document, None if it is not well-formed; no entity is expanded."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError:
        return None


def _root_of(content: bytes) -> str | None:
    """Return the name of the outermost element."""
    root = _parse_xml(content)
    return None if root is None or not isinstance(root.tag, str) else root.tag.rpartition("}")[2]


def _read_sitemap(
    content: bytes, address: str, reading: Reading, *, may_nest: bool = True
) -> Iterator[Listing]:
    root = _parse_xml(content)
    entries = [] if root is None else [e for e in root if isinstance(e.tag, str)]
    nested = 0
    for entry in entries:
        kind = entry.tag.rpartition("}")[2]
        found = {
            child.tag.rpartition("}")[2]: (child.text or "").strip()
            for child in entry
            if isinstance(child.tag, str)
        }
        if not found.get("loc"):
            continue
        target = urljoin(address, found["loc"])
        if kind == "url":
            yield Listing(target)
        elif kind == "sitemap" and may_nest and nested < MAX_SITEMAPS:
            nested += 1
            response = reading.fetcher.fetch(target)
            inner = _unzipped(response.content or b"", target, reading.fetcher.limits.max_bytes)
            yield from _read_sitemap(inner, response.address, reading, may_nest=False)


def _read_feed(content: bytes, address: str) -> Iterator[Listing]:
    """Yield the articles that an RSS or Atom feed lists; a broken feed gives what can be read."""
    try:
        import feedparser
    except ModuleNotFoundError as error:
        raise PolytopicError(
            "feedparser, which reads feeds, is not installed. Install it with: pip install "
            "'polytopic[desk]'"
        ) from error

    feed = feedparser.parse(content, sanitize_html=False, resolve_relative_uris=False)
    if not feed.version and not feed.entries:
        raise ResponseError(f"{address[:200]!r} is neither a feed, a sitemap nor a page.")
    entries = [entry for entry in feed.entries if entry.get("link")]
    if feed.bozo and not entries:
        reason = str(feed.get("bozo_exception") or "it cannot be parsed").splitlines()[0]
        raise ResponseError(f"the feed {address[:200]!r} is broken ({reason}).")
    language = feed.feed.get("language")
    for entry in entries:
        yield Listing(
            urljoin(address, entry.link.strip()),
            title=" ".join((entry.get("title") or "").split()) or None,
            author=entry.get("author") or None,
            language=(language or "").lower()[:2] or None,
            time=_feed_time(entry),
            categories=tuple(tag.term for tag in entry.get("tags", ()) if tag.get("term")),
        )


def _feed_time(entry: Mapping[str, Any]) -> datetime | None:
    parsed = entry.get("published_parsed") or entry.get("updated_parsed")
    if parsed is None:
        return None
    try:
        return datetime.fromtimestamp(calendar.timegm(parsed), UTC)
    except (OverflowError, OSError, ValueError):
        return None


# Files


def _read_folder(folder: Path) -> Iterator[Item]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in PAGES and path.is_file():
            yield _read_file(path, path.relative_to(folder).as_posix())


def _read_file(path: Path, name: str) -> Item:
    """Return the page in a file; its id is its canonical address, or its place in the folder."""
    try:
        article = read_page(path.read_bytes(), None)
    except OSError as error:
        return Item(str(path), error=f"{str(path)!r} cannot be read ({error.strerror}).")
    except AcquisitionError as error:
        return Item(str(path), error=f"{str(path)!r}: {error}")
    if not article.id:
        article = Article(**{**vars(article), "id": name[-500:], "address": None})
    return Item(str(path), article)


def _read_records(source: str) -> Iterator[Item]:
    for place, line in read_lines(source):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ResponseError(f"{place}: a line must be an object.")
            yield Item(place, read_record(record, str(place)))
        except AcquisitionError as error:
            yield Item(str(place), error=str(error))
        except (ValueError, RecursionError) as error:
            yield Item(str(place), error=f"{place}: {error}.")


def _read_archive(path: Path) -> Iterator[Item]:
    """Yield the pages of a WARC archive, one record in memory at a time."""
    try:
        from warcio.archiveiterator import ArchiveIterator
        from warcio.exceptions import ArchiveLoadFailed
    except ModuleNotFoundError as error:
        raise PolytopicError(
            "warcio, which reads WARC archives, is not installed. Install it with: pip install "
            "'polytopic[desk]'"
        ) from error

    with path.open("rb") as file:
        if not file.peek(5).startswith((b"WARC/", GZIP)):
            raise AcquisitionError(f"{str(path)!r} is not a WARC archive.")
        try:
            for record in ArchiveIterator(file):
                if record.rec_type != "response" or record.http_headers is None:
                    continue
                address = record.rec_headers.get_header("WARC-Target-URI") or ""
                kind = (record.http_headers.get_header("Content-Type") or "").partition(";")[0]
                is_page = record.http_headers.get_statuscode() == "200"
                if not is_page or kind.strip().lower() not in HTML_TYPES:
                    continue
                date = read_time(record.rec_headers.get_header("WARC-Date"))
                yield _archived(address, record.content_stream().read(), date)
        except (ArchiveLoadFailed, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise AcquisitionError(f"the archive {str(path)!r} is damaged ({error}).") from error


def _archived(address: str, content: bytes, date: datetime | None) -> Item:
    try:
        check_address(address)
        article = read_page(content, address)
    except (RefusedError, ResponseError) as error:
        return Item(address, error=str(error))
    if article.time is None:
        article = Article(**{**vars(article), "time": date})
    return Item(address, article)
