"""Features beside the words: blocks of columns that transformers or functions make of texts.

The rows of a block have unit length, like those of the words. Dense rows, such as embeddings, are
centred before. A block is multiplied by its weight, and stands to the right of the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from polytopic.array_specs import DOUBLE, ArraySpec, check_arrays
from polytopic.counts.sampling import draw_documents
from polytopic.errors import ModelFileError
from polytopic.metrics.label_sets import f1
from polytopic.models.registry import LARGE_LABELS
from polytopic.parameters import check_number
from polytopic.text import Analyzer, Embeddings, Vocabulary
from polytopic.text.ngrams import NGRAMS, NGrams, WordNGrams
from polytopic.text.weights import unit_rows

WEIGHTS = (0.5, 2.0, 0.0)  # tried besides 1
LARGE_WEIGHT = 0.5  # with thousands of labels
MAX_WEIGHT = 1e3
MIN_DOCS = 30  # documents to choose weights on
MAX_DOCS_OF_FOLDS = 600  # documents: with more, one fold is enough
MAX_DOCS = 3000  # documents to hold some out of
FOLDS = 3
PROBES = (  # texts whose rows show whether a source is the one that was learned with
    "The quick brown fox jumps over the lazy dog.",
    "Prices of oil and grain climbed 3.5 % in 2024.",
    "Größere Städte: Zürich, 北京, Москва",
)
N_PROJECTIONS = 8
TOLERANCE = 1e-3  # of projections, relative to the largest one
PUBLISHED_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # on Hugging Face
MAX_DIMENSIONS = 10_000_000
IDF = ArraySpec(DOUBLE, ("n_terms",), 0, 1e3)
MEAN = ArraySpec(DOUBLE, ("n_dimensions",), -1e15, 1e15)


class Source(NamedTuple):
    """Where the rows of a block come from: a transformer, or a function of texts."""

    name: str
    make: Any

    def rows(self, texts: list[str], dimensions: int | None = None):
        """Return the rows of texts, sparse or dense; raise if they are not rows of numbers."""
        is_transformer = hasattr(self.make, "transform")
        made = self.make.transform(texts) if is_transformer else self.make(texts)
        return self.checked(made, len(texts), dimensions)

    def fit_rows(self, texts: list[str]):
        """Fit a transformer to texts, and return their rows."""
        if not hasattr(self.make, "transform"):
            return self.rows(texts)
        if hasattr(self.make, "fit_transform"):
            return self.checked(self.make.fit_transform(texts), len(texts))
        self.make.fit(texts)
        return self.rows(texts)

    def checked(self, rows, n_texts: int, dimensions: int | None = None):
        """Return rows as a CSR matrix or an array of numbers."""
        X = rows if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
        if X.ndim != 2 or X.shape[0] != n_texts or not X.shape[1]:
            raise ValueError(
                f"the features {self.name!r} of {n_texts} texts have the shape {X.shape}, must "
                "have one row of numbers per text."
            )
        if dimensions not in (None, X.shape[1]):
            raise ValueError(
                f"the features {self.name!r} have {X.shape[1]} dimensions, and had {dimensions} "
                "when they were learned."
            )
        X = sparse.csr_matrix(X, dtype=np.float64) if sparse.issparse(X) else X
        if not np.isfinite(X.data if sparse.issparse(X) else X).all():
            raise ValueError(f"the features {self.name!r} hold NaN or infinity.")
        return X


@dataclass(frozen=True, eq=False)
class FeatureBlock:
    """A block of features, as a labeler has learned it.

    Attributes
    ----------
    source : Source
        Its name, and the fitted transformer or the function.
    dimensions : int
        Number of columns.
    mean : ndarray of shape (dimensions,) or None
        The mean of the training documents, for dense rows.
    weight : float
        What its rows, of unit length, are multiplied by; 0 if it is left out.
    """

    source: Source
    dimensions: int
    mean: np.ndarray | None
    weight: float = 1.0

    @property
    def name(self) -> str:
        """The name of the block."""
        return self.source.name

    def rows(self, texts: list[str]) -> sparse.csr_matrix:
        """Return the weighted rows of texts."""
        return self.weight * self.unit_rows(self.source.rows(texts, self.dimensions))

    def unit_rows(self, rows) -> sparse.csr_matrix:
        """Return rows in unit length, centred if they are dense."""
        centred = rows if self.mean is None else rows - self.mean
        return unit_rows(sparse.csr_matrix(centred))


@dataclass(frozen=True, eq=False)
class Features:
    """The blocks of a labeler, in the order of their columns."""

    blocks: tuple[FeatureBlock, ...]

    @property
    def used(self) -> list[FeatureBlock]:
        """The blocks with a weight above 0, which have columns."""
        return [block for block in self.blocks if block.weight > 0]

    @property
    def dimensions(self) -> int:
        """Number of columns of all blocks."""
        return sum(block.dimensions for block in self.used)

    def columns(self, n_words: int) -> dict[str, slice]:
        """Return the columns of each block, to the right of the words."""
        columns, first = {}, n_words
        for block in self.used:
            columns[block.name] = slice(first, first + block.dimensions)
            first += block.dimensions
        return columns

    def beside(self, X: sparse.csr_matrix, texts: Sequence, fields) -> sparse.csr_matrix:
        """Return the words of texts with the features to their right."""
        strings = [plain_text(text, fields) for text in texts]
        if not strings:
            return sparse.csr_matrix((0, X.shape[1] + self.dimensions))
        return _joined([X, *(block.rows(strings) for block in self.used)])


def plain_text(text, fields: Mapping[str, float] | None) -> str:
    """Return a text as one string; fields with weight 0 are left out."""
    content = getattr(text, "content", text)
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping) and all(isinstance(part, str) for part in content.values()):
        weights = fields or {}
        return "\n".join(part for name, part in content.items() if weights.get(name, 1.0) > 0)
    raise ValueError(
        "features need texts, and this one is a bag of words; give strings, or leave features out."
    )


def read_sources(features) -> list[Source]:
    """Return the sources that a labeler is given; raise if they are none."""
    if isinstance(features, str | Mapping) or not isinstance(features, Iterable):
        raise TypeError(f"features == {features!r}, must be a list of transformers or functions.")
    sources = [_read_source(feature) for feature in features]
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"features has two blocks of the name {name!r}; give each as a pair of a name and "
                "a transformer or function."
            )
    return sources


def _read_source(feature) -> Source:
    name = ""
    if isinstance(feature, tuple) and len(feature) == 2:
        name, feature = feature
        if not isinstance(name, str) or not name:
            raise TypeError(f"features has the name {name!r}, must be a string.")
    if isinstance(feature, type) or not (callable(feature) or hasattr(feature, "transform")):
        raise TypeError(
            f"features has {feature!r}, must have transformers (instances) or functions from texts "
            "to rows of numbers."
        )
    own_name = getattr(feature, "__name__", type(feature).__name__)
    return Source(name or str(own_name), feature)


def _joined(parts) -> sparse.csr_matrix:
    X = sparse.csr_matrix(sparse.hstack(parts, format="csr"))
    X.eliminate_zeros()
    X.sort_indices()
    return X


# Learning


def learn_features(
    features,
    texts: list[str],
    X: sparse.csr_matrix,
    Y: sparse.csr_matrix,
    analyzer: Analyzer,
    *,
    weights: list[float] | None = None,
) -> tuple[Features, sparse.csr_matrix]:
    """Fit the blocks to texts, and choose their weights.

    Parameters
    ----------
    features : list
        What the labeler is given.
    texts : list of str
        The texts.
    X, Y : csr_matrix
        The weights of their words, and the indicator of their labels.
    analyzer : Analyzer
        Finds the terms of word n-grams that have no analyzer of their own.
    weights : list of float, default=None
        The weights of the blocks, chosen on held-out documents if None.

    Returns
    -------
    features : Features
        The fitted blocks.
    X : csr_matrix
        The words, with the weighted features to their right.
    """
    blocks, rows = [], []
    for source in read_sources(features):
        source = source._replace(make=_unfitted(source.make, analyzer))
        made = source.fit_rows(texts)
        mean = None if sparse.issparse(made) else made.mean(axis=0)
        blocks.append(FeatureBlock(source, made.shape[1], mean))
        rows.append(blocks[-1].unit_rows(made))
    weights = choose_weights(X, rows, Y) if weights is None else weights
    blocks = [replace(block, weight=w) for block, w in zip(blocks, weights, strict=True)]
    return Features(tuple(blocks)), _weighted([X, *rows], weights)


def _unfitted(make, analyzer):
    if not hasattr(make, "get_params"):
        return make
    unfitted = clone(make)
    if isinstance(unfitted, WordNGrams) and unfitted.analyzer is None:
        unfitted.set_params(analyzer=clone(analyzer))
    return unfitted


def _weighted(parts, weights) -> sparse.csr_matrix:
    """Return the words with weighted blocks to their right, without those of weight 0."""
    words, *rows = parts
    return _joined([words, *(w * part for w, part in zip(weights, rows, strict=True) if w > 0)])


def choose_weights(X, rows: list[sparse.csr_matrix], Y) -> list[float]:
    """Return the weight of each block, chosen on held-out documents.

    Linear support vector machines, which are fast, are fitted with each candidate for one block
    after the other. A weight other than 1 must have a mean F1 that is higher by more than its
    standard error, so that chance alone rarely decides. With thousands of labels, every weight is
    ``LARGE_WEIGHT``.
    """
    if Y.shape[1] >= LARGE_LABELS:  # machines of so many labels do not fit into memory
        return [LARGE_WEIGHT] * len(rows)
    weights = [1.0] * len(rows)
    order = draw_documents(X.shape[0], MAX_DOCS, 0)
    if order.size < MIN_DOCS:
        return weights
    fold_of = np.arange(order.size) % FOLDS
    n_folds = FOLDS if order.size < MAX_DOCS_OF_FOLDS else 1
    folds = [(order[fold_of != k], order[fold_of == k]) for k in range(n_folds)]
    present = _held_out_f1(_weighted([X, *rows], weights), Y, folds)
    for k in range(len(rows)):
        base, best = present, 0.0
        for weight in WEIGHTS:
            tried = [*weights[:k], weight, *weights[k + 1 :]]
            values = _held_out_f1(_weighted([X, *rows], tried), Y, folds)
            gain = values - base
            above = gain.mean() - gain.std() / np.sqrt(gain.size)
            if above > best:
                best, present, chosen = above, values, tried
        if best > 0:
            weights = chosen
    return weights


def _held_out_f1(X, Y, folds) -> np.ndarray:
    """Return the F1 of each held-out document."""
    from polytopic.models import LinearSVM  # here: only labelers with features need it

    values = []
    for train, test in folds:
        predicted = LinearSVM().fit(X[train], Y[train]).predict_indicator(X[test])
        right = np.asarray(predicted.multiply(Y[test]).sum(axis=1)).ravel()
        values.append(f1(right, Y[test].getnnz(axis=1), predicted.getnnz(axis=1)))
    return np.concatenate(values)


# Files


def describe_features(features: Features) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return the blocks that have columns as entries of a manifest, and their arrays.

    N-grams are described completely. Anything else is kept by reference: the file has its name,
    its dimensions and a digest, random projections of its rows for a few fixed texts.
    """
    entries, arrays = [], {}
    for k, block in enumerate(features.used):
        make = block.source.make
        entry = {"name": block.name, "dimensions": block.dimensions, "weight": block.weight}
        if isinstance(make, NGrams):
            parameters = make.get_params(deep=False)
            if parameters.get("analyzer") is not None:
                parameters["analyzer"] = parameters["analyzer"].to_dict()
            entry |= {"kind": make.kind, "parameters": parameters}
            entry["terms"] = list(make.vocabulary_.terms)
            arrays[f"{k}.idf"] = make.weights_.idf_
        else:
            entry |= {"kind": "given", "source": type(make).__name__}
            if isinstance(make, Embeddings) and is_published_name(make.model):
                entry |= {"kind": "embeddings", "model": make.model, "library": make.library}
            entry["digest"] = _digest(block.source, block.dimensions).tolist()
        if block.mean is not None:
            arrays[f"{k}.mean"] = block.mean
        entries.append(entry)
    return entries, arrays


