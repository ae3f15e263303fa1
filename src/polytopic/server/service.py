"""What all routes share: the live model, the workers, access control and metrics."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from polytopic.errors import PolytopicError
from polytopic.server.auth import Guard
from polytopic.server.limits import BodyMemory
from polytopic.server.live import LiveModel
from polytopic.server.workers import Workers
from polytopic.store import Receipt, Store

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Service:
    """The state that all routes share.

    Parameters
    ----------
    live : LiveModel
        The model that answers.
    guard : Guard
        Checks tokens.
    workers : Workers
        Threads for answers that take little time, whatever the store contains.
    memory : BodyMemory
        Counts the bytes of request bodies.

    Attributes
    ----------
    heavy_workers : Workers
        The one thread for answers whose time grows with the request or the store. They wait for
        each other; other answers do not wait for them.
    writers : Workers
        The one thread that changes the store. Changes wait for each other; answers do not.
    metrics : Metrics
        Counters for Prometheus.
    """

    def __init__(self, live: LiveModel, guard: Guard, workers: Workers, memory: BodyMemory):
        self.live, self.guard, self.workers, self.memory = live, guard, workers, memory
        self.heavy_workers = Workers(1, workers.limit)
        self.writers = Workers(1, workers.limit)
        self.metrics = Metrics(self)

    def start(self) -> None:
        """Load the model, so that the first request is answered at full speed."""
        self.live.start()
        gc.freeze()  # keeps the collector from scanning what stays for good
        gc.enable()

    async def change(self, action: str, change: Callable[[Store], Receipt]) -> dict[str, Any]:
        """Change the store, and return the receipt; ``action`` names the change in the metrics."""
        store = self.live.store
        if store is None:
            raise PolytopicError("A model file cannot learn or forget. Serve a store instead.")
        receipt = await self.writers.run(change, store)
        self.live.wake()
        self.metrics.count_change(action)
        return receipt.to_dict()

    @property
    def n_pending(self) -> int:
        """Number of calls that are running or waiting."""
        return sum(workers.pending for workers in self._all_workers)

    @property
    def _all_workers(self) -> tuple[Workers, ...]:
        return self.writers, self.heavy_workers, self.workers

    def close(self) -> None:
        """Finish running calls, and close the store."""
        for workers in self._all_workers:
            workers.close()
        self.live.close()


class Metrics:
    """Prometheus counters of one service, in a registry of their own."""

    def __init__(self, service: Service):
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "polytopic_requests", "Requests.", ["route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "polytopic_request_seconds",
            "Duration of requests.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._labelled = Counter(
            "polytopic_labelled_documents", "Labelled documents.", registry=self.registry
        )
        self._changes = Counter(
            "polytopic_changes", "Changes of the store.", ["action"], registry=self.registry
        )
        self._counters = cache(self._find_counters)  # looking them up takes longer than counting
        waiting = Gauge(
            "polytopic_waiting", "Calls that are waiting or running.", registry=self.registry
        )
        waiting.set_function(lambda: service.n_pending)
        revision = Gauge(
            "polytopic_revision", "Revision of the active model.", registry=self.registry
        )
        revision.set_function(lambda: service.live.revision or 0)
        self._add_stream(service.live)

    def _add_stream(self, live: LiveModel) -> None:
        """Add what is known about the documents of a store."""

        def add(name: str, help: str, value: Callable[[], float | None]) -> None:
            gauge = Gauge(name, help, registry=self.registry)

            def read() -> float:
                number = value()
                return math.nan if number is None else number

            gauge.set_function(read)

        def age() -> float | None:
            newest = live.stream.newest
            return None if newest is None else time.time() - newest

        add(
            "polytopic_unassigned_documents",
            "Documents without topics from the current model.",
            lambda: live.stream.unassigned,
        )
        add("polytopic_newest_document_age_seconds", "Age of the newest document.", age)
        add(
            "polytopic_unknown_word_share",
            "Share of words of the newest documents that the model does not know.",
            lambda: live.stream.unknown,
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        requests, durations = self._counters(route, status)
        requests.inc()
        durations.observe(seconds)

    def count_labelled(self, documents: int) -> None:
        """Count labelled documents."""
        self._labelled.inc(documents)

    def count_change(self, action: str) -> None:
        """Count a change of the store."""
        self._changes.labels(action).inc()

    def _find_counters(self, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(route, str(status)), self._seconds.labels(route)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
