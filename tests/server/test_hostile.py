"""Hostile and strange texts, names and clients: the service keeps working."""

import asyncio
import json
import logging
import random
import socket
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from polytopic import LabelTree, Store
from polytopic.server import limits, live, queries, schemas, suggest
from polytopic.server.limits import BodyMemory, decode_json, json_size, validate
from polytopic.server.suggest import read_lines
from tests.server.conftest import bearer, filled, served, until

MEGABYTE = 1 << 20
TEXTS = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "huge word": "x" * MEGABYTE,
    "right to left": "\u202eright to left \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u202c",
    "control": "".join(map(chr, range(32))) + "\x7f\x1b[31m",
    "emoji": "😀👩‍👩‍👧‍👦🏳️‍🌈" * 1000,
    "combining": "Z" + "\u0301\u0327\u0489" * 5000,
    "nul": "a\x00b",
    "empty": "",
    "space": " \n\t\u2028\u00a0",
    "edges": "a\ud7ff\ue000\uffff\U0010ffffb",
    "braces": "{{7*7}} ${7*7} %s %n ' OR 1=1; DROP TABLE polytopic_documents; --",
}
NAMES = [
    "<b>",
    "a/b/c",
    "100%",
    "%2F",
    "..",
    "?x=1#y",
    "\u202eab",
    "😀",
    "e\u0301",
    "\t",
    "'; DROP",
]
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Return a client of a service that all tests of this module share."""
    with served(filled(tmp_path_factory.mktemp("hostile") / "news.db"), body_timeout=1) as client:
        yield client


@pytest.fixture(autouse=True)
def _stays_well(client):
    """After each test, the service still answers."""
    yield
    assert client.post("/v1/suggest", json={"text": "A film."}).status_code == 200
    assert client.get("/health/ready").status_code == 200


def learned(client, **document):
    """Learn a document; return the response."""
    return client.post("/v1/learn", json={"documents": [document]}, headers=bearer("write"))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts(client, text):
    """Strange texts are labelled, explained and learned like any other, and echoed unchanged."""
    short = text[:500].replace("\x00", "") or "x"

    suggested = client.post("/v1/suggest", json={"documents": [{"id": text[:500], "text": text}]})
    explained = client.post("/v1/explain", json={"text": text})
    response = learned(client, id=short, text=text, labels=["culture/film"])

    assert suggested.json()["documents"][0]["id"] == (text[:500] or "1")
    assert all(text[p["start"] : p["end"]] for p in explained.json()["places"])
    assert response.json()["learned"] + response.json()["unchanged"] == 1
    forgotten = client.post("/v1/forget", json={"ids": [short, text]}, headers=bearer("write"))
    assert text in forgotten.json()["missing"] or text == short


def test_a_text_of_ten_megabytes(client):
    """A very long text is labelled and learned, but not explained."""
    text = "The striker scored a goal in the film. " * (10 * MEGABYTE // 39)

    refused = client.post("/v1/explain", json={"text": text})

    assert "must have at most 1,048,576 to be explained" in refused.json()["detail"]
    assert client.post("/v1/suggest", json={"text": text}).status_code == 200
    assert learned(client, id="long", text=text, labels=["long"]).json()["learned"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_names_of_labels(client, name):
    """Any name can be learned, and found again by its URL."""
    text = "zyzzyva " * 9
    assert learned(client, id=name, text=text, labels=[name]).json()["new_labels"] == [name]

    def known():
        rows = client.get("/v1/labels", params={"q": name}).json()["labels"]
        return name in [row["label"] for row in rows]

    until(known)
    quoted = "".join(f"%{byte:02X}" for byte in name.encode())
    response = client.get(f"/v1/labels/{quoted}")
    assert response.json()["label"] == name
    assert client.post("/v1/explain", json={"text": text, "labels": [name]}).json()["names"] == {
        name: name
    }
    client.post("/v1/forget", json={"ids": [name]}, headers=bearer("write"))


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"labels": ["a\x00"]}, "labels.0: String should match pattern"),
        ({"labels": [""]}, "labels.0: String should have at least 1 character"),
        ({"labels": ["x" * 501]}, "labels.0: String should have at most 500 characters"),
        ({"id": "a\x00"}, "id: String should match pattern"),
        ({"id": ""}, "id: String should have at least 1 character"),
        ({"time": "yesterday"}, "time == 'yesterday', must be an ISO 8601 time"),
        ({"time": "0001-01-01T00:00:00+05:00"}, "must be in the years 1 to 9999"),
        ({"text": None, "counts": {"a": 0.5}}, "must be a whole number"),
        ({"text": None, "counts": {"a": -1}}, "counts.a: Input should be greater than 0"),
        ({"text": None, "counts": {"a": 10**400}}, "counts.a: "),
        ({"text": None, "counts": {"a": 2**53}}, "must be a whole number below 2^53"),
        ({"text": None, "counts": {"a\x00": 1}}, "terms contain 'a\\x00'"),
        ({"text": None, "counts": {"x" * 501: 1}}, "a store accepts at most 500"),
        ({"text": None}, "exactly one of text, fields and counts"),
        ({"text": 5}, "text: Input should be a valid string"),
        ({"labels": "sport"}, "labels: Input should be a valid list"),
    ],
)
def test_documents_that_cannot_be_learned(client, document, sentence):
    """One sentence says what is wrong, and nothing is changed."""
    store = client.app.state.service.live.store
    before = store.revision

    response = learned(client, **{"id": "new", "text": "x", "labels": ["a"], **document})

    assert response.status_code == 422
    assert sentence in response.json()["detail"]
    assert store.revision == before


@pytest.mark.parametrize("route", ["suggest", "explain", "learn"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"text": "a"} x',
        b'{"text": "\xff\xfe"}',
        b'{"text": "\\ud800"}',
        b'{"counts": {"\\udfff": 1}}',
        b'{"text": "a", "\\ud83d": 1}',
        b'{"counts": {"a": NaN}}',
        b'{"counts": {"a": Infinity}}',
        b'{"counts": {"a": -Infinity}}',
        b'{"counts": {"a": 1e999}}',
        b'{"k": ' + b"9" * 5000 + b', "text": "a"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xef\xbb\xbf" + b'{"text": 1}',
        '{"text": "a"}'.encode("utf-16"),
        json.dumps({"nonsense" * 9000: 1}).encode(),
        b'{"documents": [' + b'{"text": 3},' * 9999 + b"1]}",
    ],
    ids=range(20),
)
def test_malformed_bodies(client, route, body):
    """The problem document is short, however long the body is."""
    response = client.post(f"/v1/{route}", content=body, headers={**JSON, **bearer("write")})

    assert response.status_code == 422
    assert response.headers["Content-Type"] == "application/problem+json"
    assert 10 < len(response.json()["detail"]) < 5000


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("suggest", {"text": "a", "include": ["x" * MEGABYTE]}),
        ("suggest", {"text": "a", "x" * MEGABYTE: 1}),
        ("suggest", {"counts": {"x" * MEGABYTE: -1}}),
        ("explain", {"text": "a", "labels": ["x" * MEGABYTE]}),
        ("learn", {"documents": [{"id": "a", "text": "a", "time": "9" * MEGABYTE}]}),
        ("models", {"model": "x" * 900_000}),
        ("models", {"since": "x" * 900_000}),
    ],
)
def test_long_names_in_errors(client, route, body):
    """A long name is not repeated in full."""
    response = client.post(f"/v1/{route}", json=body, headers=bearer("admin"))

    assert response.status_code == 422
    assert 10 < len(response.json()["detail"]) < 5000


def test_repeated_keys(client):
    """Of repeated keys the last one counts, as in most JSON parsers."""
    body = b'{"text": 3, "text": "x", "k": 9, "k": 1}'

    response = client.post("/v1/suggest", content=body, headers=JSON)

    assert response.status_code == 200


@pytest.mark.parametrize("kind", ["", "text/plain", "application/jsonx", "multipart/form-data"])
def test_unsupported_media_types(client, kind):
    """Every route with a body says which media type it needs."""
    for route in ("suggest", "explain", "learn", "models"):
        headers = {"Content-Type": kind, **bearer("admin")}
        response = client.post(f"/v1/{route}", content=b"{}", headers=headers)
        assert response.status_code == 415
        assert f"Content-Type == {kind!r}, must be application/json" in response.json()["detail"]


@pytest.mark.parametrize(
    ("method", "address", "allowed"),
    [
        ("GET", "/v1/suggest", "POST"),
        ("PUT", "/v1/models", "GET, POST"),
        ("DELETE", "/v1/labels/a/b", "GET"),
        ("OPTIONS", "/v1/learn", "POST"),
        ("HEAD", "/v1/labels", "GET"),
        ("PATCH", "/health/live", "GET"),
    ],
)
def test_unsupported_methods(client, method, address, allowed):
    """The problem document lists the allowed methods."""
    response = client.request(method, address)

    assert (response.status_code, response.headers["Allow"]) == (405, allowed)
    assert response.headers["Content-Type"] == "application/problem+json"
    if method != "HEAD":
        assert response.json()["detail"] == f"{method} is not allowed here, use {allowed}."


@pytest.mark.parametrize("address", ["/v1", "/v1/", "/v1/models/", "/v2/suggest", "/%00"])
def test_unknown_addresses(client, address):
    """Unknown addresses get 404 and no redirect."""
    response = client.get(address)

    assert response.status_code == 404
    assert "Nothing is served at this address" in response.json()["detail"]


@pytest.mark.parametrize("query", ["limit=3", "k=0", "k=x", "k=1e3", "q=" + "x" * 201])
def test_invalid_queries(client, query):
    """Unknown and invalid parameters are rejected."""
    response = client.get(f"/v1/labels?{query}")

    assert response.status_code == 422
    assert query.partition("=")[0] in response.json()["detail"]


@pytest.mark.parametrize("kind", ["include", "exclude"])
def test_unknown_labels(client, kind):
    """Unknown labels are named; in a stream, before anything is answered."""
    one = client.post("/v1/suggest", json={"text": "a", kind: ["nobody"]})
    lines = client.post(f"/v1/suggest?{kind}=nobody", content=b'{"text": "a"}', headers=LINES)

    for response in (one, lines):
        assert response.status_code == 422
        assert "label 'nobody' is not known" in response.json()["detail"]


def test_lines(client):
    """An invalid line gets an error in its place, and the others are answered."""
    wrong = [b"{", b"\xff", b'{"text": "\\ud800"}', b'{"counts": {"a": NaN}}', b"[" * 100_000]
    wrong += [b'{"text": 1}', b"7", b'{"text": "a", "k": 3}', b'{"counts": {"a": -1}}']
    good = json.dumps({"text": "A film about a goal."}).encode()
    body = b"\n".join(line for bad in wrong for line in (bad, good)) + b"\r\n\n \n"

    rows = client.post("/v1/suggest", content=body, headers=LINES).text.splitlines()

    read = [json.loads(row) for row in rows]
    assert len(read) == 2 * len(wrong)
    assert [row["line"] for row in read[::2]] == list(range(1, 2 * len(wrong), 2))
    assert all(10 < len(row["error"]) < 1000 for row in read[::2])
    assert all("labels" in row for row in read[1::2])


def test_endless_line(client):
    """An endless line ends the stream with an error; earlier lines are answered."""

    def parts():
        yield b'{"text": "a"}\n'
        time.sleep(0.2)
        for _ in range(17):
            yield b"x" * MEGABYTE

    response = client.post("/v1/suggest", content=parts(), headers=LINES)

    first, last = map(json.loads, response.text.splitlines())
    assert "labels" in first
    assert last["line"] == 2
    assert "A line is longer than" in last["error"]
    alone = client.post("/v1/suggest", content=b"x" * 17 * MEGABYTE, headers=LINES)
    assert alone.status_code == 413


@pytest.mark.parametrize("route", ["suggest", "explain", "learn"])
def test_large_bodies(path, route):
    """Large bodies are rejected by their announced length, or once they exceed the limit."""
    with served(path, max_body_bytes=1000) as client:
        headers = {**JSON, **bearer("write")}
        announced = client.post(f"/v1/{route}", content=b"x" * 2000, headers=headers)
        chunked = client.post(
            f"/v1/{route}", content=(b"x" * 500 for _ in range(9)), headers=headers
        )
        for response in (announced, chunked):
            assert response.status_code == 413
            assert response.json()["detail"] == "The body is larger than 1,000 bytes."
        small = client.post(f"/v1/{route}", content=iter([b"{", b"}"]), headers=headers)
        assert small.status_code == 422


@pytest.mark.parametrize(
    ("route", "types", "status"),
    [
        ("/sign-in", ["application/x-ndjson"], 415),
        ("/sign-in", ["application/x-www-form-urlencoded"], 413),
        ("/v1/explain", ["application/json", "application/x-ndjson"], 400),
        ("/v1/explain", ["application/x-ndjson"], 415),
        ("/v1/suggest", ["application/x-ndjson", "application/x-ndjson"], 400),
        ("/v1/suggest", ["application/x-ndjsonx"], 415),
        ("/v1/models", ["application/json"], 413),
    ],
)
def test_no_media_type_evades_the_body_limit(client, route, types, status):
    """Only streams of lines may have any length; other bodies are rejected early."""
    headers = [("Content-Type", kind) for kind in types]
    headers += [("Authorization", f"{bearer('admin')['Authorization']}")]
    n_parts = 0

    def parts():
        nonlocal n_parts
        for n_parts in range(40):  # noqa: B007
            yield b"x" * MEGABYTE

    try:
        response = client.post(route, content=parts(), headers=headers)
    except httpx.TransportError:  # the service closed the connection before everything was sent
        assert n_parts < 39
        return

    assert response.status_code == status


def test_token_is_checked_before_lines_are_read(path):
    """Without open reading, no line is read before the token is checked."""
    with served(path, open_reading=False) as client:
        response = client.post("/v1/suggest", content=b'{"text": "a"}', headers=LINES)

        assert response.status_code == 401


@pytest.mark.parametrize(
    "name", ["Content-Type", "Authorization", "Host", "Idempotency-Key", "Content-Length"]
)
def test_repeated_header_field(client, name):
    """Repeated fields are rejected, because two parts of a network might choose differently."""
    head = ["GET /v1/labels HTTP/1.1", f"{name}: 1", f"{name}: 2", "Connection: close"]

    answer = received(send(client, head))

    assert answer.startswith(b"HTTP/1.1 400 ")


MANY = 100_000  # invalid values in a body
BOMBS = {
    "keys": b"{" + b",".join(b'"%x": 1' % k for k in range(MANY)) + b"}",
    "counts": b'{"counts": {' + b",".join(b'"%x": 0' % k for k in range(MANY)) + b"}}",
    "true": b'{"counts": {' + b",".join(b'"%x": true' % k for k in range(MANY)) + b"}}",
    "fields": b'{"fields": {' + b",".join(b'"%x": 1' % k for k in range(MANY)) + b"}}",
    "documents": b'{"documents": [' + b"1," * MANY + b"1]}",
    "document": b'{"documents": [{' + b",".join(b'"%x": 1' % k for k in range(MANY)) + b"}]}",
    "include": b'{"text": "a", "include": [' + b"1," * MANY + b"1]}",
    "labels": b'{"labels": {' + b",".join(b'"%x": 1' % k for k in range(MANY)) + b"}}",
    "ids": b'{"ids": [' + b"1," * MANY + b"1]}",
    "values": b"[" + b"1," * 600_000 + b"1]",
    "containers": b"[" + b"[]," * 150_000 + b"1]",
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize(
    "model",
    [
        schemas.SuggestRequest,
        schemas.SuggestOneRequest,
        schemas.LearnRequest,
        schemas.RelabelRequest,
        schemas.ForgetRequest,
        schemas.ExplainRequest,
    ],
)
def test_memory_of_hostile_bodies(model, body):
    """Parsing a hostile body takes little more memory than decoding it."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"\.$") as refused:
            validate(model, decode_json(body))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    cause = refused.value.__cause__
    assert cause is None or cause.error_count() <= 10_001
    assert peak < 30 * len(body) + 10 * MEGABYTE


