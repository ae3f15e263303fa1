"""Changing a store: the ledger and all tables that follow from it, in one transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update

from polytopic.corpus.document import Document
from polytopic.counts import LARGEST_EXACT
from polytopic.errors import ContentError, StoreError
from polytopic.labeler.reading import LabelReader, check_iterable
from polytopic.labels import LabelTree
from polytopic.store import articles, assignments, erasure, schema, search
from polytopic.store.database import can_store, fetch, fetch_where_in, is_one_of, run_many
from polytopic.store.encoding import (
    MultisetDigest,
    decode_rows,
    document_digests,
    encode_rows,
    label_set_key,
    read_labels,
    to_json,
)
from polytopic.store.ledger import (
    IS_CURRENT,
    LedgerRows,
    Selection,
    now,
    read_current_rows,
    read_ledger,
    stored_time,
)
from polytopic.store.receipts import NAME_FIELDS, KeyedRequest, Receipt, clear_kept_names
from polytopic.store.schema import Settings, read_state
from polytopic.store.seals import Seals, document_rows
from polytopic.store.terms import Terms

MAX_LENGTH = 500  # characters of an id, a label or a term

# Statements are built once: building one takes longer than running it.
_sets, _labels = schema.label_sets, schema.labels
_same_set = _sets.c.key == bindparam("own")
_same_label = _labels.c.label == bindparam("own")
READ_SETS = select(_sets.c.key, _sets.c.documents, _sets.c.terms, _sets.c.counts)
INSERT_SET = insert(_sets)
UPDATE_SET = (
    update(_sets)
    .where(_same_set)
    .values(documents=bindparam("documents"), terms=bindparam("terms"), counts=bindparam("counts"))
)
DELETE_SET = delete(_sets).where(_same_set)
READ_LABELS = select(_labels.c.label, _labels.c.documents)
INSERT_LABEL = insert(_labels)
UPDATE_LABEL = update(_labels).where(_same_label).values(documents=bindparam("documents"))
INSERT_DOCUMENT = insert(schema.documents)
INSERT_REVISION = insert(schema.revisions)
UPDATE_STATE = update(schema.state).values(
    revision=bindparam("revision"), digest=bindparam("digest")
)


@dataclass(frozen=True)
class IncomingDocuments:
    """Documents to learn: columns of the ledger, with counts by term."""

    ids: Sequence[str]
    labels: Sequence[str]
    times: Sequence[str | None]
    texts: Sequence[str | None]
    digests: Sequence[bytes]
    counts: sparse.csr_matrix
    terms: Sequence[str]

    @classmethod
    def from_documents(
        cls, documents: Iterable, settings: Settings, tree: LabelTree | None
    ) -> IncomingDocuments:
        """Count documents; of those with the same id, the last one."""
        by_id = {}
        for document in check_iterable(documents):
            if not isinstance(document, Document):
                if not isinstance(document, Mapping):
                    raise TypeError(f"a document == {document!r}, must be a Document or a dict.")
                document = Document.from_dict(document)
            by_id[document.id] = document
        docs: list[Any] = list(by_id.values())
        check_storable("ids", by_id)
        X, terms = settings.analyzer.count(docs, settings.fields)
        inexact = np.flatnonzero((X.data % 1 != 0) | (X.data >= LARGEST_EXACT))
        if inexact.size:
            place = int(np.searchsorted(X.indptr, inexact[0], side="right")) - 1
            raise ContentError(
                f"document {docs[place].id!r} has a count of {X.data[inexact[0]]:g}, must be a "
                "whole number below 2^53, because a store counts exactly. Nothing was learned."
            )
        check_storable("terms", terms)
        targets = LabelReader(tree).read([d.labels for d in docs], len(docs)) if docs else None
        check_storable("labels", targets.labels if targets else ())
        return cls(
            ids=list(by_id),
            labels=[to_json(labels) for labels in (targets.names() if targets else [])],
            times=[None if d.time is None else stored_time(d.time) for d in docs],
            texts=[json.dumps(d.content) if settings.keep_texts else None for d in docs],
            digests=document_digests(X, terms),
            counts=X,
            terms=terms,
        )

    def content(self) -> list:
        """Return a value that is equal for equal documents, ready for JSON."""
        digests = [digest.hex() for digest in self.digests]
        return [list(self.ids), list(self.labels), list(self.times), digests]


def check_storable(kind: str, names: Iterable[str]) -> None:
    """Raise if a database cannot store one of these ids, labels or terms."""
    names = list(names)
    if max(map(len, names), default=0) <= MAX_LENGTH and can_store("".join(names)):
        return
    for name in names:
        if len(name) > MAX_LENGTH or not can_store(name):
            raise ContentError(
                f"{kind} contain {name[:40]!r} ({len(name)} characters); a store accepts at most "
                f"{MAX_LENGTH} characters of valid text. Nothing was changed."
            )


class Writer:
    """One change to a store, in one write transaction.

    Parameters
    ----------
    connection : Connection
        The transaction.
    action : str
        The change, as in :class:`Receipt`.
    request : KeyedRequest, default=None
        The request for it, if it has an idempotency key.

    Attributes
    ----------
    is_repeated : bool
        Whether the same request was made before; there is nothing to do then.
    must_erase : bool
        Whether copies of deleted rows must be overwritten after the transaction.
    """

    def __init__(self, connection: Connection, action: str, request: KeyedRequest | None = None):
        self.connection, self.action, self.request = connection, action, request
        state = read_state(connection, for_update=True)
        self.revision, self.current_model = state.revision, state.current_model
        self.terms, self.seals = Terms(connection), Seals(connection, state.revision)
        self.digest_before = self.digest = MultisetDigest(state.digest)
        self.time, self.changed, self.must_erase = now(), False, False
        self._details: dict[str, Any] = {}  # of the receipt
        self._deleted: LedgerRows | None = None
        self._earlier_receipt = None if request is None else request.find_receipt(connection)

    @property
    def is_repeated(self) -> bool:
        """Whether the same request was made before."""
        return self._earlier_receipt is not None

    @property
    def receipt(self) -> Receipt:
        """The receipt of the change."""
        return self._earlier_receipt or Receipt(
            action=self.action,
            time=self.time,
            revision_before=self.revision,
            revision_after=self.revision + self.changed,
            digest_before=self.digest_before.text,
            digest_after=self.digest.text,
            **self._details,
        )

    # Changes

    def learn(
        self, incoming: IncomingDocuments, *, strict: bool = False, only_content: bool = False
    ) -> None:
        """Add documents; those with other content are corrected, or rejected if ``strict``.

        With ``only_content``, known documents keep their labels and times.
        """
        n_terms = len(self.terms)
        numbers = self.terms.assign_numbers(incoming.terms)
        self._details["new_terms"] = len(self.terms) - n_terms
        counts = incoming.counts
        rows = LedgerRows(
            incoming.ids,
            incoming.labels,
            incoming.times,
            incoming.texts,
            incoming.digests,
            sparse.csr_matrix(
                (counts.data, numbers[counts.indices], counts.indptr),
                shape=(len(incoming.ids), len(self.terms)),
            ),
        )
        known = self._find_current(incoming.ids)
        if only_content:
            places = {name: k for k, name in enumerate(known.ids)}
            own = [places.get(name) for name in rows.ids]
            labels = [
                given if k is None else known.labels[k]
                for given, k in zip(rows.labels, own, strict=True)
            ]
            times = [
                given if k is None else known.times[k]
                for given, k in zip(rows.times, own, strict=True)
            ]
            rows = replace(rows, labels=labels, times=times)
        self._write_versions(rows, known, strict=strict)

    def relabel(self, labels: Mapping[str, str]) -> None:
        """Replace the label sets of documents."""
        known = self._find_current(labels)
        self._record_missing(labels, known)
        self._write_versions(replace(known, labels=[labels[name] for name in known.ids]), known)

    def forget(self, ids: Sequence[str], *, purge: bool = False) -> None:
        """Delete documents, with all their versions."""
        if clear_kept_names(self.connection):
            self.must_erase = True
            erasure.overwrite_table(self.connection, "requests")
        versions = self._find_versions(ids)
        self._record_missing(ids, versions)
        self._mark_models(versions, purge=purge)
        if not len(versions):
            return
        current = versions.current()
        self._update_tables(versions.take([]), current, erased=versions)
        self._log_deletions(current.first)
        erasure.remove_rows(self.connection, versions.numbers)
        self._delete_topics(versions)
        self.seals.remove("documents", _sealed(versions, versions.replaced))
        self.must_erase, self._deleted = True, versions
        self._details["forgotten"] = len(current)

    def finish(self) -> None:
        """Write the terms, the revision and the receipt."""
        if self.request is not None and not self.is_repeated:
            self.request.keep_receipt(self.connection, self.receipt)
        if self.changed:
            self._write_revision()
        if self._deleted is not None:
            were_replaced = any(revision is not None for revision in self._deleted.replaced)
            erasure.overwrite(self.connection, were_replaced=were_replaced)

    def _write_revision(self) -> None:
        self.terms.write()
        receipt = {  # without ids and labels, which may be forgotten later
            name: len(value) if name in NAME_FIELDS else value
            for name, value in self.receipt.to_dict().items()
        }
        after = {"revision": receipt["revision_after"]}
        row = after | {"time": self.time, "receipt": json.dumps(receipt)}
        self.connection.execute(INSERT_REVISION, row)
        self.seals.add("revisions", [tuple(row.values())])
        self.seals.write(after["revision"])
        state = after | {"digest": self.digest.sums}
        self.connection.execute(UPDATE_STATE, state)

    # The ledger

    def _find_current(self, ids: Iterable[str]) -> LedgerRows:
        return read_current_rows(self.connection, len(self.terms), ids)

    def _find_versions(self, ids: Sequence[str]) -> LedgerRows:
        """Return all versions of documents."""
        is_listed = is_one_of(self.connection, schema.documents.c.document, ids)
        # two conditions, since current and former versions have an index each
        either = or_(and_(is_listed, IS_CURRENT), and_(is_listed, ~IS_CURRENT))
        return read_ledger(self.connection, len(self.terms), either)

    def _record_missing(self, ids: Iterable[str], known: LedgerRows) -> None:
        known_ids = set(known.ids)
        self._details["missing"] = [name for name in ids if name not in known_ids]

    def _write_versions(
        self, incoming: LedgerRows, known: LedgerRows, *, strict: bool = False
    ) -> None:
        """Add rows to the ledger, and close those that they replace."""
        places = {name: k for k, name in enumerate(known.ids)}
        added: list[tuple[int, int | None]] = []  # place, and when it was first learned
        replaced, n_unchanged = [], 0
        for k, content in enumerate(_contents(incoming)):
            place = places.get(incoming.ids[k])
            if place is None:
                added.append((k, None))
            elif content == _content_at(known, place, with_text=incoming.texts[k] is not None):
                n_unchanged += 1
            elif strict:
                raise StoreError(
                    f"document {incoming.ids[k]!r} is in both stores with different labels, words "
                    "or times; relabel or forget one of them. Nothing was merged."
                )
            else:
                added.append((k, known.first[place]))
                replaced.append(place)
        new, old = incoming.take([k for k, _ in added]), known.take(replaced)
        self._details |= {
            "learned": len(new) - len(old),
            "corrected": len(old),
            "unchanged": n_unchanged,
        }
        if added:
            self._update_tables(new, old)
            assignments.delete_entries(self.connection, assignments.places_of(old))
            self._close(old)
            self._insert(new, [first for _, first in added])
            self._update_topics(new, old)

    def _close(self, rows: LedgerRows) -> None:
        erasure.close_rows(self.connection, rows.numbers, self.revision + 1)
        self.seals.remove("documents", _sealed(rows, rows.replaced))
        self.seals.add("documents", _sealed(rows, [self.revision + 1] * len(rows)))

    def _insert(self, rows: LedgerRows, first: Sequence[int | None]) -> None:
        learned = self.revision + 1
        columns = {
            "document": rows.ids,
            "labels": rows.labels,
            "time": rows.times,
            "text": rows.texts,
            "digest": rows.digests,
            "first": [learned if earlier is None else earlier for earlier in first],
            "learned": [learned] * len(rows),
            **dict(zip(("terms", "counts"), encode_rows(rows.counts), strict=True)),
        }
        values = list(zip(*columns.values(), strict=True))
        run_many(self.connection, INSERT_DOCUMENT, list(columns), values)
        sealed = document_rows(rows, columns["first"], columns["learned"], [None] * len(rows))
        self.seals.add("documents", sealed)

    def _update_topics(self, new: LedgerRows, old: LedgerRows) -> None:
        """Write the topics of new versions; assignments belong to the words of a document."""
        digests = dict(zip(new.ids, new.digests, strict=True))
        reworded = [
            name for name, d in zip(old.ids, old.digests, strict=True) if digests[name] != d
        ]
        assignments.close_assignments(self.connection, self.seals, reworded, self.time)
        assignments.write_entries(self.connection, new.ids, self.time)

    def _delete_topics(self, versions: LedgerRows) -> None:
        """Delete all topics of deleted documents, and labels that only they had."""
        assignments.delete_entries(self.connection, assignments.places_of(versions.current()))
        assignments.delete_assignments(self.connection, self.seals, versions.ids)
        labels = {label for names in set(versions.labels) for label in read_labels(names)}
        assignments.delete_labels(self.connection, self.seals, labels)
        articles.delete_articles(self.connection, self.seals, versions.ids)
        search.delete_words(self.connection, versions.numbers)

    def _log_deletions(self, first: Sequence[int]) -> None:
        learned, documents = np.unique(np.array(first, dtype=np.int64), return_counts=True)
        rows = [
            (revision, self.revision + 1, n)
            for revision, n in zip(learned.tolist(), documents.tolist(), strict=True)
        ]
        columns = ["learned", "revision", "documents"]
        run_many(self.connection, insert(schema.forgotten), columns, rows)
        self.seals.add("forgotten", rows)

    # Tables that are sums over the ledger

    def _update_tables(
        self, added: LedgerRows, removed: LedgerRows, erased: LedgerRows | None = None
    ) -> None:
        """Add and remove documents in all tables; ``erased`` rows leave the ledger altogether."""
        self.changed = True
        self.digest = self.digest.with_changes(added.labelled_digests, removed.labelled_digests)
        counts = sparse.vstack([added.counts, removed.counts], format="csr")
        labels = [*added.labels, *removed.labels]
        sign = np.repeat([1, -1], [len(added), len(removed)])
        is_labelled = np.array([names != "[]" for names in labels], dtype=bool)
        documents = _sum_by_term(counts, sign * is_labelled)
        uses = _sum_by_term(counts, np.maximum(sign, 0))
        if erased is not None:
            uses -= _sum_by_term(erased.counts, np.ones(len(erased), dtype=np.int64))
        self._details["gone_terms"] = self.terms.add(documents, uses)
        rows = np.flatnonzero(is_labelled)
        if rows.size:
            self._update_label_sets(counts[rows], [labels[k] for k in rows], sign[rows])

    def _update_label_sets(self, counts, labels: Sequence[str], sign) -> None:
        """Add the counts of documents (``sign`` 1) or subtract them (-1)."""
        place: dict[str, int] = {}
        own = np.array([place.setdefault(names, len(place)) for names in labels])
        shape = len(place), own.size
        grouping = sparse.csr_matrix((sign, (own, np.arange(own.size))), shape=shape)
        keys = [label_set_key(names) for names in place]
        rows = fetch_where_in(self.connection, READ_SETS, _sets.c.key, keys)
        known = {key: row for key, *row in rows}
        n_before, terms, numbers = zip(
            *(known.get(key, (0, b"", b"")) for key in keys), strict=True
        )
        after = sparse.csr_matrix(decode_rows(terms, numbers, len(self.terms)) + grouping @ counts)
        after.eliminate_zeros()
        change = np.bincount(own, weights=sign, minlength=len(place)).astype(np.int64)
        n_after = np.array(n_before) + change
        if (n_after < 0).any() or (after.data < 0).any():
            raise StoreError("the counts do not match the ledger; run polytopic store verify.")
        if (after.data >= LARGEST_EXACT).any():
            raise StoreError("a count would reach 2^53 and not be exact. Nothing was changed.")
        changed = list(zip(n_after.tolist(), *encode_rows(after), keys, place, strict=True))
        self._write_label_sets(changed, set(known))
        self._update_labels(list(place), change)

    def _write_label_sets(self, rows: Sequence[tuple], known: set[str]) -> None:
        """Write rows of documents, terms, counts, key and labels; empty sets are deleted."""
        run, numbers = partial(run_many, self.connection), ["documents", "terms", "counts"]
        added = [row for row in rows if row[3] not in known]
        updated = [row[:4] for row in rows if row[0] and row[3] in known]
        run(INSERT_SET, [*numbers, "key", "labels"], added)
        run(UPDATE_SET, [*numbers, "own"], updated)
        run(DELETE_SET, ["own"], [row[3:4] for row in rows if not row[0]])

    def _update_labels(self, sets: Sequence[str], change) -> None:
        """Add to the documents of labels; a label without documents stays if the tree has it."""
        changes = Counter[str]()
        for names, n in zip(sets, change.tolist(), strict=True):
            changes.update(dict.fromkeys(read_labels(names), n))
        stored = fetch_where_in(self.connection, READ_LABELS, _labels.c.label, changes)
        known = dict(map(tuple, stored))
        rows = [(known.get(label, 0) + n, label) for label, n in changes.items()]
        run = partial(run_many, self.connection)
        run(INSERT_LABEL, ["documents", "label"], [row for row in rows if row[1] not in known])
        run(UPDATE_LABEL, ["documents", "own"], [row for row in rows if row[1] in known])
        if not all(n for n, _ in rows):
            schema.delete_unused_labels(self.connection)
        self._details["new_labels"] = sorted(k for n, k in rows if n and not known.get(k))
        self._details["gone_labels"] = sorted(k for n, k in rows if not n and known.get(k))

    # Published models

    def _mark_models(self, versions: LedgerRows, *, purge: bool) -> None:
        """Mark the published models that were fitted on one of these versions, or delete them."""
        table = schema.models
        rows = fetch(self.connection, select(table.c.id, table.c.origin, table.c.marked))
        fitted = [row for row in rows if Selection.from_json(row.origin).includes_any(versions)]
        if purge:
            models = sorted(row.id for row in rows if row in fitted or row.marked is not None)
            self.connection.execute(delete(table).where(table.c.id.in_(models)))
            if self.current_model in models:
                newest = select(func.max(table.c.id)).scalar_subquery()
                self.connection.execute(update(schema.state).values(current_model=newest))
            self.must_erase = self.must_erase or bool(models)
        else:
            models = sorted(row.id for row in fitted if row.marked is None)
            mark = update(table).where(table.c.id.in_(models)).values(marked=self.revision + 1)
            self.connection.execute(mark)
        self._details["purged_models" if purge else "marked_models"] = models
        if models:
            erasure.overwrite_table(self.connection, "models")
            self.seals.renew("models")
            self.seals.renew("state")
            self.seals.write(self.revision)


def _sealed(rows: LedgerRows, replaced: Sequence[int | None]):
    """Return the sealed columns of stored rows that were replaced at some revisions."""
    return document_rows(rows, rows.first, rows.learned, replaced)


def _contents(rows: LedgerRows):
    """Yield what makes two documents the same."""
    return zip(rows.labels, rows.times, rows.digests, rows.texts, strict=True)


def _content_at(rows: LedgerRows, place: int, *, with_text: bool):
    text = rows.texts[place] if with_text else None
    return rows.labels[place], rows.times[place], rows.digests[place], text


def _sum_by_term(counts: sparse.csr_matrix, weights) -> np.ndarray:
    """Return for each term the sum of the weights of its documents."""
    entry_weights = np.repeat(weights, np.diff(counts.indptr))
    sums = np.bincount(counts.indices, weights=entry_weights, minlength=counts.shape[1])
    return sums.astype(np.int64)
