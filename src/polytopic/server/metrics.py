"""What is counted for Prometheus."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counters of one service, in a registry of their own."""

    def __init__(self, service):
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "polytopic_requests", "Requests.", ["route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "polytopic_request_seconds",
            "Time of requests.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._labelled = Counter(
            "polytopic_labelled_documents", "Documents labelled.", registry=self.registry
        )
        self._changes = Counter(
            "polytopic_changes", "Changes of the store.", ["action"], registry=self.registry
        )
        self._of = cache(self._counters)  # to look them up takes longer than to count
        waiting = Gauge("polytopic_waiting", "Calls that wait or work.", registry=self.registry)
        waiting.set_function(lambda: service.workers.pending + service.writers.pending)
        revision = Gauge(
            "polytopic_revision", "Revision of the counts that answer.", registry=self.registry
        )
        revision.set_function(lambda: service.live.revision or 0)

    def labelled(self, documents: int) -> None:
        """Count labelled documents."""
        self._labelled.inc(documents)

    def changed(self, action: str) -> None:
        """Count a change of the store."""
        self._changes.labels(action).inc()

    def requested(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        count, times = self._of(route, status)
        count.inc()
        times.observe(seconds)

    def _counters(self, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(route, str(status)), self._seconds.labels(route)

    def text(self) -> bytes:
        """Return all as Prometheus reads it."""
        return generate_latest(self.registry)
