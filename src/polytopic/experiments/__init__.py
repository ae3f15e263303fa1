"""Experiments: methods compared on a corpus, ours and their rivals."""

from polytopic.experiments.comparison import DEFAULT, Comparison, Row, compare
from polytopic.experiments.methods import Answer, Method
from polytopic.experiments.protocols import PROTOCOLS, Protocol
from polytopic.experiments.registry import METHODS

__all__ = [
    "DEFAULT",
    "METHODS",
    "PROTOCOLS",
    "Answer",
    "Comparison",
    "Method",
    "Protocol",
    "Row",
    "compare",
]
