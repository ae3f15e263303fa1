"""Answers: documents labelled, selected and measured on, partition by partition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from operator import add
from typing import Any

from polytopic.distributed.counting import Skipped
from polytopic.distributed.engine import Progress, merged, run, shared, tasks, the_client
from polytopic.distributed.outputs import new_folder, open_part, part_name
from polytopic.distributed.partitions import documents, number_lines, read
from polytopic.labeler import Labeler, Selector
from polytopic.metrics import Tally
from polytopic.results import answer, selected_line

BLOCK = 1024  # documents that are labelled at once


@dataclass
class Written:
    """What was written, and what was not; the sum of two is that of both.

    Attributes
    ----------
    documents : int
        Documents that were read.
    counts, topics : Counter
        What was counted of them, and of topics.
    skipped : Skipped
        Lines that could not be read.
    """

    documents: int = 0
    counts: Counter = field(default_factory=Counter)
    topics: Counter = field(default_factory=Counter)
    skipped: Skipped = field(default_factory=Skipped)

    def __add__(self, other: Written) -> Written:
        return Written(
            self.documents + other.documents,
            self.counts + other.counts,
            self.topics + other.topics,
            self.skipped + other.skipped,
        )


def predict(labeler: Labeler, corpus: Any, **reading: Any) -> Any:
    """Return the labels of each document, as a dask bag of the corpus' partitions.

    Nothing is computed here.

    Parameters
    ----------
    labeler : Labeler
        What labels the documents.
    corpus : anything that :func:`read` takes
        The documents.
    **reading
        As for :func:`read`.
    """
    corpus = read(corpus, **reading)
    from dask import bag

    settings = shared((corpus.reading, _lean(labeler)))
    return bag.from_delayed(tasks(_predict_part, corpus.parts, settings, name="predict"))


def _predict_part(part, settings) -> list[list[str]]:
    reading, labeler = settings
    answers: list[list[str]] = []
    for block in _blocks(documents(part, reading, [])):
        answers += labeler.predict([document for document, _ in block])
    return answers


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
) -> Written:
    """Label each document, and write the answers to files, one for each partition.

    A line is what ``polytopic suggest`` writes.

    Parameters
    ----------
    labeler : Labeler
        What labels the documents.
    corpus : anything that :func:`read` takes
        The documents.
    target : path or URL
        The folder to write to; workers write there.
    k : int, default=5
        Labels to give for each document.
    include, exclude, level
        As for :meth:`polytopic.Labeler.suggest`.
    zipped : bool, default=False
        Whether files are gzipped.
    client : distributed.Client, default=None
        The cluster; by default the client that was made last.
    progress : callable, default=None
        Is called with the number of partitions done, and of all.
    **reading
        As for :func:`read`.
    """
    client, corpus, folder = the_client(client), read(corpus, **reading), new_folder(target)
    corpus = number_lines(corpus, client)
    asked = {"include": include, "exclude": exclude, "level": level}
    settings = shared((corpus.reading, _lean(labeler), k, asked))
    return _written(client, _suggest_part, corpus, settings, folder, zipped, progress)


def _written(client, function, corpus, settings, folder, zipped, progress) -> Written:
    import dask

    write = dask.delayed(function, pure=False)
    leaves = [
        write(part, part_name(folder, number, zipped=zipped), settings)
        for number, part in enumerate(corpus.parts)
    ]
    return run(client, leaves, merged(leaves, _sum), progress)


def _suggest_part(part, path, settings) -> Written:
    reading, labeler, k, asked = settings
    bad: list[str] = []
    written = Written()
    with open_part(path) as write:
        for block in _blocks(documents(part, reading, bad)):
            answers = labeler.suggest([document for document, _ in block], k, **asked)
            for (document, _), suggestions in zip(block, answers, strict=True):
                abstained = labeler.abstain is not None and not any(s.chosen for s in suggestions)
                told = answer(document.id, suggestions, abstained, labeler.name)
                line = json.dumps(told, ensure_ascii=False, allow_nan=False)
                write(f"{line}\n".encode())
            written.documents += len(block)
    written.skipped = Skipped.of(bad)
    return written


def select(
    selector: Selector,
    corpus: Any,
    target: Any,
    *,
    zipped: bool = False,
    client: Any = None,
    progress: Progress | None = None,
    **reading: Any,
) -> Written:
    """Write the documents that are about topics to files, one for each partition.

    A line is what ``polytopic select`` writes. The counts of the result are those of the selector.

    Parameters
    ----------
    selector : Selector
        What picks documents; it is left as it is.
    corpus : anything that :func:`read` takes
        The documents.
    target : path or URL
        The folder to write to; workers write there.
    zipped : bool, default=False
        Whether files are gzipped.
    client : distributed.Client, default=None
        The cluster; by default the client that was made last.
    progress : callable, default=None
        Is called with the number of partitions done, and of all.
    **reading
        As for :func:`read`.
    """
    client, corpus, folder = the_client(client), read(corpus, **reading), new_folder(target)
    corpus = number_lines(corpus, client)
    lean = copy(selector)
    lean.labeler = _lean(selector.labeler)
    settings = shared((corpus.reading, lean))
    return _written(client, _select_part, corpus, settings, folder, zipped, progress)


def _select_part(part, path, settings) -> Written:
    reading, selector = settings
    bad: list[str] = []
    selector = copy(selector)
    selector.counts, selector.topic_counts = Counter(), Counter()
    with open_part(path) as write:
        for block in _blocks(documents(part, reading, bad)):
            found = selector.select([document for document, _ in block])
            for (document, origin), topics in zip(block, found, strict=True):
                if topics:
                    write(selected_line(document, origin, topics).encode())
    n_docs = selector.counts["read"]
    return Written(n_docs, selector.counts, selector.topic_counts, Skipped.of(bad))


def evaluate(
    labeler: Labeler,
    corpus: Any,
    *,
    client: Any = None,
    progress: Progress | None = None,
    on_skipped: Callable[[Skipped], object] | None = None,
    **reading: Any,
) -> Tally:
    """Measure how well documents are labelled, from sums over the partitions.

    Parameters
    ----------
    labeler : Labeler
        What labels the documents.
    corpus : anything that :func:`read` takes
        Labelled documents; those without a label are left out. Without a ``split``, the test part
        is measured on where there is one, else all.
    client : distributed.Client, default=None
        The cluster; by default the client that was made last.
    progress : callable, default=None
        Is called with the number of partitions done, and of all.
    on_skipped : callable, default=None
        Is told of lines that could not be read, with ``on_error="skip"``.
    **reading
        As for :func:`read`.

    Returns
    -------
    Tally
        With ``n_docs``, ``measures()`` and ``levels()``.
    """
    client, corpus = the_client(client), read(corpus, **reading)
    if corpus.reading.get("split") is None and _any_test(client, corpus):
        corpus = corpus.reading_only(split="test")
    settings = shared((corpus.reading, _lean(labeler)))
    leaves = tasks(_tally_part, corpus.parts, settings, name="evaluate")
    tally, skipped = run(client, leaves, merged(leaves, _sum_pairs), progress)
    if on_skipped is not None:
        on_skipped(skipped)
    return tally


def _any_test(client, corpus) -> bool:
    """Tell whether a document is of the test part; a partition is read up to the first."""
    settings = shared((corpus.reading_only(split="test").reading,))
    leaves = tasks(_has_documents, corpus.parts, settings, name="find")
    return run(client, leaves, merged(leaves, any))


def _has_documents(part, settings) -> bool:
    return any(True for _ in documents(part, settings[0], []))


def _tally_part(part, settings) -> tuple[Tally, Skipped]:
    reading, labeler = settings
    bad: list[str] = []
    tally = Tally(labeler.classes_.tolist(), labeler.tree)
    pairs = (pair for pair in documents(part, reading, bad) if pair[0].labels)
    for block in _blocks(pairs):
        texts = [document for document, _ in block]
        true = [sorted({labeler.resolve(label) for label in text.labels}) for text in texts]
        tally.add(true, labeler.predict(texts), labeler.decision_function(texts))
    return tally, Skipped.of(bad)


def _lean(labeler: Labeler) -> Labeler:
    """Return a labeler that answers the same, without what it could learn and forget by."""
    lean = copy(labeler)
    lean.state_ = replace(labeler.state_.with_counts(None), documents=None)
    return lean


def _blocks(items) -> Iterator[list]:
    items = iter(items)
    while block := list(islice(items, BLOCK)):
        yield block


def _sum(parts: Iterable) -> Any:
    return reduce(add, parts)


def _sum_pairs(pairs: list) -> tuple:
    return tuple(map(_sum, zip(*pairs, strict=True)))
