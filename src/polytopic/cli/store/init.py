"""polytopic store init."""

import click

from polytopic.cli.documents import language_option


@click.command()
@click.argument("store")
@language_option
@click.option(
    "--model",
    default="pmm1",
    show_default=True,
    type=click.Choice(["mml", "pmm1", "pmm2", "pdmm", "nb", "col", "boostexter"]),
    help="The model to fit; mml, col and boostexter learn from whole documents, which takes "
    "longer.",
)
@click.option("--tree", metavar="FILE", help="Tree of labels: SKOS (.ttl, .rdf), CSV or TSV.")
@click.option(
    "--field-weight",
    multiple=True,
    metavar="NAME=WEIGHT",
    help="Whole weight of a field, such as title=2; may be repeated.",
)
@click.option("--keep-texts", is_flag=True, help="Keep the texts, not only their counts.")
def command(store, language, model, tree, field_weight, keep_texts):
    """Make an empty STORE."""
    from polytopic.cli.train import read_field_weights
    from polytopic.labels import LabelTree
    from polytopic.store import Store
    from polytopic.text import Analyzer

    with Store(
        store,
        analyzer=Analyzer(language),
        model=model,
        fields=read_field_weights(field_weight),
        tree=tree and LabelTree.from_file(tree),
        keep_texts=keep_texts,
        must_be_new=True,
    ) as new:
        click.echo(f"Made {new}.", err=True)
