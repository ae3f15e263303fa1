"""``verify`` finds whatever does not agree."""

import pytest
from sqlalchemy import create_engine

from polytopic import Document, LabelTree
from tests.store.plain import open_store

DOCUMENTS = [
    Document("1", "goal match goal", labels=["sport"]),
    Document("2", "mars orbit", labels=["space"]),
    Document("3", "goal orbit", labels=["space", "sport"]),
    Document("4", "match rover"),
]
OTHER_BYTES = "X'0300000001000000'", "'\\x0300000001000000'::bytea"  # SQLite, PostgreSQL
BYTE = "X'07'", "'\\x07'::bytea"

TAMPERING = {
    "count of a document": "UPDATE polytopic_documents SET counts = {other} WHERE document = '1'",
    "term of a document": "UPDATE polytopic_documents SET terms = {other} WHERE document = '2'",
    "labels of a document": "UPDATE polytopic_documents SET labels = '[\"x\"]'"
    " WHERE document = '1'",
    "no labels": "UPDATE polytopic_documents SET labels = '[]' WHERE document = '1'",
    "digest of a document": "UPDATE polytopic_documents SET digest = {byte} WHERE document = '1'",
    "digest without labels": "UPDATE polytopic_documents SET digest = {byte} WHERE document = '4'",
    "a lost document": "DELETE FROM polytopic_documents WHERE document = '1'",
    "a lost document without labels": "DELETE FROM polytopic_documents WHERE document = '4'",
    "a closed document": "UPDATE polytopic_documents SET replaced = 1 WHERE document = '3'",
    "a lost former version": "DELETE FROM polytopic_documents WHERE replaced IS NOT NULL",
    "counts of a label set": "UPDATE polytopic_label_sets SET counts = {other}"
    """ WHERE labels = '["sport"]'""",
    "terms of a label set": "UPDATE polytopic_label_sets SET terms = {other}"
    """ WHERE labels = '["space"]'""",
    "labels of a label set": "UPDATE polytopic_label_sets SET labels = '[\"x\"]'"
    """ WHERE labels = '["sport"]'""",
    "documents of a label set": "UPDATE polytopic_label_sets SET documents = documents + 1",
    "key of a label set": "UPDATE polytopic_label_sets SET key = 'x'"
    """ WHERE labels = '["sport"]'""",
    "a lost label set": """DELETE FROM polytopic_label_sets WHERE labels = '["sport"]'""",
    "documents of terms": "UPDATE polytopic_terms SET documents = uses",
    "uses of terms": "UPDATE polytopic_terms SET uses = documents",
    "other names of terms": "UPDATE polytopic_terms SET names = replace(names, 'goal', 'gaol')",
    "fewer names of terms": "UPDATE polytopic_terms SET names = '[\"goal\"]'",
    "broken names of terms": "UPDATE polytopic_terms SET names = '[\"goal'",
    "a lost name": "UPDATE polytopic_terms SET names = replace(names, '\"goal\"', 'null')",
    "lost terms": "DELETE FROM polytopic_terms",
    "digest of the store": "UPDATE polytopic_state SET digest = {byte}",
    "documents of a label": "UPDATE polytopic_labels SET documents = 9 WHERE label = 'sport'",
    "a lost label": "DELETE FROM polytopic_labels WHERE label = 'sport'",
    "id of a document": "UPDATE polytopic_documents SET document = '5' WHERE document = '3'",
    "time of a document": "UPDATE polytopic_documents SET time = '2024-01-01T00:00:00.000000+00:00'"
    " WHERE document = '1'",
    "text of a document": "UPDATE polytopic_documents SET text = '\"goal match\"'"
    " WHERE document = '1'",
    "first revision of a document": "UPDATE polytopic_documents SET first = 2 WHERE document = '1'",
    "revision of a document": "UPDATE polytopic_documents SET learned = 2 WHERE document = '1'",
    "end of a former version": "UPDATE polytopic_documents SET replaced = 3"
    " WHERE replaced IS NOT NULL",
    "labels of a former version": "UPDATE polytopic_documents SET labels = '[]'"
    " WHERE replaced IS NOT NULL",
    "a lost empty document": "DELETE FROM polytopic_documents WHERE document = 'empty'",
    "time of a revision": "UPDATE polytopic_revisions SET time = '2024-01-01T00:00:00.000000+00:00'"
    " WHERE revision = 1",
    "a receipt": "UPDATE polytopic_revisions SET receipt = replace(receipt, 'learn', 'merge')",
    "a lost revision": "DELETE FROM polytopic_revisions WHERE revision = 1",
    "the revision": "UPDATE polytopic_state SET revision = 4",
    "the log of what was forgotten": "UPDATE polytopic_forgotten SET documents = 2",
    "a setting": "UPDATE polytopic_settings SET value = '\"nb\"' WHERE name = 'model'",
    "the tree": "UPDATE polytopic_labels SET about = replace(about, 'Sport', 'Sports')"
    " WHERE label = 'sport'",
    "the model that answers": "UPDATE polytopic_state SET current_model = 2",
    "no model answers": "UPDATE polytopic_state SET current_model = 7",
    "note of a model": "UPDATE polytopic_models SET note = 'x'",
    "mark of a model": "UPDATE polytopic_models SET marked = NULL",
    "content of a model": "UPDATE polytopic_models SET content = {byte} WHERE id = 2",
    "a lost model": "DELETE FROM polytopic_models WHERE id = 2",
    "role of a token": "UPDATE polytopic_tokens SET role = 'admin'",
    "a seal": "UPDATE polytopic_seals SET digest = {byte} WHERE name = 'tokens'",
    "a lost seal": "DELETE FROM polytopic_seals WHERE name = 'tokens'",
    "a renamed seal": "UPDATE polytopic_seals SET name = 'x' WHERE name = 'tokens'",
    "topics that a model assigned": "UPDATE polytopic_assignments SET topics = '[]'",
    "probability of a topic": "UPDATE polytopic_topics SET probability = 0.123"
    " WHERE label = 'sport'",
    "a lost topic": "DELETE FROM polytopic_topics WHERE label = 'sport'",
    "a topic of nothing": "INSERT INTO polytopic_topics VALUES ('sport', '2024-01-01', 99, 1)",
    "a lost assignment": "DELETE FROM polytopic_assignments WHERE document = '4'",
    "time of an assignment": "UPDATE polytopic_assignments SET time = '2024-01-01'",
    "model of an assignment": "UPDATE polytopic_assignments SET model = 7",
    "a label of nothing": "INSERT INTO polytopic_labels (label, documents) VALUES ('new', 3)",
}