@pytest.mark.parametrize("seed", range(20))
def test_json_size(seed):
    """Strings may contain anything; empty objects and arrays count twice."""
    rng = random.Random(seed)

    def drawn(depth):
        text = "".join(rng.choices('a,"\\{[]}:é\n', k=6))
        kind = rng.randrange(3) if depth else 2
        if kind == 2:
            return text
        inside = [drawn(depth - 1) for _ in range(rng.randrange(5))]
        return inside if kind else {f"{text}{k}": one for k, one in enumerate(inside)}

    def counted(value):
        inside = value.values() if isinstance(value, dict) else value
        if isinstance(value, str):
            return 1, 0
        values, containers = zip((1, 1), *map(counted, inside), strict=True)
        return sum(values), sum(containers)

    value = [drawn(5) for _ in range(50)]
    values, containers = counted(value)

    size = json_size(json.dumps(value, ensure_ascii=bool(seed % 2)).encode())

    assert size.containers == containers
    assert values - 1 <= size.values < values + containers


def test_limit_of_suggestions(client):
    """The number of suggestions per response is limited; the error says what to do."""
    labels = [row["label"] for row in client.get("/v1/labels").json()["labels"]]
    n_documents = 100_000 // len(labels) + 1
    body = {"documents": [{"text": "a"}] * n_documents, "k": 1000}
    assert n_documents <= 10_000

    refused = client.post("/v1/suggest", json=body)
    lines = client.post(
        "/v1/suggest?k=1000", content=b'{"text": "a"}\n' * n_documents, headers=LINES
    )

    assert refused.status_code == 422
    assert "Send fewer documents, a smaller k, or application/x-ndjson" in refused.json()["detail"]
    assert lines.text.count('"labels"') == n_documents


