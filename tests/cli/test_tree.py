"""The topic tree on the command line: vocabularies, levels, measures, and selection."""

import gzip
import json

import pytest

import polytopic
from polytopic.corpus import Document, load_sample, write_documents
from polytopic.labels import LabelTree
from tests.cli.processes import on_a_terminal
from tests.cli.test_commands import lines, run

SKOS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/> .
:science a skos:Concept ; skos:prefLabel "science"@en, "tiede"@fi ; skos:narrower :space .
:space skos:prefLabel "space"@en, "avaruus"@fi ; skos:altLabel "cosmos"@en .
:sport a skos:Concept ; skos:prefLabel "sport"@en ; skos:notation "79" .
:golf a skos:Concept ; skos:broader :sport, :science .
"""
LABELLED = [("goal match", ["79"]), ("rover orbit", ["cosmos"]), ("orbit goal", ["space", "sport"])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the sample, a test part in it, and models of it with its tree."""
    folder = tmp_path_factory.mktemp("tree")
    documents = [
        Document(d.id, text=d.text, labels=d.labels, split="test" if n % 5 == 0 else "train")
        for n, d in enumerate(load_sample())
    ]
    write_documents(documents, folder / "news.jsonl.gz")
    for model in ("nb", "pmm1"):
        target = folder / f"{model}.model"
        tree = ("--tree", "names")
        run("train", folder / "news.jsonl.gz", "--to", target, "--model", model, *tree)
    return folder


@pytest.fixture(scope="module")
def thesaurus(tmp_path_factory):
    """Return a folder with documents whose labels are names in a SKOS thesaurus, and a model."""
    folder = tmp_path_factory.mktemp("thesaurus")
    rows = [{"text": text, "labels": labels} for text, labels in LABELLED]
    (folder / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "tree.ttl").write_text(SKOS)
    train = "train", folder / "news.jsonl", "--to", folder / "m", "--model", "nb"
    _, err = run(*train, "--tree", folder / "tree.ttl")
    (folder / "messages").write_text(err)
    return folder


def test_train_with_a_thesaurus(thesaurus):
    """Names become ids, with a warning for each decision."""
    messages = (thesaurus / "messages").read_text()

    assert "warning: 1 labels of" in messages
    assert "have several parents; a tree keeps the first" in messages
    assert "'http://example.org/golf' is under" in messages
    assert (
        "4 labels are names in the tree and were replaced by their ids, such as '79' by" in messages
    )
    assert "Learned 3 documents, 2 labels" in messages


def test_answers_with_a_thesaurus(thesaurus):
    """Answers have ids and show names; both are accepted in an evaluation."""
    model, corpus = thesaurus / "m", thesaurus / "news.jsonl"

    (answer,) = lines(run("suggest", model, "--format", "text", stdin=b"orbit rover\n")[0])
    (measures,) = lines(run("eval", model, corpus)[0])

    assert answer["labels"] == ["http://example.org/space"]
    assert [s["name"] for s in answer["suggestions"]] == ["space", "sport"]
    assert measures["precision_at_1"] == 1
    assert "http://example.org/space · space" in on_a_terminal("suggest", model, corpus)


def test_labels_outside_the_tree_are_reported(folder):
    """The message has their number and an example."""
    tree = folder / "small.tsv"
    tree.write_text("label\tparent\nsport/football\tsport\n")
    train = "train", folder / "news.jsonl.gz", "--to", folder / "x", "--model", "nb"

    _, err = run(*train, "--tree", tree)

    assert "warning: 19 of 20 labels are not in the tree, such as 'culture/books'; they" in err


@pytest.mark.parametrize("ending", ["ttl", "csv"])
def test_export(thesaurus, ending):
    """The vocabulary of a model is exported with its tree and all its names."""
    target = thesaurus / f"out.{ending}"

    out, err = run("labels", thesaurus / "m", "--to", target)

    assert out == ""
    assert err == f"Wrote 4 labels to {target}.\n"
    assert LabelTree.from_file(target) == polytopic.load(thesaurus / "m").tree


