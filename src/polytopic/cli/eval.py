"""polytopic eval."""

from typing import Any

import click

from polytopic.cli.cluster import cluster_options, engine, tell_skipped
from polytopic.cli.documents import document_options, read
from polytopic.cli.show import echo_json, on_terminal, table
from polytopic.results import finite


@click.command(name="eval")
@click.argument("model")
@click.argument("documents")
@click.option("--split", help="Part to measure on; the test part by default, where there is one.")
@cluster_options
@document_options
def command(model, documents, split, dask, workers, **reading):
    """Measure how well MODEL labels the labelled documents in DOCUMENTS.

    A true label that the model never saw counts as missed; documents without a label are left
    out. If MODEL has a tree, near misses are measured too (hierarchical precision, recall and
    F: of labels together with all above them), and each level of the tree, with labels replaced
    by those above them there.
    """
    from polytopic.cli.models import load_labeler

    labeler = load_labeler(model)
    if dask is None and workers is None:
        n_docs, measures, levels = _measured(labeler, documents, split, reading)
    else:
        from polytopic import distributed

        with engine(dask, workers, "measuring") as how:
            asked = {"split": split, "on_skipped": tell_skipped, **reading}
            tally = distributed.evaluate(labeler, documents, **how._asdict(), **asked)
        n_docs, measures, levels = tally.n_docs, tally.measures(), tally.levels()
    _tell(n_docs, measures, levels)


def _measured(labeler, documents, split, reading):
    """Return how many documents were measured on, and the measures of all and by level."""
    from polytopic.metrics import by_level, evaluate

    documents = list(read(documents, split=split, **reading))
    if split is None and any(d.split == "test" for d in documents):
        documents = [d for d in documents if d.split == "test"]
    documents = [d for d in documents if d.labels]
    if not documents:
        raise ValueError("no labelled document to measure on.")
    true, predicted = [_ids(labeler, d.labels) for d in documents], labeler.predict(documents)
    scores, tree = labeler.decision_function(documents), labeler.tree
    classes = labeler.classes_.tolist()
    measures = evaluate(true, predicted, scores, classes=classes, tree=tree)
    levels = {} if tree is None else by_level(true, predicted, tree, _measures, classes=classes)
    return len(documents), measures, levels


def _tell(n_docs, measures, levels):
    if on_terminal():
        table(f"{n_docs:,} documents", ["measure", ">value"], measures.items())
        if levels:
            columns = [f">{name}" for name in ("level", *levels[0])]
            table("", columns, [(level, *values.values()) for level, values in levels.items()])
    else:
        answer: dict[str, Any] = {
            "documents": n_docs,
            **{k: finite(v) for k, v in measures.items()},
        }
        if levels:
            answer["levels"] = [
                {"level": level, **{k: finite(v) for k, v in values.items()}}
                for level, values in levels.items()
            ]
        echo_json(answer)


def _ids(labeler, labels):
    """Return the ids of labels, which documents may know by name."""
    return sorted({labeler.resolve(label) for label in labels})


def _measures(true, predicted):
    """Return what is told of a level."""
    from polytopic.metrics import macro_f1, micro_f1, samples_f1, subset_accuracy

    measures = (samples_f1, subset_accuracy, micro_f1, macro_f1)
    return {"labels": true.shape[1], **{m.__name__: m(true, predicted) for m in measures}}
