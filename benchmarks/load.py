"""Clients that keep a service busy at little cost: prepared requests, open connections."""

import asyncio
import json
import random
import time
from dataclasses import dataclass, field

HEAD = "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n{more}\r\n"


def request(host, path, body, **headers):
    """Return the bytes of a request."""
    kind = headers.pop("kind", "application/json")
    headers["Content-Length"] = len(body)
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return HEAD.format(path=path, host=host, kind=kind, more=more).encode() + body


@dataclass
class Load:
    """What clients send, and how the service responds.

    Parameters
    ----------
    host, token : str
        Address of the service, and a token that may learn.
    documents : list of Document
        Documents to label, and to learn, repeatedly.
    learn : float
        Share of requests that learn.
    """

    host: str
    token: str
    documents: list
    learn: float = 0.0
    seconds: dict = field(default_factory=lambda: {"suggest": [], "learn": []})
    learned: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    until: float = 0.0

    def __post_init__(self):
        self._asking = self.bodies()
        self._random = random.Random(0)
        self._sent = 0

    def bodies(self):
        """Return the requests for labels."""
        bodies = (json.dumps({"text": d.text}).encode() for d in self.documents)
        return [request(self.host, "/v1/suggest", body) for body in bodies]

    def next(self):
        """Return the next request of a client: route, id of a new document, and bytes."""
        self._sent += 1
        if self._random.random() >= self.learn:
            return "suggest", None, self._asking[self._sent % len(self._asking)]
        like, name = self.documents[self._sent % len(self.documents)], f"learned {self._sent}"
        document = {"id": name, "text": like.text, "labels": list(like.labels)}
        body = json.dumps({"documents": [document]}).encode()
        allowed = {"Authorization": f"Bearer {self.token}", "Idempotency_Key": name}
        return "learn", name, request(self.host, "/v1/learn", body, **allowed)

    def done(self, route, name, status, seconds, answer):
        """Record a response."""
        if status != 200:
            self.errors.append((route, status, answer[:200]))
            return
        self.seconds[route].append(seconds)
        if name is not None:
            self.learned.append(name)

    async def run(self, clients, seconds):
        """Let clients send requests for some seconds; return how long it took."""
        loop, (address, port) = asyncio.get_running_loop(), self.host.split(":")
        begin = time.perf_counter()
        self.until = begin + seconds
        connections = [
            await loop.create_connection(lambda: Client(self), address, int(port))
            for _ in range(clients)
        ]
        await asyncio.gather(*(client.ended for _, client in connections))
        return time.perf_counter() - begin


class Client(asyncio.Protocol):
    """A client that sends a request, waits for the response, and sends the next."""

    def __init__(self, load):
        self.load, self.ended = load, asyncio.get_running_loop().create_future()
        self._received = b""

    def connection_made(self, transport):
        """Send the first request."""
        self._transport = transport
        self._send()

    def _send(self):
        self._route, self._name, sent = self.load.next()
        self._begin = time.perf_counter()
        self._transport.write(sent)

    def data_received(self, data):
        """Read a response of known length, and send the next request."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().split(b"content-length: ")[1].split()[0]):
            return
        now = time.perf_counter()
        status = int(head[9:12])
        self.load.done(self._route, self._name, status, now - self._begin, body)
        self._received = b""
        if now < self.load.until:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, error):
        """Mark the connection as closed."""
        if time.perf_counter() < self.load.until or self._received:
            self.load.errors.append((self._route, 0, f"the connection was lost: {error}"))
        if not self.ended.done():
            self.ended.set_result(None)
