"""Learning: a labeler fitted on a corpus in partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polytopic.counts import TUNING_DOCS
from polytopic.distributed.counting import CollectedRows, CorpusSummary, collect, count_corpus
from polytopic.distributed.engine import Progress, get_client
from polytopic.distributed.partitions import SkippedLines, read
from polytopic.errors import PolytopicError
from polytopic.labeler import Labeler
from polytopic.labeler.learning import learn_counts, learn_elsewhere, new_analyzer, new_model
from polytopic.labeler.reading import LabelReader, collect_rows
from polytopic.models.registry import find_model, load


def fit(
    labeler: Labeler,
    corpus: Any,
    *,
    parts: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    on_skipped: Callable[[SkippedLines], object] | None = None,
    **reading: Any,
) -> Labeler:
    """Fit a labeler on a corpus in partitions, and return it.

    A count model (nb, pmm1, pmm2, pdmm) is the same as with ``labeler.fit``, to the bit. It is
    tuned (``temperature="auto"``) on the same thousand documents, of which counts, not texts,
    come to the client.

    CoL takes the same steps as on one machine, up to the order of summation. The counts of the
    documents that it holds out, at most 3000, and of one document per topic come to the client.
    MML learns by rounds of CoCoA+, in which parts of the documents are visited in parallel: its
    weights differ from those of one machine, and depend on the number of parts. BoosTexter cannot
    be fitted on a cluster.

    Parameters
    ----------
    labeler : Labeler
        The labeler to fit.
    corpus : anything that :func:`read` accepts
        The labelled documents.
    parts : int, default=None
        Number of parts that CoL and MML learn from in parallel; by default one per worker.
    client : distributed.Client, default=None
        The cluster; by default the client that was created last.
    progress : callable, default=None
        Called with the number of finished partitions and of all partitions; then, by CoL and MML,
        with the number of finished steps or rounds and the largest number of them.
    on_skipped : callable, default=None
        Called with the lines that could not be read, if ``on_error="skip"``.
    **reading
        As for :func:`read`.
    """
    model, corpus = new_model(labeler), read(corpus, **reading)
    if not model.can_distribute:
        raise PolytopicError(f"{type(model).__name__} learns on one machine, not on Dask.")
    client = get_client(client)
    if model.learns_from == "documents":
        summary = _fit_documents(labeler, corpus, parts, client, progress)
    else:
        summary = _fit_counts(labeler, model, corpus, client, progress)
    if on_skipped is not None:
        on_skipped(summary.skipped)
    reader = LabelReader(labeler.tree)
    reader.renamed = summary.renamed
    reader.warn(labeler.classes_.tolist())
    return labeler


def _fit_counts(labeler, model, corpus, client, progress) -> CorpusSummary:
    analyzer, fields = new_analyzer(labeler), labeler.fields
    summary = count_corpus(
        corpus,
        analyzer,
        fields,
        tree=labeler.tree,
        sample_size=TUNING_DOCS if model.needs_documents else 0,
        client=client,
        progress=progress,
    )
    rows = collect_rows(summary.sample.texts, summary.sample.labels, analyzer, fields)
    labeler.set_state(learn_counts(labeler, summary.counts, analyzer, sample=rows))
    return summary


def _fit_documents(labeler, corpus, n_parts, client, progress) -> CorpusSummary:
    analyzer = new_analyzer(labeler)
    rows, summary = collect(client, corpus, analyzer, labeler.fields, labeler.tree, progress)
    counts = summary.counts

    def learn(model, vocabulary, weights):
        view = vocabulary, counts.labels, weights
        collected = CollectedRows(client, rows, summary.sizes, n_parts, view)
        parts_class = load(find_model(model.name).partitions)
        documents = parts_class.from_rows(collected, progress)
        model.fit_documents(documents, counts.labels, counts.indicator, counts.set_docs)

    labeler.set_state(learn_elsewhere(labeler, counts, learn, analyzer))
    return summary
