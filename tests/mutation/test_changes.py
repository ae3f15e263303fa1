"""The mutants of small modules."""

import pytest

from tests.mutation.changes import find_mutants


def changed(source):
    """Return the changed statements of all mutants of a module."""
    return {mutant.after for mutant in find_mutants("module.py", source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", {"a = b <= c"}),
        ("a = b == c", {"a = b != c"}),
        ("a = b + c", {"a = b - c"}),
        ("a += b", {"a -= b", "pass"}),
        ("a = b and c", {"a = b or c"}),
        ("a = not b", {"a = b"}),
        ("a = 7", {"a = 8", "a = 6"}),
        ("a = 0.5", {"a = 1.5"}),
        ("a = True", {"a = False"}),
        ("a = 'b'", {"a = 'XXb'"}),
        ("a = max(b, c)", {"a = min(b, c)"}),
        ("a = b(c, d)", {"a = b(d, c)"}),
        ("a = b(c, d=e)", {"a = b(c)"}),
        ("b(c)", {"pass"}),
        ("a.b = c", {"pass"}),
        ("if a: b", {"if not a:"}),
        ("a = b if c else d", {"a = b if not c else d"}),
        ("a = [b for b in c if b]", {"a = [b for b in c if not b]"}),
        ("def a(b=1): pass", {"def a(b=2):", "def a(b=0):"}),
        ("def a(): return b", {"return None"}),
        ("raise A('b') from c", {"pass"}),
    ],
)
def test_changes_of_a_statement(source, expected):
    """Each kind of statement and expression has its own changes."""
    assert changed(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""Documentation."""',
        "import a",
        "__all__ = ['a']",
        "def a(b: 'c | d') -> 'e': pass",
        "logger.info('a', b=1)",
        "if TYPE_CHECKING: a = 1",
        "a = f'{b + 1}'",
        "a = zip(b, strict=True)",
        "a = check_scalar('a')",
        "a = b",
        "return None",
    ],
)
def test_what_stays(source):
    """Documentation, types, messages and logs stay as they are."""
    assert changed(source) == set()


def test_source_holds_one_change():
    """The source of a mutant differs in one place, and the next mutant begins from the original."""
    mutants = find_mutants(
        "module.py", "def f(a):\n    if a > 1:\n        return a\n    return 2\n"
    )

    sources = {mutant.source() for mutant in mutants}

    assert len(sources) == len(mutants)
    assert "def f(a):\n    if a >= 1:\n        return a\n    return 2" in sources
    assert "def f(a):\n    if a > 1:\n        return a\n    return 3" in sources


def test_keys_are_unique_and_do_not_depend_on_lines():
    """A mutant keeps its key if lines are added above it."""
    source = "def f(a):\n    a += 1\n    a += 1\n    return a\n"

    keys = [mutant.key for mutant in find_mutants("module.py", source)]
    moved = [mutant.key for mutant in find_mutants("module.py", f"\n\n{source}")]

    assert len(set(keys)) == len(keys)
    assert moved == keys


def test_lines_are_those_of_the_headline():
    """The lines of an ``if`` are those of its condition alone."""
    mutants = find_mutants("module.py", "if (\n    a\n    or b\n):\n    c()\n")

    assert {(m.after, m.first_line, m.last_line) for m in mutants} == {
        ("if a and b:", 1, 4),
        ("if not (a or b):", 1, 4),
        ("pass", 5, 5),
    }
