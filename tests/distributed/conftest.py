"""A cluster of two worker processes, and the sample's documents in files."""

import json

import pytest

from polytopic import Labeler
from polytopic.corpus import load_sample, read_documents, write_documents
from polytopic.distributed import connect


@pytest.fixture(scope="session")
def client():
    """Return the client of two worker processes."""
    with connect(workers=2) as client:
        yield client


@pytest.fixture(scope="session")
def news(tmp_path_factory):
    """Return a file of the sample, without ids and with a test part."""
    folder = tmp_path_factory.mktemp("news")
    path = folder / "news.jsonl"
    lines = []
    for number, document in enumerate(load_sample()):
        values = document.to_dict() | {"split": "train" if number % 4 else "test"}
        del values["id"]
        lines.append(json.dumps(values) + "\n" * (1 + (number % 9 == 0)))  # some blank lines
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="session")
def documents(news):
    """Return the documents of that file."""
    return list(read_documents(news))


@pytest.fixture(scope="session")
def pmm1(documents):
    """Return a labeler that was fitted on one machine, on the training part."""
    return Labeler("pmm1").fit([d for d in documents if d.split == "train"])


@pytest.fixture(scope="session")
def forms(news, documents, tmp_path_factory):
    """Return the same documents in several formats."""
    folder = tmp_path_factory.mktemp("forms")
    for place in range(3):
        part = documents[place * 120 : (place + 1) * 120]
        write_documents(part, folder / f"part-{place}.jsonl.gz")
        write_documents(part, folder / f"part-{place}.csv")
    return folder
