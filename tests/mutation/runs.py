"""Run the tests on mutants, in copies of the project; the project itself never changes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.mutation.changes import Mutant
from tests.mutation.recording import TOO_LONG

PROJECT = Path(__file__).parents[2]
SOURCE = Path("src", "polytopic")
KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "SURVIVED"
GRACE = 30  # seconds that any test may take
FAILED, NO_TESTS = 1, 5  # exit statuses of pytest
PYTEST = [
    *(sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=line"),
    *("-p", "no:cacheprovider", "-p", "tests.mutation.recording"),
    *("-m", "not corpus and not long"),
]


class Workspace:
    """A copy of the project in which one mutant at a time is tested."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for name in ("src", "tests"):  # with times, so that compiled kernels stay valid
            shutil.copytree(PROJECT / name, self.folder / name)
        shutil.copy2(PROJECT / "pyproject.toml", self.folder)

    def record(self, file):
        """Run a test file on the unchanged source; return seconds by test and tests by line."""
        path = self.folder / "record.json"
        source = str(self.folder / SOURCE)
        variables = {"MUTATION_RECORD": str(path), "MUTATION_SOURCE": source}
        status, output = self._pytest([file], variables, timeout=None)
        if status not in (0, FAILED, NO_TESTS):
            raise SystemExit(f"{file} cannot be run without any mutant:\n{output}")
        return json.loads(path.read_text())

    def test(self, mutant, limits) -> str:
        """Test a mutant; each test has a limit in processor seconds. Return the result."""
        path = self.folder / "tests.json"
        path.write_text(json.dumps(limits))
        file = self.folder / SOURCE / mutant.module
        original = file.with_suffix(".original")
        file.rename(original)
        try:
            file.write_text(mutant.source())
            files = sorted({test.partition("::")[0] for test in limits})
            total = int(60 + sum(limit - GRACE for limit in limits.values()))
            variables = {"MUTATION_TESTS": str(path), "MUTATION_SECONDS": str(total)}
            status, output = self._pytest(["-x", *files], variables, timeout=10 * total)
        finally:
            original.replace(file)
        if status in (None, -signal.SIGXCPU) or TOO_LONG in output:
            return TIMED_OUT
        return SURVIVED if status in (0, NO_TESTS) else KILLED

    def _pytest(self, arguments, variables, timeout):
        """Return the exit status, None after the timeout, and the output."""
        own = {
            "PYTHONPATH": str(self.folder / "src"),
            "HYPOTHESIS_PROFILE": "mutation",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # plugins of others would double the time
        }
        process = subprocess.Popen(
            [*PYTEST, *arguments],
            cwd=self.folder,
            env={**os.environ, **own, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _stop(process)
            return None, ""
        return process.returncode, output


def _stop(process):
    """Interrupt a run, so that its fixtures clean up; kill it with its children if that fails."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Workspaces:
    """Several copies of the project, used in parallel."""

    def __init__(self, folder, number):
        self._idle = SimpleQueue()
        self._pool = ThreadPoolExecutor(number)
        for name in range(number):
            self._idle.put(Workspace(Path(folder, str(name))))

    def map(self, function, items):
        """Return the results of a function of a workspace and an item, for all items."""

        def call(item):
            workspace = self._idle.get()
            try:
                return function(workspace, item)
            finally:
                self._idle.put(workspace)

        return list(self._pool.map(call, items))


def read_records(packages, workspaces, cache):
    """Return which tests of each package reach which lines.

    Parameters
    ----------
    packages : iterable of str
    workspaces : Workspaces
    cache : Path
        A folder for the records of test files, which are valid until these or the source change.

    Returns
    -------
    dict of str to dict
        For each package the seconds of each test, and for each module the tests of each line.
    """
    cache.mkdir(parents=True, exist_ok=True)

    def read(workspace, job):
        package, file = job
        path = cache / f"{_digest(package, file)}.json"
        if path.exists():
            return package, json.loads(path.read_text())
        record = workspace.record(file)
        if record["failed"]:
            print(f"left out, because they fail without any mutant: {', '.join(record['failed'])}")
        else:
            path.write_text(json.dumps(record))
        return package, record

    jobs = [(package, file) for package in packages for file in own_tests(package)]
    records = {package: {"seconds": {}, "lines": {}} for package in packages}
    for package, package_record in workspaces.map(read, jobs):
        records[package]["seconds"] |= package_record["seconds"]
        for module, lines in package_record["lines"].items():
            known = records[package]["lines"].setdefault(module, {})
            for line, tests in lines.items():
                known.setdefault(int(line), []).extend(tests)
    return records


def _digest(package, file):
    """Return a digest of the present state of a test file and of the package that it tests."""
    files = [PROJECT / file, *modules_of(package)]
    return sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def own_tests(package):
    """Return the files of a package's own tests."""
    paths = [PROJECT / "tests" / f"test_{package}.py", *PROJECT.glob(f"tests/{package}/test_*.py")]
    return sorted(str(path.relative_to(PROJECT)) for path in paths if path.exists())


def modules_of(package):
    """Return the files of a package."""
    root = PROJECT / SOURCE
    paths = [root / f"{package}.py", *(root / package).rglob("*.py")]
    return sorted(path for path in paths if path.exists())


def package_of(module):
    """Return the package of a module, such as ``models`` of ``models/pmm.py``."""
    return Path(module).parts[0].removesuffix(".py")


@dataclass
class Outcome:
    """The result of testing a mutant."""

    mutant: Mutant
    result: str
    tests: int
    seconds: float


def run_mutants(mutants, records, workspaces, report):
    """Test mutants.

    Parameters
    ----------
    mutants : list of Mutant
    records : dict of str to dict
        The result of `read_records`.
    workspaces : Workspaces
    report : callable
        Called with the outcomes so far, after each mutant.

    Returns
    -------
    list of Outcome
    """
    outcomes, one_at_a_time = [], Lock()

    def run(workspace, mutant):
        record = records[package_of(mutant.module)]
        tests = choose_tests(mutant, record)
        limits = {test: GRACE + 5 * record["seconds"][test] for test in tests}
        start = time.monotonic()
        result = workspace.test(mutant, limits) if tests else SURVIVED
        outcome = Outcome(mutant, result, len(tests), time.monotonic() - start)
        with one_at_a_time:
            outcomes.append(outcome)
            report(outcomes)

    workspaces.map(run, mutants)
    return outcomes


def choose_tests(mutant, record):
    """Return the tests that reach a mutant: fast files first, and fast tests first in each file.

    Code that runs when its module is imported may affect all tests that reach the module or, if
    there are none, all tests. It may also affect tests that reach no line at all, as those look at
    imported objects, such as signatures.
    """
    lines = record["lines"].get(mutant.module, {})
    at_place = range(mutant.first_line, mutant.last_line + 1)
    chosen = {test for line in at_place for test in lines.get(line, [])}
    if mutant.at_import:
        chosen = {test for tests in lines.values() for test in tests}
        modules = record["lines"].values()
        reaching = {test for each in modules for tests in each.values() for test in tests}
        chosen = (
            chosen | (record["seconds"].keys() - reaching) if chosen else set(record["seconds"])
        )
    files = {}
    for test in chosen:
        file = test.partition("::")[0]
        files[file] = files.get(file, 0) + record["seconds"][test]

    def cost(test):
        file = test.partition("::")[0]
        return files[file], file, record["seconds"][test]

    return sorted(chosen, key=cost)
