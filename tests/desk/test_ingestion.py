"""Runs of the news desk against a real local server: the store holds exactly what was published."""

import gzip
import io
import json
import threading

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from polytopic.desk import LabelMapping, ingest
from polytopic.desk.errors import AcquisitionError
from polytopic.store import Store
from polytopic.store.articles import ArticleFacts, PageVisit
from tests.desk.conftest import FAST
from tests.desk.newsserver import article, page, rss
from tests.store.test_traces import traces

MAPPING = LabelMapping("category", {"sport": ["sport"], "markets": ["economy", "money"]})


def run(store, *sources, **settings):
    """Ingest sources without delays."""
    return ingest(sources, store, limits=FAST, **settings)


def put_feed(news, n_articles, path="/rss.xml", **settings):
    """Publish articles and their feed; return the addresses."""
    addresses = [f"{news.root}/sport/{k}" for k in range(n_articles)]
    for k in range(n_articles):
        news.put(f"/sport/{k}", article(k), etag=f'"{k}"')
    categories = ["Sport", "Markets", "Weather"]
    body = rss([(a, categories[k % 3]) for k, a in enumerate(addresses)])
    news.put(path, body, kind="application/rss+xml", **settings)
    return addresses


def contents(store):
    """Return the fields of all documents by id."""
    return {document.id: document.fields for document in store.documents()}


@pytest.mark.parametrize("place", ["file", "server"])
def test_a_feed(request, news, place, new_path):
    """Articles get clean text, title, time, labels and facts, on SQLite and PostgreSQL."""
    url = new_path() if place == "file" else request.getfixturevalue("server").new_url()
    with Store(url, keep_texts=True) as store:
        addresses = put_feed(news, 4)

        receipt = run(store, f"{news.root}/rss.xml", mapping=MAPPING)

        (report,) = receipt.sources
        assert (report.failed, report.found, report.learned, report.errors) == (None, 4, 4, [])
        assert sorted(contents(store)) == addresses
        first = store.document(addresses[0])
        assert first.fields["title"] == "Article aaa"
        assert "More about it" in first.fields["text"]
        assert "menu" not in first.fields["text"]
        assert "footer" not in first.fields["text"]
        assert first.time.isoformat() == "2026-11-02T09:00:00+00:00"
        labels = [store.document(address).labels for address in addresses]
        assert labels == [("sport",), ("economy", "money"), (), ("sport",)]
        facts = store.articles.read(addresses[:1])[addresses[0]]
        assert (facts.address, facts.author, facts.language) == (addresses[0], "Jane Doe", "en")
        match = store.find(topic="money")[0]
        assert (match.id, match.language, match.duplicate_of) == (addresses[1], "en", None)
        assert store.verify().problems == []


def test_the_same_run_again_changes_nothing(news, store):
    """Servers are asked for changes, and an unchanged store keeps its revision."""
    put_feed(news, 3)
    revision = run(store, f"{news.root}/rss.xml").revision_after

    again = run(store, f"{news.root}/rss.xml")

    assert again.revision_before == again.revision_after == revision
    assert again.to_dict()["not_modified"] == 3
    assert again.to_dict()["unchanged"] == 0
    sent = [headers.get("If-None-Match") for _, path, headers in news.log if path == "/sport/1"]
    assert sent == [None, '"1"']


def test_without_validators_nothing_is_doubled(news, store):
    """A server that cannot tell what has changed sends everything again, which changes nothing."""
    put_feed(news, 3)
    for k in range(3):
        news.answers[f"/sport/{k}"].etag = None
    run(store, f"{news.root}/rss.xml")

    again = run(store, f"{news.root}/rss.xml", f"{news.root}/sport/1")

    assert [report.unchanged for report in again.sources] == [3, 1]
    assert len(contents(store)) == 3


def test_a_changed_feed_with_an_etag(news, store):
    """A feed that has not changed is not read; a changed one is, and old articles are not sent."""
    put_feed(news, 2, etag='"a"')
    run(store, f"{news.root}/rss.xml")
    before = news.requests["/sport/0"]

    assert run(store, f"{news.root}/rss.xml").to_dict()["not_modified"] == 1
    assert news.requests["/sport/0"] == before
    put_feed(news, 3, etag='"b"')
    receipt = run(store, f"{news.root}/rss.xml").to_dict()

    assert (receipt["learned"], receipt["not_modified"]) == (1, 2)


