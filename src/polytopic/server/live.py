"""The model that answers: from a file, or from a store whose changes it follows."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import Any, NamedTuple

from polytopic.errors import PolytopicError, StoreError, StoreWarning, UnavailableError
from polytopic.explain import LabelMap
from polytopic.files import is_database
from polytopic.labeler import Labeler, load
from polytopic.store import Store
from polytopic.store.analysis import Drift, Timeline

LOG = logging.getLogger(__name__)
LOCK_TIMEOUT = 10.0  # seconds that a change waits for other processes while its client waits
POLL_INTERVAL = 0.5  # seconds between checks of the store
UPDATE_INTERVAL = 1.0  # least seconds between two updates, so that answers keep their CPU time
REFRESH_INTERVAL = 60.0  # least seconds between two fits of a model that learns from documents
ASSIGNED_AT_ONCE = 2000  # documents that get topics between two checks of the store
NEWEST_DOCUMENTS = 200  # whose unknown words are reported
DRIFT_PERIODS = 24
MAX_DRIFT_LABELS = 2000  # drift takes time proportional to documents × labels
MAP_TERMS = 6  # per label on the map


@dataclass(frozen=True, eq=False)
class ActiveModel:
    """A labeler that answers, with its number in the history and the revision it was fitted on.

    ``is_part`` says whether it was fitted on only a part of the store.
    """

    labeler: Labeler
    name: str
    number: int | None = None
    revision: int | None = None
    is_part: bool = False
    store: Store | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the ``model`` object of every response."""
        return {"name": self.name, "number": self.number, "revision": self.revision}

    @cached_property
    def label_name(self) -> Callable[[str], str]:
        """The function that names a label in the language of the texts; it remembers names."""
        return cache(self.labeler.name)

    @cached_property
    def map(self) -> LabelMap:
        """The map of the most frequent labels."""
        return self.labeler.map(MAP_TERMS)

    @cached_property
    def timeline(self) -> Timeline | None:
        """Documents per label over time; None for a model file."""
        return None if self.store is None else self.store.timeline()

    @property
    def drift(self) -> Drift | None:
        """The last periods of the store, each evaluated with a model of the time before it.

        None if there are no periods or too many labels.
        """
        with self.lock:  # concurrent requests wait for one computation
            return self._drift

    @cached_property
    def _drift(self) -> Drift | None:
        if self.store is None or self.labeler.classes_.size > MAX_DRIFT_LABELS:
            return None
        if self.timeline is None or not self.timeline.starts:
            return None
        since = self.timeline.starts[-DRIFT_PERIODS:][0]
        return self.store.drift(by=self.timeline.by, since=since)


class StreamFacts(NamedTuple):
    """How a store keeps up with its stream of documents.

    Attributes
    ----------
    unassigned : int
        Documents without topics from the current model.
    newest : float or None
        The time of the newest document, in seconds since 1970.
    unknown : float or None
        The share of words of the newest documents that the model does not know.
    """

    unassigned: int = 0
    newest: float | None = None
    unknown: float | None = None

    @classmethod
    def read(cls, store: Store) -> StreamFacts:
        """Return the facts about a store."""
        page = store.find(k=NEWEST_DOCUMENTS)
        known = [match.known for match in page if match.known is not None]
        return cls(
            store.count_unassigned(),
            datetime.fromisoformat(page[0].time).timestamp() if page else None,
            1 - sum(known) / len(known) if known else None,
        )


