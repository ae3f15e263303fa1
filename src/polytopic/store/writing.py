"""Changing a store: the ledger, and with it all tables, in one transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update

from polytopic.counts import LARGEST_EXACT
from polytopic.errors import StoreError
from polytopic.store import erasure, tables
from polytopic.store.bags import Bags, read_bags, read_current
from polytopic.store.database import among, fetch, fetch_among, run_many
from polytopic.store.packing import MultisetDigest, label_set_key, pack, read_labels, unpack
from polytopic.store.receipts import Receipt
from polytopic.store.requests import KeyedRequest, clear_names
from polytopic.store.seals import Seals, document_rows, seal
from polytopic.store.selection import Selection, now
from polytopic.store.state import read_state
from polytopic.store.terms import Terms

NAMES = ("missing", "new_labels", "gone_labels")  # of receipts: lists of names

# Statements are built once: building one takes longer than running it.
_sets, _labels = tables.label_sets, tables.labels
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
DELETE_UNUSED_LABELS = delete(_labels).where(_labels.c.documents == 0, _labels.c.about.is_(None))
INSERT_DOCUMENT = insert(tables.documents)
INSERT_REVISION = insert(tables.revisions)
UPDATE_STATE = update(tables.state).values(
    revision=bindparam("revision"), digest=bindparam("digest")
)


@dataclass(frozen=True)
class NamedBags:
    """Documents that come: as :class:`Bags`, but with columns that have names."""

    names: Sequence[str]
    labels: Sequence[str]
    times: Sequence[str | None]
    texts: Sequence[str | None]
    digests: Sequence[bytes]
    counts: sparse.csr_matrix
    terms: Sequence[str]

    def identity(self) -> list:
        """Return what is the same for the same documents, ready for JSON."""
        digests = [digest.hex() for digest in self.digests]
        return [list(self.names), list(self.labels), list(self.times), digests]


@dataclass
class Writer:
    """Who changes a store, alone until the transaction ends."""

    connection: Connection
    action: str
    request: KeyedRequest | None = None
    told: dict[str, Any] = field(default_factory=dict)  # for the receipt

    def __post_init__(self) -> None:
        state = read_state(self.connection, to_change=True)
        self.revision, self.terms = state.revision, Terms(self.connection)
        self.before = self.digest = MultisetDigest(state.digest)
        self.seals = Seals(self.connection, state.revision)
        self.current_model = state.current_model
        self.changed, self.time = False, now()
        self.erased = False  # whether something was deleted that must leave no trace
        self._forgotten: Bags | None = None
        self._answered = None if self.request is None else self.request.find(self.connection)

    @property
    def is_done(self) -> bool:
        """Whether it was done before, under the same key."""
        return self._answered is not None

    # What is to be done

    def put(self, bags: NamedBags, *, strict: bool = False) -> None:
        """Learn documents; those that are known are corrected, or with ``strict`` refused."""
        n_terms = len(self.terms)
        numbers = self.terms.numbered(bags.terms)
        self.told["new_terms"] = len(self.terms) - n_terms
        counts = sparse.csr_matrix(
            (bags.counts.data, numbers[bags.counts.indices], bags.counts.indptr),
            shape=(len(bags.names), len(self.terms)),
        )
        incoming = Bags(bags.names, bags.labels, bags.times, bags.texts, bags.digests, counts)
        known = read_current(self.connection, len(self.terms), bags.names)
        self._exchange(incoming, known, strict=strict)

    def relabel(self, labels: Mapping[str, str]) -> None:
        """Give documents other label sets."""
        known = read_current(self.connection, len(self.terms), labels)
        self._miss(labels, known)
        self._exchange(replace(known, labels=[labels[name] for name in known.names]), known)

    def forget(self, names: Sequence[str], *, purge: bool = False) -> None:
        """Take documents out, with all their versions."""
        if clear_names(self.connection):
            self.erased = True
            erasure.overwrite_table(self.connection, "requests")
        versions = self._versions(names)
        self._miss(names, versions)
        self._forget_models(versions, purge=purge)
        if not len(versions):
            return
        current = versions.at([k for k, last in enumerate(versions.replaced) if last is None])
        self._count(versions.at([]), current, erased=versions)
        self._log_forgotten(current.first)
        erasure.remove_rows(self.connection, versions.rows)
        self.seals.remove("documents", _sealed(versions, versions.replaced))
        self.erased, self._forgotten = True, versions
        self.told["forgotten"] = len(current)

    @property
    def receipt(self) -> Receipt:
        """What was done."""
        return self._answered or Receipt(
            action=self.action,
            time=self.time,
            revision_before=self.revision,
            revision_after=self.revision + self.changed,
            digest_before=self.before.text,
            digest_after=self.digest.text,
            **self.told,
        )

    def finish(self) -> None:
        """Write down what was done."""
        if self.request is not None and not self.is_done:
            self.request.keep(self.connection, self.receipt)
        if self.changed:
            self._write_revision()
        if self._forgotten is not None:
            were_replaced = any(last is not None for last in self._forgotten.replaced)
            if erasure.overwrite(self.connection, were_replaced=were_replaced):
                seal(self.connection, "settings")

    def _write_revision(self) -> None:
        """Write down the terms, and the revision that begins."""
        self.terms.write()
        receipt = {  # without names: they may be of what is forgotten
            name: len(value) if name in NAMES else value
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

    def _versions(self, names: Sequence[str]) -> Bags:
        """Return all versions of documents."""
        ledger = tables.documents.c
        named = among(self.connection, ledger.document, names)
        # current and former versions apart, since each has an index of its own
        either = or_(
            and_(named, ledger.replaced.is_(None)), and_(named, ledger.replaced.is_not(None))
        )
        return read_bags(self.connection, len(self.terms), either)

    def _miss(self, names, known: Bags) -> None:
        found = set(known.names)
        self.told["missing"] = [name for name in names if name not in found]

    def _exchange(self, incoming: Bags, known: Bags, *, strict: bool = False) -> None:
        """Write the new rows of the ledger, and close those that they replace."""
        places = {name: k for k, name in enumerate(known.names)}
        fresh: list[tuple[int, int | None]] = []
        replaced, n_same = [], 0
        for k, row in enumerate(_identities(incoming)):
            place = places.get(incoming.names[k])
            if place is None:
                fresh.append((k, None))
            elif row == _known_identity(known, place, incoming.texts[k]):
                n_same += 1
            elif strict:
                raise StoreError(
                    f"document {incoming.names[k]!r} is in both stores with other labels, words or "
                    "another time; relabel or forget one of them. Nothing was merged."
                )
            else:
                fresh.append((k, known.first[place]))
                replaced.append(place)
        added, removed = incoming.at([k for k, _ in fresh]), known.at(replaced)
        self.told |= {
            "learned": len(added) - len(removed),
            "corrected": len(removed),
            "unchanged": n_same,
        }
        if fresh:
            self._count(added, removed)
            self._close(removed)
            self._insert(added, [first for _, first in fresh])

    def _close(self, removed: Bags) -> None:
        erasure.close_rows(self.connection, removed.rows, self.revision + 1)
        self.seals.remove("documents", _sealed(removed, removed.replaced))
        self.seals.add("documents", _sealed(removed, [self.revision + 1] * len(removed)))

    def _insert(self, added: Bags, first: Sequence[int | None]) -> None:
        learned = self.revision + 1
        columns = {
            "document": added.names,
            "labels": added.labels,
            "time": added.times,
            "text": added.texts,
            "digest": added.digests,
            "first": [learned if earlier is None else earlier for earlier in first],
            "learned": [learned] * len(added),
            **dict(zip(("terms", "counts"), pack(added.counts), strict=True)),
        }
        rows = list(zip(*columns.values(), strict=True))
        run_many(self.connection, INSERT_DOCUMENT, list(columns), rows)
        sealed = document_rows(added, columns["first"], columns["learned"], [None] * len(added))
        self.seals.add("documents", sealed)

    def _log_forgotten(self, first: Sequence[int]) -> None:
        learned, documents = np.unique(np.array(first, dtype=np.int64), return_counts=True)
        rows = [
            (at, self.revision + 1, n)
            for at, n in zip(learned.tolist(), documents.tolist(), strict=True)
        ]
        columns = ["learned", "revision", "documents"]
        run_many(self.connection, insert(tables.forgotten), columns, rows)
        self.seals.add("forgotten", rows)

    # The tables that are sums over the ledger

    def _count(self, added: Bags, removed: Bags, erased: Bags | None = None) -> None:
        """Bring all tables to documents that come and go, and to rows that leave the ledger."""
        self.changed = True
        self.digest = self.digest.changed(added.marked, removed.marked)
        counts = sparse.vstack([added.counts, removed.counts], format="csr")
        labels = [*added.labels, *removed.labels]
        sign = np.repeat([1, -1], [len(added), len(removed)])
        labelled = np.array([names != "[]" for names in labels], dtype=bool)
        documents = _term_sums(counts, sign * labelled)
        uses = _term_sums(counts, np.maximum(sign, 0))
        if erased is not None:
            uses -= _term_sums(erased.counts, np.ones(len(erased), dtype=np.int64))
        self.told["gone_terms"] = self.terms.add(documents, uses)
        rows = np.flatnonzero(labelled)
        if rows.size:
            self._count_sets(counts[rows], [labels[k] for k in rows], sign[rows])

    def _count_sets(self, counts, labels: Sequence[str], sign) -> None:
        """Add the counts of documents to those of their label sets."""
        place: dict[str, int] = {}
        own = np.array([place.setdefault(names, len(place)) for names in labels])
        shape = len(place), own.size
        grouping = sparse.csr_matrix((sign, (own, np.arange(own.size))), shape=shape)
        keys = [label_set_key(names) for names in place]
        rows = fetch_among(self.connection, READ_SETS, _sets.c.key, keys)
        known = {key: row for key, *row in rows}
        n_before, terms, numbers = zip(
            *(known.get(key, (0, b"", b"")) for key in keys), strict=True
        )
        after = sparse.csr_matrix(unpack(terms, numbers, len(self.terms)) + grouping @ counts)
        after.eliminate_zeros()
        more = np.bincount(own, weights=sign, minlength=len(place)).astype(np.int64)
        n_after = np.array(n_before) + more
        if (n_after < 0).any() or (after.data < 0).any():
            raise StoreError("the counts do not agree with the ledger; verify tells where.")
        if (after.data >= LARGEST_EXACT).any():
            raise StoreError("counts would reach 2^53, and not be exact. Nothing was changed.")
        new = [key for key in keys if key not in known]
        changed = list(zip(n_after.tolist(), *pack(after), keys, place, strict=True))
        self._write_sets(changed, set(new))
        self._count_labels(list(place), more)

    def _write_sets(self, rows: Sequence[tuple], new: set[str]) -> None:
        """Write label sets: documents, terms, counts, key and labels of each."""
        run, numbers = partial(run_many, self.connection), ["documents", "terms", "counts"]
        run(INSERT_SET, [*numbers, "key", "labels"], [row for row in rows if row[3] in new])
        left = [row[:4] for row in rows if row[0] and row[3] not in new]
        run(UPDATE_SET, [*numbers, "own"], left)
        run(DELETE_SET, ["own"], [row[3:4] for row in rows if not row[0]])

    def _count_labels(self, sets: Sequence[str], more) -> None:
        """Add documents to those of the labels; a label without any stays if the tree has it."""
        change = Counter[str]()
        for names, n in zip(sets, more.tolist(), strict=True):
            change.update(dict.fromkeys(read_labels(names), n))
        known = dict(map(tuple, fetch_among(self.connection, READ_LABELS, _labels.c.label, change)))
        rows = [(known.get(label, 0) + n, label) for label, n in change.items()]
        run = partial(run_many, self.connection)
        run(INSERT_LABEL, ["documents", "label"], [row for row in rows if row[1] not in known])
        run(UPDATE_LABEL, ["documents", "own"], [row for row in rows if row[1] in known])
        if not all(n for n, _ in rows):
            self.connection.execute(DELETE_UNUSED_LABELS)
        self.told["new_labels"] = sorted(k for n, k in rows if n and not known.get(k))
        self.told["gone_labels"] = sorted(k for n, k in rows if not n and known.get(k))

    # Published models

    def _forget_models(self, versions: Bags, *, purge: bool) -> None:
        """Mark the published models that saw one of these documents, or delete them."""
        table = tables.models
        rows = fetch(self.connection, select(table.c.id, table.c.origin, table.c.marked))
        saw = [row for row in rows if Selection.from_json(row.origin).saw(versions)]
        if purge:
            purged = sorted(row.id for row in rows if row in saw or row.marked is not None)
            self.connection.execute(delete(table).where(table.c.id.in_(purged)))
            if self.current_model in purged:
                newest = select(func.max(table.c.id)).scalar_subquery()
                self.connection.execute(update(tables.state).values(current_model=newest))
            self.told["purged_models"] = purged
            if purged:
                self.erased = True
                erasure.overwrite_table(self.connection, "models")
                self._seal_models()
            return
        fresh = sorted(row.id for row in saw if row.marked is None)
        mark = update(table).where(table.c.id.in_(fresh)).values(marked=self.revision + 1)
        self.connection.execute(mark)
        if fresh:
            erasure.overwrite_table(self.connection, "models")
            self._seal_models()
        self.told["marked_models"] = fresh

    def _seal_models(self) -> None:
        self.seals.renew("models")
        self.seals.renew("state")
        self.seals.write(self.revision)


def _sealed(bags: Bags, replaced: Sequence[int | None]):
    """Return rows of the ledger as they are sealed, replaced at these revisions."""
    return document_rows(bags, bags.first, bags.learned, replaced)


def _identities(bags: Bags):
    """Yield what is the same for the same document."""
    return zip(bags.labels, bags.times, bags.digests, bags.texts, strict=True)


def _known_identity(known: Bags, place: int, text: str | None):
    """Return what a known document must be to be the same; texts matter where one comes."""
    return (
        known.labels[place],
        known.times[place],
        known.digests[place],
        None if text is None else known.texts[place],
    )


def _term_sums(counts: sparse.csr_matrix, weights) -> np.ndarray:
    """Return for each term the sum of the weights of its documents."""
    each = np.repeat(weights, np.diff(counts.indptr))
    sums = np.bincount(counts.indices, weights=each, minlength=counts.shape[1])
    return sums.astype(np.int64)
