"""A soak: two services on one store under mixed load, one of them killed again and again.

Clients learn, correct, relabel and forget documents, each with words that no other has, ask
for labels and explanations, and publish, roll back and refresh models. Every change carries an
``Idempotency-Key`` and is repeated until it is acknowledged, so that the soak knows what the store
must hold. At each checkpoint the load stops, and the soak checks that

- the store verifies and holds exactly what was acknowledged;
- no word, label or id of a forgotten document is in the database's files (SQLite) or tables
  (PostgreSQL), in the memory of a new process, or in an answer;
- the memory of the service that is never killed is no longer growing.

``make soak`` runs it for 30 minutes on SQLite and then on PostgreSQL.
"""

import argparse
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from polytopic import Store
from polytopic.corpus import load_sample
from tests.store.postgres import Server, find_binaries

TOKEN = "polytopic_soak"  # noqa: S105  (of a store that lives as long as the soak)
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
CLIENTS = 6
DOCUMENTS = 40  # that a client keeps; the oldest are forgotten
MODELS = ("pmm1", "mml", "nb")
READY = 60.0  # seconds that a service may take until it answers
GIVE_UP = 120.0  # seconds after which a change that is not acknowledged is a failure
GROWTH = 1.15  # how much memory may grow in the second half, at most
SLACK = 24 << 20  # bytes that an allocator may hold in addition


@dataclass
class Expected:
    """What the store must hold, and what must be gone."""

    labels: dict[str, list[str]] = field(default_factory=dict)
    erased: list[str] = field(default_factory=list)
    done: Counter = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def report(self, problem):
        """Record a problem, and print it."""
        self.problems.append(problem)
        print(f"PROBLEM: {problem}", file=sys.stderr, flush=True)


