"""Reasons: evidence by word and shares of labels."""

from polytopic.explain.words import Explanation, LabelReason, Place, Word

__all__ = ["Explanation", "LabelReason", "Place", "Word"]
