"""Experiments: compare methods on a corpus, ours and the baselines.

A corpus is counted once and split (``protocols``). Each method (``methods``, ``baselines``, listed
in ``registry``) is tuned, fitted and measured on each split in a process of its own (``runner``).
``comparison`` collects the results, with tests of significance, and ``report`` shows them.
"""

from polytopic.experiments.comparison import Comparison, Row, compare
from polytopic.experiments.methods import Method, Prediction
from polytopic.experiments.protocols import PROTOCOLS, Protocol
from polytopic.experiments.registry import all_methods, default_methods, register_method

__all__ = [
    "PROTOCOLS",
    "Comparison",
    "Method",
    "Prediction",
    "Protocol",
    "Row",
    "all_methods",
    "compare",
    "default_methods",
    "register_method",
]
