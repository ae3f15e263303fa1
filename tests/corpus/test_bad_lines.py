"""Reading malformed data: every error names its place."""

import gzip
import io
import json
import os
import random

import pytest

from polytopic.corpus import read_documents
from polytopic.errors import CorpusError, CorpusWarning

GOOD = b'{"id": "good", "text": "fine"}\n'

BAD_LINES = {
    b'{"text": "a" "b"}': "not valid JSON (Expecting ',' delimiter at column 14)",
    b"plain words": "not valid JSON (Expecting value at column 1)",
    b"[1, 2]": "[1, 2] is not a JSON object",
    b"null": "None is not a JSON object",
    b"[" * 100_000: "not valid JSON (brackets are nested too deeply)",
    b'{"text": "\xff"}': "not valid UTF-8 (byte 0xff at position 11)",
    b'{"text": "\x00"}': "contains a NUL byte",
    b'{"text": "\\ud800"}': "contains half of a surrogate pair, which is not a character",
    b'{"id": 1}': "text is missing, a document must have one of text, counts and fields",
    b'{"text": 5}': "text == 5, must be a string",
    b'{"text": "a", "labels": "earn"}': "labels == 'earn', must be a list of strings",
    b'{"counts": {"a": NaN}}': "counts['a'] == nan, must be a number > 0 and <= 2**53",
    b'{"counts": {"a": Infinity}}': "counts['a'] == inf, must be",
    b'{"counts": {"a": 1e999}}': "counts['a'] == inf, must be",
    b'{"counts": {"a": -1}}': "counts['a'] == -1, must be",
    b'{"text": "' + b"a" * 1000 + b'"}': "longer than 500 bytes",
}

BAD_PAIRS = {
    "1 3": "'3' is not a pair 'term:count'",
    "1 3:x": "'3:x' is not a pair",
    "1 3:": "'3:' is not a pair",
    "1 :3": "':3' is not a pair",
    "1 3:nan": "counts['3'] == nan, must be",
    "1 3:-1": "counts['3'] == -1.0, must be",
    "1 3:inf": "counts['3'] == inf, must be",
    "1 3:1 3:2": "a term occurs twice",
}


def read(source, **options):
    """Read all; return the ids of documents and the errors of skipped lines."""
    errors = []
    documents = read_documents(source, on_error="skip", on_bad_line=errors.append, **options)
    ids = [document.id for document in documents]
    return ids, [str(error) for error in errors]


@pytest.mark.parametrize(("bad", "reason"), BAD_LINES.items(), ids=range(len(BAD_LINES)))
def test_a_bad_json_line(tmp_path, bad, reason):
    """The error names file, line and reason; the lines around it are read."""
    path = tmp_path / "news.jsonl"
    path.write_bytes(GOOD + bad + b"\n" + GOOD)
    limit = {"max_line_bytes": 500} if "500" in reason else {}

    ids, errors = read(path, **limit)

    assert ids == ["good", "good"]
    assert len(errors) == 1
    assert errors[0].startswith(f"{path}, line 2: {reason}")
    assert errors[0].endswith(".")


def test_stop_is_the_default(tmp_path):
    """By default, reading stops at the first bad line, after the documents before it."""
    path = tmp_path / "news.jsonl"
    path.write_bytes(GOOD + b"{\n" + GOOD)
    documents = read_documents(path)

    assert next(documents).id == "good"
    with pytest.raises(CorpusError, match=r"news\.jsonl, line 2: not valid JSON \(.*\)\.$"):
        next(documents)


def test_skipping_needs_no_callback():
    """Bad lines can be skipped silently."""
    documents = list(read_documents(["{", '{"text": "a"}'], on_error="skip"))

    assert [document.text for document in documents] == ["a"]


@pytest.mark.parametrize(("bad", "reason"), BAD_PAIRS.items())
def test_a_bad_svmlight_line(bad, reason):
    """Each pair has a term and a finite positive number, each term once."""
    ids, errors = read(["1 1:1", bad, "2 2:2"], format="svmlight")

    assert ids == ["1", "3"]
    assert len(errors) == 1
    assert errors[0].startswith(f"input, line 2: {reason}")


def test_numbers_alone_are_a_header_only_on_the_first_line():
    """On later lines, they are a line without pairs."""
    ids, errors = read(["3 4 5", "3 4 5"], format="svmlight")

    assert ids == []
    assert errors == ["input, line 2: '4' is not a pair 'term:count'."]


def test_wrong_number_of_columns():
    """Each row of a table has as many cells as the header."""
    ids, errors = read(["id,text", "1,a", "2", "3,b,c", "4,d"], format="csv")

    assert ids == ["1", "4"]
    assert errors == [
        "input, line 3: 1 columns, must be 2 as in the header.",
        "input, line 4: 3 columns, must be 2 as in the header.",
    ]


def test_errors_name_the_first_line_of_a_row():
    """Rows after one that spans several lines have the right line numbers."""
    rows = ["text,time\n", '"a\n', 'b",soon,1\n', '"a"b,2020\n', "\xff\x00,\n", "c,\n"]

    ids, errors = read(rows, format="csv")

    assert ids == ["6"]
    assert [error.split(":")[0] for error in errors] == [f"input, line {n}" for n in (2, 4, 5)]