def test_a_changed_article_is_corrected(news, store):
    """Its words change; labels and time that an editor has given remain."""
    addresses = put_feed(news, 2)
    run(store, f"{news.root}/rss.xml", mapping=MAPPING)
    store.relabel({addresses[0]: ["football"]})
    news.put("/sport/0", article(0, "An editor added this sentence."), etag='"new"')

    receipt = run(store, f"{news.root}/rss.xml", mapping=MAPPING).to_dict()

    assert (receipt["corrected"], receipt["learned"], receipt["not_modified"]) == (1, 0, 1)
    document = store.document(addresses[0])
    assert "An editor added" in document.fields["text"]
    assert document.labels == ("football",)
    assert document.time.isoformat() == "2026-11-02T09:00:00+00:00"


def test_copies_are_marked(news, store):
    """An agency's text with small changes is a copy of the first one, also in later runs."""
    put_feed(news, 3)
    run(store, f"{news.root}/rss.xml")
    news.put("/copy", article(1, "Source: agency."))
    news.put("/copy2", article(1, "This was reported by an agency."))

    receipts = [run(store, f"{news.root}/{name}") for name in ("copy", "copy2", "copy")]

    assert [receipt.to_dict()["copies"] for receipt in receipts] == [1, 1, 1]
    names = [f"{news.root}/{name}" for name in ("copy", "copy2", "sport/1", "sport/2")]
    facts = store.articles.read(names)
    original = f"{news.root}/sport/1"
    assert [facts[name].duplicate_of for name in names] == [original, original, None, None]
    store.forget([original])
    assert {one.duplicate_of for one in store.articles.read(names).values()} == {None}
    assert store.verify().problems == []


def test_failures_do_not_stop_others(news, store):
    """Broken feeds, missing, slow and endless pages are reported; the rest is learned."""
    put_feed(news, 2)
    listed = [(f"{news.root}/{name}", "Sport") for name in ("missing", "drip", "sport/0", "image")]
    listed.append(("ftp://example.org/x", "Sport"))
    news.put("/mixed.xml", rss(listed), kind="text/xml")
    news.put("/drip", article(5), drip=0.5)
    news.put("/image", b"\x89PNG", kind="image/png")
    news.put("/broken.xml", "<rss version='2.0'><channel><item><tit", kind="text/xml")
    news.put("/huge", b"x" * (FAST.max_bytes + 1))
    bomb = gzip.compress(b"x" * (FAST.max_bytes + 1))
    news.put("/bomb", bomb, headers={"Content-Encoding": "gzip"})
    news.put("/cut", article(6), headers={"Content-Length": "99999"})
    names = ["mixed.xml", "broken.xml", "huge", "bomb", "nothing", "rss.xml"]

    receipt = run(store, *(f"{news.root}/{name}" for name in names), "gopher://x", "/no/file")

    failed = {report.source.rpartition("/")[2]: report.failed for report in receipt.sources}
    assert failed["mixed.xml"] is None
    assert failed["rss.xml"] is None
    assert "broken" in failed["broken.xml"]
    assert "more than 5,242,880 bytes" in failed["huge"]
    assert "more than 5,242,880 bytes" in failed["bomb"]
    assert "status 404" in failed["nothing"]
    assert "must begin with http" in failed["x"]
    assert "neither an address nor a file" in failed["file"]
    mixed = receipt.sources[0]
    assert mixed.n_errors == 4
    reasons = " ".join(mixed.errors)
    for part in ("status 404", "took more than 2 seconds", "image/png", "must begin with http"):
        assert part in reasons
    assert sorted(contents(store)) == [f"{news.root}/sport/{k}" for k in range(2)]


def test_a_feed_with_errors_is_read_again(news, store):
    """A feed whose articles could not all be read is not taken for unchanged."""
    addresses = put_feed(news, 2, etag='"a"')
    broken = news.answers.pop("/sport/1")
    assert run(store, f"{news.root}/rss.xml").sources[0].n_errors == 1

    news.answers["/sport/1"] = broken

    assert run(store, f"{news.root}/rss.xml").to_dict()["learned"] == 1
    assert sorted(contents(store)) == addresses


def test_a_broken_feed_gives_what_can_be_read(news, store):
    """Entries before the damage are learned."""
    put_feed(news, 2)
    body = news.answers["/rss.xml"].body.replace(b"</channel></rss>", b"<item><title>& broken")
    news.put("/rss.xml", body, kind="text/xml")

    assert run(store, f"{news.root}/rss.xml").to_dict()["learned"] == 2