class Service:
    """A service in its own process, which keeps its port when it is restarted."""

    def __init__(self, url):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url, self.address = url, f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        """Start it, and return when it answers."""
        command = [sys.executable, "-m", "polytopic", "serve", str(self.url)]
        self.process = subprocess.Popen([*command, "--port", str(self.port)])
        until(self.is_ready, READY, f"the service on port {self.port} does not become ready")
        return self

    def kill(self):
        """End it at once, as in a crash."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """End it gracefully."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def is_ready(self):
        """Return whether it answers."""
        assert self.process.poll() is None, f"the service ended with {self.process.returncode}"
        try:
            return httpx.get(f"{self.address}/health/ready", timeout=10).status_code == 200
        except httpx.TransportError:
            return False

    def resident(self):
        """Return its memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) << 10


class Client(threading.Thread):
    """A client with its own documents: learns, corrects, relabels, forgets and labels them."""

    def __init__(self, number, services, expected, running):
        super().__init__(daemon=True)
        self.number, self.services = number, services
        self.expected, self.running = expected, running
        self.ended, self.idle = threading.Event(), threading.Event()
        self._random = random.Random(number)
        self._sample = [document.text for document in load_sample()]
        self._words: dict[str, list[str]] = {}  # all versions of each document in the store
        self._numbers = 0
        self._http = httpx.Client(timeout=60)

    def run(self):
        """Work until the end, and pause whenever the load is to stop."""
        while not self.ended.is_set():
            if not self.running.is_set():
                self.idle.set()
                self.running.wait()
                self.idle.clear()
            if self.ended.is_set():
                break
            try:
                self._act()
            except Exception as error:
                self.expected.report(f"client {self.number}: {error!r}")

    def _act(self):
        known = list(self._words)
        if len(known) >= DOCUMENTS:
            self._forget(known[0])
        action = self._random.choices(
            [self._learn, self._correct, self._relabel, self._forget_any, self._ask],
            weights=[4, 2, 2, 1, 20],
        )[0]
        action()

    def _new_word(self):
        letters = self._random.choices("bcdfghjklmnpqrstvwz", k=14)
        return "q" + "".join(letters)

    def _learn(self):
        self._numbers += 1
        self._put(f"id-{self._new_word()}-{self.number}-{self._numbers}")

    def _correct(self):
        if self._words:
            self._put(self._random.choice(list(self._words)))

    def _put(self, name):
        word, label = self._new_word(), self._new_label()
        text = f"{self._random.choice(self._sample)} {word} {word}."
        document = {"id": name, "text": text, "labels": label}
        self._change("learn", {"documents": [document]})
        self._words.setdefault(name, [name]).extend([word, *self._own(label)])
        self.expected.labels[name] = sorted(label)

    def _new_label(self):
        """Return one or two labels, occasionally one that no other document has."""
        label = [f"topic {self._random.randrange(8)}"]
        if self._random.random() < 0.1:
            label.append(f"label-{self._new_word()}")
        return label

    def _own(self, label):
        return [name for name in label if name.startswith("label-")]

    def _relabel(self):
        if self._words:
            name, label = self._random.choice(list(self._words)), self._new_label()
            self._change("relabel", {"labels": {name: label}})
            self._words[name].extend(self._own(label))
            self.expected.labels[name] = sorted(label)

    def _forget_any(self):
        if self._words:
            self._forget(self._random.choice(list(self._words)))

    def _forget(self, name):
        purge = self._random.random() < 0.5
        self._change("forget", {"ids": [name], "purge": purge})
        del self.expected.labels[name]
        self.expected.erased.extend(self._words.pop(name))

    def _ask(self):
        text = self._random.choice(self._sample)
        route = self._random.choice(["suggest", "suggest", "suggest", "explain"])
        done = self._post(f"/v1/{route}", {"text": text}, {})
        if done is not None and done.status_code not in (200, 409, 503):
            self.expected.report(f"{route} answers {done.status_code}: {done.text[:200]}")
        self.expected.done[route] += 1

    def _change(self, action, body):
        """Request a change with one key until it is acknowledged."""
        headers = {**HEADERS, "Idempotency-Key": f"{self.number}-{self._new_word()}"}
        end = time.monotonic() + GIVE_UP
        while time.monotonic() < end:
            done = self._post(f"/v1/{action}", body, headers)
            if done is not None and done.status_code == 200:
                self.expected.done[action] += 1
                return
            if done is not None and done.status_code != 503:
                raise AssertionError(f"{action} answers {done.status_code}: {done.text[:300]}")
            time.sleep(0.1)
        raise AssertionError(f"{action} was not acknowledged within {GIVE_UP:g} seconds")

    def _post(self, route, body, headers):
        """Return the response of one of the services; None if the connection fails."""
        service = self._random.choice(self.services)
        try:
            return self._http.post(f"{service.address}{route}", json=body, headers=headers)
        except httpx.TransportError:
            self.expected.done["lost connections"] += 1
            return None


class Administrator(Client):
    """Publishes, rolls back and refreshes models."""

    def _act(self):
        action, body = self._random.choice(
            [
                ("models", {"model": self._random.choice(MODELS)}),
                ("models/rollback", {}),
                ("models/refresh", {}),
            ]
        )
        done = self._post(f"/v1/{action}", body, HEADERS)
        if done is not None and done.status_code not in (200, 409, 503):
            self.expected.report(f"{action} answers {done.status_code}: {done.text[:200]}")
        self.expected.done[action] += 1
        self.ended.wait(self._random.uniform(1, 4))


class Killer(threading.Thread):
    """Kills a service at random moments, and restarts it."""

    def __init__(self, service, expected, running):
        super().__init__(daemon=True)
        self.service, self.expected, self.running = service, expected, running
        self.ended, self.idle = threading.Event(), threading.Event()
        self._random = random.Random(0)

    def run(self):
        """Kill and restart until the end."""
        while not self.ended.wait(self._random.uniform(2, 12)):
            if not self.running.is_set():
                self.idle.set()
                self.running.wait()
                self.idle.clear()
                continue
            self.service.kill()
            self.service.start()
            self.expected.done["kills"] += 1


def until(condition, seconds, complaint):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(0.05)


def new_store(url):
    """Create a store with the bundled sample, which is never changed, and a token."""
    with Store(url, keep_texts=True) as store:
        store.learn(load_sample())
        store.tokens.create("soak", "admin", TOKEN)
    return url


def check_store(url, expected):
    """Check that the store verifies and holds what was acknowledged."""
    sample = {document.id for document in load_sample()}
    with Store(url, create=False) as store:
        problems = store.verify().problems
        documents = {d.id: sorted(d.labels) for d in store.documents() if d.id not in sample}
    for problem in problems:
        expected.report(f"verify: {problem}")
    if documents != expected.labels:
        lost = sorted(expected.labels.keys() - documents.keys())
        unexpected = sorted(documents.keys() - expected.labels.keys())
        both = documents.keys() & expected.labels.keys()
        changed = sorted(name for name in both if documents[name] != expected.labels[name])
        expected.report(f"the store lost {lost}, has unexpected {unexpected}, changed {changed}")


def check_answers(services, expected):
    """Check that no answer contains a word, a label or a document that was erased."""
    for service in services:
        until(service.is_ready, READY, f"port {service.port} is not ready at a checkpoint")
        recent = expected.erased[-400:]
        text = " ".join(recent)
        response = httpx.post(f"{service.address}/v1/explain", json={"text": text}, timeout=60)
        if response.status_code != 200:
            expected.report(f"explain answers {response.status_code}: {response.text[:200]}")
            continue
        answer = response.json()
        known = json.dumps([answer["labels"], answer["keywords"], answer["places"]])
        traces = [word for word in recent if word in known]
        listed = httpx.get(f"{service.address}/v1/labels", timeout=60).text
        traces += [word for word in recent if word in listed]
        if traces:
            expected.report(f"answers on port {service.port} know {traces[:5]}")


def check_bytes(where, content, expected):
    """Check that bytes contain nothing that was erased."""
    traces = [word for word in expected.erased if word.encode() in content]
    if traces:
        expected.report(f"{where} holds {len(traces)} erased words: {traces[:5]}")


def read_files(path):
    """Return the bytes of a SQLite database's files, read by another process.

    A process that closes a file loses its own locks on it, and this one may have the store open.
    """
    files = sorted(map(str, path.parent.glob(path.name + "*")))
    return subprocess.run(["cat", *files], check=True, stdout=subprocess.PIPE).stdout  # noqa: S607


def read_tables(url):
    """Return all rows of a store's tables in PostgreSQL as text."""
    from sqlalchemy import create_engine, inspect, text

    engine, parts = create_engine(url), []
    with engine.connect() as connection:
        for name in inspect(engine).get_table_names():
            if not name.startswith("polytopic_"):
                continue
            for row in connection.execute(text(f'SELECT * FROM "{name}"')):  # noqa: S608
                parts.extend(v if isinstance(v, bytes) else str(v).encode() for v in row)
    engine.dispose()
    return b"\n".join(parts)


