"""How a labeler learns: from texts, a table of counts, or rows of documents.

Each function reads the parameters of a labeler and returns the state that it has afterwards.
:class:`~polytopic.Labeler` learns from texts. The store and Dask count documents themselves, and
pass what they learn here to :meth:`~polytopic.Labeler.set_state`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from operator import add, sub
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_scalar

from polytopic.counts import TUNING_DOCS, DocumentRows, LabelSetCounts, TextSample
from polytopic.errors import PolytopicError
from polytopic.labeler.answers import check_abstention, check_guarantee
from polytopic.labeler.features import Features, learn_features, plain_text, read_sources
from polytopic.labeler.known_words import usual_share
from polytopic.labeler.reading import LabelReader, collect_rows, count_texts
from polytopic.labeler.state import FittedFrom, LabelerState, vocabulary_view
from polytopic.models import Model
from polytopic.models.checks import check_name, require_counts
from polytopic.models.classifier import ClassifierModel, is_foreign_classifier
from polytopic.models.registry import (
    LARGE_LABELS,
    create_model,
    create_quality,
    model_names,
)
from polytopic.text import Analyzer, Vocabulary, resolve_min_df
from polytopic.text.weights import SCHEMES, TermWeights

if TYPE_CHECKING:
    from polytopic.labeler.estimator import Labeler

TITLE = 4  # how much the words of titles count if there are thousands of labels
TITLES_SHARE = 0.9  # of the texts have a short first line, if first lines are titles
LONGEST_TITLE = 300  # characters
NO_FEATURES = "use Labeler.fit with texts, or leave features out."

# From texts


def learn_texts(labeler: Labeler, texts, labels, reader: LabelReader) -> LabelerState:
    """Learn from texts and their labels."""
    analyzer, fields = new_analyzer(labeler), labeler.fields
    model = new_model(labeler)
    if model.learns_from == "documents":
        kept: list | None = [] if labeler.features else None
        titles: list[str] | None = [] if labeler.analyzer is None else None
        rows = collect_rows(
            texts, labels, analyzer, fields, reader=reader, kept=kept, titles=titles
        )
        if titles is not None and has_titles(rows, titles):
            rows = with_titles(rows, titles, analyzer)
            analyzer = clone(analyzer).set_params(title=TITLE)
        return learn_rows(labeler, rows, analyzer, texts=kept)
    sample, sample_rows = TextSample(TUNING_DOCS if needs_sample(labeler, model) else 0), None
    counts = count_texts(texts, labels, analyzer, fields, sample, reader=reader)
    if sample.size:
        sample_rows = collect_rows(sample.texts, sample.labels, analyzer, fields)
    return learn_counts(labeler, counts, analyzer, sample=sample_rows)


def has_titles(rows: DocumentRows, titles: list[str]) -> bool:
    """Return whether the words of titles count more: there are many labels, and most have one.

    A title is a first line that is short, but for a few.
    """
    if len(rows.labels) < LARGE_LABELS:
        return False
    short = sum(0 < len(title) <= LONGEST_TITLE for title in titles)
    return short >= TITLES_SHARE * len(titles)


def with_titles(rows: DocumentRows, titles: list[str], analyzer: Analyzer) -> DocumentRows:
    """Return rows of counts, as an analyzer whose words of titles count ``TITLE`` times has."""
    counts, terms = analyzer.count(titles)
    place = {term: column for column, term in enumerate(rows.terms)}
    columns = np.array([place[term] for term in terms], dtype=np.int64)
    own = sparse.csr_matrix((counts.data, columns[counts.indices], counts.indptr), rows.X.shape)
    X = sparse.csr_matrix(rows.X + (TITLE - 1) * own)
    X.sort_indices()
    return DocumentRows(X, rows.Y, rows.terms, rows.labels)


def change_texts(
    labeler: Labeler,
    state: LabelerState,
    texts,
    labels,
    change: Callable,
    *,
    reader: LabelReader,
    warm: bool,
) -> LabelerState:
    """Learn again after adding texts to, or removing them from, those of a state.

    ``change`` is the operator ``add`` or ``sub``. With ``warm``, a document model starts from its
    present weights. What was tuned before is kept.
    """
    if state.features is not None:
        return _change_with_features(labeler, state, texts, labels, change, reader, warm=warm)
    analyzer, fields = state.analyzer, labeler.fields
    tuned: dict[str, Any] | None = state.model.tuned_
    if state.model.learns_from == "documents":
        new_rows = collect_rows(texts, labels, analyzer, fields, reader=reader)
        rows = change(_require_documents(state), new_rows)
        _check_not_empty(rows.X.shape[0])
        start = _check_warm_start(state.model) if warm else None
        asked = new_model(labeler, len(rows.labels), rows.Y.nnz / rows.Y.shape[0])
        if type(asked) is not type(state.model):
            tuned = None  # the number of labels now asks for another model
        return learn_rows(
            labeler, rows, analyzer, tuned=tuned, start=start, threshold=state.threshold
        )
    if warm:
        _check_warm_start(state.model)
    counts = require_counts(state.counts)
    counts = change(counts, count_texts(texts, labels, analyzer, fields, reader=reader))
    _check_not_empty(counts.n_docs)
    return learn_counts(labeler, counts, analyzer, tuned=tuned, threshold=state.threshold)


def _change_with_features(labeler, state, texts, labels, change, reader, *, warm) -> LabelerState:
    """Learn again from the texts that were kept, with more of them or fewer."""
    if warm:
        raise ValueError("warm == True does not work with features; leave it out.")
    if state.texts is None:
        raise PolytopicError(
            "features are fitted to the texts, which this labeler has not kept (files do not hold "
            "them), so it cannot learn or forget; call fit with all texts."
        )
    new: list = []
    rows = collect_rows(texts, labels, state.analyzer, labeler.fields, reader=reader, kept=new)
    kept, pairs = list(state.texts), _with_labels(new, rows)
    if change is add:
        kept += pairs
    for pair in pairs if change is sub else ():
        if pair not in kept:
            raise ValueError(
                f"the text {str(pair[0])[:60]!r} with the labels {', '.join(pair[1])} was not "
                "learned; nothing was changed."
            )
        kept.remove(pair)
    _check_not_empty(len(kept))
    contents, names = (list(column) for column in zip(*kept, strict=True))
    rows = collect_rows(contents, names, state.analyzer, labeler.fields)
    return learn_rows(
        labeler,
        rows,
        state.analyzer,
        tuned=state.model.tuned_,
        texts=contents,
        feature_weights=[block.weight for block in state.features.blocks],
    )


def _with_labels(texts, rows: DocumentRows) -> list[tuple[Any, tuple[str, ...]]]:
    """Return pairs of texts and their labels."""
    contents = [getattr(text, "content", text) for text in texts]
    return list(zip(contents, map(tuple, map(sorted, rows.label_names)), strict=True))


def _require_documents(state: LabelerState) -> DocumentRows:
    """Return the documents that a labeler has kept; raise if there are none."""
    if state.documents is None:
        require_counts(state.counts)
        raise PolytopicError(
            f"{type(state.model).__name__} learns from whole documents, which this labeler has "
            "not kept, so it cannot learn or forget. Fit it with keep_documents=True "
            "(--keep-documents)."
        )
    return state.documents


def _check_warm_start(model: Model) -> Model:
    """Return a model that a warm start can begin from; raise if it cannot."""
    if not model.can_warm_start:
        raise ValueError(f"warm == True is not for {type(model).__name__}; leave it out.")
    if not model.can_continue:
        raise PolytopicError(
            "a model that was loaded from a file cannot be continued; learn or forget once "
            "without warm=True."
        )
    return model


def _check_not_empty(n_docs: float) -> None:
    """Raise if nothing would be left to learn from."""
    if not n_docs:
        raise ValueError("no document would be left to learn from; nothing was forgotten.")


# From counts and documents


def learn_counts(
    labeler: Labeler,
    counts: LabelSetCounts,
    analyzer: Analyzer | None = None,
    *,
    sample: DocumentRows | None = None,
    tuned: dict | None = None,
    threshold: float | None = None,
    fitted_from: FittedFrom | None = None,
) -> LabelerState:
    """Fit a count model on a table of counts.

    Parameters
    ----------
    labeler : Labeler
        Its parameters say what to fit.
    counts : LabelSetCounts
        The table.
    analyzer : Analyzer, default=None
        The analyzer whose terms the table has; by default a new one.
    sample : DocumentRows, default=None
        Some of the documents, to tune hyper-parameters and to choose the threshold of a guarantee.
    tuned : dict, default=None
        Hyper-parameters tuned by an earlier fit (``model_.tuned_``), to keep.
    threshold : float, default=None
        The threshold of a guarantee that an earlier fit has chosen, to keep.
    fitted_from : FittedFrom, default=None
        The documents of a store that the table was counted from.
    """
    vocabulary, documents = _choose_vocabulary(labeler, counts), None
    if sample is not None and sample.X.shape[0]:
        documents = vocabulary.select(sample.X, sample.terms), sample.targets
    view = vocabulary_view(counts, vocabulary)
    model = new_model(labeler).fit_counts(view, documents=documents, tuned=tuned)
    state = _new_state(labeler, analyzer, model, vocabulary, counts, fitted_from=fitted_from)
    return _with_threshold(labeler, state, sample, threshold)


def learn_rows(
    labeler: Labeler,
    rows: DocumentRows,
    analyzer: Analyzer | None = None,
    *,
    tuned: dict | None = None,
    start: Model | None = None,
    threshold: float | None = None,
    fitted_from: FittedFrom | None = None,
    texts: list | None = None,
    feature_weights: list[float] | None = None,
) -> LabelerState:
    """Fit a document model on rows of counts.

    Parameters
    ----------
    labeler, analyzer, tuned, threshold, fitted_from
        As in :func:`learn_counts`.
    rows : DocumentRows
        The documents.
    start : Model, default=None
        The model to start from, whose documents ``rows.previous_rows`` refers to.
    texts : list of texts, default=None
        The texts of the documents, which features need.
    feature_weights : list of float, default=None
        The weights of features that an earlier fit has chosen, to keep.
    """
    features: Features | None = None
    if labeler.features and texts is None:
        raise ValueError(f"features need texts, not word counts alone; {NO_FEATURES}")

    def fit(model: Any, vocabulary: Vocabulary, weights: TermWeights | None) -> None:
        def read():
            X = vocabulary.select(rows.X, rows.terms)
            return X if weights is None else weights.transform(X, copy=False)

        if texts is not None:
            nonlocal features
            strings = [plain_text(text, labeler.fields) for text in texts]
            finder = new_analyzer(labeler) if analyzer is None else analyzer
            features, X = learn_features(
                labeler.features, strings, read(), rows.Y, finder, weights=feature_weights
            )
            model.fit(X, rows.targets, tuned=tuned)
        elif start is None:  # no reference is held here, so that a model can free the matrix
            model.fit(read(), rows.targets, tuned=tuned)
        else:
            model.fit(read(), rows.targets, tuned=tuned, warm=start, rows=rows.previous_rows)

    state = learn_documents(labeler, rows.table(), fit, analyzer, fitted_from=fitted_from)
    if texts is not None:
        kept = tuple(_with_labels(texts, rows)) if labeler.keep_documents else None
        return replace(state, features=features, texts=kept)
    state = _with_threshold(labeler, state, rows, threshold)
    return replace(state, documents=rows) if labeler.keep_documents else state


def _with_threshold(
    labeler: Labeler, state: LabelerState, rows: DocumentRows | None, threshold: float | None
) -> LabelerState:
    """Return the state with the threshold of the labeler's guarantee, chosen on rows if None."""
    if labeler.guarantee is None:
        return state
    if threshold is None:
        from polytopic.labeler.guarantee import guaranteed_threshold  # here: it learns folds

        threshold = guaranteed_threshold(labeler, state, rows)
    return replace(state, threshold=threshold)


