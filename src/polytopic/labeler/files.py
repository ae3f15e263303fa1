"""Labelers as model files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from polytopic import decision
from polytopic.counts import LabelSetCounts
from polytopic.errors import ModelFileError
from polytopic.labeler.estimator import Labeler
from polytopic.labeler.learning import sees_documents, vocabulary_view
from polytopic.labeler.packing import pack, unpack
from polytopic.labeler.rows import DocumentRows
from polytopic.labels import LabelTree
from polytopic.modelfile import model_bytes, parse_model, read_model, write_model
from polytopic.models import MODELS
from polytopic.text import Analyzer, Vocabulary
from polytopic.text.weights import TermWeights


def save(labeler: Labeler, path: str | Path, *, counts: bool = True) -> None:
    """Write a fitted labeler to one file."""
    write_model(path, *_parts(labeler, counts=counts))


def to_bytes(labeler: Labeler, *, counts: bool = True) -> bytes:
    """Return what the file of a fitted labeler holds."""
    return model_bytes(*_parts(labeler, counts=counts))


def load(path: str | Path) -> Labeler:
    """Read a model file; it answers exactly as the one that was saved."""
    return _labeler_of(path, *read_model(path))


def from_bytes(content: bytes, name: str) -> Labeler:
    """Return the labeler that :func:`to_bytes` gave; failures are of this name."""
    return _labeler_of(name, *parse_model(content, name))


def _parts(labeler: Labeler, *, counts: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays of a labeler."""
    kept = _kept(labeler) if counts else None
    arrays = _named("model.", pack(labeler.model_.to_arrays()))
    if kept is not None:
        prefix = "documents." if kept is labeler.documents_ else "counts."
        arrays |= _named(prefix, pack(kept.to_arrays()))
    if labeler.weights_ is not None:
        arrays["weights.idf"] = labeler.weights_.idf_
    return _manifest(labeler, kept), arrays


def _kept(labeler: Labeler) -> DocumentRows | LabelSetCounts | None:
    """Return the documents that were learned, from which the table follows, or else the table."""
    return labeler.counts_ if labeler.documents_ is None else labeler.documents_


def _labeler_of(name: str | Path, manifest, arrays) -> Labeler:
    try:
        return _labeler(manifest, arrays)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{str(name)!r} is damaged: its parts do not fit together ({error})."
        ) from error


def _manifest(labeler: Labeler, kept: DocumentRows | LabelSetCounts | None) -> dict[str, Any]:
    from polytopic import __version__

    model, vocabulary = labeler.model_, labeler.vocabulary_
    return {
        "polytopic_version": __version__,
        "model": {
            "name": model.name,
            "parameters": _plain(model.get_params()),
            "chosen": model.chosen_,
        },
        "labels": model.classes_.tolist(),
        "tree": labeler.tree.to_dict() if labeler.tree is not None else None,
        "vocabulary": list(vocabulary.terms),
        "analyzer": labeler.analyzer_.to_dict(),
        "settings": {
            "language": labeler.language,
            **_plain({"min_df": labeler.min_df, "max_terms": labeler.max_terms}),
            "fields": _plain(labeler.fields) if labeler.fields is not None else None,
            "rule": _rule_to_dict(labeler.rule, labeler.tree),
            "weights": None if labeler.weights_ is None else labeler.weights_.scheme,
            **_plain({"keep_documents": labeler.keep_documents, "abstain": labeler.abstain}),
        },
        "training": labeler.training_,
        "counts": None
        if kept is None
        else {
            "labels": list(kept.labels),
            "exact": getattr(kept, "exact", None),  # documents tell it themselves
            **_names_of_terms(kept.terms, vocabulary),
        },
        "documents": isinstance(kept, DocumentRows) if sees_documents(model) else None,
    }


