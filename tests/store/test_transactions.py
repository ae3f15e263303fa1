"""Long reads of a store block nobody: models are fitted after the read transaction ends."""

import sqlite3

import pytest

from polytopic import Document
from polytopic.store import reader
from tests.store.plain import open_store

DOCUMENTS = [
    Document(str(k), f"{word} {word} match", labels=[label])
    for k, (word, label) in enumerate([("goal", "sport"), ("mars", "space")] * 6)
]


@pytest.mark.parametrize("model", ["pmm1", "mml"])
@pytest.mark.parametrize("call", ["fit", "publish", "refresh"])
def test_nobody_reads_while_a_model_is_fitted(path, model, call, monkeypatch):
    """The log can be emptied while a model is fitted."""
    busy = []

    def noting(method):
        def fit(labeler, *arguments, **options):
            with sqlite3.connect(path, timeout=0) as connection:
                busy.append(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            connection.close()
            return method(labeler, *arguments, **options)

        return fit

    for name in ("learn_counts", "learn_rows"):
        monkeypatch.setattr(reader, name, noting(getattr(reader, name)))
    with open_store(path, model=model) as store:
        store.learn(DOCUMENTS)
        if call == "refresh":
            store.publish()
            store.learn([Document("last", "rover orbit", labels=["space"])])
            busy.clear()

        getattr(store, call)()

    assert busy == [0]
