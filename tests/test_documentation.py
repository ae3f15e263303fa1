"""The examples in the documentation do what they show."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import polytopic
from polytopic.cli import COMMANDS, token
from polytopic.cli import store as store_commands

ROOT = Path(__file__).parents[1]


def blocks(path, language):
    """Return the code blocks of a Markdown file."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(), flags=re.DOTALL)


def test_readme_python(tmp_path, monkeypatch):
    """The Python example prints what it says, and is short."""
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("README.md", "python")

    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    results.run(doctest.DocTestParser().get_doctest(code, {}, "README", "README.md", 0))

    assert results.summarize(verbose=False).failed == 0
    assert len(re.findall("^>>>", code, flags=re.MULTILINE)) <= 10


def test_readme_command_line(tmp_path):
    """The command-line example prints what it says."""
    (session,) = blocks("README.md", "console")
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, flags=re.MULTILINE)
    names = {"python": sys.executable, "polytopic": f"{sys.executable} -m polytopic"}

    assert len(steps) >= 3
    for command, expected in steps:
        line = re.sub(r"\b(python|polytopic)(?= )(?! -m)", lambda m: names[m[1]], command, count=1)
        if "| polytopic" in command:
            line = command.replace("polytopic", names["polytopic"], 1)
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        # a loop that nothing has called before is compiled, which may take over a second
        messages = done.stderr.replace("Compiling (once per installation) …\n", "")
        assert done.stdout + messages == expected, command


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS,
        *(f"store {name}" for name in store_commands.command.commands),
        *(f"token {name}" for name in token.command.commands),
    ],
)
def test_manual_holds_each_help(command):
    """docs/commands.md shows the help as the command prints it."""
    done = subprocess.run(
        [sys.executable, "-m", "polytopic", *shlex.split(command), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )

    assert f"```\n{done.stdout}```" in (ROOT / "docs" / "commands.md").read_text()


def test_public_names():
    """The package has exactly its public names."""
    for name in polytopic.__all__:
        assert getattr(polytopic, name) is not None
    assert set(dir(polytopic)) >= {"Labeler", "NaiveBayes", "PMM1", "load", "metrics"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        polytopic.nothing  # noqa: B018


def test_nothing_is_pickled():
    """No source file loads or dumps pickles."""
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"\b(pickle|joblib)\b", path.read_text()), path


def test_links():
    """The targets of relative links exist."""
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
