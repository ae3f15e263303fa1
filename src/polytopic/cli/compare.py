"""polytopic compare."""

from contextlib import nullcontext
from pathlib import Path

import click

from polytopic.cli.cluster import engine
from polytopic.cli.documents import read
from polytopic.cli.options import FiniteFloat, count_option, document_options
from polytopic.cli.output import echo_json, finite, on_terminal, table, write_file

PROTOCOLS = ("auto", "given", "random", "curve", "folds", "time")
ENDINGS = {".md": "to_markdown", ".csv": "to_csv", ".tex": "to_latex", ".html": "to_html"}


@click.command()
@click.argument("corpus")
@click.option("--models", help="Methods, separated by commas, or all; about ten by default.")
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
    "--tune", type=click.IntRange(min=0), help="Settings for Optuna to try; 0 to tune nothing."
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
    help="Time limit of a method on a split, in seconds.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--folder", help="Folder for finished results; next to the corpus by default.")
@click.option(
    "--to", "targets", multiple=True, metavar="FILE", help="Write .html, .md, .csv or .tex."
)
@click.option("--list", "listed", is_flag=True, help="List the methods and exit.")
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
    listed,
    **reading,
):
    """Compare our methods with others on the labelled documents in CORPUS.

    Each method learns from some documents and labels others, several times. Results are saved, so
    that an interrupted run continues where it stopped. Settings are tuned on a quarter of the
    training documents.
    """
    from polytopic.experiments import Protocol, all_methods, compare
    from polytopic.experiments.report import require_figures

    if listed:
        rows = [(m.name, m.title, m.missing or "") for m in all_methods().values()]
        table("", ["method", "description", "missing"], rows)
        return
    for target in targets:
        if Path(target).suffix not in ENDINGS:
            raise ValueError(f"--to == {target!r}, must end with one of {', '.join(ENDINGS)}.")
        if Path(target).suffix == ".html":
            require_figures()  # now, not after everything has run
    chosen = list(all_methods()) if models == "all" else _names(models)
    how = {"sizes": tuple(map(int, sizes.split(",")))} if sizes else {}
    if dask is not None and timeout is not None:
        raise click.UsageError("--timeout works on this machine only, without --dask.")
    with nullcontext() if dask is None else engine(dask, None, "comparing") as cluster:
        found = compare(
            list(read(corpus, **reading)),
            chosen,
            protocol=Protocol(protocol, train, test, repeats, seed=seed, **how),
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
        content = getattr(found, ENDINGS[Path(target).suffix])()
        write_file(target, content.encode())
    if on_terminal():
        _show(found.largest())
    else:
        for row in found.largest().rows:
            metrics = row.results[0]["metrics"] if row.results else {}
            values = {name: finite(row.mean(name)) for name in metrics}
            echo_json({"method": row.method, "failure": row.failure, **values})


def _names(models):
    """Return the names of methods, or None for the default."""
    return [name.strip() for name in models.split(",")] if models else None


def _show(found):
    from rich.text import Text

    from polytopic.experiments.report import MAIN, entries, notes, summary

    rows = [
        (row.title, *(Text(c.text, style="bold" if c.best else "") for c in cells))
        for row, cells in zip(found.successful, entries(found), strict=True)
    ]
    table(summary(found), ["method", *(f">{column.heading}" for column in MAIN)], rows)
    for row in found.rows:
        if row.failure:
            click.echo(f"{row.title}: {row.failure}")
    click.echo(notes(found))
