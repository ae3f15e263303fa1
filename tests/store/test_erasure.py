"""What was forgotten is nowhere any more: not in the files, not in the models."""

import random
from dataclasses import replace
from string import ascii_lowercase as LETTERS  # noqa: N812

import pytest

from polytopic import Document
from polytopic.store import Store
from tests.store.plain import open_store

SECRET = Document("secret-id", "unheard syllables xylophone", labels=["private"])
OTHERS = [
    Document("1", "goal match goal", labels=["sport"], time="2024-01-01"),
    Document("2", "mars orbit rover", labels=["space"], time="2024-02-01"),
]


def raw(path):
    """Return the bytes of all files of a store."""
    return b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))


@pytest.mark.parametrize("keep_texts", [False, True])
def test_no_byte_of_it_is_left(path, keep_texts):
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
    """Nor is it where many documents come and go, and the database moves its pages."""
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
            left = raw(path)
            assert all(part in left for part in kept)
            assert not [part for part in gone if part in left]
        assert store.verify().ok


def test_models_that_saw_it_are_marked(url):
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
    """Return a fitted labeler of which the store does not know what it has seen."""
    labeler = store.fit()
    labeler.state_ = replace(labeler.state_, origin=None)
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
    """A published model comes back as it was, with what it was fitted on and what was said."""
    with Store(url) as store:
        store.learn(OTHERS)
        number = store.publish(note="first")
        store.publish(model="nb", since="2024-01-15")
        last, first = store.history()

        assert (first.id, first.name, first.note, first.current) == (number, "pmm1", "first", False)
        assert (last.name, last.note, last.current, last.marked) == ("nb", None, True, None)
        assert last.origin.since == "2024-01-15T00:00:00.000000+00:00"
        assert last.origin.revision == store.current().origin_.revision == 1
        assert store.current().predict(["goal"]) == [["space"]]
        assert first.bytes > 0
        assert first.to_dict()["note"] == "first"
