"""Labelers as model files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar

from polytopic import decision
from polytopic.array_specs import DOUBLE, ArraySpec, check_arrays, check_names
from polytopic.counts import LARGEST_EXACT, DocumentRows, LabelSetCounts
from polytopic.counts.rows import PACKING as ROWS_PACKING
from polytopic.counts.table import PACKING as TABLE_PACKING
from polytopic.errors import ModelFileError
from polytopic.labeler.answers import check_abstention, deciding_rule
from polytopic.labeler.estimator import Labeler
from polytopic.labeler.features import describe_features, restore_features
from polytopic.labeler.learning import new_model
from polytopic.labeler.state import FittedFrom, LabelerState, vocabulary_view
from polytopic.labels import LabelSpace, LabelTree, widen
from polytopic.modelfile import (
    model_bytes,
    pack_arrays,
    parse_model,
    read_model,
    shortened,
    unpack_arrays,
    write_model,
)
from polytopic.models.registry import find_model
from polytopic.parameters import check_number
from polytopic.text import Analyzer, Vocabulary, resolve_min_df
from polytopic.text.counting import check_fields
from polytopic.text.weights import TermWeights

IDF = ArraySpec(DOUBLE, ("n_words",), 0, 1e3)  # a logarithm


def save(labeler: Labeler, path: str | Path, *, counts: bool = True) -> None:
    """Write a fitted labeler to one file."""
    write_model(path, *_parts(labeler, counts=counts))


def to_bytes(labeler: Labeler, *, counts: bool = True) -> bytes:
    """Return what the file of a fitted labeler holds."""
    return model_bytes(*_parts(labeler, counts=counts))


def load(path: str | Path, *, features=None) -> Labeler:
    """Read a model file. The labeler answers exactly as the one that was saved.

    Parameters
    ----------
    path : str or Path
        The file.
    features : list, default=None
        The fitted transformers and the functions among the labeler's ``features``, which no file
        can hold, with their names. N-grams are in the file, and embeddings by name are found again.
    """
    return _load_parts(path, *read_model(path), features=features)


def from_bytes(
    content: bytes, name: str, *, fitted_from: FittedFrom | None = None, features=None
) -> Labeler:
    """Return the labeler that :func:`to_bytes` packed; error messages call it ``name``."""
    return _load_parts(name, *parse_model(content, name), fitted_from, features=features)


def _parts(labeler: Labeler, *, counts: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays of a labeler."""
    state, data = labeler.state_, None
    if counts:  # the table follows from the documents, if they are kept
        data = state.table if state.documents is None else state.documents
    own = state.model.to_arrays()  # or raises if the model has no form in files
    arrays = _with_prefix("model.", pack_arrays(own, find_model(state.model.name).packing))
    if isinstance(data, DocumentRows):
        arrays |= _with_prefix("documents.", pack_arrays(data.to_arrays(), ROWS_PACKING))
    elif data is not None:
        arrays |= _with_prefix("counts.", pack_arrays(data.to_arrays(), TABLE_PACKING))
    if state.weights is not None:
        arrays["weights.idf"] = state.weights.idf_
    manifest = _manifest(labeler, state, data)
    if state.features is not None:
        manifest["features"], own = describe_features(state.features)
        arrays |= _with_prefix("features.", own)
    return manifest, arrays


def _load_parts(name: str | Path, manifest, arrays, fitted_from=None, *, features=None) -> Labeler:
    try:
        return _build_labeler(manifest, arrays, fitted_from, features)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = shortened(str(error).removesuffix("."))
        raise ModelFileError(
            f"{str(name)!r} is damaged: its parts do not fit together ({reason})."
        ) from error


def _manifest(
    labeler: Labeler, state: LabelerState, data: DocumentRows | LabelSetCounts | None
) -> dict[str, Any]:
    from polytopic import __version__

    model, vocabulary = state.model, state.vocabulary
    return {
        "polytopic_version": __version__,
        "model": {
            "name": model.name,
            "parameters": _plain_parameters(model),
            "chosen": model.tuned_,
        },
        "labels": model.classes_.tolist(),
        "tree": labeler.tree.to_dict() if labeler.tree is not None else None,
        "vocabulary": list(vocabulary.terms),
        "analyzer": state.analyzer.to_dict(),
        "settings": {
            "language": labeler.language,
            **_plain({"min_df": labeler.min_df, "max_terms": labeler.max_terms}),
            "fields": _plain(labeler.fields) if labeler.fields is not None else None,
            "rule": _rule_to_dict(labeler.rule, labeler.tree),
            "weights": None if state.weights is None else state.weights.scheme,
            **_plain({"keep_documents": labeler.keep_documents, "abstain": labeler.abstain}),
            "guarantee": None if labeler.guarantee is None else _plain(labeler.guarantee),
            "threshold": state.threshold,
        },
        "training": state.training,
        "counts": None
        if data is None
        else {
            "labels": list(data.labels),
            "exact": data.exact if isinstance(data, LabelSetCounts) else None,
            **_names_of_terms(data.terms, vocabulary),
        },
        "documents": isinstance(data, DocumentRows) if model.learns_from == "documents" else None,
    }


