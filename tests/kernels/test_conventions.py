"""Every kernel has a table of symbols, a NumPy expression and a slow twin."""

import ast
import re
from pathlib import Path

import pytest

import polytopic

PACKAGE = Path(polytopic.__file__).parent
TWINS = Path(__file__).parents[1] / "twins"


def functions_of(path, decorator):
    """Return the functions of a module that have a decorator, by name; None for all functions."""
    return {
        node.name: node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        if decorator is None or decorator in map(ast.unparse, node.decorator_list)
    }


KERNELS = {
    path: kernels
    for path in sorted({*PACKAGE.glob("kernels/*.py"), *PACKAGE.glob("*/**/*kernels.py")})
    if (kernels := functions_of(path, "compiled"))
}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_symbols_and_expressions(path):
    """A file of kernels begins with a table of symbols; a kernel states what its loops equal."""
    docstrings = {name: ast.get_docstring(kernel) for name, kernel in KERNELS[path].items()}
    without = [name for name, text in docstrings.items() if not re.search("``|::", text or "")]

    assert "\n====" in ast.get_docstring(ast.parse(path.read_text()))
    assert without == []


def test_twins():
    """Each kernel has a slow twin of the same name."""
    twins = {name for path in TWINS.glob("*.py") for name in functions_of(path, None)}

    assert {name for kernels in KERNELS.values() for name in kernels} - twins == set()
