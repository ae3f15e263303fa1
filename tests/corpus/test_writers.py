"""Writing: documents are read back unchanged, or rejected."""

import io
import json
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.corpus import Document, read_documents, write_documents
from polytopic.errors import CorpusError
from tests.corpus.strategies import counts, documents, names, splits, texts, times

DOCUMENTS = [
    Document("a", text="Wheat rose.", labels=["grain", "wheat"], time="1987-02-26"),
    Document("b", text="Žito…\nkleslo", split="test"),
]


def written(documents, format, **options):
    """Write the documents and read them again."""
    file = io.BytesIO()
    number = write_documents(documents, file, format=format, **options)
    file.seek(0)
    again = list(read_documents(file, format=format, **options))
    assert number == len(again)
    return again


def accepted(document, format):
    """Return whether a format can hold a document."""
    try:
        return write_documents([document], io.BytesIO(), format=format) == 1
    except ValueError:
        return False


@given(documents(id=names, time=times, split=splits))
def test_json_lines_hold_everything(corpus):
    """Every document is read back unchanged from JSON lines."""
    assert written(corpus, "jsonl") == corpus


clean = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=",;"))
clean = clean.map(str.strip).filter(bool)
printed = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.parametrize("format", ["csv", "tsv"])
@given(
    corpus=documents(
        content=st.fixed_dictionaries({"text": printed}),
        labels=clean,
        id=clean,
        time=times,
        split=splits,
    )
)
def test_tables_hold_texts(format, corpus):
    """Texts with any line ends and quotes are read back from a table."""
    assert written(corpus, format) == corpus


@given(
    documents(
        content=st.fixed_dictionaries(
            {"fields": st.fixed_dictionaries({"title": printed, "body": printed})}
        ),
        labels=clean,
    )
)
def test_tables_hold_fields(corpus):
    """Fields have a column each."""
    options = {"text_column": "title,body", "label_separator": "; "}

    assert written(corpus, "csv", **options) == corpus


odd = "#,:\ufeff"
word = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters=odd), min_size=1
)


@given(
    documents(
        content=st.fixed_dictionaries({"counts": st.dictionaries(word, counts, min_size=1)}),
        labels=word,
    )
)
def test_svmlight_holds_counts(corpus):
    """Counts and labels are read back from SVMlight; ids are line numbers."""
    again = written(corpus, "svmlight")

    numbered = [replace(document, id=str(n)) for n, document in enumerate(corpus, 1)]
    assert again == numbered


line = texts.filter(lambda text: accepted(Document("1", text=text), "text"))


@given(documents(content=st.fixed_dictionaries({"text": line}), labels=st.nothing()))
def test_text_holds_lines(corpus):
    """Texts of one line are read back from plain text; ids are line numbers."""
    again = written(corpus, "text")

    numbered = [replace(document, id=str(n)) for n, document in enumerate(corpus, 1)]
    assert again == numbered


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "svmlight", "text"])
@given(corpus=documents(id=names, time=times, split=splits))
def test_nothing_is_lost_silently(format, corpus):
    """A format holds all of a document except its id, or rejects it."""
    writable = [document for document in corpus if accepted(document, format)]

    again = written(writable, format)

    assert [replace(d, id="1") for d in again] == [replace(d, id="1") for d in writable]


@pytest.mark.parametrize(
    ("format", "document"),
    [
        ("csv", Document("7", text="", labels=["a,b"])),
        ("csv", Document("7", text="", labels=[" a"])),
        ("csv", Document("7", counts={"a": 1})),
        ("csv", Document("7", fields={"text": "a"})),
        ("tsv", Document("7", text="\0")),
        ("svmlight", Document("7", text="a\nb")),
        ("svmlight", Document("7", counts={"a b": 1})),
        ("svmlight", Document("7", counts={"a#": 1})),
        ("svmlight", Document("7", counts={"a": 1}, labels=["x:y"])),
        ("svmlight", Document("7", counts={"a": 1}, labels=["x,y"])),
        ("svmlight", Document("7", counts={"a": 1}, time="2020-01-01")),
        ("svmlight", Document("7", counts={})),
        ("text", Document("7", text="a\nb")),
        ("text", Document("7", text="")),
        ("text", Document("7", text="\ufeffa")),
        ("text", Document("7", text="a", labels=["b"])),
        ("jsonl", Document("7", text="\ud800")),
    ],
)
def test_documents_that_a_format_cannot_hold_are_rejected(format, document):
    """The message names the document."""
    with pytest.raises(ValueError, match=r"^document '7' cannot be written: .*\.$"):
        write_documents([document], io.BytesIO(), format=format)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.jsonl.gz", "a.csv.gz"])
def test_the_format_follows_from_the_path(tmp_path, name):
    """The ending determines the format and compression."""
    path = tmp_path / name

    number = write_documents(DOCUMENTS, path)

    assert number == 2
    assert list(read_documents(path)) == DOCUMENTS
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_gzip_is_the_same_each_time(tmp_path):
    """The same documents give the same bytes under any name at any time."""
    one, two = tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl.gz"

    write_documents(DOCUMENTS, one)
    write_documents(DOCUMENTS, two)

    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes()[4:8] == bytes(4)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_failure_leaves_the_old_file(tmp_path, name):
    """No incomplete file is left, under any name."""
    path = tmp_path / name
    path.write_bytes(b"before")

    with pytest.raises(ValueError, match="document '7' cannot be written"):
        write_documents([*DOCUMENTS, Document("7", text="\ud800")], path)

    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_corpus_can_be_written_over_itself(tmp_path):
    """Documents may be read from the file that they are written to."""
    path = tmp_path / "a.jsonl"
    write_documents(DOCUMENTS, path)

    write_documents((replace(d, labels=["new"]) for d in read_documents(path)), path)

    assert [document.labels for document in read_documents(path)] == [("new",), ("new",)]


def test_a_link_is_followed(tmp_path):
    """The target of a link is written; the link stays."""
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "a.jsonl")

    write_documents(DOCUMENTS, tmp_path / "link.jsonl")

    assert (tmp_path / "link.jsonl").is_symlink()
    assert list(read_documents(tmp_path / "a.jsonl")) == DOCUMENTS


def test_a_device_is_not_replaced():
    """A device is written to directly."""
    assert write_documents(DOCUMENTS, "/dev/null", format="jsonl") == 2


def test_standard_output(monkeypatch):
    """A dash is standard output, in JSON lines; it stays open."""
    file = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file))

    write_documents(DOCUMENTS, "-")

    assert [json.loads(line)["id"] for line in file.getvalue().splitlines()] == ["a", "b"]


def test_an_open_text_file():
    """A text file gets text."""
    file = io.StringIO()

    write_documents(DOCUMENTS, file, format="csv")

    assert file.getvalue().startswith("id,text,labels,time,split\r\na,Wheat rose.,")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("folder.jsonl", "is a folder"), ("no/a.jsonl", "no' does not exist"), ("a.doc", "extension")],
)
def test_an_impossible_target(tmp_path, name, sentence):
    """The message says what is wrong with the target."""
    (tmp_path / "folder.jsonl").mkdir()

    with pytest.raises(CorpusError, match=sentence):
        write_documents(DOCUMENTS, tmp_path / name)


def test_errors_of_the_source_are_not_the_targets(tmp_path):
    """A missing source file is not reported as a problem of the target."""
    documents = (Document("1", text=open(name).read()) for name in ["missing"])  # noqa: SIM115

    with pytest.raises(FileNotFoundError, match="missing"):
        write_documents(documents, tmp_path / "a.jsonl")

    assert list(tmp_path.iterdir()) == []
