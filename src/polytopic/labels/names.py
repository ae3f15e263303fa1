"""Names of labels, in one or several languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

Name = str | Mapping[str, str]
"""A name without a language, or names by language."""
Alternatives = Iterable[str] | Mapping[str, Iterable[str]]
"""Alternative names without a language, or by language."""

Value = TypeVar("Value")

_LANGUAGE = re.compile(r"[a-z]{1,8}(-[a-z0-9]{1,8})*")


def read_name(name: Name) -> Mapping[str, str]:
    """Return names by language, sorted and read-only; ``""`` means no language."""
    named = name if isinstance(name, Mapping) else {"": name}
    return _by_language({language: one_line(text) for language, text in named.items()})


def read_alternatives(names: Alternatives) -> Mapping[str, tuple[str, ...]]:
    """Return alternative names by language, sorted, distinct and read-only."""
    if isinstance(names, str):
        raise TypeError(f"alternatives == {names!r} is one string, must be a list of names.")
    named = names if isinstance(names, Mapping) else {"": names}
    return _by_language(
        {
            language: tuple(sorted({line for text in texts if (line := one_line(text))}))
            for language, texts in named.items()
        }
    )


def name_in(names: Mapping[str, str], language: str | None) -> str | None:
    """Return the name in a language, else in a variant of it, in no language, English, or any."""
    wanted = (language or "").lower()
    stem = wanted.partition("-")[0]
    variants = [other for other in names if other.partition("-")[0] == stem]
    found = [key for key in (wanted, *variants, "", "en", *names) if key in names]
    return names[found[0]] if found else None


def one_line(text: str) -> str:
    """Return a name with single spaces."""
    return " ".join(str(text).split())


def _by_language(values: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return values by language, in lower case and sorted, without empty values."""
    found = {_tag(language): value for language, value in values.items() if value}
    return MappingProxyType({language: found[language] for language in sorted(found)})


@lru_cache
def _tag(language: str) -> str:
    """Return a language tag in lower case; the empty tag is allowed."""
    tag = language.lower()
    if tag and not _LANGUAGE.fullmatch(tag):
        raise ValueError(f"language == {language!r}, must be a tag such as 'en' or 'pt-br'.")
    return tag