def test_limit_of_scores(client, monkeypatch):
    """Documents × labels per response are limited, too; lines are answered in smaller blocks."""
    n_labels = len(client.get("/v1/labels").json()["labels"])
    monkeypatch.setattr(queries, "MAX_SCORES", 3 * n_labels)
    monkeypatch.setattr(suggest, "MAX_SCORES", 3 * n_labels)
    text = {"text": "a goal"}

    allowed, refused = (
        client.post("/v1/suggest", json={"documents": [text] * n, "k": 1}) for n in (3, 4)
    )
    lines = client.post("/v1/suggest?k=1", content=b'{"text": "a goal"}\n' * 10, headers=LINES)

    assert len(allowed.json()["documents"]) == 3
    assert refused.status_code == 422
    assert f"a model with {n_labels} labels exceed" in refused.json()["detail"]
    assert "Send fewer documents, or application/x-ndjson" in refused.json()["detail"]
    assert lines.text.count('"labels"') == 10


def test_limit_of_explained_shares(client):
    """A long text is explained for few labels only."""
    labels = [row["label"] for row in client.get("/v1/labels").json()["labels"]]
    text = "film " * 100_000

    refused = client.post("/v1/explain", json={"text": text, "labels": labels[:1] * 20})

    assert refused.status_code == 422
    assert "must have at most 419,430 to be explained for 20 labels" in refused.json()["detail"]


