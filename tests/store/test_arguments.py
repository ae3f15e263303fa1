"""Arguments that no store can use are rejected in one sentence, and change nothing."""

import pytest

from polytopic import Document, LabelTree
from polytopic.errors import PolytopicError
from polytopic.store import Store
from polytopic.store.transfer import export_lines, import_lines
from tests.store.plain import open_store

DOCUMENT = Document("1", "goal match", labels=["sport"])
SURROGATE = "\ud800"  # which no database accepts, like NUL
LONG = "x" * 10_000
CALLS = {
    "a number as key": (lambda store: store.learn([DOCUMENT], key=1), "key == 1, must be a string"),
    "bytes as key": (lambda store: store.forget(["1"], key=b"k"), "key == b'k', must be a string"),
    "no name of a token": (lambda store: store.tokens.create(None), "name == None, must be a str"),
    "a name that cannot be stored": (lambda store: store.tokens.create("\0"), "must be valid text"),
    "a token that cannot be stored": (
        lambda store: store.tokens.create("one", "read", SURROGATE),
        "token == '.*, must be valid text",
    ),
    "the role of no token": (lambda store: store.tokens.role_of(None), "token == None, must be"),
    "the role of a surrogate": (lambda store: store.tokens.role_of(SURROGATE), "must be valid"),
    "revoking a surrogate": (lambda store: store.tokens.revoke(SURROGATE), "must be valid text"),
    "revoking a long name": (lambda store: store.tokens.revoke(LONG), "there is no token 'xxx"),
    "infinitely many documents": (
        lambda store: next(store.documents(newest=float("inf"))),
        "newest must be an instance of int",
    ),
    "too many documents": (lambda store: next(store.documents(newest=2**64)), "newest == 1844674"),
    "a revision as text": (
        lambda store: next(store.documents(as_of="1")),
        "as_of must be an instance of int",
    ),
    "a note that cannot be stored": (lambda store: store.publish(note="\0"), "note == .*, must be"),
    "a number as note": (lambda store: store.publish(note=1), "note == 1, must be a string"),
    "too many models": (lambda store: store.publish(keep=2**64), "keep == 18446744073709551616"),
    "no models": (lambda store: store.refresh(keep=0), "keep == 0, must be >= 1"),
    "a text as the number of a model": (
        lambda store: store.rollback("1\n2"),
        "number must be an instance of int",
    ),
    "a number that no model has": (lambda store: store.rollback(2**64), "number == 1844674407"),
}
SETTINGS = {
    "tree": ({"a": "b"}, "tree == {'a': 'b'}, must be a LabelTree"),
    "analyzer": ("english", "analyzer == 'english', must be an Analyzer"),
    "timeout": ("60", "timeout must be an instance of"),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_argument_is_rejected(url, what):
    """The message names the argument, shows the beginning of its value, and says what is needed."""
    call, sentence = CALLS[what]
    with open_store(url) as store:
        store.learn([DOCUMENT])

        with pytest.raises((PolytopicError, TypeError, ValueError), match=sentence) as error:
            call(store)

        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 200
        assert (store.revision, store.history(), store.tokens.all()) == (1, [], [])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wrong_setting_creates_nothing(path, name):
    """A setting of another type is rejected before the file is created."""
    value, sentence = SETTINGS[name]

    with pytest.raises((TypeError, ValueError), match=sentence):
        Store(path, **{name: value})

    assert not path.exists()


@pytest.mark.parametrize("url", [None, 0, b"store.db", [], True])
def test_a_url_is_a_text_or_a_path(tmp_path, monkeypatch, url):
    """Anything else creates no file, such as one that is called None."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(TypeError, match=r"url == .*, must be a file or the URL of a database\."):
        Store(url)

    assert list(tmp_path.iterdir()) == []


def test_a_tree_that_cannot_be_stored(url):
    """A tree with a label that no database accepts is rejected, and the store keeps its own."""
    with open_store(url, tree=LabelTree({"sport": "news"})) as store:
        with pytest.raises(PolytopicError, match=r"has the label .*, must be valid text"):
            open_store(url, tree=LabelTree({SURROGATE: "news"}))

        assert store.tree == LabelTree({"sport": "news"})


def test_an_id_that_cannot_be_stored_is_unknown(url):
    """No document has an id that no database accepts."""
    with open_store(url) as store:
        store.learn([DOCUMENT])

        assert store.document("1").id == "1"
        assert [store.document(name) for name in (SURROGATE, "\0")] == [None, None]
        assert store.forget([SURROGATE, "\0"]).missing == [SURROGATE, "\0"]


@pytest.mark.parametrize("key", ["", SURROGATE, "a\0b", LONG])
def test_any_text_is_a_key(url, key):
    """A key is stored as a digest only, so it may be any text; messages show its beginning."""
    with open_store(url) as store:
        receipt = store.learn([DOCUMENT], key=key)

        assert store.learn([DOCUMENT], key=key) == receipt
        with pytest.raises(PolytopicError, match="was used for a different request") as error:
            store.forget(["1"], key=key)
        assert len(str(error.value)) < 200


@pytest.mark.parametrize("line", [None, 1, "x", [], [[]]])
def test_lines_of_an_export_must_be_objects(path, tmp_path, line):
    """Other lines are reported with their number."""
    with open_store(path) as store:
        store.learn([DOCUMENT])
        head, *rest = export_lines(store)

    with pytest.raises(PolytopicError, match="the first line is not that of an exported store"):
        list(import_lines(tmp_path / "first.db", [line, *rest]))
    with pytest.raises(PolytopicError, match=r"line 2: .* must be an object\."):
        list(import_lines(tmp_path / "second.db", [head, line, *rest]))
    assert not (tmp_path / "first.db").exists()
