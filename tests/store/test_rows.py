"""Rows that no store writes are reported with what is wrong; and rows on many pages."""

import json
import sqlite3

import pytest

from polytopic.errors import DamagedError, StoreError
from polytopic.store import Store
from tests.store.plain import open_store

TABLES = {
    "label sets without documents": (
        "UPDATE polytopic_label_sets SET documents = 0 WHERE labels = '[\"a\"]'",
        "a label set has no documents, or occurs twice",
    ),
    "label sets that come twice": (
        "UPDATE polytopic_label_sets SET labels = '[\"a\"]'",
        "a label set has no documents, or occurs twice",
    ),
    "labels that are no list": (
        "UPDATE polytopic_label_sets SET labels = '{}' WHERE labels = '[\"a\"]'",
        "a label set is not a list of labels",
    ),
    "a page that is gone": (
        "DELETE FROM polytopic_terms WHERE page = 0",
        "pages of terms are missing",
    ),
    "a page with another number": (
        "UPDATE polytopic_terms SET page = 7 WHERE page = 1",
        "pages of terms are missing",
    ),
    "a page that is no list": (
        "UPDATE polytopic_terms SET names = '{}' WHERE page = 1",
        "a page of terms is not a list of terms",
    ),
    "a term that comes twice on a page": (
        "UPDATE polytopic_terms SET names = replace(names, 'z0002', 'z0001') WHERE page = 0",
        "a term occurs twice",
    ),
    "a term that comes twice": (
        """UPDATE polytopic_terms SET names = '["z0002"]' WHERE page = 1""",
        "a term occurs twice",
    ),
    "half a number of documents": (
        "UPDATE polytopic_terms SET documents = x'000000' WHERE page = 1",
        "the terms and the numbers of their documents differ",
    ),
    "half a number of rows": (
        "UPDATE polytopic_terms SET uses = x'000000' WHERE page = 1",
        "the terms and the numbers of their documents differ",
    ),
    "too many numbers": (
        "UPDATE polytopic_terms SET documents = x'0000000000000000' WHERE page = 1",
        "the terms and the numbers of their documents differ",
    ),
    "a state that is gone": ("DELETE FROM polytopic_state", "its state has 0 rows, must have 1"),
    "two states": (
        "INSERT INTO polytopic_state SELECT 2, revision, digest, published, current_model "
        "FROM polytopic_state",
        "its state has 2 rows, must have 1",
    ),
}


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Return the bytes of a store whose terms are on two pages, the later ones sorted first."""
    path = tmp_path_factory.mktemp("rows") / "store.db"
    with open_store(path) as store:
        store.learn([{"id": "1", "counts": {f"z{k:04}": 1 for k in range(1024)}, "labels": ["a"]}])
        store.learn([{"id": "2", "counts": {"b": 2, "z0001": 3}, "labels": ["a", "b"]}])
    return path.read_bytes()


@pytest.fixture
def damaged(path, content):
    """Return a function that changes the store's rows by SQL, and returns its path."""

    def change(*statements):
        path.write_bytes(content)
        connection = sqlite3.connect(path)
        with connection:
            for statement in statements:
                connection.execute(*([statement] if isinstance(statement, str) else statement))
        connection.close()
        return path

    return change


def test_terms_on_many_pages(damaged):
    """They are found by their numbers, whatever their order by name."""
    with Store(damaged()) as store:
        counts = store.counts()

    assert len(counts.terms) == 1025
    assert counts.terms[0] == "b"
    by_name = dict(zip(counts.terms, counts.matrix.toarray().T.tolist(), strict=True))
    assert by_name["b"] == [0, 2]
    assert by_name["z0001"] == [1, 3]
    assert by_name["z1023"] == [1, 0]


def test_pages_of_terms_are_full(damaged):
    """All but the last have 1024 terms, so that a term's number determines its page."""
    names = json.dumps([f"z{k:04}" for k in range(1023)])
    shorter = ("UPDATE polytopic_terms SET names = ? WHERE page = 0", [names])

    with (
        Store(damaged(shorter)) as store,
        pytest.raises(DamagedError, match="does not have 1,024 terms"),
    ):
        store.counts()


@pytest.mark.parametrize("what", TABLES)
def test_rows_that_no_store_writes(damaged, what):
    """The error says what is wrong, and nothing is computed from it."""
    statement, sentence = TABLES[what]

    with pytest.raises(DamagedError, match=sentence), Store(damaged(statement)) as store:
        store.counts()


def test_missing_terms(damaged):
    """A label set cannot hold a term without a name."""
    gone = ("UPDATE polytopic_terms SET names = ? WHERE page = 1", [json.dumps([None])])

    with (
        pytest.raises(DamagedError, match="label sets have counts of unknown terms"),
        Store(damaged(gone)) as store,
    ):
        store.counts()


@pytest.mark.parametrize("value", ["1", "2"])
def test_schemas_that_can_be_read(damaged, value):
    """A store that never forgot may have schema 1."""
    change = ("UPDATE polytopic_settings SET value = ? WHERE name = 'schema'", [value])

    with Store(damaged(change)) as store:
        assert store.counts().n_docs == 2


def test_settings_without_a_schema(damaged):
    """They are reported as damaged, not as those of another release."""
    with pytest.raises(DamagedError, match="do not say which schema"):
        Store(damaged("DELETE FROM polytopic_settings WHERE name = 'schema'"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fields", {"title": "2"}),
        ("fields", {"title": 0.5}),
        ("fields", ["title"]),
        ("model", 7),
        ("keep_texts", 1),
        ("rule", "best"),
    ],
)
def test_settings_of_other_types(damaged, name, value):
    """No setting is used before its type is checked."""
    statement = "UPDATE polytopic_settings SET value = ? WHERE name = ?"
    change = (statement, [json.dumps(value), name])

    with pytest.raises(DamagedError, match=name):
        Store(damaged(change))


def test_counts_of_other_documents(damaged):
    """A model that is tuned on documents notices that the table does not contain them."""
    swap = "UPDATE polytopic_label_sets SET labels = '[\"c\"]' WHERE labels = '[\"a\"]'"

    with (
        Store(damaged(swap), create=False) as store,
        pytest.raises(DamagedError, match="its counts do not match its documents"),
    ):
        store.fit("pmm1")


@pytest.mark.parametrize("digest", ["\u2028", "é" * 64, ""])
def test_another_digest_of_a_request(damaged, path, digest):
    """A repeated request whose stored digest is damaged is not answered with the stored receipt."""
    with Store(damaged()) as store:
        store.forget(["3"], key="once")
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE polytopic_requests SET request = ?", [digest])
    connection.close()

    with Store(path) as store, pytest.raises(StoreError, match="a different request"):
        store.forget(["3"], key="once")


@pytest.mark.parametrize("model", ["pmm1", "mml"])
def test_a_term_of_a_model_that_was_lost(damaged, path, model):
    """A published model is not given counts of other terms than its own."""
    with Store(damaged()) as store:
        store.publish(model=model)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE polytopic_terms SET names = replace(names, 'z0002', 'y')")
    connection.close()

    with Store(path) as store, pytest.raises(DamagedError, match="lacks terms that model 1 was"):
        store.labeler()
