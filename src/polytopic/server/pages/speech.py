"""The languages of the pages: sentences are written in English, and looked up in others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from fastapi import Request

LANGUAGES = {"en": "English", "cs": "Čeština"}
LANGUAGE_COOKIE = "polytopic_language"


def language_of(request: Request) -> str:
    """Return the language that a reader asks for: by the address, a cookie, or the browser."""
    asked = request.query_params.get("lang") or request.cookies.get(LANGUAGE_COOKIE)
    if asked in LANGUAGES:
        return asked
    for part in request.headers.get("Accept-Language", "").split(","):
        code = part.partition(";")[0].partition("-")[0].strip().lower()
        if code in LANGUAGES:
            return code
    return "en"


@cache
def sentences(language: str) -> Mapping[str, str]:
    """Return what English sentences are in a language; nothing for English itself."""
    if language == "en":
        return {}
    return json.loads((files(__package__) / "languages" / f"{language}.json").read_text("utf-8"))


def translator(language: str):
    """Return what translates a sentence, with what stands in its braces."""
    known = sentences(language)

    def translate(sentence: str, **values: object) -> str:
        return known.get(sentence, sentence).format(**values)

    return translate
