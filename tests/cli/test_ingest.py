"""The command that learns articles, against a local news server."""

import json

import pytest

from polytopic import Store
from tests.cli.processes import run_polytopic
from tests.desk.conftest import news  # noqa: F401  # a fixture
from tests.desk.newsserver import article, rss


def run(*arguments, code=0):
    """Run the command; return its parsed output and its messages."""
    done = run_polytopic("ingest", *arguments)
    assert done.returncode == code, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines()], done.stderr.decode()


@pytest.fixture
def path(tmp_path):
    """Return the path of an empty store."""
    Store(tmp_path / "news.db", keep_texts=True).close()
    return tmp_path / "news.db"


def test_a_run(news, path, tmp_path):  # noqa: F811
    """A receipt is printed; a failing source is named, and the command fails at the end."""
    news.put("/sport/1", article(1))
    news.put("/rss.xml", rss([(f"{news.root}/sport/1", "Sport")]), kind="text/xml")
    (tmp_path / "map.csv").write_text("sport,sport\n")
    options = ["--store", path, "--allow-private", "--delay", 0]
    mapped = ["--labels-from", "category", "--map", tmp_path / "map.csv"]

    (receipt,), _ = run(f"{news.root}/rss.xml", *options, *mapped)

    assert (receipt["learned"], receipt["sources"][0]["failed"]) == (1, None)
    with Store(path) as store:
        assert store.document(f"{news.root}/sport/1").labels == ("sport",)
    (receipt,), message = run(f"{news.root}/gone.xml", f"{news.root}/rss.xml", *options, code=1)
    assert receipt["not_modified"] + receipt["unchanged"] == 1
    assert "gone.xml' answers with status 404" in message
    assert "1 of 2 sources could not be read" in message


def test_private_networks_are_refused(news, path):  # noqa: F811
    """Without the option, nothing is sent to a loopback address."""
    _, message = run(f"{news.root}/rss.xml", "--store", path, code=1)

    assert "private or loopback network" in message
    assert not news.requests


def test_wrong_usage(path, tmp_path):
    """Options that belong together, a store that exists, and a mapping that can be read."""
    assert "belong together" in run("x", "--store", path, "--labels-from", "section", code=2)[1]
    assert "does not exist" in run("x", "--store", tmp_path / "no.db", code=1)[1]
    mapped = ["--labels-from", "section", "--map", tmp_path / "no.csv"]
    assert "no.csv' cannot be read" in run("x", "--store", path, *mapped, code=1)[1]
