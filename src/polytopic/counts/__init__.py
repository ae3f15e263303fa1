"""Counts of terms: summed by label set, by document, and of a sample of documents."""

from polytopic.counts.rows import DocumentRows, RowCollector
from polytopic.counts.sampling import TUNING_DOCS, TextSample
from polytopic.counts.table import (
    LARGEST,
    LARGEST_EXACT,
    LabelSetCounts,
    canonical_counts,
    group_rows,
    look_up_counts,
)

__all__ = [
    "LARGEST",
    "LARGEST_EXACT",
    "TUNING_DOCS",
    "DocumentRows",
    "LabelSetCounts",
    "RowCollector",
    "TextSample",
    "canonical_counts",
    "group_rows",
    "look_up_counts",
]
