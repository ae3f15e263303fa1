"""Addresses: which may be visited, and one spelling for each."""

from __future__ import annotations

import socket
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from polytopic.desk.errors import RefusedError, UnreachableError

SCHEMES = {"http": 80, "https": 443}
MAX_ADDRESS = 2000  # characters
MAX_ID = 500  # characters of a document's id
TRACKING = ("utm_", "fbclid", "gclid")  # parameters that do not belong to an article's address
TRANSLATED = IPv6Network("64:ff9b::/96")  # IPv4 addresses behind NAT64


class Endpoint(NamedTuple):
    """A checked place to connect to: the host for its certificate, and the address of a machine."""

    scheme: str
    host: str
    port: int
    ip: str


def normalize_address(address: str) -> str:
    """Return the usual spelling of an address, without fragment and tracking parameters."""
    parts = urlsplit(address.strip())
    host = (parts.hostname or "").lower()
    port = "" if parts.port in (None, SCHEMES.get(parts.scheme)) else f":{parts.port}"
    netloc = f"[{host}]{port}" if ":" in host else f"{host}{port}"
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = [pair for pair in pairs if not pair[0].lower().startswith(TRACKING)]
    query = parts.query if len(kept) == len(pairs) else urlencode(kept)
    return urlunsplit((parts.scheme.lower(), netloc, parts.path or "/", query, ""))


def document_id(address: str) -> str:
    """Return the id of the document at an address: the address, or its digest if it is long."""
    if len(address) <= MAX_ID:
        return address
    return f"sha256:{sha256(address.encode()).hexdigest()}"


def is_web_address(source: str) -> bool:
    """Return whether a source is an address, of any scheme, and not a file."""
    return "://" in source


def check_address(address: str) -> None:
    """Raise unless an address can be visited at all: http or https, with a host."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise RefusedError(f"{address[:200]!r} is not a valid address ({error}).") from error
    if parts.scheme.lower() not in SCHEMES:
        raise RefusedError(f"{address[:200]!r} must begin with http:// or https://.")
    if not parts.hostname or port == 0:
        raise RefusedError(f"{address[:200]!r} has no host.")
    if parts.username is not None or parts.password is not None:
        raise RefusedError(f"{parts.hostname!r}: an address must not hold a name or a password.")
    if len(address) > MAX_ADDRESS or any(letter <= " " or letter == "\x7f" for letter in address):
        raise RefusedError(f"{address[:200]!r} is too long, or has spaces or control characters.")


def find_endpoint(address: str, *, allow_private: bool) -> Endpoint:
    """Return where to connect to for an address; raise if it is not a public machine.

    The caller must connect to the ``ip`` that is returned: asking for the name again could give
    another one.
    """
    check_address(address)
    parts = urlsplit(address)
    scheme, host = parts.scheme.lower(), str(parts.hostname)
    port = parts.port or SCHEMES[scheme]
    try:
        ascii_host = host if ":" in host else host.encode("idna").decode()
        found = socket.getaddrinfo(ascii_host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnreachableError(f"the host {host!r} cannot be found ({error}).") from error
    ips = list(dict.fromkeys(str(info[4][0]) for info in found))
    for ip in ips:
        if allow_private or is_public(ip):
            return Endpoint(scheme, ascii_host, port, ip)
    raise RefusedError(
        f"the host {host!r} is on a private or loopback network ({ips[0]}); allow it with "
        "--allow-private."
    )


def is_public(ip: str) -> bool:
    """Return whether an IP address belongs to the public internet, also inside another one."""
    address = ip_address(ip.partition("%")[0])
    inner = _inner(address)
    if inner is not None:
        return is_public(str(inner))
    return address.is_global and not address.is_multicast


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address stands for."""
    if isinstance(address, IPv4Address):
        return None
    if address in TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
