"""A model with two variants, registered at run time as a package of its own would."""

from polytopic import NaiveBayes
from polytopic.models.registry import Variant, register


class SteepBayes(NaiveBayes):
    """Naive Bayes with little smoothing."""

    name = "steep"


register(
    SteepBayes,
    "naive Bayes with little smoothing",
    variants=(Variant("Steep"), Variant("Steeper", "er", {"smoothing": 1e-4})),
)
