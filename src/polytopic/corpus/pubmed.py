"""PubMed's XML, one article at a time."""

import xml.etree.ElementTree as ET
from collections import deque
from collections.abc import Iterator
from typing import Any

from polytopic.corpus.formats import Columns, Record
from polytopic.corpus.mesh import headings, publication_time, title_and_abstract
from polytopic.lines import Lines

ROOTS = ("PubmedArticleSet", "MedlineCitationSet")
ARTICLES = ("PubmedArticle", "PubmedBookArticle", "MedlineCitation")


def records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the articles of a file; the columns say nothing about them."""
    return map(_record, Articles(lines))


class Articles:
    """Iterator of the elements of articles, each taken out of the tree that is being built.

    Expat fetches nothing from outside; a file that declares entities of its own, which could grow
    without end, is refused. Behind a fault in the XML nothing can be read.
    """

    def __init__(self, lines: Lines):
        self._lines = lines
        self._parser: Any = ET.XMLPullParser(["start", "end"])
        self._open: list[ET.Element] = []
        self._found: deque[tuple[int, ET.Element]] = deque()
        self._begun = self._ended = self._spoiled = False
        self._first = 1

    def __iter__(self) -> "Articles":
        return self

    def __next__(self) -> ET.Element:
        while not self._found:
            if self._ended:
                raise StopIteration
            self._read()
        self._lines.first, article = self._found.popleft()
        return article

    def _read(self) -> None:
        """Take one more line."""
        try:
            line = next(self._lines, None)
        except ValueError:
            self._spoiled = True  # the article with the bad line
            raise
        try:
            if line is None:
                self._ended = True
                if self._begun:
                    self._parser.close()
            elif line.strip() or self._begun:
                self._begun = True
                self._feed(line)
        except ValueError:
            self._ended = True
            raise
        except ET.ParseError as error:
            self._ended = True
            self._lines.first = self._lines.number
            raise ValueError(f"not valid XML ({str(error).partition(':')[0]})") from None

    def _feed(self, line: str) -> None:
        if not self._open and "<!ENTITY" in line:
            raise ValueError("declares an entity, must not")
        self._parser.feed(line)
        for event, element in self._parser.read_events():
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
        if element.tag in ARTICLES and not self._spoiled:
            self._found.append((self._first, element))
        self._spoiled = False


def _record(article: ET.Element) -> Record:
    title = _text(article.find(".//ArticleTitle"))
    if not title:
        title = _text(article.find(".//BookTitle"))
    abstract = "\n".join(filter(None, map(_text, article.iterfind(".//Abstract/AbstractText"))))
    terms = [_text(name) for name in article.iterfind(".//MeshHeading/DescriptorName")]
    date = article.find(".//PubDate")
    parts = [] if date is None else [_text(part) for part in date]
    return {
        "id": _text(article.find(".//PMID")) or None,
        "text": title_and_abstract(title, abstract),
        "labels": headings(terms),
        "time": publication_time(" ".join(parts)),
    }


def _text(element: ET.Element | None) -> str:
    """Return the text in an element, tags left out, with single spaces."""
    return "" if element is None else " ".join("".join(element.itertext()).split())
