"""The labels of the most similar documents.

``estimator`` is the public class; ``kernels`` holds the compiled search for the nearest documents.
"""

from polytopic.models.neighbours.estimator import NearestNeighbours

__all__ = ["NearestNeighbours"]
