"""The command ``polytopic compare``."""

from contextlib import nullcontext
from pathlib import Path

import click

from polytopic.cli.documents import read
from polytopic.cli.options import (
    FiniteFloat,
    check_target,
    count_option,
    document_options,
    open_cluster,
)
from polytopic.cli.output import echo_json, on_terminal, round_finite, table, write_file

PROTOCOLS = ("auto", "given", "random", "curve", "folds", "time")
WRITERS = {
    ".md": lambda comparison: comparison.to_markdown(),
    ".csv": lambda comparison: comparison.to_csv(),
    ".tex": lambda comparison: comparison.to_latex(),
    ".html": lambda comparison: comparison.to_html(),
}


@click.command()
@click.argument("corpus")
@click.option("--models", help="Methods, separated by commas, or all; by default about ten.")
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default="auto",
    show_default=True,
    help="auto: the corpus's own split, else folds; curve: random splits of several sizes.",
)
@click.option(
    "--train", type=click.IntRange(min=1), help="Number of training documents, drawn at random."
)
@click.option("--test", type=click.IntRange(min=1), help="Number of test documents.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--sizes", help="Training documents on a curve, separated by commas: 250,500,1000.")
@click.option(
    "--language", default="en", show_default=True, help='Language of the texts, or "none".'
)
@click.option(
    "--tune",
    type=click.IntRange(min=0),
    help="Number of settings for Optuna to try, instead of a small grid; 0 to tune nothing.",
)
@count_option("--workers", 2, "Processes on this machine that run methods, without --dask.")
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run methods on the Dask cluster with this scheduler, which must see the folder.",
)
@click.option(
    "--timeout",
    type=FiniteFloat(min=0, min_open=True),
    help="Time limit for a method on a split, in seconds.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--folder", help="Folder for finished results; next to the corpus by default.")
@click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="FILE",
    help="Write a .html, .md, .csv or .tex file; repeatable.",
)
@click.option("--list", "list_methods", is_flag=True, help="List the methods and exit.")
@document_options
def command(
    corpus,
    models,
    protocol,
    train,
    test,
    repeats,
    sizes,
    language,
    tune,
    workers,
    dask,
    timeout,
    seed,
    folder,
    targets,
    list_methods,
    **reading,
):
    """Compare polytopic's methods with others on the labelled documents in CORPUS.

    Each method learns from some documents and labels others, several times. Results are saved, so
    that an interrupted run continues where it stopped. Settings are tuned on a quarter of the
    training documents.
    """
    from polytopic.experiments import Protocol, all_methods, compare
    from polytopic.experiments.report import require_figures

    if list_methods:
        rows = [(m.name, m.title, m.missing or "") for m in all_methods().values()]
        table("", ["method", "description", "missing"], rows)
        return
    for target in targets:
        check_target("--to", target, corpus)
        if Path(target).suffix not in WRITERS:
            raise ValueError(f"--to == {target!r}, must end with one of {', '.join(WRITERS)}.")
        if Path(target).suffix == ".html":
            require_figures()  # now, not after everything has run
    methods = list(all_methods()) if models == "all" else _split_names(models)
    curve = {"sizes": tuple(map(int, sizes.split(",")))} if sizes else {}
    if dask is not None and timeout is not None:
        raise click.UsageError("--timeout works on this machine only, without --dask.")
    with nullcontext() if dask is None else open_cluster(dask, None, "comparing") as cluster:
        comparison = compare(
            list(read(corpus, **reading)),
            methods,
            protocol=Protocol(protocol, train, test, repeats, seed=seed, **curve),
            name=Path(corpus).name.split(".")[0],
            language=None if language == "none" else language,
            folder=folder or f"{corpus}.compare",
            workers=workers,
            tune=tune,
            timeout=timeout,
            client=None if cluster is None else cluster.client,
            progress=lambda sentence: click.echo(sentence, err=True),
        )
    for target in targets:
        content = WRITERS[Path(target).suffix](comparison)
        write_file(target, content.encode())
    if on_terminal():
        _show(comparison.largest())
    else:
        for row in comparison.largest().rows:
            metrics = row.results[0]["metrics"] if row.results else {}
            values = {name: round_finite(row.mean(name)) for name in metrics}
            echo_json({"method": row.method, "failure": row.failure, **values})


def _split_names(models):
    """Return the names of methods, or None for the default."""
    return [name.strip() for name in models.split(",")] if models else None


def _show(comparison):
    from rich.text import Text

    from polytopic.experiments.report import MAIN_COLUMNS, entries, notes, summary

    rows = [
        (row.title, *(Text(c.text, style="bold" if c.best else "") for c in cells))
        for row, cells in zip(comparison.successful, entries(comparison), strict=True)
    ]
    table(summary(comparison), ["method", *(f">{column.heading}" for column in MAIN_COLUMNS)], rows)
    for row in comparison.rows:
        if row.failure:
            click.echo(f"{row.title}: {row.failure}")
    click.echo(notes(comparison))
