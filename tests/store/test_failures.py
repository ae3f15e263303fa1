"""Failures around a store are reported in one sentence, and harm nothing."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from polytopic import Document, LabelTree
from polytopic.errors import StoreError
from polytopic.files import is_database
from polytopic.store import Store
from polytopic.store.transfer import export_lines, import_lines
from polytopic.store.writer import Writer
from tests.store.children import forget_within, learn_within, open_as_nobody
from tests.store.plain import open_store
from tests.store.processes import answer

DOCUMENT = Document("1", "goal match", labels=["sport"])
MANY = [
    Document(str(k), " ".join(f"{a}{b}{c}" for a in "abcdefgh" for b in "klmnop" for c in "uvw"))
    for k in range(1000, 1400)
]


def one_sentence(error, *parts):
    """Return whether an error is one sentence with these parts, not another library's text."""
    message = str(error)
    assert "\n" not in message
    assert "Traceback" not in message
    assert "sqlalche.me" not in message
    assert message.endswith(".")
    assert all(part in message for part in parts), message
    return True


# Wrong places


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "url == '', must be a file"),
        ("nonsense://", "must be a file, or begin with sqlite:/// or postgresql+psycopg://"),
        ("http://example.org/a.db", "must be a file, or begin with sqlite:///"),
        ("postgresql+nodriver://localhost/a", "must be a file, or begin with sqlite:///"),
        ("mysql://localhost/a", "must be a file, or begin with sqlite:///"),
        ("postgresql://localhost:port/a", "must be a file or the URL of a database"),
        ("://", "must be a file or the URL of a database"),
        ("sqlite://", "must name a file; a store in memory would be lost"),
        ("sqlite:///:memory:", "must name a file; a store in memory would be lost"),
        (":memory:", "must name a file; a store in memory would be lost"),
        ("no/folder/a.db", "it cannot be opened; its folder must exist"),
        ("sqlite:///no/folder/a.db", "it cannot be opened; its folder must exist"),
        ("a" * 300 + ".db", "it cannot be opened; its folder must exist"),
        ("postgresql://127.0.0.1:1/a", "the database does not answer ("),
        ("postgresql://u:geheim@127.0.0.1:1/a", "the database does not answer ("),
        ("postgresql:///a?host=/no/folder", "the database does not answer ("),
    ],
)
def test_a_wrong_url_is_reported(url, sentence, tmp_path, monkeypatch):
    """A wrong URL is rejected at once, without showing passwords or creating a file."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreError) as error:
        Store(url)

    assert one_sentence(error.value, sentence)
    assert "geheim" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("content", ["just a text\n" * 500, "x"])
def test_a_text_file_is_not_a_store(path, content, create):
    """A file with other contents is left as it is."""
    path.write_text(content)

    with pytest.raises(StoreError) as error:
        Store(path, create=create)

    assert one_sentence(error.value, "is not an SQLite database")
    assert path.read_text() == content


@pytest.mark.parametrize("target", ["nowhere.db", "link.db"])
def test_a_link_to_nothing_is_not_a_store(tmp_path, target):
    """Reading through a link creates nothing; a new store is created at its target."""
    link = tmp_path / "link.db"
    link.symlink_to(target)

    with pytest.raises(StoreError) as error:
        Store(link, create=False)

    assert one_sentence(error.value, "does not exist; create a store with polytopic store init")
    assert list(tmp_path.iterdir()) == [link]
    if target == "nowhere.db":
        Store(link).close()
        assert (tmp_path / target).is_file()
    else:  # a link to itself
        with pytest.raises(StoreError, match="it cannot be opened"):
            Store(link)


def test_a_folder_is_not_a_store(tmp_path):
    """A folder cannot be opened."""
    with pytest.raises(StoreError) as error:
        Store(tmp_path)

    assert one_sentence(error.value, "it cannot be opened")


@pytest.mark.parametrize("create", [True, False])
def test_another_programs_database_is_left_alone(path, create):
    """An SQLite database of another program is rejected, and not one byte of it changes."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (name)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError) as error:
        Store(path, create=create)

    assert one_sentence(error.value, "is a database of another program, not a polytopic store")
    assert path.read_bytes() == before


def test_another_programs_database_can_hold_a_store(server):
    """In PostgreSQL, a store and other tables share a database."""
    url = server.new_url()
    _run_sql(url, "CREATE TABLE songs (name text)")

    with Store(url) as store:
        assert store.learn([DOCUMENT]).learned == 1


def test_the_store_must_exist(url, path):
    """With create=False no store is created."""
    for place in (url, path):
        with pytest.raises(StoreError, match="with polytopic store init") as error:
            Store(place, create=False)
        assert one_sentence(error.value)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreError, match="has no store; create one with polytopic store init"):
        Store(path, create=False)


