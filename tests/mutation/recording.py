"""A pytest plugin that records which tests reach which lines, or runs some tests in an order."""

import json
import os
import resource
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

FIXTURE = "fixture "  # how the context of a shared fixture begins
TOO_LONG = "the test takes too long on the mutant"
MEMORY = 6 << 30  # bytes, as a mutant may allocate everything

# Stop at the first example that fails, and draw the same ones in every run.
settings.register_profile(
    "mutation",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def pytest_configure(config):
    """Register the plugin that environment variables select."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if path := os.environ.get("MUTATION_RECORD"):
        config.pluginmanager.register(Recorder(Path(path), os.environ["MUTATION_SOURCE"]))
    if path := os.environ.get("MUTATION_TESTS"):
        # Ends endless loops in compiled code, which the time limit of a test cannot interrupt.
        seconds = int(os.environ["MUTATION_SECONDS"])
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
        config.pluginmanager.register(Chooser(json.loads(Path(path).read_text())))


class Chooser:
    """Runs some tests in a given order, each with a limit of processor time.

    On a busy machine, a limit by the clock would stop tests that only wait for their turn, and a
    mutant would seem to be noticed.
    """

    def __init__(self, limits):
        self.limits = limits
        self.ranks = {name: rank for rank, name in enumerate(limits)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Select and sort the tests."""
        chosen = [item for item in items if item.nodeid in self.ranks]
        items[:] = sorted(chosen, key=lambda item: self.ranks[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Let a test fail that takes too long, as in an endless loop."""

        def stop(*_):
            raise TimeoutError(TOO_LONG)

        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


class Recorder:
    """Records how long each test takes, and which lines it and its fixtures reach."""

    def __init__(self, path, source):
        from coverage import Coverage

        self.path, self.source = path, Path(source)
        self.coverage = Coverage(data_file=None, config_file=False, source=[source])
        self.coverage.start()
        self.seconds, self.users = defaultdict(float), defaultdict(list)
        self.failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Leave out tests that start a browser; note which tests use which fixture."""
        items[:] = [item for item in items if "browser" not in item.fixturenames]
        for item in items:
            for name in item.fixturenames:
                self.users[name].append(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Attribute the lines that run now to a test."""
        self.running = item.nodeid
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """Attribute the lines of a shared fixture to all tests that use it."""
        if fixturedef.scope == "function":
            return (yield)
        self.coverage.switch_context(FIXTURE + fixturedef.argname)
        try:
            return (yield)
        finally:
            self.coverage.switch_context(self.running)

    def pytest_runtest_logreport(self, report):
        """Add up the time of a test; note whether it fails."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self):
        """Write the record to its file."""
        self.coverage.stop()
        data, lines = self.coverage.get_data(), {}
        for file in data.measured_files():
            lines[str(Path(file).relative_to(self.source))] = {
                line: sorted({test for name in names if name for test in self._tests_of(name)})
                for line, names in data.contexts_by_lineno(file).items()
            }
        passed = {name: time for name, time in self.seconds.items() if name not in self.failed}
        record = {"seconds": passed, "lines": lines, "failed": sorted(self.failed)}
        self.path.write_text(json.dumps(record))

    def _tests_of(self, context):
        if context.startswith(FIXTURE):
            tests = self.users[context.removeprefix(FIXTURE)]
        else:
            tests = [context]
        return [test for test in tests if test not in self.failed]
