"""Annif's back ends as methods of a comparison; Annif runs in an environment of its own.

Annif pins its dependencies, so install it apart from polytopic and name its Python::

    python -m venv annif && annif/bin/pip install 'annif[omikuji,fasttext]'
    export POLYTOPIC_ANNIF=annif/bin/python

``compare_annif.py`` is then ``polytopic compare`` with these methods.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polytopic.errors import PolytopicError
from polytopic.experiments.baselines import (
    TREES,
    fasttext_epochs,
    label_numbers,
    repeated_words,
)
from polytopic.experiments.methods import (
    Method,
    Predictor,
    predict_by_scores,
    threshold_or_best,
)
from polytopic.experiments.protocols import Part
from polytopic.experiments.runner import add_other_process

VARIABLE = "POLYTOPIC_ANNIF"
INSTALL = (
    "Annif is not installed: python -m venv annif, annif/bin/pip install "
    f"'annif[omikuji,fasttext]', and set {VARIABLE}=annif/bin/python."
)


def annif_python() -> str | None:
    """Return the Python that has Annif: the one the environment variable names, else this one."""
    named = os.environ.get(VARIABLE)
    return named or (sys.executable if find_spec("annif") is not None else None)


def find_missing() -> str | None:
    """Return how to install Annif, or None if it is installed."""
    python = annif_python()
    if python is None:
        return INSTALL
    if not os.access(python, os.X_OK):
        return f"{VARIABLE} == {python!r}, must be the Python of an environment with Annif."
    return None


class Worker:
    """A process in Annif's environment that trains and suggests."""

    def __init__(self, python: str):
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # open as long as the process
        self.process = subprocess.Popen(  # the user names this Python
            [python, str(Path(__file__).with_name("annif_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )

    def ask(self, **asked) -> None:
        """Send a request, wait for it, and count its cost."""
        assert self.process.stdin is not None and self.process.stdout is not None  # noqa: S101, PT018
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PolytopicError(f"Annif ended: {self._last_error()}")
        answer = json.loads(line)
        if "failure" in answer:
            raise PolytopicError(f"Annif failed: {answer['failure']}")
        add_other_process(answer["seconds"], answer["memory_mb"])

    def _last_error(self) -> str:
        self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return lines[-1] if lines else f"code {self.process.returncode}."

    def __del__(self):
        self.process.kill()
        self.process.wait()


def fit_annif(train: Part, settings: Mapping[str, Any], seed: int) -> Predictor:
    """Train a back end of Annif on the terms of documents.

    Annif's own analyzers need downloads, so its words are the terms that all methods get.
    """
    settings = dict(settings)
    if settings["backend"] == "fasttext":
        settings = {"epoch": fasttext_epochs(train), **settings}
    threshold = settings.pop("threshold", 0.5)
    python = annif_python()
    if python is None:
        raise PolytopicError(INSTALL)
    worker = Worker(python)
    worker.ask(
        learn=_texts(train),
        labels=list(label_numbers(train.Y)),
        n_labels=train.Y.shape[1],
        settings={name: str(value) for name, value in settings.items()},
    )

    def scores(part: Part) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores.npz"
            worker.ask(suggest=_texts(part), to=str(path))
            found = sparse.load_npz(path).toarray().astype(float)
        return np.where(found > 0, found, -np.inf)

    return predict_by_scores(train, scores, threshold)


def _texts(part: Part) -> list[str]:
    return [" ".join(f"t{word}" for word in words) for words in repeated_words(part.X)]


def _back_end(name: str, title: str, **settings) -> Method:
    return Method(
        f"annif-{name}",
        f"Annif, {title}",
        fit_annif,
        settings={"backend": name, "limit": 100, **settings, "threshold": 0.5},
        decide=threshold_or_best,
        find_missing=find_missing,
    )


ANNIF = [
    _back_end("tfidf", "TF-IDF"),
    _back_end("omikuji", "Omikuji (Bonsai)", **TREES["bonsai"]),
    _back_end("fasttext", "fastText", dim=100, lr=0.5, loss="ova"),
    _back_end("svc", "SVC, one label learned"),
]
