"""The command ``polytopic labels``."""

import click

from polytopic.cli.documents import load_labeler
from polytopic.cli.options import check_target, k_option
from polytopic.cli.output import echo_json, on_terminal, table


@click.command()
@click.argument("model")
@click.argument("label", required=False)
@click.option(
    "--to",
    "target",
    metavar="FILE",
    help="Write the label tree to this file instead: .ttl, .rdf (SKOS), .csv or .tsv.",
)
@k_option(10, "Words to show for each label.")
def command(model, label, target, k):
    """List the labels of MODEL, or show the words of one LABEL.

    Words are ranked by how well they distinguish the label: in a linear model by their weight, in
    other models by their probability in the label times the log of how much likelier they are there
    than in the corpus as a whole.

    --to writes the tree of MODEL with all names, plus the labels that are not in it.
    """
    if label is not None and target is not None:
        raise click.UsageError("--to writes all labels, so it cannot be combined with LABEL.")
    check_target("--to", target, model)
    labeler = load_labeler(model)
    if target is not None:
        _write(labeler, target)
        return
    rows = labeler.label_terms(k, None if label is None else [label])
    if not on_terminal():
        for row in rows:
            echo_json(row)
    elif label is None:
        table(
            "",
            ["label", "name", "parent", ">documents", "words"],
            [(r["label"], r["name"], r["parent"] or "", r["documents"], _terms(r)) for r in rows],
        )
    else:
        _show_words(label, rows[0])


def _write(labeler, target):
    from polytopic.labels import LabelTree

    vocabulary = (labeler.tree or LabelTree({})).including(labeler.classes_.tolist())
    vocabulary.to_file(target)
    click.echo(f"Wrote {len(vocabulary):,} labels to {target}.", err=True)


def _show_words(label, row):
    words, title = row["words"], f"{label}: {row['documents']:,} documents"
    if words and "weight" in words[0]:
        table(title, ["word", ">weight"], [(w["term"], w["weight"]) for w in words])
    else:
        facts = [(w["term"], f"{w['probability']:.5f}", f"{w['lift']:.1f}") for w in words]
        table(title, ["word", ">probability", ">lift"], facts)


def _terms(row):
    return " ".join(word["term"] for word in row["words"])
