"""Published collections: Reuters-21578, and MEDLINE, OHSUMED and PubMed's XML.

The medical ones hold references to articles, whose labels are MeSH headings without their
qualifiers.
"""

import html
import re
import xml.etree.ElementTree as ET
from collections import defaultdict, deque
from collections.abc import Iterator
from reprlib import repr as short
from typing import Any

from polytopic.corpus.formats import Columns, Record
from polytopic.lines import Blocks, Lines

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
SEASONS = {"win": 1, "spr": 4, "sum": 7, "aut": 10, "fal": 10}
ROOTS = ("PubmedArticleSet", "MedlineCitationSet")
ARTICLES = ("PubmedArticle", "PubmedBookArticle", "MedlineCitation")
LONG_GAP = 4096  # characters; few files have as many between two tags
REUTERS_SPLITS = {("TRAIN", "YES"): "train", ("TEST", "YES"): "test"}
"""The "ModApte" split by LEWISSPLIT and TOPICS; all other documents are unused."""

_sgml_attribute = re.compile(r'(?<![A-Z])([A-Z]+)="([^"]*)"')
_sgml_entity = re.compile(r"&(?:#\d+|\w+);")
_control_code = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_sgml_tag = re.compile(r"</?[A-Z]+(?: [^>]*)?>")
_reuters_date = re.compile(r"\s*(\d+)-([A-Za-z]{3})-(\d{4})(?:\s+([\d:]+))?")
_reuters_hour = re.compile("[0-2][0-9]:[0-5][0-9]:[0-5][0-9]")
_medline_field = re.compile(r"([A-Z][A-Z0-9]{1,3}) *-(?: (.*)|$)")
_ohsumed_field = re.compile(r"\.([A-Z])(?:\s+(.*))?$")
_ohsumed_issue = re.compile(r"\b(\d\d)(0[1-9]|1[0-2]);")  # such as 8703; in the source
_date = re.compile(r"(\d{4})\b(?:[ /-]+([A-Za-z]{3,}|\d{1,2})\b(?:[ /-]+(\d{1,2})\b(?!\d))?)?")


# Reuters-21578 in its original SGML files


def reuters_records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the documents of a file; ``columns`` is ignored."""
    return map(_reuters_record, Blocks(lines, "<REUTERS[ >]", ends="</REUTERS>", between="<"))


def _reuters_record(block: list[str]) -> Record:
    content = "".join(block)
    if "</REUTERS>" not in content:
        raise ValueError("<REUTERS> is not closed, must end with </REUTERS>")
    attributes = dict(_sgml_attribute.findall(block[0].partition(">")[0]))
    part = attributes.get("LEWISSPLIT", ""), attributes.get("TOPICS", "")
    topics = _sgml_element("TOPICS", content) or ""
    return {
        "id": attributes.get("NEWID") or None,
        "text": _reuters_text(content),
        "labels": [_plain(label) for label in _sgml_elements("D", topics)],
        "time": _reuters_time(_sgml_element("DATE", content) or ""),
        "split": REUTERS_SPLITS.get(part, "unused"),
    }


def _reuters_text(content: str) -> str:
    """Return title and body, or the whole text if it has no parts."""
    text = _sgml_element("TEXT", content)
    if text is None:
        raise ValueError("has no <TEXT>")
    parts = [_sgml_element("TITLE", text), _sgml_element("BODY", text)]
    if parts == [None, None]:
        end = text.rfind(">") + 1  # no tag ends after it, so do not search for the end of each
        return _plain(_sgml_tag.sub("", text[:end]) + text[end:])
    return "\n".join(_plain(part) for part in parts if part)


def _sgml_element(name: str, content: str) -> str | None:
    return next(_sgml_elements(name, content), None)


def _sgml_elements(name: str, content: str) -> Iterator[str]:
    """Yield the content of each element with this name.

    The time is linear in the length: what is missing after one start is missing after all others.
    """
    start, end_tag, end = re.compile(f"<{name}[ >]"), f"</{name}>", 0
    while match := start.search(content, end):
        begin = content.find(">", match.end() - 1) + 1
        end = content.find(end_tag, begin) if begin else -1
        if end < 0:
            return
        yield content[begin:end]
        end += len(end_tag)


def _plain(text: str) -> str:
    """Return a text with its entities resolved, and without the news wire's control codes."""
    text = _sgml_entity.sub(lambda match: html.unescape(match[0]), text)
    return _control_code.sub("", text).strip()


