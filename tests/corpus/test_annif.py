"""Reading and writing Annif's corpora."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.corpus import Document, read_documents, write_documents
from tests.corpus.reading import read
from tests.corpus.strategies import characters, documents

URI = "http://example.org/"
TSV = f"Wheat rose.\t<{URI}wheat> <{URI}corn>\n\nNo labels\t\r\nbare\t{URI}oil\n"

line_signs = characters.filter(lambda sign: sign not in "\t\n\r\0")
label_signs = characters.filter(lambda sign: sign not in "\0<" and not sign.isspace())


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_tsv(write, pack):
    """A text, a tab, and URIs with or without brackets; no header."""
    read_back = list(read_documents(write("train.tsv", pack(TSV.encode())), format="annif"))

    assert read_back == [
        Document("1", text="Wheat rose.", labels=[f"{URI}corn", f"{URI}wheat"]),
        Document("3", text="No labels"),
        Document("4", text="bare", labels=[f"{URI}oil"]),
    ]


def test_a_line_without_a_tab():
    """The error names the line, and the other lines are read."""
    documents, errors = read(["a\t<b>\n", "words\n", "c\t\n"], format="annif")

    assert [document.id for document in documents] == ["1", "3"]
    assert errors == [
        "input, line 2: has no tab, must be a text, a tab, and URIs separated by spaces."
    ]


texts = st.text(line_signs).filter(lambda text: text.strip() and text[0] != "\ufeff")
labels = st.text(label_signs, min_size=1)


@given(documents(content=st.fixed_dictionaries({"text": texts}), labels=labels))
def test_round_trip(tmp_path_factory, corpus):
    """Whatever can be written is read back unchanged."""
    path = tmp_path_factory.mktemp("annif") / "a.tsv.gz"

    write_documents(corpus, path, format="annif")

    read_back = list(read_documents(path, format="annif"))
    assert [(d.text, d.labels) for d in read_back] == [(d.text, d.labels) for d in corpus]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (Document("1", counts={"a": 1}), "has only texts and labels"),
        (Document("1", text="a\tb"), "has a tab"),
        (Document("1", text=" "), "its text is empty"),
        (Document("1", text="a", labels=["b c"]), "the label 'b c' contains space"),
    ],
)
def test_documents_that_annif_cannot_hold(tmp_path, document, reason):
    """The error names the document."""
    with pytest.raises(ValueError, match=f"document '1' cannot be written: .*{reason}"):
        write_documents([document], tmp_path / "a", format="annif")


@pytest.fixture
def folder(write, tmp_path):
    """Return a folder of documents."""
    write("b.txt", "Wheat\nrose.\n")
    write("b.key", "wheat\n\n grain trade \n")
    write("a.txt", b"\xef\xbb\xbf" + "Ropa zdražila.".encode())
    write("a.tsv", f"<{URI}oil>\toil\n<{URI}prices>\tprices\n")
    write("a.key", "not this\n")
    write("c.txt.gz", gzip.compress(b"No labels"))
    write("notes.doc", "about")
    return tmp_path


@pytest.mark.parametrize("format", [None, "annif"])
def test_a_folder(folder, format):
    """Each text is a document with the labels of the file next to it; its name is the id."""
    documents = list(read_documents(folder, format=format))

    assert documents == [
        Document("a", text="Ropa zdražila.", labels=[f"{URI}oil", f"{URI}prices"]),
        Document("b", text="Wheat\nrose.\n", labels=["grain trade", "wheat"]),
        Document("c", text="No labels"),
    ]


def test_bad_files_of_a_folder(folder):
    """Each error names its file, and the other files are read."""
    (folder / "a.tsv").write_bytes(b"<x>\n\xff\n")
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"\0"))

    documents, errors = read(folder)

    assert [document.id for document in documents] == ["b"]
    assert errors == [
        f"{folder / 'a.tsv'}: not valid UTF-8 (byte 0xff at position 1) in line 2.",
        f"{folder / 'c.txt.gz'}: contains a NUL byte in line 1.",
    ]


def test_an_empty_folder(tmp_path):
    """An empty folder is not an error if the format is given."""
    assert list(read_documents(tmp_path, format="annif")) == []
