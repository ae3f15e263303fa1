"""polytopic map."""

import math
import sys

import click

from polytopic.cli.documents import load_labeler
from polytopic.cli.options import count_option, html_option, json_option
from polytopic.cli.output import echo_json, image_of, on_terminal, printable, table, write_file

TREE_WIDTH = 24  # of the dendrogram, in characters
MAX_DEPTH = 20_000  # nested calls of the JSON encoder, which fit on the stack


@click.command()
@click.argument("model")
@count_option("--pairs", 20, "Pairs to show, of positive and of negative correlation each.")
@count_option("--labels", 1000, "Labels on the map; the most frequent ones are kept.")
@count_option("--words", 10, "Words to show for each label.")
@html_option
@click.option("--plot", metavar="FILE", help="Draw the map (.png, .svg or .pdf); needs matplotlib.")
@click.option("--newick", metavar="FILE", help="Write the label clusters as a Newick tree.")
@json_option
def command(model, pairs, labels, words, html, plot, newick, as_json):
    """Map the labels of MODEL: which occur together, and which have similar words.

    Prints the pairs of labels with the strongest correlations, positive and negative; pairs that
    never occur together are left out. Labels are clustered by their words (average linkage of
    Hellinger distances). Each is shown with its most relevant words: those with the highest
    probability in the label divided by the 0.3rd power of that in the corpus. If MODEL has a tree,
    "agreement" is the cophenetic correlation of the clusters with it.
    """
    found = load_labeler(model).map(pairs, words, labels)
    if found.n_labels > len(found.labels):
        click.echo(
            f"The map shows the {len(found.labels):,} most frequent of {found.n_labels:,} labels; "
            "use --labels to show more.",
            err=True,
        )
    pieces = {html: found.to_html, newick: lambda: found.newick() + "\n"}
    contents = {path: make().encode() for path, make in pieces.items() if path}
    if plot:
        contents[plot] = image_of(found.plot(), plot)
    for path, content in contents.items():
        write_file(path, content)
    if as_json or not on_terminal():
        sys.setrecursionlimit(max(sys.getrecursionlimit(), MAX_DEPTH))  # joins are nested
        echo_json(found.to_dict())
    else:
        _show_pairs(found)
        _show_clusters(found)


def _show_pairs(found):
    sides = {
        "Positive correlation": found.positive,
        "Negative correlation": found.negative,
    }
    shown = found.display_names
    for title, pairs in sides.items():
        if pairs:
            rows = [(p.correlation, p.documents, shown[p.first], shown[p.second]) for p in pairs]
            table(title, [">correlation", ">documents", "label", "label"], rows)
            click.echo()


def _show_clusters(found):
    """Print the dendrogram, with as many words of each label as fit on its line."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print("Labels by their words", style="bold")
    names = [printable(label.display_name) for label in found.in_order]
    width = min(max(map(len, names)), max(20, console.width // 2 - TREE_WIDTH))
    for line, name, label in zip(
        found.dendrogram.lines(TREE_WIDTH), names, found.in_order, strict=True
    ):
        words = printable(" ".join(term.term for term in label.terms))
        text = Text(f"{line} {name.ljust(width)}  ").append(words, "dim")
        console.print(text, no_wrap=True, overflow="ellipsis")
    if found.tree is not None and not math.isnan(found.agreement()):
        click.echo(f"\nAgreement with the tree of labels: {found.agreement():.2f}")