def _names_of_terms(terms: Sequence[str], vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the terms outside the vocabulary, or all if some of the vocabulary is missing."""
    rare = [term for term in terms if term not in vocabulary]
    if len(rare) + len(vocabulary) > len(terms):
        return {"terms": list(terms)}
    return {"terms": None, "beside": rare}


def _terms(names: Mapping[str, Any], vocabulary: Vocabulary, *, whole) -> tuple[str, ...]:
    """Return all terms in order; format 2 lists all, or None for those of the vocabulary."""
    if names["terms"] is None:
        rare = names.get("beside", [])
        check_names(rare, "terms of the counts that are not in the vocabulary")
        terms = tuple(sorted([*vocabulary.terms, *rare]))
    else:
        terms = tuple(names["terms"])
        if not set(vocabulary.terms).issubset(terms) and whole:
            raise ValueError("the documents lack a term of the vocabulary")
    check_names(terms, "terms of the counts")
    return terms


def _build_labeler(
    manifest: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    fitted_from: FittedFrom | None,
    given,
) -> Labeler:
    """Return the labeler of a manifest and its arrays; raise if they do not fit together."""
    labeler = _unfitted_labeler(manifest)
    check_names(manifest["labels"], "labels")
    vocabulary = Vocabulary.from_sorted(manifest["vocabulary"])
    features = None
    if "features" in manifest or given is not None:
        own = _part(arrays, "features.")
        features = restore_features(manifest.get("features", []), own, given)
        labeler.features = [tuple(block.source) for block in features.blocks]
    model = new_model(labeler).from_arrays(
        unpack_arrays(_part(arrays, "model."), find_model(labeler.model.name).packing),
        labels=manifest["labels"],
        n_words=len(vocabulary) + (0 if features is None else features.dimensions),
        tuned=manifest["model"]["chosen"],
    )
    counts, documents = _training_data(manifest, arrays, vocabulary)
    if model.learns_from == "counts" and counts is not None:
        model.counts_ = _model_counts(counts, model, vocabulary)
    if documents is not None:
        _check_documents(documents, model)
    weights = None
    if model.reads == "weights":
        weights = _weights(labeler, vocabulary, arrays)
    analyzer, training = clone(labeler.analyzer), manifest["training"]
    check_number(training.get("known", 0.0), "training.known", min_val=0, max_val=1)
    check_number(training.get("documents"), "training.documents", min_val=0, max_val=LARGEST_EXACT)
    labeler.set_state(
        LabelerState(
            model,
            analyzer,
            vocabulary,
            counts,
            documents,
            weights,
            training,
            fitted_from,
            features,
            _threshold(manifest),
        )
    )
    _check_answers(labeler)
    return labeler


def _unfitted_labeler(manifest: Mapping[str, Any]) -> Labeler:
    """Return the unfitted labeler."""
    settings, tree = manifest["settings"], manifest["tree"]
    entry = find_model(manifest["model"]["name"])
    parameters = {
        entry.renamed.get(name, name): value
        for name, value in manifest["model"]["parameters"].items()
    }
    labeler = Labeler(
        entry.load()(**parameters),
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
        guarantee=settings.get("guarantee"),
    )
    resolve_min_df(labeler.min_df, 1)
    if labeler.max_terms is not None:
        check_scalar(labeler.max_terms, "max_terms", Integral, min_val=1)
    if labeler.fields is not None:
        check_fields(labeler.fields)
    return labeler


def _threshold(manifest: Mapping[str, Any]) -> float | None:
    """Return the threshold of a guarantee; there is one if there is a guarantee."""
    settings = manifest["settings"]
    threshold = settings.get("threshold")
    if (threshold is None) != (settings.get("guarantee") is None):
        raise ValueError("there must be a threshold if there is a guarantee, and only then")
    if threshold is not None:
        check_number(threshold, "threshold")
    return threshold


def _check_answers(labeler: Labeler) -> None:
    """Raise if the rule, the guarantee or the abstention does not work with the model."""
    model, rule = labeler.model_, deciding_rule(labeler, labeler.state_)
    if labeler.abstain is not None:
        check_abstention(labeler.abstain, rule, model)
    if rule is not None:
        none = np.zeros((0, model.classes_.size))
        rule.with_labels(model.classes_, labeler.tree).decide(none, reference=none[:, 0])


def _training_data(
    manifest, arrays, vocabulary: Vocabulary
) -> tuple[LabelSetCounts | None, DocumentRows | None]:
    """Return the table of counts and the documents; a file holds one of them, or none."""
    names = manifest["counts"]
    if names is None:
        return None, None
    check_names(names["labels"], "labels of the counts")
    columns = {
        "labels": names["labels"],
        "terms": _terms(names, vocabulary, whole=manifest["documents"]),
    }
    if manifest["documents"]:
        documents = unpack_arrays(_part(arrays, "documents."), ROWS_PACKING)
        return None, DocumentRows.from_arrays(documents, **columns)
    counts = unpack_arrays(_part(arrays, "counts."), TABLE_PACKING)
    return LabelSetCounts.from_arrays(counts, **columns, exact=bool(names["exact"])), None


def _model_counts(counts: LabelSetCounts, model, vocabulary: Vocabulary) -> LabelSetCounts:
    """Return a count model's view of a table; raise if it was not fitted on this table."""
    space = LabelSpace(model.classes_.tolist())
    label_docs = widen(counts.indicator, counts.labels, space).T @ counts.set_docs
    if not np.array_equal(label_docs, model.label_docs_):
        raise ValueError("the counts and the model have different documents")
    view = vocabulary_view(counts, vocabulary)
    if view.matrix.shape[1] != len(vocabulary):
        raise ValueError("a term of the vocabulary is missing in the counts")
    return view


def _check_documents(documents: DocumentRows, model) -> None:
    """Raise if a model was not fitted on these documents."""
    if list(documents.labels) != model.classes_.tolist():
        raise ValueError("the documents and the model have different labels")
    if not np.array_equal(documents.Y.getnnz(axis=0), model.label_docs_):
        raise ValueError("the documents and the model have different label counts")


def _weights(labeler: Labeler, vocabulary: Vocabulary, arrays) -> TermWeights:
    """Return the weights of terms."""
    check_arrays(arrays, {"weights.idf": IDF}, n_words=len(vocabulary))
    weights = TermWeights(labeler.weights)
    weights.idf_, weights.n_features_in_ = arrays["weights.idf"], len(vocabulary)
    return weights


def _with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def _part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _rule_to_dict(rule, tree: LabelTree | None) -> dict[str, Any] | None:
    """Return a rule as plain values, without its tree if it is that of the labeler."""
    if rule is None:
        return None
    name = type(rule).__name__
    if name not in decision.RULES or decision.RULES[name].load() is not type(rule):
        raise ModelFileError(
            f"the rule {name} is not one of {', '.join(decision.RULES)} and cannot be saved."
        )
    parameters = rule.get_params()
    if parameters.get("tree") is not None:
        parameters["tree"] = None if rule.tree == tree else rule.tree.to_dict()
    return {"name": name, "parameters": _plain(parameters)}


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as types that JSON supports."""
    return {name: _plain_value(value) for name, value in parameters.items()}


def _plain_parameters(model) -> dict[str, Any]:
    """Return the parameters of a model as plain values; raise if one cannot be saved."""
    plain = _plain(model.get_params(deep=False))
    for name, value in plain.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise ModelFileError(
                f"{name} == {value!r} of {type(model).__name__} cannot be saved; give it as "
                "numbers, names, or lists of them."
            ) from error
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray) and value.dtype != np.longdouble:
        return value.tolist()
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, Real) and type(value) not in (int, float, bool):
        return float(value)  # a fraction, for example
    return [_plain_value(item) for item in value] if isinstance(value, list | tuple) else value


def _rule_from_dict(rule: Mapping[str, Any] | None):
    if rule is None:
        return None
    parameters = dict(rule["parameters"])
    if parameters.get("tree") is not None:
        parameters["tree"] = LabelTree.from_dict(parameters["tree"])
    if rule["name"] not in decision.RULES:
        names = ", ".join(decision.RULES)
        raise ValueError(f"rule == {rule['name']!r}, must be one of {names}")
    entry = decision.RULES[rule["name"]]
    return entry.load()(**{**entry.unstored, **parameters})
