"""Hostile input: each case gives one sentence, and nothing is written."""

import gzip
import json

import pytest

from polytopic.corpus import load_sample, write_documents
from polytopic.lines import MAX_LINE_BYTES
from polytopic.store import Store
from tests.cli.processes import run_polytopic


def refused(*arguments, stdin=b"", code=1):
    """Run a command that must fail, and return its error message."""
    done = run_polytopic(*arguments, stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    *usage, sentence = done.stderr.decode().splitlines()
    assert sentence.startswith("Error: "), done.stderr.decode()
    assert bool(usage) == (code == 2), done.stderr.decode()
    return sentence.removeprefix("Error: ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with documents, a model, a store, and a file that is one endless line."""
    folder = tmp_path_factory.mktemp("hostile")
    documents = load_sample()[:40]
    write_documents(documents, folder / "news.jsonl")
    done = run_polytopic(
        "train", folder / "news.jsonl", "--model", "nb", "--to", folder / "news.model"
    )
    assert done.returncode == 0, done.stderr
    with Store(folder / "news.db", model="nb") as store:
        store.learn(documents)
    for ending in ("jsonl", "csv", "tsv", "ttl", "rdf", "xml"):
        with open(folder / f"long.{ending}", "wb") as file:
            file.truncate(MAX_LINE_BYTES + 2)
    return folder


@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("train news.jsonl --model nb --to news.jsonl", "news.jsonl"),
        ("train news.jsonl --model nb --tree tree.csv --to ./tree.csv", "tree.csv"),
        ("select news.model news.jsonl --topic a --to link.jsonl", "news.jsonl"),
        ("compare news.csv --to news.csv", "news.csv"),
        ("store export news.db --to news.db", "news.db"),
        ("explain news.model goal --html news.model", "news.model"),
        ("map news.model --newick news.model", "news.model"),
        ("labels news.model --to news.model", "news.model"),
    ],
)
def test_a_file_that_is_read_is_not_overwritten(folder, monkeypatch, command, read):
    """The corpus, the store and the model are still there, byte for byte."""
    monkeypatch.chdir(folder)
    (folder / "tree.csv").write_text("a,b\n")
    (folder / "news.csv").write_text("text,labels\ngoal,sport\n")
    if not (folder / "link.jsonl").exists():
        (folder / "link.jsonl").symlink_to(folder / "news.jsonl")
    before = (folder / read).read_bytes()

    sentence = refused(*command.split(), code=2)

    assert f"is the file {read!r} that is read; name another file." in sentence
    assert (folder / read).read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "long.jsonl", "--to", "x.model"),
        ("suggest", "news.model", "long.csv"),
        ("store", "learn", "news.db", "long.jsonl"),
        ("store", "import", "new.db", "long.jsonl"),
        ("store", "forget", "news.db", "--from", "long.jsonl"),
        ("store", "relabel", "news.db", "--from", "long.jsonl"),
        ("store", "init", "new.db", "--tree", "long.csv"),
        ("store", "init", "new.db", "--tree", "long.tsv"),
        ("store", "init", "new.db", "--tree", "long.ttl"),
        ("store", "init", "new.db", "--tree", "long.rdf"),
        ("train", "news.jsonl", "--to", "x.model", "--tree", "long.csv"),
    ],
)
def test_every_reader_of_lines_has_the_same_limit(folder, monkeypatch, arguments):
    """A line without an end is rejected by every reader, and nothing is created."""
    monkeypatch.chdir(folder)
    before = set(folder.iterdir())

    sentence = refused(*arguments)

    assert "longer than 67,108,864 bytes" in sentence
    assert set(folder.iterdir()) == before


def test_explain_has_the_limit_as_well(folder):
    """The limit applies to all of standard input, also when it is compressed."""
    text = b"a text\n" * (MAX_LINE_BYTES // 7 + 1)

    plain = refused("explain", folder / "news.model", stdin=text)
    zipped = refused("explain", folder / "news.model", stdin=gzip.compress(text, 1))

    assert plain == zipped == "standard input: longer than 67,108,864 bytes."


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e400"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("suggest", "news.model", "news.jsonl", "--abstain"),
        ("select", "news.model", "news.jsonl", "--topic", "x", "--min-share"),
        ("train", "news.jsonl", "--to", "x", "--model", "nb", "--rule", "cohort", "--ratio"),
        ("train", "news.jsonl", "--to", "x", "--model", "nb", "--smoothing"),
        ("train", "news.jsonl", "--to", "x", "--C"),
        ("compare", "news.jsonl", "--timeout"),
    ],
)
def test_invalid_numbers(folder, monkeypatch, arguments, value):
    """NaN, infinities and negative numbers are usage errors before anything is read."""
    monkeypatch.chdir(folder)

    sentence = refused(*arguments, value, code=2)

    assert arguments[-1] in sentence


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (("train", "news.jsonl", "--model", "nb", "--to", "x", "--min-df"), 1, "min_df"),
        (("store", "init", "new.db", "--field-weight"), 1, "fields['title']"),
        (("store", "rollback", "news.db"), 2, "NUMBER"),
    ],
)
def test_numbers_of_hundreds_of_digits(folder, monkeypatch, arguments, code, name):
    """The error names integers that no machine can count to."""
    monkeypatch.chdir(folder)
    number = f"title={'9' * 400}" if name.startswith("fields") else "9" * 400

    sentence = refused(*arguments, number, code=code)

    assert name in sentence
    assert not (folder / "new.db").exists()


