"""Counting: one pass over the partitions, and tables that are added up in a tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import add
from sys import getsizeof
from typing import Any

from polytopic.counts import LabelSetCounts
from polytopic.distributed.engine import Progress, merged, run, shared, tasks, the_client
from polytopic.distributed.partitions import documents, read
from polytopic.labeler.learning import Sample, count_texts
from polytopic.labeler.reading import LabelReader
from polytopic.text import Analyzer

TOLD = 20  # bad lines that a partition tells of


@dataclass
class Skipped:
    """Lines that could not be read: how many, and what was wrong with the first ones."""

    number: int = 0
    sentences: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, sentences: list[str]) -> Skipped:
        """Return what is told of a partition."""
        return cls(len(sentences), sentences[:TOLD])

    def __add__(self, other: Skipped) -> Skipped:
        return Skipped(self.number + other.number, [*self.sentences, *other.sentences])


@dataclass
class Counted:
    """What counting found; the sum of two is that of their documents together.

    Attributes
    ----------
    counts : LabelSetCounts
        The table.
    sample : Sample
        Some documents as bags of words, picked by their contents.
    renamed : dict of str to str
        Names of labels that were read, and their ids.
    skipped : Skipped
        Lines that could not be read.
    """

    counts: LabelSetCounts
    sample: Sample
    renamed: dict[str, str]
    skipped: Skipped

    def __sizeof__(self) -> int:
        return getsizeof(self.counts)  # by which the engine knows what memory is used

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            self.counts + other.counts,
            self.sample + other.sample,
            self.renamed | other.renamed,
            self.skipped + other.skipped,
        )


def count(
    corpus: Any,
    analyzer: Analyzer | None = None,
    *,
    language: str | None = "en",
    fields: Any = None,
    client: Any = None,
    progress: Progress | None = None,
    **reading: Any,
) -> LabelSetCounts:
    """Count the terms of documents by label set, in one pass over the partitions.

    The table equals that of one machine bit for bit, however the corpus is cut, as long as all
    counts are integers; fields with fractional weights differ in the last bits.

    Parameters
    ----------
    corpus : anything that :func:`read` takes
        The documents; those without labels are not counted.
    analyzer : Analyzer, default=None
        What makes terms of texts; by default that of the ``language``.
    language : str or None, default="en"
        Language of the texts.
    fields : mapping of str to float, default=None
        Weights of fields.
    client : distributed.Client, default=None
        The cluster; by default the client that was made last.
    progress : callable, default=None
        Is called with the number of partitions done, and of all.
    **reading
        As for :func:`read`.
    """
    analyzer = Analyzer(language) if analyzer is None else analyzer
    found = count_corpus(
        read(corpus, **reading), analyzer, fields, client=client, progress=progress
    )
    return found.counts


def count_corpus(
    corpus, analyzer, fields, *, tree=None, sample_size=0, client=None, progress=None
) -> Counted:
    """Return all that a count model learns from: the table, and a sample to choose by."""
    settings = shared((corpus.reading, analyzer, fields, tree, sample_size))
    leaves = tasks(_count_part, corpus.parts, settings, name="count")
    return run(the_client(client), leaves, merged(leaves, _sum), progress)


def _count_part(part, settings) -> Counted:
    reading, analyzer, fields, tree, sample_size = settings
    bad: list[str] = []
    sample, reader = Sample(sample_size), LabelReader(tree)
    texts = (document for document, _ in documents(part, reading, bad))
    counts = count_texts(texts, None, analyzer, fields, sample, reader=reader)
    return Counted(counts, sample.counted(analyzer, fields), reader.renamed, Skipped.of(bad))


def _sum(parts: list) -> Any:
    return reduce(add, parts)
