"""The tables of a store."""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

SCHEMA = 2  # 1: rows of the ledger may have been moved, see erasure
SCHEMAS = (1, SCHEMA)  # that this release works with
metadata = MetaData()


def _table(name, *columns):
    return Table(f"polytopic_{name}", metadata, *columns)


# What the store is: its schema, its analyzer, what it keeps. Values are JSON.
settings = _table(
    "settings", Column("name", Text, primary_key=True), Column("value", Text, nullable=False)
)

# One row: how often the store has changed, the digest of what is counted, how many models were ever
# published, and the one that answers. Who writes holds this row.
state = _table(
    "state",
    Column("id", Integer, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("published", BigInteger, nullable=False),
    Column("current_model", BigInteger),
)

# Labels with their documents, and their tree: about is JSON, what the tree says of the label.
labels = _table(
    "labels",
    Column("label", Text, primary_key=True),
    Column("documents", BigInteger, nullable=False),
    Column("about", Text),
)

# Terms by number, many on a page: a JSON list of names, null for those that are gone, and of each
# the labelled documents it is in, and the rows of the ledger, four bytes each.
terms = _table(
    "terms",
    Column("page", BigInteger, primary_key=True, autoincrement=False),
    Column("names", Text, nullable=False),
    Column("documents", LargeBinary, nullable=False),
    Column("uses", LargeBinary, nullable=False),
)

# Label sets (a JSON list, and its digest as the key) with their documents and counts of terms.
label_sets = _table(
    "label_sets",
    Column("key", Text, primary_key=True),
    Column("labels", Text, nullable=False),
    Column("documents", BigInteger, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    Column("counts", LargeBinary, nullable=False),
)

# The ledger. A document that is corrected has a row for each version: known from the revision
# "learned" on, until "replaced". Terms are numbers in the order of their names. In SQLite, a row
# that is gone is blank, and "learned" at 0.
documents = _table(
    "documents",
    Column("row", Integer().with_variant(BigInteger, "postgresql"), primary_key=True),
    Column("document", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("time", Text),
    Column("first", BigInteger, nullable=False),
    Column("learned", BigInteger, nullable=False),
    Column("replaced", BigInteger),
    Column("terms", LargeBinary, nullable=False),
    Column("counts", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("text", Text),
)
_is_current = documents.c.replaced.is_(None)
Index(
    "polytopic_current",
    documents.c.document,
    unique=True,
    sqlite_where=_is_current,
    postgresql_where=_is_current,
)
Index(
    "polytopic_former",
    documents.c.document,
    sqlite_where=~_is_current,
    postgresql_where=~_is_current,
)

# What was done: the receipts, JSON with numbers instead of names.
revisions = _table(
    "revisions",
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("receipt", Text, nullable=False),
)

# How many documents that were known from a revision on were forgotten at another.
forgotten = _table(
    "forgotten",
    Column("learned", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("documents", BigInteger, nullable=False),
)

# Published models: safetensors with their manifest, what they were fitted on (JSON), and the
# revision at which a document that they saw was forgotten.
models = _table(
    "models",
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("note", Text),
    Column("marked", BigInteger),
    Column("content", LargeBinary, nullable=False),
)

# Who may do what over HTTP: digests of tokens, never tokens.
tokens = _table(
    "tokens",
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("time", Text, nullable=False),
)

# Changes that were asked for under a key, so that asking again gives the same receipt.
requests = _table(
    "requests",
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),
    Column("receipt", Text, nullable=False),
    Column("time", Text, nullable=False),
)
