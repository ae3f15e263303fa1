"""Reading a store: counts, documents and training data, and verifying that they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sqlalchemy import Connection, func, select
from sqlalchemy.engine import URL

from polytopic.corpus.document import Document
from polytopic.counts import LARGEST_EXACT, TUNING_DOCS, DocumentRows, LabelSetCounts, RowCollector
from polytopic.counts.sampling import smallest_digests
from polytopic.errors import DamagedError, NotLearnedError, StoreError
from polytopic.labeler import Labeler
from polytopic.labeler.files import from_bytes
from polytopic.labeler.learning import learn_counts, learn_rows, needs_sample, new_model
from polytopic.labeler.state import FittedFrom
from polytopic.labels import LabelSpace, Targets
from polytopic.models.checks import require_counts
from polytopic.store import schema
from polytopic.store.database import fetch, is_one_of
from polytopic.store.encoding import (
    MultisetDigest,
    decode_rows,
    document_digests,
    label_set_key,
    read_json,
    read_labels,
)
from polytopic.store.ledger import LedgerRows, Selection, read_ledger
from polytopic.store.schema import last_revision, read_state
from polytopic.store.terms import Terms

# Counts


class StoredCounts(LabelSetCounts):
    """The table of counts of a store as of a revision.

    Parameters
    ----------
    table : LabelSetCounts, default=None
        The counts; none if not given.
    revision : int, default=0
        The revision.
    n_forgotten : int, default=0
        How many documents that were known then are missing, because they were forgotten later.
    """

    def __init__(
        self, table: LabelSetCounts | None = None, *, revision: int = 0, n_forgotten: int = 0
    ):
        super().__init__()
        if table is not None:
            vars(self).update(vars(table))
        self.revision, self.n_forgotten = revision, n_forgotten


def read_counts(connection: Connection, selection: Selection) -> StoredCounts:
    """Return the table of counts of the selected documents, and of those of their base."""
    if selection.revision == last_revision(connection) and not selection.is_part:
        table = _read_table(connection, Terms(connection))
    else:
        rows = read_rows(connection, selection)
        table = rows.table() if rows.X.shape[0] else LabelSetCounts()
    if selection.base is not None:
        base = require_counts(read_base(connection, selection.base).counts_)
        table = base if not table.set_docs.size else base + table
    columns = schema.forgotten.c
    since = columns.learned <= selection.revision, columns.revision > selection.revision
    total = connection.execute(select(func.sum(columns.documents)).where(*since)).scalar()
    return StoredCounts(table, revision=selection.revision or 0, n_forgotten=int(total or 0))


def _read_table(connection: Connection, all_terms: Terms) -> LabelSetCounts:
    """Return the table that the store keeps up to date."""
    columns = schema.label_sets.c
    query = select(columns.labels, columns.documents, columns.terms, columns.counts)
    rows = fetch(connection, query)
    if not rows:
        return LabelSetCounts()
    sets = [tuple(read_labels(labels)) for labels, *_ in rows]
    if len(set(sets)) < len(sets) or any(n < 1 for _, n, *_ in rows):
        raise DamagedError("a label set has no documents, or occurs twice")
    order = sorted(range(len(sets)), key=sets.__getitem__)
    _, documents, numbers, counts = zip(*(rows[k] for k in order), strict=True)
    matrix = decode_rows(numbers, counts, len(all_terms))
    used = all_terms.documents > 0
    used[matrix.indices] = True
    if any(all_terms.names[k] is None for k in np.flatnonzero(used)):
        raise DamagedError("label sets have counts of unknown terms")
    terms, places = all_terms.sort(used)
    space = LabelSpace(label for labels in sets for label in labels)
    table = LabelSetCounts()
    table.labels, table.indicator = space.ids, space.encode(sets[k] for k in order)
    table.set_docs = np.array(documents, dtype=np.float64)
    table.terms = tuple(terms)
    table.document_frequency = np.empty(len(terms))
    table.document_frequency[places[places >= 0]] = all_terms.documents[places >= 0]
    table.matrix = sparse.csr_matrix(
        (matrix.data, places[matrix.indices], matrix.indptr), shape=(len(sets), len(terms))
    )
    table.matrix.sort_indices()
    table.exact = bool(max(table.matrix.sum(), table.set_docs.sum()) < LARGEST_EXACT)
    return table


def read_base(connection: Connection, number: int) -> Labeler:
    """Return a labeler that was fitted elsewhere, with its counts or documents."""
    content = schema.models.c.content
    rows = fetch(connection, select(content).where(schema.models.c.id == number))
    if not rows:
        raise DamagedError(f"the published model {number}, which others are based on, is missing")
    return from_bytes(rows[0].content, f"model {number}")


# Documents


def read_rows(
    connection: Connection, selection: Selection, n_docs: int | None = None
) -> DocumentRows:
    """Return the selected documents, by id; with ``n_docs``, a sample of that size.

    The sample depends on the words and labels of the documents only.
    """
    conditions = selection.conditions()
    if n_docs is not None:
        conditions.append(_is_in_sample(connection, selection, n_docs))
    terms = Terms(connection)
    rows = read_ledger(connection, len(terms), *conditions)
    collector = RowCollector()
    collector.add(*resolve_terms(rows.take(selection.matching(rows.labels)), terms))
    return collector.rows()


def _is_in_sample(connection: Connection, selection: Selection, n_docs: int):
    """Return the condition that a document is in the sample of a selection."""
    ledger = schema.documents.c
    query = select(ledger.digest, ledger.labels, ledger.document).where(*selection.conditions())
    rows = fetch(connection, query)
    matches = (rows[k] for k in selection.matching([labels for _, labels, _ in rows]))
    return is_one_of(connection, ledger.document, smallest_digests(matches, n_docs))


def resolve_terms(
    rows: LedgerRows, all_terms: Terms
) -> tuple[sparse.csr_matrix, list[str], Targets]:
    """Return the counts of rows by term (columns sorted), the terms, and the rows' labels."""
    counts = rows.counts
    used = np.bincount(counts.indices, minlength=len(all_terms)) > 0
    if any(all_terms.names[k] is None for k in np.flatnonzero(used)):
        raise DamagedError("documents have counts of unknown terms")
    terms, places = all_terms.sort(used)
    X = sparse.csr_matrix(
        (counts.data, places[counts.indices], counts.indptr), shape=(len(rows), len(terms))
    )
    sets = [read_labels(labels) for labels in rows.labels]
    space = LabelSpace(label for labels in sets for label in labels)
    return X, terms, Targets(space.encode(sets), space.ids)


