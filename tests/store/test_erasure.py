"""A forgotten document is gone: from the files and from the models."""

import json
import random
import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from string import ascii_lowercase as LETTERS  # noqa: N812

import pytest
from sqlalchemy import create_engine, insert, inspect

from polytopic import Document
from polytopic.errors import StoreError
from polytopic.store import Store, schema
from tests.store.plain import open_store

SECRET = Document("secret-id", "unheard syllables xylophone", labels=["private"])
OTHERS = [
    Document("1", "goal match goal", labels=["sport"], time="2024-01-01"),
    Document("2", "mars orbit rover", labels=["space"], time="2024-02-01"),
]


def raw(path):
    """Return the bytes of all files of a store, read by a process that holds no locks on them."""
    files = path.parent.glob(path.name + "*")
    return subprocess.run(["/bin/cat", *files], capture_output=True, check=True).stdout


@pytest.mark.parametrize("keep_texts", [False, True])
def test_no_byte_is_left(path, keep_texts):
    """After forgetting, no word, id or text of any version is in the database's files."""
    marks = [b"secret-id", b"unheard", b"syllables", b"xylophone", b"erstwhile"]
    with open_store(path, keep_texts=keep_texts) as store:
        store.learn([*OTHERS, Document("secret-id", "erstwhile words", labels=["sport"])])
        store.learn([SECRET])
        assert all(mark in raw(path) for mark in marks)

        store.forget(["secret-id"])

        assert not [mark for mark in marks if mark in raw(path)]
    assert not [mark for mark in marks if mark in raw(path)]
    assert b"goal" in raw(path)


def test_no_byte_is_left_among_many(path):
    """The same if many documents come and go, and the database moves its pages."""
    rng = random.Random(0)
    kept, gone = [], []
    with open_store(path, keep_texts=True) as store:
        for k in range(12):
            marks = [(f"id-{k}-{n}-", "".join(rng.choices(LETTERS, k=10))) for n in range(60)]
            longer = {mark: mark + "x" * rng.randrange(400) for mark, _ in marks}
            store.learn([Document(longer[i], f"goal {w} " * 9, labels=["sport"]) for i, w in marks])
            rng.shuffle(marks)

            store.forget([longer[mark] for mark, _ in marks[:25]])

            gone += [part.encode() for pair in marks[:25] for part in pair]
            kept += [part.encode() for pair in marks[25:] for part in pair]
            content = raw(path)
            assert all(part in content for part in kept)
            assert not [part for part in gone if part in content]
        assert store.verify().ok


def test_models_that_saw_a_forgotten_document_are_marked(url):
    """Only models fitted on a forgotten document are marked, and only once."""
    with open_store(url) as store:
        store.learn(OTHERS)
        before = store.publish(note="fitted before it came")
        store.learn([SECRET])
        after = store.publish(model="nb")
        then = store.publish(as_of=1)
        window = store.publish(until="2024-01-15")
        labels = store.publish(labels=["space"])
        store.relabel({"secret-id": ["sport"]})
        relabelled = store.publish(labels=["private", "space"])
        with_label = store.publish(labels=["sport"])
        elsewhere = store.publish(_from_elsewhere(store))
        assert [before, after, then, window, labels, relabelled, with_label, elsewhere] == [
            1, 2, 3, 4, 5, 6, 7, 8,
        ]  # fmt: skip

        receipt = store.forget(["secret-id"])

        assert receipt.marked_models == [after, with_label, elsewhere]
        marked = {one.id for one in store.history() if one.marked == receipt.revision_after}
        assert marked == {after, with_label, elsewhere}
        assert [one.id for one in store.history() if one.current] == [elsewhere]
        assert store.forget(["2"]).marked_models == [before, then, labels, relabelled]
        assert store.history()[-1].marked == store.revision


def _from_elsewhere(store):
    """Return a fitted labeler whose training documents the store does not know."""
    labeler = store.fit()
    labeler.state_ = replace(labeler.state_, fitted_from=None)
    return labeler


def test_purging_deletes_models(path):
    """Models that saw it are deleted, with those marked before; the newest other one answers."""
    with open_store(path) as store:
        store.learn(OTHERS)
        store.publish(as_of=1, labels=["space"])
        first = store.current().classes_.tolist()
        store.publish()
        store.learn([SECRET])
        store.publish(model="nb")
        assert b"xylophone" in raw(path)
        assert store.forget(["1"]).marked_models == [2, 3]

        receipt = store.forget(["secret-id"], purge=True)

        assert (receipt.purged_models, receipt.marked_models) == ([2, 3], [])
        assert [(one.id, one.current) for one in store.history()] == [(1, True)]
        assert store.current().classes_.tolist() == first
        assert b"xylophone" not in raw(path)

        assert store.forget(["2"], purge=True).purged_models == [1]
        assert store.current() is None
        assert store.history() == []