def _names_of_terms(terms: Sequence[str], vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the terms that are not in the vocabulary, or all where these lack some of it."""
    beside = [term for term in terms if term not in vocabulary]
    if len(beside) + len(vocabulary) > len(terms):
        return {"terms": list(terms)}
    return {"terms": None, "beside": beside}


def _terms(names: Mapping[str, Any], vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the terms in order; those of format 2 are all, or None for the vocabulary's."""
    if names["terms"] is not None:
        return tuple(names["terms"])
    return tuple(sorted([*vocabulary.terms, *names.get("beside", ())]))


def _labeler(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Labeler:
    settings = manifest["settings"]
    tree = manifest["tree"]
    model = MODELS[manifest["model"]["name"]](**manifest["model"]["parameters"])
    labeler = Labeler(
        model,
        language=settings["language"],
        analyzer=Analyzer.from_dict(manifest["analyzer"]),
        rule=_rule_from_dict(settings["rule"]),
        min_df=settings["min_df"],
        max_terms=settings["max_terms"],
        fields=settings["fields"],
        tree=LabelTree.from_dict(tree) if tree is not None else None,
        weights=settings.get("weights") or "ltc",
        keep_documents=settings.get("keep_documents", True),
        abstain=settings.get("abstain"),
    )
    labeler.analyzer_ = Analyzer.from_dict(manifest["analyzer"])
    labeler.vocabulary_ = Vocabulary(manifest["vocabulary"])
    labeler.training_ = manifest["training"]
    labeler.model_ = clone(model).from_arrays(
        unpack(_part(arrays, "model.")),
        labels=manifest["labels"],
        n_words=len(labeler.vocabulary_),
        chosen=manifest["model"]["chosen"],
    )
    labeler.weights_ = labeler._beside = None
    _take_kept(labeler, manifest, arrays)
    if sees_documents(model):
        if not model.sees_counts:
            labeler.weights_ = _weights(labeler, arrays["weights.idf"])
    elif labeler.counts_ is not None:
        labeler.model_.counts_ = vocabulary_view(labeler.counts_, labeler.vocabulary_)
    return labeler


def _take_kept(labeler: Labeler, manifest, arrays) -> None:
    """Take over the documents, or the table of counts, if either is in the file."""
    labeler.counts_ = labeler.documents_ = None
    names = manifest["counts"]
    if names is None:
        return
    columns = {"labels": names["labels"], "terms": _terms(names, labeler.vocabulary_)}
    if manifest["documents"]:
        own = unpack(_part(arrays, "documents."))
        labeler.documents_ = DocumentRows.from_arrays(own, **columns)
    else:
        own = unpack(_part(arrays, "counts."))
        labeler.counts_ = LabelSetCounts.from_arrays(own, **columns, exact=names["exact"])


def _weights(labeler: Labeler, idf: np.ndarray) -> TermWeights:
    """Return the weights that were learned."""
    if idf.shape != (len(labeler.vocabulary_),) or not ((idf >= 0) & np.isfinite(idf)).all():
        raise ValueError("weights of terms have another size than the vocabulary, or no value")
    weights = TermWeights(labeler.weights)
    weights.idf_, weights.n_features_in_ = idf, idf.size
    return weights


def _named(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def _part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _rule_to_dict(rule, tree: LabelTree | None) -> dict[str, Any] | None:
    """Return a rule as plain values; its tree is left out if it is the labeler's own."""
    if rule is None:
        return None
    name = type(rule).__name__
    if decision.RULES.get(name) is not type(rule):
        raise ModelFileError(
            f"the rule {name} is not one of {', '.join(decision.RULES)} and cannot be saved."
        )
    parameters = rule.get_params()
    if parameters.get("tree") is not None:
        parameters["tree"] = None if rule.tree == tree else rule.tree.to_dict()
    return {"name": name, "parameters": _plain(parameters)}


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without NumPy's types, which JSON does not know."""
    return {name: _plain_value(value) for name, value in parameters.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return _plain(value)
    return [_plain_value(item) for item in value] if isinstance(value, list | tuple) else value


def _rule_from_dict(rule: Mapping[str, Any] | None):
    if rule is None:
        return None
    parameters = dict(rule["parameters"])
    if parameters.get("tree") is not None:
        parameters["tree"] = LabelTree.from_dict(parameters["tree"])
    return decision.RULES[rule["name"]](**parameters)
