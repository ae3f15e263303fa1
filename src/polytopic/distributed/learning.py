"""Learning: a labeler fitted on a corpus in partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polytopic.distributed.counting import Skipped, count_corpus
from polytopic.distributed.engine import Progress
from polytopic.distributed.partitions import read
from polytopic.errors import PolytopicError
from polytopic.labeler import Labeler
from polytopic.labeler.learning import collect_rows, sees_documents
from polytopic.labeler.reading import LabelReader
from polytopic.models.leave_one_out import TUNING_DOCS


def fit(
    labeler: Labeler,
    corpus: Any,
    *,
    client: Any = None,
    progress: Progress | None = None,
    on_skipped: Callable[[Skipped], object] | None = None,
    **reading: Any,
) -> Labeler:
    """Fit a labeler on a corpus in partitions, and return it.

    A count model (nb, pmm1, pmm2, pdmm) is the very one that ``labeler.fit`` gives. What it
    chooses by documents (``temperature="auto"``) it chooses by the same thousand, whose counts,
    not texts, come to the client.

    Parameters
    ----------
    labeler : Labeler
        What to fit.
    corpus : anything that :func:`read` takes
        The labelled documents.
    client : distributed.Client, default=None
        The cluster; by default the client that was made last.
    progress : callable, default=None
        Is called with the number of partitions done, and of all.
    on_skipped : callable, default=None
        Is told of lines that could not be read, with ``on_error="skip"``.
    **reading
        As for :func:`read`.
    """
    model, analyzer, corpus = labeler._new_model(), labeler._new_analyzer(), read(corpus, **reading)
    if sees_documents(model):
        raise PolytopicError(f"{type(model).__name__} does not learn on Dask; use another model.")
    found = count_corpus(
        corpus,
        analyzer,
        labeler.fields,
        tree=labeler.tree,
        sample_size=TUNING_DOCS if model.needs_documents else 0,
        client=client,
        progress=progress,
    )
    if on_skipped is not None:
        on_skipped(found.skipped)
    rows = collect_rows(found.sample.texts, found.sample.labels, analyzer, labeler.fields)
    labeler.fit_counts(found.counts, sample=rows)
    reader = LabelReader(labeler.tree)
    reader.renamed = found.renamed
    reader.warn(labeler.classes_.tolist())
    return labeler
