"""Processes that start at once: forked from one that has loaded the store."""

from tests.cli.processes import FORKS


def start(target, *arguments):
    """Start a function in another process; return the process, and what it tells through."""
    ours, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=target, args=(*arguments, theirs))
    process.start()
    theirs.close()
    return process, ours


def messages_of(pipe):
    """Yield all that a process tells until it ends."""
    while True:
        try:
            yield pipe.recv()
        except (EOFError, ConnectionResetError):
            return


def answer(target, *arguments, timeout=60):
    """Return all that a function tells in another process, which must end well."""
    process, pipe = start(target, *arguments)
    answers = list(messages_of(pipe))
    process.join(timeout)
    assert process.exitcode == 0
    return answers
