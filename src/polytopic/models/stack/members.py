"""What a stack can combine: models of polytopic that read weights, and scikit-learn classifiers."""

from __future__ import annotations

from sklearn.base import clone

from polytopic.models.base import DocumentModel
from polytopic.models.classifier import ClassifierModel, is_foreign_classifier
from polytopic.models.registry import create_model, find_model, model_names


def as_member(member):
    """Return an unfitted member, given a name, a model or a classifier."""
    if isinstance(member, str):
        member = create_model(member)
    if isinstance(member, DocumentModel) and _scores_all(member):
        return clone(member)
    if is_foreign_classifier(member):
        return ClassifierModel(clone(member))
    names = [name for name in model_names() if _scores_all(find_model(name).load())]
    raise ValueError(
        f"members has {member!r}, must have models that read weights ({', '.join(names)}) or "
        "scikit-learn classifiers."
    )


def _scores_all(model):
    """Return whether a model reads weights, and scores all labels of a document."""
    return model.reads == "weights" and not model.finds_candidates
