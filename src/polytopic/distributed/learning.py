"""Learning: a labeler fitted on a corpus in partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polytopic.distributed.counting import Counted, Skipped, count_corpus
from polytopic.distributed.engine import Progress, the_client
from polytopic.distributed.partitions import read
from polytopic.distributed.rows import Collected, collect
from polytopic.errors import PolytopicError
from polytopic.labeler import Labeler
from polytopic.labeler.learning import collect_rows
from polytopic.labeler.reading import LabelReader
from polytopic.models.mixture_tuning import TUNING_DOCS
from polytopic.models.registry import find_model, load


def fit(
    labeler: Labeler,
    corpus: Any,
    *,
    parts: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    on_skipped: Callable[[Skipped], object] | None = None,
    **reading: Any,
) -> Labeler:
    """Fit a labeler on a corpus in partitions, and return it.

    A count model (nb, pmm1, pmm2, pdmm) is the very one that ``labeler.fit`` gives. What it
    chooses by documents (``temperature="auto"``) it chooses by the same thousand, whose counts,
    not texts, come to the client.

    CoL takes the steps of one machine, up to the order in which numbers are added. The counts of
    the documents that it holds out, 3000 at most, and of one for each topic come to the client.
    MML is learned by rounds of CoCoA+, in which parts of the documents are visited side by side:
    its weights are others than on one machine, and depend on how many parts there are. BoosTexter
    does not learn here.

    Parameters
    ----------
    labeler : Labeler
        What to fit.
    corpus : anything that :func:`read` takes
        The labelled documents.
    parts : int, default=None
        Parts that CoL and MML learn from side by side; by default one for each worker.
    client : distributed.Client, default=None
        The cluster; by default the client that was made last.
    progress : callable, default=None
        Is called with the number of partitions done, and of all; then, by CoL and MML, with the
        steps or rounds done, and how many there may be.
    on_skipped : callable, default=None
        Is told of lines that could not be read, with ``on_error="skip"``.
    **reading
        As for :func:`read`.
    """
    model, corpus = labeler._new_model(), read(corpus, **reading)
    if not model.can_distribute:
        raise PolytopicError(f"{type(model).__name__} learns on one machine, not on Dask.")
    client = the_client(client)
    found: Counted | Collected
    if model.learns_from == "documents":
        found = _fit_documents(labeler, corpus, parts, client, progress)
    else:
        found = _fit_counts(labeler, model, corpus, client, progress)
    if on_skipped is not None:
        on_skipped(found.skipped)
    reader = LabelReader(labeler.tree)
    reader.renamed = found.renamed
    reader.warn(labeler.classes_.tolist())
    return labeler


def _fit_counts(labeler, model, corpus, client, progress) -> Counted:
    analyzer, fields = labeler._new_analyzer(), labeler.fields
    found = count_corpus(
        corpus,
        analyzer,
        fields,
        tree=labeler.tree,
        sample_size=TUNING_DOCS if model.needs_documents else 0,
        client=client,
        progress=progress,
    )
    rows = collect_rows(found.sample.texts, found.sample.labels, analyzer, fields)
    labeler.fit_counts(found.counts, sample=rows)
    return found


def _fit_documents(labeler, corpus, n_parts, client, progress) -> Collected:
    analyzer = labeler._new_analyzer()
    rows, found = collect(client, corpus, analyzer, labeler.fields, labeler.tree, progress)
    counts = found.counts

    def learn(model, vocabulary, weights):
        parts = load(find_model(model.name).partitions)
        shown = vocabulary, counts.labels, weights
        documents = parts.from_rows(client, rows, found.sizes, n_parts, *shown, progress=progress)
        model.fit_documents(documents, counts.labels, counts.indicator, counts.set_docs)

    labeler.take_fitted(learn, counts)
    return found
