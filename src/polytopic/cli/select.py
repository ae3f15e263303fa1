"""The command ``polytopic select``."""

from __future__ import annotations

import click

from polytopic.cli.documents import blocks, load_labeler, prefetch, read
from polytopic.cli.options import (
    FiniteFloat,
    check_target,
    cluster_options,
    document_options,
    folder_for,
    open_cluster,
    report_skipped,
)
from polytopic.cli.output import show_progress
from polytopic.files import is_database


@click.command()
@click.argument("model")
@click.argument("corpus", default="-")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="LABEL",
    help="Select documents with this label or one below it in the tree; repeatable.",
)
@click.option("--all", "every", is_flag=True, help="Require all topics, not just one.")
@click.option(
    "--min-share",
    type=FiniteFloat(0, 1),
    metavar="SHARE",
    help="Smallest share of a document that the topic must have, such as 0.3.",
)
@click.option(
    "--to",
    "target",
    metavar="FILE",
    default="-",
    help="File to write, gzipped if it ends in .gz; standard output by default. For a cluster, a "
    "folder.",
)
@click.option("--split", help="Read only this part of the corpus, such as test.")
@cluster_options
@document_options
def command(model, corpus, topics, every, min_share, target, split, dask, workers, **reading):
    """Print the documents in CORPUS (standard input by default) that are about a topic.

    MODEL labels each document; a document with no known words is never selected. CORPUS may be a
    store, whose documents are labelled again; polytopic store find selects by the topics that are
    stored. Documents are printed as JSON lines with all their content and, under "selected", the
    labels found for each topic and, with --min-share, their share of the text. Shares are those of
    MODEL if it is a mixture of labels, else of a mixture that is fitted to the same counts.
    """
    on_cluster, is_store = dask is not None or workers is not None, is_database(corpus)
    if is_store and (on_cluster or split is not None):
        raise click.UsageError("a store has no parts, and is read without --dask and --workers.")
    if on_cluster:
        target = folder_for(target)
    check_target("--to", target, model, corpus)
    from polytopic.corpus.writers import open_target
    from polytopic.labeler.selection import Selector, selected_line

    selector = Selector(load_labeler(model), topics, min_share=min_share, every=every)
    if on_cluster:
        from polytopic import distributed

        with open_cluster(dask, workers, "selecting") as cluster:
            reading |= {"split": split}
            summary = distributed.select(selector, corpus, target, **cluster._asdict(), **reading)
        report_skipped(summary.skipped)
        _report(selector.topics, summary.counts, summary.topics)
        return
    pairs = (
        _stored_documents(corpus)
        if is_store
        else read(corpus, split=split, progress=False, origins=True, **reading)
    )
    counted_blocks = (
        (block, selector.count([document for document, _ in block])) for block in blocks(pairs)
    )
    with open_target(target) as write, show_progress() as show:
        for block, counts in prefetch(counted_blocks):
            matches = selector.select_counted(counts)
            for (document, origin), matched_topics in zip(block, matches, strict=True):
                if matched_topics:
                    write(selected_line(document, origin, matched_topics).encode())
            show(len(block), f"{selector.counts['selected']:,} selected")
    _report(selector.topics, selector.counts, selector.topic_counts)


def _stored_documents(url):
    """Yield the documents of a store, which have no other columns."""
    from polytopic.store import Store

    with Store(url, create=False) as store:
        for document in store.documents():
            yield document, {}


def _report(topics, counts, topic_counts):
    by_topic = ", ".join(f"{topic} {topic_counts[topic]:,}" for topic in topics)
    click.echo(
        f"Read {counts['read']:,} documents and selected {counts['selected']:,} ({by_topic}); "
        f"{counts['no known word']:,} had no known words.",
        err=True,
    )
