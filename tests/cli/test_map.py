"""The map of labels on the command line."""

import json

import pytest

from tests.cli.processes import on_a_terminal
from tests.cli.test_commands import lines, run
from tests.explain.news import LABELS, TEXTS

TREE = (
    "label\tparent\tname\nsport\tfun\tSport & games\nfilm\tfun\tCinema\nmusic\tfun\t\nspace\t\t\n"
)
TOGETHER = ("A football match in orbit.", ["space", "sport"])
HOSTILE = ["<script>alert(1)</script>", "it's (a,b):[c];", "[bold]x[/]", "a\tb\x1b[31m", "$\\frac$"]


def write(path, documents):
    """Write labelled texts as JSON lines."""
    rows = ({"text": text, "labels": labels} for text, labels in documents)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a model of news that has a tree, and one of hostile labels."""
    folder = tmp_path_factory.mktemp("map")
    write(folder / "news.jsonl", [*zip(TEXTS, LABELS, strict=True), TOGETHER])
    (folder / "tree.tsv").write_text(TREE)
    tree = "--tree", folder / "tree.tsv"
    run("train", folder / "news.jsonl", "--to", folder / "news", "--model", "pmm1", *tree)
    write(folder / "bad.jsonl", [(f"word{n} common", [bad]) for n, bad in enumerate(HOSTILE)])
    run("train", folder / "bad.jsonl", "--to", folder / "bad", "--model", "pmm1")
    return folder


def test_map_writes_one_object(folder):
    """Pairs, labels with words, the clusters and how well they agree with the tree."""
    out, err = run("map", folder / "news", "--pairs", 1, "-k", 2)

    (label_map,) = lines(out)
    assert err == ""
    (pair,) = label_map["positive"]
    assert (pair["first"], pair["second"], pair["documents"]) == ("space", "sport", 2)
    assert [label["name"] for label in label_map["labels"]] == [
        "Cinema",
        "music",
        "space",
        "Sport & games",
    ]
    assert [len(label["terms"]) for label in label_map["labels"]] == [2] * 4
    assert set(label_map["dendrogram"]) == {"height", "children"}
    assert -1 <= label_map["agreement"] <= 1


def test_map_writes_files(folder, tmp_path):
    """A page, a drawing and a tree; stderr lists what was written."""
    paths = [tmp_path / name for name in ("map.html", "map.nwk", "map.png", "map.svg")]
    options = "--html", paths[0], "--newick", paths[1], "--plot"

    out, err = run("map", folder / "news", *options, paths[2])
    run("map", folder / "news", "--plot", paths[3])

    assert lines(out)[0]["labels"]
    assert err == "".join(f"Wrote {path}.\n" for path in paths[:3])
    assert "sport · Sport &amp; games" in paths[0].read_text()
    assert paths[1].read_text().endswith(";\n")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in paths[3].read_text()


def test_nothing_is_written_where_something_fails(folder, tmp_path):
    """An unknown kind of drawing stops the command before any file is written."""
    options = "--html", tmp_path / "map.html", "--plot"

    _, err = run("map", folder / "news", *options, tmp_path / "map.doc", code=1)
    _, message = run("map", folder / "news", "--html", tmp_path / "no" / "x", code=1)

    assert "Format 'doc' is not supported" in err
    assert "no' does not exist" in message
    assert list(tmp_path.iterdir()) == []


def test_map_on_a_terminal(folder):
    """A table of pairs, and the clusters drawn next to labels with names and words."""
    shown = on_a_terminal("map", folder / "news")

    assert "Positive correlation" in shown
    assert "Negative correlation" not in shown
    drawn = shown.split("Labels by their words", 1)[1].splitlines()
    branches = {line[25:47].strip(): line[:24] for line in drawn if line[:1] in "┌└│ " and line}
    assert set(branches) == {"film · Cinema", "music", "space", "sport · Sport & games"}
    assert next(iter(branches.values())).startswith("┌")
    assert any("music" in line and "orchestra" in line for line in drawn)
    assert "Agreement with the tree of labels: " in shown
    assert lines(on_a_terminal("map", folder / "news", "--json"))[0]["labels"]


def test_hostile_labels(folder, tmp_path):
    """No label is markup, a formula or a command to the terminal."""
    paths = [tmp_path / name for name in ("x.html", "x.nwk", "x.png")]

    out, err = run(
        "map", folder / "bad", "--html", paths[0], "--newick", paths[1], "--plot", paths[2]
    )
    shown = on_a_terminal("map", folder / "bad")

    assert "warning" not in err
    assert [label["label"] for label in lines(out)[0]["labels"]] == sorted(HOSTILE)
    assert "<script" not in paths[0].read_text()
    assert "'it''s (a,b):[c];'" in paths[1].read_text()
    assert "\x1b[31m" not in shown
    assert all(name in shown for name in ("<script>alert(1)</script>", "[bold]x[/]", "a b [31m"))


def test_one_label(tmp_path):
    """A model of one label has a map of one label."""
    write(tmp_path / "one.jsonl", [("goal match", ["sport"]), ("goal", ["sport"])])
    run("train", tmp_path / "one.jsonl", "--to", tmp_path / "m", "--model", "pmm1")

    out, _ = run("map", tmp_path / "m", "--newick", tmp_path / "x.nwk")

    assert (tmp_path / "x.nwk").read_text() == "sport;\n"
    assert lines(out)[0]["dendrogram"] == {"label": "sport"}
    assert "sport" in on_a_terminal("map", tmp_path / "m")


def test_a_model_without_counts(folder, tmp_path):
    """One sentence says what is missing."""
    train = "train", folder / "news.jsonl", "--to", tmp_path / "m", "--model", "pmm1"
    run(*train, "--no-counts")

    _, err = run("map", tmp_path / "m", code=1)

    assert "saved without its counts, so it has no map of labels" in err
    assert len(err.splitlines()) == 1