@pytest.mark.parametrize("what", TAMPERING)
def test_verify_finds_tampering(url, what):
    """Any change that was not made through the store is found and reported in sentences."""
    tree = LabelTree({"sport": "news"}, names={"sport": "Sport"})
    with open_store(url, keep_texts=True, tree=tree) as store:
        store.learn(
            [*DOCUMENTS, Document("empty", ""), Document("gone", "rover", labels=["space"])]
        )
        store.learn([Document("2", "mars moon", labels=["space"])])
        store.publish()
        store.publish(model="nb")
        store.rollback()
        store.tokens.create("one", "read", "0" * 64)
        store.forget(["gone"])
        assert store.assign() == 5
        assert store.verify().ok

        tamper(url, TAMPERING[what])

        verification = store.verify()
        assert not verification.ok
        assert not verification.to_dict()["ok"]
        assert all(problem.endswith(".") for problem in verification.problems)
        assert verification.revision == (4 if what == "the revision" else 3)


def test_a_store_of_an_earlier_release(url):
    """It has no seals, verifies, and gets its seals with the next change."""
    with open_store(url, keep_texts=True) as store:
        store.learn(DOCUMENTS)
    execute(url, "DROP TABLE polytopic_seals")
    with open_store(url) as store:
        assert store.verify().ok

        store.learn([Document("5", "goal", labels=["sport"])])

        assert store.verify().ok
        tamper(url, TAMPERING["text of a document"])
        assert not store.verify().ok


def test_an_earlier_release_may_change_a_store(url):
    """Its changes invalidate the seals, not the store; the next change computes them again."""
    with open_store(url) as store:
        store.learn(DOCUMENTS)
        tamper(url, "UPDATE polytopic_seals SET revision = 0")
        tamper(url, "UPDATE polytopic_seals SET digest = {byte}")  # as if rows had been added since
        assert store.verify().ok

        store.forget(["1"])

        assert store.verify().ok
        tamper(url, TAMPERING["a lost document without labels"])
        assert not store.verify().ok


def tamper(url, statement):
    """Change a store by SQL."""
    is_file = "://" not in url
    values = {"other": OTHER_BYTES[not is_file], "byte": BYTE[not is_file]}
    assert execute(url, statement.format(**values))


def execute(url, statement):
    """Run SQL; return how many rows were changed."""
    engine = create_engine(f"sqlite:///{url}" if "://" not in url else url)
    with engine.begin() as connection:
        changed = connection.exec_driver_sql(statement).rowcount
    engine.dispose()
    return changed
