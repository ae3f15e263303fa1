"""What the formats of medical libraries share: headings, dates, titles with abstracts."""

import re

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
SEASONS = {"win": 1, "spr": 4, "sum": 7, "aut": 10, "fal": 10}

_date = re.compile(r"(\d{4})\b(?:[ /-]+([A-Za-z]{3,}|\d{1,2})\b(?:[ /-]+(\d{1,2})\b(?!\d))?)?")


def heading(term: str) -> str:
    """Return a MeSH heading without its qualifiers and the mark of a major topic.

    >>> heading("*Raynaud Disease/blood/*chemically induced")
    'Raynaud Disease'
    """
    return term.partition("/")[0].strip().removeprefix("*").strip()


def headings(terms: list[str]) -> list[str]:
    """Return the headings of terms that are not empty."""
    return [label for label in map(heading, terms) if label]


def publication_time(text: str) -> str | None:
    """Return the day that a date of publication begins with, as ISO 8601.

    >>> [publication_time(text) for text in ("1985 Dec 15", "1969 Dec-1970 Jan", "2022 Summer")]
    ['1985-12-15', '1969-12-01', '2022-07-01']
    """
    found = _date.match(text.strip())
    if not found:
        return text.strip() or None  # told as no time
    year, month, day = found.groups()
    return f"{year}-{_month(month):02}-{int(day or 1):02}"


def _month(name: str | None) -> int:
    if not name:
        return 1
    if name.isdecimal():
        return int(name)
    start = name[:3].lower()
    return MONTHS.index(start) + 1 if start in MONTHS else SEASONS.get(start, 1)


def title_and_abstract(title: str, abstract: str) -> str:
    """Return the text of an article: its title, a line end, its abstract."""
    return "\n".join(part for part in (title, abstract) if part)
