"""The pages without a browser: headers, cookies, other sites, and escaping."""

import re

import numpy as np
import pytest

from polytopic import Labeler, LabelTree, Store
from polytopic.cli.demo import NEW_TEXTS
from polytopic.corpus import load_sample
from polytopic.server.pages.routes import MAX_LEVELS
from tests.server.conftest import OWN, bearer, filled, served

HTML = {"Accept": "text/html"}
PAGES = ["/", "/check", "/labels", "/labels/sport%2Ffootball", "/map", "/models", "/docs"]
PARTS = ["/parts/doubtful", "/parts/quality", "/parts/drift/sport%2Ffootball"]


@pytest.mark.parametrize("path", [*PAGES, *PARTS, "/sign-in", "/nothing", "/static/text.js"])
def test_headers(demo, path):
    """Only the service's own scripts and styles run, and pages are neither framed nor cached."""
    answer = demo.get(path, headers=HTML)

    policy = dict(part.strip().split(" ", 1) for part in answer.headers[POLICY].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    if not path.startswith("/static"):
        assert answer.headers["Cache-Control"] == "no-store"
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert " onclick=" not in answer.text


POLICY = "Content-Security-Policy"


def test_hosts(own_path):
    """Unknown host names are rejected, because another site may pretend to be this machine."""
    with served(own_path, hosts=("127.0.0.1", "localhost", "[::1]")) as client:
        answers = {
            host: client.get("/", headers={"Host": host}).status_code
            for host in (
                "localhost",
                "localhost:8765",
                "[::1]:8765",
                "evil.example",
                "127.0.0.1.x",
                "",
            )
        }
        response = client.get("/v1/labels", headers={"Host": "evil.example:80"})

    assert list(answers.values()) == [200, 200, 200, 421, 421, 421]
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "evil.example" in response.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/documents/fresh-1",
        "/v1/labels",
        "/v1/queue",
        "/v1/nothing",
        "/openapi.json",
        "/metrics",
    ],
)
def test_no_answer_is_cached(demo, path):
    """Answers may contain documents that are forgotten later; files of the pages may be cached."""
    answer, file = demo.get(path), demo.get("/static/text.js")

    assert answer.headers.get_list("Cache-Control") == ["no-store"]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Cache-Control" not in file.headers
    assert file.headers["ETag"]


def test_static_files_are_sent_whole(demo):
    """A range is ignored."""
    whole = demo.get("/static/text.js")
    answer = demo.get("/static/text.js", headers={"Range": "bytes=1-2,4-5"})

    assert (answer.status_code, answer.content) == (200, whole.content)


def test_the_cookie(demo):
    """Scripts cannot read the cookies, and other sites' pages do not send them."""
    answer = demo.post("/sign-in", data={"token": OWN, "next": "/models"})
    language = demo.get("/labels?lang=cs").headers["Set-Cookie"]
    demo.cookies.clear()

    assert (answer.status_code, answer.headers["Location"]) == (303, "/models")
    for cookie in (answer.headers["Set-Cookie"], language):
        assert "httponly" in cookie.lower()
        assert "samesite=strict" in cookie.lower()
    wrong = demo.post("/sign-in", data={"token": "wrong"}, headers=HTML)
    assert wrong.status_code == 401
    assert "Set-Cookie" not in wrong.headers


def test_the_cookie_behind_a_proxy(demo):
    """If the browser uses HTTPS, the cookie is never sent without it."""
    form, host = {"token": OWN}, demo.base_url.netloc.decode()

    cookies = {
        scheme: demo.post("/sign-in", data=form, headers={"Origin": f"{scheme}://{host}"}).headers[
            "Set-Cookie"
        ]
        for scheme in ("http", "https")
    }
    demo.cookies.clear()

    assert "Secure" not in cookies["http"]
    assert "Secure" in cookies["https"]


@pytest.mark.parametrize("token", ["a b", 'say "hi"; ok', "čeština", "100%25"])
def test_unusual_tokens(tmp_path, token):
    """A token may contain any characters."""
    path = filled(tmp_path / "news.db")
    with Store(path) as store:
        store.tokens.create("unusual", "read", token)

    with served(path, open_reading=False) as client:
        client.post("/sign-in", data={"token": token})

        assert client.get("/labels").status_code == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_other_sites_cannot_use_the_cookie(demo, sent, status):
    """A cookie allows changes only from our own pages; a token in a header always does."""
    demo.cookies.set("polytopic_token", OWN)
    question = {"labels": {"fresh-1": []}}
    by_cookie = demo.post("/v1/relabel", json=question, headers=sent)
    out = demo.post("/sign-out", headers=HTML | sent)
    into = demo.post("/sign-in", data={"token": OWN}, headers=HTML | sent)
    demo.cookies.clear()
    by_header = demo.post(
        "/v1/relabel", json=question, headers={"Authorization": f"Bearer {OWN}", **sent}
    )

    assert (by_cookie.status_code, by_header.status_code) == (status, 200)
    assert {out.status_code, into.status_code} == {303 if status == 200 else 403}
    assert ("Set-Cookie" in into.headers) == (status == 200)


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\r\n/evil.example",
        "javascript:alert(1)",
        "//[",
        "evil.example",
        " //evil.example",
        "",
    ],
)
def test_sign_in_redirects_to_own_pages_only(demo, target):
    """Signing in never redirects to another site."""
    answer = demo.post("/sign-in", data={"token": OWN, "next": target})
    form = demo.get("/sign-in", params={"next": target}, headers=HTML)
    demo.cookies.clear()

    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert 'name="next" value="/"' in form.text