def test_export_errors(thesaurus):
    """One label is not a vocabulary, and the file name extension must be known."""
    assert "combined with LABEL" in run("labels", thesaurus / "m", "79", "--to", "x.ttl", code=2)[1]
    assert "must end in .ttl" in run("labels", thesaurus / "m", "--to", "x.doc", code=1)[1]


def test_export_without_a_tree(tmp_path):
    """Only the labels, all of them roots."""
    (tmp_path / "news.jsonl").write_text('{"text": "goal", "labels": ["sport"]}\n')
    run("train", tmp_path / "news.jsonl", "--to", tmp_path / "m", "--model", "nb")

    run("labels", tmp_path / "m", "--to", tmp_path / "labels.tsv")

    assert (tmp_path / "labels.tsv").read_text() == "id\tparent\nsport\t\n"
    _, err = run("suggest", tmp_path / "m", "--level", 0, stdin=b'{"text": "goal"}', code=1)
    assert "level == 0 needs a tree of labels" in err


def test_suggest_at_a_level(folder):
    """Only labels at that level are suggested."""
    test = "suggest", folder / "pmm1.model", folder / "news.jsonl.gz", "--split", "test"

    flat, high = lines(run(*test)[0]), lines(run(*test, "--level", 0)[0])

    for below, above in zip(flat, high, strict=True):
        assert above["labels"] == sorted({label.split("/")[0] for label in below["labels"]})
        assert all("/" not in s["label"] for s in above["suggestions"])
    out, _ = run(*test, "--include", "sport")
    assert all(s["label"].startswith("sport/") for a in lines(out) for s in a["suggestions"])


def test_eval_by_level(folder):
    """Near misses count in part, and each level is reported."""
    evaluate = "eval", folder / "nb.model", folder / "news.jsonl.gz"

    (measures,) = lines(run(*evaluate)[0])

    high, low = measures["levels"]
    assert (high["level"], low["level"]) == (0, 1)
    assert high["labels"] < low["labels"] == 20
    assert high["samples_f1"] >= low["samples_f1"] == measures["samples_f1"]
    assert measures["hierarchical_f1"] >= measures["micro_f1"]
    assert {"hierarchical_precision", "hierarchical_recall"} <= set(measures)
    shown = on_a_terminal(*evaluate)
    assert "hierarchical_f1" in shown
    assert "macro_f1" in shown.split("level", 1)[1]


def test_select(folder, tmp_path):
    """Matching documents are written with all their fields, and counts go to stderr."""
    target = tmp_path / "out.jsonl.gz"
    corpus = folder / "news.jsonl.gz"

    out, err = run(
        "select", folder / "nb.model", corpus, "--topic", "sport", "--topic", "culture/film",
        "--to", target,
    )  # fmt: skip

    assert out == ""
    with gzip.open(target, "rt") as file:
        selected = [json.loads(line) for line in file]
    originals = {d["id"]: d for d in lines(gzip.decompress(corpus.read_bytes()).decode())}
    answers = lines(run("suggest", folder / "nb.model", corpus)[0])
    expected_ids = [
        a["id"] for a in answers if a["labels"][0].startswith(("sport/", "culture/film"))
    ]
    assert [d["id"] for d in selected] == expected_ids
    for document in selected:
        topics = document.pop("selected")
        assert all(what["labels"] and "share" not in what for what in topics.values())
        assert document == originals[document["id"]]
    sport = sum(a["labels"][0].startswith("sport/") for a in answers)
    assert err == (
        f"Read 348 documents and selected {len(expected_ids)} "
        f"(sport {sport}, culture/film {len(expected_ids) - sport}); 0 had no known words.\n"
    )