class LiveModel:
    """The active model, kept up to date with its store by a background thread.

    When a document is forgotten, the model is fitted again without it. The previous model answers
    until the fit is done; if the fit fails, nothing answers until one succeeds.

    Parameters
    ----------
    store : Store, default=None
        The store to follow.
    labeler : Labeler, default=None
        The labeler that answers if there is no store.

    Attributes
    ----------
    stream : StreamFacts
        How the store keeps up with its documents, as of the last check.
    """

    def __init__(self, *, store: Store | None = None, labeler: Labeler | None = None):
        self.store = store
        active = None if labeler is None else ActiveModel(labeler, labeler.model_.name)
        # the model and the last failure, in one tuple so that readers see a consistent pair
        self._now: tuple[ActiveModel | None, str | None] = active, None
        self._seen_state: tuple | None = None
        self._assigned_state: tuple | None = None  # of the store, when all had topics
        self.stream = StreamFacts()
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._lock, self._refresh_time, self._update_time = threading.Lock(), 0.0, 0.0
        self._thread: threading.Thread | None = None

    @classmethod
    def open(cls, source: str) -> LiveModel:
        """Open a store or a model file."""
        if is_database(source):
            return cls(store=Store(source, create=False, timeout=LOCK_TIMEOUT))
        return cls(labeler=load(source))

    @property
    def active(self) -> ActiveModel:
        """The active model; raise if nothing has been learned yet, or no model may answer."""
        active, failure = self._now
        if active is not None:
            return active
        if failure is not None:
            raise UnavailableError(failure)
        raise PolytopicError("Nothing has been learned yet. Learn labelled documents first.")

    @property
    def current(self) -> dict[str, Any] | None:
        """The ``model`` object of a response that needs no model; None if nothing was learned."""
        active, _ = self._now
        return None if active is None else active.to_dict()

    @property
    def failure(self) -> str | None:
        """Why the last update from the store failed; None if it succeeded."""
        return self._now[1]

    @property
    def revision(self) -> int | None:
        """The revision of the active model's counts."""
        active, _ = self._now
        return None if active is None else active.revision

    def start(self) -> None:
        """Start to follow the store, and load everything that the first answer needs."""
        if self.store is not None:
            self.update()
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()
        active, _ = self._now
        if active is not None:
            active.labeler.suggest(["a word"])  # loads dictionaries and compiled kernels

    def close(self) -> None:
        """Stop following the store, and close it."""
        self._stopped.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if self.store is not None:
            self.store.close()

    def wake(self) -> None:
        """Check the store soon, because this process changed it."""
        self._wake.set()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(POLL_INTERVAL)
            self._stopped.wait(self._update_time + UPDATE_INTERVAL - time.monotonic())
            self._wake.clear()
            if not self._stopped.is_set():
                self.update()
                self._assign()

    def _assign(self) -> None:
        """Assign topics to some documents; wake up soon if there are more."""
        active, failure = self._now
        if self.store is None or active is None or failure is not None:
            return
        if self._assigned_state == self._seen_state:
            return
        state = self._seen_state
        try:
            if self.store.assign(active.labeler, limit=ASSIGNED_AT_ONCE):
                self._wake.set()
            else:
                self._assigned_state = state
            self.stream = StreamFacts.read(self.store)
        except PolytopicError as error:
            LOG.warning("Topics cannot be assigned now: %s", error)
        except Exception:  # keep the thread alive
            LOG.exception("Topics cannot be assigned.")
            self._assigned_state = state

    def update(self) -> None:
        """Replace the active model if the store has changed; record why if that fails."""
        if self.store is None:
            return
        with self._lock:
            try:
                self._check_store(self.store)
            except PolytopicError as error:
                self._fail(self.store, str(error))
            except Exception as error:  # keep the thread alive: the next check may succeed
                LOG.exception("The store cannot be followed.")
                self._fail(self.store, f"The store cannot be followed ({type(error).__name__}).")

    def _check_store(self, store: Store) -> None:
        state, (active, _) = store.monitor.state(), self._now
        if state != self._seen_state:
            self._update_time = time.monotonic()
            active = self._load(store, active)
            self._seen_state = state
        self._now = active, None
        if active is None or active.labeler.model_.learns_from == "counts":
            return
        is_due = time.monotonic() - self._refresh_time > REFRESH_INTERVAL
        if active.revision != state[0] and is_due:
            store.refresh()  # the next check loads it
            self._refresh_time = time.monotonic()

    def _fail(self, store: Store, reason: str) -> None:
        """Keep the active model unless it has seen a document that has since been forgotten."""
        active, _ = self._now
        self._now = active, reason
        if active is None or self._seen_state is None:
            return
        try:
            may_answer = not store.monitor.has_forgotten_since(self._seen_state[0])
        except UnavailableError as error:
            LOG.warning("Cannot check whether documents were forgotten: %s", error)
            return
        except StoreError:  # the log of forgotten documents is damaged as well
            may_answer = False
        if not may_answer:
            self._now, self._seen_state = (None, reason), None  # load a repaired store from scratch

    def _load(self, store: Store, active: ActiveModel | None) -> ActiveModel | None:
        """Return the model of the store, refreshed if needed; None if no document has labels."""
        like = None if active is None else active.labeler
        with warnings.catch_warnings():
            # responses carry the revision, and models that saw forgotten documents are refreshed
            warnings.simplefilter("ignore", StoreWarning)
            try:
                if store.monitor.must_refresh():
                    store.refresh()
                labeler = store.labeler(like=like)
            except (ValueError, StoreError):  # raised if no document has labels
                if store.info()["labelled"]:
                    raise
                return None
        number = next((model.id for model in store.history() if model.current), None)
        selection = labeler.state_.fitted_from.selection  # type: ignore[union-attr]  # it is the store's
        name = labeler.model_.name
        return ActiveModel(labeler, name, number, selection.revision, selection.is_part, store)