def learn_documents(
    labeler: Labeler,
    counts: LabelSetCounts,
    fit: Callable[[Model, Vocabulary, TermWeights | None], object],
    analyzer: Analyzer | None = None,
    *,
    fitted_from: FittedFrom | None = None,
) -> LabelerState:
    """Fit a document model on documents that may be elsewhere, such as on a cluster.

    Parameters
    ----------
    labeler, analyzer, fitted_from
        As in :func:`learn_counts`.
    counts : LabelSetCounts
        The table of the documents.
    fit : callable
        Fits a model. It is called with the unfitted model, the vocabulary and the weights of its
        terms (None for a model that reads counts).
    """
    vocabulary, weights = _choose_vocabulary(labeler, counts), None
    per_document = counts.indicator.getnnz(axis=1) @ counts.set_docs / max(counts.n_docs, 1)
    model = new_model(labeler, len(counts.labels), per_document)
    if model.reads == "weights":
        frequency = vocabulary_view(counts, vocabulary).document_frequency
        weights = TermWeights(labeler.weights).fit_frequencies(frequency, counts.n_docs)
    fit(model, vocabulary, weights)
    return _new_state(labeler, analyzer, model, vocabulary, counts, weights, fitted_from)


def _choose_vocabulary(labeler: Labeler, counts: LabelSetCounts) -> Vocabulary:
    """Return the terms of a table that a model uses."""
    if not counts.set_docs.size:
        raise ValueError("Y has no labelled document; at least one is needed.")
    min_df = resolve_min_df(labeler.min_df, counts.n_docs)
    if labeler.max_terms is not None:
        check_scalar(labeler.max_terms, "max_terms", Integral, min_val=1)
    vocabulary = Vocabulary.from_frequencies(
        counts.terms, counts.document_frequency, min_df=min_df, max_size=labeler.max_terms
    )
    if not len(vocabulary):
        raise ValueError(
            f"no term occurs in min_df == {min_df} of the {counts.n_docs} labelled documents."
        )
    return vocabulary


