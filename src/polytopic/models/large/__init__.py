"""Models for thousands of labels: sparse weights, and scores of the best candidates only.

``candidates`` is what such models share, ``machines`` trains the linear machines of
``ShortlistSVM``, and ``stack`` combines these with the centroids of labels and the nearest
documents in ``CandidateStack``; ``combining`` weighs the three. ``training_kernels`` and
``ranking_kernels`` hold the compiled loops.
"""

from polytopic.models.large.machines import ShortlistSVM
from polytopic.models.large.stack import CandidateStack

__all__ = ["CandidateStack", "ShortlistSVM"]
