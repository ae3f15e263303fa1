"""polytopic train."""

import math
from collections.abc import Iterable

import click

from polytopic.cli.documents import engine, read, report_skipped
from polytopic.cli.options import (
    FiniteFloat,
    cluster_options,
    document_options,
    language_option,
    read_field_weights,
)
from polytopic.decision.registry import RULES as ALL_RULES
from polytopic.models.registry import DEFAULT, find_model, model_names

OPTIONS = "decode", "prior", "smoothing", "goal", "C", "keep_documents", "topics", "rounds"
RULES = {rule.option: rule for rule in ALL_RULES.values() if rule.option}
HELD_OUT = 0.2  # share of documents that a rule is chosen by


@click.command()
@click.argument("corpus")
@click.option("--to", "target", required=True, help="Model file to write.")
@click.option(
    "--model",
    type=click.Choice(model_names()),
    default=DEFAULT,
    show_default=True,
    help="; ".join(f"{name}: {find_model(name).title}" for name in model_names()) + ".",
)
@click.option(
    "--goal",
    type=click.Choice(["f", "exact"]),
    help="What mml is to be good at: the F of label sets (default), or exact matches.",
)
@click.option(
    "--C", "cost", metavar="NUMBER|auto", help="What a violated margin of mml costs; auto chooses."
)
@click.option(
    "--keep-documents",
    is_flag=True,
    help="Keep the documents' counts, so that mml, col or boostexter can learn.",
)
@click.option(
    "--topics", type=click.IntRange(min=1), help="Topics of col; three a label if left out."
)
@click.option("--rounds", type=click.IntRange(min=1), help="Rules of boostexter; 1000 if left out.")
@click.option(
    "--decode",
    type=click.Choice(["f", "map", "greedy"]),
    help="Which label set a mixture answers with: the best expected F (default), the most "
    "probable, or that of greedy search.",
)
@click.option(
    "--prior",
    type=click.Choice(["labelset", "labels", "uniform"]),
    help="How likely label sets are beforehand: by sets (default), by labels, or all the same.",
)
@language_option
@click.option(
    "--tree",
    metavar="FILE|names",
    help="Tree of labels: SKOS (.ttl, .rdf), CSV or TSV, see the guide; or the labels themselves, "
    "if they are paths such as science/space.",
)
@click.option(
    "--smoothing",
    type=FiniteFloat(min=0, min_open=True),
    help="Pseudo-count of each word in each label, but for mml and boostexter.",
)
@click.option(
    "--rule",
    type=click.Choice([*RULES, "top-2", "top-3", "auto"]),
    help="Which labels are enough; the model's own way by default. world-model is for nb, "
    "tree-cohort needs --tree; auto chooses by a fifth of the documents, held out first, "
    "and keeps the model's own way if no rule is better.",
)
@click.option("--ratio", type=FiniteFloat(0, 1), help="How near to the best label others must be.")
@click.option("--size", type=click.IntRange(min=1), help="Rivals in a cohort.")
@click.option("--min-df", type=int, help="Documents a term must be in; 2 for 1000 or more.")
@click.option("--max-terms", type=int, help="Terms to keep, the most frequent ones.")
@click.option(
    "--field-weight",
    multiple=True,
    metavar="NAME=WEIGHT",
    help="Weight of a field, such as title=2; may be repeated.",
)
@click.option("--split", default="train", show_default=True, help="Part of the corpus to learn.")
@click.option("--no-counts", is_flag=True, help="Write a smaller file that cannot learn or forget.")
@cluster_options
@document_options
def command(
    corpus,
    target,
    model,
    goal,
    cost,
    keep_documents,
    topics,
    rounds,
    decode,
    prior,
    language,
    tree,
    smoothing,
    rule,
    ratio,
    size,
    min_df,
    max_terms,
    field_weight,
    split,
    no_counts,
    dask,
    workers,
    **reading,
):
    """Learn a model from the labelled documents in CORPUS.

    Documents that a corpus marks as its test part are never read.
    """
    if split == "test":
        raise click.UsageError("--split test is for suggest and eval; a test part is not learned.")
    _check_rule(rule, model, tree, ratio, size)
    on_cluster = dask is not None or workers is not None
    if on_cluster:
        _check_cluster(model, rule, keep_documents)
    given = {"smoothing": smoothing, "decode": decode, "prior": prior, "goal": goal}
    given |= {"C": _number(cost), "keep_documents": keep_documents or None, "topics": topics}
    given |= {"rounds": rounds}
    settings = {name: value for name, value in given.items() if value is not None}
    _check_fit(model, settings)
    settings.pop("keep_documents", None)
    entry = find_model(model)
    from polytopic.labeler import Labeler
    from polytopic.labels import LabelTree

    labeler = Labeler(
        entry.create(**{entry.options[name]: value for name, value in settings.items()}),
        language=language,
        min_df="auto" if min_df is None else min_df,
        max_terms=max_terms,
        fields=read_field_weights(field_weight),
        tree=None if tree in (None, "names") else LabelTree.from_file(tree),
        keep_documents=keep_documents,
    )
    if on_cluster:
        from polytopic import distributed

        with engine(dask, workers, "learning") as how:
            asked = {"split": split, "on_skipped": report_skipped, **reading}
            distributed.fit(labeler, corpus, **how._asdict(), **asked)
    else:
        documents: Iterable = read(corpus, split=split, **reading)
        if rule == "auto":
            documents = list(documents)
            labeler.rule = _best_rule(labeler, documents, tree)
        labeler.fit(documents)
    if tree == "names":
        labeler.tree = LabelTree.from_names(labeler.classes_.tolist(), separator=None)
    if rule != "auto":
        labeler.rule = _rule(rule, ratio, size)  # now that there is a tree
    labeler.save(target, counts=not no_counts)
    click.echo(
        f"Learned {labeler.training_['documents']:,} documents, {labeler.classes_.size:,} labels "
        f"and {len(labeler.vocabulary_):,} terms; wrote {target}.",
        err=True,
    )


