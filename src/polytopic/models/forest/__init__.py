"""A random forest for all labels at once, on sparse documents.

``estimator`` is the public class; ``kernels`` holds the compiled growth of a tree and the descent
of documents.
"""

from polytopic.models.forest.estimator import RandomForest

__all__ = ["RandomForest"]
