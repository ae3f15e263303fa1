"""What the service answers with: a model file, or a store that goes on learning."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from polytopic.errors import PolytopicError, StoreError, StoreWarning, UnavailableError
from polytopic.explain import LabelMap
from polytopic.files import is_database
from polytopic.labeler import Labeler, load
from polytopic.labeler.learning import sees_documents
from polytopic.store import Store
from polytopic.store.drift import Drift
from polytopic.store.timeline import Timeline

LOG = logging.getLogger(__name__)
PATIENCE = 10.0  # seconds that a change waits for other processes, since a client waits for it
OFTEN = 0.5  # seconds between looks at the store
PAUSE = 1.0  # seconds from one change of what answers to the next: learning is not all there is
PERIODS = 24  # that drift is told of
TERMS = 6  # of each label on the map
MOST_LABELS = 2000  # that drift is judged for, which takes documents × labels
SELDOM = 60.0  # seconds between refreshments of a model that learns from documents


@dataclass(frozen=True, eq=False)
class Answering:
    """A labeler that answers, and what it is."""

    labeler: Labeler
    name: str
    number: int | None = None
    revision: int | None = None
    store: Store | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what answers tell of it."""
        return {"name": self.name, "number": self.number, "revision": self.revision}

    @cached_property
    def map(self) -> LabelMap:
        """The map of its most frequent labels."""
        return self.labeler.map(n_terms=TERMS)

    @cached_property
    def timeline(self) -> Timeline | None:
        """The documents of labels over time, of a store."""
        return None if self.store is None else self.store.timeline()

    @property
    def drift(self) -> Drift | None:
        """The last periods of a store, each judged by what was known before it.

        None if there are no periods, or too many labels.
        """
        with self.lock:  # whoever asks meanwhile waits instead of judging them again
            return self._drift

    @cached_property
    def _drift(self) -> Drift | None:
        if self.store is None or self.labeler.classes_.size > MOST_LABELS:
            return None
        if self.timeline is None or not self.timeline.starts:
            return None
        since = self.timeline.starts[-PERIODS:][0]
        return self.store.drift(by=self.timeline.by, since=since)


class Live:
    """The labeler that answers now, kept up to date with its store in the background.

    As soon as a document is forgotten, what answers is fitted again without it. It goes on
    answering for as long as that takes; if it fails, nothing answers until it succeeds.

    Parameters
    ----------
    store : Store, default=None
        The store.
    labeler : Labeler, default=None
        What answers where there is no store.
    """

    def __init__(self, *, store: Store | None = None, labeler: Labeler | None = None):
        self.store = store
        answering = None if labeler is None else Answering(labeler, labeler.model_.name)
        # both in one, so that nobody sees one of them alone change
        self._now: tuple[Answering | None, str | None] = answering, None
        self._seen: tuple | None = None
        self._wake, self._ended = threading.Event(), threading.Event()
        self._lock, self._refreshed, self._changed = threading.Lock(), 0.0, 0.0
        self._thread: threading.Thread | None = None

    @classmethod
    def of(cls, source: str) -> Live:
        """Open a store or a model file."""
        if is_database(source):
            return cls(store=Store(source, create=False, patience=PATIENCE))
        return cls(labeler=load(source))

    @property
    def answering(self) -> Answering:
        """What answers; raise if nothing was learned yet, or nothing may answer."""
        answering, failure = self._now
        if answering is not None:
            return answering
        if failure is not None:
            raise UnavailableError(failure)
        raise PolytopicError("nothing has been learned yet, so there is nothing to answer with.")

    @property
    def failure(self) -> str | None:
        """Why the store could not be followed when it was last looked at, None if it could."""
        return self._now[1]

    @property
    def revision(self) -> int | None:
        """The revision of the counts that answer."""
        answering, _ = self._now
        return None if answering is None else answering.revision

    def start(self) -> None:
        """Look at the store from now on, and have all at hand that the first answer needs."""
        if self.store is not None:
            self.update()
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()
        answering, _ = self._now
        if answering is not None:
            answering.labeler.suggest(["a word"])  # loads dictionaries and compiled kernels

    def close(self) -> None:
        """Stop looking, and close the store."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if self.store is not None:
            self.store.close()

    def wake(self) -> None:
        """Look at the store at once: something was learned."""
        self._wake.set()

    def _follow(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(OFTEN)
            self._ended.wait(self._changed + PAUSE - time.monotonic())
            self._wake.clear()
            if not self._ended.is_set():
                self.update()

    def update(self) -> None:
        """Answer with what the store knows now, if that is something else; tell why it cannot."""
        if self.store is None:
            return
        with self._lock:
            try:
                self._look(self.store)
            except PolytopicError as error:
                self._fail(self.store, str(error))
            except Exception as error:  # to look again later is better than never
                LOG.exception("the store cannot be followed")
                self._fail(self.store, f"the store cannot be followed ({type(error).__name__}).")

    def _look(self, store: Store) -> None:
        state, (last, _) = store.state(), self._now
        if state != self._seen:
            self._changed = time.monotonic()
            last = self._fresh(store, last)
            self._seen = state
        self._now = last, None
        if last is None or not sees_documents(last.labeler.model_) or last.revision == state[0]:
            return
        if time.monotonic() - self._refreshed > SELDOM:
            store.refresh()  # is seen at the next look
            self._refreshed = time.monotonic()

    def _fail(self, store: Store, reason: str) -> None:
        """Go on without what was learned since the last look, but not with what was forgotten."""
        answering, _ = self._now
        self._now = answering, reason
        if answering is None or self._seen is None:
            return
        try:
            may_answer = not store.has_forgotten_since(self._seen[0])
        except UnavailableError as error:
            LOG.warning("whether something was forgotten cannot be seen: %s", error)
            return
        except StoreError:  # the log of what was forgotten is damaged, too
            may_answer = False
        if not may_answer:
            self._now, self._seen = (None, reason), None  # a restored store is read afresh

    def _fresh(self, store: Store, last: Answering | None) -> Answering | None:
        like = None if last is None else last.labeler
        with warnings.catch_warnings():
            # answers carry the revision, and what has seen forgotten documents is refreshed here
            warnings.simplefilter("ignore", StoreWarning)
            try:
                if store.must_refresh():
                    store.refresh()
                labeler = store.labeler(like=like)
            except (ValueError, StoreError):  # there is no labelled document
                if store.info()["labelled"]:
                    raise
                return None
        current = next((m.id for m in store.history() if m.current), None)
        revision = labeler.fitted_from_.selection.revision
        return Answering(labeler, labeler.model_.name, current, revision, store)
