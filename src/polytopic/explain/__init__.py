"""Explanations: evidence by word, shares of labels, keywords, why not; and the label map."""

from polytopic.explain.explanation import (
    Explanation,
    Keyword,
    LabelReason,
    Objection,
    Place,
    WhyNot,
    Word,
)
from polytopic.explain.html import explanation_to_html as to_html
from polytopic.explain.label_map import LabelMap, label_map

__all__ = [
    "Explanation",
    "Keyword",
    "LabelMap",
    "LabelReason",
    "Objection",
    "Place",
    "WhyNot",
    "Word",
    "label_map",
    "to_html",
]
