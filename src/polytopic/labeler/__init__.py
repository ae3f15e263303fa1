"""Labeler: analyzer, model and decision as one estimator on texts, and its files."""

from polytopic.labeler.answers import Answer, Suggestion
from polytopic.labeler.audit import Suspect, Suspects
from polytopic.labeler.estimator import Labeler
from polytopic.labeler.files import load
from polytopic.labeler.selection import Selector, TopicMatch

__all__ = [
    "Answer",
    "Labeler",
    "Selector",
    "Suggestion",
    "Suspect",
    "Suspects",
    "TopicMatch",
    "load",
]
