"""Two checkouts of polytopic compared in one run: models, start, learning in a store, serving.

    python benchmarks/two_versions.py OTHER_CHECKOUT [--rounds 5] [--parts model start store]

Rounds alternate between the checkouts, each in its own processes, on Reuters. Figures in seconds
are processor time, user and system together, which other load on the machine disturbs less than
the clock.

* ``model``: `Labeler` with MML and with PMM1 learns the training texts and labels the test texts,
  twice each, with the lower time counted; and the peak memory of the process, in MB.
* ``start``: `polytopic suggest` on one text, `polytopic --help` and `import sklearn`, the lowest of
  five.
* ``store``: learning 4,000 documents in batches of 500, 300 documents one by one, and answering
  8,000 requests of 16 clients.

The table has the median of each checkout and the median of the ratios of neighbouring rounds.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import markdown, split_documents

BATCHED, BATCH, SINGLE = 4000, 500, 300
REQUESTS, CLIENTS = 8000, 16
HERE = Path(__file__).parents[1]


def processor_seconds(who=resource.RUSAGE_SELF):
    """Return the processor seconds of this process, or of its children that have ended."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def lowest(function, repeats):
    """Return the lowest processor time of some calls, and what the last of them returned."""
    seconds = []
    for _ in range(repeats):
        before = processor_seconds() + processor_seconds(resource.RUSAGE_CHILDREN)
        result = function()
        after = processor_seconds() + processor_seconds(resource.RUSAGE_CHILDREN)
        seconds.append(after - before)
    return min(seconds), result


def measure_model(name):
    """Return the time to learn and to label, and the peak memory, of a `Labeler`."""
    from polytopic import Labeler

    train, test = split_documents("reuters21578")
    texts, labels = [d.text for d in train], [d.labels for d in train]
    Labeler(name).fit(texts[:50], labels[:50]).predict(texts[:50])  # loads kernels, dictionaries
    learning, labeler = lowest(lambda: Labeler(name).fit(texts, labels), 2)
    labelling, _ = lowest(lambda: labeler.predict([d.text for d in test]), 2)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        f"{name}: learn (s)": learning,
        f"{name}: label (s)": labelling,
        f"{name}: peak memory (MB)": memory,
    }


def measure_start():
    """Return the time that commands take to start, and that of importing scikit-learn."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model")
        texts = ["a late goal won the match", "the rover landed on mars"] * 10
        from polytopic import Labeler

        Labeler("mml").fit(texts, [["sport"], ["space"]] * 10).save(model)
        polytopic = [sys.executable, "-m", "polytopic"]
        commands = {
            "polytopic suggest (s)": [*polytopic, "suggest", str(model), "-"],
            "polytopic --help (s)": [*polytopic, "--help"],
            "import sklearn (s)": [sys.executable, "-c", "import sklearn"],
        }
        figures = {}
        for name, command in commands.items():
            text = json.dumps({"text": texts[0]}) + "\n"
            figures[name], _ = lowest(
                lambda command=command, text=text: subprocess.run(
                    command, input=text, capture_output=True, text=True, check=True
                ),
                6,
            )
    return figures


def measure_store():
    """Return the time to learn documents in a store, and to answer requests."""
    from load import Load
    from service import serving

    from polytopic import Store

    class Requests(Load):
        """A load of so many requests."""

        def done(self, *answer):
            super().done(*answer)
            if len(self.seconds["suggest"]) >= REQUESTS:
                self.until = 0.0

    documents, test = split_documents("reuters21578")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        with Store(path) as store:
            store.learn(documents[-50:])  # compiles, and loads dictionaries
            gc.collect()
            gc.freeze()  # or one of the two visits all imported objects while it learns
            start = processor_seconds()
            for k in range(0, BATCHED, BATCH):
                store.learn(documents[k : k + BATCH])
            batched = processor_seconds() - start
            start = processor_seconds()
            for document in documents[BATCHED : BATCHED + SINGLE]:
                store.learn([document])
            single = processor_seconds() - start
            if hasattr(Store, "assign"):
                store.assign()  # or the service does it in the background, once
        load = None
        before = processor_seconds(resource.RUSAGE_CHILDREN)
        with serving(path) as (host, _):
            load = Requests(host, "", test)
            asyncio.run(load.run(CLIENTS, 600))
        served = processor_seconds(resource.RUSAGE_CHILDREN) - before
        before = processor_seconds(resource.RUSAGE_CHILDREN)
        with serving(path):
            pass
        served -= processor_seconds(resource.RUSAGE_CHILDREN) - before  # its start
    if load.errors:
        raise SystemExit(f"{len(load.errors)} requests failed: {load.errors[0]}")
    return {
        "learn in batches (s)": batched,
        "learn single documents (s)": single,
        "answer requests (s)": served,
    }


PARTS = {
    "model": [lambda: measure_model("mml"), lambda: measure_model("pmm1")],
    "start": [measure_start],
    "store": [measure_store],
}


def run(checkout, part, k):
    """Return the figures of a part of a checkout, measured in its own process."""
    environment = os.environ | {"PYTHONPATH": str(Path(checkout).resolve() / "src")}
    command = [sys.executable, __file__, "--measure", part, str(k)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def run_all(checkout, parts):
    """Return the figures of all parts of a checkout."""
    figures = {}
    for part in parts:
        for k in range(len(PARTS[part])):
            figures |= run(checkout, part, k)
    return figures


def main():
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", nargs="?", help="the checkout to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        part, k = arguments.measure
        print(json.dumps(PARTS[part][int(k)]()))
        return
    if arguments.other is None:
        parser.error("name the checkout to compare with.")
    rounds = []
    for _ in range(arguments.rounds):
        rounds.append((run_all(arguments.other, arguments.parts), run_all(HERE, arguments.parts)))
        print(json.dumps(rounds[-1]), file=sys.stderr, flush=True)
    rows = []
    for name in rounds[0][0]:
        theirs, ours = (np.array([pair[k][name] for pair in rounds]) for k in (0, 1))
        ratio = np.median(ours / theirs)
        rows.append((name, f"{np.median(theirs):.2f}", f"{np.median(ours):.2f}", f"{ratio:.3f}"))
    markdown(["", "other", "this", "this / other"], rows)


if __name__ == "__main__":
    main()