def test_published_models_answer(url):
    """A published model loads as it was, with its origin and its note."""
    with Store(url) as store:
        store.learn(OTHERS)
        number = store.publish(note="first")
        store.publish(model="nb", since="2024-01-15")
        last, first = store.history()

        assert (first.id, first.name, first.note, first.current) == (number, "pmm1", "first", False)
        assert (last.name, last.note, last.current, last.marked) == ("nb", None, True, None)
        assert last.origin.since == "2024-01-15T00:00:00.000000+00:00"
        assert last.origin.revision == store.current().state_.fitted_from.selection.revision == 1
        assert store.current().predict(["goal"]) == [["space"]]
        assert first.bytes > 0
        assert first.to_dict()["note"] == "first"


# Stored receipts and their keys


def everything(url):
    """Return the contents of all tables of a store, and the bytes of its files, as one text."""
    is_file = "://" not in str(url)
    engine = create_engine(f"sqlite:///{url}" if is_file else url)
    with engine.connect() as connection:
        rows = [
            [*map(_readable, row)]
            for name in inspect(connection).get_table_names()
            for row in connection.exec_driver_sql(f'SELECT * FROM "{name}"')  # noqa: S608
        ]
    engine.dispose()
    files = raw(Path(url)).decode("latin-1") if is_file else ""
    return json.dumps(rows, ensure_ascii=False) + files


def _readable(value):
    return bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else value


@pytest.mark.parametrize("purge", [False, True])
def test_no_name_is_left_in_receipts(url, purge):
    """Stored receipts and their keys hold no id and no label of a forgotten document."""
    secrets = ["secret-id", "private", "hidden", "xylophone", "unknown-id"]
    with open_store(url) as store:
        store.learn(OTHERS)
        store.learn([SECRET], key="secret-id learned")
        store.relabel({"secret-id": ["hidden"], "unknown-id": []}, key="secret-id relabelled")
        assert "hidden" in everything(url)

        store.forget(["secret-id", "unknown-id"], key="secret-id forgotten", purge=purge)
        store.forget(["secret-id"], key="secret-id forgotten again", purge=purge)

        assert not [secret for secret in secrets if secret in everything(url)]
    assert not [secret for secret in secrets if secret in everything(url)]


@pytest.mark.parametrize("purge", [False, True])
def test_a_repeat_gives_the_same_receipt(url, purge):
    """It has everything that does not concern forgotten documents, and nothing is done twice."""
    with open_store(url) as store:
        store.learn(OTHERS, key="others")
        calls = [
            lambda: store.learn([SECRET], key="learn"),
            lambda: store.relabel({"secret-id": ["hidden"], "nobody": ["sport"]}, key="relabel"),
        ]
        first = [call() for call in calls]
        assert [call() for call in calls] == first
        assert (first[0].new_labels, first[1].new_labels) == (["private"], ["hidden"])
        assert (first[1].gone_labels, first[1].missing) == (["private"], ["nobody"])

        forgotten = store.forget(["nobody", "secret-id"], purge=purge, key="forget")
        revision = store.revision

        assert (forgotten.forgotten, forgotten.gone_labels) == (1, ["hidden"])
        again = store.forget(["nobody", "secret-id"], purge=purge, key="forget")
        assert again == replace(forgotten, gone_labels=[])
        assert again.missing == ["nobody"]
        assert [call() for call in calls] == [replace(one, gone_labels=[]) for one in first]
        assert store.revision == revision
        with pytest.raises(StoreError, match="the key 'forget' was used for a different request"):
            store.forget(["2"], key="forget")


def test_receipts_of_earlier_releases(url):
    """They answer a repeated request, and are deleted once something is forgotten."""
    request = ["forget", [["secret-id"], False]]
    with open_store(url) as store:
        store.learn(OTHERS)
        receipt = replace(store.learn([SECRET]), action="forget", gone_labels=["private"])
    row = {
        "key": "of secret-id",
        "request": sha256(json.dumps(request).encode()).hexdigest(),
        "receipt": json.dumps(receipt.to_dict()),
        "time": receipt.time,
    }
    engine = create_engine(f"sqlite:///{url}" if "://" not in url else url)
    with engine.begin() as connection:
        connection.execute(insert(schema.requests), row)
    engine.dispose()
    with open_store(url) as store:
        assert store.forget(["secret-id"], key="of secret-id") == receipt
        with pytest.raises(StoreError, match="used for a different request"):
            store.forget(["1"], key="of secret-id")

        store.forget(["secret-id"])

        assert "secret-id" not in everything(url)
        assert "private" not in everything(url)
