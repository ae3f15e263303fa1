"""Reading well-formed data, from every source and format."""

import gzip
import io
import itertools
import json
import subprocess
import sys
import tracemalloc

import pytest

from polytopic.corpus import Document, read_documents
from polytopic.corpus.readers import read_with_origins

LINE = '{"id": "a", "text": "Wheat rose.", "labels": ["grain", "wheat"]}\n'
DOCUMENT = Document("a", text="Wheat rose.", labels=["grain", "wheat"])


def test_import_is_light():
    """The command starts fast: nothing heavy is imported before it is needed."""
    code = "import sys, polytopic.corpus; print({'numpy', 'scipy', 'sklearn'} & set(sys.modules))"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert result.stdout == "set()\n"


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "json", "JSONL", "jsonl.gz"])
def test_json_lines_by_ending(write, ending):
    """JSON lines are recognized by the file's ending, gzip by the first bytes."""
    path = write(f"news.{ending}", LINE)

    assert list(read_documents(path)) == [DOCUMENT]
    assert list(read_documents(str(path))) == [DOCUMENT]


def test_gzip_is_recognized_by_its_bytes(write):
    """A gzipped file is recognized without its ending."""
    path = write("news.jsonl", gzip.compress(LINE.encode()))

    assert list(read_documents(path)) == [DOCUMENT]


def test_gzip_of_several_members(write):
    """Concatenated gzip files are read as one."""
    path = write("news.jsonl.gz", gzip.compress(LINE.encode()) * 2)

    assert list(read_documents(path)) == [DOCUMENT, DOCUMENT]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch, pack):
    """A dash is standard input, in JSON lines by default."""
    stdin = io.TextIOWrapper(io.BytesIO(pack(LINE.encode())))
    monkeypatch.setattr(sys, "stdin", stdin)

    assert list(read_documents("-")) == [DOCUMENT]


@pytest.mark.parametrize(
    "source",
    [
        io.BytesIO(LINE.encode()),
        io.BufferedReader(io.BytesIO(LINE.encode())),
        io.BytesIO(gzip.compress(LINE.encode())),
        io.StringIO(LINE),
        [LINE],
        [LINE.strip().encode()],
    ],
)
def test_open_files_and_lines(source):
    """Any iterable of lines, text or bytes, is a source."""
    assert list(read_documents(source)) == [DOCUMENT]


def test_an_open_file_has_a_format(write):
    """The format follows from the name of an open file, which stays open."""
    path = write("news.csv", "text\nWheat rose.\n")

    with open(path, "rb") as file:
        documents = list(read_documents(file))

        assert not file.closed
    assert documents == [Document("2", text="Wheat rose.")]


def test_lines_are_read_one_by_one():
    """An endless stream is read only as far as needed."""
    read = []
    lines = (read.append(i) or f'{{"text": "{i}"}}' for i in range(1_000_000))

    documents = list(itertools.islice(read_documents(lines), 3))

    assert [document.text for document in documents] == ["0", "1", "2"]
    assert len(read) == 3


def test_memory_is_constant(write):
    """A long file takes no more memory than a short one."""
    path = write("news.jsonl", json.dumps({"text": "word " * 200}) + "\n")
    path.write_bytes(path.read_bytes() * 20_000)

    tracemalloc.start()
    number = sum(1 for _ in read_documents(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert number == 20_000
    assert peak < 1_000_000


def test_a_line_of_50_megabytes(write):
    """A very long document can be read."""
    text = "word " * 10_000_000

    [document] = read_documents(write("news.jsonl", json.dumps({"text": text})))

    assert document.text == text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"id": "1", "text": "é", "labels": ["b"]}'),
        ("a.csv", "id,text,labels\n1,é,b\n"),
        ("a.tsv", "id\ttext\tlabels\n1\té\tb\n"),
    ],
)
def test_byte_order_mark(write, name, content):
    """A UTF-8 byte order mark is not part of the first word."""
    path = write(name, b"\xef\xbb\xbf" + content.encode())

    assert list(read_documents(path)) == [Document("1", text="é", labels=["b"])]


def test_byte_order_mark_in_svmlight_and_text(write):
    """Formats without a header skip the mark, too."""
    svmlight = write("a.svm", b"\xef\xbb\xbfb 1:2\n")
    text = write("a.txt", b"\xef\xbb\xbfhello\n")

    assert list(read_documents(svmlight)) == [Document("1", counts={"1": 2}, labels=["b"])]
    assert list(read_documents(text)) == [Document("1", text="hello")]


def test_blank_lines_count():
    """A document without an id gets its line number; blank lines count."""
    lines = ["\n", '{"text": "a"}\n', "  \r\n", '{"text": "b"}']

    assert [document.id for document in read_documents(lines)] == ["2", "4"]


@pytest.mark.parametrize(
    ("split", "kept"), [(None, "1234"), ("train", "13"), ("test", "2"), ("dev", "4")]
)
def test_split(split, kept):
    """A document without a split belongs to the training part."""
    splits = [None, "test", "train", "dev"]
    lines = [json.dumps({"text": "a", "split": each}) for each in splits]

    documents = read_documents(lines, split=split)

    assert "".join(document.id for document in documents) == kept


def test_json_keys_may_have_other_names():
    """The columns of a table are the keys of an object."""
    line = '{"key": 7, "title": "a", "body": "b", "tags": ["x"], "date": "2020-01-01"}'
    names = {"id_column": "key", "labels_column": "tags", "time_column": "date"}

    [document] = read_documents([line], text_column="title, body", **names)

    fields = {"title": "a", "body": "b"}
    assert document == Document("7", fields=fields, labels=["x"], time="2020-01-01")


def test_large_numbers_and_surrogate_pairs_in_json():
    """Long ids and escaped emoji are valid JSON."""
    [document] = read_documents([f'{{"id": {10**30}, "text": "\\ud83d\\ude00"}}'])

    assert document == Document("1" + "0" * 30, text="😀")


def test_another_encoding(write):
    """An encoding that extends ASCII may be named."""
    path = write("a.txt", "žluťoučký".encode("cp1250"))

    [document] = read_documents(path, encoding="cp1250")

    assert document.text == "žluťoučký"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.svm", "a.txt", "a.jsonl.gz"])
def test_an_empty_file(write, name):
    """A file without documents is not an error."""
    assert list(read_documents(write(name, ""))) == []


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "train", "test"), [("reuters21578", 7770, 3019), ("bibtex", 4880, 2515)]
)
def test_a_real_corpus(data, name, train, test):
    """Texts and counts of the shared corpora are read completely, by their split."""
    path = data(name)

    documents = list(read_documents(path))

    assert len(documents) == train + test
    assert sum(1 for _ in read_documents(path, split="train")) == train
    assert sum(1 for _ in read_documents(path, split="test")) == test
    assert all(document.labels and document.content for document in documents)


def test_origins(write):
    """Each document comes with its line, or with the columns that are not part of it."""
    lines = write("news.jsonl", f"{LINE}\n{LINE}")
    table = write("news.csv", 'id,text,labels,author\na,Wheat rose.,"grain,wheat",Ann\n')
    plain = write("news.txt", "Wheat rose.\n")

    assert list(read_with_origins(lines)) == [(DOCUMENT, LINE), (DOCUMENT, LINE)]
    assert list(read_with_origins(table)) == [(DOCUMENT, {"author": "Ann"})]
    assert [origin for _, origin in read_with_origins(plain)] == [{}]