def _reuters_time(text: str) -> str | None:
    """Return a date such as 26-FEB-1987 15:01:01.79 as ISO 8601, without an invalid hour."""
    match = _reuters_date.match(text)
    if not match:
        return _plain(text) or None  # reported as invalid
    day, month, year, hour = match.groups()
    if month.lower() not in MONTHS:
        return _plain(text)
    number = MONTHS.index(month.lower()) + 1
    date = f"{year}-{number:02}-{int(day):02}"
    return f"{date}T{hour}" if hour and _reuters_hour.fullmatch(hour) else date


# MEDLINE's text format


def medline_records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the references of a file; ``columns`` is ignored."""
    return map(_medline_record, Blocks(lines, "PMID *-"))


def _medline_record(block: list[str]) -> Record:
    fields = _medline_fields(block)
    title, abstract = (" ".join(fields[name]) for name in ("TI", "AB"))
    return {
        "id": " ".join(fields["PMID"]) or None,
        "text": _title_and_abstract(title or " ".join(fields["BTI"]), abstract),
        "labels": _headings(fields["MH"]),
        "time": _publication_time(" ".join(fields["DP"][:1])),
    }


def _medline_fields(block: list[str]) -> defaultdict[str, list[str]]:
    """Return the values of each field, with continuation lines joined."""
    fields: defaultdict[str, list[str]] = defaultdict(list)
    values: list[tuple[str, list[str]]] = []  # of each field, the parts in its lines
    for line in block:
        match = _medline_field.match(line.rstrip())
        if match:
            values.append((match[1], [(match[2] or "").strip()]))
        elif line.strip() and not line[0].isspace():
            needed = "begin with a field such as 'TI  - ', or with spaces to continue one"
            raise ValueError(f"{short(line.strip())} must {needed}")
        elif line.strip():
            values[-1][1].append(line.strip())
    for name, parts in values:
        fields[name].append(" ".join(filter(None, parts)))
    return fields


# OHSUMED


def ohsumed_records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the references of a file; ``columns`` is ignored."""
    return map(_ohsumed_record, Blocks(lines, r"\.I\b"))


def _ohsumed_record(block: list[str]) -> Record:
    fields: dict[str, list[str]] = {}
    name = ""
    for line in map(str.strip, block):
        match = _ohsumed_field.match(line)
        if match:
            name, line = match[1], match[2] or ""
        fields.setdefault(name, []).append(line)
    values = {name: " ".join(filter(None, parts)) for name, parts in fields.items()}
    if "T" not in values and "W" not in values:
        raise ValueError("has neither .T (title) nor .W (abstract)")
    return {
        "id": values.get("U") or values.get("I") or None,
        "text": _title_and_abstract(values.get("T", ""), values.get("W", "")),
        "labels": _headings(values.get("M", "").removesuffix(".").split(";")),
        "time": _ohsumed_time(values.get("S", "")),
    }


def _ohsumed_time(source: str) -> str | None:
    """Return the month of the issue."""
    match = _ohsumed_issue.search(source)
    return f"19{match[1]}-{match[2]}-01" if match else None


# PubMed's XML


