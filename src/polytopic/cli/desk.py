"""The commands ``polytopic desk …``."""

from __future__ import annotations

import os
import signal
import sys
import threading

import click


@click.group(name="desk")
def command():
    """Run a news desk: read sources, label articles, learn from editors, raise alarms."""


@command.command()
@click.argument("settings", metavar="FILE")
@click.option("--once", is_flag=True, help="Read each source once, and stop.")
def run(settings, once):
    """Run the desk that FILE describes, until it is stopped.

    FILE is TOML with the sections [desk], [[sources]], [model], [fetch] and [alarms]. Environment
    variables such as POLYTOPIC_DESK_MODEL_RULE replace single settings. Events are logged to
    standard error. Ctrl+C and SIGTERM stop the desk; it can also be killed at any moment, and the
    next one continues.
    """
    from polytopic.desk.logs import new_log
    from polytopic.desk.settings import read_settings
    from polytopic.desk.worker import Worker
    from polytopic.store import Store

    desk = read_settings(settings, os.environ)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    log = new_log(desk.desk.log, desk.desk.level, sys.stderr)
    with Store(desk.desk.store, create=False) as store:
        worker = Worker(desk, store, log, stopped)
        if once:
            worker.cycle()
        else:
            worker.run()