def test_query_with_many_parameters(client):
    """A long query is rejected before it is parsed."""
    response = client.get("/v1/labels?" + "a&" * 3000)

    assert response.status_code == 422
    assert response.json()["detail"] == "The query has more than 2,500 parameters."


HEAVY_BODIES = {
    "text": {"text": "film goal " * 3000},
    "counts": {"counts": {f"word{k}": 1 for k in range(3000)}},
    "documents": {"documents": [{"text": "film"}] * 3000},
    "few documents": {"documents": [{"text": "film"}] * 2},
}
HEAVY_ADDRESSES = [
    "/v1/drift",
    "/v1/labels",
    "/v1/labels/culture%2Ffilm",
    "/v1/queue?kind=doubtful",
    "/check",
    "/labels",
    "/labels/culture%2Ffilm",
    "/map",
    "/parts/doubtful",
    "/parts/drift/culture%2Ffilm",
    "/parts/quality",
]


def test_heavy_requests_do_not_delay_others(path, monkeypatch):
    """Requests that may take long wait for each other; a short text is labelled at once."""
    is_waiting, end = threading.Event(), threading.Event()

    def wait(*arguments, **options):
        is_waiting.set()
        end.wait()
        return []

    with served(path) as client, ThreadPoolExecutor(32) as pool:
        heavy_workers = client.app.state.service.heavy_workers
        with monkeypatch.context() as patch:
            patch.setattr(queries, "list_labels", wait)
            first = pool.submit(client.get, "/v1/labels")
            assert is_waiting.wait(10)
            posted = [
                pool.submit(client.post, f"/v1/{route}", json=body)
                for name, body in HEAVY_BODIES.items()
                for route in ("suggest", "explain")
                if route == "suggest" or "documents" not in body
            ]
            others = [pool.submit(client.get, address) for address in HEAVY_ADDRESSES]
            requests = [first, *posted, *others]
            try:
                until(lambda: heavy_workers.pending == len(requests))
                begin = time.monotonic()
                light = [
                    client.post("/v1/suggest", json={"text": "A film."}),
                    client.post("/v1/explain", json={"text": "A film."}),
                    client.post("/v1/suggest", content=b'{"text": "a"}\n', headers=LINES),
                    client.get("/"),
                    client.get("/v1/models"),
                ]
                seconds = time.monotonic() - begin
            finally:
                end.set()
            statuses = {request.result().status_code for request in requests}

    assert [response.status_code for response in light] == [200] * len(light)
    assert seconds < 5
    assert statuses == {200}


