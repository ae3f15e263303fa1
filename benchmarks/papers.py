"""Table 4 and Figure 2 of Kazawa et al. on web pages.

Usage: papers.py run FOLDER, then papers.py show FOLDER [FIGURE.png]. The folder stores a file for
each method, set, split and number of training pages; finished ones are not run again.
"""

import argparse
import sys
import time
from functools import cache
from pathlib import Path

import papers_methods as methods
from common import bag_counts, random_halves
from papers_tables import SETS, show

from polytopic.experiments.protocols import read_json, write_json
from polytopic.metrics import macro_f1, samples_f1, subset_accuracy

CURVE = (2000, 250, 500, 1000)
JOBS = {  # by their cost, cheap ones first
    "MD": (methods.dice, CURVE),
    "MC": (methods.cosine, CURVE),
    "MCs": (methods.cosine_near, (2000,)),
    "PMM1": (methods.pmm1, CURVE),
    "SV": (methods.margins, CURVE),
    "BO": (methods.rules, CURVE),
}
MEASURES = (samples_f1, subset_accuracy, macro_f1)

pages = cache(bag_counts)


def run(folder, jobs, sets, n_splits):
    """Run what is not yet in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [
        (job, split, n_train, name)
        for split in range(n_splits)
        for job in jobs
        for n_train in JOBS[job][1]
        for name in sets
    ]
    for job, split, n_train, name in tasks:
        path = folder / f"{job}-{name}-{n_train}-{split}.json"
        if not path.exists():
            start = time.process_time()
            write_json(path, measure(job, name, n_train, split))
            print(path.stem, f"{time.process_time() - start:.1f} s", file=sys.stderr, flush=True)


def measure(job, name, n_train, split):
    """Return F, subset accuracy, macro F1 and the labels given to a page, by variant."""
    X, Y = pages(f"yahoo-{name}-full")
    train, test = random_halves(X.shape[0], split)
    train = train[:n_train]
    answers = JOBS[job][0](X[train], Y[train], X[test], Y[test])
    return {
        variant: [*(float(f(Y[test], sets)) for f in MEASURES), float(sets.sum() / len(test))]
        for variant, sets in answers.items()
    }


def load_results(folder):
    """Return what is in the folder: job, set, training pages, split and its figures."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        job, name, n_train, split = path.stem.split("-")
        found[job, name, int(n_train), int(split)] = read_json(path)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("figure", type=Path, nargs="?")
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.folder, arguments.jobs, arguments.sets, arguments.splits)
    else:
        show(load_results(arguments.folder), arguments.figure)
