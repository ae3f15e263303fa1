"""Requests are polite, limited, and never leave the public internet unless they may."""

import socket
import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from polytopic.desk import FetchLimits
from polytopic.desk.addresses import document_id, find_endpoint, is_public, normalize_address
from polytopic.desk.errors import RefusedError, ResponseError, UnreachableError
from polytopic.desk.fetching import Fetcher, Validators
from tests.desk.conftest import FAST


def fetcher(**settings):
    """Return a fetcher without delays, with other limits."""
    return Fetcher(replace(FAST, **settings))


@pytest.mark.parametrize(
    ("ip", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),  # noqa: S104  # an address to refuse
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_public_addresses(ip, public):
    """Private networks are recognized, also inside other addresses."""
    assert is_public(ip) is public


@pytest.mark.parametrize(
    "name", ["http://127.0.0.1", "http://localhost", "http://[::1]", "http://0"]
)
def test_private_addresses_are_refused(news, name):
    """Nothing is sent to loopback and private addresses."""
    address = f"{name}:{news.server.server_port}/x"

    with pytest.raises((RefusedError, UnreachableError)):
        Fetcher(FetchLimits(delay=0, retries=0)).fetch(address)

    assert not news.requests


def test_a_redirect_to_a_private_address_is_refused(news, monkeypatch):
    """Each redirect is checked again: a public server cannot point into the own network."""
    news.put("/out", "", status=302, headers={"Location": f"{news.root}/secret"})
    news.put("/secret", "a secret")
    real = socket.getaddrinfo
    public = f"http://public.example:{news.server.server_port}/out"

    def resolve(host, *arguments, **options):
        return real("127.0.0.1" if host == "public.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(
        "polytopic.desk.addresses.is_public", lambda ip: "public.example" in news_hosts(news)
    )

    with pytest.raises(RefusedError, match="private or loopback network"):
        Fetcher(FetchLimits(delay=0, retries=0)).fetch(public)

    assert news.requests["/secret"] == 0


def news_hosts(news):
    """Return the hosts that were asked while only robots.txt and the redirect are known."""
    return "public.example" if news.requests["/out"] == 0 else "private"


def test_the_checked_machine_is_asked(news, monkeypatch):
    """A name is looked up once per request: a second answer cannot redirect the connection."""
    news.put("/x", "content")
    asked, real = [], socket.getaddrinfo

    def resolve(host, *arguments, **options):
        asked.append(host)
        return real("127.0.0.1", *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    address = f"http://news.example:{news.server.server_port}/x"

    response = fetcher().fetch(address)

    assert response.content == b"content"
    assert asked.count("news.example") == 2  # robots.txt and the page
    _, _, headers = news.log[-1]
    assert headers["Host"] == f"news.example:{news.server.server_port}"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("file:///etc/passwd", "must begin with http"),
        ("ftp://example.org/", "must begin with http"),
        ("http://", "has no host"),
        ("http://user:secret@example.org/", "must not hold a name or a password"),
        ("http://example.org/a b", "spaces"),
        ("http://example.org/\r\nHost: x", "control characters"),
        ("http://example.org:99999/", "not a valid address"),
        (f"http://example.org/{'x' * 3000}", "too long"),
    ],
)
def test_invalid_addresses(address, reason):
    """They are refused before anything is looked up."""
    with pytest.raises(RefusedError, match=reason):
        find_endpoint(address, allow_private=True)


def test_spelling_of_addresses():
    """Equal addresses are written the same, and ids are never too long."""
    assert (
        normalize_address("HTTP://Example.ORG:80?utm_source=a&b=c#d") == "http://example.org/?b=c"
    )
    assert normalize_address("https://[2606::1]:8443/x?a=&a=2") == "https://[2606::1]:8443/x?a=&a=2"
    assert document_id("http://example.org/") == "http://example.org/"
    assert len(document_id("http://example.org/" + "x" * 600)) == 71


def test_robots_are_obeyed(news):
    """Forbidden addresses are not asked for, and the delay that robots.txt asks for is kept."""
    rules = "User-agent: *\nDisallow: /secret\nCrawl-delay: 0.2\n"
    news.put("/robots.txt", rules, kind="text/plain")
    news.put("/secret/x", "hidden")
    news.put("/open", "content")
    polite = fetcher()

    with pytest.raises(RefusedError, match=r"robots\.txt"):
        polite.fetch(f"{news.root}/secret/x")

    polite.fetch(f"{news.root}/open")
    assert news.requests == {"/robots.txt": 1, "/open": 1}


def test_a_server_whose_robots_fail_is_left_alone(news):
    """Nobody knows what it allows."""
    news.put("/robots.txt", "x", status=500)
    news.put("/open", "content")

    with pytest.raises(UnreachableError, match="status 500"):
        fetcher().fetch(f"{news.root}/open")

    assert news.requests["/open"] == 0


def test_one_request_at_a_time_with_a_delay(news):
    """However many threads ask, a host answers one request, and then has a pause."""
    for k in range(6):
        news.put(f"/{k}", "content", seconds=0.02)
    polite = fetcher(delay=0.1)
    threads = [threading.Thread(target=polite.fetch, args=(f"{news.root}/{k}",)) for k in range(6)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    times = sorted(moment for moment, path, _ in news.log if path != "/robots.txt")
    assert news.most_running == 1
    assert min(b - a for a, b in pairwise(times)) >= 0.1


def test_retries(news):
    """A busy server is asked again after growing pauses, at most as often as allowed."""
    news.put("/x", "content", fails=2)
    assert fetcher().fetch(f"{news.root}/x").content == b"content"
    assert news.requests["/x"] == 3

    news.put("/y", "content", fails=9)
    with pytest.raises(UnreachableError, match="status 503"):
        fetcher(retries=1).fetch(f"{news.root}/y")
    assert news.requests["/y"] == 2


def test_missing_pages_are_not_asked_for_again(news):
    """An error that will not pass is final."""
    with pytest.raises(ResponseError, match="status 404"):
        fetcher().fetch(f"{news.root}/missing")
    assert news.requests["/missing"] == 1


@pytest.mark.parametrize("settings", [{"seconds": 5.0}, {"drip": 0.1}])
def test_slow_pages_end_in_time(news, settings):
    """Neither a late answer nor single bytes keep a run waiting."""
    news.put("/slow", "x" * 200, **settings)
    begin = time.monotonic()

    with pytest.raises(UnreachableError, match=r"more than 0\.5 seconds"):
        fetcher(seconds=0.5, retries=0).fetch(f"{news.root}/slow")

    assert time.monotonic() - begin < 3


def test_an_incomplete_page_is_an_error(news):
    """A connection that ends before the page does is not taken for the page."""
    news.put("/cut", "half", headers={"Content-Length": "8"})

    with pytest.raises(UnreachableError):
        fetcher(retries=0, seconds=1).fetch(f"{news.root}/cut")


def test_validators_are_sent(news):
    """A page that has not changed has no content."""
    news.put("/x", "content", etag='"1"')
    first = fetcher().fetch(f"{news.root}/x")

    again = fetcher().fetch(f"{news.root}/x", first.validators)

    assert first.validators == Validators('"1"', None)
    assert (again.content, again.status) == (None, 304)


def test_an_unreachable_server():
    """A port where nobody listens, and a host that does not exist, are named."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(UnreachableError, match="does not answer"):
        fetcher(retries=0).fetch(f"http://127.0.0.1:{port}/")
    with pytest.raises(UnreachableError, match="cannot be found"):
        fetcher(retries=0).fetch("http://nowhere.invalid/")
