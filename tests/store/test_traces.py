"""Nothing of a forgotten document is in the raw bytes of a store's files, whatever came before."""

import json
import random
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest

from polytopic import Document
from polytopic.errors import UnavailableError
from polytopic.store import Store
from tests.store.plain import open_store

LETTERS = "abcdefghijklmnopqrstuvwxyzčňž"
COMMON = [f"common{k}" for k in range(200)]


def raw(*files):
    """Return the bytes of files of a store.

    Another process reads them: SQLite loses its locks if this one opens and closes its files.
    """
    return subprocess.run(["/bin/cat", *files], capture_output=True, check=True).stdout


def traces(path, marks):
    """Return the marks that are in the files of a store, as they are or escaped for JSON."""
    content = raw(*Path(path).parent.glob(Path(path).name + "*"))
    return [
        mark
        for mark in marks
        if any(form in content for form in (mark.encode(), json.dumps(mark)[1:-1].encode()))
    ]


class Life:
    """A store that is changed at random, and the marks of each document that it knows."""

    def __init__(self, store, seed):
        self.store, self.rng = store, random.Random(seed)
        self.marks: dict[str, set] = {}  # of documents by id: ids, words and labels
        self.gone: list[str] = []

    def word(self):
        """Return a word that no other document has."""
        return "".join(self.rng.choices(LETTERS, k=self.rng.randrange(9, 14)))

    def document(self, name):
        """Return a document, and record its marks; long ones take more than a page."""
        own = [self.word() for _ in range(self.rng.randrange(1, 4))]
        text = own + self.rng.choices(COMMON, k=self.rng.choice([0, 5, 60, 900]))
        labels = ["sport", self.word()] if self.rng.random() < 0.3 else ["sport"]
        if self.rng.random() < 0.2:  # a model assigns labels of others to it
            labels = []
        self.marks.setdefault(name, {name}).update(own, labels[1:])
        return Document(name, " ".join(text), labels=labels)

    def document_of_its_own(self):
        """Return a document whose label, which may be long, no other document has."""
        name, label, word = self.word(), self.word() + "y" * self.rng.randrange(200), self.word()
        self.marks[name] = {name, label, word}
        common = self.rng.choices(COMMON, k=self.rng.choice([0, 5, 60]))
        return Document(name, " ".join([word, *common]), labels=[label])

    def some(self):
        """Return some known ids."""
        known = sorted(self.marks)
        return self.rng.sample(known, min(len(known), self.rng.randrange(1, 25)))

    def learn(self):
        """Learn new documents, whose ids may be long."""
        names = [
            self.word() + "x" * self.rng.choice([0, 0, 300]) for _ in range(self.rng.randrange(40))
        ]
        self.store.learn([self.document(name) for name in names])

    def correct(self):
        """Learn other texts under known ids."""
        self.store.learn([self.document(name) for name in self.some()])

    def relabel(self):
        """Give documents labels of their own."""
        labels = {name: [self.word()] for name in self.some()}
        for name, (label,) in labels.items():
            self.marks[name].add(label)
        self.store.relabel(labels)

    def publish(self):
        """Publish a model, which deletes older ones."""
        if self.store.info()["labelled"]:
            self.store.publish(keep=3)

    def assign(self):
        """Assign topics to all documents that have none from the current model."""
        if self.store.info()["labelled"]:
            self.store.assign()

    def search(self):
        """Find documents by a word that many have, for which all words are indexed."""
        assert len(self.store.find(text="common1", k=1000)) <= len(self.marks)

    def forget(self):
        """Forget documents, with the models that have seen them."""
        names = self.some()
        self.store.forget(names, purge=True)
        for name in names:
            self.gone += self.marks.pop(name)


def live(path, seed, steps):
    """Change a store at random, and look for traces whenever something is forgotten."""
    with open_store(path, keep_texts=True) as store:
        life = Life(store, seed)
        life.learn()
        for _ in range(steps):
            kinds = ["learn", "learn", "correct", "relabel", "publish", "forget", "forget"]
            kinds += ["assign", "assign", "search"]
            kind = life.rng.choice(kinds)
            getattr(life, kind)()
            if kind == "forget":
                assert traces(path, life.gone) == []
        kept = [mark for marks in life.marks.values() for mark in marks]
        assert traces(path, kept) == kept
        assert store.verify().problems == []
        store.forget(list(life.marks), purge=True)
        assert traces(path, life.gone + kept) == []
    assert traces(path, life.gone + kept) == []


@pytest.mark.parametrize("seed", range(2))
def test_a_random_history_leaves_no_trace(path, seed):
    """However documents came, were corrected and went, no id, word or label of them is left."""
    live(path, seed, steps=30)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 112))
def test_a_long_random_history_leaves_no_trace(path, seed):
    """The same for longer histories."""
    live(path, seed, steps=80)


def test_hundreds_of_labels_leave_no_trace(path):
    """Labels that fill many pages of a B-tree, which SQLite balances, are erased as well."""
    with open_store(path) as store:
        life = Life(store, seed=0)
        for _ in range(3):
            documents = [life.document_of_its_own() for _ in range(300)]
            store.learn(documents)
            names = life.rng.sample(sorted(life.marks), 150)

            store.forget(names)

            life.gone += [mark for name in names for mark in life.marks.pop(name)]
            assert traces(path, life.gone) == []


SECRET = Document("secret-id", "unheard syllables xylophone", labels=["private"])
OTHERS = [Document(f"other-{k}", f"goal match goal{k}", labels=["sport"]) for k in range(8)]
MARKS = ["secret-id", "unheard", "xylophone", "private"]


