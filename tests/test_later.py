"""Modules that are loaded when they are first used."""

import subprocess
import sys
import textwrap

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from polytopic import models
from polytopic.later import attributes


def run(code, folder="."):
    """Run a program of its own; return what it prints."""
    program = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout.split()


@pytest.fixture
def slow(tmp_path):
    """Make a folder with a module that tells when it is loaded."""
    (tmp_path / "slow.py").write_text("import sys\nsys.stdout.write('loaded ')\nname = 'value'\n")
    return tmp_path


def test_a_postponed_module_is_loaded_once_when_a_name_is_asked_for(slow):
    """Imports alone do not load it; then it is a module like any other."""
    code = """
    from polytopic.later import postpone
    postpone("slow")
    import slow
    import slow as again
    print("imported", again is slow)
    print(slow.name, hasattr(slow, "missing"), type(slow).__name__, slow.__spec__.name)
    from slow import name
    print(name)
    """
    expected = "imported True loaded value False module slow value"
    assert run(code, slow) == expected.split()


def test_a_part_of_a_postponed_package_loads_the_package_first(tmp_path):
    """Parts may need what the package does before them."""
    package = tmp_path / "slow"
    package.mkdir()
    (package / "__init__.py").write_text("first = 'first'\nfrom slow import part\n")
    (package / "part.py").write_text(
        "from slow import first\nprint('part')\nname = first + ', then part'\n"
    )
    code = """
    from polytopic.later import postpone
    postpone("slow")
    import slow
    from slow.part import name
    print(name, type(slow).__name__, slow.part.name is name, type(slow.part.__loader__).__name__)
    """
    told = ["part", "first,", "then", "part", "module", "True", "SourceFileLoader"]
    assert run(code, tmp_path) == told


def test_threads_that_ask_at_once_all_see_the_whole_module(slow):
    """Nobody gets a module that another thread is still loading."""
    code = """
    from concurrent.futures import ThreadPoolExecutor
    from polytopic.later import postpone
    postpone("slow")
    import slow
    with ThreadPoolExecutor(8) as pool:
        print(*pool.map(lambda _: slow.name, range(8)))
    """
    assert run(code, slow) == ["loaded", *["value"] * 8]


def test_what_is_loaded_already_stays():
    """Postponing what is there changes nothing."""
    assert run("import json, polytopic.later as l; l.postpone('json'); print(json.loads('3'))") == [
        "3"
    ]


def test_names_live_in_their_modules_and_others_are_not_there():
    """A missing name is told as Python tells it."""
    found = attributes("polytopic.models", {"PMM1": "pmm"})
    assert found("PMM1") is models.PMM1
    with pytest.raises(AttributeError, match=r"module 'polytopic.models' has no attribute 'PMM9'"):
        found("PMM9")


def test_every_model_has_the_name_it_is_listed_by():
    """The list of models and the models agree."""
    assert {name: model.name for name, model in models.MODELS.items()} == {
        n: n for n in models.MODELS
    }
    assert all(getattr(models, name) for name in models.__all__)


def test_a_labeler_loads_neither_statistics_nor_the_models_that_it_does_not_use():
    """What takes long to load waits for who needs it."""
    code = """
    import sys
    from polytopic.later import postpone
    postpone("scipy.stats")
    from polytopic import Labeler
    Labeler("pmm1").fit(["a goal", "a bank"], [["sport"], ["money"]]).suggest(["the goal"])
    heavy = ["scipy.stats._stats_py", "scipy.cluster", "polytopic.models.col",
             "polytopic.models.mml", "polytopic.models.boostexter"]
    print(*[name for name in heavy if name in sys.modules])
    """
    assert run(code) == []


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"),
    reason="earlier releases of scikit-learn import pandas themselves",
)
@pytest.mark.parametrize("model", ["nb", "pmm1", "mml"])
def test_learning_loads_no_data_frames(model):
    """scikit-learn's checks of targets would; names of labels, and samples, do not need them."""
    code = f"""
    import sys
    from polytopic.later import postpone
    postpone()
    from polytopic import Labeler
    Labeler({model!r}).fit(["a goal", "a bank"], [["sport"], ["money"]]).predict(["the goal"])
    heavy = "pandas.core", "scipy.optimize", "scipy.special._ufuncs"
    print(*[name for name in heavy if name in sys.modules])
    """
    assert run(code) == []