@pytest.mark.parametrize(("schema", "way_out"), [(9, "newer"), (0, "older")])
def test_another_schema_is_reported(url, schema, way_out):
    """A store of another release is not changed."""
    Store(url).close()
    change = "UPDATE polytopic_settings SET value = '{}' WHERE name = 'schema'"
    _run_sql(url, change.format(schema))

    with pytest.raises(
        StoreError, match=rf"created by an? {way_out} polytopic \(schema {schema}, "
    ):
        Store(url)


def _run_sql(url, statement):
    """Run SQL on a database directly."""
    from sqlalchemy import create_engine

    engine = create_engine(url if "://" in url else f"sqlite:///{url}")
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


# Files that cannot be written


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("folder_is_open", [True, False])
def test_a_read_only_file_is_reported(tmp_path_factory, folder_is_open):
    """Without permission to write, changes fail with one sentence; reading may still work."""
    folder = tmp_path_factory.mktemp("readonly")
    for parent in [folder, *folder.parents][:3]:
        parent.chmod(0o755)
    path = folder / "store.db"
    with Store(path) as store:
        store.learn([DOCUMENT])
    path.chmod(0o444)
    folder.chmod(0o777 if folder_is_open else 0o755)

    ((read, learned),) = answer(open_as_nobody, str(path))

    for message in (read, learned):
        assert message == 1 or one_sentence(message, "it cannot be")
    assert learned != 1
    assert "nothing was changed" in learned or "permission to read and write" in learned
    with Store(path) as store:
        assert store.verify().ok
        assert store.learn([DOCUMENT]).unchanged == 1


@pytest.mark.parametrize("limit", [70_000, 120_000, 300_000])
def test_a_full_disk_changes_nothing(path, limit):
    """On a full disk a change fails, nothing is changed, and trying again works."""
    with Store(path) as store:
        store.learn([DOCUMENT])

    (message, problems, revision), learned = answer(learn_within, limit, str(path), MANY)

    assert one_sentence(message, "disk")
    assert "nothing was changed" in message or "trying again is safe" in message
    assert (problems, revision, learned) == ([], 1, len(MANY))
    with Store(path) as store:
        assert store.verify().ok
        assert store.verify().documents == len(MANY) + 1


