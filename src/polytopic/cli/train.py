"""polytopic train."""

import click

from polytopic.cli.documents import document_options, read


@click.command()
@click.argument("corpus")
@click.option("--to", "target", required=True, help="Model file to write.")
@click.option(
    "--model",
    type=click.Choice(["pmm1", "nb"]),
    default="pmm1",
    show_default=True,
    help="pmm1: parametric mixture model; nb: naive Bayes.",
)
@click.option(
    "--language",
    default="en",
    show_default=True,
    help="Language of the texts (en, cs, de, …); none takes words as they are.",
)
@click.option("--tree", help="Tree of labels: a TSV or CSV file of label and parent, or 'names'.")
@click.option("--smoothing", type=float, help="Pseudo-count of each word in each label.")
@click.option(
    "--rule",
    type=click.Choice(["world-model", "top-2", "top-3"]),
    help="Which labels are enough; the model's own way by default. world-model is for nb.",
)
@click.option("--min-df", type=int, help="Documents a term must be in; 2 for 1000 or more.")
@click.option("--max-terms", type=int, help="Terms to keep, the most frequent ones.")
@click.option("--split", default="train", show_default=True, help="Part of the corpus to learn.")
@click.option("--no-counts", is_flag=True, help="Write a smaller file that cannot learn or forget.")
@document_options
def command(
    corpus,
    target,
    model,
    language,
    tree,
    smoothing,
    rule,
    min_df,
    max_terms,
    split,
    no_counts,
    **reading,
):
    """Learn a model from the labelled documents in CORPUS.

    Documents that a corpus marks as its test part are never read.
    """
    if split == "test":
        raise click.UsageError("--split test is for suggest and eval; a test part is not learned.")
    from polytopic.labeler import Labeler
    from polytopic.models import MODELS

    settings = {} if smoothing is None else {"smoothing": smoothing}
    labeler = Labeler(
        MODELS[model](**settings),
        language=None if language == "none" else language,
        rule=_rule(rule),
        min_df="auto" if min_df is None else min_df,
        max_terms=max_terms,
    )
    labeler.fit(read(corpus, split=split, **reading))
    if tree is not None:
        labeler.tree = _tree(tree, labeler.classes_.tolist())
    labeler.save(target, counts=not no_counts)
    click.echo(
        f"Learned {labeler.training_['documents']:,} documents, {labeler.classes_.size:,} labels "
        f"and {len(labeler.vocabulary_):,} terms; wrote {target}.",
        err=True,
    )


def _rule(name):
    from polytopic.decision import TopK, WorldModel

    if name is None:
        return None
    return WorldModel() if name == "world-model" else TopK(int(name.removeprefix("top-")))


def _tree(tree, labels):
    from polytopic.labels import LabelTree

    if tree == "names":
        return LabelTree.from_names(labels, separator=None)
    return LabelTree.from_file(tree)
