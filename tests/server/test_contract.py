"""The service behaves as its OpenAPI document says, tested with generated requests."""

import subprocess
import sys
from collections import defaultdict

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.conftest import bearer, served

CHANGES = {
    "/v1/learn",
    "/v1/forget",
    "/v1/relabel",
    "/v1/models",
    "/v1/models/rollback",
    "/v1/models/refresh",
}
QUICK = ["--exclude-name", "POST /v1/suggest", "--exclude-name", "POST /v1/models"]


def draw(client, n, folder, headers, *options):
    """Generate requests from a service's OpenAPI document, and check each response against it.

    Two checks are excluded: the document does not say which labels are known, so a valid request
    may be rejected; and an invalid list in a query is sent as one string, which is valid.
    """
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{client.base_url}/openapi.json"]
    command += ["--max-examples", str(n), "--seed", "1", "--no-color", "--no-shrink", *options]
    command += ["--exclude-checks", "positive_data_acceptance,negative_data_rejection"]
    for name, value in headers.items():
        command += ["--header", f"{name}: {value}"]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout[-20_000:]


def statuses(client):
    """Return the statuses that each route has responded with."""
    by_route = defaultdict(set)
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            if sample.name == "polytopic_requests_total":
                by_route[sample.labels["route"]].add(int(sample.labels["status"]))
    return by_route


def test_responses_are_documented(client, tmp_path):
    """Status, media type and content of every response are documented."""
    for _ in range(2):  # so that there is a model to roll back to
        client.post("/v1/models", json={}, headers=bearer("admin"))

    draw(client, 1, tmp_path, bearer("admin"), "--phases", "coverage", *QUICK)
    draw(client, 6, tmp_path, bearer("admin"), "--phases", "fuzzing")

    by_route = statuses(client)
    assert {route for route in by_route if 200 in by_route[route]} >= {*CHANGES, "/v1/suggest"}
    assert max(set().union(*by_route.values())) < 500


@pytest.mark.long
def test_many_responses_are_documented(client, tmp_path):
    """The same with many requests."""
    draw(client, 300, tmp_path, bearer("admin"), "--phases", "coverage,fuzzing,stateful")


def test_without_a_token(path, tmp_path):
    """Without a token, no request succeeds, and the responses are documented."""
    with served(path, open_reading=False) as client:
        draw(client, 1, tmp_path, {}, "--phases", "coverage", *QUICK)

        by_route = statuses(client)
        own = set().union(*(by_route[route] for route in by_route if route.startswith("/v1")))
        assert own == {401, 405}