def _check_fit(model, settings):
    """Reject options that are for other models."""
    for name in settings:
        models = _models_with(name)
        if model not in models:
            same = [other for other in OPTIONS if _models_with(other) == models]
            options = _listed([f"--{other.replace('_', '-')}" for other in same])
            verb = "is" if len(same) == 1 else "are"
            raise click.UsageError(f"{options} {verb} for {_listed(models)}, not for {model}.")


def _models_with(option):
    """Return the models that an option is for."""
    if option == "keep_documents":
        return model_names("documents")
    return tuple(name for name in model_names() if option in find_model(name).options)


def _check_cluster(model, rule, keep_documents):
    """Refuse what is for one machine."""
    if not find_model(model).load().can_distribute:
        raise click.UsageError(f"{model} learns on one machine, without --dask and --workers.")
    if rule == "auto":
        raise click.UsageError("--rule auto is for one machine, without --dask and --workers.")
    if keep_documents:
        raise click.UsageError("--keep-documents is for one machine: workers keep documents.")


def _listed(names):
    """Return names in a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _number(cost):
    if cost is None or cost == "auto":
        return cost
    try:
        number = float(cost)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.UsageError(f"--C {cost} is neither a finite number above 0 nor auto.")
    return number


def _check_rule(rule, model, tree, ratio, size):
    """Refuse what a rule needs and has not, or has not and gets."""
    if rule == "world-model" and not find_model(model).load().has_world_score:
        raise click.UsageError(f"--rule world-model needs --model nb, not {model}.")
    if rule == "tree-cohort" and tree is None:
        raise click.UsageError("--rule tree-cohort needs --tree.")
    for setting, value in (("ratio", ratio), ("size", size)):
        takers = [name for name, entry in RULES.items() if setting in entry.settings]
        if value is not None and rule not in takers:
            raise click.UsageError(f"--{setting} is for {_listed(takers)}.")


def _rule(name, ratio, size):
    from polytopic import decision

    if name is None:
        return None
    if name.startswith("top-"):
        return decision.TopK(int(name.removeprefix("top-")))
    given = {"ratio": ratio, "size": size}
    given = {key: value for key, value in given.items() if value is not None}
    return RULES[name].load()(**given)


def _best_rule(labeler, documents, tree):
    """Return the best rule for documents that were held out; None where the model does better."""
    from polytopic.corpus import stratified_split
    from polytopic.decision import describe_rule, tune_decision
    from polytopic.labels import LabelTree
    from polytopic.metrics import samples_f1

    documents = [document for document in documents if document.labels]
    if tree == "names":
        names = {label for document in documents for label in document.labels}
        labeler.tree = LabelTree.from_names(sorted(names), separator=None)
    train, held_out = stratified_split(documents, HELD_OUT)
    labeler.fit([documents[place] for place in train])
    rest = [documents[place] for place in held_out]
    X = labeler.transform(rest)
    labels = [{labeler.resolve(label) for label in document.labels} for document in rest]
    tuned = tune_decision(labeler.model_, X, labels, cv="prefit", tree=labeler.tree)
    own = samples_f1(labels, labeler.predict(rest))
    best = tuned.best_rule if tuned.best_score > own else None
    chosen = "the model's own way" if best is None else describe_rule(best)
    click.echo(
        f"Chose {chosen}: samples F1 on {tuned.n_docs:,} held-out documents is {own:.3f} by the "
        f"model itself, and {tuned.best_score:.3f} by {describe_rule(tuned.best_rule)}.",
        err=True,
    )
    return best
