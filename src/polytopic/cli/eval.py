"""The command ``polytopic eval``."""

from typing import Any

import click

from polytopic.cli.documents import load_labeler, read
from polytopic.cli.options import (
    check_target,
    cluster_options,
    document_options,
    open_cluster,
    report_skipped,
)
from polytopic.cli.output import (
    echo_json,
    image_of,
    on_terminal,
    round_finite,
    table,
    write_file,
)


@click.command(name="eval")
@click.argument("model")
@click.argument("documents")
@click.option("--split", help="Part to evaluate on; by default test, if there is one.")
@click.option("--by-label", is_flag=True, help="Also report each label, the most frequent first.")
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw how often labels and label sets are right, by their probability (.png, .svg or "
    ".pdf); needs matplotlib.",
)
@cluster_options
@document_options
def command(model, documents, split, by_label, plot, dask, workers, **reading):
    """Evaluate MODEL on the labelled documents in DOCUMENTS.

    A true label that the model has never seen counts as missed. Documents without labels are
    ignored. The calibration error is the mean distance between the probabilities of labels and how
    often they are right; that of label sets is the same for the predicted sets. If MODEL has a
    tree, hierarchical precision, recall and F1 (of labels together with their ancestors) are
    reported as well, and metrics for each level of the tree, with labels rolled up.
    """
    check_target("--plot", plot, model, documents)
    labeler = load_labeler(model)
    if dask is None and workers is None:
        tally = _count(labeler, documents, split, reading)
    else:
        from polytopic import distributed

        with open_cluster(dask, workers, "evaluating") as cluster:
            reading |= {"split": split, "on_skipped": report_skipped}
            tally = distributed.evaluate(labeler, documents, **cluster._asdict(), **reading)
    labels = tally.metrics_by_label() if by_label else None
    _report(tally.n_docs, tally.metrics(), tally.metrics_by_level(), labels)
    if plot is not None:
        write_file(plot, image_of(tally.calibration.plot(), plot))


def _count(labeler, documents, split, reading):
    """Return the tally of the labelled documents and of what the labeler predicts for them."""
    from polytopic.metrics import Tally
    from polytopic.metrics.scores import above_absent

    documents = list(read(documents, split=split, **reading))
    if split is None and any(d.split == "test" for d in documents):
        documents = [d for d in documents if d.split == "test"]
    documents = [d for d in documents if d.labels]
    tally = Tally(labeler.classes_.tolist(), labeler.tree)
    if documents:
        true = [_ids(labeler, d.labels) for d in documents]
        tally.add(
            true,
            labeler.predict(documents),
            above_absent(labeler.decision_function(documents)),
            proba=labeler.predict_proba(documents),
            certainty=labeler.certainty(documents),
        )
    return tally


def _report(n_docs, overall, levels, labels):
    if labels is not None:
        order = sorted(labels, key=lambda label: (-labels[label]["support"], label))
        labels = {label: labels[label] for label in order}
    if on_terminal():
        table(f"{n_docs:,} documents", ["metric", ">value"], overall.items())
        if levels:
            columns = [f">{name}" for name in ("level", *levels[0])]
            table("", columns, [(level, *values.values()) for level, values in levels.items()])
        if labels:
            columns = ["label", *(f">{name}" for name in next(iter(labels.values())))]
            table("", columns, [(label, *values.values()) for label, values in labels.items()])
    else:
        answer: dict[str, Any] = {"documents": n_docs, **_rounded(overall)}
        if levels:
            answer["levels"] = [
                {"level": level, **_rounded(values)} for level, values in levels.items()
            ]
        if labels is not None:
            answer["labels"] = [
                {"label": label, **_rounded(values)} for label, values in labels.items()
            ]
        echo_json(answer)


def _rounded(metrics):
    return {name: round_finite(value) for name, value in metrics.items()}


def _ids(labeler, labels):
    """Return the ids of labels, which documents may give by name."""
    return sorted({labeler.resolve(label) for label in labels})