def test_sitemaps(news, store):
    """A sitemap of sitemaps, one of them gzipped, gives the pages that they list."""
    put_feed(news, 3)
    urls = [f"<url><loc>{news.root}/sport/{k}</loc></url>" for k in range(3)]
    name = "http://www.sitemaps.org/schemas/sitemap/0.9"
    start = f"<?xml version='1.0'?><{{0}} xmlns='{name}'>{{1}}</{{0}}>"
    news.put("/one.xml", start.format("urlset", "".join(urls[:1])), kind="text/xml")
    news.put("/two.xml.gz", gzip.compress(start.format("urlset", "".join(urls[1:])).encode()))
    names = ("one.xml", "two.xml.gz")
    maps = "".join(f"<sitemap><loc>{news.root}/{name}</loc></sitemap>" for name in names)
    news.put("/sitemap.xml", start.format("sitemapindex", maps), kind="text/xml")

    receipt = run(store, f"{news.root}/sitemap.xml", max_articles=2)

    assert receipt.to_dict()["learned"] == 2
    assert "more than 2 articles" in receipt.sources[0].errors[0]
    assert run(store, f"{news.root}/sitemap.xml").to_dict()["learned"] == 1


def test_addresses_are_written_one_way(news, store):
    """Fragments, tracking parameters and canonical links of the same host double no article."""
    put_feed(news, 1)
    head = f"<link rel='canonical' href='{news.root}/sport/0'>"
    text = article(0).replace("</head>", f"{head}</head>")
    foreign = article(1).replace(
        "</head>", "<link rel='canonical' href='https://elsewhere.example/x'></head>"
    )
    for path in ("/sport/0", "/amp/0", "/sport/0?utm_source=rss"):
        news.put(path, text)
    news.put("/foreign", foreign)
    names = ["sport/0#top", "amp/0", "sport/0?utm_source=rss", "foreign"]

    run(store, *(f"{news.root}/{name}" for name in names))

    assert sorted(contents(store)) == [f"{news.root}/foreign", f"{news.root}/sport/0"]


def test_redirects(news, store):
    """A redirect is followed to the article; endless and private ones are refused."""
    put_feed(news, 1)
    news.put("/old", "", status=301, headers={"Location": "/sport/0"})
    news.put("/loop", "", status=302, headers={"Location": "/loop"})
    news.put("/file", "", status=302, headers={"Location": "file:///etc/passwd"})

    receipt = run(store, *(f"{news.root}/{name}" for name in ("old", "loop", "file")))

    old, loop, file = receipt.sources
    assert (old.learned, old.failed) == (1, None)
    assert "more than 5 redirects" in loop.failed
    assert "must begin with http" in file.failed
    assert sorted(contents(store)) == [f"{news.root}/sport/0"]


def test_files(news, store, tmp_path):
    """Folders, WARC archives and JSON lines give the same articles as the web."""
    folder = tmp_path / "pages" / "sport"
    folder.mkdir(parents=True)
    (folder / "a.html").write_text(article(1))
    (folder / "b.htm").write_text("<html><body></body></html>")
    (folder / "c.txt").write_text("no page")
    with (tmp_path / "crawl.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for k, status in enumerate(["200 OK", "404 Not Found", "200 OK"]):
            headers = StatusAndHeaders(status, [("Content-Type", "text/html")], protocol="HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(
                    f"https://example.org/sport/{k}",
                    "response",
                    payload=io.BytesIO(article(10 + k).encode()),
                    http_headers=headers,
                )
            )
    lines = [
        {"id": "own", "title": "A title", "text": "The text of it.", "labels": ["sport"]},
        {"url": "https://example.org/x#y", "html": article(3), "category": "Markets"},
        {"title": "no text"},
        {"id": "empty", "text": " "},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "lines.jsonl").write_text(text + "{broken\n")
    sources = [str(tmp_path / name) for name in ("pages", "crawl.warc.gz", "lines.jsonl")]

    receipt = run(store, *sources, mapping=MAPPING)

    assert [report.learned for report in receipt.sources] == [1, 2, 2]
    assert [report.n_errors for report in receipt.sources] == [1, 0, 3]
    assert receipt.failed == []
    assert sorted(contents(store)) == [
        "https://example.org/sport/0",
        "https://example.org/sport/2",
        "https://example.org/x",
        "own",
        "sport/a.html",
    ]
    assert store.document("own").labels == ("sport",)
    assert store.document("https://example.org/x").labels == ("economy", "money")
    assert run(store, *sources).to_dict()["unchanged"] == 5


