"""The worker of a desk: it ingests, labels, learns what editors labelled, and watches.

Everything that it has done is in the store, so it can be stopped and killed at any moment: the next
one continues.
"""

from __future__ import annotations

import threading
import time
import warnings
from datetime import UTC, datetime
from typing import Any

from polytopic.desk.alarms import Alarm, Alarms, find_strange_words, find_trends
from polytopic.desk.ingestion import ingest
from polytopic.desk.settings import Settings, SourceSettings
from polytopic.errors import PolytopicError, StoreWarning, UnavailableError
from polytopic.labeler import Labeler
from polytopic.store import Store

PAUSE = 1.0  # seconds between two looks at what is due
ASSIGNED_AT_ONCE = 2000  # documents between two looks at whether to stop


class SourceState:
    """When a source is due, and how it has behaved since the worker started."""

    def __init__(self, source: SourceSettings):
        self.source, self.mapping = source, source.mapping
        self.due = self.last_article = time.monotonic()
        self.failures, self.failure = 0, ""


class Worker:
    """Does what is due, again and again.

    Parameters
    ----------
    settings : Settings
        The settings of the desk.
    store : Store
        Its store.
    log : logger
        Gets events with their facts, such as one of structlog.
    stopped : Event
        Ends the worker when it is set.
    """

    def __init__(self, settings: Settings, store: Store, log: Any, stopped: threading.Event):
        self.settings, self.store, self.log, self.stopped = settings, store, log, stopped
        self._sources = [SourceState(source) for source in settings.sources]
        self._alarms = Alarms(settings.alarms)
        self._labeler: Labeler | None = None

    def run(self) -> None:
        """Work until stopped. A store that is busy or unreachable is tried again."""
        self.log.info("started", sources=len(self._sources), revision=self.store.revision)
        while not self.stopped.is_set():
            try:
                self.cycle()
            except UnavailableError as error:
                self.log.warning("store unavailable", reason=str(error))
            self.stopped.wait(PAUSE)
        self.log.info("stopped", revision=self.store.revision)

    def cycle(self) -> None:
        """Do what is due: read sources, publish or refresh the model, assign topics, look."""
        is_new = self._read_sources()
        is_new = self._fit() or is_new
        is_new = bool(self._assign()) or is_new
        if is_new:
            self._look()

    # Steps

    def _read_sources(self) -> bool:
        """Read the sources that are due, those with the same mapping together."""
        due = [one for one in self._sources if one.due <= time.monotonic()]
        for state in due:
            if self.stopped.is_set():
                break
            receipt = ingest(
                [state.source.address],
                self.store,
                limits=self.settings.fetch,
                mapping=state.mapping,
                stopped=self.stopped,
            )
            (report,) = receipt.sources
            facts = {
                name: value
                for name, value in vars(report).items()
                if name not in ("source", "errors") and value
            }
            is_failed = report.failed is not None
            log = self.log.warning if is_failed or report.n_errors else self.log.info
            log("ingested", source=state.source.address, revision=receipt.revision_after, **facts)
            for reason in report.errors:
                self.log.debug("article failed", source=state.source.address, reason=reason)
            now = time.monotonic()
            state.due = now + state.source.every
            state.failures = state.failures + 1 if is_failed else 0
            state.failure = report.failed or ""
            if report.learned:
                state.last_article = now
        return bool(due)

    def _fit(self) -> bool:
        """Publish a first model, or fit the present one again if that is due."""
        settings, facts = self.settings.model, self.store.info()
        number = facts["current_model"]
        if number is None:
            if facts["labelled"] < settings.min_documents:
                return False
            rule: dict[str, Any] = {} if settings.rule is None else {"rule": settings.rule}
            number = self.store.publish(model=settings.name, note="by the desk", **rule)
            self.log.info("published", model=number, documents=facts["labelled"])
            return True
        if not self._is_refresh_due(number):
            return False
        refreshed = self.store.refresh()
        if refreshed is None:
            return False
        self.log.info("refreshed", model=refreshed, documents=facts["labelled"])
        return True

    def _is_refresh_due(self, number: int) -> bool:
        """Return whether the model is old, or has seen a document that was forgotten."""
        model = next((one for one in self.store.history() if one.id == number), None)
        if model is None:
            return False
        age = datetime.now(UTC) - datetime.fromisoformat(model.time)
        return model.marked is not None or age.total_seconds() >= self.settings.model.refresh

    def _assign(self) -> int:
        """Assign topics to documents that have none from the current model."""
        number = self.store.monitor.state().current_model
        if number is None or not self.store.count_unassigned():
            return 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)  # the model is refreshed when it is due
            self._labeler = self.store.labeler(like=self._labeler)
        n_docs = 0
        while not self.stopped.is_set():
            n = self.store.assign(self._labeler, limit=ASSIGNED_AT_ONCE)
            if not n:
                break
            n_docs += n
        if n_docs:
            self.log.info("assigned", documents=n_docs, model=number)
        return n_docs

    def _look(self) -> None:
        """Raise alarms."""
        try:
            alarms = [
                *self._find_source_alarms(),
                *find_trends(self.store, self.settings.alarms),
                *find_strange_words(self.store, self.settings.alarms),
            ]
        except UnavailableError:
            raise
        except PolytopicError as error:
            self.log.error("cannot look for alarms", reason=str(error))
            return
        for alarm, reason in self._alarms.update(alarms):
            self.log.warning(
                "alarm",
                kind=alarm.kind,
                subject=alarm.subject,
                message=alarm.message,
                **alarm.facts,
            )
            if reason is not None:
                self.log.error("alarm not delivered", kind=alarm.kind, reason=reason)

    def _find_source_alarms(self) -> list[Alarm]:
        settings, now, alarms = self.settings.alarms, time.monotonic(), []
        for state in self._sources:
            address = state.source.address
            if state.failures >= settings.failures:
                message = f"{address} has failed {state.failures:,} times: {state.failure}"
                alarms.append(Alarm("failing", address, message, {"failures": state.failures}))
            silence = now - state.last_article
            if silence > settings.silent:
                message = f"{address} has had no new article for {silence / 3600:.1f} hours."
                alarms.append(Alarm("silent", address, message, {"seconds": round(silence)}))
        return alarms
