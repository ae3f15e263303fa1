"""Reading Parquet."""

import gzip
import io
import sys
from datetime import date, datetime

import pyarrow
import pytest
from pyarrow import parquet

from polytopic.corpus import Document, read_documents
from polytopic.errors import CorpusError, CorpusWarning
from tests.corpus.reading import read


@pytest.fixture
def table(tmp_path):
    """Write columns to a file and return its path."""

    def table(columns, **options):
        path = tmp_path / "news.parquet"
        parquet.write_table(pyarrow.table(columns), path, **options)
        return path

    return table


def test_columns(table):
    """Labels may be lists; null means missing; other columns are ignored."""
    path = table(
        {
            "id": [7, 8],
            "text": ["é", "b"],
            "labels": [["corn", "oil"], None],
            "time": [datetime(2020, 5, 31, 12), None],
            "split": ["test", None],
            "other": [b"\xff", b""],
        }
    )

    documents = list(read_documents(path))

    first = Document("7", text="é", labels=["corn", "oil"], time="2020-05-31T12:00", split="test")
    assert documents == [first, Document("8", text="b")]


def test_columns_of_other_names(table):
    """Labels may be strings with separators, times may be dates or strings, ids are row numbers."""
    path = table({"title": ["a"], "body": ["b"], "tags": ["x; y"], "day": [date(2020, 5, 31)]})
    names = {"text_column": "title,body", "labels_column": "tags", "time_column": "day"}

    [document] = read_documents(path, label_separator=";", **names)

    fields = {"title": "a", "body": "b"}
    assert document == Document("1", fields=fields, labels=["x", "y"], time="2020-05-31")


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds(table, zone):
    """Times as pandas writes them are truncated to microseconds."""
    times = pyarrow.array([1590926400123456789], pyarrow.timestamp("ns", tz=zone))

    [document] = read_documents(table({"text": ["a"], "time": times}))

    assert document.time.isoformat() == "2020-05-31T12:00:00.123456+00:00"


@pytest.mark.parametrize("kind", [pyarrow.large_string(), pyarrow.dictionary("int32", "string")])
def test_other_strings(table, kind):
    """They are read as strings."""
    strings = pyarrow.array(["a", "b"]).cast(kind)

    documents = list(read_documents(table({"text": strings, "labels": strings})))

    assert documents == [Document(str(n), text=t, labels=[t]) for n, t in [(1, "a"), (2, "b")]]


def test_row_groups(table):
    """Row numbers continue from group to group."""
    path = table({"text": [str(n) for n in range(1000)]}, row_group_size=300)

    documents = list(read_documents(path))

    assert [document.id for document in documents] == [str(n + 1) for n in range(1000)]
    assert [document.text for document in documents] == [str(n) for n in range(1000)]


def test_groups_are_read_one_by_one(table, monkeypatch):
    """One group is in memory at a time, not the file."""
    path = table({"text": ["word " * 2000] * 2000}, row_group_size=100, compression="none")
    pyarrow_before = pyarrow.total_allocated_bytes()
    peak = 0

    for _ in read_documents(path):
        peak = max(peak, pyarrow.total_allocated_bytes() - pyarrow_before)

    assert peak < 8_000_000  # the texts are 20 MB


def test_an_open_file(table):
    """A seekable open file is a source."""
    content = table({"text": ["a"]}).read_bytes()

    assert list(read_documents(io.BytesIO(content), format="parquet")) == [Document("1", text="a")]


def test_bad_rows(table):
    """Each error names its row, and the other rows are read."""
    path = table({"text": ["a", None, "c", "d"], "labels": [["x"], [], [""], None]})

    documents, errors = read(path)

    assert [document.id for document in documents] == ["1", "4"]
    assert errors == [
        f"{path}, row 2: text is missing, a document must have one of text, counts and fields.",
        f"{path}, row 3: labels == [''], must be a list of non-empty strings.",
    ]


def test_an_invalid_time(table):
    """The date is dropped; the document is read."""
    with pytest.warns(CorpusWarning, match="row 1: time == 'soon'"):
        [document] = read_documents(table({"text": ["a"], "time": ["soon"]}))

    assert document.time is None


def test_a_missing_column(table):
    """No row can be read without it, so there is one error."""
    path = table({"body": ["a"], "n": [1]})

    documents, errors = read(path)

    assert documents == []
    assert errors == [f"{path}, row 1: column 'text' is missing, the file has body, n."]


def test_damaged_data(table):
    """Data that cannot be read further gives an error, and reading stops."""
    path = table({"text": [str(n) * 50 for n in range(5000)]}, row_group_size=2500)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)

    documents, errors = read(path)

    assert documents == []
    assert len(errors) == 1
    assert "row 1: cannot be read further (" in errors[0]


@pytest.mark.parametrize("content", [b"", b"plain words", b"PAR1PAR1"])
def test_something_else(write, content):
    """A file that is not Parquet gives a one-sentence error."""
    with pytest.raises(CorpusError, match=r"a\.pq' is not a Parquet file, or is damaged\.$"):
        list(read_documents(write("a.pq", content)))


def test_a_missing_file(tmp_path):
    """The error is that of other formats."""
    with pytest.raises(CorpusError, match=r"a\.parquet' does not exist\.$"):
        list(read_documents(tmp_path / "a.parquet"))


def test_a_gzipped_file(table, write):
    """Parquet is compressed already; the message asks for a plain file."""
    path = write("a.parquet.gz", gzip.compress(table({"text": ["a"]}).read_bytes()))

    with pytest.raises(CorpusError, match="is gzipped, must be a plain Parquet"):
        list(read_documents(path))


def test_a_stream():
    """A stream that is not seekable cannot be read."""
    with pytest.raises(CorpusError, match="standard input: Parquet cannot be read from a stream"):
        list(read_documents("-", format="parquet"))


def test_without_pyarrow(table, monkeypatch):
    """The message says how to install it."""
    path = table({"text": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(CorpusError, match=r"pip install 'polytopic\[formats\]'"):
        list(read_documents(path))
