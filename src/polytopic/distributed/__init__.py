"""The same models on a Dask cluster.

``engine`` connects to a cluster and runs graphs of tasks. ``partitions`` cuts a corpus into parts
that workers read, through ``files`` at any path or URL. ``learning`` turns them into tables of
counts, or into rows that stay with the workers, and fits a labeler: count models from the table,
CoL and MML from the rows (``topics``, ``margins``). ``answers`` labels, selects and evaluates
documents. Documents stay with the workers; the client gets counts, weights and metrics.
"""

from polytopic.distributed.answers import WriteSummary, evaluate, predict, select, suggest
from polytopic.distributed.engine import connect
from polytopic.distributed.learning import count, fit
from polytopic.distributed.partitions import Corpus, SkippedLines, read

__all__ = [
    "Corpus",
    "SkippedLines",
    "WriteSummary",
    "connect",
    "count",
    "evaluate",
    "fit",
    "predict",
    "read",
    "select",
    "suggest",
]
