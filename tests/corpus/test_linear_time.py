"""Hostile records: the time to read one grows no faster than its length."""

import time

import pytest

from polytopic.corpus import read_documents

LENGTH = 200_000  # characters; quadratic time would be a minute or so
SECONDS = 3.0
ARFF = "@relation {}\n@attribute text {}\n@attribute labels string\n@data\n"
REUTERS = "<REUTERS {}>\n{}</REUTERS>\n"
PUBMED = "<PubmedArticleSet>\n{}<PubmedArticle {}/>\n</PubmedArticleSet>\n"
HOSTILE = {
    "cells": ("arff", ARFF.format("x", "string") + "'a',b" + " " * LENGTH + "b\n"),
    "open quote": ("arff", ARFF.format("x", "string") + " " * LENGTH + "'\n"),
    "open quote later": ("arff", ARFF.format("x", "string") + "a," + " " * LENGTH + "'\n"),
    "nominal values": ("arff", ARFF.format("x", "{'a',b" + " " * LENGTH + "b}") + "a,b\n"),
    "relation": ("arff", ARFF.format(":" * LENGTH, "string") + "a,b\n"),
    "attributes": ("reuters", REUTERS.format("A" * LENGTH, "<TEXT>a</TEXT>")),
    "topics": ("reuters", REUTERS.format("", f"<TOPICS>{'<D>' * LENGTH}</TOPICS><TEXT>a</TEXT>")),
    "open topics": ("reuters", REUTERS.format("", "<D " * LENGTH + "\n<TEXT>a</TEXT>")),
    "texts": ("reuters", REUTERS.format("", "<TEXT>" * LENGTH)),
    "titles": ("reuters", REUTERS.format("", f"<TEXT>{'<TITLE>' * LENGTH}</TEXT>")),
    "open tags": ("reuters", REUTERS.format("", f"<TEXT>{'<A ' * LENGTH}</TEXT>")),
    "continued lines": ("medline", "PMID- 1\nTI  - a\n" + " a\n" * 4 * LENGTH),
    "comment": ("pubmed", PUBMED.format("<!--" + ">\n" * LENGTH + "-->", "")),
    "attribute": ("pubmed", PUBMED.format("", "a='" + ">\n" * LENGTH + "'")),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_of_a_hostile_record(name):
    """A record that makes a pattern or a parser search again and again is read in no time."""
    format, content = HOSTILE[name]
    start = time.process_time()

    list(read_documents(content.splitlines(True), format=format, on_error="skip"))

    assert time.process_time() - start < SECONDS