def to_documents(rows: LedgerRows, terms: Terms) -> Iterator[Document]:
    """Yield the documents of some rows, with their texts if these are kept."""
    names = [terms.names[k] for k in rows.counts.indices.tolist()]
    ends = rows.counts.indptr.tolist()
    numbers = rows.counts.data.astype(np.int64).tolist()
    for k, name in enumerate(rows.ids):
        entries = slice(ends[k], ends[k + 1])
        counts = dict(zip(names[entries], numbers[entries], strict=True))
        values = {"id": name, "labels": read_labels(rows.labels[k]), "time": rows.times[k]}
        try:
            yield Document.from_dict(values | _content(rows.texts[k], counts))
        except ValueError as error:
            raise DamagedError(f"document {name!r} cannot be read ({error})") from error


def _content(text: str | None, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the text, fields or counts of a document, whichever was learned and kept."""
    if text is None:
        return {"counts": counts}
    content = read_json(text, "a text")
    if isinstance(content, str):
        return {"text": content}
    if not isinstance(content, dict):
        raise DamagedError("a text is neither a string nor an object")
    are_fields = content and all(isinstance(value, str) for value in content.values())
    return {"fields": content} if are_fields else {"counts": content}


# Training data


@dataclass(frozen=True)
class TrainingData:
    """The documents that a labeler is fitted on, read in one transaction.

    Fitting takes long, and a long read transaction would keep an SQLite file from being cleaned of
    deleted documents. So the data are read first, and the labeler is fitted after the transaction.

    Attributes
    ----------
    url : URL
        The address of the store.
    selection : Selection
        The documents.
    content : DocumentRows or StoredCounts
        The documents or their table of counts, whichever the model learns from.
    sample : DocumentRows or None
        Documents to tune a count model on.
    """

    url: URL
    selection: Selection
    content: DocumentRows | StoredCounts
    sample: DocumentRows | None = None

    def fit(
        self, labeler: Labeler, *, tuned: dict | None = None, threshold: float | None = None
    ) -> Labeler:
        """Fit a labeler; with ``tuned`` and ``threshold``, keep what an earlier fit has chosen."""
        source = FittedFrom(self.url, self.selection)
        if isinstance(self.content, DocumentRows):
            self._check_not_empty(self.content.X.shape[0])
            state = learn_rows(
                labeler, self.content, tuned=tuned, threshold=threshold, fitted_from=source
            )
            return labeler.set_state(state)
        self._check_not_empty(self.content.n_docs)
        try:
            state = learn_counts(
                labeler,
                self.content,
                sample=self.sample,
                tuned=tuned,
                threshold=threshold,
                fitted_from=source,
            )
        except NotLearnedError as error:
            raise DamagedError("its counts do not match its documents") from error
        return labeler.set_state(state)

    def _check_not_empty(self, n_docs: float) -> None:
        if not n_docs:
            part = " with these times and labels" if self.selection.is_part else ""
            raise StoreError(f"the store has no labelled document{part}; a model needs at least 1.")


def read_training_data(
    connection: Connection, labeler: Labeler, selection: Selection, *, tune: bool
) -> TrainingData:
    """Read the documents to fit a labeler on, and a sample to tune it on if ``tune``."""
    url, model = connection.engine.url, new_model(labeler)
    if model.learns_from == "documents":
        rows = read_rows(connection, selection)
        if selection.base is not None:
            base = read_base(connection, selection.base).documents_
            if base is None:
                raise DamagedError(f"model {selection.base} has lost its documents")
            rows = base + rows if rows.X.shape[0] else base
        return TrainingData(url, selection, rows)
    counts, sample = read_counts(connection, selection), None
    if tune and needs_sample(labeler, model):
        sample = read_rows(connection, selection, TUNING_DOCS)
    return TrainingData(url, selection, counts, sample)


def source_selection(url: URL, labeler: Labeler) -> Selection:
    """Return the documents of this store that a labeler was fitted on, unknown if elsewhere."""
    source = labeler.state_.fitted_from
    return Selection() if source is None or source.url != url else source.selection


# Verification


@dataclass(frozen=True)
class Verification:
    """The result of :meth:`Store.verify`.

    Attributes
    ----------
    revision, documents : int
        The revision of the store, and the number of documents in its ledger.
    digest : str
        The digest of the labelled documents, recomputed from the ledger.
    problems : list of str
        Everything that does not agree, one sentence each.
    """

    revision: int
    documents: int
    digest: str
    problems: list[str]

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, ready for JSON."""
        return asdict(self) | {"ok": self.ok}


def ledger_digest(current: LedgerRows) -> MultisetDigest:
    """Return the digest of documents."""
    return MultisetDigest().with_changes(current.labelled_digests)


def find_mismatches(connection: Connection) -> Iterator[str]:
    """Recount the ledger, and yield a sentence for each table or digest that disagrees with it."""
    terms = Terms(connection)
    rows = read_ledger(connection, len(terms))
    X, names, _ = resolve_terms(rows, terms)
    digests = document_digests(X, names)
    damaged = [
        name
        for name, stored, digest in zip(rows.ids, rows.digests, digests, strict=True)
        if stored != digest
    ]
    if damaged:
        yield f"{len(damaged):,} documents do not match their digests, such as {damaged[0]!r}."
    current = rows.current()
    if MultisetDigest(read_state(connection).digest) != ledger_digest(current):
        yield "the digest of the store does not match the ledger."
    labelled = current.labelled()
    yield from _find_table_mismatches(connection, labelled, terms)
    for name, stored, counted in (
        ("documents", terms.documents, labelled),
        ("ledger rows", terms.uses, rows),
    ):
        if (np.bincount(counted.counts.indices, minlength=len(terms)) != stored).any():
            yield f"the numbers of {name} per term do not match the ledger."
    if any(
        (name is None) != (uses == 0) for name, uses in zip(terms.names, terms.uses, strict=True)
    ):
        yield "there are terms that are not in the ledger."


def _find_table_mismatches(
    connection: Connection, labelled: LedgerRows, all_terms: Terms
) -> Iterator[str]:
    X, terms, targets = resolve_terms(labelled, all_terms)
    expected = LabelSetCounts.from_matrix(X, targets, terms=terms)
    if expected != _read_table(connection, all_terms):
        yield "the counts of label sets do not match the ledger."
    columns = schema.labels.c
    stored = dict(fetch(connection, select(columns.label, columns.documents)))
    recounted = dict(zip(targets.labels, targets.Y.getnnz(axis=0).tolist(), strict=True))
    if {label: n for label, n in stored.items() if n} != recounted:
        yield "the numbers of documents per label do not match the ledger."
    sets = fetch(connection, select(schema.label_sets.c.key, schema.label_sets.c.labels))
    if any(label_set_key(labels) != key for key, labels in sets):
        yield "label sets do not match their keys."
