"""Answers: documents labelled, selected and evaluated, partition by partition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from polytopic.distributed.engine import (
    Progress,
    broadcast,
    delayed,
    get_client,
    map_tasks,
    run,
    sum_results,
    sum_tuples,
    tree_reduce,
)
from polytopic.distributed.files import create_folder, part_path, write_file
from polytopic.distributed.partitions import (
    Corpus,
    PartReader,
    SkippedLines,
    number_lines,
    read,
)
from polytopic.labeler import Labeler, Selector
from polytopic.labeler.selection import selected_line
from polytopic.metrics import Tally
from polytopic.metrics.scores import above_absent

BLOCK = 1024  # documents that are labelled at once


@dataclass
class WriteSummary:
    """What was read and written; the sum of two describes both.

    Attributes
    ----------
    documents : int
        Number of documents that were read.
    counts, topics : Counter
        Counts of the selector, for all documents and by topic.
    skipped : SkippedLines
        Lines that could not be read.
    """

    documents: int = 0
    counts: Counter = field(default_factory=Counter)
    topics: Counter = field(default_factory=Counter)
    skipped: SkippedLines = field(default_factory=SkippedLines)

    def __add__(self, other: WriteSummary) -> WriteSummary:
        return WriteSummary(
            self.documents + other.documents,
            self.counts + other.counts,
            self.topics + other.topics,
            self.skipped + other.skipped,
        )


def predict(labeler: Labeler, corpus: Any, **reading: Any) -> Any:
    """Return the labels of each document, as a dask bag with the partitions of the corpus.

    Nothing is computed yet.

    Parameters
    ----------
    labeler : Labeler
        Labels the documents.
    corpus : anything that :func:`read` accepts
        The documents.
    **reading
        As for :func:`read`.
    """
    corpus = read(corpus, **reading)
    from dask import bag

    settings = broadcast((corpus.reading, _without_training_data(labeler)))
    return bag.from_delayed(map_tasks(_predict_part, corpus.parts, settings))


def _predict_part(part, settings) -> list[list[str]]:
    reading, labeler = settings
    blocks = PartReader(part, reading).blocks(BLOCK)
    return [labels for block in blocks for labels in labeler.predict(_documents(block))]


def suggest(
    labeler: Labeler,
    corpus: Any,
    target: Any,
    k: int = 5,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
    level: int | None = None,
    zipped: bool = False,
    client: Any = None,
    progress: Progress | None = None,
    **reading: Any,
) -> WriteSummary:
    """Label each document, and write the answers to files, as ``polytopic suggest`` does.

    Each partition becomes a file.

    Parameters
    ----------
    labeler : Labeler
        Labels the documents.
    corpus : anything that :func:`read` accepts
        The documents.
    target : path or URL
        Folder that workers write to.
    k : int, default=5
        Number of suggestions per document.
    include, exclude, level
        As for :meth:`polytopic.Labeler.suggest`.
    zipped : bool, default=False
        Whether to gzip the files.
    client : distributed.Client, default=None
        The cluster; by default the client that was created last.
    progress : callable, default=None
        Called with the number of finished partitions and of all partitions.
    **reading
        As for :func:`read`.
    """
    options = {"k": k, "include": include, "exclude": exclude, "level": level}
    write = partial(_suggestion_lines, _without_training_data(labeler), options)
    return _write_lines(write, read(corpus, **reading), target, zipped, client, progress)


def _suggestion_lines(labeler, options, block) -> tuple[list[str], WriteSummary]:
    answers, lines = labeler.suggest(_documents(block), **options), []
    for (document, _), answer in zip(block, answers, strict=True):
        values = {"id": document.id, **answer.to_dict(labeler.name, digits=6)}
        lines.append(json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n")
    return lines, WriteSummary(len(block))


def select(
    selector: Selector,
    corpus: Any,
    target: Any,
    *,
    zipped: bool = False,
    client: Any = None,
    progress: Progress | None = None,
    **reading: Any,
) -> WriteSummary:
    """Write the documents about some topics to files, as ``polytopic select`` does.

    Parameters
    ----------
    selector : Selector
        Selects documents; its own counts do not change.
    corpus, target, zipped, client, progress, **reading
        As for :func:`suggest`.
    """
    lean = selector.with_labeler(_without_training_data(selector.labeler))
    write = partial(_selected_lines, lean)
    return _write_lines(write, read(corpus, **reading), target, zipped, client, progress)


def _selected_lines(selector, block) -> tuple[list[str], WriteSummary]:
    selector = selector.with_labeler(selector.labeler)  # counts this block alone
    selected = selector.select(_documents(block))
    lines = [
        selected_line(document, origin, topics)
        for (document, origin), topics in zip(block, selected, strict=True)
        if topics
    ]
    return lines, WriteSummary(len(block), selector.counts, selector.topic_counts)


def _write_lines(
    write: Callable[[list], tuple[list[str], WriteSummary]],
    corpus: Corpus,
    target: Any,
    zipped: bool,
    client: Any,
    progress: Progress | None,
) -> WriteSummary:
    """Write the lines that a function makes of each block of documents."""
    client, folder = get_client(client), create_folder(target)
    corpus = number_lines(corpus, client)
    write_part, settings = delayed(_write_part), broadcast((corpus.reading, write))
    leaves = [
        write_part(part, part_path(folder, number, zipped=zipped), settings)
        for number, part in enumerate(corpus.parts)
    ]
    return run(client, leaves, tree_reduce(leaves, sum_results), progress)


def _write_part(part, path, settings) -> WriteSummary:
    reading, write = settings
    reader, summary = PartReader(part, reading), WriteSummary()
    with write_file(path) as write_bytes:
        for block in reader.blocks(BLOCK):
            lines, counted = write(block)
            write_bytes("".join(lines).encode())
            summary += counted
    return replace(summary, skipped=reader.skipped)


def evaluate(
    labeler: Labeler,
    corpus: Any,
    *,
    client: Any = None,
    progress: Progress | None = None,
    on_skipped: Callable[[SkippedLines], object] | None = None,
    **reading: Any,
) -> Tally:
    """Evaluate a labeler on labelled documents, from sums over the partitions.

    Parameters
    ----------
    labeler : Labeler
        Labels the documents.
    corpus : anything that :func:`read` accepts
        Labelled documents; those without labels are ignored. Without a ``split``, the test part
        is used if there is one, else all documents.
    client : distributed.Client, default=None
        The cluster; by default the client that was created last.
    progress : callable, default=None
        Called with the number of finished partitions and of all partitions.
    on_skipped : callable, default=None
        Called with the lines that could not be read, if ``on_error="skip"``.
    **reading
        As for :func:`read`.

    Returns
    -------
    Tally
        With ``n_docs``, ``metrics()``, ``metrics_by_level()``, ``metrics_by_label()`` and
        ``calibration``.
    """
    client, corpus = get_client(client), read(corpus, **reading)
    if corpus.reading.get("split") is None and _has_test_part(client, corpus):
        corpus = corpus.with_reading(split="test")
    settings = broadcast((corpus.reading, _without_training_data(labeler)))
    leaves = map_tasks(_tally_part, corpus.parts, settings)
    tally, skipped = run(client, leaves, tree_reduce(leaves, sum_tuples), progress)
    if on_skipped is not None:
        on_skipped(skipped)
    return tally


def _has_test_part(client, corpus) -> bool:
    """Return whether a document belongs to the test part; reads up to the first of them."""
    reading = broadcast(corpus.with_reading(split="test").reading)
    leaves = map_tasks(_has_documents, corpus.parts, reading)
    return run(client, leaves, tree_reduce(leaves, any))


def _has_documents(part, reading) -> bool:
    return any(True for _ in PartReader(part, reading))


def _tally_part(part, settings) -> tuple[Tally, SkippedLines]:
    reading, labeler = settings
    reader, tally = PartReader(part, reading), Tally(labeler.classes_.tolist(), labeler.tree)
    for block in reader.blocks(BLOCK, keep=lambda document: document.labels):
        texts = _documents(block)
        true = [sorted({labeler.resolve(label) for label in text.labels}) for text in texts]
        tally.add(
            true,
            labeler.predict(texts),
            above_absent(labeler.decision_function(texts)),
            proba=labeler.predict_proba(texts),
            certainty=labeler.certainty(texts),
        )
    return tally, reader.skipped


def _documents(block):
    return [document for document, _ in block]


def _without_training_data(labeler: Labeler) -> Labeler:
    """Return a labeler that answers the same, but can neither learn nor forget."""
    return copy(labeler).set_state(replace(labeler.state_.with_counts(None), documents=None))
