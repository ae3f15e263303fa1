"""The Dask cluster that a command runs on, if the user asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click

from polytopic.cli.options import add_options
from polytopic.cli.output import show_partitions

cluster_options = add_options(
    click.option(
        "--dask",
        metavar="ADDRESS",
        help="Run on the Dask cluster with this scheduler, such as tcp://10.0.0.1:8786.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Run on a Dask cluster of N processes on this machine.",
    ),
)


class Engine(NamedTuple):
    """A cluster and how to show progress: arguments of the functions in polytopic.distributed."""

    client: Any
    progress: Callable[[int, int], None]


@contextmanager
def engine(dask: str | None, workers: int | None, what: str) -> Iterator[Engine]:
    """Yield the cluster that the options ask for; show its dashboard's address and progress."""
    if dask is not None and workers is not None:
        raise click.UsageError("--dask and --workers cannot be combined.")
    from polytopic.distributed import connect

    with connect(dask, workers=workers) as client, show_partitions(what) as progress:
        click.echo(f"Dask dashboard: {client.dashboard_link}", err=True)
        yield Engine(client, progress)


def report_skipped(skipped: Any) -> None:
    """Report skipped lines as a command without a cluster does."""
    for message in skipped.messages:
        click.echo(f"skipped: {message}", err=True)
    if skipped.n_lines:
        click.echo(f"{skipped.n_lines} lines were skipped.", err=True)


def folder_for(target: str | None) -> str:
    """Return the folder for results; workers write files there."""
    if target in (None, "-"):
        raise click.UsageError("--dask and --workers write files: give --to FOLDER.")
    return str(target)
