"""The models, one file a family, each reading like its paper."""

from polytopic.models.base import CountModel, LabelSetClassifier, WordLabels
from polytopic.models.naive_bayes import NaiveBayes
from polytopic.models.pmm import PMM1

MODELS = {model.name: model for model in (NaiveBayes, PMM1)}

__all__ = ["MODELS", "PMM1", "CountModel", "LabelSetClassifier", "NaiveBayes", "WordLabels"]
