"""The models, one file a family, each reading like its paper."""

from polytopic.models.base import CountModel
from polytopic.models.boost_answers import WordRule
from polytopic.models.boostexter import BoosTexter
from polytopic.models.classifier import LabelSetClassifier
from polytopic.models.col import CoL
from polytopic.models.documents import DocumentModel
from polytopic.models.label_sets import LabelSets
from polytopic.models.mml import MML
from polytopic.models.naive_bayes import NaiveBayes
from polytopic.models.pdmm import PDMM
from polytopic.models.pmm import PMM1, PMM2
from polytopic.models.prior import SetPrior
from polytopic.models.words import Account, WordLabels

MODELS = {model.name: model for model in (MML, NaiveBayes, PMM1, PMM2, PDMM, CoL, BoosTexter)}

__all__ = [
    "MML",
    "MODELS",
    "PDMM",
    "PMM1",
    "PMM2",
    "Account",
    "BoosTexter",
    "CoL",
    "CountModel",
    "DocumentModel",
    "LabelSetClassifier",
    "LabelSets",
    "NaiveBayes",
    "SetPrior",
    "WordLabels",
    "WordRule",
]
