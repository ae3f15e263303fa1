"""Samples mutants at random, runs the tests on them, and shows those that no test noticed."""

import argparse
import json
import random
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path

from tests.mutation.changes import find_mutants
from tests.mutation.runs import (
    PROJECT,
    SOURCE,
    Workspaces,
    modules_of,
    package_of,
    read_records,
    run_mutants,
)

PACKAGES = ("counts", "decision", "labels", "metrics", "models", "server", "store")
KEPT = PROJECT / "build" / "mutation"
SURVIVORS = KEPT / "survivors.json"
ENOUGH = 0.9  # of the mutants that can be noticed


def main():
    """Read the command line, run, and report."""
    arguments = _read_arguments()
    start = time.monotonic()
    mutants = [mutant for package in arguments.packages for mutant in _mutants_of(package)]
    if arguments.survivors:
        wanted = {tuple(key) for key in json.loads(SURVIVORS.read_text())}
        chosen = [mutant for mutant in mutants if mutant.key in wanted]
    else:
        size = min(arguments.sample, len(mutants))
        chosen = random.Random(arguments.seed).sample(mutants, size)
    equivalent = _equivalent()
    tested = [mutant for mutant in chosen if mutant.key[:-1] not in equivalent]
    print(f"{len(chosen)} of {len(mutants)} mutants", flush=True)

    with tempfile.TemporaryDirectory(prefix="polytopic-mutation-") as folder:
        workspaces = Workspaces(folder, arguments.workers)
        packages = {package_of(mutant.module) for mutant in tested}
        records = read_records(sorted(packages), workspaces, KEPT / "records")
        survivors = run_mutants(tested, records, workspaces, _report)

    _show_table(chosen, tested, survivors)
    print(f"{time.monotonic() - start:.0f} s")
    killed = len(tested) - len(survivors)
    sys.exit(killed < ENOUGH * len(tested))


def _read_arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="default: %(default)s")
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time")
    parser.add_argument("--survivors", action="store_true", help="those of the last run only")
    return parser.parse_args()


def _mutants_of(package):
    for file in modules_of(package):
        module = file.relative_to(PROJECT / SOURCE).as_posix()
        yield from find_mutants(module, file.read_text())


def _equivalent():
    """Return the mutants that behave like the source, by all of their key but the number."""
    text = Path(__file__).with_name("equivalent.toml").read_text()
    return {
        (entry["module"], entry["scope"], entry["before"], entry["after"])
        for entry in tomllib.loads(text).get("mutant", [])
    }


def _report(outcome, survivors):
    """Print an outcome, and keep the survivors so far: a run may be stopped."""
    mutant, found = outcome.mutant, "SURVIVED" if outcome.survived else "killed"
    print(f"{found} {mutant.module}:{mutant.first_line} {mutant.scope}", end=" ")
    print(f"({outcome.tests} tests, {outcome.seconds:.0f} s)", flush=True)
    if outcome.survived:
        print(f"  - {mutant.before}\n  + {mutant.after}", flush=True)
        SURVIVORS.write_text(json.dumps([survivor.key for survivor in survivors], indent=1))


def _show_table(chosen, tested, survivors):
    """Print how many mutants of each package were sampled, equivalent, killed and not."""
    counted = [
        Counter(package_of(mutant.module) for mutant in mutants)
        for mutants in (chosen, tested, survivors)
    ]
    print(f"{'':10}{'mutants':>9}{'equivalent':>12}{'killed':>8}{'survived':>10}{'killed %':>10}")
    rows = [(name, *(counts[name] for counts in counted)) for name in sorted(counted[0])]
    for name, all_, run, left in [*rows, ("all", *(counts.total() for counts in counted))]:
        share = 100 * (run - left) / run if run else 100
        print(f"{name:10}{all_:9}{all_ - run:12}{run - left:8}{left:10}{share:10.1f}")


if __name__ == "__main__":
    main()