def test_large_bodies_wait_as_they_are(path, monkeypatch):
    """Waiting bodies are not parsed yet, because their values take far more memory."""
    is_waiting, end, n_parsed = threading.Event(), threading.Event(), []

    def wait(*arguments, **options):
        is_waiting.set()
        end.wait()
        return []

    def parse(body):
        n_parsed.append(len(body))
        return decode_json(body)

    with served(path) as client, ThreadPoolExecutor(8) as pool:
        heavy_workers = client.app.state.service.heavy_workers
        with monkeypatch.context() as patch:
            patch.setattr(queries, "list_labels", wait)
            for module in (suggest, limits):
                patch.setattr(module, "decode_json", parse)
            requests = [pool.submit(client.get, "/v1/labels")]
            assert is_waiting.wait(10)
            for route in ("suggest", "explain", "suggest", "explain"):
                body = HEAVY_BODIES["counts"]
                requests.append(pool.submit(client.post, f"/v1/{route}", json=body))
            try:
                until(lambda: heavy_workers.pending == len(requests))
                assert n_parsed == []
            finally:
                end.set()
            assert {request.result().status_code for request in requests} == {200}
    assert len(n_parsed) == 4


def test_cookie_with_many_backslashes(client):
    """A cookie is read in linear time; ``http.cookies`` takes 10 seconds for this one."""
    cookies = 'a="' + "\\" * 60_000 + '"; polytopic_token=polytopic_write'

    begin = time.monotonic()
    statuses = [
        client.request(method, path, headers={"Cookie": cookies, "Accept": "text/html"}).status_code
        for method, path in [("GET", "/"), ("GET", "/none"), ("GET", "/v1/labels")]
    ]
    signed_in = client.post("/v1/forget", json={"ids": ["none"]}, headers={"Cookie": cookies})

    assert (statuses, signed_in.status_code) == ([200, 404, 200], 200)
    assert time.monotonic() - begin < 5


