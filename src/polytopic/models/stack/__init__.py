"""Several models combined: their scores become one probability per label, and these a label set.

``estimator`` is the public class, ``combining`` turns the scores of the members on held-out
documents into a combination, and ``kernels`` finds the set with the highest expected F1.
"""

from polytopic.models.stack.estimator import Stack

__all__ = ["Stack"]