def restore_features(
    entries: Sequence[Mapping[str, Any]], arrays: Mapping[str, np.ndarray], given
) -> Features:
    """Return the blocks of a file.

    ``given`` are the transformers and functions that the file keeps by reference. ModelFileError
    is raised if one is missing, or is not the one that was learned with.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise ValueError("features must be a list of blocks")
    sources = {source.name: source for source in read_sources(given or ())}
    names = [entry["name"] for entry in entries]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("the names of features must be distinct strings")
    for name in sources:
        if name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise ModelFileError(f"the file has no features of the name {name!r}; it has {known}.")
    blocks = [
        _restore_block(
            entry,
            {
                name.removeprefix(f"{k}."): array
                for name, array in arrays.items()
                if name.startswith(f"{k}.")
            },
            sources.get(entry["name"]),
        )
        for k, entry in enumerate(entries)
    ]
    return Features(tuple(blocks))


def _restore_block(entry, arrays, given: Source | None) -> FeatureBlock:
    name, dimensions, kind = entry["name"], entry["dimensions"], entry["kind"]
    if type(dimensions) is not int or not 1 <= dimensions <= MAX_DIMENSIONS:
        raise ValueError(f"the features {name!r} have {dimensions!r} dimensions")
    check_number(entry["weight"], "the weight of features", min_val=0, max_val=MAX_WEIGHT)
    if not entry["weight"] > 0:
        raise ValueError(f"the weight of the features {name!r} must be > 0")
    mean = arrays.get("mean")
    if mean is not None:
        check_arrays({"mean": mean}, {"mean": MEAN})
        if mean.size != dimensions:
            raise ValueError(f"the features {name!r} have a mean of {mean.size} dimensions")
    if kind in NGRAMS:
        if given is not None:
            raise ModelFileError(f"the file has the n-grams {name!r} itself; do not give them.")
        source = Source(name, _restore_ngrams(entry, arrays))
    elif kind in ("given", "embeddings"):
        source = _restore_reference(entry, given)
    else:
        raise ValueError(f"features of the kind {kind!r} are not known")
    return FeatureBlock(source, dimensions, mean, float(entry["weight"]))


def _restore_ngrams(entry, arrays) -> NGrams:
    parameters = dict(entry["parameters"])
    if parameters.get("analyzer") is not None:
        parameters["analyzer"] = Analyzer.from_dict(parameters["analyzer"])
    vocabulary = Vocabulary.from_sorted(entry["terms"])
    if len(vocabulary) != entry["dimensions"]:
        raise ValueError(f"the features {entry['name']!r} have {len(vocabulary)} terms")
    check_arrays({"idf": arrays["idf"]}, {"idf": IDF}, n_terms=len(vocabulary))
    return NGRAMS[entry["kind"]](**parameters).restore(vocabulary, arrays["idf"])


def _restore_reference(entry, given: Source | None) -> Source:
    name, digest = entry["name"], np.array(entry["digest"], dtype=np.float64)
    if digest.shape != (len(PROBES), N_PROJECTIONS) or not np.isfinite(digest).all():
        raise ValueError(f"the digest of the features {name!r} must be rows of numbers")
    if given is None and entry["kind"] == "embeddings" and is_published_name(entry["model"]):
        given = Source(name, Embeddings(entry["model"], library=entry["library"]))
    if given is None:
        raise ModelFileError(
            f"the features {name!r} ({entry['source']}) are not in the file; give them, fitted, as "
            f"load(path, features=[({name!r}, …)])."
        )
    try:
        own = _digest(given, entry["dimensions"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"the features {name!r} do not work: {error}") from error
    if not np.allclose(own, digest, rtol=0, atol=TOLERANCE * np.abs(digest).max()):
        raise ModelFileError(
            f"the features {name!r} are not those that the model was trained with: they give other "
            "numbers for the same texts."
        )
    return given


def is_published_name(model) -> bool:
    """Return whether this is the name of a published model, and not a folder.

    Reading a folder may run code in it, so a file never decides which folder is read.
    """
    is_name = isinstance(model, str) and PUBLISHED_NAME.fullmatch(model)
    return bool(is_name) and not Path(model).exists()


def _digest(source: Source, dimensions: int) -> np.ndarray:
    """Return random projections of the rows of fixed texts."""
    rows = source.rows(list(PROBES), dimensions)  # first, since a file may claim any dimensions
    return np.asarray(rows @ np.random.RandomState(0).standard_normal((dimensions, N_PROJECTIONS)))
