"""HTTP requests: for any body on any route, the status is below 500."""

import json
import warnings
from random import Random

import pytest

from polytopic import Store
from polytopic.corpus import load_sample
from tests.fuzz.fuzzing import fuzz
from tests.fuzz.mutation import mutated_bytes, mutated_value
from tests.server.conftest import TOKENS, served

JSON, LINES, FORM = "application/json", "application/x-ndjson", "application/x-www-form-urlencoded"
DOCUMENT = {"id": "fuzz", "text": "a goal in orbit", "labels": ["sport"], "time": "2024-05-01"}
BODIES = [
    {"texts": ["a goal", {"title": "Mars", "body": "orbit"}], "k": 3},
    {"documents": [DOCUMENT], "ids": ["fuzz"], "labels": ["sport"], "add": ["x"], "remove": []},
    {"text": "a goal in orbit", "labels": ["sport"], "why_not": ["health"], "shares": True},
    DOCUMENT,
    {"note": "n", "model": 1, "keep": 2, "as_of": 1},
]


def mutated_request(request, random: Random):
    """Return a request with another body, type, query or route."""
    method, route, kind, _ = request
    body = json.dumps(mutated_value(random.choice(BODIES), random)).encode()
    if random.random() < 0.3:
        body = mutated_bytes(body, random)
    if random.random() < 0.2:
        kind = random.choice([JSON, LINES, FORM, "text/plain", "", "application/json; charset=x"])
    if random.random() < 0.2:
        route += random.choice(["?k=-1", "?k=x", "?as_of=1e9", "?k=99999999999999999999"])
    if random.random() < 0.05:
        route += random.choice(["/", "/x", "/%00", "/%ff", "//", "/..", "/" + "x" * 5000])
    return method, route, kind, body


def requests_of(app) -> list[tuple]:
    """Return a request for each route that the service documents."""
    return [
        (method.upper(), path.replace("{", "").replace("}", ""), JSON, b"{}")
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    ] + [("POST", path, FORM, b"token=x") for path in ("/sign-in", "/sign-out")]


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
def test_requests(tmp_path, long):
    """Valid bodies are changed anywhere, and sent to every route with an admin's token."""
    with Store(tmp_path / "news.db") as store:
        store.learn(load_sample()[:40])
        store.tokens.create("admin", "admin", TOKENS["admin"])

    with warnings.catch_warnings(), served(tmp_path / "news.db") as client:
        warnings.simplefilter("ignore")

        def target(request):
            method, route, kind, body = request
            headers = {"Authorization": f"Bearer {TOKENS['admin']}", "Content-Type": kind}
            answer = client.request(method, route, content=body, headers=headers)
            assert answer.status_code < 500, answer.text

        assert fuzz(target, requests_of(client.app), mutated_request, long=long) > 0
