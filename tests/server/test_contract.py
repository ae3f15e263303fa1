"""What the service describes is what it does, with requests drawn from its description."""

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
    """Draw requests from a service's description, send them, and check each answer against it.

    The description cannot tell which labels are known, so that a request it allows may be refused;
    and what is drawn as false for a list in a query comes as one string, which is no mistake.
    """
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{client.base_url}/openapi.json"]
    command += ["--max-examples", str(n), "--seed", "1", "--no-color", "--no-shrink", *options]
    command += ["--exclude-checks", "positive_data_acceptance,negative_data_rejection"]
    for name, value in headers.items():
        command += ["--header", f"{name}: {value}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:]


def statuses(client):
    """Return the statuses that each route has answered with."""
    found = defaultdict(set)
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            if sample.name == "polytopic_requests_total":
                found[sample.labels["route"]].add(int(sample.labels["status"]))
    return found


def test_each_answer_is_as_described(client, tmp_path):
    """Whatever comes, status, type and content of the answer are among those described."""
    for _ in range(2):  # so that there is one to go back to
        client.post("/v1/models", json={}, headers=bearer("admin"))

    draw(client, 1, tmp_path, bearer("admin"), "--phases", "coverage", *QUICK)
    draw(client, 6, tmp_path, bearer("admin"), "--phases", "fuzzing")

    found = statuses(client)
    assert {route for route in found if 200 in found[route]} >= {*CHANGES, "/v1/suggest"}
    assert max(set().union(*found.values())) < 500


@pytest.mark.long
def test_many_answers_are_as_described(client, tmp_path):
    """The same with many requests."""
    draw(client, 300, tmp_path, bearer("admin"), "--phases", "coverage,fuzzing,stateful")


def test_without_a_token(path, tmp_path):
    """Nothing is told or done, whatever comes, and that is described, too."""
    with served(path, open_reading=False) as client:
        draw(client, 1, tmp_path, {}, "--phases", "coverage", *QUICK)

        found = statuses(client)
        own = set().union(*(found[route] for route in found if route.startswith("/v1")))
        assert own == {401, 405}