def memory_of(process):
    """Yield the writable memory of a process, one region at a time."""
    with (
        open(f"/proc/{process.pid}/maps") as maps,
        open(f"/proc/{process.pid}/mem", "rb", buffering=0) as memory,
    ):
        for line in maps:
            place, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            begin, end = (int(part, 16) for part in place.split("-"))
            try:
                memory.seek(begin)
                yield memory.read(end - begin)
            except OSError:  # a region of the kernel's own
                continue


def check_new_process(url, expected):
    """Check that the memory of a service that was just started contains nothing erased."""
    fresh = Service(url).start()
    try:
        httpx.post(f"{fresh.address}/v1/explain", json={"text": "A word."}, timeout=60)
        for region in memory_of(fresh.process):
            check_bytes("the memory of a new process", region, expected)
    finally:
        fresh.stop()


def check_memory(resident, expected):
    """Check that memory stops growing: compare the last quarter with the second."""
    if len(resident) < 8:
        return
    quarter = len(resident) // 4
    before, after = (max(part) for part in (resident[quarter : 2 * quarter], resident[-quarter:]))
    if after > GROWTH * before + SLACK:
        expected.report(f"memory grew from {before >> 20} to {after >> 20} MB")


@contextmanager
def database(kind):
    """Yield the URL of an empty database."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "store.db"
        return
    binaries = find_binaries()
    if binaries is None:
        raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
    server = Server(binaries)
    try:
        yield server.start().new_url()
    finally:
        server.remove()


def soak(kind, seconds, *, pause=60.0):
    """Run the soak on a kind of database; return what was expected, done and observed.

    Parameters
    ----------
    kind : {"sqlite", "postgresql"}
        The database.
    seconds : float
        How long to keep up the load.
    pause : float, default=60
        Seconds of load between checkpoints.
    """
    expected, resident = Expected(), []
    with ExitStack() as stack:
        url = new_store(stack.enter_context(database(kind)))
        services = [Service(url), Service(url)]
        running = threading.Event()
        threads = [Client(k, services, expected, running) for k in range(CLIENTS)]
        threads.append(Administrator(CLIENTS, services, expected, running))
        threads.append(Killer(services[1], expected, running))
        try:
            for service in services:
                service.start()
            for thread in threads:
                thread.start()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not expected.problems:
                running.set()
                stop = min(time.monotonic() + pause, end)
                while time.monotonic() < stop:
                    time.sleep(1)
                    resident.append(services[0].resident())
                running.clear()
                check(kind, url, threads, services, expected)
                show(kind, expected, resident[-1])
            check_memory(resident, expected)
        finally:
            for thread in threads:
                thread.ended.set()
            running.set()
            for thread in threads:
                if thread.is_alive():
                    thread.join(GIVE_UP)
            for service in services:
                if service.process is not None:
                    service.kill()
    return expected


def check(kind, url, threads, services, expected):
    """Check everything while the load pauses."""
    for thread in threads:
        assert thread.idle.wait(GIVE_UP), "the load does not come to rest"
    # models that saw a forgotten document are kept, marked, until they are purged
    purge = {"ids": ["nobody"], "purge": True}
    httpx.post(f"{services[0].address}/v1/forget", json=purge, headers=HEADERS, timeout=60)
    check_store(url, expected)
    if kind == "sqlite":
        check_bytes("the database's files", read_files(url), expected)
    else:
        check_bytes("the database's tables", read_tables(url), expected)
    check_answers(services, expected)
    check_new_process(url, expected)


def show(kind, expected, resident):
    """Print what was done so far."""
    row = {"database": kind, "megabytes": resident >> 20, "documents": len(expected.labels)}
    row |= {"erased": len(expected.erased), "problems": len(expected.problems), **expected.done}
    print(json.dumps(row), flush=True)


def main():
    """Run the soak; exit with 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("databases", nargs="*", default=["sqlite", "postgresql"])
    arguments = parser.parse_args()
    results = [soak(kind, 60 * arguments.minutes) for kind in arguments.databases]
    sys.exit(any(expected.problems for expected in results))


if __name__ == "__main__":
    main()
