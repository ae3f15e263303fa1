"""The command ``polytopic train``."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import click

from polytopic.cli.documents import read
from polytopic.cli.options import (
    FiniteFloat,
    check_target,
    cluster_options,
    document_options,
    join_names,
    language_option,
    open_cluster,
    read_field_weights,
    report_skipped,
)
from polytopic.decision.registry import RULES as ALL_RULES
from polytopic.models.registry import (
    CLUSTER_QUALITY,
    DEFAULT_QUALITY,
    LARGE_LABELS,
    QUALITIES,
    find_model,
    find_quality,
    model_names,
)

MODEL_OPTIONS = dict.fromkeys(
    option for name in model_names() for option in find_model(name).options
)
RULES = {rule.option: rule for rule in ALL_RULES.values() if rule.option}
RULE_OPTIONS = dict.fromkeys(option for rule in RULES.values() for option in rule.settings)
HELD_OUT = 0.2  # share of documents that --rule auto chooses with


def models_with(option: str) -> tuple[str, ...]:
    """Return the models to which an option of this command applies."""
    return tuple(name for name in model_names() if option in find_model(name).options)


def model_option(name: str, help: str, **settings: Any) -> Callable:
    """Return an option of some models; its help ends with their names."""
    help = f"{help} For {join_names(models_with(name))}."
    return click.option(f"--{name}", name, help=help, **settings)


def describe_quality(quality, n_labels=0):
    """Return a quality with the models that it stands for."""
    model, parameters = find_quality(quality, n_labels)
    members = parameters.get("members")
    if not parameters.get("machines", True):
        model += " without machines"
    return f"{quality}: {f'{join_names(members)} combined' if members else model}"


def read_guarantee(promise: str | None) -> dict[str, float] | None:
    """Return the value of --guarantee, such as recall=0.9."""
    if promise is None:
        return None
    name, _, level = promise.partition("=")
    try:
        guarantee = {name: float(level)}
    except ValueError:
        guarantee = {}
    if name != "recall" or not 0 < guarantee.get(name, 0) < 1:
        raise click.BadParameter(f"{promise} must be recall=NUMBER, with a number from 0 to 1.")
    return guarantee


def read_features(names: Iterable[str]) -> list | None:
    """Return the values of --features as a labeler takes them; None if there are none."""
    from polytopic.labeler.features import is_published_name
    from polytopic.text import CharacterNGrams, Embeddings, WordNGrams

    features: list[Any] = []
    for name in names:
        library, _, model = name.rpartition(":")
        if name in ("characters", "words"):
            features.append(CharacterNGrams() if name == "characters" else WordNGrams())
        elif not is_published_name(model):
            raise click.UsageError(
                f"--features {name}: a model file does not say which folder is read, so only "
                "models by their published name can be used here; use Labeler(features=...) for "
                "others."
            )
        else:
            features.append(Embeddings(model, **({"library": library} if library else {})))
    return features or None


def read_cost(cost: str | None) -> float | str | None:
    """Return the value of --C: a number, "auto" or None."""
    if cost is None or cost == "auto":
        return cost
    try:
        number = float(cost)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.UsageError(f"--C {cost}, must be a finite number > 0 or auto.")
    return number


@click.command()
@click.argument("corpus")
@click.option("--to", "target", required=True, help="Model file to write.")
@click.option(
    "--model",
    type=click.Choice(model_names()),
    help="; ".join(f"{name}: {find_model(name).title}" for name in model_names())
    + ". By default, that of --quality.",
)
@click.option(
    "--quality",
    type=click.Choice(list(QUALITIES)),
    help=f"How much time to spend for better labels, instead of --model; {DEFAULT_QUALITY} by "
    f"default, {CLUSTER_QUALITY} with --dask or --workers. "
    f"{'; '.join(map(describe_quality, QUALITIES))}. From {LARGE_LABELS} labels on, models for "
    "thousands of labels take their place; "
    f"{'; '.join(describe_quality(name, LARGE_LABELS) for name in QUALITIES)}.",
)
@model_option(
    "goal",
    "What to optimize: F1 of label sets (default), exact matches or, with stack, F1 per label.",
    type=click.Choice(["f", "exact", "macro"]),
)
@model_option(
    "C",
    "Cost of margin violations; auto (default) tunes it.",
    metavar="NUMBER|auto",
    callback=lambda context, option, value: read_cost(value),
)
@model_option("topics", "Number of topics; tuned by default.", type=click.IntRange(min=1))
@model_option("rounds", "Number of rules to learn; by default 1000.", type=click.IntRange(min=1))
@model_option(
    "decode",
    "Label set to predict: the one with the best expected F1 (default), the most probable one, or "
    "the result of a greedy search.",
    type=click.Choice(["f", "map", "greedy"]),
)
@model_option(
    "prior",
    "Prior of label sets: by sets (default), by labels, or uniform.",
    type=click.Choice(["labelset", "labels", "uniform"]),
)
@model_option(
    "smoothing",
    "Pseudo-count of each word in each label.",
    type=FiniteFloat(min=0, min_open=True),
)
@click.option(
    "--keep-documents",
    is_flag=True,
    help="Keep the documents' counts, so that the model can learn later. For "
    f"{join_names(model_names('documents'))}.",
)
@language_option
@click.option(
    "--tree",
    metavar="FILE|names",
    help="Tree of labels: a SKOS (.ttl, .rdf), CSV or TSV file (see the guide), or names if the "
    "labels are paths such as science/space.",
)
@click.option(
    "--rule",
    type=click.Choice([*RULES, "top-2", "top-3", "auto"]),
    help="Decision rule; by default, the model decides. world-model needs naive Bayes, tree-cohort "
    "needs --tree. auto chooses a rule on a held-out fifth of the documents, and keeps the model's "
    "own decision if no rule is better.",
)
@click.option(
    "--ratio", type=FiniteFloat(0, 1), help="How close other labels must be to the best one."
)
@click.option("--size", type=click.IntRange(min=1), help="Number of labels in a cohort.")
@click.option(
    "--cohort",
    type=click.Choice(["next", "best"]),
    help="Labels that a label is compared with by --rule cohort: those that follow it in the "
    "ranking (default), or the best others.",
)
@click.option(
    "--guarantee",
    metavar="recall=NUMBER",
    callback=lambda context, option, value: read_guarantee(value),
    help="Predict as many labels as it takes for this share of the right ones, on average, such as "
    "recall=0.9; chosen on held-out documents. Instead of --rule.",
)
@click.option(
    "--features",
    "feature_names",
    multiple=True,
    metavar="characters|words|MODEL",
    help="What to read beside the words: n-grams of characters, n-grams of words, or the "
    "embeddings of a sentence-transformers model by its published name (model2vec:NAME for one of "
    "model2vec), which must be on this computer; repeatable. Files with features cannot learn or "
    "forget.",
)
@click.option(
    "--min-df",
    type=int,
    help="Number of documents that must contain a term; by default 2 if there are 1000 documents "
    "or more, otherwise 1.",
)
@click.option("--max-terms", type=int, help="Maximum number of terms; the most frequent are kept.")
@click.option(
    "--field-weight",
    multiple=True,
    metavar="NAME=WEIGHT",
    help="Weight of a field, such as title=2; repeatable.",
)
@click.option("--split", default="train", show_default=True, help="Part of the corpus to learn.")
@click.option(
    "--no-counts", is_flag=True, help="Write a smaller file, which cannot learn or forget."
)
@cluster_options
@document_options
def command(
    corpus,
    target,
    model,
    quality,
    keep_documents,
    language,
    tree,
    rule,
    guarantee,
    feature_names,
    min_df,
    max_terms,
    field_weight,
    split,
    no_counts,
    dask,
    workers,
    **options,
):
    """Learn a model from the labelled documents in CORPUS.

    Documents that belong to the test part of the corpus are never read.
    """
    if split == "test":
        raise click.UsageError(
            "--split test is for suggest and eval; train never reads the test part."
        )
    check_target("--to", target, corpus, tree)
    if feature_names and keep_documents:
        raise click.UsageError(
            "--keep-documents keeps word counts, not texts, which features need."
        )
    on_cluster = dask is not None or workers is not None
    by_quality = model is None
    if by_quality and quality is None:
        quality = CLUSTER_QUALITY if on_cluster else DEFAULT_QUALITY
    model, parameters = _find_model(model, quality)
    rule_settings = {name: options[name] for name in RULE_OPTIONS if options[name] is not None}
    _check_rule(rule, model, tree, rule_settings)
    if guarantee is not None and rule is not None:
        raise click.UsageError("--guarantee and --rule both decide the labels; use one of them.")
    if on_cluster:
        _check_cluster(model, rule, guarantee, keep_documents)
    own_options = {**MODEL_OPTIONS, **RULE_OPTIONS}
    reading = {name: value for name, value in options.items() if name not in own_options}
    settings = {name: options[name] for name in MODEL_OPTIONS if options[name] is not None}
    _check_options(model, settings, keep_documents)
    entry = find_model(model)
    from polytopic.labeler import Labeler
    from polytopic.labels import LabelTree

    own = {entry.options[name]: value for name, value in settings.items()}
    by_quality &= not own  # without options, the number of labels also decides on the model
    labeler = Labeler(
        None if by_quality else entry.create(**{**parameters, **own}),
        quality=quality if by_quality else None,
        language=language,
        min_df="auto" if min_df is None else min_df,
        max_terms=max_terms,
        fields=read_field_weights(field_weight),
        tree=None if tree in (None, "names") else LabelTree.from_file(tree),
        keep_documents=keep_documents,
        guarantee=guarantee,
        features=read_features(feature_names),
    )
    if on_cluster:
        from polytopic import distributed

        with open_cluster(dask, workers, "learning") as cluster:
            reading |= {"split": split, "on_skipped": report_skipped}
            distributed.fit(labeler, corpus, **cluster._asdict(), **reading)
    else:
        documents: Iterable = read(corpus, split=split, **reading)
        if rule == "auto":
            documents = list(documents)
            labeler.rule = _best_rule(labeler, documents, tree)
        labeler.fit(documents)
    if tree == "names":
        labeler.tree = LabelTree.from_names(labeler.classes_.tolist(), separator=None)
    if rule != "auto":
        labeler.rule = _rule(rule, rule_settings)  # after the tree
    labeler.save(target, counts=not no_counts)
    click.echo(
        f"Learned {labeler.training_['documents']:,} documents, {labeler.classes_.size:,} labels "
        f"and {len(labeler.vocabulary_):,} terms; wrote {target}.",
        err=True,
    )


def _find_model(model, quality):
    """Return the name of the model that was asked for, and the parameters that its quality sets."""
    if model is None:
        return find_quality(quality)
    if quality is not None:
        raise click.UsageError(
            f"--quality {quality} stands for a model; leave out --model {model}, or --quality."
        )
    return model, {}


def _check_options(model, settings, keep_documents):
    """Reject options of other models."""
    models_of = {option: models_with(option) for option in settings}
    if keep_documents:
        models_of["keep-documents"] = model_names("documents")
    for option, models in models_of.items():
        if model not in models:
            raise click.UsageError(f"--{option} is for {join_names(models)}, not for {model}.")


def _check_cluster(model, rule, guarantee, keep_documents):
    """Reject what works on one machine only."""
    if not find_model(model).load().can_distribute:
        raise click.UsageError(f"{model} works on one machine only, without --dask and --workers.")
    if rule == "auto":
        raise click.UsageError(
            "--rule auto works on one machine only, without --dask and --workers."
        )
    if guarantee is not None:
        raise click.UsageError(
            "--guarantee works on one machine only, without --dask and --workers."
        )
    if keep_documents:
        raise click.UsageError(
            "--keep-documents works on one machine only: workers keep the documents."
        )


def _check_rule(rule, model, tree, settings):
    """Reject a rule without what it needs, and settings of other rules."""
    kind = RULES[rule].load() if rule in RULES else None
    if kind is not None and kind.needs_reference and not _has_world_score(model):
        models = [name for name in model_names() if _has_world_score(name)]
        raise click.UsageError(f"--rule {rule} needs --model {join_names(models)}, not {model}.")
    if kind is not None and kind.needs_tree and tree is None:
        raise click.UsageError(f"--rule {rule} needs --tree.")
    for setting in settings:
        rules = [name for name, entry in RULES.items() if setting in entry.settings]
        if rule not in rules:
            raise click.UsageError(f"--{setting} is for {join_names(rules)}.")


def _has_world_score(model):
    return find_model(model).load().has_world_score


def _rule(name, settings):
    from polytopic import decision

    if name is None:
        return None
    if name.startswith("top-"):
        return decision.TopK(int(name.removeprefix("top-")))
    return RULES[name].load()(**settings)


def _best_rule(labeler, documents, tree):
    """Return the best rule on held-out documents; None if the model itself is better."""
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
    test = [documents[place] for place in held_out]
    X = labeler.transform(test)
    labels = [{labeler.resolve(label) for label in document.labels} for document in test]
    tuned = tune_decision(labeler.model_, X, labels, cv="prefit", tree=labeler.tree)
    own_score = samples_f1(labels, labeler.predict(test))
    best = tuned.best_rule if tuned.best_score > own_score else None
    decision = "the model's own decision" if best is None else describe_rule(best)
    click.echo(
        f"Chose {decision}: samples F1 on {tuned.n_docs:,} held-out documents is {own_score:.3f} "
        f"with the model's own decision, and {tuned.best_score:.3f} with "
        f"{describe_rule(tuned.best_rule)}.",
        err=True,
    )
    return best