def test_a_damaged_archive(store, tmp_path):
    """An archive that cannot be read fails as a source."""
    contents_of = {
        "x.warc": b"no archive at all, but some text\n" * 9,
        "y.warc": b"WARC/1.0\r\nWARC-Type: response\r\nContent-Len",
    }
    for name, content in contents_of.items():
        (tmp_path / name).write_bytes(content)

    receipt = run(store, *(str(tmp_path / name) for name in contents_of))

    assert len(receipt.failed) == 2
    assert "is not a WARC archive" in receipt.sources[0].failed
    assert receipt.to_dict()["learned"] == 0


def test_labels_by_section(news, store, tmp_path):
    """The longest sections in an address give labels; a mapping is read from a file."""
    put_feed(news, 1)
    news.put("/sport/tennis/9", article(9))
    (tmp_path / "map.csv").write_text("sport,sport\nsport/tennis,tennis\n")
    (tmp_path / "map.json").write_text('{"sport": ["games"]}')
    (tmp_path / "bad.json").write_text('{"sport": 5}')

    run(
        store,
        f"{news.root}/sport/tennis/9",
        mapping=LabelMapping.from_file("section", tmp_path / "map.csv"),
    )
    run(
        store,
        f"{news.root}/sport/0",
        mapping=LabelMapping.from_file("section", tmp_path / "map.json"),
    )

    assert store.document(f"{news.root}/sport/tennis/9").labels == ("sport", "tennis")
    assert store.document(f"{news.root}/sport/0").labels == ("games",)
    with pytest.raises(AcquisitionError, match="'sport' must have a label"):
        LabelMapping.from_file("section", tmp_path / "bad.json")


def test_a_stopped_run_loses_nothing(news, store):
    """What was read is stored; the next run reads the rest, and the store is as if nothing was."""
    addresses = put_feed(news, 12, etag='"a"')
    stopped = threading.Event()
    for k in range(12):
        news.answers[f"/sport/{k}"].seconds = 0.05
    threading.Timer(0.35, stopped.set).start()

    receipt = run(store, f"{news.root}/rss.xml", stopped=stopped)

    assert receipt.stopped
    assert len(contents(store)) < 12
    assert not run(store, f"{news.root}/rss.xml").stopped
    assert sorted(contents(store)) == sorted(addresses)


def test_forgetting_leaves_no_trace(news, new_path):
    """No address, author or validator of a forgotten article is left in the files."""
    path = new_path()
    with Store(path, keep_texts=True) as store:
        put_feed(news, 2)
        secret = page("Secret title", "unheard " * 40 + "\n" + "xylophone " * 40)
        news.put("/secret/path", secret.replace("Jane Doe", "Nobody Known"), etag='"validator"')
        run(store, f"{news.root}/rss.xml", f"{news.root}/secret/path")
        assert store.articles.visit(f"{news.root}/secret/path").etag == '"validator"'

        store.forget([f"{news.root}/secret/path"])

        marks = ["secret/path", "Nobody Known", "validator", "unheard", "xylophone"]
        assert traces(path, marks) == []
        assert store.verify().problems == []


def test_facts_of_forgotten_articles_are_not_recorded(news, store):
    """What a run still remembers of an article that is forgotten meanwhile is not written."""
    addresses = put_feed(news, 2)
    run(store, f"{news.root}/rss.xml")
    store.forget(addresses[:1])
    mine, gone = addresses[1], addresses[0]

    store.articles.record(
        [ArticleFacts(gone, author="Nobody"), ArticleFacts(mine, duplicate_of=gone)],
        [PageVisit(gone, gone, '"0"', None)],
    )

    assert store.articles.read([gone]) == {}
    assert store.articles.read([mine])[mine].duplicate_of is None
    assert store.articles.visit(gone) is None
    assert store.verify().problems == []


def test_pages_that_nothing_can_be_read_from(news, store):
    """An empty page and one that is no HTML are errors of the article, not of the program."""
    for name, body in (("empty", b""), ("bytes", bytes(range(256))), ("deep", b"<div>" * 5000)):
        news.put(f"/{name}", body)

    receipt = run(store, *(f"{news.root}/{name}" for name in ("empty", "bytes", "deep")))

    assert [report.n_errors for report in receipt.sources] == [1, 1, 1]
    assert contents(store) == {}
