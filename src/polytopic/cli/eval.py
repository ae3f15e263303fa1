"""polytopic eval."""

import click

from polytopic.cli.documents import document_options, read
from polytopic.cli.show import echo_json, finite, on_terminal, table


@click.command(name="eval")
@click.argument("model")
@click.argument("documents")
@click.option("--split", help="Part to measure on; the test part by default, where there is one.")
@document_options
def command(model, documents, split, **reading):
    """Measure how well MODEL labels the labelled documents in DOCUMENTS.

    A true label that the model never saw counts as missed; documents without a label are left
    out.
    """
    from polytopic.labeler import load
    from polytopic.metrics import evaluate

    labeler = load(model)
    documents = list(read(documents, split=split, **reading))
    if split is None and any(d.split == "test" for d in documents):
        documents = [d for d in documents if d.split == "test"]
    documents = [d for d in documents if d.labels]
    if not documents:
        raise ValueError("no labelled document to measure on.")
    true, predicted = [d.labels for d in documents], labeler.predict(documents)
    scores = labeler.decision_function(documents)
    measures = evaluate(true, predicted, scores, classes=labeler.classes_.tolist())
    if on_terminal():
        table(f"{len(documents):,} documents", ["measure", ">value"], measures.items())
    else:
        echo_json({"documents": len(documents), **{k: finite(v) for k, v in measures.items()}})