def _new_state(
    labeler, analyzer, model, vocabulary, counts, weights=None, fitted_from=None
) -> LabelerState:
    if labeler.abstain is not None:
        check_abstention(labeler.abstain, labeler.rule, model)
    return LabelerState(
        model=model,
        analyzer=new_analyzer(labeler) if analyzer is None else analyzer,
        vocabulary=vocabulary,
        table=counts,
        documents=None,
        weights=weights,
        training={
            "documents": counts.n_docs,
            "label_sets": int(counts.set_docs.size),
            "terms": len(counts.terms),
            "known": usual_share(counts, vocabulary, resolve_min_df(labeler.min_df, counts.n_docs)),
        },
        fitted_from=fitted_from,
    )


# What a labeler's parameters ask for


def new_analyzer(labeler: Labeler) -> Analyzer:
    """Return the analyzer of a labeler's texts."""
    return Analyzer(labeler.language) if labeler.analyzer is None else clone(labeler.analyzer)


def needs_sample(labeler: Labeler, model: Model) -> bool:
    """Return whether a count model must be fitted with a sample of documents."""
    return model.needs_documents or labeler.guarantee is not None


def new_model(labeler: Labeler, n_labels: int = 0, per_document: float = 0.0) -> Model:
    """Return the model of a labeler, unfitted; raise if other parameters do not work with it.

    The model that a quality stands for depends on the number of labels, and of labels per document.
    """
    check_guarantee(labeler)
    check_name(labeler.weights, "weights", SCHEMES)
    model = labeler.model
    if model is None:
        model = create_quality(labeler.quality, n_labels, per_document)
    elif labeler.quality is not None:
        raise ValueError(
            f"model == {model!r} and quality == {labeler.quality!r}: a quality stands for a model, "
            "so give one of them."
        )
    model, rule = _unfitted_model(model), labeler.rule
    if labeler.features:
        read_sources(labeler.features)
        if model.reads != "weights":
            raise ValueError(
                f"{type(model).__name__} learns from word counts, so it cannot use features; use "
                "a model that reads weights, such as 'mml', 'svm' or 'stack', or leave features "
                "out."
            )
    if rule is not None and rule.needs_reference and not model.has_world_score:
        raise ValueError(
            f"the rule {type(rule).__name__} needs a model of the whole corpus, which "
            f"{type(model).__name__} does not have; use NaiveBayes or another rule."
        )
    if rule is not None and rule.needs_tree and rule.tree is None and labeler.tree is None:
        raise ValueError(
            f"the rule {type(rule).__name__} needs the tree of labels; use Labeler(tree=...)."
        )
    if labeler.abstain is not None:
        check_abstention(labeler.abstain, rule, model)
    return model


def _unfitted_model(model: str | Model | BaseEstimator) -> Model:
    if isinstance(model, str):
        return create_model(model)
    if is_foreign_classifier(model):
        return ClassifierModel(clone(model))
    if not isinstance(model, Model):
        raise TypeError(
            f"model is a {type(model).__name__}, must be one of {', '.join(model_names())}, "
            "an instance of such a model, or a classifier of scikit-learn."
        )
    return clone(model)