@pytest.mark.parametrize("model", ["nb", "pmm1", "pmm2", "pdmm", "mml", "col", "boostexter"])
def test_excessive_counts(tmp_path, model):
    """A count whose sums and products would overflow is rejected where it is read."""
    rows = [{"counts": {"a": 1e300, "b": 1e300}, "labels": ["x"]}]
    rows += [{"counts": {"c": 1e300}, "labels": ["y"]}]
    (tmp_path / "huge.jsonl").write_text("\n".join(map(json.dumps, rows)))

    sentence = refused(
        "train", tmp_path / "huge.jsonl", "--model", model, "--to", tmp_path / "x.model"
    )

    assert sentence.endswith(
        "huge.jsonl, line 1: counts['a'] == 1e+300, must be a number > 0 and <= 2**53."
    )
    assert not (tmp_path / "x.model").exists()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", "text,labels,text\nx,y,z\n", "column 'text' occurs twice"),
        ("a.csv", "text,labels,note,note\nx,y,z,z\n", "column 'note' occurs twice"),
        ("a.tsv", "text\tlabels\tlabels\nx\ty\tz\n", "column 'labels' occurs twice"),
        ("a.arff", "@attribute a string\n@attribute a string\n@data\n", "attribute 'a' occurs"),
        ("a.jsonl", '{"text": "x", "labels": ["y"], "text": "z"}\n', "key 'text' occurs twice"),
        ("a.jsonl", '{"counts": {"x": 1, "x": 2}, "labels": ["y"]}\n', "key 'x' occurs twice"),
        ("a.svm", "y x:1 x:2\n", "a term occurs twice"),
    ],
)
def test_a_name_that_occurs_twice(tmp_path, name, content, reason):
    """No format silently drops one of two columns or keys."""
    (tmp_path / name).write_text(content)

    sentence = refused("train", tmp_path / name, "--to", tmp_path / "x.model")

    assert reason in sentence


def test_a_duplicate_column_of_parquet(tmp_path):
    """It is rejected as in other tables."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [pyarrow.array(["x"]), pyarrow.array(["y"]), pyarrow.array(["z"])]
    table = pyarrow.Table.from_arrays(columns, names=["text", "labels", "text"])
    parquet.write_table(table, tmp_path / "a.parquet")

    sentence = refused("train", tmp_path / "a.parquet", "--to", tmp_path / "x.model")

    assert "column 'text' occurs twice" in sentence


def test_several_columns_without_a_name(tmp_path):
    """Spreadsheets leave them at the end of a table."""
    (tmp_path / "a.csv").write_text("text,labels,,\nwheat,grain,,\ngold,metal,,\n")

    done = run_polytopic("train", tmp_path / "a.csv", "--model", "nb", "--to", tmp_path / "x.model")

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("import", '{"polytopic_store": 1, "polytopic_store": 1}'),
        ("import", "[" * 100_000),
        ("relabel", '{"id": "a", "labels": ["x"], "labels": ["y"]}'),
        ("relabel", '{"a":' * 100_000),
        ("relabel", '{"id": "a"}'),
        ("relabel", '{"id": "a", "labels": ["\\ud800"]}'),
    ],
)
def test_lines_of_json_for_a_store(folder, tmp_path, command, content):
    """They are read like documents; errors have a line number and a reason."""
    (tmp_path / "a.jsonl").write_text(f"\n{content}\n")
    source = [tmp_path / "a.jsonl"] if command == "import" else ["--from", tmp_path / "a.jsonl"]
    store = tmp_path / "new.db" if command == "import" else folder / "news.db"

    sentence = refused("store", command, store, *source)

    assert f"{tmp_path / 'a.jsonl'}, line 2: " in sentence
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"analyzer": None},
        {"analyzer": {"a": 1}},
        {"analyzer": {"language": ["x"]}},
        {"fields": 3},
        {"fields": {"title": -1}},
        {"fields": {"title": {}}},
        {"model": ["nb"]},
        {"keep_texts": 3},
        {"tree": [1]},
        {"tree": {"zz": 1}},
        {"tree": {"parents": {}, "names": {"a": "b"}}},
        {"tree": {"parents": {"a": "b", "b": "a"}}},
    ],
)
def test_the_first_line_of_an_import(folder, tmp_path, changed):
    """Settings that no store can have are rejected before one is created."""
    done = run_polytopic("store", "export", folder / "news.db")
    first, *others = done.stdout.decode().splitlines()
    lines = [json.dumps(json.loads(first) | changed), *others]

    sentence = refused("store", "import", tmp_path / "new.db", stdin="\n".join(lines).encode())

    assert sentence.startswith("the first line has no valid ")
    assert not (tmp_path / "new.db").exists()


def test_an_incomplete_import(folder, tmp_path):
    """Documents missing from the middle are noticed at the end."""
    lines = run_polytopic("store", "export", folder / "news.db").stdout.splitlines()
    del lines[7]

    sentence = refused("store", "import", tmp_path / "new.db", stdin=b"\n".join(lines))

    assert sentence.startswith("the export is damaged: it should have 40 documents, but has 39.")


def test_explain_takes_brackets_for_a_text(folder):
    """Input that is not a JSON object is a text, however deep its brackets are."""
    done = run_polytopic("explain", folder / "news.model", stdin=b"[" * 100_000)

    assert done.returncode == 0, done.stderr


def test_a_weight_that_is_given_twice(folder):
    """It is unclear which of the two is meant."""
    weights = ["--field-weight", "title=2", "--field-weight", "title=3"]

    sentence = refused("train", folder / "news.jsonl", "--to", folder / "x", *weights, code=2)

    assert sentence == "--field-weight title is given twice."
