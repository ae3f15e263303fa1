"""verify finds whatever does not agree."""

import pytest
from sqlalchemy import create_engine

from polytopic import Document
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
    "a label of nothing": "INSERT INTO polytopic_labels (label, documents) VALUES ('new', 3)",
}


@pytest.mark.parametrize("what", TAMPERING)
def test_verify_finds_tampering(url, what):
    """Whatever is changed behind the store's back is found, and told in sentences."""
    with open_store(url) as store:
        store.learn(DOCUMENTS)
        store.learn([Document("2", "mars moon", labels=["space"])])
        assert store.verify().ok

        tamper(url, TAMPERING[what])

        verification = store.verify()
        assert not verification.ok
        assert not verification.to_dict()["ok"]
        assert all(problem.endswith(".") for problem in verification.problems)
        assert verification.revision == 2


def tamper(url, statement):
    """Change a store by SQL."""
    is_file = "://" not in url
    values = {"other": OTHER_BYTES[not is_file], "byte": BYTE[not is_file]}
    engine = create_engine(f"sqlite:///{url}" if is_file else url)
    with engine.begin() as connection:
        changed = connection.exec_driver_sql(statement.format(**values))
        assert changed.rowcount
    engine.dispose()
