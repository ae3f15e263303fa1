"""A Dask cluster for a command: options, the dashboard's address, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click


class Engine(NamedTuple):
    """A cluster, and how its work is told; both are arguments of polytopic.distributed."""

    client: Any
    progress: Callable[[int, int], None]


def cluster_options(command: Callable) -> Callable:
    """Add the options of a cluster; they come as ``dask`` and ``workers``."""
    options = [
        click.option(
            "--dask",
            metavar="ADDRESS",
            help="Work on the Dask cluster with this scheduler, such as tcp://10.0.0.1:8786.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            metavar="N",
            help="Work on a Dask cluster of N processes on this machine.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def engine(dask: str | None, workers: int | None, what: str) -> Iterator[Engine]:
    """Give the cluster that was asked for, tell its dashboard, and show progress."""
    if dask is not None and workers is not None:
        raise click.UsageError("--dask and --workers exclude each other.")
    from polytopic.distributed import connect

    with connect(dask, workers=workers) as client, _shown(what) as progress:
        click.echo(f"Dask's dashboard is at {client.dashboard_link}.", err=True)
        yield Engine(client, progress)


@contextmanager
def _shown(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give what is called with the partitions that are done, and all of them."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def show(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield show


def tell_skipped(skipped: Any) -> None:
    """Report lines that were passed over, as a command without a cluster does."""
    for message in skipped.messages:
        click.echo(f"skipped: {message}", err=True)
    if skipped.n_lines:
        click.echo(f"{skipped.n_lines} lines were skipped.", err=True)


def folder_for(target: str | None) -> str:
    """Return where results go, which must be a folder: workers write there."""
    if target in (None, "-"):
        raise click.UsageError("--dask and --workers write files: give --to FOLDER.")
    return str(target)
