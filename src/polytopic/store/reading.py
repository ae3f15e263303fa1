"""Reading a store: the table of counts, the documents, and whether they agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sqlalchemy import Connection, func, select
from sqlalchemy.engine import URL

from polytopic.counts import LARGEST_EXACT, LabelSetCounts
from polytopic.errors import DamagedError, StoreError
from polytopic.labeler import Labeler
from polytopic.labeler.learning import named_model, sees_documents
from polytopic.labeler.rows import DocumentRows, RowCollector
from polytopic.labeler.state import FittedFrom
from polytopic.labels import LabelSpace, Targets
from polytopic.models.mixture_tuning import TUNING_DOCS
from polytopic.store import tables
from polytopic.store.bags import Bags, read_bags
from polytopic.store.database import among, fetch
from polytopic.store.packing import (
    MultisetDigest,
    bag_digests,
    label_set_key,
    read_labels,
    unpack,
)
from polytopic.store.selection import Selection
from polytopic.store.state import last_revision, read_state
from polytopic.store.terms import Terms


class StoredCounts(LabelSetCounts):
    """The table of counts of a store at a moment.

    Attributes
    ----------
    revision : int
        The revision of the store.
    left_out : int
        How many documents that were known then are left out, since they were forgotten later.
    """

    revision: int = 0
    left_out: int = 0


def read_counts(connection: Connection, selection: Selection, last: int) -> StoredCounts:
    """Return the table of the documents that are meant."""
    whole = selection.revision == last and not selection.is_part
    if whole:
        table = _read_table(connection, Terms(connection))
    else:
        rows = read_rows(connection, selection)
        table = rows.table() if rows.X.shape[0] else LabelSetCounts()
    found = StoredCounts()
    vars(found).update(vars(table))
    gone = tables.forgotten.c
    later = gone.learned <= selection.revision, gone.revision > selection.revision
    found.revision = selection.revision or 0
    total = connection.execute(select(func.sum(gone.documents)).where(*later)).scalar()
    found.left_out = int(total or 0)
    return found


def _read_table(connection: Connection, all_terms: Terms) -> LabelSetCounts:
    """Return the table that is kept up to date."""
    columns = tables.label_sets.c
    query = select(columns.labels, columns.documents, columns.terms, columns.counts)
    rows = fetch(connection, query)
    if not rows:
        return LabelSetCounts()
    sets = [tuple(read_labels(labels)) for labels, *_ in rows]
    if len(set(sets)) < len(sets) or any(n < 1 for _, n, *_ in rows):
        raise DamagedError("label sets have no documents, or come twice")
    order = sorted(range(len(sets)), key=sets.__getitem__)
    _, documents, numbers, counts = zip(*(rows[k] for k in order), strict=True)
    matrix = unpack(numbers, counts, len(all_terms))
    wanted = all_terms.documents > 0
    wanted[matrix.indices] = True
    if any(all_terms.names[k] is None for k in np.flatnonzero(wanted)):
        raise DamagedError("label sets have terms that are not there")
    terms, places = all_terms.in_order(wanted)
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


def read_rows(
    connection: Connection, selection: Selection, n_docs: int | None = None
) -> DocumentRows:
    """Return the documents that are meant, in the order of their ids, or some of them.

    Which are some depends on their words and labels alone.
    """
    conditions = selection.conditions()
    if n_docs is not None:
        conditions.append(_some(connection, selection, n_docs))
    terms = Terms(connection)
    bags = read_bags(connection, len(terms), *conditions)
    collector = RowCollector()
    collector.add(*named(bags.at(selection.among(bags.labels)), terms))
    return collector.rows()


def _some(connection: Connection, selection: Selection, n_docs: int):
    """Return the condition that documents are among those with the smallest digests."""
    ledger = tables.documents.c
    query = select(ledger.digest, ledger.labels, ledger.document).where(*selection.conditions())
    rows = fetch(connection, query)
    rows = sorted(rows[k] for k in selection.among([labels for _, labels, _ in rows]))
    return among(connection, ledger.document, [name for *_, name in rows[:n_docs]])


@dataclass(frozen=True)
class TrainingData:
    """What a labeler is fitted on, as it was read at one moment.

    Fitting takes long, and whoever reads for long keeps an SQLite file from being cleaned of what
    was forgotten. So the data are read first, and fitted when nothing is read any more.

    Attributes
    ----------
    selection : Selection
        Which documents these are.
    place : URL
        Where the store is.
    content : DocumentRows or StoredCounts
        The documents, or their table of counts, whichever the model learns from.
    sample : DocumentRows or None
        Documents that a model of counts is tuned on.
    """

    selection: Selection
    place: URL
    content: DocumentRows | StoredCounts
    sample: DocumentRows | None = None

    def fit(self, labeler: Labeler, *, chosen: dict | None = None) -> Labeler:
        """Fit a labeler, keeping what was chosen for an earlier one if that is given."""
        own = FittedFrom(self.place, self.selection)
        if isinstance(self.content, DocumentRows):
            _require_some(self.content.X.shape[0], self.selection)
            return labeler.fit_rows(self.content, chosen=chosen, fitted_from=own)
        _require_some(self.content.n_docs, self.selection)
        return labeler.fit_counts(self.content, sample=self.sample, chosen=chosen, fitted_from=own)


def read_training(
    connection: Connection, labeler: Labeler, selection: Selection, *, tuned: bool
) -> TrainingData:
    """Read what a labeler is to be fitted on, with documents to tune it on if it is ``tuned``."""
    place, model = connection.engine.url, labeler.model
    model = named_model(model) if isinstance(model, str) else model
    if sees_documents(model):
        return TrainingData(selection, place, read_rows(connection, selection))
    counts, sample = read_counts(connection, selection, last_revision(connection)), None
    if tuned and model.needs_documents:
        sample = read_rows(connection, selection, TUNING_DOCS)
    return TrainingData(selection, place, counts, sample)


def _require_some(n_docs: float, selection: Selection) -> None:
    if not n_docs:
        meant = " of this moment, this time and these labels" if selection.is_part else ""
        raise StoreError(f"the store has no labelled document{meant}; a model needs one at least.")


def origin_of(place: URL, labeler: Labeler) -> Selection:
    """Return what a labeler was fitted on in this store, an unknown selection if it was not."""
    source = labeler.fitted_from_
    return Selection() if source is None or source.url != place else source.selection


def named(bags: Bags, all_terms: Terms) -> tuple[sparse.csr_matrix, list[str], Targets]:
    """Return documents under the names of the terms they have, sorted, and their labels."""
    counts = bags.counts
    used = np.bincount(counts.indices, minlength=len(all_terms)) > 0
    if any(all_terms.names[k] is None for k in np.flatnonzero(used)):
        raise DamagedError("documents of the ledger have terms that are not there")
    terms, places = all_terms.in_order(used)
    X = sparse.csr_matrix(
        (counts.data, places[counts.indices], counts.indptr), shape=(len(bags), len(terms))
    )
    sets = [read_labels(labels) for labels in bags.labels]
    space = LabelSpace(label for labels in sets for label in labels)
    return X, terms, Targets(space.encode(sets), space.ids)


def find_problems(connection: Connection) -> Iterator[str]:
    """Yield what does not agree in a store, a sentence each."""
    terms = Terms(connection)
    bags = read_bags(connection, len(terms))
    X, names, _ = named(bags, terms)
    damaged = [
        name
        for name, kept, found in zip(bags.names, bags.digests, bag_digests(X, names), strict=True)
        if kept != found
    ]
    if damaged:
        yield f"{len(damaged):,} documents do not match their digests, such as {damaged[0]!r}."
    current = bags.at([k for k, last in enumerate(bags.replaced) if last is None])
    stored = MultisetDigest(read_state(connection).digest)
    if stored != ledger_digest(current):
        yield "the digest of the counts is not that of the ledger."
    labelled = current.at([k for k, labels in enumerate(current.labels) if labels != "[]"])
    yield from _table_problems(connection, labelled, terms)
    for what, kept, own in (
        ("documents", terms.documents, labelled),
        ("rows of the ledger", terms.uses, bags),
    ):
        if (np.bincount(own.counts.indices, minlength=len(terms)) != kept).any():
            yield f"the {what} that terms are in are not those of the ledger."
    if any(
        (name is None) != (uses == 0) for name, uses in zip(terms.names, terms.uses, strict=True)
    ):
        yield "names of terms are kept that the ledger does not have."


def ledger_digest(current: Bags) -> MultisetDigest:
    """Return the digest of documents."""
    return MultisetDigest().changed(current.marked)


def _table_problems(connection: Connection, labelled: Bags, all_terms: Terms) -> Iterator[str]:
    X, terms, targets = named(labelled, all_terms)
    expected = LabelSetCounts.from_matrix(X, targets, terms=terms)
    if expected != _read_table(connection, all_terms):
        yield "the counts of label sets are not those of the ledger."
    columns = tables.labels.c
    kept = dict(fetch(connection, select(columns.label, columns.documents)))
    found = dict(zip(targets.labels, targets.Y.getnnz(axis=0).tolist(), strict=True))
    if {label: n for label, n in kept.items() if n} != found:
        yield "the documents that labels have are not those of the ledger."
    sets = fetch(connection, select(tables.label_sets.c.key, tables.label_sets.c.labels))
    if any(label_set_key(labels) != key for key, labels in sets):
        yield "label sets do not match their keys."