def test_an_invalid_time_is_dropped():
    """An invalid date is dropped with a warning; the document is read."""
    lines = ['{"id": "a", "text": "x", "time": "2022-02-29"}', '{"id": "b", "text": "y"}']

    with pytest.warns(CorpusWarning, match=r"input, line 1: time == '2022-02-29'.*kept without"):
        documents = list(read_documents(lines))

    assert [(d.id, d.time) for d in documents] == [("a", None), ("b", None)]


@pytest.mark.parametrize(
    ("options", "column"), [({}, "text"), ({"text_column": "body", "labels_column": "x"}, "x")]
)
def test_a_missing_column_stops_reading(options, column):
    """No row can be read without the column, so there is one error."""
    ids, errors = read(["id,body", "1,a", "2,b"], format="csv", **options)

    assert ids == []
    assert errors == [f"input, line 1: column {column!r} is missing, the header has id, body."]


def test_a_missing_key_is_named_as_given():
    """The message uses the caller's name for the text column."""
    _, errors = read(['{"text": "a"}'], text_column="body")

    assert errors == ["input, line 1: 'body' is missing."]


def test_an_open_quote_does_not_fill_the_memory():
    """A record has the same size limit as a line; reading continues after it."""
    rows = ["text\n", '"open\n', *["word\n"] * 30, '"good"\n']

    ids, errors = read(rows, format="csv", max_line_bytes=100)

    assert errors == ["input, line 2: longer than 100 bytes."]
    assert ids[-1] == "33"


def test_an_open_quote_at_the_end():
    """The last record must be complete."""
    ids, errors = read(["text\n", "good\n", '"open\n'], format="csv")

    assert ids == ["2"]
    assert errors == ["input, line 3: unexpected end of data."]


def test_a_truncated_gzip_is_read_up_to_the_end(tmp_path):
    """The documents before the truncation are read, then there is an error."""
    path = tmp_path / "news.jsonl.gz"
    words = random.Random(0)
    lines = [json.dumps({"text": str(words.random())}) for _ in range(5000)]
    path.write_bytes(gzip.compress("\n".join(lines).encode())[:-1000])

    ids, errors = read(path)

    assert 1000 < len(ids) < 5000
    assert errors == [f"{path}, line {len(ids) + 1}: the gzip data end too early."]


@pytest.mark.parametrize("place", [4, 40, -6])
def test_a_corrupt_gzip_is_an_error(place):
    """Any damage gives one error, and reading stops."""
    packed = bytearray(gzip.compress(GOOD * 1000))
    packed[place] ^= 255
    packed[2] ^= 255 if place == 4 else 0

    _, errors = read(io.BytesIO(packed))

    assert len(errors) == 1
    assert "cannot be read further" in errors[0]


def test_a_text_file_with_wrong_bytes():
    """An open text file cannot be read after an invalid byte; reading stops with an error."""
    file = io.TextIOWrapper(io.BytesIO(GOOD * 3 + b"\xff\n" + GOOD), encoding="utf-8")

    _, errors = read(file)

    assert len(errors) == 1
    assert "cannot be read further" in errors[0]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_missing_file(on_error):
    """A missing file is always an error."""
    with pytest.raises(CorpusError, match=r"^'x\.jsonl' does not exist\.$"):
        list(read_documents("x.jsonl", on_error=on_error))


def test_a_folder(tmp_path):
    """A folder without readable files raises at the call, whatever its name."""
    folder = tmp_path / "a.jsonl"
    folder.mkdir()

    with pytest.raises(CorpusError, match="is a folder without files of a known extension"):
        read_documents(folder)


def test_a_file_without_permission(tmp_path, monkeypatch):
    """The message says that permission is denied."""

    def refuse(path, mode):
        raise PermissionError(13, os.strerror(13), path)

    monkeypatch.setattr("builtins.open", refuse)

    with pytest.raises(CorpusError, match=r"'a\.jsonl' cannot be read: permission denied\.$"):
        list(read_documents("a.jsonl"))


@pytest.mark.parametrize("name", ["news", "news.gz", "news.doc", "news.87"])
def test_an_unknown_ending(name):
    """The message lists the known file extensions and says what to do."""
    reason = r"no known file extension \(\.jsonl, .*Give the format: jsonl, "
    with pytest.raises(CorpusError, match=reason):
        read_documents(name)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xml"},
        {"on_error": "ignore"},
        {"encoding": "utf-16"},
        {"encoding": "klingon"},
        {"label_separator": ""},
        {"text_column": "a,,b"},
    ],
)
def test_wrong_arguments(options):
    """They raise at the call, before anything is read."""
    with pytest.raises(ValueError, match=r" == .*, must .*\.$"):
        read_documents([], **options)


def test_lines_of_another_type():
    """Lines are text or bytes; anything else raises TypeError."""
    with pytest.raises(TypeError, match="of type dict, must be str or bytes"):
        list(read_documents([{"text": "a"}]))
