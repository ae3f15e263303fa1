"""Forgotten documents no longer affect answers, whichever model is active."""

import json
import time

import pytest

from polytopic import Document, Labeler, Store
from polytopic.store import models
from tests.server.conftest import bearer, served, until

SECRET = {"id": "secret", "text": "A xylophone in the unheard archive.", "labels": ["private"]}
ADMIN, WRITER = bearer("admin"), bearer("write")


def answers_private(client):
    """Return whether the secret document's label is still known."""
    response = client.post("/v1/explain", json={"text": "A xylophone."})
    listed = client.get("/v1/labels", params={"q": "private"})
    assert response.status_code == listed.status_code == 200
    return "private" in response.text or "private" in listed.text


def learn_secret(client):
    """Learn the secret document, and wait until it affects answers."""
    client.post("/v1/learn", json={"documents": [SECRET]}, headers=WRITER)
    until(lambda: answers_private(client))


def forget_secret(client):
    """Forget the secret document."""
    response = client.post("/v1/forget", json={"ids": ["secret"]}, headers=WRITER)
    assert response.json()["forgotten"] == 1


def current(client):
    """Return the active published model."""
    return next(model for model in client.get("/v1/models").json()["models"] if model["current"])


@pytest.mark.parametrize("model", ["pmm1", "mml"])
def test_after_a_rollback(path, model):
    """A model that was rolled back to is refreshed at once without the forgotten document."""
    with served(path) as client:
        learn_secret(client)
        client.post("/v1/models", json={"model": model}, headers=ADMIN)
        client.post("/v1/models", json={"model": "nb"}, headers=ADMIN)
        client.post("/v1/models/rollback", json={}, headers=ADMIN)
        assert answers_private(client)

        forget_secret(client)

        until(lambda: not answers_private(client), 30)
        assert (current(client)["name"], current(client)["marked"]) == (model, None)
        assert client.get("/health/ready").json()["model"]["number"] == current(client)["id"] == 3


def test_document_model(path):
    """A model that learns from documents does not wait for its next scheduled refresh."""
    with served(path) as client:
        learn_secret(client)
        client.post("/v1/models", json={"model": "mml"}, headers=ADMIN)
        for k in range(2):  # the first request may start a scheduled refresh
            client.post(
                "/v1/learn",
                json={"documents": [SECRET | {"id": f"more {k}", "labels": ["culture"]}]},
                headers=WRITER,
            )
            until(lambda k=k: client.app.state.service.live.store.monitor.state()[0] >= k + 3)

        forget_secret(client)

        until(lambda: not answers_private(client), 30)


@pytest.mark.parametrize("model", ["pmm1", "mml"])
def test_start_with_a_marked_model(path, model):
    """A marked model is refreshed before the first answer."""
    with Store(path) as store:
        store.learn([SECRET])
        first = store.publish(model=model)
        store.publish(model="nb")
        store.rollback(first)
        store.forget(["secret"])

    with served(path) as client:
        assert not answers_private(client)


def test_a_model_that_cannot_be_refreshed(path):
    """A model from elsewhere stops answering after a document is forgotten, with a reason."""
    with Store(path) as store:
        store.publish(Labeler("pmm1").fit([*store.documents(), Document.from_dict(SECRET)]))
    with served(path) as client:
        learn_secret(client)
        assert client.get("/map").status_code == 200

        forget_secret(client)

        until(lambda: client.get("/health/ready").status_code == 503)
        for response in (
            client.get("/health/ready"),
            client.post("/v1/suggest", json={"text": "A xylophone."}),
            client.post("/v1/explain", json={"text": "A xylophone."}),
            client.get("/v1/labels"),
            client.get("/map"),
        ):
            assert response.status_code == 503
            assert (
                "may have seen a document that has since been forgotten"
                in response.json()["detail"]
            )
        assert "forgotten" in client.get("/models").text
        refused = client.post("/v1/models/refresh", headers=ADMIN)
        assert (refused.status_code, "publish another" in refused.text) == (409, True)

        client.post("/v1/models", json={}, headers=ADMIN)

        assert client.get("/health/ready").status_code == 200
        assert not answers_private(client)


def test_failed_refresh(path, monkeypatch):
    """Nothing answers while the refresh fails; answers resume when it succeeds."""
    with served(path) as client:
        learn_secret(client)
        client.post("/v1/models", json={}, headers=ADMIN)
        client.post("/v1/models", json={"model": "nb"}, headers=ADMIN)
        client.post("/v1/models/rollback", json={}, headers=ADMIN)

        def fails(*_, **__):
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(models, "publish", fails)
            forget_secret(client)
            until(lambda: client.get("/health/ready").status_code == 503)
            assert client.post("/v1/suggest", json={"text": "x"}).status_code == 503

        until(lambda: client.get("/health/ready").status_code == 200)
        assert not answers_private(client)


def test_running_stream(path):
    """A long stream continues with the active model, not with the one it began with."""
    with served(path) as client:
        learn_secret(client)
        client.post("/v1/models", json={}, headers=ADMIN)
        line = json.dumps({"text": "A xylophone."}).encode() + b"\n"

        def lines():
            yield line
            forget_secret(client)
            until(lambda: not answers_private(client))
            yield line

        response = client.post(
            "/v1/suggest?k=100",
            content=lines(),
            headers={"Content-Type": "application/x-ndjson"},
        )

        first, second = response.text.splitlines()
        assert "private" in first
        assert "private" not in second


def test_two_services(path):
    """Both services stop using the old model, and only one new model is published."""
    with served(path) as client, served(path) as other:
        learn_secret(client)
        client.post("/v1/models", json={"model": "mml"}, headers=ADMIN)
        until(lambda: current(other)["id"] == 1 and answers_private(other))

        forget_secret(client)

        until(lambda: not answers_private(client) and not answers_private(other), 30)
        time.sleep(2)  # the interval at which each checks for changes
        assert [m["id"] for m in client.get("/v1/models").json()["models"]] == [2, 1]


def test_refresh(path):
    """An admin can refresh a model; a fresh one stays."""
    with Store(path) as store:
        store.publish(as_of=1)
    with served(path) as client:
        assert client.post("/v1/models/refresh", headers=WRITER).status_code == 403
        same = client.post("/v1/models/refresh", headers=ADMIN).json()
        assert (same["id"], same["current"]) == (1, True)
        client.post("/v1/learn", json={"documents": [SECRET]}, headers=WRITER)

        fresh = client.post("/v1/models/refresh", headers=ADMIN).json()

        assert (fresh["id"], fresh["current"], fresh["origin"]["revision"]) == (2, True, 2)


@pytest.mark.parametrize("model", ["pmm1", "mml"])
def test_map_and_labels_after_a_rollback(path, model):
    """Doubtful documents are drawn from the counts that the model was fitted on."""
    with served(path) as client:
        client.post("/v1/models", json={"model": model}, headers=ADMIN)
        before = client.get("/v1/labels/sport/football?drift=false").json()
        client.post("/v1/learn", json={"documents": [SECRET]}, headers=WRITER)
        client.post("/v1/models", json={"model": "nb"}, headers=ADMIN)

        client.post("/v1/models/rollback", json={}, headers=ADMIN)

        after = client.get("/v1/labels/sport/football?drift=false").json()
        assert after["together"] == before["together"]
        assert after["words"] == before["words"]
        for address in ("/map", "/labels/sport/football", "/labels"):
            assert client.get(address).status_code == 200
        assert "private" not in client.get("/map").text
