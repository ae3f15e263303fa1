"""Standard streams that are full, closed, or without a reader."""

import os
import subprocess
import sys

import pytest

from polytopic.corpus import Document, load_sample, read_documents, write_documents
from polytopic.store import Store

POLYTOPIC = f"{sys.executable} -m polytopic"


def shell(command, **more):
    """Run a line of shell in which ``polytopic`` is the command."""
    line = f'polytopic() {{ {POLYTOPIC} "$@"; }}\n{command}'
    return subprocess.run(["/bin/bash", "-c", line], capture_output=True, timeout=300, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with documents of three days, a model, and a store of them."""
    folder = tmp_path_factory.mktemp("streams")
    documents = [
        Document(d.id, text=d.text, labels=d.labels, time=f"2024-05-{1 + n % 3:02}")
        for n, d in enumerate(load_sample()[:60])
    ]
    write_documents(documents, folder / "news.jsonl")
    done = shell("polytopic train news.jsonl --model nb --to news.model", cwd=folder)
    assert done.returncode == 0, done.stderr
    with Store(folder / "news.db", model="nb") as store:
        store.learn(documents)
    return folder


@pytest.mark.parametrize(
    "command", ["--help", "train --help", "suggest news.model news.jsonl", "store export news.db"]
)
def test_results_that_cannot_be_written(folder, command):
    """A full disk and a closed standard output give one sentence each, and exit code 1."""
    full = shell(f"polytopic {command} >/dev/full", cwd=folder)
    closed = shell(f"polytopic {command} >&-", cwd=folder)

    sentence = "Error: standard output cannot be written: {}.\n"
    assert (full.returncode, full.stderr.decode()) == (
        1,
        sentence.format("no space left on device"),
    )
    assert (closed.returncode, closed.stderr.decode()) == (
        1,
        sentence.format("bad file descriptor"),
    )


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-"])
def test_messages_that_cannot_be_written(folder, tmp_path, stderr):
    """Only the messages are lost; exit codes are as usual."""
    model = tmp_path / "again.model"

    learned = shell(f"polytopic train news.jsonl --model nb --to {model} {stderr}", cwd=folder)
    failed = shell(f"polytopic info nowhere {stderr}", cwd=folder)
    misused = shell(f"polytopic nonsense {stderr}", cwd=folder)

    assert [done.returncode for done in (learned, failed, misused)] == [0, 1, 2]
    assert model.read_bytes() == (folder / "news.model").read_bytes()


def test_closed_streams_do_not_pass_on_their_numbers(folder, tmp_path):
    """A database is never opened as standard output, which would write into it."""
    done = shell(
        f"polytopic store init {tmp_path}/new.db <&- >&- 2>&-; "
        f"polytopic store learn {tmp_path}/new.db news.jsonl <&- >&- 2>&-",
        cwd=folder,
    )

    assert done.returncode == 1  # the receipt could not be written
    with Store(tmp_path / "new.db", create=False) as store:
        assert store.verify().ok
        assert store.info()["documents"] == 60


def test_closed_standard_input(folder):
    """A command that reads standard input says so."""
    done = shell("polytopic suggest news.model - <&-; polytopic explain news.model <&-", cwd=folder)

    assert done.stderr.decode() == "Error: standard input is closed.\n" * 2


def test_compare_writes_its_files_without_a_reader(folder, tmp_path):
    """The reader of the progress may leave; every requested file is written completely."""
    names = [f"{tmp_path}/table.{ending}" for ending in ("md", "csv", "tex")]
    targets = " ".join(f"--to {name}" for name in names)
    compare = (
        "polytopic compare news.jsonl --models nb --protocol random --train 40 --test 20 "
        f"--repeats 2 --workers 1 --folder {tmp_path}/cells"
    )

    done = shell(f"{compare} {targets} 2>&1 | head -1; echo ${{PIPESTATUS[0]}}", cwd=folder)
    again = shell(f"{compare} {targets.replace('table', 'again')}", cwd=folder)

    assert again.returncode == 0, again.stderr
    assert done.stdout.splitlines()[-1] == b"1"  # the results had no reader
    for name in names:
        with open(name, "rb") as unread, open(name.replace("table", "again"), "rb") as read:
            assert unread.read() == read.read()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("explain news.model 'The wheat harvest.'", "--html"),
        ("map news.model", "--html"),
        ("store drift news.db", "--plot"),
    ],
)
def test_files_are_written_without_a_reader(folder, tmp_path, command, option):
    """A command that writes a file and results does so without a reader of the results."""
    if option == "--plot":
        pytest.importorskip("matplotlib")
    file = tmp_path / "file.png"

    done = shell(f"polytopic {command} {option} {file} >/dev/full", cwd=folder)

    assert done.returncode == 1
    assert file.stat().st_size > 0


def test_learning_continues_without_a_reader(folder, tmp_path):
    """Unread receipts do not stop the changes."""
    url = tmp_path / "new.db"

    done = shell(
        f"polytopic store init {url} --model nb && "
        f"polytopic store learn {url} news.jsonl --batch 5 | head -1; echo ${{PIPESTATUS[0]}}",
        cwd=folder,
    )

    assert done.stdout.splitlines()[-1] == b"1"
    with Store(url, create=False) as store:
        assert store.info()["documents"] == 60


def test_an_unseen_token_is_deleted(folder):
    """Its name can be used again."""
    done = shell("polytopic token create news.db robot >/dev/full", cwd=folder)

    assert done.returncode == 1
    with Store(folder / "news.db", create=False) as store:
        assert store.tokens.all() == []


def test_select_writes_its_file_without_messages(folder, tmp_path):
    """Without messages, skipped lines go unreported and the others are selected."""
    corpus = tmp_path / "some.jsonl"
    corpus.write_bytes(b"broken\n" * 3 + (folder / "news.jsonl").read_bytes())
    label = next(iter(read_documents(folder / "news.jsonl"))).labels[0]

    done = shell(
        f"polytopic select news.model {corpus} --on-error skip --topic {label} "
        f"--to {tmp_path}/found.jsonl 2>/dev/full",
        cwd=folder,
    )

    assert done.returncode == 0
    assert os.path.getsize(tmp_path / "found.jsonl") > 0