def test_select_keeps_lines_as_they_are(folder):
    """A line is written character for character; a stream is answered."""
    line = '{"nested": {"π": [1.0, 1e400]}, "text": "The striker scored a goal.",  "n": 1}'
    lines_in = f'{line}\n{{"text": "xyzzy"}}\n{{"text": "goal", "selected": 1}}\n'

    out, err = run("select", folder / "nb.model", "--topic", "sport", stdin=lines_in.encode())

    first, second = out.splitlines()
    selected = '"selected": {"sport": {"labels": ["sport/football"]}}'
    assert first == f"{line[:-1]}, {selected}}}"
    assert second == f'{{"text": "goal", {selected}}}'
    assert "Read 3 documents and selected 2 (sport 2); 1 had no known words." in err


def test_select_by_share(folder, tmp_path):
    """The share is reported; other formats are written as JSON lines with all their columns."""
    table = tmp_path / "news.csv"
    text = "The striker came back after surgery; doctors at the hospital praised the patient."
    table.write_text(f'body,author,labels\n"{text}",Ann,"a,b"\nThe rover reached orbit.,Bob,\n')
    select = "select", folder / "pmm1.model", table, "--text-column", "body", "--topic"

    (one,) = lines(run(*select, "health", "--topic", "sport", "--all", "--min-share", 0.2)[0])
    none, err = run(*select, "health", "--min-share", 0.9)

    assert (one["text"], one["labels"], one["author"]) == (text, ["a", "b"], "Ann")
    assert set(one["selected"]) == {"health", "sport"}
    assert sum(what["share"] for what in one["selected"].values()) == pytest.approx(1)
    assert none == ""
    assert "Read 2 documents and selected 0 (health 0)" in err


def test_select_with_a_bad_line(folder, tmp_path):
    """A file is written completely or not at all; a bad line may be skipped."""
    corpus = tmp_path / "news.jsonl"
    corpus.write_text('{"text": "goal"}\n{"text":\n{"text": "goal"}\n')
    select = (
        "select",
        folder / "nb.model",
        corpus,
        "--topic",
        "sport",
        "--to",
        tmp_path / "out.jsonl",
    )

    _, err = run(*select, code=1)
    assert "news.jsonl, line 2: not valid JSON" in err
    assert [path.name for path in tmp_path.iterdir()] == ["news.jsonl"]

    _, err = run(*select, "--on-error", "skip")
    assert "1 lines were skipped" in err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--topic", "golf"], 1, "label 'golf' is not known"),
        ([], 2, "Missing option '--topic'"),
        (["--topic", "sport", "--min-share", "2"], 2, "is not in the range"),
        (["--topic", "sport", "--to", "/nowhere/x"], 1, "'/nowhere' does not exist"),
    ],
)
def test_select_errors(folder, options, code, sentence):
    """One sentence, and the exit code of the manual."""
    out, err = run("select", folder / "nb.model", folder / "news.jsonl.gz", *options, code=code)

    assert out == ""
    assert sentence in err


def test_select_shows_progress(folder):
    """On a terminal: the number of documents, and of those selected."""
    shown = on_a_terminal(
        "select", folder / "nb.model", folder / "news.jsonl.gz", "--topic", "culture/film"
    )

    assert "selected" in shown
    assert "Read 348 documents" in shown


def test_a_rule_is_chosen_by_ids(tmp_path):
    """Held-out documents whose labels are names in the tree are evaluated by their ids."""
    from click.testing import CliRunner

    from polytopic.cli import main

    corpus, tree = tmp_path / "corpus.jsonl", tmp_path / "tree.csv"
    lines = [
        '{"text": "goal match", "labels": ["Sport"]}',
        '{"text": "moon orbit", "labels": ["Space"]}',
    ]
    corpus.write_text("\n".join(lines * 10))
    tree.write_text("id,parent,name\nt1,,Sport\nt2,,Space\n")

    arguments = ["train", corpus, "--to", tmp_path / "m", "--model", "nb", "--rule", "auto"]
    answer = CliRunner().invoke(main, [*map(str, arguments), "--tree", str(tree)])

    assert "is 1.000 with the model's own decision, and 1.000 with TopK(k=1)" in answer.stderr
