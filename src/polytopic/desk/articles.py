"""One article: its clean text, and what is known about it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from polytopic.corpus.document import Document, parse_time
from polytopic.desk.addresses import document_id, normalize_address
from polytopic.desk.errors import ResponseError
from polytopic.errors import PolytopicError

LOG = logging.getLogger(__name__)
MAX_NAME = 200  # characters of an author or a category
LANGUAGE = re.compile(r"[a-z]{2,3}")


@dataclass(frozen=True)
class Article:
    """An article as a source gives it.

    Attributes
    ----------
    id : str
        Id of its document: its address, or what the source gives.
    text : str
        Its text, without what surrounds it on the page.
    title, author, language, address : str or None
        What is known about it.
    time : datetime or None
        When it was published.
    categories : tuple of str
        Its categories on the news server.
    labels : tuple of str
        Labels that the source gives.
    """

    id: str
    text: str
    title: str | None = None
    author: str | None = None
    language: str | None = None
    address: str | None = None
    time: datetime | None = None
    categories: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def to_document(self, labels: tuple[str, ...]) -> Document:
        """Return the document to learn, with title and text as fields."""
        fields = {"title": self.title or "", "text": self.text}
        return Document(self.id, fields=fields, labels=labels, time=self.time)


@dataclass(frozen=True)
class Listing:
    """What a feed or a sitemap says about an article."""

    address: str
    title: str | None = None
    author: str | None = None
    language: str | None = None
    time: datetime | None = None
    categories: tuple[str, ...] = ()


def read_page(content: bytes | str, address: str | None, listing: Listing | None = None) -> Article:
    """Return the article of a page, completed by what its listing says."""
    try:
        from trafilatura import bare_extraction, load_html
    except ModuleNotFoundError as error:
        raise PolytopicError(
            f"{error.name}, which reads pages, is not installed. Install it with: pip install "
            "'polytopic[desk]'"
        ) from error

    try:
        tree = load_html(content)
        if tree is None:
            raise ResponseError(f"{_short(address)} is not a page of HTML.")
        language = _language(tree.get("lang"))
        canonical = tree.xpath("string(//link[@rel='canonical']/@href)")
        page = bare_extraction(tree, url=address, with_metadata=True, include_comments=False)
    except ResponseError:
        raise
    except Exception as error:  # a page that the parsers fail on must not end the run
        LOG.warning("%s cannot be parsed.", _short(address), exc_info=True)
        reason = f"{_short(address)} cannot be parsed ({type(error).__name__})."
        raise ResponseError(reason) from error
    text = "" if page is None or isinstance(page, dict) else clean(page.text or "")
    if not text:
        raise ResponseError(f"{_short(address)} has no text.")
    listed = listing or Listing("")
    return Article(
        id=document_id(own := _own_address(address, canonical)),
        text=text,
        title=_name(page.title) or listed.title,  # whatever lists it, the same document
        author=listed.author or _name(page.author),
        language=listed.language or language,
        address=own,
        time=listed.time or read_time(page.date),
        categories=listed.categories or _names(page.categories),
    )


def _own_address(address: str | None, canonical: str) -> str:
    """Return the address that a page gives itself, if it is on the same host."""
    if address is None:
        return canonical and normalize_address(canonical)
    own = urljoin(address, canonical.strip()) if canonical.strip() else address
    try:
        same_host = urlsplit(own).hostname == urlsplit(address).hostname
        return normalize_address(own if same_host else address)
    except ValueError:
        return normalize_address(address)


def read_record(record: Mapping[str, Any], place: str) -> Article:
    """Return the article of a JSON object with ``text`` or ``html``, and what else it has."""
    address = record.get("address") or record.get("url")
    if address is not None and not isinstance(address, str):
        raise ResponseError(f"{place}: address == {address!r}, must be a string.")
    given = Listing(
        address or "",
        title=_name(record.get("title")),
        author=_name(record.get("author")),
        language=_language(record.get("language")),
        time=read_time(record.get("time")),
        categories=_names(record.get("categories") or record.get("category")),
    )
    labels = record.get("labels") or ()
    name = record.get("id") or (address and document_id(normalize_address(address)))
    if name is None:
        raise ResponseError(f"{place}: the article has neither an id nor an address.")
    if isinstance(record.get("html"), str):
        page = read_page(record["html"], address, given)
        text, given_title = page.text, page.title
    else:
        text, given_title = clean(str(record.get("text") or "")), given.title
    if not text:
        raise ResponseError(f"{place}: the article has no text.")
    return Article(
        id=str(name),
        text=text,
        title=given_title,
        author=given.author,
        language=given.language,
        address=address and normalize_address(address),
        time=given.time,
        categories=given.categories,
        labels=(labels,) if isinstance(labels, str) else tuple(map(str, labels)),
    )


def clean(text: str) -> str:
    """Return a text without characters that databases reject, and without empty lines."""
    valid = text.encode("utf-8", errors="ignore").decode().replace("\0", "")
    return "\n".join(filter(None, (line.strip() for line in valid.splitlines())))


def read_time(value: Any) -> datetime | None:
    """Return a time, None if it is not one."""
    try:
        return None if not value else parse_time("time", value)
    except ValueError:
        return None


def _language(value: Any) -> str | None:
    """Return the code of a language, such as cs for cs-CZ."""
    match = LANGUAGE.match(value.lower()) if isinstance(value, str) else None
    return match and match.group()


def _name(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return " ".join(clean(value).split())[: 5 * MAX_NAME] or None


def _names(values: Any) -> tuple[str, ...]:
    """Return categories, given as a list or as one string."""
    values = [values] if isinstance(values, str) else values or ()
    names = (_name(value) for value in values)
    return tuple(dict.fromkeys(name[:MAX_NAME] for name in names if name))


def _short(address: str | None) -> str:
    return "the page" if address is None else repr(address[:200])
