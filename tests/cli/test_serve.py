"""The commands serve and token."""

import json
import socket
import subprocess
import sys
import time

import httpx
import pytest

from polytopic import Store
from polytopic.corpus import load_sample
from tests.cli.processes import run_polytopic


@pytest.fixture
def store(tmp_path):
    """Return the path of a store with the sample."""
    with Store(tmp_path / "news.db") as store:
        store.learn(load_sample())
    return tmp_path / "news.db"


def run(*arguments, code=0):
    """Run the command; return its output and its messages."""
    done = run_polytopic(*arguments)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_tokens(store):
    """A token is shown once and stored as a digest; its name is unique, and can be revoked."""
    token = run("token", "create", store, "me", "--role", "admin")[0].strip()

    (listed,) = [json.loads(line) for line in run("token", "list", store)[0].splitlines()]
    assert (listed["name"], listed["role"]) == ("me", "admin")
    assert token.encode() not in store.read_bytes()
    assert "a token 'me' exists" in run("token", "create", store, "me", code=1)[1]
    run("token", "revoke", store, "me")
    assert run("token", "list", store)[0] == ""
    assert "there is no token 'me'" in run("token", "revoke", store, "me", code=1)[1]


def test_tokens_need_no_service(store):
    """Tokens can be created without the libraries of the service."""
    code = (
        "import sys; sys.modules['fastapi'] = None\n"
        "from polytopic.cli import main\n"
        f"main(['token', 'create', {str(store)!r}, 'me'])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert done.stdout.startswith("polytopic_"), done.stderr


def test_other_addresses_need_tokens(store):
    """Without tokens, the service refuses to listen there, in one clear sentence."""
    _, message = run("serve", store, "--host", "192.0.2.1", code=1)

    assert "can be reached from other machines" in message
    assert "polytopic token create" in message


def test_what_cannot_be_served(tmp_path):
    """A missing file, or a file that is neither a store nor a model."""
    (tmp_path / "x").write_text("x")

    assert "does not exist" in run("serve", tmp_path / "none", code=1)[1]
    assert "is not a polytopic model file" in run("serve", tmp_path / "x", code=1)[1]


def test_serving(store):
    """A process that answers, learns, and keeps what it acknowledged when it is killed."""
    token = run("token", "create", store, "me")[0].strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "polytopic", "serve", str(store), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
    try:
        for _ in range(600):
            try:
                if client.get("/health/ready").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        assert client.post("/v1/suggest", json={"text": "A film"}).status_code == 200
        documents = [{"id": "new", "text": "Rye.", "labels": ["grain"]}]
        headers = {"Authorization": f"Bearer {token}"}
        done = client.post("/v1/learn", json={"documents": documents}, headers=headers)
        assert done.json()["learned"] == 1
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        client.close()

    with Store(store) as again:
        assert again.verify().ok
        assert again.verify().documents == len(load_sample()) + 1
