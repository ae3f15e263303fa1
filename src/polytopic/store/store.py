"""Store: a model that is a database."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted
from sqlalchemy import Connection, delete, func, insert, select

from polytopic.corpus.document import Document
from polytopic.counts import LARGEST_EXACT
from polytopic.errors import (
    ContentError,
    DamagedError,
    StoreError,
    StoreWarning,
    UnavailableError,
)
from polytopic.labeler import Labeler
from polytopic.labeler.files import to_bytes
from polytopic.labeler.reading import LabelReader, check_iterable
from polytopic.labels import LabelTree
from polytopic.store import erasure, publishing, settings, tables
from polytopic.store.bags import read_bags
from polytopic.store.database import PATIENCE, Database, can_hold, fetch
from polytopic.store.differences import LabelDifference, diff
from polytopic.store.drift import Drift, drift
from polytopic.store.packing import MultisetDigest, bag_digests, read_json, read_labels, to_json
from polytopic.store.reading import (
    StoredCounts,
    find_problems,
    ledger_digest,
    named,
    origin_of,
    read_counts,
    read_training,
)
from polytopic.store.receipts import Receipt, Verification
from polytopic.store.requests import KeyedRequest
from polytopic.store.seals import find_broken, seal
from polytopic.store.selection import Selection, now, read_time, revision_at, stored_time
from polytopic.store.state import last_revision, read_state
from polytopic.store.terms import Terms
from polytopic.store.timeline import Timeline, timeline
from polytopic.store.writing import NamedBags, Writer

LONGEST = 500  # characters of an id, a label or a term


class Store:
    """A living collection of labelled documents, and the models that are fitted on it.

    It keeps a ledger of documents (their counts; their texts only if asked to), the table of
    counts that models are fitted on, and published models, in SQLite or PostgreSQL. What was
    learned can be corrected and forgotten without a trace, and every change gives a receipt.

    Parameters
    ----------
    url : str or path
        A file for SQLite, or the URL of a database: ``postgresql+psycopg://user@host/name``.
    language, analyzer, fields, model, keep_texts : default=None
        What a new store is to be: the language of its texts ("en") or an analyzer; whole weights
        of fields; the model that :meth:`fit` fits ("pmm1"); and whether to keep texts. A store
        that exists has its own, which these must be if they are given.
    tree : LabelTree, default=None
        The tree of labels, put into the store.
    create : bool, default=True
        Whether to make a store where there is none.
    must_be_new : bool, default=False
        Whether to refuse a store that is there already.
    patience : float, default=60
        Seconds to wait for others who write to an SQLite file.

    Attributes
    ----------
    analyzer, fields, model, keep_texts
        The settings of the store.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> store = Store(f"{mkdtemp()}/news.db")
    >>> receipt = store.learn([
    ...     Document("1", "The striker scored a goal.", labels=["sport"]),
    ...     Document("2", "A rover on Mars.", labels=["space"]),
    ... ])
    >>> receipt.learned, receipt.revision_after, receipt.new_labels
    (2, 1, ['space', 'sport'])
    >>> store.fit().predict(["A goal!"])
    [['sport']]
    >>> store.forget(["1"]).gone_labels, store.verify().ok
    (['sport'], True)
    """

    def __init__(
        self,
        url: str | Path,
        *,
        language: str | None = None,
        analyzer=None,
        fields: Mapping[str, float] | None = None,
        tree: LabelTree | None = None,
        model: str | None = None,
        keep_texts: bool | None = None,
        create: bool = True,
        must_be_new: bool = False,
        patience: float = PATIENCE,
    ):
        given = {
            "language": language,
            "analyzer": analyzer,
            "fields": fields,
            "model": model,
            "keep_texts": keep_texts,
        }
        self._database, self._has_seals = Database(url, patience), False
        try:
            self._settings = self._open(given, create, must_be_new)
            if tree is not None:
                with self._writing() as connection:
                    settings.write_tree(connection, tree)
        except BaseException:
            self.close()
            raise

    def _open(self, given: dict[str, Any], create: bool, must_be_new: bool) -> settings.Settings:
        """Return the settings of the store that is there, or of a new one."""
        name = self._database.name
        if not create and not self._database.exists():
            raise StoreError(f"{name} does not exist; polytopic store init makes a store.")
        found = self._database.exists() and self._read_settings()
        if found and must_be_new:
            raise StoreError(f"{name} has a store already.")
        if found:
            found.check(name, **given)
        elif not create:
            raise StoreError(f"{name} has no store; polytopic store init makes one.")
        else:
            found = self._create(settings.Settings.new(**given))
        return found

    def _read_settings(self) -> settings.Settings | None:
        with self._database.reading() as connection:
            return settings.read(connection, self._database.name)

    def _create(self, new: settings.Settings) -> settings.Settings:
        with self._database.writing() as connection:
            found = settings.read(connection, self._database.name)  # another may have been faster
            if found is None:
                settings.create(connection, new)
        return found or new

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Give a connection to change the store by, which has a table of seals then."""
        with self._database.writing() as connection:
            if not self._has_seals:
                tables.seals.create(connection, checkfirst=True)
            yield connection
        self._has_seals = True

    def close(self) -> None:
        """Give all connections to the database back."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self._database.name}>"

    # What it is

    @property
    def analyzer(self):
        """What makes terms of texts."""
        return self._settings.analyzer

    @property
    def fields(self) -> Mapping[str, float] | None:
        """Weights of fields."""
        return self._settings.fields

    @property
    def model(self) -> str:
        """The name of the model that is fitted by default."""
        return self._settings.model

    @property
    def keep_texts(self) -> bool:
        """Whether texts are kept."""
        return self._settings.keep_texts

    @property
    def tree(self) -> LabelTree | None:
        """The tree of labels."""
        with self._database.reading() as connection:
            return settings.read_tree(connection)

    @property
    def revision(self) -> int:
        """How often the store has changed."""
        with self._database.reading() as connection:
            return last_revision(connection)

    @property
    def digest(self) -> str:
        """The digest of what is counted: the same for the same documents, in any order."""
        with self._database.reading() as connection:
            return MultisetDigest(read_state(connection).digest).text

    def state(self) -> tuple[int, int | None]:
        """Return the revision, and the number of the published model that answers."""
        with self._database.reading() as connection:
            state = read_state(connection)
            return state.revision, state.current_model

    def info(self) -> dict[str, Any]:
        """Return facts about the store, ready for JSON."""
        with self._database.reading() as connection:
            ledger, labels = tables.documents.c, tables.labels.c
            known = ledger.replaced.is_(None)

            def count(column, *conditions):
                return connection.execute(
                    select(func.count()).select_from(column.table).where(*conditions)
                ).scalar_one()

            state = read_state(connection)
            return {
                "store": self._database.place,
                "schema": tables.SCHEMA,
                "revision": state.revision,
                "digest": MultisetDigest(state.digest).text,
                "language": self.analyzer.language,
                "fields": self.fields,
                "keep_texts": self.keep_texts,
                "model": self.model,
                "documents": count(ledger.row, known),
                "labelled": count(ledger.row, known, ledger.labels != "[]"),
                "labels": count(labels.label, labels.documents > 0),
                "label_sets": count(tables.label_sets.c.key),
                "terms": int((Terms(connection).documents > 0).sum()),
                "published_models": count(tables.models.c.id),
                "current_model": state.current_model,
                "erasure_pending": erasure.is_pending(connection),
            }

    # Changing it

    def learn(
        self, documents: Iterable[Document | Mapping[str, Any]], *, key: str | None = None
    ) -> Receipt:
        """Learn documents, all in one transaction.

        A document that is known just so is left as it is, so that trying again is safe; one with
        other labels, words or another time is corrected. Of several with the same id the last
        counts. Documents without labels are kept, and not counted until they get some. The same
        ``key`` again, within two days, does nothing and gives the receipt of the first time, but
        without ``gone_labels`` if a document was forgotten since.
        """
        bags = self._bags(documents)
        request = None
        if key is not None:
            request = KeyedRequest(key, "learn", bags.identity(), label_sets=bags.labels)
        with self._changing("learn", request) as writer:
            if not writer.is_done:
                writer.put(bags)
        return writer.receipt

    def relabel(self, labels: Mapping[str, Collection[str]], *, key: str | None = None) -> Receipt:
        """Give documents other labels, by their ids; those not known are told as missing."""
        _check_kind("labels", labels, Mapping, "a dict of ids and labels")
        reader = LabelReader(self.tree)
        wanted = {}
        for name, names in labels.items():
            document = Document(name, text="", labels=names)  # type: ignore[arg-type]  # judged
            resolved = sorted({reader.resolve(label) for label in document.labels})
            _check_storable("labels", resolved)
            wanted[document.id] = to_json(resolved)
        request = None
        if key is not None:
            request = KeyedRequest(key, "relabel", wanted, list(wanted), list(wanted.values()))
        with self._changing("relabel", request) as writer:
            if not writer.is_done:
                writer.relabel(wanted)
        return writer.receipt

    def forget(self, ids: Iterable[str], *, purge: bool = False, key: str | None = None) -> Receipt:
        """Forget documents without a trace, with all their versions.

        Ids that are not known are told as missing. Published models that saw a document are
        marked, or with ``purge`` deleted, with all that were marked before; the newest of the
        others then answers.

        Parameters
        ----------
        ids : iterable of str
            The documents.
        purge : bool, default=False
            Whether to delete the models that saw one of them.
        key : str, default=None
            See :meth:`learn`.
        """
        if isinstance(ids, str):
            raise ValueError(f"ids == {ids!r} is one string, must be a list of ids.")
        names = list(dict.fromkeys(map(str, ids)))
        request = None if key is None else KeyedRequest(key, "forget", [names, purge], names)
        with self._changing("forget", request) as writer:
            if not writer.is_done:
                writer.forget(names, purge=purge)
        return writer.receipt

    def merge(self, other: Store) -> Receipt:
        """Learn what another store knows, without texts: its documents' counts, labels and times.

        Both must make the same terms of texts; a document that is in both must be the same.
        """
        _check_kind("other", other, Store, "a Store")
        if other.analyzer != self.analyzer or (other.fields or {}) != (self.fields or {}):
            raise StoreError(
                f"{other._database.name} has another analyzer or other fields than "
                f"{self._database.name}, so their words cannot be compared. Nothing was merged."
            )
        with other._database.reading() as connection:
            terms = Terms(connection)
            bags = read_bags(connection, len(terms), tables.documents.c.replaced.is_(None))
        X, names, _ = named(bags, terms)
        texts = [None] * len(bags)
        incoming = NamedBags(bags.names, bags.labels, bags.times, texts, bags.digests, X, names)
        with self._changing("merge") as writer:
            writer.put(incoming, strict=True)
        return writer.receipt

    @contextmanager
    def _changing(self, action: str, request: KeyedRequest | None = None) -> Iterator[Writer]:
        with self._writing() as connection:
            writer = Writer(connection, action, request)
            yield writer
            writer.finish()
            erases = writer.erased or erasure.is_pending(connection)
        if erases and action == "forget":
            self._database.erase(self._database.patience)
        elif erases:
            self._try_to_erase()

    def _try_to_erase(self) -> None:
        """Erase what is left of what was forgotten, unless others are in the way."""
        with self._database.reading() as connection:
            pending = erasure.is_pending(connection)
        if pending:
            with suppress(UnavailableError):  # the next change tries again
                self._database.erase(patience=0)

    def _bags(self, documents) -> NamedBags:
        """Count documents, the last of those with the same id."""
        check_iterable(documents)
        last = {}
        for document in documents:
            if not isinstance(document, Document):
                _check_kind("a document", document, Mapping, "a Document or a dict")
                document = Document.from_dict(document)
            last[document.id] = document
        docs = list(last.values())
        _check_storable("ids", last)
        X, terms = self.analyzer.count(docs, self.fields)
        wrong = np.flatnonzero((X.data % 1 != 0) | (X.data >= LARGEST_EXACT))
        if wrong.size:
            place = int(np.searchsorted(X.indptr, wrong[0], side="right")) - 1
            raise ContentError(
                f"document {docs[place].id!r} has a count of {X.data[wrong[0]]:g}, must be a "
                "whole number below 2^53: a store counts exactly. Nothing was learned."
            )
        _check_storable("terms", terms)
        targets = LabelReader(self.tree).read([d.labels for d in docs], len(docs)) if docs else None
        sets = targets.names() if targets else []
        _check_storable("labels", targets.labels if targets else ())
        return NamedBags(
            list(last),
            [to_json(labels) for labels in sets],
            [None if d.time is None else stored_time(d.time) for d in docs],
            [json.dumps(d.content) if self.keep_texts else None for d in docs],
            bag_digests(X, terms),
            X,
            terms,
        )

    # Reading it

    def counts(
        self,
        *,
        as_of: Any = None,
        since: Any = None,
        until: Any = None,
        labels: Collection[str] | None = None,
    ) -> StoredCounts:
        """Return the table of counts.

        Parameters
        ----------
        as_of : int, datetime or ISO 8601 string, default=None
            A revision or a time: the documents as they were known then, less those that were
            forgotten since; ``left_out`` of the table tells how many these are.
        since, until : datetime or ISO 8601 string, default=None
            Only documents of a time, the second one excluded. A document without a time has that
            at which it was first learned.
        labels : collection of str, default=None
            Only documents with one of these labels, or one below them in the tree.
        """
        with self._database.reading() as connection:
            chosen = self._selection(connection, as_of, since, until, labels)
            return read_counts(connection, chosen, last_revision(connection))

    def _selection(self, connection, as_of, since, until, labels) -> Selection:
        if labels is not None:
            if isinstance(labels, str):
                raise ValueError(f"labels == {labels!r} is one string, must be a list of labels.")
            tree = settings.read_tree(connection)
            reader = LabelReader(tree)
            asked = {reader.resolve(label) for label in labels}
            below = {b for a in asked if tree and a in tree for b in tree.descendants(a)}
            labels = sorted(asked | below)
        last = last_revision(connection)
        return Selection(
            revision=revision_at(connection, as_of, last),
            since=read_time("since", since),
            until=read_time("until", until),
            labels=labels,
            read_at=last,
        )

    def documents(
        self,
        *,
        labelled: bool | None = None,
        newest: int | None = None,
        as_of: int | None = None,
    ) -> Iterator[Document]:
        """Yield the documents of the ledger, by their ids: with their texts if they are kept.

        Parameters
        ----------
        labelled : bool, default=None
            Only those with labels, or only those without.
        newest : int, default=None
            Only as many of those that were learned last.
        as_of : int, default=None
            Only those that were known just so at a revision.
        """
        conditions = []
        if as_of is not None:
            conditions.append(tables.documents.c.learned <= as_of)
        if labelled is not None:
            bare = tables.documents.c.labels == "[]"
            conditions.append(~bare if labelled else bare)
        yield from self._documents(*conditions, newest=newest)

    def document(self, name: str) -> Document | None:
        """Return the document of an id, None if it is not known."""
        return next(self._documents(tables.documents.c.document == name), None)

    def _documents(self, *conditions, newest: int | None = None) -> Iterator[Document]:
        with self._database.reading() as connection:
            terms = Terms(connection)
            current = tables.documents.c.replaced.is_(None)
            bags = read_bags(connection, len(terms), current, *conditions, newest=newest)
        names = [terms.names[k] for k in bags.counts.indices.tolist()]
        ends = bags.counts.indptr.tolist()
        numbers = bags.counts.data.astype(np.int64).tolist()
        for k, name in enumerate(bags.names):
            own = slice(ends[k], ends[k + 1])
            counts = dict(zip(names[own], numbers[own], strict=True))
            about = {"id": name, "labels": read_labels(bags.labels[k]), "time": bags.times[k]}
            try:
                yield Document.from_dict(about | _content(bags.texts[k], counts))
            except ValueError as error:
                raise DamagedError(f"document {name!r} cannot be read ({error})") from error

    def diff(
        self,
        before: Any,
        after: Any = None,
        *,
        n_terms: int = 10,
        labels: Collection[str] | None = None,
    ) -> list[LabelDifference]:
        """Tell which labels changed between two moments, and in which words.

        See :func:`polytopic.store.differences.diff`.
        """
        return diff(self, before, after, n_terms=n_terms, labels=labels)

    def drift(
        self,
        *,
        by: str = "day",
        since: Any = None,
        until: Any = None,
        labels: Collection[str] | None = None,
    ) -> Drift:
        """Judge each period of the documents by what was known before it.

        See :func:`polytopic.store.drift.drift`.
        """
        return drift(self, by=by, since=since, until=until, labels=labels)

    def timeline(self, *, by: str = "auto") -> Timeline:
        """Count the labelled documents, and those of each label, by their time.

        See :func:`polytopic.store.timeline.timeline`.
        """
        return timeline(self, by=by)

    def verify(self) -> Verification:
        """Count the ledger afresh, and tell whether tables and digests agree with it."""
        with self._database.reading() as connection:
            try:
                current = tables.documents.c.replaced.is_(None)
                bags = read_bags(connection, len(Terms(connection)), current)
                problems = [
                    *self._database.check(connection),
                    *find_problems(connection),
                    *find_broken(connection),
                ]
            except DamagedError as error:
                return Verification(last_revision(connection), 0, "", [str(error)])
            return Verification(
                last_revision(connection), len(bags), ledger_digest(bags).text, problems
            )

    # Models

    def fit(
        self,
        model=None,
        *,
        as_of: Any = None,
        since: Any = None,
        until: Any = None,
        labels: Collection[str] | None = None,
        **parameters: Any,
    ) -> Labeler:
        """Fit a model on the documents, from nothing: it depends on them alone.

        Parameters
        ----------
        model : str or model, default=None
            The store's own by default.
        as_of, since, until, labels
            Which documents, see :meth:`counts`.
        **parameters
            Of :class:`~polytopic.Labeler`: ``rule``, ``min_df``, ``max_terms``, ``weights``,
            ``abstain``.
        """
        labeler = Labeler(
            model or self.model,
            language=self.analyzer.language,
            analyzer=self.analyzer,
            fields=self.fields,
            keep_documents=False,
            **parameters,
        )
        with self._database.reading() as connection:
            labeler.set_params(tree=settings.read_tree(connection))
            selection = self._selection(connection, as_of, since, until, labels)
            data = read_training(connection, labeler, selection, tuned=True)
        return data.fit(labeler)

    def labeler(self, *, like: Labeler | None = None) -> Labeler:
        """Return the labeler that answers now.

        A published count model is fitted again if something was learned since, with what it chose
        when it was published. A model of documents (mml, col, boostexter), which takes longer to
        fit, is returned as it was published, and a warning says how far it is behind. A model that
        was rolled back to, or published as of an earlier moment, is returned as it was published.

        A published model that has seen a document that was forgotten since never answers. It is
        fitted again without that document, with a warning if only :meth:`refresh` saves doing so
        each time; a model that was not fitted on this store cannot be, and raises.

        If no model is published, the store's own is fitted.

        Parameters
        ----------
        like : Labeler, default=None
            A labeler that this method returned earlier. What it chose is kept, and it is returned
            again if it is still the one that answers, which is faster.
        """
        with self._database.reading() as connection:
            current = publishing.read_current(connection)
            if current is not None:
                current.check_refreshable()
                labeler = publishing.read_labeler(connection, current, like)
        if current is None:
            return self.fit() if like is None else self._fitted_again(like)
        if current.is_outdated:
            if not current.follows:
                _warn_to_refresh(
                    f"the published {current.name} has seen a document that was forgotten since "
                    f"(revision {current.marked}), and is fitted again without it"
                )
            return self._fitted_again(labeler, as_of=current.as_of)
        if current.behind:
            _warn_to_refresh(f"the published {current.name} is {current.behind:,} revisions behind")
        return labeler

    def _fitted_again(self, labeler: Labeler, *, as_of: int | None = None) -> Labeler:
        """Return a labeler like another, which chose what stays, of the documents as they are.

        Or as they were known at a revision, less what was forgotten since.
        """
        again, chosen = clone(labeler), labeler.model_.chosen_
        with self._database.reading() as connection:
            again.set_params(tree=settings.read_tree(connection))
            last = last_revision(connection)
            revision = last if as_of is None else as_of
            origin = replace(labeler.fitted_from_.selection, revision=revision, read_at=last)
            data = read_training(connection, again, origin, tuned=False)
        return data.fit(again, chosen=chosen)

    def publish(
        self,
        labeler: Labeler | None = None,
        *,
        note: str | None = None,
        keep: int | None = 10,
        **fit: Any,
    ) -> int:
        """Keep a fitted labeler in the store, and let it answer; return its number.

        Parameters
        ----------
        labeler : Labeler, default=None
            What to publish; by default one is fitted, see :meth:`fit`. Of one that does not come
            from this store it is not known what it has seen: whatever is forgotten marks it.
        note : str, default=None
            What to say of it.
        keep : int, default=10
            How many published models to keep, the oldest go first; None for all.
        **fit
            What :meth:`fit` takes.
        """
        if labeler is not None:
            _check_kind("labeler", labeler, Labeler, "a Labeler")
            check_is_fitted(labeler, "model_")
        if keep is not None:
            check_scalar(keep, "keep", Integral, min_val=1)
        number = None
        while number is None:
            fitted = self.fit(**fit) if labeler is None else labeler
            content = self._packed(fitted)  # before others have to wait
            with self._writing() as connection:
                # what was purged while it was fitted must not come back; one that is given is
                # published as it is, and marked
                if labeler is not None or not publishing.is_marked(connection, fitted):
                    number = publishing.publish(connection, fitted, content, note, keep)
        self._try_to_erase()
        return number

    def _packed(self, labeler: Labeler) -> bytes:
        """Return a labeler as bytes, without the counts if the store has them."""
        origin = origin_of(self._database.engine.url, labeler)
        return to_bytes(labeler, counts=origin.revision is None)

    def refresh(self, *, keep: int | None = 10) -> int | None:
        """Publish the model that answers afresh, if something changed since; return its number.

        It is fitted from nothing, so that it depends on the documents alone, with what was chosen
        when it was first published. Where no model is published, the store's own is. A model that
        was rolled back to, or published as of an earlier moment, goes on answering until another
        is published; if it has seen what was forgotten since, it is fitted afresh without that.
        If meanwhile another model has been published or rolled back to, that one answers, and
        nothing is published.

        Parameters
        ----------
        keep : int, default=10
            See :meth:`publish`.
        """
        number = None
        while number is None:  # again where something was forgotten while it was fitted
            with self._database.reading() as connection:
                current = publishing.read_current(connection)
                if current is not None and current.can_refresh:
                    current.check_refreshable()
                    labeler = publishing.read(connection, current.id)
            if current is None:
                return self.publish(keep=keep)
            if not current.can_refresh:
                return None
            again = self._fitted_again(labeler, as_of=current.as_of)
            content = self._packed(again)
            with self._writing() as connection:
                if read_state(connection).current_model != current.id:
                    return None
                if not publishing.is_marked(connection, again):
                    number = publishing.publish(connection, again, content, "refreshed", keep)
        self._try_to_erase()
        return number

    def must_refresh(self) -> bool:
        """Tell whether only :meth:`refresh` makes the published model answer again.

        It has seen a document that was forgotten since, and is not fitted again by itself.
        """
        with self._database.reading() as connection:
            current = publishing.read_current(connection)
            return current is not None and current.marked is not None and not current.follows

    def has_forgotten_since(self, revision: int) -> bool:
        """Tell whether a document was forgotten after a revision."""
        with self._database.reading() as connection:
            ((last,),) = fetch(connection, select(func.max(tables.forgotten.c.revision)))
            return last is not None and last > revision

    def rollback(self, number: int | None = None) -> int:
        """Let an earlier published model answer: the one before, or that of a number."""
        with self._writing() as connection:
            return publishing.roll_back(connection, number)

    def current(self) -> Labeler | None:
        """Return the current published model as it was published, None if there is none.

        Whatever was forgotten since is still in it; :meth:`labeler` returns what may answer.
        """
        with self._database.reading() as connection:
            current = publishing.read_current(connection)
            return None if current is None else publishing.read(connection, current.id)

    def history(self) -> list[publishing.PublishedModel]:
        """Return the published models, the newest first."""
        with self._database.reading() as connection:
            return publishing.history(connection)

    # Tokens

    def add_token(self, name: str, role: str, digest: str) -> None:
        """Keep the digest of a token with a role."""
        row = {"digest": digest, "name": name, "role": role, "time": now()}
        with self._writing() as connection:
            table = tables.tokens
            if fetch(connection, select(table).where(table.c.name == name)):
                raise StoreError(f"there is a token {name!r} already; revoke it, or name another.")
            connection.execute(insert(table), row)
            seal(connection, "tokens")

    def revoke_token(self, name: str) -> None:
        """Let a token be worth nothing from now on."""
        with self._writing() as connection:
            table = tables.tokens
            if not connection.execute(delete(table).where(table.c.name == name)).rowcount:
                raise StoreError(f"there is no token {name!r}.")
            seal(connection, "tokens")

    def tokens(self) -> list[dict[str, str]]:
        """Return the names, roles and times of all tokens."""
        with self._database.reading() as connection:
            columns = tables.tokens.c
            query = select(columns.name, columns.role, columns.time).order_by(columns.time)
            return [row._asdict() for row in fetch(connection, query)]

    def token_role(self, digest: str) -> str | None:
        """Return the role of the token with a digest, None if there is no such token."""
        with self._database.reading() as connection:
            columns = tables.tokens.c
            query = select(columns.role).where(columns.digest == digest)
            return next((role for (role,) in fetch(connection, query)), None)


def _content(text: str | None, counts: Mapping[str, int]) -> dict[str, Any]:
    if text is None:
        return {"counts": counts}
    content = read_json(text, "a text")
    if isinstance(content, str):
        return {"text": content}
    if not isinstance(content, dict):
        raise DamagedError("a text is neither a string nor an object")
    fields = all(isinstance(value, str) for value in content.values())
    return {"fields": content} if fields and content else {"counts": content}


def _warn_to_refresh(reason: str) -> None:
    warnings.warn(f"{reason}; refresh it (polytopic store refresh).", StoreWarning, stacklevel=3)


def _check_kind(what: str, value: Any, kind: type, needed: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{what} == {value!r}, must be {needed}.")


def _check_storable(what: str, names: Iterable[str]) -> None:
    """Refuse names that a database cannot hold."""
    names = list(names)
    if max(map(len, names), default=0) <= LONGEST and can_hold("".join(names)):
        return
    for name in names:
        if len(name) > LONGEST or not can_hold(name):
            raise ContentError(
                f"{what} hold {name[:40]!r}, of {len(name)} characters; a store takes at most "
                f"{LONGEST}, and none that is no text. Nothing was changed."
            )
