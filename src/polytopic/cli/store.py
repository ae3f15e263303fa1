"""The commands ``polytopic store …``: keep documents, counts and models in a database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice

import click

from polytopic.cli.documents import batches, blocks, read, read_objects
from polytopic.cli.options import (
    FiniteFloat,
    add_options,
    check_target,
    count_option,
    document_options,
    json_option,
    k_option,
    language_option,
    read_field_weights,
)
from polytopic.cli.output import echo_json, image_of, on_terminal, table, with_progress, write_file
from polytopic.decision.registry import RULE_NAMES
from polytopic.models.registry import DEFAULT_COUNT_MODEL, model_names

MAX_NAMES = 10  # ids or labels of a receipt on a terminal
MAX_TRENDS = 5  # labels per trend on a terminal


class StoreGroup(click.Group):
    """The commands, listed in the order in which a user needs them."""

    def list_commands(self, context):
        """Return the names of the commands."""
        return list(self.commands)


@click.command(name="store", cls=StoreGroup)
def command():
    """Keep documents, counts and models in a database that you can correct and erase from.

    \b
      polytopic store init news.db                   create a store
      polytopic store learn news.db news.jsonl       learn documents, or corrections of them
      polytopic store forget news.db 17 23           erase documents
      polytopic suggest news.db fresh.jsonl          label new documents

    STORE is a file, or the URL of a PostgreSQL database: postgresql+psycopg://user@host/name.
    Every change prints a receipt with the changes, and with the store's revision and digest before
    and after.
    """  # noqa: D301  (click reads \b)


def open_store(url: str):
    """Open a store that exists."""
    from polytopic.store import Store

    return Store(url, create=False)


store_argument = click.argument("url", metavar="STORE")
label_option = click.option(
    "--label", "labels", multiple=True, help="Only this label and those below it; repeatable."
)
keep_option = count_option(
    "--keep", 10, "Number of published models to keep; the oldest are deleted."
)


def rule_option(help: str) -> Callable:
    """Return the option for the name of a decision rule."""
    return click.option(
        "--rule",
        type=click.Choice(RULE_NAMES),
        help=f"{help} by default, the model decides. auto chooses one on held-out documents.",
    )


# Which documents a command uses; `read_selection` reads these options.
selection_options = add_options(
    click.option(
        "--as-of",
        metavar="MOMENT",
        help="Documents as of a revision or a time, without those forgotten since.",
    ),
    click.option("--since", metavar="TIME", help="Only documents from this time on."),
    click.option("--until", metavar="TIME", help="Only documents before this time."),
    click.option(
        "--label",
        "labels",
        multiple=True,
        help="Only documents with this label or one below it; repeatable.",
    ),
)


def read_selection(as_of, since, until, labels) -> dict:
    """Return the values of `selection_options` as the library takes them."""
    if as_of is not None and as_of.isdecimal():
        as_of = int(as_of)
    return {"as_of": as_of, "since": since, "until": until, "labels": list(labels) or None}


# Documents


@command.command()
@store_argument
@language_option
@click.option(
    "--model",
    default=DEFAULT_COUNT_MODEL,
    show_default=True,
    type=click.Choice(model_names()),
    help="The model to fit. Fitting takes longer for those that learn from whole documents: "
    f"{', '.join(model_names('documents'))}.",
)
@click.option("--tree", metavar="FILE", help="Tree of labels: SKOS (.ttl, .rdf), CSV or TSV.")
@click.option(
    "--field-weight",
    multiple=True,
    metavar="NAME=WEIGHT",
    help="Whole-number weight of a field, such as title=2; repeatable.",
)
@click.option("--keep-texts", is_flag=True, help="Keep the texts, not only their counts.")
@rule_option("Decision rule of the models, tuned when a model is fitted;")
def init(url, language, model, tree, field_weight, keep_texts, rule):
    """Create an empty STORE."""
    from polytopic.labels import LabelTree
    from polytopic.store import Store
    from polytopic.text import Analyzer

    with Store(
        url,
        analyzer=Analyzer(language),
        model=model,
        fields=read_field_weights(field_weight),
        tree=tree and LabelTree.from_file(tree),
        keep_texts=keep_texts,
        rule=rule,
        must_be_new=True,
    ) as store:
        click.echo(f"Created {store}.", err=True)


@command.command()
@store_argument
@click.argument("documents", default="-")
@count_option("--batch", 1000, "Maximum number of documents per transaction.")
@click.option("--split", help="Only this part of the documents, such as train.")
@document_options
def learn(url, documents, batch, split, **reading):
    """Learn DOCUMENTS (standard input by default) into STORE.

    Each document needs an id. If STORE already has the same document, nothing happens, so it is
    safe to try again. If its labels, words or time differ, it is corrected. Each batch is learned
    completely or not at all, and prints a receipt. A batch of standard input is what has arrived so
    far.
    """
    stream = read(documents, split=split, line_ids=False, **reading)
    with open_store(url) as store:
        parts = blocks(stream, batch) if documents == "-" else batches(stream, batch)
        show_receipts(store.learn(part) for part in parts)


@command.command()
@store_argument
@click.argument("document", required=False)
@click.argument("labels", nargs=-1)
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help='Read JSON lines with "id" and "labels" instead; - for standard input.',
)
def relabel(url, document, labels, source):
    """Replace the labels of DOCUMENT in STORE with LABELS; without LABELS, remove them.

    Fails if STORE has none of the documents; otherwise the receipt lists those it does not have.
    """
    if (document is None) == (source is None):
        raise click.UsageError("give a document and its labels, or a file of them with --from.")
    new_labels = {document: list(labels)}
    if source is not None:
        rows = read_objects(source, required=("id", "labels"))
        new_labels = {str(row["id"]): row["labels"] for row in rows}
    with open_store(url) as store:
        receipt = store.relabel(new_labels)
    show_receipt(receipt)
    if new_labels and len(receipt.missing) == len(new_labels):
        raise click.ClickException("the store has none of these documents.")


@command.command()
@store_argument
@click.argument("ids", nargs=-1)
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help="Read ids from a file, one per line; - for standard input.",
)
@click.option(
    "--purge",
    is_flag=True,
    help="Delete the published models that have seen forgotten documents, instead of marking them.",
)
def forget(url, ids, source, purge):
    """Erase the documents with these IDS from STORE, all or none.

    Fails if STORE has none of the documents; otherwise the receipt lists those it does not have.
    """
    if source is not None:
        from polytopic.lines import read_lines

        ids = [*ids, *filter(None, (line.strip() for _, line in read_lines(source)))]
    if not ids:
        raise click.UsageError("no ids are given; give ids, or a file of them with --from.")
    with open_store(url) as store:
        receipt = store.forget(ids, purge=purge)
    show_receipt(receipt)
    if receipt.missing and not (receipt.forgotten or receipt.purged_models):
        raise click.ClickException("the store has none of these documents.")


def show_receipt(receipt) -> None:
    """Print a receipt: as JSON, or on a terminal what is not zero or empty."""
    facts = receipt.to_dict()
    if on_terminal():
        rows = [(name.replace("_", " "), _cell(value)) for name, value in facts.items() if value]
        table("", ["", ""], rows)
    else:
        echo_json(facts)


def show_receipts(receipts: Iterable) -> None:
    """Print the receipt of each batch; if printing fails, learn the rest before failing."""
    failure = None
    for receipt in receipts:
        try:
            show_receipt(receipt)
        except OSError as error:
            failure = error
    if failure is not None:
        raise failure


def _cell(value) -> str:
    if isinstance(value, list):
        return _shorten_list(list(map(str, value)), MAX_NAMES)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _shorten_list(names: list[str], k: int) -> str:
    more = f" and {len(names) - k:,} more" if len(names) > k else ""
    return ", ".join(names[:k]) + more


# Counts and analysis


@command.command()
@store_argument
@selection_options
@k_option(8, "Words to show for each label.")
def counts(url, as_of, since, until, labels, k):
    """Show the table of counts in STORE.

    Prints one JSON object per label set: its labels, its number of documents, and its term counts.
    On a terminal, shows each label with its number of documents and most frequent words.
    """
    with open_store(url) as store:
        snapshot = store.counts(**read_selection(as_of, since, until, labels))
    n, missing = snapshot.n_forgotten, ""
    if n:
        missing = f"; {n:,} more {'has' if n == 1 else 'have'} since been forgotten"
    click.echo(f"Revision {snapshot.revision}: {snapshot.n_docs:,} documents{missing}.", err=True)
    if on_terminal():
        _show_labels(snapshot, k)
        return
    for names, n_docs, row in zip(
        snapshot.label_sets, snapshot.set_docs, snapshot.matrix, strict=True
    ):
        terms = {snapshot.terms[k]: int(n) for k, n in zip(row.indices, row.data, strict=True)}
        echo_json({"labels": list(names), "documents": int(n_docs), "counts": terms})


def _show_labels(snapshot, k):
    import numpy as np

    by_label = (snapshot.indicator.T @ snapshot.matrix).tocsr()
    documents = snapshot.indicator.T @ snapshot.set_docs
    rows = []
    for label, n_docs, row in zip(snapshot.labels, documents, by_label, strict=True):
        best = row.indices[np.argsort(-row.data, kind="stable")[:k]]
        rows.append((label, f"{n_docs:,.0f}", " ".join(snapshot.terms[term] for term in best)))
    table("", ["label", ">documents", "most frequent words"], rows)


@command.command()
@store_argument
@click.argument("before")
@click.argument("after", required=False)
@k_option(10, "Words to show for each label.")
@label_option
@json_option
def diff(url, before, after, k, labels, as_json):
    """Show which labels of STORE changed between two moments, and in which words.

    BEFORE and AFTER are revisions or times (2024-05-31); AFTER is now by default. Labels are sorted
    by the size of the change: the Jensen-Shannon divergence of their words (0: the same words in
    the same proportions, 1: no word in common) times their number of documents. Documents that
    have since been forgotten are left out of both.
    """
    with open_store(url) as store:
        differences = store.diff(before, after, k=k, labels=labels)
    if as_json or not on_terminal():
        for difference in differences:
            echo_json(difference.to_dict())
    elif not differences:
        click.echo("No label changed.")
    else:
        columns = ["label", ">documents", ">words", ">divergence", "growing", "falling"]
        table("", columns, map(_difference_row, differences))


def _difference_row(difference):
    def change(before, after):
        return f"{before:,} → {after:,}" if before != after else f"{before:,}"

    return (
        difference.label,
        change(difference.documents_before, difference.documents_after),
        change(difference.words_before, difference.words_after),
        difference.divergence,
        ", ".join(term.term for term in difference.growing),
        ", ".join(term.term for term in difference.falling),
    )


@command.command()
@store_argument
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month", "year"]),
    default="day",
    show_default=True,
    help="The length of a period.",
)
@click.option("--since", metavar="TIME", help="Only periods from this time on.")
@click.option("--until", metavar="TIME", help="Only periods before this time.")
@label_option
@click.option("--plot", metavar="FILE", help="Plot to .png, .svg or .pdf; needs matplotlib.")
@json_option
def drift(url, by, since, until, labels, plot, as_json):
    """Show how the documents of STORE drift over time.

    Each period is evaluated with a model of all documents before it: the perplexity of its words
    (higher is more surprising), the share of unknown words, the samples F1 of the predicted labels,
    and the labels that are new or have significantly more or fewer documents than before. Days are
    in UTC; a document without a time has the time when it was first learned. A model is fitted for
    each period, so long streams are faster by week or month.
    """
    with open_store(url) as store:
        result = store.drift(by=by, since=since, until=until, labels=labels)
    if plot:
        write_file(plot, image_of(result.plot(), plot))  # first: printing may fail
    if as_json or not on_terminal():
        for period in result.periods:
            echo_json(period.to_dict())
    elif not result.periods:
        click.echo("No documents.")
    else:
        columns = [by, ">documents", ">perplexity", ">unknown", ">F1", "growing", "vanishing"]
        table("", [*columns, "new"], map(_period_row, result.periods))


def _period_row(period):
    trends = (period.trending(trend) for trend in ("growing", "vanishing", "new"))
    return (
        period.start,
        f"{period.documents:,}",
        "-" if period.perplexity is None else f"{period.perplexity:,.0f}",
        "-" if period.unknown is None else f"{period.unknown:.1%}",
        "-" if period.samples_f1 is None else f"{period.samples_f1:.2f}",
        *(_shorten_list([label.label for label in labels], MAX_TRENDS) for labels in trends),
    )


@command.command()
@store_argument
def verify(url):
    """Recount the ledger of STORE, and check that all tables and digests agree with it."""
    with open_store(url) as store:
        result = store.verify()
    if on_terminal():
        click.echo(f"Revision {result.revision}: {result.documents:,} documents, {result.digest}.")
        click.echo("\n".join(result.problems) if result.problems else "No problems found.")
    else:
        echo_json(result.to_dict())
    if not result.ok:
        raise click.ClickException("the store does not agree with its ledger.")


# Topics


@command.command()
@store_argument
def assign(url):
    """Assign topics to the documents of STORE that have none from its current model.

    Others may use STORE meanwhile. Stop it at any time: the next run continues.
    """
    with open_store(url) as store:
        n_docs = store.assign()
    click.echo(f"Assigned topics to {n_docs:,} documents.", err=True)


topic_options = add_options(
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="LABEL",
        help="Only documents with this topic or one below it in the tree; repeatable.",
    ),
    click.option("--since", metavar="TIME", help="Only documents from this time on."),
    click.option("--until", metavar="TIME", help="Only documents before this time."),
    click.option(
        "--min-probability",
        type=FiniteFloat(0, 1),
        metavar="NUMBER",
        help="Least probability of the topic, such as 0.8.",
    ),
)


@command.command()
@store_argument
@topic_options
@click.option("--text", metavar="WORDS", help="Only documents that contain all of these words.")
@click.option("-k", type=click.IntRange(min=1), help="Number of documents; all by default.")
@json_option
def find(url, topics, since, until, min_probability, text, k, as_json):
    """Find documents of STORE by topic, time and words, the newest first.

    The topics of a document are the labels that it was learned with or, if it has none, those that
    polytopic store assign, polytopic desk or a running service has assigned to it. Documents are
    printed as JSON lines, with their texts if STORE keeps them; on a terminal, as a table.
    """
    criteria = {
        "topic": list(topics) or None,
        "since": since,
        "until": until,
        "min_probability": min_probability,
        "text": text,
    }
    with open_store(url) as store:
        matches = islice(find_all(store, criteria), k)
        if not as_json and on_terminal():
            columns = ["time", "id", "topics", ""]
            table("", columns, [_match_row(match) for match in matches])
        else:
            for match in matches:
                echo_json(match.to_dict())
        _warn_of_unassigned(store)


def find_all(store, criteria):
    """Yield all documents that meet criteria, page by page."""
    after, k = None, 10
    while True:
        page = store.find(**criteria, k=k, after=after)
        yield from page
        after, k = page.next, 1000  # the first documents soon
        if after is None:
            return


def _match_row(match):
    topics = match.labels or [f"{t.label} {t.probability or 0:.2f}" for t in match.topics]
    content = match.content
    if isinstance(content, dict):
        content = next(iter(content.values()), "")
    return match.time[:16].replace("T", " "), match.id, ", ".join(topics), str(content or "")[:80]


def _warn_of_unassigned(store):
    n_docs = store.info()["documents"] - store.info()["assigned"]
    if n_docs:
        click.echo(
            f"{n_docs:,} documents have no topics from a model yet; run polytopic store assign.",
            err=True,
        )


@command.command()
@store_argument
@topic_options
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month", "year"]),
    default="day",
    show_default=True,
    help="The length of a period.",
)
@json_option
def topics(url, topics, since, until, min_probability, by, as_json):
    """Count the documents of each topic of STORE in each period."""
    with open_store(url) as store:
        counts = store.count_topics(
            by=by,
            topic=list(topics) or None,
            since=since,
            until=until,
            min_probability=min_probability,
        )
    rows = [
        (start, label, numbers[k])
        for k, start in enumerate(counts.starts)
        for label, numbers in counts.labels.items()
        if numbers[k]
    ]
    if not as_json and on_terminal():
        table("", [by, "topic", ">documents"], rows)
    else:
        for start, label, n_docs in rows:
            echo_json({"start": start, "topic": label, "documents": n_docs})


# Models


@command.command()
@store_argument
@click.argument("model", required=False)
@click.option(
    "--fit",
    "name",
    type=click.Choice(model_names()),
    help="The model to fit; by default the store's.",
)
@rule_option("Decision rule, tuned on held-out documents and kept by refresh;")
@selection_options
@click.option("--note", help="A note for the history.")
@keep_option
def publish(url, model, name, rule, as_of, since, until, labels, note, keep):
    """Fit a model on STORE, or load the file MODEL, and make it the current model."""
    from polytopic.labeler import load

    selection = read_selection(as_of, since, until, labels)
    if model is not None and (name is not None or rule is not None or any(selection.values())):
        raise click.UsageError(
            "MODEL is fitted already; leave out --fit, --rule, --as-of, --since, --until and "
            "--label."
        )
    if rule is not None:
        selection["rule"] = rule
    with open_store(url) as store:
        labeler = load(model) if model is not None else store.fit(name, **selection)
        _show_model(store, store.publish(labeler, note=note, keep=keep))


@command.command()
@store_argument
@keep_option
def refresh(url, keep):
    """Fit the current model of STORE again and publish it, if STORE has changed.

    It is fitted from scratch, with the hyper-parameters chosen when it was first published. A model
    that was rolled back to, or published as of an earlier moment, is left alone, unless it has seen
    a document that has since been forgotten; then it is fitted again without that document.
    """
    with open_store(url) as store:
        number = store.refresh(keep=keep)
        if number is None:
            click.echo("Nothing to refresh.", err=True)
        else:
            _show_model(store, number)


@command.command()
@store_argument
@click.argument("number", type=click.IntRange(1, 2**63 - 1), required=False)
def rollback(url, number):
    """Make an earlier published model of STORE current: the previous one, or the one with NUMBER.

    It stays current until another model is published. A model that has seen a document that has
    since been forgotten is rejected.
    """
    with open_store(url) as store:
        _show_model(store, store.rollback(number))


def _show_model(store, number: int) -> None:
    echo_json(next(model.to_dict() for model in store.history() if model.id == number))


@command.command()
@store_argument
def history(url):
    """List the published models of STORE, the newest first."""
    with open_store(url) as store:
        models = store.history()
    if not on_terminal():
        for model in models:
            echo_json(model.to_dict())
    elif not models:
        click.echo("No model is published.")
    else:
        columns = ["", ">number", "published", "model", ">revision", "", "note"]
        table("", columns, map(_model_row, models))


def _model_row(model):
    return (
        "✓" if model.current else "",
        model.id,
        model.time[:16].replace("T", " "),
        model.name,
        "" if model.origin.revision is None else model.origin.revision,
        "" if model.marked is None else f"saw a document forgotten at {model.marked}",
        model.note or "",
    )


# Other stores


@command.command()
@store_argument
@click.argument("other")
def merge(url, other):
    """Learn the documents of the store OTHER into STORE: counts, labels and times, but no texts.

    Both must have the same analyzer and fields. If a document is in both stores and differs,
    nothing is merged.
    """
    with open_store(url) as store, open_store(other) as other_store:
        show_receipt(store.merge(other_store))


@command.command()
@store_argument
@click.option("--to", "target", metavar="FILE", help="Write to a file, completely or not at all.")
def export(url, target):
    """Write STORE as JSON lines, to be imported elsewhere.

    The first line has the settings. Each document follows with its counts, or with its text if
    texts are kept. Former versions of documents and published models are not exported.
    """
    from polytopic.errors import StoreError
    from polytopic.files import new_file
    from polytopic.store.transfer import export_lines

    check_target("--to", target, url)

    with open_store(url) as store:
        lines = (json.dumps(line, ensure_ascii=False) for line in export_lines(store))
        if target is None:
            for line in lines:
                click.echo(line)
        else:
            with new_file(target, StoreError) as file:
                file.writelines(f"{line}\n".encode() for line in with_progress(lines))


@command.command(name="import")
@store_argument
@click.argument("source", default="-")
def import_(url, source):
    """Learn an export (standard input by default) into STORE, which is created if necessary.

    An existing store must have the same settings, and not a different tree of labels. Each batch is
    learned completely or not at all, and it is safe to try again.
    """
    from polytopic.store.transfer import import_lines

    show_receipts(import_lines(url, with_progress(read_objects(source))))
