"""polytopic compare."""

from contextlib import nullcontext
from pathlib import Path

import click

from polytopic.cli.documents import engine, read
from polytopic.cli.options import FiniteFloat, document_options
from polytopic.cli.output import echo_json, on_terminal, table, write_file
from polytopic.results import finite

PROTOCOLS = ("auto", "given", "random", "curve", "folds", "time")
ENDINGS = {".md": "to_markdown", ".csv": "to_csv", ".tex": "to_latex", ".html": "to_html"}


@click.command()
@click.argument("corpus")
@click.option("--models", help="Methods, with commas; all of them: all. By default ten or so.")
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default="auto",
    show_default=True,
    help="auto: the split that documents name, else folds; curve: random splits of several sizes.",
)
@click.option("--train", type=click.IntRange(min=1), help="Documents to learn from, at random.")
@click.option("--test", type=click.IntRange(min=1), help="Documents to test on.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--sizes", help="Documents to learn from on a curve, with commas: 250,500,1000.")
@click.option(
    "--language", default="en", show_default=True, help="Of the texts; none: plain words."
)
@click.option("--tune", type=click.IntRange(min=0), help="Settings that Optuna tries; 0: none.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Processes of this machine that run methods, where there is no --dask.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run methods on the Dask cluster with this scheduler; it must see the folder.",
)
@click.option(
    "--timeout",
    type=FiniteFloat(min=0, min_open=True),
    help="Seconds that a method may take on a split.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--folder", help="Where finished cells are kept; beside the corpus by default.")
@click.option(
    "--to", "targets", multiple=True, metavar="FILE", help="Write .html, .md, .csv or .tex."
)
@click.option("--list", "listed", is_flag=True, help="List the methods, and end.")
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
    """Compare methods on the labelled documents in CORPUS: ours and the baselines.

    Each method learns from some documents and labels others, several times over. What has been
    run is kept, so that a run that was stopped goes on where it was. Settings are chosen on a
    quarter of the documents to learn from.
    """
    from polytopic.experiments import DEFAULT, METHODS, Protocol, compare
    from polytopic.experiments.report import require_figures

    if listed:
        rows = [(m.name, m.title, m.missing or "") for m in METHODS.values()]
        table("", ["method", "what", "missing"], rows)
        return
    for target in targets:
        if Path(target).suffix not in ENDINGS:
            raise ValueError(f"--to == {target!r}, must end with one of {', '.join(ENDINGS)}.")
        if Path(target).suffix == ".html":
            require_figures()  # now, not when all has been run
    chosen = list(METHODS) if models == "all" else (models.split(",") if models else DEFAULT)
    how = {"sizes": tuple(map(int, sizes.split(",")))} if sizes else {}
    if dask is not None and timeout is not None:
        raise click.UsageError("--timeout is for processes of this machine, without --dask.")
    with nullcontext() if dask is None else engine(dask, None, "comparing") as cluster:
        found = compare(
            list(read(corpus, **reading)),
            [name.strip() for name in chosen],
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


def _show(found):
    from rich.text import Text

    from polytopic.experiments.tables import MAIN, entries, notes, summary

    able = [row for row in found.rows if row.results]
    rows = [
        (row.title, *(Text(c.text, style="bold" if c.best else "") for c in cells))
        for row, cells in zip(able, entries(found), strict=True)
    ]
    table(summary(found), ["method", *(f">{column.heading}" for column in MAIN)], rows)
    for row in found.rows:
        if row.failure:
            click.echo(f"{row.title}: {row.failure}")
    click.echo(notes(found))
