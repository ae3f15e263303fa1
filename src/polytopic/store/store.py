"""Store: a model that is a database."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted
from sqlalchemy import Connection, func, select

from polytopic.corpus.document import Document
from polytopic.counts import DocumentRows
from polytopic.errors import DamagedError, StoreError, StoreWarning, UnavailableError
from polytopic.labeler import Labeler
from polytopic.labeler.reading import LabelReader
from polytopic.labeler.tuned_rule import MAX_DOCS, named_rule, tune_rule
from polytopic.labels import LabelTree
from polytopic.models.checks import check_name
from polytopic.store import analysis, assignments, erasure, models, schema, search
from polytopic.store.analysis import DocumentStream, Drift, LabelDifference, Timeline
from polytopic.store.articles import Articles, find_lost_articles
from polytopic.store.assignments import Assigner, Assignment, Target
from polytopic.store.database import (
    LARGEST_INTEGER,
    TIMEOUT,
    Database,
    can_store,
    check_text,
)
from polytopic.store.encoding import MultisetDigest, to_json
from polytopic.store.ledger import (
    IS_CURRENT,
    IS_LABELLED,
    Selection,
    read_ledger,
    read_time,
    revision_at,
)
from polytopic.store.models import Monitor, PublishedModel
from polytopic.store.reader import (
    StoredCounts,
    Verification,
    find_mismatches,
    ledger_digest,
    read_counts,
    read_rows,
    read_training_data,
    resolve_terms,
    source_selection,
    to_documents,
)
from polytopic.store.receipts import KeyedRequest, Receipt
from polytopic.store.schema import Settings, last_revision, read_state, read_tree
from polytopic.store.seals import find_tampering, seal, upgrade_seals
from polytopic.store.search import Page, TopicShares
from polytopic.store.terms import Terms
from polytopic.store.tokens import Tokens
from polytopic.store.writer import IncomingDocuments, Writer, check_storable


class Store:
    """A living collection of labelled documents, and the models fitted on it.

    A store keeps a ledger of documents (their counts; their texts only on request), the table of
    counts that models are fitted on, and published models, in SQLite or PostgreSQL. Documents can
    be corrected and erased exactly, and every change gives a receipt.

    Parameters
    ----------
    url : str or path
        A file for SQLite, or the URL of a database: ``postgresql+psycopg://user@host/name``.
    language, analyzer, fields, model, keep_texts, rule : default=None
        The settings of a new store: the language of its texts ("en") or an analyzer, whole-number
        weights of fields, the model that :meth:`fit` fits ("pmm1"), whether to keep texts, and the
        decision rule of its models, by its name on the command line (the model decides). If the
        store exists, they must agree with its settings.
    tree : LabelTree, default=None
        The tree of labels, which replaces that of the store.
    create : bool, default=True
        Whether to create the store if it does not exist.
    must_be_new : bool, default=False
        Whether to raise if the store exists.
    timeout : float, default=60
        Seconds to wait for other processes that write to an SQLite file.

    Attributes
    ----------
    analyzer, fields, model, keep_texts, rule
        The settings of the store.
    tokens : Tokens
        Access tokens for the service.
    articles : Articles
        What is known about documents that the news desk has acquired.
    monitor : Monitor
        What a service that follows the store polls.

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
        rule: str | None = None,
        create: bool = True,
        must_be_new: bool = False,
        timeout: float = TIMEOUT,
    ):
        if tree is not None:
            _check_type("tree", tree, LabelTree, "a LabelTree")
        parameters = {
            "language": language,
            "analyzer": analyzer,
            "fields": fields,
            "model": model,
            "keep_texts": keep_texts,
            "rule": rule,
        }
        self._database, self._has_seals = Database(url, timeout), False
        self._assigner, self.articles = Assigner(self._database), Articles(self._database)
        self.tokens, self.monitor = Tokens(self._database), Monitor(self._database)
        try:
            self._settings = self._open(parameters, create, must_be_new)
            if tree is not None:
                with self._database.writing() as connection:
                    schema.write_tree(connection, tree)
                    seal(connection, "tree")
        except BaseException:
            self.close()
            raise

    def _open(self, parameters: dict[str, Any], create: bool, must_be_new: bool) -> Settings:
        """Return the settings of the existing store, or of a new one."""
        name, exists = self._database.name, self._database.exists()
        if not create and not exists:
            raise StoreError(f"{name} does not exist; create a store with polytopic store init.")
        settings = None
        if exists:
            with self._database.reading() as connection:
                settings = schema.read_settings(connection, name)
        if settings is None and not create:
            raise StoreError(f"{name} has no store; create one with polytopic store init.")
        if settings is None:
            return self._create(Settings.new(**parameters))
        if must_be_new:
            raise StoreError(f"{name} has a store already.")
        settings.check(name, **parameters)
        self._upgrade()
        return settings

    def _upgrade(self) -> None:
        """Give a store of an earlier schema the tables of the present one."""
        with self._database.reading() as connection:
            if schema.read_schema(connection) == schema.SCHEMA:
                return
        with self._database.writing() as connection:
            if schema.read_schema(connection) < schema.SCHEMA:  # no other process has been faster
                upgrade_seals(connection, lambda: schema.upgrade_tables(connection))
                assignments.fill_entries(connection)

    def _create(self, new: Settings) -> Settings:
        with self._database.writing() as connection:
            settings = schema.read_settings(connection, self._database.name)
            if settings is None:  # no other process has been faster
                schema.create_tables(connection, new)
                erasure.record_traces(connection, erasure.Traces.NONE)
                seal(connection, "settings")
        return settings or new

    def close(self) -> None:
        """Close all connections to the database."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self._database.name}>"

    # Facts

    @property
    def analyzer(self):
        """The analyzer, which splits texts into terms."""
        return self._settings.analyzer

    @property
    def fields(self) -> Mapping[str, float] | None:
        """The weights of fields."""
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
    def rule(self) -> str | None:
        """The name of the decision rule of its models; None if the models decide."""
        return self._settings.rule

    @property
    def tree(self) -> LabelTree | None:
        """The tree of labels."""
        with self._database.reading() as connection:
            return read_tree(connection)

    @property
    def revision(self) -> int:
        """The number of changes so far."""
        with self._database.reading() as connection:
            return last_revision(connection)

    @property
    def digest(self) -> str:
        """A digest of the labelled documents: equal for equal documents, in any order."""
        with self._database.reading() as connection:
            return MultisetDigest(read_state(connection).digest).text

    def info(self) -> dict[str, Any]:
        """Return facts about the store, ready for JSON."""
        with self._database.reading() as connection:

            def count(table, *conditions):
                query = select(func.count()).select_from(table).where(*conditions)
                return connection.execute(query).scalar_one()

            state = read_state(connection)
            return {
                "store": self._database.place,
                "schema": schema.SCHEMA,
                "revision": state.revision,
                "digest": MultisetDigest(state.digest).text,
                "language": self.analyzer.language,
                "fields": self.fields,
                "keep_texts": self.keep_texts,
                "model": self.model,
                "rule": self.rule,
                "documents": count(schema.documents, IS_CURRENT),
                "labelled": count(schema.documents, IS_CURRENT, IS_LABELLED),
                "assigned": count(schema.assignments, schema.assignments.c.replaced.is_(None)),
                "labels": count(schema.labels, schema.labels.c.documents > 0),
                "label_sets": count(schema.label_sets),
                "terms": int((Terms(connection).documents > 0).sum()),
                "published_models": count(schema.models),
                "current_model": state.current_model,
                "erasure_pending": erasure.is_pending(connection),
            }

    # Changes

    def learn(
        self,
        documents: Iterable[Document | Mapping[str, Any]],
        *,
        only_content: bool = False,
        key: str | None = None,
    ) -> Receipt:
        """Learn documents, all in one transaction.

        A document that is already known in exactly this form is left alone, so a batch may be sent
        again; one with different labels, words or time is corrected. Of several with the same id,
        the last one counts. Documents without labels are kept, but not counted until they get some.

        Parameters
        ----------
        documents : iterable of Document or dict
            The documents.
        only_content : bool, default=False
            Whether documents that the store knows keep their labels and times, which others may
            have corrected.
        key : str, default=None
            An idempotency key. Repeating the request with the same key within two days changes
            nothing and returns the same receipt (without ``gone_labels`` if a document was
            forgotten since).
        """
        incoming = IncomingDocuments.from_documents(documents, self._settings, self.tree)
        request = None
        if key is not None:
            request = KeyedRequest(key, "learn", incoming.content(), label_sets=incoming.labels)
        with self._changing("learn", request) as writer:
            if not writer.is_repeated:
                writer.learn(incoming, only_content=only_content)
        return writer.receipt

    def relabel(self, labels: Mapping[str, Collection[str]], *, key: str | None = None) -> Receipt:
        """Replace the labels of documents.

        Parameters
        ----------
        labels : dict of str to collection of str
            The new labels by document id. Unknown ids are ``missing`` in the receipt.
        key : str, default=None
            See :meth:`learn`.
        """
        _check_type("labels", labels, Mapping, "a dict of ids and labels")
        reader, label_sets = LabelReader(self.tree), {}
        for name, names in labels.items():
            document = Document(name, text="", labels=names)  # type: ignore[arg-type]  # checks
            resolved = sorted({reader.resolve(label) for label in document.labels})
            check_storable("labels", resolved)
            label_sets[document.id] = to_json(resolved)
        request = None
        if key is not None:
            ids, sets = list(label_sets), list(label_sets.values())
            request = KeyedRequest(key, "relabel", label_sets, ids, sets)
        with self._changing("relabel", request) as writer:
            if not writer.is_repeated:
                writer.relabel(label_sets)
        return writer.receipt

    def forget(self, ids: Iterable[str], *, purge: bool = False, key: str | None = None) -> Receipt:
        """Erase documents, with all their versions.

        Published models that were fitted on one of them are marked and no longer answer.

        Parameters
        ----------
        ids : iterable of str
            Ids of the documents. Unknown ids are ``missing`` in the receipt.
        purge : bool, default=False
            Whether to delete all marked models, including those marked earlier. The newest of
            the others becomes the current model.
        key : str, default=None
            See :meth:`learn`.
        """
        if isinstance(ids, str):
            raise ValueError(f"ids == {ids!r} is one string, must be a list of ids.")
        names = list(dict.fromkeys(map(str, ids)))
        request = None if key is None else KeyedRequest(key, "forget", [names, purge], names)
        with self._changing("forget", request) as writer:
            if not writer.is_repeated:
                writer.forget(names, purge=purge)
        return writer.receipt

    def merge(self, other: Store) -> Receipt:
        """Learn the documents of another store: their counts, labels and times, but no texts.

        Both stores must have the same analyzer and fields, and a document that is in both must be
        the same.
        """
        _check_type("other", other, Store, "a Store")
        if other.analyzer != self.analyzer or (other.fields or {}) != (self.fields or {}):
            raise StoreError(
                f"{self._database.name} and {other._database.name} have different analyzers or "
                "fields, so their counts cannot be combined. Nothing was merged."
            )
        with other._database.reading() as connection:
            terms = Terms(connection)
            rows = read_ledger(connection, len(terms), IS_CURRENT)
        X, names, _ = resolve_terms(rows, terms)
        no_texts = [None] * len(rows)
        incoming = IncomingDocuments(
            rows.ids, rows.labels, rows.times, no_texts, rows.digests, X, names
        )
        with self._changing("merge") as writer:
            writer.learn(incoming, strict=True)
        return writer.receipt

    @contextmanager
    def _changing(self, action: str, request: KeyedRequest | None = None) -> Iterator[Writer]:
        with self._database.writing() as connection:
            if not self._has_seals:  # earlier releases did not create the table
                schema.seals.create(connection, checkfirst=True)
            writer = Writer(connection, action, request)
            yield writer
            writer.finish()
            must_erase = writer.must_erase or erasure.is_pending(connection)
        self._has_seals = True
        if must_erase and action == "forget":
            erasure.erase(self._database, self._database.timeout)
        elif must_erase:
            self._try_to_erase()

    def _try_to_erase(self) -> None:
        """Overwrite copies of deleted documents if there are any and no one else is reading."""
        with self._database.reading() as connection:
            pending = erasure.is_pending(connection)
        if pending:
            with suppress(UnavailableError):  # the next change tries again
                erasure.erase(self._database, timeout=0)

    # Reading

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
        as_of : int, datetime or str, default=None
            A revision, or a time in ISO 8601: the documents as they were then, without those that
            have since been forgotten; ``n_forgotten`` of the table is their number.
        since, until : datetime or str, default=None
            Only documents from this time on, and before that one. A document without a time has
            the time when it was first learned.
        labels : collection of str, default=None
            Only documents with one of these labels, or one below them in the tree.
        """
        with self._database.reading() as connection:
            return read_counts(connection, _read_selection(connection, as_of, since, until, labels))

    def documents(
        self,
        *,
        labelled: bool | None = None,
        newest: int | None = None,
        as_of: int | None = None,
    ) -> Iterator[Document]:
        """Yield the documents by id, with their texts if these are kept.

        Parameters
        ----------
        labelled : bool, default=None
            Only documents with labels (True), or only those without (False).
        newest : int, default=None
            Only that many of the documents learned last.
        as_of : int, default=None
            Only documents that have not changed since this revision.
        """
        conditions = []
        if newest is not None:
            check_scalar(newest, "newest", Integral, min_val=0, max_val=LARGEST_INTEGER)
        if as_of is not None:
            check_scalar(as_of, "as_of", Integral, min_val=0, max_val=LARGEST_INTEGER)
            conditions.append(schema.documents.c.learned <= int(as_of))
        if labelled is not None:
            conditions.append(IS_LABELLED if labelled else ~IS_LABELLED)
        yield from self._documents(*conditions, newest=newest)

    def document(self, name: str) -> Document | None:
        """Return the document with an id, None if there is none."""
        if not can_store(name := str(name)):
            return None
        return next(self._documents(schema.documents.c.document == name), None)

    def _documents(self, *conditions, newest: int | None = None) -> Iterator[Document]:
        with self._database.reading() as connection:
            terms = Terms(connection)
            rows = read_ledger(connection, len(terms), IS_CURRENT, *conditions, newest=newest)
        yield from to_documents(rows, terms)

    def verify(self) -> Verification:
        """Recount the ledger, and check that all tables and digests agree with it."""
        with self._database.reading() as connection:
            revision = last_revision(connection)
            try:
                rows = read_ledger(connection, len(Terms(connection)), IS_CURRENT)
                problems = [
                    *self._database.check(connection),
                    *find_mismatches(connection),
                    *assignments.find_mismatches(connection),
                    *find_lost_articles(connection),
                    *find_tampering(connection),
                ]
            except DamagedError as error:
                return Verification(revision, 0, "", [str(error)])
            return Verification(revision, len(rows), ledger_digest(rows).text, problems)

    # Topics

    def assign(self, labeler: Labeler | None = None, *, limit: int | None = None) -> int:
        """Assign topics to documents that have none from the current model; return how many.

        Documents are assigned batch by batch, and others may use the store meanwhile. A document is
        assigned again if its words change or if another model is published. Labels that differ from
        the former ones do not overwrite these: :meth:`assignments` lists both.

        Parameters
        ----------
        labeler : Labeler, default=None
            What :meth:`labeler` has returned since the last model was published, if you have it.
        limit : int, default=None
            Stop after about this many documents.
        """
        number = self.monitor.state().current_model
        if labeler is None:
            if not self._assigner.count(number):
                return 0
            labeler = self.labeler()
        return self._assigner.run(Target(labeler, number), limit)

    def find(
        self,
        *,
        topic: str | Collection[str] | None = None,
        since: Any = None,
        until: Any = None,
        min_probability: float | None = None,
        text: str | None = None,
        k: int = 50,
        after: str | None = None,
    ) -> Page:
        """Return documents by topic, time and words, the newest first.

        The topics of a document are the labels that it was learned with or, if it has none, those
        that a model has assigned to it (:meth:`assign`).

        Parameters
        ----------
        topic : str or collection of str, default=None
            Only documents with one of these topics, or one below them in the tree.
        since, until : datetime or str, default=None
            Only documents from this time on, and before that one. A document without a time has
            the time when it was first learned.
        min_probability : float, default=None
            The least probability of the topic. Labels that documents were learned with count as 1.
        text : str, default=None
            Only documents that contain all of these words, in any of the forms that the analyzer
            takes for the same word.
        k : int, default=50
            Number of documents, at most 1000.
        after : str, default=None
            Where to continue: the ``next`` of the previous page.
        """
        check_scalar(k, "k", Integral, min_val=1, max_val=search.MAX_PAGE)
        if text is not None:
            search.update_words(self._database)
        with self._database.reading() as connection:
            criteria = search.read_criteria(
                connection,
                self.analyzer,
                topic=topic,
                since=since,
                until=until,
                min_probability=min_probability,
                words=text,
            )
            return search.find_page(connection, criteria, int(k), after)

    def count_topics(
        self,
        *,
        by: str = "day",
        topic: str | Collection[str] | None = None,
        since: Any = None,
        until: Any = None,
        min_probability: float | None = None,
    ) -> Timeline:
        """Count the documents of each topic in each period, and all documents.

        Parameters
        ----------
        by : {"day", "week", "month", "year"}, default="day"
            The length of a period.
        topic, since, until, min_probability
            See :meth:`find`.
        """
        check_name(by, "by", analysis.PERIODS)
        with self._database.reading() as connection:
            criteria = search.read_criteria(
                connection,
                self.analyzer,
                topic=topic,
                since=since,
                until=until,
                min_probability=min_probability,
                words=None,
            )
            return search.count_topics(connection, criteria, by)

    def count_unassigned(self) -> int:
        """Return how many documents have no topics from the current model."""
        return self._assigner.count(self.monitor.state().current_model)

    def newest_topics(self, n_newest: int, n_before: int) -> tuple[TopicShares, TopicShares]:
        """Count the topics of the newest documents by time, and those of the ones before them."""
        with self._database.reading() as connection:
            return search.newest_topics(connection, n_newest, n_before)

    def assignments(self, name: str) -> list[Assignment]:
        """Return what models have assigned to a document, the newest first."""
        with self._database.reading() as connection:
            return assignments.read_history(connection, str(name))

    # Analysis

    def diff(
        self,
        before: Any,
        after: Any = None,
        *,
        k: int = 10,
        labels: Collection[str] | None = None,
    ) -> list[LabelDifference]:
        """Return the labels that changed between two revisions, and their words that changed most.

        Documents that have since been forgotten are in neither revision.

        Parameters
        ----------
        before, after : int, datetime or str
            Revisions, or times in ISO 8601; a string of digits is a revision. None is the last one.
        k : int, default=10
            How many growing and how many falling terms to return for each label.
        labels : collection of str, default=None
            Only these labels and those below them in the tree.
        """
        with self._database.reading() as connection:
            return analysis.diff(connection, before, after, k=k, labels=labels)

    def drift(
        self,
        *,
        by: str = "day",
        since: Any = None,
        until: Any = None,
        labels: Collection[str] | None = None,
    ) -> Drift:
        """Evaluate each period of the documents with a model of all documents before it.

        The model is fitted from scratch for each period, without tuning: the store's model, or PMM1
        if that one does not learn from counts.

        Parameters
        ----------
        by : {"day", "week", "month", "year"}, default="day"
            The length of a period. A document without a time has the time when it was first
            learned.
        since, until : datetime or str, default=None
            Only periods from this time on, and before that one. Earlier documents train the model
            of the first period.
        labels : collection of str, default=None
            Only these labels and those below them in the tree. Perplexities and words are still
            those of all documents.
        """
        with self._database.reading() as connection:
            stream = DocumentStream.read(connection, since=since, until=until, labels=labels)
        return analysis.drift(stream, self.model, by=by)

    def timeline(self, *, by: str = "auto") -> Timeline:
        """Count the labelled documents, and those of each label, in each period.

        Parameters
        ----------
        by : {"auto", "day", "week", "month", "year"}, default="auto"
            The length of a period; "auto" is the shortest that gives at most 36 periods. A document
            without a time has the time when it was first learned.
        """
        with self._database.reading() as connection:
            return analysis.timeline(connection, by=by)

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
        """Fit a model on the documents, from scratch: it depends on the documents only.

        Parameters
        ----------
        model : str or model, default=None
            The model; by default the store's.
        as_of, since, until, labels
            The documents, see :meth:`counts`.
        **parameters
            Parameters of :class:`~polytopic.Labeler`: ``rule``, ``min_df``, ``max_terms``,
            ``weights``, ``abstain``, ``guarantee``. The rule may be a name ("auto", "cohort", …):
            its parameters are then tuned on a fifth of the documents, which a model of the others
            scores. By default, it is that of the store.
        """
        decides_itself = {"abstain", "guarantee"}.intersection(parameters)
        rule = parameters.pop("rule", None if decides_itself else self.rule)
        name = rule if isinstance(rule, str) else None
        with self._database.reading() as connection:
            labeler = Labeler(
                model or self.model,
                language=self.analyzer.language,
                analyzer=self.analyzer,
                fields=self.fields,
                tree=read_tree(connection),
                keep_documents=False,
                rule=rule if name is None else named_rule(name),
                **parameters,
            )
            selection = _read_selection(connection, as_of, since, until, labels)
            data = read_training_data(connection, labeler, selection, tune=True)
            rows = None
            if name is not None:
                is_whole = isinstance(data.content, DocumentRows)
                rows = data.content if is_whole else read_rows(connection, selection, MAX_DOCS)
        data.fit(labeler)
        if name is not None and isinstance(rows, DocumentRows):
            labeler.rule = tune_rule(labeler, rows, name)
        return labeler

    def labeler(self, *, like: Labeler | None = None) -> Labeler:
        """Return the labeler that answers now.

        This is the current published model, or the store's own model, fitted now, if none is
        published. If the store has changed since a model was published:

        - A count model is fitted again, with the hyper-parameters chosen when it was published.
        - A model that learns from documents (MML, CoL, Stack) takes longer to fit. It is
          returned as it was published, with a warning that says how far it is behind.
        - A model that was rolled back to, or published as of an earlier revision, is returned as it
          was published.

        A model that has seen a forgotten document never answers. It is fitted again without that
        document, with a warning if :meth:`refresh` is needed to avoid this each time. A model that
        was not fitted on this store cannot be fitted again, and raises.

        Parameters
        ----------
        like : Labeler, default=None
            A labeler that this method returned earlier. Its hyper-parameters are kept, and it is
            returned again if it still answers, which is faster.
        """
        with self._database.reading() as connection:
            current = models.read_current(connection)
            if current is not None:
                current.check_refreshable()
                labeler = models.read_current_labeler(connection, current, like)
        if current is None:
            return self.fit() if like is None else self._fit_again(like)
        if current.must_refit:
            if not current.refits_automatically:
                _warn_to_refresh(
                    f"the published {current.name} has seen a document that has since been "
                    f"forgotten (revision {current.marked}), and is fitted again without it"
                )
            return self._fit_again(labeler, as_of=current.refit_as_of)
        if current.n_revisions_behind:
            _warn_to_refresh(
                f"the published {current.name} is {current.n_revisions_behind:,} revisions behind"
            )
        return labeler

    def _fit_again(self, labeler: Labeler, *, as_of: int | None = None) -> Labeler:
        """Return a labeler with the same hyper-parameters, fitted on the present documents.

        With ``as_of``, on the documents as of a revision, without those forgotten since.
        """
        tuned = labeler.model_.tuned_
        with self._database.reading() as connection:
            new = clone(labeler).set_params(tree=read_tree(connection))
            last = last_revision(connection)
            selection = replace(
                source_selection(connection.engine.url, labeler),
                revision=last if as_of is None else as_of,
                read_at=last,
            )
            data = read_training_data(connection, new, selection, tune=False)
        return data.fit(new, tuned=tuned, threshold=labeler.state_.threshold)

    def publish(
        self,
        labeler: Labeler | None = None,
        *,
        note: str | None = None,
        keep: int | None = 10,
        **fit: Any,
    ) -> int:
        """Keep a fitted labeler in the store as the current model; return its number.

        Parameters
        ----------
        labeler : Labeler, default=None
            The labeler; by default one is fitted. If it was not fitted on this store, its documents
            are unknown, and forgetting any document marks it. If it can learn (it has its counts or
            its documents, and the analyzer of the store), it is fitted again like any other: on its
            own documents and those that the store has learned since it was published.
        note : str, default=None
            A note for the history.
        keep : int, default=10
            How many published models to keep; the oldest are deleted. None keeps all.
        **fit
            Parameters of :meth:`fit`.
        """
        if labeler is not None:
            _check_type("labeler", labeler, Labeler, "a Labeler")
            check_is_fitted(labeler, "model_")
            if labeler.features_:
                names = ", ".join(repr(block.name) for block in labeler.features_)
                raise ValueError(
                    f"a store's models read words only; the labeler has the features {names}. Save "
                    "it to a file instead."
                )
        if note is not None:
            check_text("note", note)
        _check_keep(keep)
        number = None
        while number is None:
            fitted = self.fit(**fit) if labeler is None else labeler
            content = models.pack_labeler(self._database.engine.url, fitted)
            with self._database.writing() as connection:
                # a document that was purged while this was fitted must not come back; a labeler
                # that is given is published, and marked
                if labeler is not None or not models.has_lost_documents(connection, fitted):
                    number = models.publish(connection, fitted, content, note, keep, self._settings)
        self._try_to_erase()
        return number

    def refresh(self, *, keep: int | None = 10) -> int | None:
        """Fit the current model again and publish it, if the store has changed; return its number.

        It is fitted from scratch, so it depends on the documents only, with the hyper-parameters
        chosen when it was first published. If no model is published, the store's own model is. A
        model that was rolled back to, or published as of an earlier revision, is left alone, unless
        it has seen a document that has since been forgotten; then it is fitted again without that
        document. If another model becomes current in the meantime, nothing is published.

        Parameters
        ----------
        keep : int, default=10
            See :meth:`publish`.
        """
        _check_keep(keep)
        number = None
        while number is None:  # repeat if a document was forgotten meanwhile
            with self._database.reading() as connection:
                current = models.read_current(connection)
                if current is not None and current.can_refresh:
                    current.check_refreshable()
                    labeler = models.read_labeler(connection, current.id)
            if current is None:
                return self.publish(keep=keep)
            if not current.can_refresh:
                return None
            refitted = self._fit_again(labeler, as_of=current.refit_as_of)
            content = models.pack_labeler(self._database.engine.url, refitted)
            with self._database.writing() as connection:
                if read_state(connection).current_model != current.id:
                    return None
                if not models.has_lost_documents(connection, refitted):
                    number = models.publish(
                        connection, refitted, content, "refreshed", keep, self._settings
                    )
        self._try_to_erase()
        return number

    def rollback(self, number: int | None = None) -> int:
        """Make an earlier published model current, by default the one before; return its number."""
        if number is not None:
            check_scalar(number, "number", Integral, min_val=1, max_val=LARGEST_INTEGER)
        with self._database.writing() as connection:
            return models.roll_back(connection, number)

    def current(self) -> Labeler | None:
        """Return the current model as it was published, None if there is none.

        It may have seen documents that have since been forgotten; :meth:`labeler` returns one that
        has not.
        """
        with self._database.reading() as connection:
            current = models.read_current(connection)
            return None if current is None else models.read_labeler(connection, current.id)

    def history(self) -> list[PublishedModel]:
        """Return the published models, the newest first."""
        with self._database.reading() as connection:
            return models.read_history(connection)


def _read_selection(connection: Connection, as_of, since, until, labels) -> Selection:
    if labels is not None:
        if isinstance(labels, str):
            raise ValueError(f"labels == {labels!r} is one string, must be a list of labels.")
        tree = read_tree(connection)
        reader = LabelReader(tree)
        own = {reader.resolve(label) for label in labels}
        below = {b for a in own if tree and a in tree for b in tree.descendants(a)}
        labels = sorted(own | below)
    last = last_revision(connection)
    return Selection(
        revision=revision_at(connection, as_of, last),
        since=read_time("since", since),
        until=read_time("until", until),
        labels=labels,
        read_at=last,
    )


def _warn_to_refresh(reason: str) -> None:
    warnings.warn(f"{reason}; refresh it (polytopic store refresh).", StoreWarning, stacklevel=3)


def _check_keep(keep: int | None) -> None:
    if keep is not None:
        check_scalar(keep, "keep", Integral, min_val=1, max_val=LARGEST_INTEGER)


def _check_type(name: str, value: Any, kind: type, needed: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} == {value!r}, must be {needed}.")
