"""Names that are imported on first use, and what that saves."""

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import polytopic
from polytopic import models
from polytopic.models.registry import find_model, model_names


def run(code):
    """Run a program; return the words that it prints."""
    program = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return done.stdout.split()


def names_for_checkers(module):
    """Return the names that a module imports for type checkers and editors."""
    block = next(
        node
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {alias.name for node in block.body for alias in node.names}


@pytest.mark.parametrize("module", [polytopic, models])
def test_checkers_see_what_programs_see(module):
    """Every lazy name is also imported for type checkers, and exists."""
    assert names_for_checkers(module) == set(module.__all__) - {"__version__"}
    assert all(getattr(module, name) is not None for name in module.__all__)


@pytest.mark.parametrize("module", [polytopic, models])
def test_other_names_are_missing(module):
    """A name that does not exist raises what Python raises."""
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'PMM9'"):
        _ = module.PMM9


def test_the_package_is_typed():
    """Type checkers read the annotations of an installed package."""
    assert Path(polytopic.__file__).with_name("py.typed").exists()


def test_every_model_has_the_name_it_is_listed_by():
    """The list of models and the models agree."""
    assert all(find_model(name).load().name == name for name in model_names())


def test_a_labeler_imports_only_the_model_that_it_uses():
    """The other families, and what only they need, are not imported."""
    code = """
    import sys
    from polytopic import Labeler
    Labeler("pmm1").fit(["a goal", "a bank"], [["sport"], ["money"]]).suggest(["the goal"])
    heavy = ["scipy.cluster", "polytopic.models.col", "polytopic.models.mml", "polytopic.store"]
    print(*[name for name in heavy if name in sys.modules])
    """
    assert run(code) == []


def test_help_imports_no_numbers():
    """Commands show their help without NumPy, scikit-learn and numba."""
    code = """
    import sys
    from polytopic.cli import main
    main(["--help"], standalone_mode=False)
    assert not {"numpy", "sklearn", "numba"} & sys.modules.keys()
    """
    assert "Usage:" in run(code)
