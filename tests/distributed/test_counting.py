"""Counting on a cluster: the table, its partitions, and what they are read from."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytopic import Document
from polytopic.corpus import read_documents
from polytopic.counts import TextSample
from polytopic.distributed import count, read
from polytopic.distributed.engine import sum_results
from polytopic.distributed.learning import count_part
from polytopic.distributed.partitions import PartReader, number_lines
from polytopic.errors import CorpusError, PolytopicError
from polytopic.labeler.reading import count_texts
from polytopic.lines import Piece
from polytopic.text import Analyzer
from tests.strategies import texts


def same_bytes(one, other):
    """Return whether two tables are the same to the byte."""
    ours, theirs = one.to_arrays(), other.to_arrays()
    return one == other and all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)


@pytest.fixture(scope="module")
def table(documents):
    """Return the table of one machine."""
    return count_texts(documents, None, Analyzer("en"), None)


@pytest.mark.parametrize("blocksize", [10**9, 40_000, 7_001, 1_500])
def test_any_blocks_give_the_same_table(client, news, table, blocksize):
    """The table is that of one machine bit for bit, however the file is cut."""
    corpus = read(news, blocksize=blocksize)

    counts = count(corpus, client=client)

    assert len(corpus.parts) == -(-news.stat().st_size // blocksize)
    assert same_bytes(counts, table)


@settings(max_examples=40)
@given(texts(max_docs=9), st.lists(st.integers(0, 9), max_size=4), st.integers(1, 4))
def test_any_partitioning_gives_the_same_table(pairs, cuts, size):
    """Tables and samples of parts, even empty ones, add up to those of all documents."""
    corpus = [Document(str(n), text=t, labels=names) for n, (t, names) in enumerate(pairs)]
    borders = sorted({0, *(min(cut, len(corpus)) for cut in cuts), len(corpus)})
    parts = [corpus[a:b] for a, b in zip(borders, [*borders[1:], len(corpus)], strict=True)]
    analyzer, whole = Analyzer(None), TextSample(size)
    table = count_texts(corpus, None, analyzer, None, whole)

    sums = sum_results([count_part(part, ({}, analyzer, None, None, size)) for part in parts])

    assert same_bytes(sums.counts, table)
    assert sums.sample.texts == whole.count_terms(analyzer, None).texts
    assert sums.sample.labels == whole.labels


@given(st.lists(st.binary(max_size=6), max_size=8), st.integers(1, 9), st.integers(3, 20))
def test_pieces_hold_each_line_once(tmp_path_factory, lines, size, max_bytes):
    """The pieces of a file contain its lines in order, and the beginning of long ones."""
    content = b"\n".join(lines)
    path = tmp_path_factory.mktemp("pieces") / "lines"
    path.write_bytes(content)
    starts = range(0, max(len(content), 1), size)

    with open(path, "rb") as file:
        pieces = [
            line
            for start in starts
            for line in Piece(file, "lines", start, start + size, max_bytes=max_bytes)
        ]

    assert pieces == [line[: max_bytes + 1] for line in content.splitlines(keepends=True)] or (
        b"\r" in content or b"\x0b" in content or b"\x0c" in content
    )


def test_ids_and_errors_have_line_numbers(client, news, documents):
    """Documents of cut files have the ids that one machine gives, by their lines."""
    corpus = number_lines(read(news, blocksize=5_000), client)

    ids = [d.id for part in corpus.parts for d in PartReader(part, {}).documents()]

    assert ids == [document.id for document in documents]


def test_formats(client, forms, table):
    """Gzipped files, tables and Parquet, by folder or pattern, give the same table."""
    assert same_bytes(count(forms / "part-*.jsonl.gz", client=client), table)
    assert same_bytes(count(forms / "*.csv", client=client), table)
    assert same_bytes(count([str(forms / f"part-{k}.csv") for k in range(3)], client=client), table)
    assert same_bytes(count(f"file://{forms}/part-*.jsonl.gz", client=client), table)
    assert len(read(forms / "part-*.jsonl.gz", blocksize=100).parts) == 3


def test_parquet_by_groups_of_rows(client, documents, table, tmp_path):
    """A Parquet file is cut into groups of rows, whose ids are those of one machine."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = {"text": [d.text for d in documents], "labels": [list(d.labels) for d in documents]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "news.parquet", row_group_size=50)
    corpus = read(tmp_path / "news.parquet", blocksize=1000)

    counts = count(corpus, client=client)

    assert len(corpus.parts) == 7
    assert same_bytes(counts, table)
    ids = [d.id for part in corpus.parts for d in PartReader(part, {}).documents()]
    assert ids == [d.id for d in read_documents(tmp_path / "news.parquet")]


def test_bags_and_dataframes(client, documents, table):
    """Bags of documents, mappings and lines, and dataframes, are corpora."""
    from dask import bag

    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    mappings = [d.to_dict() for d in documents]
    frame = pandas.DataFrame(
        {"words": [d.text for d in documents], "topics": [";".join(d.labels) for d in documents]}
    )
    columns = {"text_column": "words", "labels_column": "topics", "label_separator": ";"}

    for items in (documents, mappings, [json.dumps(m) for m in mappings]):
        assert same_bytes(count(bag.from_sequence(items, npartitions=3), client=client), table)
    counts = count(frames.from_pandas(frame, npartitions=3), client=client, **columns)

    assert same_bytes(counts, table)


def test_split_and_bad_lines(client, news, documents, tmp_path):
    """The requested split is counted; a bad line stops the job, or is skipped."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text(news.read_text() + '{"text": 3}\n')
    train = [d for d in documents if d.split == "train"]

    counts = count(news, blocksize=9_000, split="train", client=client)

    assert same_bytes(counts, count_texts(train, None, Analyzer("en"), None))
    with pytest.raises(CorpusError, match=r"bad.jsonl.* line \d+: text == 3, must be a string"):
        count(bad, blocksize=9_000, client=client)
    assert count(bad, blocksize=9_000, on_error="skip", client=client).n_docs == len(documents)


def test_unreadable_sources(tmp_path):
    """Streams and missing files are rejected in one sentence."""
    with pytest.raises(CorpusError, match="standard input cannot be read by several workers"):
        read("-")
    with pytest.raises(CorpusError, match="matches no file"):
        read(f"file://{tmp_path}/none-*.jsonl")
    with pytest.raises(CorpusError, match="does not exist"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(ValueError, match="blocksize == 0, must be > 0"):
        read(tmp_path, blocksize=0)


def test_without_dask(monkeypatch):
    """One sentence says what to install."""
    import sys

    monkeypatch.setitem(sys.modules, "dask.bag", None)

    with pytest.raises(PolytopicError) as caught:
        read("news.jsonl")

    sentence = "Dask is not installed. Install it with: pip install 'polytopic[dask]'"
    assert str(caught.value) == sentence
