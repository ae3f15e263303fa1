"""Commands on corpora in other formats."""

import json

from polytopic.corpus.formats import FORMATS
from tests.cli.processes import run_polytopic


def test_every_reader_can_be_imported():
    """The registry names modules and functions that exist."""
    for format in FORMATS.values():
        assert callable(format.load_reader())
        assert callable(format.load_opener())


def test_train_and_suggest(tmp_path):
    """A model is trained on a table of Annif's, and labels a folder of texts."""
    corpus, folder = tmp_path / "train.tsv", tmp_path / "texts"
    corpus.write_text("wheat harvest\t<u:grain>\ncrude barrel\t<u:oil>\n" * 10)
    folder.mkdir()
    (folder / "a.txt").write_text("The wheat harvest.\n")
    model = tmp_path / "annif.model"

    run_polytopic("train", corpus, "--format", "annif", "--to", model, "--model", "nb")
    done = run_polytopic("suggest", model, folder)

    answer = json.loads(done.stdout)
    assert (answer["id"], answer["labels"]) == ("a", ["u:grain"])


def test_an_unknown_format(tmp_path):
    """The error lists the formats."""
    done = run_polytopic("train", "a", "--to", tmp_path / "m", "--format", "doc")

    assert done.returncode == 2
    assert b"'doc' is not one of 'jsonl', " in done.stderr
