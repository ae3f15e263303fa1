"""Commands as processes that start at once: forked from one that has loaded the libraries."""

import multiprocessing
import os
import pty
import select
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["polytopic.cli", "polytopic.labeler", "polytopic.models", "tests.store.children"]
)


class Done(NamedTuple):
    """What a process left."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run_polytopic(*arguments, stdin=b"", timeout=120):
    """Run the command to its end with what it reads from standard input."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_bytes(stdin)
        process = _start(arguments, files)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"polytopic {arguments} takes more than {timeout} seconds.")
        return Done(process.exitcode, *(file.read_bytes() for file in files[1:]))


def on_a_terminal(*arguments, colour=False):
    """Run the command in a pseudo-terminal and return what a person sees."""
    colours = {"TERM": "xterm", "COLORTERM": "truecolor"} if colour else {"NO_COLOR": "1"}
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    parent, child = pty.openpty()
    process = _start(arguments, [os.ttyname(child)] * 3, {**inherited, "COLUMNS": "100", **colours})
    output = b""
    while process.is_alive() or select.select([parent], [], [], 0)[0]:
        if select.select([parent], [], [], 0.05)[0]:
            output += os.read(parent, 65536)
    os.close(child)
    os.close(parent)
    assert process.exitcode == 0
    return output.decode()


def _start(arguments, files, environment=None):
    """Start the command with files for its streams."""
    process = FORKS.Process(
        target=_command,
        args=(list(map(str, arguments)), files, os.getcwd(), environment or dict(os.environ)),
    )
    process.start()
    return process


def _command(arguments, files, folder, environment):
    """Be the command: with files for its streams, as ``python -m polytopic`` has pipes."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), stream)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = ["polytopic", *arguments]

    from polytopic.cli import main

    main(prog_name="polytopic")