def test_line_byte_by_byte():
    """The received part of a line is not copied for each further byte."""
    n_parts = 100_000

    class Body:
        """A request whose body is a long line followed by many parts."""

        async def stream(self):
            yield b"x" * 15 * MEGABYTE
            for _ in range(n_parts):
                yield b"y"
            yield b"\n"

    async def run():
        return [block async for block in read_lines(Body(), BodyMemory(32 * MEGABYTE))]

    begin = time.process_time()
    ((line,),) = asyncio.run(run())

    assert len(line) == 15 * MEGABYTE + n_parts
    assert time.process_time() - begin < 60  # copies would take many minutes


def test_many_endless_lines(path):
    """Incomplete lines of all streams count towards the memory of all bodies."""
    head = ["POST /v1/suggest HTTP/1.1", "Content-Type: application/x-ndjson"]
    part = b'{"text": "' + b"a" * MEGABYTE
    with served(path, max_body_bytes=MEGABYTE) as client:
        streams = [
            send(client, [*head, f"Content-Length: {2 * len(part)}"], part) for _ in range(10)
        ]
        answers = [stream.recv(12) for stream in streams[8:]]
        for stream in streams:
            stream.close()
        until(
            lambda: (
                client.post("/v1/suggest", content=b'{"text": "a"}', headers=LINES).status_code
                == 200
            )
        )

    assert b"HTTP/1.1 503" in answers


