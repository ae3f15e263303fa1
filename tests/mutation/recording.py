"""A pytest plugin: learns which tests reach which lines, or runs chosen tests in a chosen order."""

import json
import os
import resource
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

FIXTURE = "fixture "  # begins the context of a shared fixture
TOO_LONG = "the test takes too long on the mutant"
MEMORY = 6 << 30  # bytes: a mutant may ask for all that there is

# The first example that fails is enough, and every run draws the same ones.
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
    """Do what the environment asks for."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if path := os.environ.get("MUTATION_RECORD"):
        config.pluginmanager.register(Recorder(Path(path), os.environ["MUTATION_SOURCE"]))
    if path := os.environ.get("MUTATION_TESTS"):
        # For an endless loop in compiled code, which does not see the limit of its test.
        seconds = int(os.environ["MUTATION_SECONDS"])
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
        config.pluginmanager.register(Chooser(json.loads(Path(path).read_text())))


class Chooser:
    """Runs some tests in the order in which they are given.

    Each may take so many seconds of the processor at most. On a busy machine a clock would stop
    tests that only wait for their turn, and a mutant would seem to be noticed.
    """

    def __init__(self, limits):
        self.limits = limits
        self.ranks = {name: rank for rank, name in enumerate(limits)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Leave out and sort."""
        chosen = [item for item in items if item.nodeid in self.ranks]
        items[:] = sorted(chosen, key=lambda item: self.ranks[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Let a test fail that takes too long, as by an endless loop."""

        def stop(*_):
            raise TimeoutError(TOO_LONG)

        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


class Recorder:
    """Writes down how long each test takes and which lines it reaches, itself or by fixtures."""

    def __init__(self, path, source):
        from coverage import Coverage

        self.path, self.source = path, Path(source)
        self.coverage = Coverage(data_file=None, config_file=False, source=[source])
        self.coverage.start()
        self.seconds, self.users = defaultdict(float), defaultdict(list)
        self.failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Leave out what starts a browser; learn who uses which fixture."""
        items[:] = [item for item in items if "browser" not in item.fixturenames]
        for item in items:
            for name in item.fixturenames:
                self.users[name].append(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Let what runs now count for a test."""
        self.running = item.nodeid
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """Let what a shared fixture runs count for all its users."""
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
        """Write it all."""
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
