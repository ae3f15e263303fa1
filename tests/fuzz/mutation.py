"""Random mutations of bytes and of plain values."""

from __future__ import annotations

from random import Random
from typing import Any

TOKENS = [
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\r\n", b"\n", b"\t", b",", b'"', b"'", b"\\"),
    *(b"<", b">", b"&", b"<!--", b"]]>", b"&#0;", b"&x;", b"<!DOCTYPE a [<!ENTITY x 'y'>]>"),
    *(b"{", b"}", b"[", b"]", b"[[[[[[[[", b":", b"null", b"true", b"NaN", b"Infinity", b"-1"),
    *(b"0", b"1e999", b"9" * 40, b"\\ud800", b"\xed\xa0\x80", "é".encode(), "\u2028".encode()),
    *(b"@attribute", b"@data", b"%", b"#", b"@prefix", b"\x1f\x8b\x08", b"PAR1", b"D:", b"\x1a"),
]
NUMBERS = [0, 1, -1, 2, 0.5, -0.5, 1e-320, 1e308, -1e308, 10**400, 2**31, 2**63, float("inf")]
VALUES = [*NUMBERS, float("nan"), None, True, False, "", "x", "\ud800", "\0", [], {}, [[]], ["x"]]


def mutated_bytes(content: bytes, random: Random) -> bytes:
    """Return bytes that differ in a few places."""
    parts = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4, 16))):
        start = random.randrange(len(parts) + 1)
        stop = min(len(parts), start + random.choice((0, 1, 1, 2, 8, 64, len(parts))))
        kind = random.randrange(7)
        if kind == 0 and start < len(parts):
            parts[start] ^= 1 << random.randrange(8)
        elif kind == 1:
            parts[start:stop] = b""
        elif kind == 2:
            parts[start:start] = random.choice(TOKENS) * random.choice((1, 1, 1, 3, 1000))
        elif kind == 3:
            parts[start:stop] = random.choice(TOKENS)
        elif kind == 4:
            parts[start:start] = parts[start:stop] * random.choice((1, 2, 50))
        elif kind == 5:
            parts[start:stop] = random.randbytes(stop - start)
        else:
            del parts[start:]
    return bytes(parts[: 1 << 20])


def mutated_value(value: Any, random: Random) -> Any:
    """Return a plain value, such as one from JSON, that differs in one place."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        changed = dict(value)
        name = random.choice(list(changed))
        kind = random.random()
        if kind < 0.08:
            del changed[name]
        elif kind < 0.12:
            changed[random.choice(["", "x", name + "x"])] = changed.pop(name)
        else:
            changed[name] = mutated_value(changed[name], random)
        return changed
    if isinstance(value, list) and value and random.random() < 0.9:
        changed = list(value)
        place = random.randrange(len(changed))
        kind = random.random()
        if kind < 0.1:
            del changed[place]
        elif kind < 0.2:
            changed.insert(place, changed[random.randrange(len(changed))])
        elif kind < 0.25:
            random.shuffle(changed)
        else:
            changed[place] = mutated_value(changed[place], random)
        return changed
    if isinstance(value, int | float) and random.random() < 0.5:
        half = value // 2 if isinstance(value, int) else value / 2  # large ones are no floats
        return random.choice([value + 1, value - 1, -value, value * 2, half, value * 10**6])
    if isinstance(value, str) and value and random.random() < 0.5:
        return random.choice([value[:-1], value + "x", value.upper(), value * 3, value[::-1]])
    return random.choice(VALUES)
