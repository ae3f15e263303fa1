"""Annif in an environment of its own, as a method of comparisons."""

import numpy as np
import pytest
from annif_methods import ANNIF, INSTALL, Worker, annif_python, find_missing, fit_annif

from polytopic.corpus import load_sample
from polytopic.errors import PolytopicError
from polytopic.experiments import Protocol
from polytopic.experiments.parts import Prepared
from polytopic.experiments.runner import cpu_seconds

METHODS = {method.name: method for method in ANNIF}


def test_absent(monkeypatch):
    """The row says how to install Annif, or what is wrong with the environment variable."""
    monkeypatch.delenv("POLYTOPIC_ANNIF", raising=False)
    monkeypatch.setattr("annif_methods.find_spec", lambda name: None)
    assert METHODS["annif-tfidf"].missing == INSTALL
    assert annif_python() is None

    monkeypatch.setenv("POLYTOPIC_ANNIF", "/nowhere/python")
    assert "POLYTOPIC_ANNIF == '/nowhere/python', must be" in find_missing()


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
    prepared = Prepared.of("sample", load_sample())
    (split,) = Protocol("random", train=200, test=60, repeats=1).splits(prepared)
    train, test = prepared.parts(split.train, split.test)
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
    prepared = Prepared.of("sample", load_sample())
    train, _ = prepared.parts(np.arange(50), np.arange(50, 60))

    with pytest.raises(PolytopicError, match=r"Annif failed: .*no_such"):
        fit_annif(train, {"backend": "no_such"}, 0)
