"""Documents and trees in every format: any file is read, or rejected in one sentence."""

import logging
import warnings
from pathlib import Path
from random import Random

import pytest

from polytopic import LabelTree
from polytopic.corpus import Document, read_documents
from polytopic.errors import PolytopicError
from tests.fuzz.fuzzing import fuzz, seeds
from tests.fuzz.mutation import mutated_bytes

NAMED = {"ohsumed", "annif"}  # formats without a file extension
DOCUMENTS = [(path.name, path.read_bytes()) for path in seeds("documents")]
TREES = [(path.name, path.read_bytes()) for path in seeds("trees")]


def mutated_file(file: tuple[str, bytes], random: Random) -> tuple[str, bytes]:
    """Return a file of the same name with other bytes."""
    return file[0], mutated_bytes(file[1], random)


def read_file(path: Path) -> None:
    """Read documents twice: stopping at invalid lines, and skipping them."""
    format = path.suffix[1:] if path.suffix[1:] in NAMED else None
    for on_error in ("stop", "skip"):
        try:
            for document in read_documents(path, format=format, on_error=on_error):
                assert isinstance(document, Document)
                assert all(isinstance(label, str) for label in document.labels)
        except PolytopicError:
            continue


def read_tree(path: Path) -> None:
    """Read a tree, whose labels and names must be strings."""
    try:
        tree = LabelTree.from_file(path)
    except (PolytopicError, ValueError):
        return
    assert all(isinstance(tree.name(label), str) for label in tree.nodes)


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(("read", "files"), [(read_file, DOCUMENTS), (read_tree, TREES)])
def test_files(tmp_path, caplog, read, files, long):
    """Seeds are read, and so is any file that differs from one of them."""
    # rdflib logs parts of a file, even half characters, which pytest-xdist cannot send
    caplog.set_level(logging.CRITICAL + 1)

    def target(file):
        path = tmp_path / file[0]
        path.write_bytes(file[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)

    for file in files:
        target(file)
    assert fuzz(target, files, mutated_file, long=long) > 0
