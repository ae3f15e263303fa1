"""The API over HTTP: answers, changes, tokens, and rejected requests."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from polytopic import Store, load
from polytopic.corpus import load_sample
from tests.server.conftest import bearer, served, until

TEXT = "A documentary film follows a football club and its striker through one league season."
OWN = "polytopic_own"
NEW = {"id": "new", "text": "The quokka sleeps. A quokka eats.", "labels": ["quokka"]}


def test_suggest_answers_as_the_library_does(client, path):
    """One document or many; the response names the model and its revision."""
    one = client.post("/v1/suggest", json={"text": TEXT, "k": 3}).json()
    texts = [document.text for document in load_sample()[:20]]
    many = client.post("/v1/suggest", json={"documents": [{"text": t} for t in texts]}).json()

    labeler = Store(path).labeler()
    assert one["model"] == {"name": "pmm1", "number": None, "revision": 1}
    assert one["documents"][0]["labels"] == labeler.predict([TEXT])[0]
    assert len(one["documents"][0]["suggestions"]) >= 3
    assert [d["labels"] for d in many["documents"]] == labeler.predict(texts)
    assert [d["id"] for d in many["documents"]] == [str(k) for k in range(1, 21)]


def test_suggest_options(client):
    """Options restrict the labels, filter unlikely ones, and let the model abstain."""
    request = {"text": TEXT, "include": ["sport/football", "culture/film"], "k": 9}
    (answer,) = client.post("/v1/suggest", json=request).json()["documents"]
    assert {s["label"] for s in answer["suggestions"]} == {"sport/football", "culture/film"}

    (answer,) = client.post("/v1/suggest", json={**request, "threshold": 1}).json()["documents"]
    assert sorted(s["label"] for s in answer["suggestions"]) == answer["labels"]

    (answer,) = client.post("/v1/suggest", json={"text": TEXT, "abstain": 1}).json()["documents"]
    assert (answer["labels"], answer["abstained"]) == ([], True)


def test_fast_path(client, monkeypatch):
    """JSON takes the fast path of the declared route, with or without a prefix; lines do not."""
    app, calls = client.app, []
    answer = app.fast_route.handle_json

    async def spy(scope, receive, send):
        calls.append(scope["path"])
        await answer(scope, receive, send)

    monkeypatch.setattr(app.fast_route, "handle_json", spy)
    lines = {"Content-Type": "application/x-ndjson"}

    statuses = [
        client.post("/v1/suggest", json={"text": TEXT}).status_code,
        client.post("/v1/suggest", json={"text": 1}).status_code,
        client.post("/v1/suggest", content=json.dumps({"text": TEXT}), headers=lines).status_code,
        client.get("/v1/suggest", headers={"Content-Type": "application/json"}).status_code,
    ]
    app.root_path = "/news"  # behind a proxy that adds a prefix
    statuses.append(client.post("/news/v1/suggest", json={"text": TEXT}).status_code)

    assert app.fast_route in app.routes
    assert statuses == [200, 422, 200, 405, 200]
    assert calls == ["/v1/suggest", "/v1/suggest", "/news/v1/suggest"]


def test_lines_are_answered_in_order(client):
    """A stream has one answer per line; an invalid line gets an error in its place."""
    lines = [json.dumps({"text": document.text}) for document in load_sample()]
    lines[5] = '{"nothing": 1}'

    response = client.post(
        "/v1/suggest?k=1",
        content="\n".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
    )

    rows = [json.loads(line) for line in response.text.splitlines()]
    assert len(rows) == len(lines)
    assert rows[5] == {"line": 6, "error": rows[5]["error"]}
    assert "nothing" in rows[5]["error"]
    assert rows[6]["id"] == "7"


def test_explain(client):
    """An explanation has shares, words and places, and says why not another label."""
    explanation = client.post(
        "/v1/explain", json={"text": TEXT, "why_not": ["science/space"]}
    ).json()

    assert sum(label["share"] for label in explanation["labels"]) == pytest.approx(1)
    assert {"film", "football"} <= {TEXT[p["start"] : p["end"]] for p in explanation["places"]}
    assert explanation["why_not"][0]["label"] == "science/space"


def test_answers_follow_changes(client, path):
    """Learn, relabel and forget return receipts, and answers follow."""
    receipt = client.post("/v1/learn", json={"documents": [NEW]}, headers=bearer("write")).json()
    assert (receipt["learned"], receipt["new_labels"]) == (1, ["quokka"])

    def answer():
        response = client.post("/v1/suggest", json={"text": "quokka " * 9, "k": 1}).json()
        return response["model"]["revision"], response["documents"][0]["labels"]

    until(lambda: answer() == (2, ["quokka"]))
    relabelled = {"labels": {"new": ["animal"], "nobody": ["x"]}}
    receipt = client.post("/v1/relabel", json=relabelled, headers=bearer("write")).json()
    assert (receipt["corrected"], receipt["missing"]) == (1, ["nobody"])
    until(lambda: answer() == (3, ["animal"]))

    receipt = client.post("/v1/forget", json={"ids": ["new"]}, headers=bearer("write")).json()
    assert receipt["forgotten"] == 1
    until(lambda: answer()[0] == 4)
    assert "animal" not in answer()[1]
    assert Store(path).verify().ok


def test_the_same_key_gives_the_same_receipt(client):
    """A repeated request is executed once; its key cannot be reused for another request."""
    headers = {**bearer("write"), "Idempotency-Key": "k1"}
    first = client.post("/v1/learn", json={"documents": [NEW]}, headers=headers).json()
    client.post("/v1/forget", json={"ids": ["new"]}, headers=bearer("write"))

    again = client.post("/v1/learn", json={"documents": [NEW]}, headers=headers).json()
    other = client.post("/v1/forget", json={"ids": ["new"]}, headers=headers)

    assert again == first
    assert other.status_code == 409
    assert "was used for a different request" in other.json()["detail"]


def test_changes_by_another_process(client, path):
    """What another process learns affects answers within two seconds."""
    with Store(path) as other:
        other.learn([NEW])

    def revision():
        return client.post("/v1/suggest", json={"text": "x"}).json()["model"]["revision"]

    until(lambda: revision() == 2, seconds=2)


@pytest.mark.parametrize(
    ("route", "body", "role"),
    [
        ("/v1/learn", {"documents": [NEW]}, "write"),
        ("/v1/forget", {"ids": ["new"]}, "write"),
        ("/v1/relabel", {"labels": {"new": []}}, "write"),
        ("/v1/models", {}, "admin"),
        ("/v1/models/rollback", {}, "admin"),
    ],
)
def test_changes_need_a_token(client, route, body, role):
    """Reject a missing token, a wrong one, and one with too low a role; accept a sufficient one."""
    lower = {"write": "read", "admin": "write"}[role]

    none, wrong, low, good = (
        client.post(route, json=body, headers=headers)
        for headers in ({}, {"Authorization": "Bearer x"}, bearer(lower), bearer(role))
    )

    assert (none.status_code, wrong.status_code, low.status_code) == (401, 401, 403)
    assert none.headers["WWW-Authenticate"] == "Bearer"
    assert f"A token with the role {role} is required" in none.json()["detail"]
    assert good.status_code in (200, 409)


def test_reading_with_tokens_only(path):
    """Without open reading, reading needs a token as well."""
    with served(path, open_reading=False) as client:
        assert client.post("/v1/suggest", json={"text": "x"}).status_code == 401
        response = client.post("/v1/suggest", json={"text": "x"}, headers=bearer("read"))
        assert response.status_code == 200
        assert client.get("/health/live").status_code == 200


def test_models(client):
    """Publish, list and roll back models."""
    first = client.post("/v1/models", json={"note": "one"}, headers=bearer("admin")).json()
    client.post("/v1/models", json={"model": "nb"}, headers=bearer("admin"))
    assert client.post("/v1/suggest", json={"text": "x"}).json()["model"]["name"] == "nb"

    back = client.post("/v1/models/rollback", json={}, headers=bearer("admin")).json()

    assert (first["id"], first["note"], back["id"]) == (1, "one", 1)
    listed = client.get("/v1/models").json()
    assert [(m["id"], m["current"]) for m in listed["models"]] == [(2, False), (1, True)]
    assert client.post("/v1/suggest", json={"text": "x"}).json()["model"]["number"] == 1


def test_labels(client):
    """Search labels, and describe one."""
    matches = client.get("/v1/labels", params={"q": "FOOT"}).json()["labels"]
    assert [row["label"] for row in matches] == ["sport/football"]

    facts = client.get("/v1/labels/sport/football").json()
    assert facts["documents"] == matches[0]["documents"]
    assert len(facts["words"]) == 20
    assert len(facts["alike"]) == 5
    assert "sport/football" not in facts["alike"]
    assert client.get("/v1/labels/nonsense").status_code == 404


def test_a_model_file_cannot_learn(model):
    """A model file answers, but rejects changes with a reason."""
    with served(model, own_token=OWN) as client:
        response = client.post("/v1/suggest", json={"text": TEXT})
        assert response.json()["documents"][0]["labels"] == load(model).predict([TEXT])[0]
        headers = {"Authorization": f"Bearer {OWN}"}
        refused = client.post("/v1/learn", json={"documents": [NEW]}, headers=headers)
        assert refused.status_code == 409
        assert "A model file cannot learn or forget" in refused.json()["detail"]
        assert client.get("/v1/models").json()["models"] == []


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"{", 422, "JSON"),
        (b'{"text": 3}', 422, "text"),
        (b'{"text": "a", "fields": {}}', 422, "exactly one of text, fields and counts"),
        (b'{"text": "a", "k": 0}', 422, "k: "),
        (b'{"text": "a", "nonsense": 1}', 422, "nonsense"),
        (b'{"text": "a", "include": ["nobody"]}', 422, "label 'nobody' is not known"),
        (b'{"documents": []}', 422, "documents"),
        (b'{"text": "a", "level": 1}', 422, "needs a tree of labels"),
    ],
)
def test_invalid_requests(client, body, status, sentence):
    """Invalid requests get a problem document with one sentence."""
    response = client.post(
        "/v1/suggest", content=body, headers={"Content-Type": "application/json"}
    )

    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert sentence in response.json()["detail"]
    assert response.json()["status"] == status


def test_limits(path):
    """Reject bodies that are too large or of another type; send security headers."""
    with served(path, max_body_bytes=1000) as client:
        large = client.post("/v1/suggest", json={"text": "x" * 2000})
        assert large.status_code == 413
        assert large.json()["detail"] == "The body is larger than 1,000 bytes."

        def parts():
            for _ in range(10):
                yield b"x" * 500

        headers = {"Content-Type": "application/json"}
        chunked = client.post("/v1/suggest", content=parts(), headers=headers)
        assert chunked.status_code == 413
        typed = client.post("/v1/suggest", content=b"x", headers={"Content-Type": "text/plain"})
        assert typed.status_code == 415
        fine = client.post("/v1/suggest", json={"text": "x"})
        assert fine.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in fine.headers["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in fine.headers


def test_health_and_metrics(client, tmp_path):
    """The service is ready once it has a model; requests are counted."""
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json()["model"]["name"] == "pmm1"
    client.post("/v1/suggest", json={"text": "x"})
    counted = client.get("/metrics").text
    assert 'polytopic_requests_total{route="/v1/suggest",status="200"} 1.0' in counted
    assert "polytopic_labelled_documents_total 1.0" in counted
    assert "polytopic_revision 1.0" in counted

    Store(tmp_path / "empty.db").close()
    with served(tmp_path / "empty.db") as empty:
        assert empty.get("/health/ready").status_code == 503
        response = empty.post("/v1/suggest", json={"text": "x"})
        assert response.status_code == 409
        assert "Nothing has been learned yet" in response.json()["detail"]


def test_metrics(client):
    """Prometheus can parse the metrics, and failed requests are counted as well."""
    lines = b'{"text": "a"}\n{"nonsense": 1}\n{"text": "b"}\n'
    client.post("/v1/suggest", json={"documents": [{"text": "a"}] * 7})
    client.post("/v1/suggest", json={"text": 1})
    client.post("/v1/suggest", content=lines, headers={"Content-Type": "application/x-ndjson"})
    client.post("/v1/learn", json={"documents": [NEW]}, headers=bearer("write"))
    client.post("/v1/learn", json={"documents": [NEW]})
    client.get("/v1/labels/sport/football")
    client.get("/nowhere")

    answer = client.get("/metrics")

    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert samples["polytopic_labelled_documents_total",] == 9
    assert samples["polytopic_changes_total", "learn"] == 1
    assert samples["polytopic_waiting",] == 0
    requests = {key[1:]: n for key, n in samples.items() if key[0] == "polytopic_requests_total"}
    assert requests == {
        ("/v1/suggest", "200"): 2,
        ("/v1/suggest", "422"): 1,
        ("/v1/learn", "200"): 1,
        ("/v1/learn", "401"): 1,
        ("/v1/labels/{label:path}", "200"): 1,
        ("other", "404"): 1,
    }
    assert samples["polytopic_request_seconds_count", "/v1/suggest"] == 3


def test_full_queue(path):
    """A request that finds the queue full gets status 503 and a time to retry."""
    with served(path, threads=1, max_waiting=1) as client:
        service = client.app.state.service
        service.workers.pending = service.workers.limit

        response = client.post("/v1/suggest", json={"text": "x"})

        assert response.status_code == 503
        assert response.headers["Retry-After"] == "1"
        service.workers.pending = 0
        assert client.post("/v1/suggest", json={"text": "x"}).status_code == 200


def test_openapi_document(client):
    """The description is OpenAPI 3.1 and lists every route with its errors."""
    document = client.get("/openapi.json").json()

    assert document["openapi"].startswith("3.1")
    assert {"/v1/suggest", "/v1/explain", "/v1/learn", "/v1/forget"} <= set(document["paths"])
    for methods in document["paths"].values():
        for status, answer in ((s, a) for m in methods.values() for s, a in m["responses"].items()):
            kinds = set(answer["content"])
            assert kinds == {"application/problem+json"} if int(status) >= 400 else kinds
    failures = {path: set(m[next(iter(m))]["responses"]) for path, m in document["paths"].items()}
    assert failures["/health/live"] == {"200"}
    heads = {"400", "414", "431"}  # for requests that are not valid HTTP
    assert failures["/v1/models"] == {"200", "401", "403", "421", "500", "503"} | heads
    assert "404" in failures["/v1/labels/{label}"] - failures["/v1/labels"]
    assert "409" in failures["/v1/learn"] - failures["/v1/models"]
    assert (
        "application/x-ndjson" in document["paths"]["/v1/suggest"]["post"]["requestBody"]["content"]
    )


def test_other_origins(path):
    """Allowed origins may send all headers; other origins may not read responses."""
    preflight = {
        "Origin": "https://desk.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "Authorization, Content-Type, Idempotency-Key",
    }
    with served(path, origins=("https://desk.example",)) as client:
        allowed = client.options("/v1/learn", headers=preflight)
        answer = client.get("/v1/labels", headers={"Origin": "https://desk.example"})
        other = client.options("/v1/learn", headers=preflight | {"Origin": "https://evil.example"})

    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://desk.example"
    assert {"GET", "POST"} <= set(allowed.headers["Access-Control-Allow-Methods"].split(", "))
    names = allowed.headers["Access-Control-Allow-Headers"].lower()
    assert all(name in names for name in ("authorization", "content-type", "idempotency-key"))
    assert answer.headers["Access-Control-Allow-Origin"] == "https://desk.example"
    assert "Access-Control-Allow-Origin" not in other.headers


def test_documents_by_topic(client, path):
    """Documents without labels get topics in the background, and are found by them."""
    new = [
        {"id": f"new{k}", "text": "A striker scored a goal.", "time": f"2030-01-0{k}"}
        for k in (1, 2)
    ]
    client.post("/v1/learn", json={"documents": new}, headers=bearer("write"))
    query = {"topic": "sport/football", "since": "2030-01-01", "text": "goals", "k": 1}
    until(lambda: client.get("/v1/documents", params=query).json()["documents"])

    page = client.get("/v1/documents", params=query).json()

    (found,) = page["documents"]
    assert (found["id"], found["labels"], found["excerpt"]) == ("new2", [], "")
    assert found["topics"][0]["label"] == found["topics"][0]["name"] == "sport/football"
    following = client.get("/v1/documents", params=query | {"after": page["next"]}).json()
    assert [document["id"] for document in following["documents"]] == ["new1"]
    assert following["next"] is None
    counts = client.get("/v1/topics", params={"since": "2030-01-01", "by": "month"}).json()
    assert (counts["starts"], counts["documents"]) == (["2030-01-01"], [2])
    assert counts["labels"]["sport/football"] == [2]
    for wrong in ({"k": 0}, {"since": "yesterday"}, {"after": "x"}, {"min_probability": 0.5}):
        assert client.get("/v1/documents", params=wrong).status_code == 422


def test_documents_of_a_model_file(model):
    """A model file has no documents."""
    with served(model) as client:
        assert client.get("/v1/documents").status_code == 409
        assert client.get("/v1/topics").status_code == 409


def test_a_rule_over_http(client, path):
    """A model is published with a tuned rule; an unknown rule is rejected."""
    request = {"model": "nb", "rule": "cohort"}
    assert client.post("/v1/models", json=request, headers=bearer("admin")).status_code == 200

    with Store(path) as store:
        assert type(store.current().rule).__name__ == "UnconstrainedCohort"
        until(lambda: {match.model for match in store.find(k=1000)} == {1})
    wrong = client.post("/v1/models", json={"rule": "best"}, headers=bearer("admin"))
    assert wrong.status_code == 422


def test_metrics_of_the_stream(client, path):
    """The metrics say how many documents wait for topics, and how old and strange they are."""
    new = {"id": "new", "text": "A striker, a goal, a quokka.", "time": "2030-01-01"}
    client.post("/v1/learn", json={"documents": [new]}, headers=bearer("write"))
    with Store(path) as store:
        until(lambda: store.info()["assigned"] == 349)

    def read():
        families = text_string_to_metric_families(client.get("/metrics").text)
        return {sample.name: sample.value for family in families for sample in family.samples}

    until(lambda: read()["polytopic_newest_document_age_seconds"] < 0)  # it is from the future
    values = read()
    assert values["polytopic_unassigned_documents"] == 0
    assert 0 < values["polytopic_unknown_word_share"] < 0.5