def reader_of(path):
    """Return a connection that keeps reading a store as it is now."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM polytopic_documents").fetchone()
    return connection


def test_a_blocking_reader_is_reported(path):
    """Forgetting says so if a reader keeps traces in the log; forgetting again erases them."""
    with open_store(path, keep_texts=True, timeout=0.3) as store:
        store.learn([SECRET, *OTHERS])
        reader = reader_of(path)

        with pytest.raises(UnavailableError, match=r"are deleted, but copies .* 0.3 seconds"):
            store.forget(["secret-id"])

        assert store.document("secret-id") is None
        assert store.info()["erasure_pending"]
        reader.close()
        assert store.forget(["secret-id"]).missing == ["secret-id"]
        assert not store.info()["erasure_pending"]
        assert traces(path, MARKS) == []


def test_forgetting_waits_for_a_reader(path):
    """Forgetting waits for a reader that ends in time."""
    with open_store(path, keep_texts=True) as store:
        store.learn([SECRET, *OTHERS])
        reader = reader_of(path)
        threading.Timer(0.5, reader.close).start()

        store.forget(["secret-id"])

        assert traces(path, MARKS) == []


def test_others_write_while_forgetting_waits(path):
    """A process that waits for a reader while forgetting does not block other writers."""
    with open_store(path, timeout=60) as store, open_store(path, timeout=5) as other:
        store.learn([SECRET, *OTHERS])
        reader = reader_of(path)
        waiting = threading.Thread(target=store.forget, args=(["secret-id"],))
        waiting.start()
        while other.document("secret-id") is not None:
            time.sleep(0.01)

        for k in range(5):
            assert other.learn([Document(f"more-{k}", "goal", labels=["sport"])]).learned == 1

        assert waiting.is_alive()
        reader.close()
        waiting.join()
        assert traces(path, MARKS) == []


@pytest.mark.parametrize("change", ["learn", "relabel", "publish"])
def test_the_next_change_erases_remaining_traces(path, change):
    """If a process could not erase traces, the next change of the store does."""
    with open_store(path, keep_texts=True, timeout=0) as store:
        store.learn([SECRET, *OTHERS])
        for _ in range(2):
            store.publish(keep=1, labels=["sport"])
        reader = reader_of(path)
        with pytest.raises(UnavailableError):
            store.forget(["secret-id"])
        assert traces(path, MARKS) == MARKS
    with open_store(path) as store:
        reader.close()

        if change == "learn":
            store.learn([Document("next", "match", labels=["sport"])])
        elif change == "relabel":
            store.relabel({"other-1": ["space"]})
        else:
            store.publish(keep=1, labels=["sport"])

        assert traces(path, MARKS) == []
        assert not store.info()["erasure_pending"]


def test_an_unknown_id_costs_nothing(path):
    """Forgetting an unknown id writes nothing."""
    with open_store(path) as store:
        store.learn(OTHERS)
        before = [raw(file) for file in (path, f"{path}-wal")]

        assert store.forget(["unknown"]).missing == ["unknown"]

        assert [raw(file) for file in (path, f"{path}-wal")] == before


def test_forgetting_one_document_writes_little(path):
    """Forgetting logs only a small part of a store that consists mostly of texts."""
    words = " ".join(COMMON)
    with open_store(path, keep_texts=True) as store:
        store.learn([Document(str(k), f"{words} own{k}", labels=["sport"]) for k in range(1000)])
        store.forget(["0"])
        pages = Path(path).stat().st_size // 4096
        reader = reader_of(path)  # keeps what is written in the log

        with Store(path, timeout=0) as impatient, pytest.raises(UnavailableError):
            impatient.forget(["1"])

        assert Path(f"{path}-wal").stat().st_size // 4096 < pages / 10
        reader.close()


def test_files_shrink_when_most_is_forgotten(path):
    """The file is then rewritten without free space."""
    words = " ".join(COMMON)
    with open_store(path, keep_texts=True) as store:
        store.learn([Document(str(k), f"{words} own{k}", labels=["sport"]) for k in range(400)])
    size = Path(path).stat().st_size
    with open_store(path) as store:
        for k in range(0, 400, 50):
            store.forget([str(n) for n in range(k, k + 45)])

        assert Path(path).stat().st_size < size / 3
        assert store.verify().documents == 40
        assert store.verify().ok


def test_stores_of_earlier_releases_leave_no_trace(path):
    """A store whose rows an earlier release has moved is rewritten when it first forgets one."""
    with open_store(path, keep_texts=True) as store:
        store.learn([SECRET, *OTHERS])
        store.publish(labels=["sport"])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE polytopic_models SET marked = 1")
    connection.execute("PRAGMA secure_delete = OFF")  # leaves the traces that a moved row leaves
    connection.execute("DELETE FROM polytopic_documents WHERE document = 'other-3'")
    connection.execute("PRAGMA user_version = 0")
    connection.execute("UPDATE polytopic_settings SET value = '1' WHERE name = 'schema'")
    connection.commit()
    connection.close()
    assert traces(path, ["goal3"]) == ["goal3"]

    with Store(path) as store:
        assert store.forget(["unknown"], purge=True).purged_models == [1]
        store.forget(["secret-id"])
        assert [d.id for d in store.documents()] == [d.id for d in OTHERS if d.id != "other-3"]

    connection = sqlite3.connect(path)
    schema = connection.execute("SELECT value FROM polytopic_settings WHERE name = 'schema'")
    assert schema.fetchone() == ("3",)
    connection.close()
    assert b"match goal3" not in raw(path)
