"""The tests that are run on a mutant."""

from tests.mutation.changes import find_mutants
from tests.mutation.runs import choose_tests, modules_of, own_tests, package_of

SECONDS = {"slow.py::a": 5.0, "slow.py::b": 1.0, "quick.py::c": 2.0, "quick.py::d": 1.0}


def record(lines):
    """Return the record of a package with one module."""
    return {"seconds": SECONDS, "lines": {"module.py": lines}}


def mutants_of(source):
    """Return the mutants of the module."""
    return find_mutants("module.py", source)


def test_tests_that_reach_the_line():
    """Tests that do not reach the changed line are left out; fast files and tests come first."""
    *_, mutant = mutants_of("def f(a):\n    a()\n")
    lines = {2: ["slow.py::a", "slow.py::b", "quick.py::c"], 1: ["quick.py::d"]}

    assert choose_tests(mutant, record(lines)) == ["quick.py::c", "slow.py::b", "slow.py::a"]


def test_line_that_no_test_reaches():
    """A fault on a line that no test reaches survives without a run."""
    *_, mutant = mutants_of("def f(a):\n    a()\n")

    assert choose_tests(mutant, record({1: ["quick.py::c"]})) == []


def test_what_runs_at_import():
    """A fault outside functions may affect all tests of the module or, without any, all tests."""
    mutant, *_ = mutants_of("a = 1\n\ndef f():\n    pass\n")
    others = {"other.py": {1: ["quick.py::d", "slow.py::a", "slow.py::b"]}}
    reached = record({1: [], 4: ["quick.py::c"]})

    assert choose_tests(mutant, reached | {"lines": reached["lines"] | others}) == ["quick.py::c"]
    assert set(choose_tests(mutant, record({1: []}))) == set(SECONDS)


def test_tests_that_look_at_what_was_imported():
    """A fault outside functions may affect tests that reach no line of any module."""
    mutant, *_ = mutants_of("a = 1\n\ndef f():\n    pass\n")
    others = {"other.py": {1: ["slow.py::a", "slow.py::b"]}}
    reached = record({1: [], 4: ["quick.py::c"]})

    chosen = choose_tests(mutant, reached | {"lines": reached["lines"] | others})

    assert set(chosen) == {"quick.py::c", "quick.py::d"}


def test_tests_mirror_the_source():
    """A package is tested by the folder or the file of its name."""
    assert own_tests("modelfile") == ["tests/test_modelfile.py"]
    assert "tests/models/test_count_models.py" in own_tests("models")
    assert {package_of("lines.py"), package_of("server/pages/routes.py")} == {"lines", "server"}
    assert [path.name for path in modules_of("modelfile")] == ["modelfile.py"]
