"""Annif in an environment of its own, as a method of comparisons."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from annif_methods import ANNIF, INSTALL, Worker, annif_python, find_missing, fit_annif

from polytopic.corpus import load_sample, write_documents
from polytopic.errors import PolytopicError
from polytopic.experiments import Protocol
from polytopic.experiments.protocols import CountedCorpus
from polytopic.experiments.runner import cpu_seconds

METHODS = {method.name: method for method in ANNIF}
COMMAND = Path(__file__).parents[2] / "benchmarks" / "compare_annif.py"


def test_absent(monkeypatch):
    """The row says how to install Annif, or what is wrong with the environment variable."""
    monkeypatch.delenv("POLYTOPIC_ANNIF", raising=False)
    monkeypatch.setattr("annif_methods.find_spec", lambda name: None)
    assert METHODS["annif-tfidf"].missing == INSTALL
    assert annif_python() is None

    monkeypatch.setenv("POLYTOPIC_ANNIF", "/nowhere/python")
    assert "POLYTOPIC_ANNIF == '/nowhere/python', must be" in find_missing()


def test_command(tmp_path):
    """The script is ``polytopic compare`` with Annif's back ends, run by other processes."""
    python, path = tmp_path / "python", tmp_path / "news.jsonl"
    python.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    python.chmod(0o755)
    write_documents(load_sample(), path)
    options = ["--models", "knn,annif-tfidf", "--protocol", "random", "--repeats", "1"]

    listed, done = (
        subprocess.run(
            [sys.executable, str(COMMAND), str(path), *more],
            env=os.environ | {"POLYTOPIC_ANNIF": str(python)},
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        for more in (["--list"], [*options, "--tune", "0"])
    )

    assert all(name in listed.stdout for name in METHODS)
    assert '"method": "knn", "failure": null' in done.stdout
    assert "Annif ended: no such module" in done.stdout


def test_a_python_without_annif(tmp_path):
    """A process that ends without an answer is reported by its last line."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    python.chmod(0o755)
    worker = Worker(str(python))

    with pytest.raises(PolytopicError, match="Annif ended: no such module"):
        worker.ask(learn=[], labels=[], n_labels=0, settings={})


@pytest.mark.skipif(find_missing() is not None, reason="Annif is not installed")
@pytest.mark.parametrize("name", METHODS)
def test_back_ends(name):
    """Each learns the labels of documents; its CPU time is counted."""
    corpus = CountedCorpus.from_documents("sample", load_sample())
    (split,) = Protocol("random", train=200, test=60, repeats=1).splits(corpus)
    train, test = corpus.parts(split.train, split.test)
    method, start = METHODS[name], cpu_seconds()

    answer = method.fit(train, method.settings, 0)(test)

    right = (answer.scores.argmax(axis=1)[:, None] == np.arange(test.Y.shape[1])) & (
        test.Y.toarray() > 0
    )
    assert right.any(axis=1).mean() > 0.3  # at random: .1
    assert cpu_seconds() - start > 0.05


@pytest.mark.skipif(find_missing() is not None, reason="Annif is not installed")
def test_back_end_that_annif_lacks():
    """Annif's own message is shown."""
    corpus = CountedCorpus.from_documents("sample", load_sample())
    train, _ = corpus.parts(np.arange(50), np.arange(50, 60))

    with pytest.raises(PolytopicError, match=r"Annif failed: .*no_such"):
        fit_annif(train, {"backend": "no_such"}, 0)
