"""Processes that start at once: forked from one that has loaded the store."""

from tests.cli.processes import FORKS


def start(target, *arguments):
    """Start a function in another process; return the process and its pipe."""
    ours, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=target, args=(*arguments, theirs))
    process.start()
    theirs.close()
    return process, ours


def messages_of(pipe):
    """Yield the messages of a process until it ends."""
    while True:
        try:
            yield pipe.recv()
        except (EOFError, ConnectionResetError):
            return


def answer(target, *arguments, timeout=60):
    """Run a function in another process, which must succeed; return its messages."""
    process, pipe = start(target, *arguments)
    answers = list(messages_of(pipe))
    process.join(timeout)
    assert process.exitcode == 0
    return answers
