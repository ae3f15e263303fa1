"""Two checkouts of polytopic compared in one run: learning in a store, and serving labels.

    python benchmarks/two_versions.py OTHER_CHECKOUT [--rounds 5]

Rounds alternate between the checkouts, each in its own processes, on Reuters. The figures are
processor seconds, user and system together, which other load on the machine disturbs less than
the clock: learning 4,000 documents in batches of 500, 300 documents one by one, and answering
8,000 requests of 16 clients. The table has the median of each checkout and the median of the
ratios of neighbouring rounds.
"""

import argparse
import asyncio
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


def measure():
    """Measure the polytopic that this process imports; print the figures as JSON."""
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
            start = processor_seconds()
            for k in range(0, BATCHED, BATCH):
                store.learn(documents[k : k + BATCH])
            batched = processor_seconds() - start
            start = processor_seconds()
            for document in documents[BATCHED : BATCHED + SINGLE]:
                store.learn([document])
            single = processor_seconds() - start
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
    print(json.dumps({"batches": batched, "single documents": single, "requests": served}))


def run(checkout):
    """Return the figures of a checkout, measured in its own process."""
    environment = os.environ | {"PYTHONPATH": str(Path(checkout).resolve() / "src")}
    command = [sys.executable, __file__, "--measure"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", nargs="?", help="the checkout to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure()
        return
    if asked.other is None:
        parser.error("name the checkout to compare with.")
    rounds = []
    for _ in range(asked.rounds):
        rounds.append((run(asked.other), run(HERE)))
        print(json.dumps(rounds[-1]), file=sys.stderr, flush=True)
    rows = []
    for name in rounds[0][0]:
        theirs, ours = (np.array([pair[k][name] for pair in rounds]) for k in (0, 1))
        rows.append(
            (
                name,
                f"{np.median(theirs):.2f} s",
                f"{np.median(ours):.2f} s",
                f"{np.median(ours / theirs):.3f}",
            )
        )
    markdown(["", "other", "this", "this / other"], rows)


if __name__ == "__main__":
    main()
