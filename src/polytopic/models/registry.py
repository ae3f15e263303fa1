"""The models by name: the one place that lists them.

Commands, labelers, stores, the service and the tests read this list. It imports no model: a class
is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from polytopic.models.base import Model


@dataclass(frozen=True)
class Variant:
    """A model with certain parameters, as one method of a comparison.

    Attributes
    ----------
    title : str
        Its name in tables.
    suffix : str
        What its name on the command line adds to the name of the model; "" if nothing.
    parameters : mapping of str to Any
        Parameters that differ from those of a labeler that is given the model's name alone.
    space : mapping of str to tuple
        Values to try for each parameter that is tuned, the default first.
    decision : {"model", "rule", "threshold"}
        What decides which labels to predict: the model itself, the decision rule that is best in
        cross-validation, or a threshold that is tuned on held-out documents.
    by_default : bool
        Whether it is compared if no methods are named.
    """

    title: str
    suffix: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, tuple] = field(default_factory=dict)
    decision: Literal["model", "rule", "threshold"] = "model"
    by_default: bool = False


@dataclass(frozen=True)
class ModelEntry:
    """What is known about a model without loading it.

    Attributes
    ----------
    name : str
        The name of the model in commands, files and stores.
    path : str
        Its class: ``"module:class"``.
    learns_from : {"counts", "documents"}
        As the class declares it.
    title : str
        A few words that describe the model.
    options : mapping of str to str
        Options of ``polytopic train`` that apply to it, and the parameters that they set.
    defaults : mapping of str to Any
        Parameters that differ from the class's defaults if a labeler is given the name alone.
    packing : mapping of str to str
        How its arrays are packed in files, see :mod:`polytopic.modelfile`; others are
        written as they are.
    renamed : mapping of str to str
        Former names of parameters, which model files may hold, and the present ones.
    partitions : str
        The class that fits a document model on partitions: ``"module:class"``.
    variants : tuple of Variant
        What comparisons run; if empty, the model as a labeler uses it.
    """

    name: str
    path: str
    learns_from: Literal["counts", "documents"]
    title: str
    options: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    packing: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    partitions: str = ""
    variants: tuple[Variant, ...] = ()

    def load(self) -> type[Model]:
        """Return the class."""
        return load(self.path)

    def create(self, **parameters: Any) -> Any:
        """Return an unfitted model as a labeler uses it, with these parameters."""
        return self.load()(**{**self.defaults, **parameters})


COUNT_PACKING = {
    "data": "counts",
    "indices": "columns",
    "indptr": "sizes",
    "set_indices": "whole",
    "set_indptr": "sizes",
    "set_docs": "whole",
    "world_counts": "whole",
}
_MIXTURE_OPTIONS = {"decode": "decode", "prior": "prior", "smoothing": "smoothing"}
_MIXTURE_PAPER = {"prior": "uniform", "decode": "greedy", "smoothing": 1.0}  # as published
_MARGIN_PAPER = {"labels": "neighbours", "calibrate": False}
_BALANCED = ("mml", "svm", "knn")  # models that a stack combines
_BEST = (*_BALANCED, "forest")
_MARGIN_SPACE = {"C": (1.0, 0.1, 10.0)}
MANY_PER_DOCUMENT = 15.0  # labels a document, from which on label sets as classes overfit
LARGE_LABELS = 1000  # labels from which on models score only candidates, and nothing is dense
_ENTRIES = {
    entry.name: entry
    for entry in (
        ModelEntry(
            "mml",
            "polytopic.models.mml:MML",
            "documents",
            "maximal margin labeling",
            options={"goal": "goal", "C": "C"},
            defaults={"C": "auto", "calibrate": True, "random_state": 0},
            packing={"weights": "pairs"},
            partitions="polytopic.distributed.margins:MarginParts",
            variants=(
                Variant("MML, F", by_default=True),
                Variant("MML, exact sets", "exact", {"goal": "exact"}, by_default=True),
                Variant("MML, paper, Dice", "dice", _MARGIN_PAPER, _MARGIN_SPACE),
                Variant(
                    "MML, paper, cosine",
                    "cosine",
                    {**_MARGIN_PAPER, "similarity": "cosine"},
                    _MARGIN_SPACE,
                ),
            ),
        ),
        ModelEntry(
            "pmm1",
            "polytopic.models.mixture:PMM1",
            "counts",
            "equal mixture of labels",
            options=_MIXTURE_OPTIONS,
            packing=COUNT_PACKING,
            variants=(
                Variant("PMM1", by_default=True),
                Variant("PMM1, paper", "paper", _MIXTURE_PAPER),
            ),
        ),
        ModelEntry(
            "pmm2",
            "polytopic.models.mixture:PMM2",
            "counts",
            "mixture of labels with biases between pairs",
            options=_MIXTURE_OPTIONS,
            packing=COUNT_PACKING,
            variants=(Variant("PMM2"), Variant("PMM2, paper", "paper", _MIXTURE_PAPER)),
        ),
        ModelEntry(
            "pdmm",
            "polytopic.models.mixture:PDMM",
            "counts",
            "mixture of labels with weights for each text",
            options=_MIXTURE_OPTIONS,
            packing=COUNT_PACKING,
            renamed={"score": "likelihood"},
            variants=(Variant("PDMM", by_default=True),),
        ),
        ModelEntry(
            "nb",
            "polytopic.models.naive_bayes:NaiveBayes",
            "counts",
            "naive Bayes",
            options={"smoothing": "smoothing"},
            packing=COUNT_PACKING,
            variants=(
                Variant("naive Bayes, several labels", by_default=True),
                Variant("naive Bayes, tuned rule", "rule", decision="rule"),
            ),
        ),
        ModelEntry(
            "col",
            "polytopic.models.col:CoL",
            "documents",
            "labels as mixtures of topics",
            options={"topics": "n_topics", "smoothing": "smoothing"},
            partitions="polytopic.distributed.topics:TopicParts",
            variants=(Variant("CoL"),),
        ),
        ModelEntry(
            "boostexter",
            "polytopic.models.boostexter:BoosTexter",
            "documents",
            "boosted one-word rules",
            options={"rounds": "n_rounds"},
            variants=(
                Variant("BoosTexter, best label if none"),
                Variant("BoosTexter", "plain", {"best_if_none": False}),
                Variant(
                    "BoosTexter, tuned rounds and threshold",
                    "threshold",
                    space={"n_rounds": (1000, 100, 300, 3000)},
                    decision="threshold",
                ),
            ),
        ),
        ModelEntry(
            "svm",
            "polytopic.models.svm:LinearSVM",
            "documents",
            "linear support vector machines",
            options={"C": "C"},
            variants=(Variant("LinearSVM", "shared"),),
        ),
        ModelEntry(
            "knn",
            "polytopic.models.neighbours:NearestNeighbours",
            "documents",
            "votes of the most similar documents",
            defaults={"max_docs": 8000, "random_state": 0},
            packing={"indices": "columns", "indptr": "sizes"},
            variants=(Variant("NearestNeighbours", "votes"),),
        ),
        ModelEntry(
            "forest",
            "polytopic.models.forest:RandomForest",
            "documents",
            "random forest",
        ),
        ModelEntry(
            "shortlist-svm",
            "polytopic.models.large:ShortlistSVM",
            "documents",
            "linear support vector machines for thousands of labels",
            options={"C": "C"},
            packing={"indices": "columns", "indptr": "sizes"},
            variants=(Variant("ShortlistSVM", "alone"),),
        ),
        ModelEntry(
            "candidate-stack",
            "polytopic.models.large:CandidateStack",
            "documents",
            "machines, centroids and neighbours for thousands of labels",
            options={"C": "C"},
            packing={"indices": "columns", "indptr": "sizes"},
            variants=(
                Variant("CandidateStack, F", "f"),
                Variant("CandidateStack without machines", "fast", {"machines": False}),
                Variant("CandidateStack, exact matches", "exact", {"goal": "exact"}),
            ),
        ),
        ModelEntry(
            "stack",
            "polytopic.models.stack:Stack",
            "documents",
            "several models combined",
            options={"goal": "goal"},
            variants=(
                Variant("Stack, balanced", "balanced", {"members": _BALANCED}),
                Variant("Stack, best", "best", {"members": _BEST}),
                Variant("Stack, exact sets", "exact", {"goal": "exact"}),
                Variant("Stack, F1 per label", "macro", {"goal": "macro"}),
            ),
        ),
    )
}
_LOADED: dict[str, Any] = {}

# The model that each quality stands for, from fast to accurate, and its parameters
QUALITIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fast": ("mml", {}),
    "balanced": ("stack", {"members": _BALANCED}),
    "best": ("stack", {"members": _BEST}),
}
DEFAULT_QUALITY = "balanced"
CLUSTER_QUALITY = "fast"  # where documents are on several machines, which a stack cannot learn from

# The same from LARGE_LABELS labels on, where everything is sparse
LARGE_QUALITIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fast": ("candidate-stack", {"machines": False}),
    "balanced": ("candidate-stack", {}),
    "best": ("candidate-stack", {}),
}

# Where documents have MANY_PER_DOCUMENT labels each, MML overfits, and the default does without it
MANY_QUALITY: tuple[str, dict[str, Any]] = "stack", {"members": ("svm", "knn")}
DEFAULT_COUNT_MODEL = "pmm1"  # of stores and audits, and for shares if the model is not a mixture


def register(
    model: type[Model],
    title: str,
    *,
    options: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    packing: Mapping[str, str] | None = None,
    variants: tuple[Variant, ...] = (),
) -> ModelEntry:
    """Add a model at run time, under the ``name`` that its class declares.

    It can then be given by name to a labeler, a store or a comparison, and its files can be opened,
    in every process that registers it.

    Parameters
    ----------
    model : class
        A subclass of :class:`~polytopic.models.Model`.
    title : str
        A few words that describe the model.
    options, defaults, packing : mapping, default=None
        See :class:`ModelEntry`; by default, a count model's arrays are packed as those of the
        others.
    variants : tuple of Variant
        See :class:`ModelEntry`.
    """
    known = _ENTRIES.get(model.name)
    path = f"{model.__module__}:{model.__qualname__}"
    if known is not None and known.path != path:
        raise ValueError(f"the name {model.name!r} is taken by {known.path}.")
    if packing is None:
        packing = COUNT_PACKING if model.learns_from == "counts" else {}
    _LOADED[path] = model
    _ENTRIES[model.name] = ModelEntry(
        model.name,
        path,
        model.learns_from,
        title,
        options or {},
        defaults or {},
        packing,
        variants=variants,
    )
    return _ENTRIES[model.name]


def model_names(learns_from: str | None = None) -> tuple[str, ...]:
    """Return the names of all models, or of those that learn from counts or from documents."""
    return tuple(
        name
        for name, entry in _ENTRIES.items()
        if learns_from is None or entry.learns_from == learns_from
    )


def find_model(name: object) -> ModelEntry:
    """Return the entry of a model; raise ValueError if no model has this name."""
    if not isinstance(name, str) or name not in _ENTRIES:
        raise ValueError(f"model == {name!r}, must be one of {', '.join(_ENTRIES)}.")
    return _ENTRIES[name]


def create_model(name: object, **parameters: Any) -> Any:
    """Return an unfitted model by name, as a labeler uses it, with these parameters."""
    return find_model(name).create(**parameters)


def create_quality(
    quality: object, n_labels: int = 0, per_document: float = 0.0, **parameters: Any
) -> Any:
    """Return the unfitted model of a quality, with these parameters besides its own."""
    name, own = find_quality(quality, n_labels, per_document)
    return create_model(name, **{**own, **parameters})


def find_quality(
    quality: object, n_labels: int = 0, per_document: float = 0.0
) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the parameters of the model that stands for a quality.

    It depends on the number of labels, and of labels per document; None is the default quality.
    """
    large = n_labels >= LARGE_LABELS
    if quality is None:
        quality = DEFAULT_QUALITY
    if not isinstance(quality, str) or quality not in QUALITIES:
        raise ValueError(f"quality == {quality!r}, must be one of {', '.join(QUALITIES)}.")
    if quality == DEFAULT_QUALITY and not large and per_document >= MANY_PER_DOCUMENT:
        return MANY_QUALITY
    return (LARGE_QUALITIES if large else QUALITIES)[quality]


def load(path: str) -> Any:
    """Return the class at ``"module:class"``."""
    if path not in _LOADED:
        module, name = path.split(":")
        _LOADED[path] = getattr(import_module(module), name)
    return _LOADED[path]
