"""The same models on Dask: corpora in partitions, counted, learned from and labelled by workers.

Documents stay with the workers; tables of counts, weights and counters come to the client.
"""

from polytopic.distributed.answers import Written, evaluate, predict, select, suggest
from polytopic.distributed.counting import count
from polytopic.distributed.engine import connect
from polytopic.distributed.learning import fit
from polytopic.distributed.partitions import Corpus, read

__all__ = [
    "Corpus",
    "Written",
    "connect",
    "count",
    "evaluate",
    "fit",
    "predict",
    "read",
    "select",
    "suggest",
]
