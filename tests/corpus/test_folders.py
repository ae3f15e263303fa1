"""Reading the files of folders and patterns."""

import pytest

from polytopic.corpus import read_documents
from polytopic.errors import CorpusError
from tests.corpus.reading import read


def test_files_are_read_in_the_order_of_their_names(write, tmp_path):
    """A document without an id is named after its file and line."""
    write("b.csv", "text\nthree\n")
    write("a.csv", "text\none\ntwo\n")
    write(".hidden.csv", "text\nno\n")

    documents = list(read_documents(tmp_path))

    assert [(d.id, d.text) for d in documents] == [
        ("a.csv:2", "one"),
        ("a.csv:3", "two"),
        ("b.csv:2", "three"),
    ]


def test_a_single_file_has_line_numbers_as_ids(write, tmp_path):
    """A folder with one file is read like the file."""
    write("a.csv", "text\none\n")

    assert [document.id for document in read_documents(tmp_path)] == ["2"]


def test_a_bad_file_does_not_affect_others(write, tmp_path):
    """The error names the file; reading continues with the next."""
    first = write("a.csv", "body\none\n")
    write("b.csv", "text\ntwo\n")

    documents, errors = read(tmp_path)

    assert [document.text for document in documents] == ["two"]
    assert errors == [f"{first}, line 1: column 'text' is missing, the header has body."]


def test_files_of_several_formats(write, tmp_path):
    """The format must be given, and selects the files."""
    write("a.csv", "text\none\n")
    write("b.jsonl", '{"text": "two"}\n')

    with pytest.raises(CorpusError, match=r"contains files of .*csv, jsonl.*Give the format"):
        read_documents(tmp_path)
    assert [document.text for document in read_documents(tmp_path, format="jsonl")] == ["two"]
    with pytest.raises(CorpusError, match=r"contains no tsv files \(extensions: \.tsv\)"):
        read_documents(tmp_path, format="tsv")


def test_a_format_without_endings_takes_all_files(write, tmp_path):
    """OHSUMED's files end in years."""
    write("ohsumed.87", ".I 1\n.T\na\n")
    write("ohsumed.88-91", ".I 2\n.T\nb\n")

    documents = list(read_documents(tmp_path, format="ohsumed"))

    assert [document.text for document in documents] == ["a", "b"]


def test_a_pattern_that_matches_nothing(tmp_path):
    """It raises at the call."""
    with pytest.raises(CorpusError, match=r"\*\.csv' matches no file\.$"):
        read_documents(str(tmp_path / "*.csv"))


def test_a_file_with_a_star_in_its_name(write):
    """An existing file is not taken for a pattern."""
    path = write("a[1]*.csv", "text\none\n")

    assert [document.text for document in read_documents(str(path))] == ["one"]
