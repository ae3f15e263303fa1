"""polytopic store counts."""

import click

from polytopic.cli.show import echo_json, on_terminal, table, words_option
from polytopic.cli.store.opening import open_store, read_selection, selection_options


@click.command()
@click.argument("store")
@selection_options
@words_option(8)
def command(store, as_of, since, until, labels, words):
    """Show the table of counts in STORE.

    Writes one JSON object for each label set: its labels, its documents, and the counts of its
    terms. A terminal shows labels with their documents and most frequent words.
    """
    with open_store(store) as opened:
        counts = opened.counts(**read_selection(as_of, since, until, labels))
    gone = f"; {counts.left_out:,} more were forgotten since" if counts.left_out else ""
    click.echo(f"Revision {counts.revision}: {counts.n_docs:,} documents{gone}.", err=True)
    if on_terminal():
        _show_labels(counts, words)
        return
    rows = zip(counts.label_sets, counts.set_docs, counts.matrix, strict=True)
    for names, documents, row in rows:
        terms = {counts.terms[k]: int(n) for k, n in zip(row.indices, row.data, strict=True)}
        echo_json({"labels": list(names), "documents": int(documents), "counts": terms})


def _show_labels(counts, n_words):
    import numpy as np

    by_label = (counts.indicator.T @ counts.matrix).tocsr()
    documents = counts.indicator.T @ counts.set_docs
    rows = []
    for label, n, row in zip(counts.labels, documents, by_label, strict=True):
        best = row.indices[np.argsort(-row.data, kind="stable")[:n_words]]
        rows.append((label, f"{n:,.0f}", " ".join(counts.terms[k] for k in best)))
    table("", ["label", ">documents", "most frequent words"], rows)
