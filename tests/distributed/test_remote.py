"""Corpora and results on another machine, given by URL."""

import json
from threading import Thread

import pytest

from polytopic import PolytopicError
from polytopic.distributed import count, read, suggest
from tests.distributed.test_counting import same_bytes


@pytest.fixture
def remote(tmp_path):
    """Return a folder, and the address of the FTP server that serves it."""
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

    users = DummyAuthorizer()
    users.add_user("reader", "secret", str(tmp_path), perm="elradfmw")
    handler = type("Handler", (FTPHandler,), {"authorizer": users})
    server = FTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"timeout": 0.1}, daemon=True)
    thread.start()
    host, port = server.address
    yield tmp_path, f"ftp://reader:secret@{host}:{port}"
    server.close_all()


def test_a_corpus_on_a_server(client, news, pmm1, documents, remote):
    """Parts of remote files are counted and labelled like local ones, to the bit."""
    folder, address = remote
    lines = news.read_bytes().splitlines(keepends=True)
    (folder / "in").mkdir()
    for part, own in enumerate((lines[:150], lines[150:])):
        (folder / "in" / f"part-{part}.jsonl").write_bytes(b"".join(own))
    corpus = f"{address}/in/part-*.jsonl"

    counts = count(corpus, blocksize=50_000, client=client)
    done = suggest(pmm1, corpus, f"{address}/out", blocksize=50_000, client=client)

    assert same_bytes(counts, count(news, client=client))
    files = sorted((folder / "out").iterdir())
    answers = [json.loads(line)["labels"] for file in files for line in file.open()]
    assert len(files) > 2
    assert answers == pmm1.predict(documents)
    assert done.documents == len(documents)
    with pytest.raises(PolytopicError, match="already contains files"):
        suggest(pmm1, corpus, f"{address}/out", client=client)


def test_unreachable_sources(client):
    """One sentence names the URL and the problem."""
    with pytest.raises(PolytopicError, match=r"'nosuch://news.jsonl' cannot be read: Protocol"):
        count("nosuch://news.jsonl", client=client)
    with pytest.raises(PolytopicError, match=r"'ftp://127.0.0.1:1/n' cannot be read: .*refused"):
        count("ftp://127.0.0.1:1/n", client=client)


def test_a_password_is_not_shown(client, news, pmm1, remote, tmp_path):
    """Neither a wrong nor a right password is shown, whatever the error."""
    folder, address = remote
    (folder / "bad.jsonl").write_bytes(b'{"text": 1}\n' + news.read_bytes())
    wrong = address.replace("secret", "guessed")

    with pytest.raises(PolytopicError, match=r"reader:\*\*\*@.*cannot be read: 530"):
        count(f"{wrong}/bad.jsonl", client=client)
    with pytest.raises(PolytopicError, match=r"reader:\*\*\*@.*cannot hold results.*530"):
        suggest(pmm1, news, f"{wrong}/out", client=client)
    with pytest.raises(PolytopicError) as failure:
        count(f"{address}/bad.jsonl", blocksize=50_000, client=client)
    assert "line 1" in str(failure.value)
    assert "secret" not in str(failure.value)


def test_urls_of_files(tmp_path, news):
    """A file is read by the given URL; the files of a pattern share its prefix."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(news.read_bytes())

    assert [part.path for part in read(f"file://{file}").parts] == [f"file://{file}"]
    parts = read(f"file://{tmp_path}/*.jsonl", blocksize=50_000).parts
    assert {part.path for part in parts} == {f"file://{file}"}