def test_texts_are_escaped(own_path):
    """Texts, ids and labels are escaped in pages and in embedded JSON."""
    hostile = "</script><script>alert(1)</script><!--'\"&"
    with Store(own_path, create=False) as store:
        store.learn([{"id": hostile, "text": hostile, "labels": [hostile]}])
        store.learn([{"id": "other", "text": hostile}])
    with served(own_path) as client:
        pages = [
            client.get(path, params=query, headers=HTML)
            for path, query in [
                ("/", {"id": hostile}),
                ("/", {"id": f"{hostile}?"}),
                ("/check", {}),
                ("/parts/doubtful", {}),
                ("/labels", {"q": hostile}),
                ("/map", {}),
                ("/sign-in", {"next": f"/{hostile}"}),
            ]
        ]

    assert [page.status_code for page in pages] == [200, 404, 200, 200, 200, 200, 200]
    assert all("<script>alert" not in page.text for page in pages)
    assert all("<!--" not in page.text for page in pages)


def test_reading_with_tokens_only(path):
    """Pages and their parts redirect to the form, and programs get 401."""
    with served(path, open_reading=False) as client:
        for page in [*PAGES, *PARTS]:
            answer = client.get(page, headers=HTML)
            assert answer.status_code == 303
            assert answer.headers["Location"].startswith("/sign-in?next=%2F")
        assert client.get("/sign-in", headers=HTML).status_code == 200
        assert "pmm1" not in client.get("/nothing", headers=HTML).text
        for route in ("queue", "drift", "documents/news-001", "labels"):
            assert client.get(f"/v1/{route}").status_code == 401
            assert client.get(f"/v1/{route}", headers=bearer("read")).status_code == 200


def test_error_pages(demo):
    """Browsers get an error page, programs a problem document."""
    for path, status in [("/labels?q=" + "x" * 201, 422), ("/labels/no", 404), ("/no", 404)]:
        page, problem = demo.get(path, headers=HTML), demo.get(path)
        assert page.status_code == problem.status_code == status
        assert page.headers["Content-Type"].startswith("text/html")
        assert problem.headers["Content-Type"] == "application/problem+json"
    assert demo.get("/v1/no", headers=HTML).headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("levels", [MAX_LEVELS, MAX_LEVELS + 1, 5000])
def test_labels_of_a_deep_tree(tmp_path, levels):
    """A tree that is too deep to be nested is shown as a list."""
    tree = LabelTree({f"l{i:04}": f"l{i - 1:04}" if i else None for i in range(levels)})
    deepest = f"l{levels - 1:04}"
    labels = [["l0000"], [deepest]]
    model = tmp_path / "deep.model"
    Labeler("nb", tree=tree).fit(["red apple", "green pear"], labels).save(model)

    with served(model) as client:
        page = client.get("/labels", headers=HTML)

        assert page.status_code == 200
        assert ('class="tree"' in page.text) == (levels <= MAX_LEVELS)
        assert f'href="/labels/{deepest}"' in page.text
        assert client.get(f"/labels/{deepest}", headers=HTML).status_code == 200


# What the pages read, for programs


def test_queue(demo, demo_path):
    """Documents without labels come least certain first, as in the library."""
    queue = demo.get("/v1/queue").json()["documents"]

    with Store(demo_path, create=False) as store:
        labeler = store.labeler()
    certainty = labeler.certainty(NEW_TEXTS)
    order = np.argsort(certainty)
    assert [row["id"] for row in queue] == [f"fresh-{k + 1}" for k in order]
    assert [row["certainty"] for row in queue] == pytest.approx(certainty[order])
    assert [row["suggested"] for row in queue] == labeler.predict([NEW_TEXTS[k] for k in order])
    assert [row["excerpt"] for row in queue] == [NEW_TEXTS[k][:300] for k in order]
    assert len(demo.get("/v1/queue?k=1").json()["documents"]) == 1
    assert demo.get("/v1/queue?k=0").status_code == 422
    assert demo.get("/v1/queue?kind=other").status_code == 422


