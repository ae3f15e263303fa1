"""Reasons: evidence by word, shares of labels, keywords, and why not another label."""

from polytopic.explain.explanation import (
    Explanation,
    Keyword,
    LabelReason,
    Ledger,
    Objection,
    Place,
    WhyNot,
    Word,
)
from polytopic.explain.html import to_html

__all__ = [
    "Explanation",
    "Keyword",
    "LabelReason",
    "Ledger",
    "Objection",
    "Place",
    "WhyNot",
    "Word",
    "to_html",
]
