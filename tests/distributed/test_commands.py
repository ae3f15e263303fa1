"""Commands on a cluster, as a user runs them."""

import json
import subprocess
import sys

import pytest

from polytopic import load
from tests.distributed.test_answers import lines_of


def polytopic(*arguments, **options):
    """Run a command; return its output and messages."""
    return subprocess.run(
        [sys.executable, "-m", "polytopic", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        **options,
    )


def test_train_suggest_eval_select(client, news, documents, pmm1, tmp_path):
    """On a running cluster, each command does the same as on one machine."""
    cluster, model = ("--dask", client.scheduler.address), tmp_path / "news.model"

    trained = polytopic("train", news, "--to", model, "--model", "pmm1", *cluster)
    labelled = polytopic("suggest", model, news, "--to", tmp_path / "out", *cluster)
    measured = polytopic("eval", model, news, *cluster)
    alone = polytopic("eval", model, news)
    selected = polytopic(
        "select", model, news, "--topic", "culture/film", "--to", tmp_path / "films", *cluster
    )

    assert "Learned 261 documents, 20 labels" in trained.stderr
    assert "Dask dashboard: http" in trained.stderr
    assert load(model).predict(documents) == pmm1.predict(documents)
    assert f"Labelled 348 documents; wrote {tmp_path}/out" in labelled.stderr
    assert [json.loads(line)["id"] for line in lines_of(tmp_path / "out")] == [
        d.id for d in documents
    ]
    assert measured.stdout == alone.stdout
    assert f"selected {len(lines_of(tmp_path / 'films'))} (" in selected.stderr


def test_local_cluster(news, tmp_path):
    """--workers starts a cluster on this machine."""
    done = polytopic("train", news, "--to", tmp_path / "m", "--model", "nb", "--workers", "1")

    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "m").training_["documents"] == 261


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["suggest", "m", "x", "--workers", "1"], "write files: give --to FOLDER"),
        (["suggest", "m", "x", "--to", "y"], "--to needs --dask or --workers"),
        (["train", "x", "--to", "y", "--model", "boostexter", "--workers", "1"], "one machine"),
        (
            ["train", "x", "--to", "y", "--rule", "auto", "--workers", "1"],
            "--rule auto works on one machine only",
        ),
        (["train", "x", "--to", "y", "--keep-documents", "--workers", "1"], "workers keep"),
        (["train", "x", "--to", "y", "--workers", "1", "--dask", "z"], "cannot be combined"),
    ],
)
def test_wrong_usage(arguments, sentence):
    """Options that do not work on a cluster are rejected before anything is read."""
    from click.testing import CliRunner

    from polytopic.cli import main

    done = CliRunner().invoke(main, arguments)

    assert done.exit_code == 2
    assert sentence in done.output


def test_without_dask(news, tmp_path):
    """The command says in one sentence what to install."""
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask" / "__init__.py").write_text("raise ImportError('no dask')")
    import os

    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = ("train", news, "--to", tmp_path / "m", "--dask", "tcp://127.0.0.1:1")
    done = polytopic(*command, env={**os.environ, "PYTHONPATH": path})

    sentence = "Error: Dask is not installed. Install it with: pip install 'polytopic[dask]'\n"
    assert (done.returncode, done.stderr) == (1, sentence)


def test_compare_on_a_cluster(client, news, tmp_path):
    """Workers run the methods and store results, with the metrics of local processes."""
    command = ("compare", news, "--models", "knn,svm", "--tune", "0", "--protocol", "given")
    cluster = ("--dask", client.scheduler.address)

    output = polytopic(*command, *cluster, "--folder", tmp_path / "a")
    alone = polytopic(*command, "--folder", tmp_path / "b")
    again = polytopic(*command, *cluster, "--folder", tmp_path / "a")

    def measures(done):
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return [(row["method"], row["samples_f1"], row["subset_accuracy"]) for row in rows]

    assert output.returncode == 0, output.stderr
    assert measures(output) == measures(alone) == measures(again)
    assert "2 of 2 results are known already" in again.stderr
