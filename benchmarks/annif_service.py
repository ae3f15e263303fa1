"""Annif's service compared with ours on Reuters, with one worker each, in one run.

Annif uses its bonsai back end (Omikuji's trees). One, eight and 64 clients ask each service in
turn for one document at a time. Annif finds words with a regular expression, which is faster than
its own analyzers and needs no downloads.
"""

import argparse
import json
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from common import markdown, split_documents
from load import Load, request
from service import free_port, run, serving

from polytopic import Store

PROJECT = """[bonsai]
name=bonsai
language=en
backend=omikuji
analyzer=words
vocab=topics
cluster_balanced=False
cluster_k=100
max_depth=3
"""
SERVED = """import re

import annif
from annif.analyzer import register_analyzer


class Words:
    name = "words"
    find = re.compile(r"[^\\W\\d_]{2,}").findall

    def __init__(self, param=None):
        pass

    @staticmethod
    def is_available():
        return True

    def tokenize_words(self, text, filter=True):
        return self.find(text.lower())


register_analyzer(Words)
application = annif.create_app()
"""
LEARN = "import served; from annif.cli import cli; cli()"
ASKED = "/v1/projects/bonsai/suggest"


class AnnifLoad(Load):
    """What clients send to Annif: forms."""

    def bodies(self):
        """Return the requests for labels."""
        forms = (urllib.parse.urlencode({"text": d.text}).encode() for d in self.documents)
        kind = "application/x-www-form-urlencoded"
        return [request(self.host, ASKED, form, kind=kind) for form in forms]


def learn_annif(annif, folder, train):
    """Make a project of the training documents."""
    labels = sorted({label for d in train for label in d.labels})
    uris = {label: f"<http://example.org/{label}>" for label in labels}
    Path(folder, "projects.cfg").write_text(PROJECT)
    Path(folder, "served.py").write_text(SERVED)
    python = str(Path(annif).with_name("python"))
    Path(folder, "topics.tsv").write_text("".join(f"{u}\t{name}\n" for name, u in uris.items()))
    with Path(folder, "train.tsv").open("w") as file:
        for d in train:
            named = " ".join(uris[label] for label in d.labels)
            file.write(f"{' '.join(d.text.split())}\t{named}\n")
    vocabulary = ["load-vocab", "--language", "en", "topics", "topics.tsv"]
    for command in (vocabulary, ["train", "bonsai", "train.tsv"]):
        subprocess.run([python, "-c", LEARN, *command], cwd=folder, check=True, capture_output=True)


@contextmanager
def serving_annif(annif, folder):
    """Serve a project; give its address."""
    port = free_port()
    gunicorn = str(Path(annif).with_name("gunicorn"))
    worker = ["--worker-class", "uvicorn.workers.UvicornWorker", "--workers", "1"]
    command = [gunicorn, *worker, "--bind", f"127.0.0.1:{port}", "served:application"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        while not is_ready(port):
            if process.poll() is not None:
                raise SystemExit("Annif did not start.")
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def is_ready(port):
    """Return whether Annif answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/projects") as answer:
            return bool(json.load(answer))
    except (urllib.error.URLError, ConnectionError):
        return False


def measure(load, clients, seconds):
    """Return answers a second, and the middle and the 99th percentile of their time in ms."""
    spent = run(load.run(clients, seconds))
    if load.errors:
        raise SystemExit(f"{len(load.errors)} errors: {load.errors[0]}")
    p50, p99 = np.percentile(1e3 * np.array(load.seconds["suggest"]), [50, 99])
    return len(load.seconds["suggest"]) / spent, p50, p99


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("annif", help="the command annif, in a folder that also has gunicorn")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    train, test = split_documents("reuters21578")
    with tempfile.TemporaryDirectory() as folder:
        learn_annif(arguments.annif, folder, train)
        path = Path(folder) / "store.db"
        with Store(path) as store:
            store.learn(train)
        rows = []
        with serving(path) as (ours, _), serving_annif(arguments.annif, folder) as theirs:
            for clients in (1, 8, 64):
                found = []
                for _ in range(arguments.repeats + 1):  # the first warms
                    them = measure(AnnifLoad(theirs, "", test), clients, arguments.seconds)
                    us = measure(Load(ours, "", test), clients, arguments.seconds)
                    found.append((*them, *us, us[0] / them[0]))
                middle = np.median(found[1:], axis=0)
                spread = [f"{number:.1f}" for number in sorted(row[-1] for row in found[1:])]
                rows.append((clients, *(f"{n:,.1f}" for n in middle), " – ".join(spread)))
        what = ("a second", "p50, ms", "p99, ms")
        titles = [f"{who}: {one}" for who in ("Annif", "polytopic") for one in what]
        markdown(["clients", *titles, "ratio", "ratios"], rows)
