"""Alarms: labels that grow or vanish, strange words, silent and failing sources."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.error import URLError

from scipy.stats import binom

from polytopic.desk.settings import AlarmSettings
from polytopic.store import Store

TIMEOUT = 30  # seconds for a webhook or a command
MIN_REFERENCE = 200  # documents, before labels can be compared
MIN_ARTICLES = 20  # with topics, before their words can be strange


@dataclass(frozen=True)
class Alarm:
    """Something that an operator should know.

    Attributes
    ----------
    kind : str
        "growing", "vanishing", "unknown", "silent" or "failing".
    subject : str
        The label or the source; "" for all articles.
    message : str
        A sentence.
    facts : dict
        The numbers behind it.
    """

    kind: str
    subject: str
    message: str
    facts: dict[str, Any] = field(default_factory=dict, hash=False, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        """What makes two alarms the same, whatever their numbers are."""
        return self.kind, self.subject

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return asdict(self)


def find_trends(store: Store, settings: AlarmSettings) -> Iterator[Alarm]:
    """Yield the labels that the newest documents have significantly more or less often.

    The number of documents of a label among the newest ones is compared with a binomial
    distribution whose share is that of the documents before them, with half a document more.
    """
    newest, earlier = store.newest_topics(settings.window, settings.reference)
    if earlier.documents < MIN_REFERENCE:
        return
    n_docs = newest.documents
    for label in sorted(newest.labels.keys() | earlier.labels.keys()):
        n, before = newest.labels.get(label, 0), earlier.labels.get(label, 0)
        share = min((before + 0.5) / (earlier.documents + 1), 1.0)
        facts = {"documents": n, "of": n_docs, "expected": round(share * n_docs, 3)}
        numbers = f"{n:,} of the newest {n_docs:,} documents, expected {share * n_docs:.1f}"
        if binom.sf(n - 1, n_docs, share) < settings.significance:
            yield Alarm("growing", label, f"The label {label!r} is growing: {numbers}.", facts)
        elif binom.cdf(n, n_docs, share) < settings.significance:
            yield Alarm("vanishing", label, f"The label {label!r} is vanishing: {numbers}.", facts)


def find_strange_words(store: Store, settings: AlarmSettings) -> Iterator[Alarm]:
    """Yield an alarm if the model knows too few words of the newest articles."""
    known = [match.known for match in store.find(k=settings.window) if match.known is not None]
    if len(known) < MIN_ARTICLES:
        return
    unknown = 1 - sum(known) / len(known)
    if unknown > settings.unknown:
        message = f"The model does not know {unknown:.0%} of the words of the newest articles."
        yield Alarm("unknown", "", message, {"unknown": round(unknown, 4)})


class Alarms:
    """Tells an operator about each alarm once, until it no longer holds.

    An alarm that could not be delivered is tried again.
    """

    def __init__(self, settings: AlarmSettings):
        self.settings = settings
        self._delivered: set[tuple[str, str]] = set()

    def update(self, alarms: Sequence[Alarm]) -> Iterator[tuple[Alarm, str | None]]:
        """Deliver new alarms; yield each with the reason if that failed, else None."""
        self._delivered &= {alarm.key for alarm in alarms}
        for alarm in alarms:
            if alarm.key in self._delivered:
                continue
            reason = deliver(alarm, self.settings)
            if reason is None:
                self._delivered.add(alarm.key)
            yield alarm, reason


def deliver(alarm: Alarm, settings: AlarmSettings) -> str | None:
    """Tell the webhook and the command about an alarm; return why that failed, else None."""
    content, reasons = json.dumps(alarm.to_dict()).encode(), []
    if settings.webhook is not None:
        request = urllib.request.Request(  # noqa: S310  # the operator's own address
            settings.webhook, content, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310
                pass
        except (OSError, URLError, ValueError) as error:
            reasons.append(f"the webhook failed ({error})")
    if settings.command:
        try:
            subprocess.run(  # noqa: S603  # the operator's own command
                settings.command, input=content, timeout=TIMEOUT, check=True, capture_output=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            reasons.append(f"the command failed ({error})")
    return "; ".join(reasons) or None
