"""Sample mutants at random, run the tests on them, and show those that no test notices."""

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
    KILLED,
    PROJECT,
    SOURCE,
    SURVIVED,
    TIMED_OUT,
    Workspaces,
    modules_of,
    package_of,
    read_records,
    run_mutants,
)

PACKAGES = ("counts", "decision", "labels", "metrics", "models", "server", "store")
CACHE = PROJECT / "build" / "mutation"
SURVIVORS = CACHE / "survivors.json"
MAX_SURVIVORS = 0.1  # of the mutants that can be noticed


def main():
    """Read the command line, run, and report."""
    arguments = _read_arguments()
    start = time.monotonic()
    mutants = [mutant for package in arguments.packages for mutant in _mutants_of(package)]
    if arguments.survivors:
        keys = {tuple(key) for key in json.loads(SURVIVORS.read_text())}
        chosen = [mutant for mutant in mutants if mutant.key in keys]
    else:
        size = min(arguments.sample, len(mutants))
        chosen = random.Random(arguments.seed).sample(mutants, size)
    equivalent = _equivalent()
    tested = [mutant for mutant in chosen if mutant.key[:-1] not in equivalent]
    print(f"{len(chosen)} of {len(mutants)} mutants", flush=True)

    with tempfile.TemporaryDirectory(prefix="polytopic-mutation-") as folder:
        workspaces = Workspaces(folder, arguments.workers)
        packages = {package_of(mutant.module) for mutant in tested}
        records = read_records(sorted(packages), workspaces, CACHE / "records")
        outcomes = run_mutants(tested, records, workspaces, _report)

    _show_table(chosen, outcomes)
    print(f"{time.monotonic() - start:.0f} s")
    survived = sum(outcome.result == SURVIVED for outcome in outcomes)
    sys.exit(survived > MAX_SURVIVORS * len(outcomes))


def _read_arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="default: %(default)s")
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time")
    parser.add_argument("--survivors", action="store_true", help="only those of the last run")
    return parser.parse_args()


def _mutants_of(package):
    for file in modules_of(package):
        module = file.relative_to(PROJECT / SOURCE).as_posix()
        yield from find_mutants(module, file.read_text())


def _equivalent():
    """Return the keys of the mutants that behave like the source, without their numbers."""
    text = Path(__file__).with_name("equivalent.toml").read_text()
    return {
        (entry["module"], entry["scope"], entry["before"], entry["after"])
        for entry in tomllib.loads(text).get("mutant", [])
    }


def _report(outcomes):
    """Print the last outcome, and store the survivors so far, as a run may be stopped."""
    last = outcomes[-1]
    mutant = last.mutant
    print(f"{last.result} {mutant.module}:{mutant.first_line} {mutant.scope}", end=" ")
    print(f"({last.tests} tests, {last.seconds:.0f} s)", flush=True)
    if last.result == SURVIVED:
        print(f"  - {mutant.before}\n  + {mutant.after}", flush=True)
    survivors = [outcome.mutant.key for outcome in outcomes if outcome.result == SURVIVED]
    SURVIVORS.write_text(json.dumps(survivors, indent=1))


def _show_table(chosen, outcomes):
    """Print how many mutants of each package were noticed."""
    counts = Counter((package_of(o.mutant.module), o.result) for o in outcomes)
    sampled = Counter(package_of(mutant.module) for mutant in chosen)
    columns = (KILLED, TIMED_OUT, SURVIVED)
    print(f"{'':10}{'mutants':>10}{'equivalent':>12}", *(f"{name:>10}" for name in columns))
    for name in [*sorted(sampled), "all"]:
        own = [name] if name in sampled else list(sampled)
        row = [sum(counts[package, column] for package in own) for column in columns]
        total = sum(sampled[package] for package in own)
        print(f"{name:10}{total:10}{total - sum(row):12}", *(f"{n:10}" for n in row))


if __name__ == "__main__":
    main()