def send(client, head, body=b""):
    """Send a raw request; return the connection."""
    connection = socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)
    lines = [*head, "Host: localhost", f"Authorization: {bearer('write')['Authorization']}", "", ""]
    connection.sendall("\r\n".join(lines).encode() + body)
    return connection


def received(connection):
    """Return all bytes until the connection ends."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    ("route", "kind"),
    [
        ("suggest", "application/json"),
        ("suggest", "application/x-ndjson"),
        ("learn", "application/json"),
    ],
)
def test_missing_body(client, route, kind):
    """The service does not wait for a body that does not arrive."""
    head = [f"POST /v1/{route} HTTP/1.1", f"Content-Type: {kind}", "Content-Length: 100"]

    answer = received(send(client, head, b"{"))

    assert answer.startswith(b"HTTP/1.1 408")
    assert b"The body did not arrive within 1 seconds." in answer


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_disconnect(client, kind, caplog, monkeypatch):
    """A disconnect logs no error."""
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "handlers", [caplog.handler])
    head = ["POST /v1/suggest HTTP/1.1", f"Content-Type: {kind}", "Content-Length: 100"]

    for body in (b"", b'{"text": "a"', b'{"text": "a"}\n'):
        send(client, head, body).close()
    time.sleep(0.2)

    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_reused_idempotency_key(client):
    """A reused key is a conflict; a key that is too long is invalid."""
    headers = {**bearer("write"), "Idempotency-Key": "again"}
    one, other = ({"documents": [{"id": f"k{n}", "text": "x"}]} for n in (1, 2))

    statuses = [client.post("/v1/learn", json=b, headers=headers) for b in (one, one, other)]

    assert [response.status_code for response in statuses] == [200, 200, 409]
    assert statuses[0].json() == statuses[1].json()
    for key in ("", "x" * 201):
        headers["Idempotency-Key"] = key
        assert client.post("/v1/learn", json=one, headers=headers).status_code == 422


def test_names_in_a_language(tmp_path):
    """Labels have names in the requested language if the tree has them."""
    tree = LabelTree({"culture/film": None}, {"culture/film": {"en": "Film", "cs": "Kino"}})
    path = filled(tmp_path / "news.db")
    Store(path, tree=tree).close()

    with served(path) as client:
        request = {"text": "A film.", "include": ["culture/film"]}
        names = [
            client.post("/v1/suggest", json={**request, "language": language}).json()
            for language in (None, "cs", "fi", "\x00")
        ]

    film_names = [answer["documents"][0]["suggestions"][0]["name"] for answer in names]
    assert film_names == ["Film", "Kino", "Film", "Film"]


def test_fewer_documents_are_reviewed_with_many_labels(path, monkeypatch):
    """Review takes time proportional to documents × labels, so a reader cannot make it take hours.

    The sample has 20 labels: ten times as many as the limit, so a tenth of the documents remain.
    """
    monkeypatch.setattr(queries, "MAX_REVIEWED", 30)
    monkeypatch.setattr(queries, "MAX_REVIEWED_LABELS", 2, raising=False)
    new = [{"id": f"new-{k}", "text": f"film goal {k}"} for k in range(5)]
    labelled = [document | {"labels": ["culture/film"]} for document in new]

    with served(path) as client:

        def learn(documents):
            body = {"documents": documents}
            return client.post("/v1/learn", json=body, headers=bearer("write")).raise_for_status()

        def review(kind):
            queue = client.get(f"/v1/queue?kind={kind}&k=200").raise_for_status().json()
            return {document["id"] for document in queue["documents"]}

        learn(new)
        unlabelled = review("unlabelled")
        revision = learn(labelled).json()["revision_after"]
        until(lambda: client.app.state.service.live.revision == revision)
        doubtful = review("doubtful")

    assert unlabelled == {"new-2", "new-3", "new-4"}
    assert doubtful <= unlabelled


def test_no_drift_with_too_many_labels(path, monkeypatch):
    """Drift is omitted because it takes documents × labels; other facts remain."""
    monkeypatch.setattr(live, "MAX_DRIFT_LABELS", 2)
    with served(path) as client:
        facts = client.get("/v1/labels/sport/football").json()

        assert client.get("/v1/drift").json()["periods"] == []

    assert facts["drift"] == []
    assert facts["together"]
