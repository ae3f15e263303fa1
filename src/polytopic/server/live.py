"""What the service answers with: a model file, or a store that goes on learning."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polytopic.errors import PolytopicError, StoreError, StoreWarning
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
SELDOM = 60.0  # seconds between refreshments of a model that learns from documents


@dataclass(frozen=True, eq=False)
class Answering:
    """A labeler that answers, and what it is."""

    labeler: Labeler
    name: str
    number: int | None = None
    revision: int | None = None
    store: Store | None = None

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

    @cached_property
    def drift(self) -> Drift | None:
        """The last periods of a store, each judged by what was known before it."""
        if self.store is None or self.timeline is None or not self.timeline.starts:
            return None
        since = self.timeline.starts[-PERIODS:][0]
        return self.store.drift(by=self.timeline.by, since=since)


class Live:
    """The labeler that answers now, kept up to date with its store in the background.

    Parameters
    ----------
    store : Store, default=None
        The store.
    labeler : Labeler, default=None
        What answers where there is no store.
    """

    def __init__(self, *, store: Store | None = None, labeler: Labeler | None = None):
        self.store = store
        self._answering: Answering | None = None
        if labeler is not None:
            self._answering = Answering(labeler, labeler.model_.name)
        self._seen: tuple | None = None
        self._wake, self._ended = threading.Event(), threading.Event()
        self._lock, self._refreshed, self._changed = threading.Lock(), 0.0, 0.0
        self._thread: threading.Thread | None = None
        self.failure: str | None = None

    @classmethod
    def of(cls, source: str) -> Live:
        """Open a store or a model file."""
        if is_database(source):
            return cls(store=Store(source, create=False, patience=PATIENCE))
        return cls(labeler=load(source))

    @property
    def answering(self) -> Answering:
        """What answers; raise where nothing was learned yet."""
        if self._answering is None:
            raise PolytopicError(
                "nothing has been learned yet, so there is nothing to answer with."
            )
        return self._answering

    @property
    def revision(self) -> int | None:
        """The revision of the counts that answer."""
        return None if self._answering is None else self._answering.revision

    def start(self) -> None:
        """Look at the store from now on, and have all at hand that the first answer needs."""
        if self.store is not None:
            self.update()
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()
        if self._answering is not None:
            self._answering.labeler.suggest(["a word"])  # loads dictionaries and compiled kernels

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
                self.failure = None
            except PolytopicError as error:
                self.failure = str(error)
            except Exception as error:  # to look again later is better than never
                LOG.exception("the store cannot be followed")
                self.failure = f"the store cannot be followed ({type(error).__name__})."

    def _look(self, store: Store) -> None:
        state = store.state()
        if state != self._seen:
            self._changed = time.monotonic()
            self._answering = self._fresh(store)
            self._seen = state
        last = self._answering
        if last is None or not sees_documents(last.labeler.model_) or last.revision == state[0]:
            return
        if time.monotonic() - self._refreshed > SELDOM:
            store.refresh()  # is seen at the next look
            self._refreshed = time.monotonic()

    def _fresh(self, store: Store) -> Answering | None:
        like = None if self._answering is None else self._answering.labeler
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)  # answers carry the revision
            try:
                labeler = store.labeler(like=like)
            except (ValueError, StoreError):  # there is no labelled document
                if store.info()["labelled"]:
                    raise
                return None
        current = next((m.id for m in store.history() if m.current), None)
        return Answering(labeler, labeler.model_.name, current, labeler.origin_.revision, store)