def test_a_full_disk_postpones_erasing(path):
    """The document is deleted; the error says that copies are left, and trying again helps."""
    with Store(path) as store:
        store.learn([DOCUMENT, *MANY])

    message, documents, missing = answer(forget_within, path.stat().st_size // 2, str(path), "1000")

    assert one_sentence(message, "are deleted, but copies", "disk", "repeat the request")
    assert (documents, missing) == (len(MANY), ["1000"])
    with Store(path) as store:
        assert store.verify().ok


@pytest.mark.parametrize("pages", [0, 5, 60])
def test_a_full_database_changes_nothing(path, pages):
    """The same if the database may have no more pages, at whichever moment that happens."""
    from sqlalchemy import event

    with Store(path) as store:
        store.learn([DOCUMENT])
        limits = [pages]

        @event.listens_for(store._database.engine, "begin")
        def _limit(connection):
            now = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {now + limits[0]}")

        with pytest.raises(StoreError) as error:
            store.learn(MANY)

        assert one_sentence(error.value, "the disk is full; nothing was changed")
        assert (store.revision, store.verify().problems) == (1, [])
        limits[0] = 2**30
        assert store.learn(MANY).learned == len(MANY)
        assert store.verify().ok


def test_a_damaged_file_is_reported(path):
    """A database whose pages are overwritten is reported as damaged."""
    with Store(path) as store:
        store.learn(MANY)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x55" * (len(content) - 4096)
    path.write_bytes(content)

    with pytest.raises(StoreError) as error:
        Store(path).counts()

    assert one_sentence(error.value, "the database is damaged; restore a backup")


LEARN = """
import sys
from tests.store.plain import open_store
with open_store(sys.argv[1]) as store:
    store.learn([{"id": "theirs", "text": "goal", "labels": ["sport"]}])
"""


def test_opening_a_store_again_loses_nothing(path):
    """A process that has a store open may open it again while others change it."""
    with open_store(path) as store:
        store.learn([DOCUMENT])
        open_store(path).close()
        assert is_database(path)

        subprocess.run([sys.executable, "-c", LEARN, path], check=True)

        assert {document.id for document in store.documents()} == {"1", "theirs"}
        store.learn([Document("ours", "match", labels=["sport"])])
    with open_store(path) as store:
        assert {document.id for document in store.documents()} == {"1", "theirs", "ours"}
        assert store.verify().ok


# A server that stops


def test_a_server_comes_back(server):
    """If the server stops between two calls, they fail, and work again when it is back."""
    with open_store(server.new_url()) as store:
        store.learn([DOCUMENT])
        server.stop()
        try:
            for call in (store.counts, store.verify, lambda: store.learn(MANY)):
                with pytest.raises(StoreError) as error:
                    call()
                assert one_sentence(error.value, "the database does not answer (")
        finally:
            server.start()

        assert store.learn(MANY).learned == len(MANY)
        assert store.verify().ok


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_stops_during_a_change(server, mode):
    """Nothing of the change is done, and trying again makes it."""
    with open_store(server.new_url()) as store:
        store.learn([DOCUMENT])
        try:
            with pytest.raises(StoreError) as error:
                _learn_and(store, lambda: server.stop(mode))
            assert one_sentence(error.value, "does not answer (", "trying again is safe")
        finally:
            server.start()

        assert store.revision == 1
        assert store.learn(MANY).learned == len(MANY)
        assert store.verify().ok


def _learn_and(store, act):
    """Learn documents, and call ``act`` before the transaction ends."""
    finish = Writer.finish
    with patch.object(Writer, "finish", lambda writer: (act(), finish(writer))):
        store.learn(MANY[:20])


def test_an_interrupted_change_is_not_done(url):
    """Whatever is raised during a change, the store is as it was."""
    with open_store(url) as store:
        store.learn([DOCUMENT])

        with pytest.raises(ZeroDivisionError):
            _learn_and(store, lambda: 1 / 0)

        assert (store.revision, store.verify().documents) == (1, 1)
        assert store.learn(MANY[:20]).learned == 20
        assert store.verify().ok


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:00:00-05:00"])
def test_a_time_outside_the_calendar_is_reported(path, time):
    """A time outside the years of UTC is rejected, for a document and for a window."""
    with Store(path) as store:
        for act in (
            lambda: store.learn([Document("1", "Wheat.", time=time)]),
            lambda: store.counts(since=time),
        ):
            with pytest.raises(ValueError, match="must be in the years 1 to 9999 in UTC"):
                act()


def test_wrong_lines_of_an_import_are_reported(path):
    """The error names the wrong line."""
    with Store(path) as store:
        head, *_ = export_lines(store)
    wrong = {"text": "Wheat."}

    with pytest.raises(StoreError, match="line 3: id == None, must be"):
        list(import_lines(path, [head, wrong | {"id": "1"}, wrong]))
    with pytest.raises(StoreError, match="the first line has no 'analyzer', must be"):
        list(import_lines(path, [{"polytopic_store": 1}]))


@pytest.mark.parametrize(
    ("own", "exported", "what"),
    [
        ({"fields": {"title": 2}}, {}, "fields"),
        ({"tree": LabelTree({"wheat": "grain"})}, {"tree": LabelTree({"rye": "grain"})}, "tree"),
    ],
)
def test_an_import_changes_no_settings(new_path, own, exported, what):
    """The store keeps its fields and its tree, and nothing is learned."""
    path, other = new_path(), new_path()
    with Store(other, **exported) as store:
        store.learn([Document("1", "Wheat.", labels=["wheat"])])
        lines = list(export_lines(store))
    with Store(path, **own) as store:
        with pytest.raises(StoreError, match=f"differ in their {what}"):
            list(import_lines(path, lines))

        assert store.revision == 0
        assert store.tree == own.get("tree")


def test_a_rejected_store_is_closed(path):
    """If the settings differ, no connection to the store stays open."""
    Store(path).close()

    with pytest.raises(StoreError) as refused:
        Store(path, language="cs")

    opened = [os.path.realpath(file) for file in Path("/proc/self/fd").glob("*")]  # on Linux
    assert refused.value
    assert str(path) not in opened


@pytest.mark.parametrize(
    ("method", "argument", "sentence"),
    [
        ("learn", [3], "a document == 3, must be a Document or a dict."),
        ("relabel", [("1", ["a"])], "labels == [('1', ['a'])], must be a dict of ids and labels."),
        ("merge", "other.db", "other == 'other.db', must be a Store."),
        ("publish", "news.model", "labeler == 'news.model', must be a Labeler."),
    ],
)
def test_a_wrong_kind_is_reported(path, method, argument, sentence):
    """The error shows the argument and what is required."""
    with Store(path) as store, pytest.raises(TypeError) as wrong:
        getattr(store, method)(argument)

    assert str(wrong.value) == sentence
