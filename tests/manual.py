"""Writes the help of each command below its heading in docs/commands.md: python -m tests.manual."""

import re
from pathlib import Path

from click.testing import CliRunner

from polytopic.cli import main

MANUAL = Path(__file__).parents[1] / "docs" / "commands.md"
HELP = re.compile(r"(?<=^## polytopic )([a-z ]+)\n\n```\n.*?```", flags=re.DOTALL | re.MULTILINE)
WIDTH = 78  # on a terminal with 80 columns


def _with_help(section):
    """Return the name of a command, and its help as a block of code."""
    arguments = {"prog_name": "polytopic", "terminal_width": WIDTH}
    done = CliRunner().invoke(main, [*section[1].split(), "--help"], **arguments)
    return f"{section[1]}\n\n```\n{done.output}```"


if __name__ == "__main__":
    MANUAL.write_text(HELP.sub(_with_help, MANUAL.read_text()))