def pubmed_records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the articles of a file; ``columns`` is ignored."""
    return map(_pubmed_record, Articles(lines))


class Articles:
    """Iterator of the elements of articles, each removed from the tree while it is built.

    Expat fetches nothing from outside. A file that declares entities, which could expand without
    limit, is rejected. After a syntax error nothing more can be read.

    Many releases of Expat read an incomplete tag or comment again from its beginning with every
    line. So after :data:`LONG_GAP` characters without the start or end of an element, lines are
    collected until they are as long as what went before.
    """

    def __init__(self, lines: Lines):
        self._lines = lines
        self._parser: Any = ET.XMLPullParser(["start", "end"])
        self._open: list[ET.Element] = []
        self._articles: deque[tuple[int, ET.Element]] = deque()
        self._has_begun = self._has_ended = self._is_invalid = False
        self._first = 1
        self._waiting: list[str] = []  # lines to parse
        self._n_waiting = self._n_silent = 0  # characters of them, and since the last element

    def __iter__(self) -> "Articles":
        return self

    def __next__(self) -> ET.Element:
        while not self._articles:
            if self._has_ended:
                raise StopIteration
            self._read()
        self._lines.first, article = self._articles.popleft()
        return article

    def _read(self) -> None:
        """Parse one more line."""
        try:
            line = next(self._lines, None)
        except ValueError:
            self._is_invalid = True  # the article with the invalid line
            raise
        try:
            if line is None:
                self._has_ended = True
                if self._has_begun:
                    self._parse()
                    self._parser.close()
            elif line.strip() or self._has_begun:
                self._has_begun = True
                self._feed(line)
        except ValueError:
            self._has_ended = True
            raise
        except ET.ParseError as error:
            self._has_ended = True
            self._lines.first = self._lines.number
            raise ValueError(f"not valid XML ({str(error).partition(':')[0]})") from None

    def _feed(self, line: str) -> None:
        if not self._open and "<!ENTITY" in line:
            raise ValueError("declares an entity, which is not allowed")
        self._waiting.append(line)
        self._n_waiting += len(line)
        if self._n_silent <= LONG_GAP or self._n_waiting >= self._n_silent:
            self._parse()

    def _parse(self) -> None:
        """Parse the waiting lines."""
        self._parser.feed("".join(self._waiting))
        self._n_silent += self._n_waiting
        self._waiting, self._n_waiting = [], 0
        for event, element in self._parser.read_events():
            self._n_silent = 0
            if event == "start":
                self._start(element)
            else:
                self._end(element)

    def _start(self, element: ET.Element) -> None:
        if not self._open and element.tag not in ROOTS:
            raise ValueError(f"the root is <{element.tag}>, must be <{'> or <'.join(ROOTS)}>")
        if len(self._open) == 1:
            self._first = self._lines.number
            self._lines.start_here()
        self._open.append(element)

    def _end(self, element: ET.Element) -> None:
        self._open.pop()
        if len(self._open) != 1:
            return
        self._open[0].clear()
        if element.tag in ARTICLES and not self._is_invalid:
            self._articles.append((self._first, element))
        self._is_invalid = False


def _pubmed_record(article: ET.Element) -> Record:
    title = _element_text(article.find(".//ArticleTitle"))
    if not title:
        title = _element_text(article.find(".//BookTitle"))
    abstract = "\n".join(
        filter(None, map(_element_text, article.iterfind(".//Abstract/AbstractText")))
    )
    terms = [_element_text(name) for name in article.iterfind(".//MeshHeading/DescriptorName")]
    date = article.find(".//PubDate")
    date_parts = [] if date is None else [_element_text(part) for part in date]
    return {
        "id": _element_text(article.find(".//PMID")) or None,
        "text": _title_and_abstract(title, abstract),
        "labels": _headings(terms),
        "time": _publication_time(" ".join(date_parts)),
    }


def _element_text(element: ET.Element | None) -> str:
    """Return the text in an element, without tags, and with single spaces."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


# What medical references share


def _heading(term: str) -> str:
    """Return a MeSH heading without its qualifiers and the asterisk of a major topic.

    >>> _heading("*Raynaud Disease/blood/*chemically induced")
    'Raynaud Disease'
    """
    return term.partition("/")[0].strip().removeprefix("*").strip()


def _headings(terms: list[str]) -> list[str]:
    """Return the headings of terms, without empty ones."""
    return [label for label in map(_heading, terms) if label]


def _publication_time(text: str) -> str | None:
    """Return the first day of a publication date as ISO 8601.

    >>> [_publication_time(text) for text in ("1985 Dec 15", "1969 Dec-1970 Jan", "2022 Summer")]
    ['1985-12-15', '1969-12-01', '2022-07-01']
    """
    match = _date.match(text.strip())
    if not match:
        return text.strip() or None  # reported as invalid
    year, month, day = match.groups()
    return f"{year}-{_month(month):02}-{int(day or 1):02}"


def _month(name: str | None) -> int:
    if not name:
        return 1
    if name.isdecimal():
        return int(name)
    start = name[:3].lower()
    return MONTHS.index(start) + 1 if start in MONTHS else SEASONS.get(start, 1)


def _title_and_abstract(title: str, abstract: str) -> str:
    """Return the text of an article: its title and, on a new line, its abstract."""
    return "\n".join(part for part in (title, abstract) if part)
