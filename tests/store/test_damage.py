"""A damaged SQLite file is reported in one sentence, whatever you do with it."""

import random
import shutil
import warnings

import pytest

from polytopic import Document, LabelTree
from polytopic.errors import PolytopicError, StoreWarning
from polytopic.store import Store
from polytopic.store.transfer import export_lines
from tests.store.plain import open_store

PAGE = 4096  # bytes of a page of SQLite
WORDS = [a + b + c for a in "bcdfg" for b in "aeiou" for c in "klmnp"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return the path of a store with rows in every table; do not change it."""
    path = tmp_path_factory.mktemp("sound") / "store.db"
    rng = random.Random(0)
    tree = LabelTree({"sport": "news", "space": "news", "grain": "news"}, names={"sport": "Sport"})
    documents = [
        Document(
            f"id-{k}",
            " ".join(rng.choices(WORDS, k=rng.randrange(1, 400))),
            labels=rng.sample(["sport", "space", "grain"], k=rng.randrange(3)),
            time=rng.choice([None, "2024-01-01", "2025-06-01"]),
        )
        for k in range(60)
    ]
    with open_store(path, keep_texts=True, tree=tree) as store:
        store.learn(documents[:40], key="first")
        store.publish(note="first")
        store.learn(documents[40:])
        store.relabel({f"id-{k}": ["space"] for k in range(9)}, key="second")
        store.publish(model="nb", since="2024-02-01", labels=["space", "sport"])
        store.forget(["id-59"])
        store.rollback(1)
        store.tokens.create("one", "read", "x" * 64)
    return path


def damage(content, rng):
    """Return the bytes of a file, damaged in one of several ways."""
    content = bytearray(content)
    place = rng.randrange(len(content))
    page = place // PAGE * PAGE
    way = rng.randrange(6)
    if way == 0:
        for _ in range(rng.choice([1, 1, 3, 30])):
            content[rng.randrange(100, len(content))] ^= 1 << rng.randrange(8)
    elif way == 1:
        content[page : page + PAGE] = bytes(len(content[page : page + PAGE]))
    elif way == 2:
        del content[place:]
    elif way == 3:
        content[place : place + 64] = rng.randbytes(len(content[place : place + 64]))
    elif way == 4:  # where pages describe their contents
        content[page + rng.randrange(min(200, len(content) - page))] = rng.randrange(256)
    else:
        other = rng.randrange(len(content) // PAGE) * PAGE
        content[page : page + PAGE] = content[other : other + PAGE]
    return bytes(content)


def uses(path, other):
    """Yield every kind of call on a store."""
    more = Document("id-1", "bak bal bam new", labels=["sport", "new"], time="2025-01-01")
    with open_store(path) as store:
        yield from (
            store.verify,
            store.info,
            store.counts,
            lambda: store.counts(as_of=1),
            lambda: store.counts(since="2024-06-01", labels=["news"]),
            lambda: list(store.documents()),
            lambda: store.document("id-3"),
            store.timeline,
            lambda: store.drift(by="year"),
            lambda: store.diff(1),
            store.history,
            store.monitor.state,
            store.tokens.all,
            lambda: store.tokens.role_of("x" * 64),
            lambda: store.tree,
            store.fit,
            lambda: store.labeler().map(),
            lambda: list(export_lines(store)),
            lambda: _merge(other, store),
            lambda: store.relabel({f"id-{k}": ["space"] for k in range(9)}, key="second"),
            lambda: store.learn([more], key="third"),
            lambda: store.learn([more, Document("id-99", "bak")], key="third and a half"),
            lambda: store.relabel({"id-2": ["grain"], "id-4": []}),
            lambda: store.publish(model="nb"),
            lambda: store.rollback(1),
            lambda: store.tokens.create("two", "admin", "y" * 64),
            lambda: store.forget(["id-5", "id-6"], purge=False),
            store.refresh,
            lambda: store.forget(["id-7"], purge=True),
            store.verify,
        )


def _merge(path, other):
    with Store(path, analyzer=other.analyzer) as store:
        store.merge(other)


def messages_of_failures(path, other):
    """Make every kind of call; return the messages, of PolytopicErrors only, of those that fail."""
    messages = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        steps = uses(path, other)
        while True:
            try:
                step = next(steps)
            except StopIteration:
                return messages
            except PolytopicError as error:  # it cannot be opened
                return [str(error)]
            try:
                step()
            except PolytopicError as error:
                messages.append(str(error))


def check_damaged(sound, folder, seeds):
    """Damage a file in many ways, and use each copy."""
    content, failed = sound.read_bytes(), 0
    for seed in seeds:
        path, other = folder / f"{seed}.db", folder / f"{seed}-other.db"
        path.write_bytes(damage(content, random.Random(seed)))

        messages = messages_of_failures(path, other)

        failed += bool(messages)
        for sentence in messages:
            assert sentence.endswith("."), (seed, sentence)
            assert "\n" not in sentence, (seed, sentence)
            assert "trying again is safe" not in sentence, (seed, sentence)
        for file in folder.iterdir():
            file.unlink()
    return failed


def test_a_sound_file_does_not_fail(sound, tmp_path):
    """The calls below fail only if something is damaged."""
    path = shutil.copy(sound, tmp_path / "copy.db")

    assert messages_of_failures(path, tmp_path / "other.db") == []


def test_damaged_files(sound, tmp_path):
    """Library calls on a damaged file succeed or raise a PolytopicError."""
    assert check_damaged(sound, tmp_path, range(30)) > 10


@pytest.mark.long
def test_many_damaged_files(sound, tmp_path):
    """The same with many files."""
    assert check_damaged(sound, tmp_path, range(1000, 1600)) > 200