def test_queue_of_doubtful_documents(demo, demo_path):
    """Doubtful documents are those of the library's audit."""
    queue = demo.get("/v1/queue?kind=doubtful&k=5").json()["documents"]

    with Store(demo_path, create=False) as store:
        documents = list(store.documents(labelled=True))
        suspects = store.labeler().audit(documents, k=5)
    assert [row["id"] for row in queue] == [documents[s.index].id for s in suspects]
    assert [row["suggested"] for row in queue] == [s.better for s in suspects]
    assert [row["words"] for row in queue] == [s.words for s in suspects]


def test_queue_of_doubtful_documents_of_any_model(tmp_path):
    """A model that learns from documents audits them by folds."""
    path = tmp_path / "news.db"
    with Store(path, model="mml") as store:
        store.learn(load_sample()[:80])
        store.publish()
        suspects = store.labeler().audit(list(store.documents(labelled=True)), k=5)

    with served(path) as client:
        queue = client.get("/v1/queue?kind=doubtful&k=5").json()["documents"]

    assert len(queue) == 5
    assert [row["suggested"] for row in queue] == [s.better for s in suspects]
    assert [row["missing"] for row in queue] == [s.missing for s in suspects]


def test_queue_of_a_model_file(model):
    """A model file has no documents."""
    with served(model) as client:
        assert client.get("/v1/queue").json()["documents"] == []
        assert client.get("/v1/queue?kind=doubtful").json()["documents"] == []
        assert client.get("/v1/drift").json()["periods"] == []
        assert client.get("/v1/documents/news-001").status_code == 404


def test_drift(demo, demo_path):
    """The last periods agree with the library."""
    drift = demo.get("/v1/drift").json()

    with Store(demo_path, create=False) as store:
        assert drift["by"] == store.timeline().by == "month"
        assert drift["periods"] == store.drift(by="month").to_dict()["periods"]


def test_documents(demo, path):
    """A document has its text, or its counts if the store keeps no texts."""
    first = load_sample()[0]
    document = demo.get(f"/v1/documents/{first.id}").json()
    with served(path) as client:
        bag = client.get(f"/v1/documents/{first.id}").json()

    assert (document["text"], document["labels"]) == (first.text, list(first.labels))
    assert "text" not in bag
    assert bag["labels"] == document["labels"]
    assert sum(bag["counts"].values()) > 10
    assert demo.get("/v1/documents/none").status_code == 404


def test_completion(demo):
    """Labels that start with the query come before those that contain it."""
    rows = demo.get("/v1/labels?q=E").json()["labels"]
    exact = demo.get("/v1/labels?q=SPORT/football&k=1").json()["labels"]

    names = [row["label"] for row in rows]
    first = [name for name in names if name.startswith("e")]
    assert names[: len(first)] == sorted(first)
    assert len(first) < len(names)
    assert exact[0]["label"] == "sport/football"


def test_drift_of_one_label(demo, demo_path):
    """A label's drift consists of its entries in the store's periods."""
    drift = demo.get("/v1/labels/sport%2Ffootball?drift=true").json()["drift"]

    with Store(demo_path) as store:
        periods = store.drift(by="month").to_dict()["periods"]
    expected = [
        {"start": period["start"]} | one
        for period in periods
        for one in period["labels"]
        if one["label"] == "sport/football"
    ]
    assert drift == expected[-24:]
    assert drift


def test_charts_fill_their_frame(demo):
    """Bars fill their chart in width and height."""
    text = demo.get("/labels/sport%2Ffootball", headers=HTML).text

    width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', text).groups())
    bar = r'<rect class="l0" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"'
    x, y, widths, heights = np.array(re.findall(bar, text), dtype=float).T
    assert heights.max() == height
    np.testing.assert_allclose(y + heights, height, atol=0.02)
    assert x[-1] + widths[-1] * 0.9 / 0.8 == pytest.approx(width, abs=0.2)


def test_length_of_the_review_list(own_path):
    """The page lists twenty documents, however many there are."""
    with Store(own_path) as store:
        store.learn({"id": f"free-{k}", "text": "film goal", "labels": []} for k in range(25))
    with served(own_path, own_token=OWN) as client:
        text = client.get("/check", headers=HTML).text

    assert text.count("certainty ") == 20


def test_authentication_challenge(own_path):
    """The response says how to send a token."""
    with served(own_path, open_reading=False) as client:
        for headers in ({}, {"Authorization": "Bearer nobody"}):
            answer = client.get("/v1/labels", headers=headers)

            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_waiting_calls_are_counted(own_path):
    """Waiting calls that read and that write are counted."""
    with served(own_path) as client:
        service = client.app.state.service
        service.workers.pending, service.writers.pending = 2, 3
        text = client.get("/metrics").text
        service.workers.pending = service.writers.pending = 0

    assert "\npolytopic_waiting 5.0\n" in text
