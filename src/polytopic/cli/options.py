"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click

from polytopic.cli.output import show_partitions
from polytopic.corpus.formats import FORMATS


class FiniteFloat(click.FloatRange):
    """A finite number in a range; click's own ranges accept NaN."""

    def convert(self, value, param, ctx):
        """Return the number; fail with a message if it is not finite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def add_options(*options: Callable) -> Callable:
    """Return a decorator that adds several options, shown in this order."""

    def decorate(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def count_option(name: str, default: int, help: str) -> Callable:
    """Return an option for a number of things, at least 1."""
    return click.option(
        name, type=click.IntRange(min=1), default=default, show_default=True, help=help
    )


def k_option(default: int, help: str) -> Callable:
    """Return the option for the number of results."""
    return count_option("-k", default, help)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON even on a terminal.")
html_option = click.option("--html", metavar="FILE", help="Write a self-contained HTML page.")
language_option = click.option(
    "--language",
    callback=lambda context, option, value: None if value == "none" else value,
    default="en",
    show_default=True,
    help='Language of the texts (en, cs, de, …), or "none" to keep words as they are.',
)


def _column(name: str, default: str, help: str) -> Callable:
    return click.option(f"--{name}", default=default, show_default=True, help=help)


# How documents are read; commands take these options as ``**reading``.
document_options = add_options(
    click.option(
        "--format",
        type=click.Choice(list(FORMATS)),
        metavar="FORMAT",
        help=f"Format of the documents: {', '.join(FORMATS)}. By default, it is inferred "
        "from the file extension. A folder or a pattern stands for its files.",
    ),
    _column(
        "text-column",
        "text",
        "Column or key of the text; several, separated by commas, become fields.",
    ),
    _column(
        "labels-column",
        "labels",
        "Column or key of the labels; in ARFF, attributes or an XML file.",
    ),
    _column("id-column", "id", "Column or key of the document's id."),
    _column("time-column", "time", "Column or key of the document's time."),
    _column("label-separator", ",", "Separator of labels in a column."),
    click.option(
        "--on-error",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        show_default=True,
        help="What to do with an invalid line.",
    ),
)


def join_names(names: Iterable[str]) -> str:
    """Return names as part of a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def read_field_weights(pairs: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the weights of fields from pairs such as title=2."""
    weights: dict[str, Any] = {}
    for pair in pairs:
        name, _, weight = pair.partition("=")
        if name in weights:
            raise click.UsageError(f"--field-weight {name} is given twice.")
        try:
            weights[name] = int(weight) if weight.isdecimal() else float(weight)
        except ValueError:
            raise click.UsageError(f"--field-weight {pair}, must be like title=2.") from None
    return weights or None


# The Dask cluster that a command runs on, if the user asks for one

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


class Cluster(NamedTuple):
    """A cluster and how to show progress: arguments of the functions in polytopic.distributed."""

    client: Any
    progress: Callable[[int, int], None]


@contextmanager
def open_cluster(dask: str | None, workers: int | None, task: str) -> Iterator[Cluster]:
    """Yield the cluster that the options ask for; show its dashboard's address and progress."""
    if dask is not None and workers is not None:
        raise click.UsageError("--dask and --workers cannot be combined.")
    from polytopic.distributed import connect

    with connect(dask, workers=workers) as client, show_partitions(task) as progress:
        click.echo(f"Dask dashboard: {client.dashboard_link}", err=True)
        yield Cluster(client, progress)


def report_skipped(skipped: Any) -> None:
    """Report skipped lines as a command without a cluster does."""
    for message in skipped.messages:
        click.echo(f"skipped: {message}", err=True)
    if skipped.n_lines:
        click.echo(f"{skipped.n_lines} lines were skipped.", err=True)


def check_target(option: str, target: str | None, *sources: str | None) -> None:
    """Raise a usage error if a file to write is one that the command reads."""
    for source in sources:
        if target is None or source is None or not os.path.isfile(target):
            continue
        path = source.removeprefix("sqlite:///")
        if os.path.isfile(path) and os.path.samefile(target, path):
            raise click.UsageError(
                f"{option} {target!r} is the file {source!r} that is read; name another file."
            )


def folder_for(target: str | None) -> str:
    """Return the folder for results; workers write files there."""
    if target in (None, "-"):
        raise click.UsageError("--dask and --workers write files: give --to FOLDER.")
    return str(target)
