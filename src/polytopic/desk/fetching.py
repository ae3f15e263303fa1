"""Polite requests: robots.txt, one request at a time per host, limits, retries with backoff."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from polytopic.desk.addresses import Endpoint, check_address, find_endpoint
from polytopic.desk.errors import RefusedError, ResponseError, UnreachableError

AGENT = "polytopic"
REDIRECTS = (301, 302, 303, 307, 308)
RETRIED = (429, 500, 502, 503, 504)
CHUNK = 1 << 16
ROBOTS_BYTES = 1 << 19
MAX_RETRY_AFTER = 60.0  # seconds
ENCODINGS = {
    "gzip": 47,
    "x-gzip": 47,
    "deflate": 47,
}  # window sizes of zlib, which finds the header


@dataclass(frozen=True)
class FetchLimits:
    """Limits of requests.

    Parameters
    ----------
    delay : float, default=1
        Seconds between two requests to a host; robots.txt may ask for more.
    seconds : float, default=30
        Seconds that a response may take in all.
    max_bytes : int, default=5242880
        Bytes that a response may have, after decompression.
    redirects : int, default=5
        Number of redirects to follow.
    retries : int, default=2
        How often to try again if a server does not answer, or says that it is busy.
    backoff : float, default=1
        Seconds before the first retry; twice as many before each further one.
    allow_private : bool, default=False
        Whether to visit private and loopback addresses.
    """

    delay: float = 1.0
    seconds: float = 30.0
    max_bytes: int = 5 << 20
    redirects: int = 5
    retries: int = 2
    backoff: float = 1.0
    allow_private: bool = False


@dataclass(frozen=True)
class Validators:
    """What a server gave to ask later whether something has changed."""

    etag: str | None = None
    modified: str | None = None


@dataclass(frozen=True)
class Response:
    """A response: its final address, its content, and its validators.

    ``content`` is None if nothing has changed since the validators that were sent.
    """

    address: str
    content: bytes | None
    media_type: str
    validators: Validators
    retry_after: float | None = None
    status: int = 200
    target: str = ""  # of a redirect


class Fetcher:
    """Fetches addresses for several threads.

    Parameters
    ----------
    limits : FetchLimits
        The limits.
    stopped : threading.Event, default=None
        Ends all waiting when it is set.
    """

    def __init__(self, limits: FetchLimits, stopped: threading.Event | None = None):
        self.limits = limits
        self._stopped = stopped or threading.Event()
        self._context = ssl.create_default_context()
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}
        self._robots: dict[str, RobotFileParser] = {}

    def fetch(self, address: str, validators: Validators | None = None) -> Response:
        """Return the response of an address, after redirects; raise an AcquisitionError."""
        check_address(address)
        for _ in range(self.limits.redirects + 1):
            self._check_robots(address)
            response = self._request(address, validators)
            if response.status not in REDIRECTS:
                return self._checked(response)
            address = urljoin(address, response.target)
            validators = None  # those of another address
        raise ResponseError(f"{address[:200]!r}: more than {self.limits.redirects} redirects.")

    def _checked(self, response: Response) -> Response:
        if response.status == 304 or 200 <= response.status < 300:
            return response
        kind = UnreachableError if response.status in RETRIED else ResponseError
        raise kind(f"{response.address[:200]!r} answers with status {response.status}.")

    def _request(
        self, address: str, validators: Validators | None = None, max_bytes: int | None = None
    ) -> Response:
        """Return a response with any status; try again if the server cannot answer now."""
        pause = self.limits.backoff
        for attempt in range(self.limits.retries + 1):
            is_last = attempt == self.limits.retries
            try:
                with self._turn(address):
                    response = self._ask(address, validators, max_bytes or self.limits.max_bytes)
            except UnreachableError:
                if is_last or self._stopped.is_set():
                    raise
            else:
                if response.status not in RETRIED or is_last:
                    return response
                pause = max(pause, response.retry_after or 0)
            if self._stopped.wait(pause):
                break
            pause *= 2
        raise UnreachableError(f"{address[:200]!r}: the run was stopped.")

    # Politeness

    @contextmanager
    def _turn(self, address: str) -> Iterator[None]:
        """Wait until the host has had its pause; no other thread asks it meanwhile."""
        host = str(urlsplit(address).hostname)
        with self._lock:
            state = self._hosts.setdefault(host, _Host(self.limits.delay))
        with state.lock:
            if self._stopped.wait(max(state.next_time - time.monotonic(), 0)):
                raise UnreachableError(f"{address[:200]!r}: the run was stopped.")
            try:
                yield
            finally:
                state.next_time = time.monotonic() + state.delay

    def _check_robots(self, address: str) -> None:
        """Raise if robots.txt forbids an address."""
        parts = urlsplit(address)
        origin = f"{parts.scheme}://{parts.netloc}"
        rules = self._robots.get(origin)
        if rules is None:
            rules = self._read_robots(origin)
            self._robots[origin] = rules
            pause = rules.crawl_delay(AGENT)
            if pause is not None:
                with self._lock:
                    host = self._hosts.setdefault(str(parts.hostname), _Host(self.limits.delay))
                    host.delay = max(host.delay, float(pause))
        if not rules.can_fetch(AGENT, address):
            raise RefusedError(f"{address[:200]!r} is forbidden by the server's robots.txt.")

    def _read_robots(self, origin: str) -> RobotFileParser:
        """Return the rules of a server; without a file, everything is allowed."""
        address, rules = f"{origin}/robots.txt", RobotFileParser()
        for _ in range(self.limits.redirects + 1):
            response = self._request(address, max_bytes=ROBOTS_BYTES)
            if response.status not in REDIRECTS:
                break
            address = urljoin(address, response.target)
        if response.status >= 500:
            raise UnreachableError(f"{address[:200]!r} answers with status {response.status}.")
        is_file = 200 <= response.status < 300
        text = (response.content or b"").decode("utf-8", errors="replace") if is_file else ""
        rules.parse(text.lstrip("\ufeff").splitlines())
        return rules

    # One request

    def _ask(self, address: str, validators: Validators | None, max_bytes: int) -> Response:
        endpoint = find_endpoint(address, allow_private=self.limits.allow_private)
        parts = urlsplit(address)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {
            "User-Agent": AGENT,
            "Accept-Encoding": "gzip, deflate",
            "Accept": "*/*",
            "Connection": "close",
        }
        if validators is not None and validators.etag:
            headers["If-None-Match"] = validators.etag
        if validators is not None and validators.modified:
            headers["If-Modified-Since"] = validators.modified
        connection = _Connection(endpoint, self.limits.seconds, self._context)
        is_late = threading.Event()

        def abort() -> None:
            is_late.set()
            connection.abort()

        watch = threading.Timer(self.limits.seconds, abort)
        watch.daemon = True
        watch.start()
        try:
            connection.request("GET", _quote(target), headers=headers)
            return self._read(address, connection.getresponse(), max_bytes)
        except (OSError, UnreachableError, http.client.HTTPException, ValueError) as error:
            reason = str(error) or type(error).__name__
            if is_late.is_set():
                reason = f"it took more than {self.limits.seconds:g} seconds"
            elif isinstance(error, UnreachableError):
                raise
            raise UnreachableError(f"{address[:200]!r} does not answer ({reason}).") from error
        finally:
            watch.cancel()
            connection.close()

    def _read(self, address: str, raw: http.client.HTTPResponse, max_bytes: int) -> Response:
        validators = Validators(raw.getheader("ETag"), raw.getheader("Last-Modified"))
        media_type = (raw.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if raw.status in REDIRECTS:
            target = raw.getheader("Location")
            if not target:
                raise ResponseError(f"{address[:200]!r} redirects to nowhere.")
            return Response(
                address, None, media_type, validators, status=raw.status, target=target.strip()
            )
        content = None
        if raw.status not in (204, 304):
            encoding = (raw.getheader("Content-Encoding") or "identity").strip().lower()
            length = raw.getheader("Content-Length")
            content = _read_content(address, raw.read1, encoding, length, max_bytes)
        pause = _retry_after(raw.getheader("Retry-After"))
        return Response(address, content, media_type, validators, pause, raw.status)


class _Host:
    """When a host may be asked next."""

    def __init__(self, delay: float):
        self.lock, self.delay, self.next_time = threading.Lock(), delay, 0.0


class _Connection(http.client.HTTPConnection):
    """A connection to the machine that was checked, whatever its name stands for now."""

    def __init__(self, endpoint: Endpoint, seconds: float, context: ssl.SSLContext):
        super().__init__(endpoint.host, endpoint.port, timeout=seconds)
        self.default_port = 443 if endpoint.scheme == "https" else 80  # of the Host header
        self._endpoint, self._context = endpoint, context
        self._connected: socket.socket | None = None

    def connect(self) -> None:
        """Connect to the checked machine; a certificate must be for the name."""
        place = self._endpoint.ip, self._endpoint.port
        self._connected = self.sock = socket.create_connection(place, self.timeout)
        if self._endpoint.scheme == "https":
            self._connected = self.sock = self._context.wrap_socket(
                self.sock, server_hostname=self._endpoint.host, do_handshake_on_connect=False
            )
            self.sock.do_handshake()  # when abort() already sees the new socket

    def abort(self) -> None:
        """End a request that another thread waits for, also when only its body is left."""
        if self._connected is not None:
            with suppress(OSError):  # it has ended already
                self._connected.shutdown(socket.SHUT_RDWR)


def _quote(target: str) -> str:
    """Return a path as it is sent: letters outside ASCII as their UTF-8 bytes."""
    return "".join(
        letter if letter.isascii() else "".join(f"%{byte:02X}" for byte in letter.encode())
        for letter in target
    )


def _read_content(
    address: str,
    read: Callable[[int], bytes],
    encoding: str,
    length: str | None,
    max_bytes: int,
) -> bytes:
    """Return the decompressed content; raise if it is incomplete or too long."""
    if encoding not in ("identity", "", *ENCODINGS):
        raise ResponseError(f"{address[:200]!r} is compressed as {encoding[:40]!r}.")
    unpack = zlib.decompressobj(ENCODINGS[encoding]) if encoding in ENCODINGS else None
    parts, n_bytes, n_received = [], 0, 0
    while chunk := read(CHUNK):
        n_received += len(chunk)
        if unpack is not None:
            try:
                chunk = unpack.decompress(chunk, max_bytes - n_bytes + 1)
            except zlib.error as error:
                raise ResponseError(f"{address[:200]!r} is damaged ({error}).") from error
        n_bytes += len(chunk)
        if n_bytes > max_bytes:
            raise ResponseError(f"{address[:200]!r} has more than {max_bytes:,} bytes.")
        parts.append(chunk)
    is_cut = length is not None and length.isdecimal() and n_received < int(length)
    if is_cut or (unpack is not None and n_received and not unpack.eof):
        raise UnreachableError(f"{address[:200]!r} is incomplete.")
    return b"".join(parts)


def _retry_after(value: str | None) -> float | None:
    """Return how many seconds a server asks to wait, at most a minute."""
    if not value:
        return None
    if value.strip().isdecimal():
        return min(float(value), MAX_RETRY_AFTER)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
