"""Reuters-21578 in its original SGML files."""

import html
import re
from collections.abc import Iterator

from polytopic.corpus.formats import MONTHS, Columns, Record
from polytopic.lines import Blocks, Lines

SPLITS = {("TRAIN", "YES"): "train", ("TEST", "YES"): "test"}
"""The "ModApte" split by LEWISSPLIT and TOPICS; all other documents are unused."""

_attribute = re.compile(r'([A-Z]+)="([^"]*)"')
_entity = re.compile(r"&(?:#\d+|\w+);")
_control = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_tag = re.compile(r"</?[A-Z]+(?: [^>]*)?>")
_date = re.compile(r"\s*(\d+)-([A-Za-z]{3})-(\d{4})(?:\s+([\d:]+))?")
_hour = re.compile("[0-2][0-9]:[0-5][0-9]:[0-5][0-9]")


def records(lines: Lines, *, columns: Columns) -> Iterator[Record | None]:
    """Return the documents of a file; `columns` is ignored."""
    return map(_record, Blocks(lines, "<REUTERS[ >]", ends="</REUTERS>", between="<"))


def _record(block: list[str]) -> Record:
    content = "".join(block)
    if "</REUTERS>" not in content:
        raise ValueError("<REUTERS> is not closed, must end with </REUTERS>")
    attributes = dict(_attribute.findall(block[0].partition(">")[0]))
    part = attributes.get("LEWISSPLIT", ""), attributes.get("TOPICS", "")
    return {
        "id": attributes.get("NEWID") or None,
        "text": _text(content),
        "labels": [_plain(label) for label in _elements("D", _element("TOPICS", content) or "")],
        "time": _time(_element("DATE", content) or ""),
        "split": SPLITS.get(part, "unused"),
    }


def _text(content: str) -> str:
    """Return title and body, or the whole text if it has no parts."""
    text = _element("TEXT", content)
    if text is None:
        raise ValueError("has no <TEXT>")
    parts = [_element("TITLE", text), _element("BODY", text)]
    if parts == [None, None]:
        return _plain(_tag.sub("", text))
    return "\n".join(_plain(part) for part in parts if part)


def _element(name: str, content: str) -> str | None:
    return next(_elements(name, content), None)


def _elements(name: str, content: str) -> Iterator[str]:
    """Yield the content of each element with this name."""
    found = re.finditer(rf"<{name}(?: [^>]*)?>(.*?)</{name}>", content, flags=re.DOTALL)
    return (match[1] for match in found)


def _plain(text: str) -> str:
    """Return a text with its entities resolved, and without control codes of the wire."""
    text = _entity.sub(lambda match: html.unescape(match[0]), text)
    return _control.sub("", text).strip()


def _time(text: str) -> str | None:
    """Return a date such as 26-FEB-1987 15:01:01.79 as ISO 8601, without an invalid hour."""
    found = _date.match(text)
    if not found:
        return _plain(text) or None  # reported as invalid
    day, month, year, hour = found.groups()
    if month.lower() not in MONTHS:
        return _plain(text)
    number = MONTHS.index(month.lower()) + 1
    date = f"{year}-{number:02}-{int(day):02}"
    return f"{date}T{hour}" if hour and _hour.fullmatch(hour) else date
