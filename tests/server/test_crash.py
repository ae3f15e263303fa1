"""Services as processes: killed, stopped, and two on one store."""

import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import httpx
import pytest

from polytopic import Store
from polytopic.corpus import load_sample
from tests.server.conftest import bearer, filled, until


class Process:
    """A service in a process of its own, and a client of it."""

    def __init__(self, url):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "polytopic", "serve", str(url), "--port", str(port)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)

    def is_ready(self):
        """Return whether the service answers."""
        with suppress(httpx.TransportError):
            return self.client.get("/health/ready").status_code == 200
        return False

    def learn(self, name):
        """Learn a document; return whether that was acknowledged."""
        document = {"id": name, "text": f"Word{name} of rye.", "labels": ["rye", f"l{name[-1]}"]}
        with suppress(httpx.TransportError):
            response = self.client.post(
                "/v1/learn", json={"documents": [document]}, headers=bearer("write")
            )
            return response.status_code == 200
        return False

    def revision(self):
        """Return the revision of the active model."""
        return self.client.post("/v1/suggest", json={"text": "x"}).json()["model"]["revision"]


@contextmanager
def running(*urls):
    """Start services and wait until they answer; kill them at the end."""
    services = [Process(url) for url in urls]
    try:
        for service in services:
            until(service.is_ready, seconds=60)
        yield services
    finally:
        for service in services:
            service.process.kill()
            service.process.wait()
            service.client.close()


@contextmanager
def learning(service, prefix, threads=4):
    """Learn documents in threads until that fails; yield the list of acknowledged ones."""
    acknowledged, numbers = [], iter(range(10**6))

    def learn():
        while service.learn(name := f"{prefix}-{next(numbers)}"):
            acknowledged.append(name)

    running = [threading.Thread(target=learn) for _ in range(threads)]
    for thread in running:
        thread.start()
    yield acknowledged
    for thread in running:
        thread.join()


def known(path):
    """Return the ids of the documents of a store, after verifying it."""
    with Store(path) as store:
        assert store.verify().problems == []
        return {document.id for document in store.documents()}


def kill_often(path, times):
    """Kill a service under load repeatedly; acknowledged changes survive."""
    rng, expected = random.Random(times), {document.id for document in load_sample()}
    for k in range(times):
        with running(path) as (service,):
            with learning(service, str(k)) as acknowledged:
                until(lambda ids=acknowledged: len(ids) > 20)
                time.sleep(rng.random() / 4)
                service.process.kill()
            assert len(acknowledged) > 20
        expected.update(acknowledged)
        stored = known(path)
        assert stored >= expected
        assert len(stored - expected) <= 4  # executed, but killed before the acknowledgement
        expected = stored


def test_a_killed_service_loses_nothing(path):
    """Every acknowledged document is in the store, which verifies."""
    kill_often(path, 1)


@pytest.mark.long
def test_many_killed_services_lose_nothing(path):
    """The same at 20 moments."""
    kill_often(path, 20)


def test_graceful_shutdown(path):
    """Pending requests are answered, and the process exits cleanly."""
    with running(path) as (service,):
        with learning(service, "t") as acknowledged:
            until(lambda: len(acknowledged) > 5)
            body = "\n".join(f'{{"text": "{d.text}"}}' for d in load_sample() for _ in range(20))
            headers = {"Content-Type": "application/x-ndjson"}
            with service.client.stream(
                "POST", "/v1/suggest", content=body.encode(), headers=headers
            ) as answer:
                service.process.send_signal(signal.SIGTERM)
                rows = sum(1 for _ in answer.iter_lines())

        assert service.process.wait(30) in (0, -signal.SIGTERM)
    assert rows == len(body.splitlines())
    assert known(path) == {document.id for document in load_sample()} | set(acknowledged)


def test_two_services_on_one_server(server):
    """What one service learns, the other uses within two seconds, in both directions."""
    url = filled(server.new_url())
    with running(url, url) as services:
        one, other = services
        for k, (learns, follows) in enumerate([(one, other), (other, one)], start=2):
            assert learns.learn(f"from{k}")
            until(lambda service=follows, revision=k: service.revision() == revision, seconds=2)
            until(lambda service=learns, revision=k: service.revision() == revision, seconds=2)
