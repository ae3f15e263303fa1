"""Interrupted commands exit with 130 soon, and leave no incomplete files."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest

from polytopic import Labeler
from polytopic.corpus import read_documents
from polytopic.store import Store
from polytopic.text import Analyzer

pytestmark = pytest.mark.compiled

N_DOCS = 6000
SOON = 120  # seconds; one or two if the machine is not busy
POLYTOPIC = [sys.executable, "-m", "polytopic"]
COMMANDS = {  # each reads all documents from standard input
    "train": ["train", "-", "--to", "new.model"],
    "train pdmm": ["train", "-", "--to", "new.model", "--model", "pdmm"],
    "train boostexter": ["train", "-", "--to", "new.model", "--model", "boostexter"],
    "suggest": ["suggest", "news.model", "-"],
    "select": ["select", "news.model", "-", "--topic", "l1", "--to", "selected.jsonl"],
    "eval": ["eval", "news.model", "-"],
    "audit": ["audit", "-", "--model", "pmm1"],
    "compare": ["compare", "-", "--models", "pmm1,mml", "--folder", "results"],
    "store learn": ["store", "learn", "news.db", "-"],
}
NEW_FILES = ("new.model", "selected.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with documents, a model and a store."""
    folder = tmp_path_factory.mktemp("interrupts") / "work"
    folder.mkdir()
    draw = random.Random(0)
    words = [f"{a}{b}{c}" for a in "bdfgklmn" for b in "aeiou" for c in "bdfgklmnprst"]
    with open(folder / "news.jsonl", "w") as file:
        for number in range(N_DOCS):
            labels = draw.sample(range(12), draw.choice([1, 1, 2]))
            own = [word for label in labels for word in words[40 * label : 40 * label + 40]]
            text = " ".join(draw.choices(own, k=20) + draw.choices(words, k=40))
            line = {"id": str(number), "text": text, "labels": [f"l{label}" for label in labels]}
            file.write(json.dumps(line) + "\n")
    few = list(read_documents(folder / "news.jsonl"))[:500]
    Labeler("pmm1").fit(few).save(folder / "news.model")
    Store(folder / "news.db", analyzer=Analyzer(None)).close()
    return folder


class Command:
    """A command that runs in a folder, in its own process group."""

    def __init__(self, folder, *arguments):
        self.errors = folder.parent / "stderr"
        with open(folder.parent / "stdout", "wb") as out, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [*POLYTOPIC, *arguments],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=errors,
                start_new_session=True,
                # a background job of a shell inherits that interrupts are ignored
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    def send_file(self, path):
        """Send a file to its standard input; nearly all of it has been read when this returns."""
        with self.process.stdin as stdin:
            stdin.write(path.read_bytes())

    def wait_for(self, word):
        """Wait until it writes a word to standard error."""
        wait_until(lambda: word in self.errors.read_text())

    def interrupt(self, *, group=False):
        """Interrupt it, or its whole group as a terminal does; return its exit code and errors.

        Fails if a process of the group is left.
        """
        if group:
            os.killpg(self.process.pid, signal.SIGINT)
        else:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(SOON)
        wait_until(self._has_no_process)
        return code, self.errors.read_text()

    def _has_no_process(self):
        return not any(
            process.info["status"] != psutil.STATUS_ZOMBIE
            for process in psutil.process_iter(["pid", "status"])
            if _group(process.info["pid"]) == self.process.pid
        )


def _group(number):
    """Return the group of a process; None if it has ended."""
    try:
        return os.getpgid(number)
    except ProcessLookupError:
        return None


def wait_until(condition):
    """Wait until a condition holds; fail if it takes too long."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < SOON
        time.sleep(0.05)


@pytest.mark.parametrize("delay", [0.0, 0.7])
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupted_command_exits_soon(folder, name, delay):
    """It exits with 130 and one short line, and leaves no file and no process."""
    outcome = run_and_interrupt(folder, name, delay)

    while delay and outcome[0] in (0, -signal.SIGINT):  # it ended before the interrupt
        for file in NEW_FILES:
            (folder / file).unlink(missing_ok=True)
        delay /= 2
        outcome = run_and_interrupt(folder, name, delay)

    assert outcome == (130, "Interrupted.\n")
    expected_files = {"results", "news.db-shm", "news.db-wal"}  # the last two: the store's log
    assert set(os.listdir(folder)) - expected_files == {"news.jsonl", "news.model", "news.db"}


def run_and_interrupt(folder, name, delay):
    """Run a command, interrupt it after a delay, and return its exit code and errors."""
    command = Command(folder, *COMMANDS[name])
    command.send_file(folder / "news.jsonl")
    time.sleep(delay)
    return command.interrupt()


@pytest.mark.parametrize("delay", [0.0, 0.7])
def test_an_interrupted_cluster_ends(folder, delay):
    """Its workers end as well: a terminal interrupts the whole group."""
    command = Command(folder, "train", "news.jsonl", "--to", "new.model", "--workers", "2")
    command.wait_for("dashboard")
    time.sleep(delay)

    code, errors = command.interrupt(group=True)

    assert code == 130
    assert errors.splitlines()[-1] == "Interrupted."  # Dask's workers may report it before
    assert not (folder / "new.model").exists()


def test_an_interrupted_store_has_whole_batches(folder, tmp_path):
    """Every batch with a receipt was learned; the receipt of the last one may be missing."""
    path = str(tmp_path / "new.db")
    Store(path, analyzer=Analyzer(None)).close()
    command = Command(folder, "store", "learn", path, "news.jsonl", "--batch", "100")
    out = folder.parent / "stdout"
    wait_until(lambda: out.read_text().count("\n") >= 3)

    assert command.interrupt() == (130, "Interrupted.\n")

    n_receipts = len(out.read_text().splitlines())
    with Store(path, create=False) as store:
        store.verify()
        assert store.info()["documents"] in {100 * n_receipts, 100 * n_receipts + 100}


def test_an_interrupted_service_ends(folder):
    """It finishes pending requests, and exits like other commands."""
    command = Command(folder, "serve", "news.model", "--port", "0")
    command.wait_for("Serving")

    code, errors = command.interrupt()

    assert code == 130
    assert errors.splitlines()[1:] == ["Interrupted."]
