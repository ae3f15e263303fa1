"""The command ``polytopic map``."""

import math
import sys

import click

from polytopic.cli.documents import load_labeler
from polytopic.cli.options import check_target, count_option, html_option, json_option, k_option
from polytopic.cli.output import echo_json, image_of, on_terminal, printable, table, write_file

TREE_WIDTH = 24  # of the dendrogram, in characters
MAX_DEPTH = 20_000  # nested calls of the JSON encoder, which fit on the stack


@click.command()
@click.argument("model")
@k_option(10, "Words to show for each label.")
@count_option("--pairs", 20, "Pairs to show for positive, and for negative, correlation.")
@count_option("--labels", 1000, "Labels on the map, the most frequent ones.")
@html_option
@click.option("--plot", metavar="FILE", help="Draw the map (.png, .svg or .pdf); needs matplotlib.")
@click.option("--newick", metavar="FILE", help="Write the label clusters as a Newick tree.")
@json_option
def command(model, k, pairs, labels, html, plot, newick, as_json):
    """Map the labels of MODEL: which occur together, and which have similar words.

    Prints the pairs of labels with the strongest correlations, positive and negative; pairs that
    never occur together are left out. Labels are clustered by their words (average linkage of
    Hellinger distances). Each is shown with its most relevant words: those with the highest
    probability in the label divided by the 0.3rd power of that in the corpus. If MODEL has a tree,
    "agreement" is the cophenetic correlation of the clusters with it.
    """
    for option, target in {"--html": html, "--plot": plot, "--newick": newick}.items():
        check_target(option, target, model)
    label_map = load_labeler(model).map(k, n_pairs=pairs, n_labels=labels)
    if label_map.n_labels > len(label_map.labels):
        click.echo(
            f"The map shows the {len(label_map.labels):,} most frequent of {label_map.n_labels:,} "
            "labels; use --labels to show more.",
            err=True,
        )
    pieces = {html: label_map.to_html, newick: lambda: label_map.newick() + "\n"}
    contents = {path: make().encode() for path, make in pieces.items() if path}
    if plot:
        contents[plot] = image_of(label_map.plot(), plot)
    for path, content in contents.items():
        write_file(path, content)
    if as_json or not on_terminal():
        sys.setrecursionlimit(max(sys.getrecursionlimit(), MAX_DEPTH))  # joins are nested
        echo_json(label_map.to_dict())
    else:
        _show_pairs(label_map)
        _show_clusters(label_map)


def _show_pairs(label_map):
    sides = {
        "Positive correlation": label_map.positive,
        "Negative correlation": label_map.negative,
    }
    names = label_map.display_names
    for title, pairs in sides.items():
        if pairs:
            rows = [(p.correlation, p.documents, names[p.first], names[p.second]) for p in pairs]
            table(title, [">correlation", ">documents", "label", "label"], rows)
            click.echo()


def _show_clusters(label_map):
    """Print the dendrogram, with as many words of each label as fit on its line."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print("Labels by their words", style="bold")
    names = [printable(label.display_name) for label in label_map.in_order]
    width = min(max(map(len, names)), max(20, console.width // 2 - TREE_WIDTH))
    for line, name, label in zip(
        label_map.dendrogram.lines(TREE_WIDTH), names, label_map.in_order, strict=True
    ):
        words = printable(" ".join(term.term for term in label.terms))
        text = Text(f"{line} {name.ljust(width)}  ").append(words, "dim")
        console.print(text, no_wrap=True, overflow="ellipsis")
    if label_map.tree is not None and not math.isnan(label_map.agreement()):
        click.echo(f"\nAgreement with the tree of labels: {label_map.agreement():.2f}")
