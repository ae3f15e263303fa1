"""Commands as processes that start at once: forked from one that has loaded the libraries."""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["polytopic.cli", "polytopic.labeler", "polytopic.models"])


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
        process = FORKS.Process(
            target=_command, args=(list(map(str, arguments)), files, os.getcwd(), dict(os.environ))
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"polytopic {arguments} takes more than {timeout} seconds.")
        return Done(process.exitcode, *(file.read_bytes() for file in files[1:]))


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
