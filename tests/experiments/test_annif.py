"""Annif in an environment of its own."""

import numpy as np
import pytest

from polytopic.corpus import load_sample
from polytopic.errors import PolytopicError
from polytopic.experiments import METHODS, Protocol
from polytopic.experiments.annif import INSTALL, Worker, annif, annif_python, lacks_annif
from polytopic.experiments.clock import cpu_seconds
from polytopic.experiments.parts import Prepared

BACK_ENDS = ["annif-tfidf", "annif-omikuji", "annif-fasttext", "annif-svc"]


def test_absent(monkeypatch):
    """The row says how Annif is installed, or what is wrong with what is named."""
    monkeypatch.delenv("POLYTOPIC_ANNIF", raising=False)
    monkeypatch.setattr("polytopic.experiments.annif.find_spec", lambda name: None)
    assert METHODS["annif-tfidf"].missing == INSTALL
    assert annif_python() is None

    monkeypatch.setenv("POLYTOPIC_ANNIF", "/nowhere/python")
    assert "POLYTOPIC_ANNIF == '/nowhere/python', must be" in lacks_annif()


def test_a_python_without_annif(tmp_path):
    """What ends without a word is told by its last one."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    python.chmod(0o755)
    worker = Worker(str(python))

    with pytest.raises(PolytopicError, match="Annif ended: no such module"):
        worker.ask(learn=[], labels=[], n_labels=0, settings={})


@pytest.mark.skipif(lacks_annif() is not None, reason="Annif is not installed")
@pytest.mark.parametrize("name", BACK_ENDS)
def test_back_ends(name):
    """Each learns the labels of documents; what it spends is counted."""
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


@pytest.mark.skipif(lacks_annif() is not None, reason="Annif is not installed")
def test_back_end_that_annif_lacks():
    """What Annif says is told."""
    prepared = Prepared.of("sample", load_sample())
    train, _ = prepared.parts(np.arange(50), np.arange(50, 60))

    with pytest.raises(PolytopicError, match=r"Annif failed: .*no_such"):
        annif(train, {"backend": "no_such"}, 0)
