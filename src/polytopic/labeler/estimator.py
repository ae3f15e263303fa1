"""Labeler: from texts to labels, as one estimator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from polytopic.corpus.document import Document
from polytopic.counts import LabelSetCounts
from polytopic.decision.estimator import apply_rule
from polytopic.explain import Explanation
from polytopic.explain.words import explain_counts, places_of
from polytopic.labels import LabelSpace, Targets, read_targets
from polytopic.metrics import labeling_f
from polytopic.models import MODELS, CountModel
from polytopic.models.base import require_counts
from polytopic.text import Analyzer, Vocabulary, least_documents

BLOCK = 8192  # documents counted at once


class Suggestion(NamedTuple):
    """A label for a text.

    ``score`` ranks the labels of a text, ``probability`` is the model's, and ``chosen`` tells
    whether the label is in the predicted set.
    """

    label: str
    score: float
    probability: float
    chosen: bool


class LabelLists(list):
    """A list of lists of labels that NumPy sees as one object a text, whatever their lengths."""

    def __array__(self, dtype=None, copy=None):
        array = np.empty(len(self), dtype=object)
        array[:] = list(self)  # a plain list, which does not come back here
        return array


class Labeler(BaseEstimator):
    """Labels texts, says why, learns and forgets.

    A text is a string, a mapping from fields (title, body) to strings, a bag of words (a mapping
    from terms to counts), or a :class:`~polytopic.Document`.

    Parameters
    ----------
    model : {"pmm1", "nb"} or count model, default="pmm1"
        What scores the labels; an instance brings its own parameters.
    language : str or None, default="en"
        Language of the texts; None takes words as they are.
    analyzer : Analyzer, default=None
        What makes terms of texts, instead of the language's own.
    rule : rule of :mod:`polytopic.decision`, default=None
        Which labels are enough; the model's own way by default.
    min_df : int or "auto", default="auto"
        A term counts if at least this many documents have it; "auto" is 2 from 1000 documents
        on, else 1.
    max_terms : int, default=None
        The most frequent terms are kept, by documents.
    fields : mapping of str to float, default=None
        Weights of fields; 1 for those not named.
    tree : LabelTree, default=None
        The tree of labels, kept with the model.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order.
    model_ : count model
        The fitted model.
    vocabulary_ : Vocabulary
        The terms the model sees, a view of ``counts_``.
    counts_ : LabelSetCounts or None
        All terms of all documents learned; None if loaded from a file without them.
    training_ : dict
        How many documents, label sets and terms were learned.

    Examples
    --------
    >>> texts = ["The striker scored a goal.", "The rover landed on Mars.", "A goal on Mars."]
    >>> labeler = Labeler().fit(texts, [["sport"], ["space"], ["space", "sport"]])
    >>> labeler.predict(["A rover with a goal"])
    [['space', 'sport']]
    >>> labeler.forget(["A goal on Mars."], [["space", "sport"]]).counts_.n_docs
    2
    """

    def __init__(
        self,
        model="pmm1",
        *,
        language="en",
        analyzer=None,
        rule=None,
        min_df="auto",
        max_terms=None,
        fields=None,
        tree=None,
    ):
        self.model = model
        self.language = language
        self.analyzer = analyzer
        self.rule = rule
        self.min_df = min_df
        self.max_terms = max_terms
        self.fields = fields
        self.tree = tree

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags

    # Learning

    def fit(self, texts, labels=None):
        """Learn from texts and their labels, one collection of names a text.

        ``labels`` may be left out if all texts are documents that carry their own.
        """
        analyzer = Analyzer(self.language) if self.analyzer is None else clone(self.analyzer)
        return self._refit(self._count(texts, labels, analyzer), analyzer)

    def learn(self, texts, labels=None):
        """Learn more texts, exactly as if all had been given to ``fit``; new labels may come."""
        check_is_fitted(self, "model_")
        new = self._count(texts, labels, self.analyzer_)
        return self._refit(require_counts(self.counts_) + new, self.analyzer_)

    def forget(self, texts, labels=None):
        """Unlearn texts with the labels they were learned with, without a trace."""
        check_is_fitted(self, "model_")
        left = require_counts(self.counts_) - self._count(texts, labels, self.analyzer_)
        if not left.set_docs.size:
            raise ValueError("no document would be left to learn from; nothing was forgotten.")
        return self._refit(left, self.analyzer_)

    def _count(self, texts, labels, analyzer):
        """Count texts, or documents from any iterator block by block."""
        if labels is not None:
            texts = list(_check_iterable(texts))
            return self._count_block(texts, _read_labels(labels, len(texts)), analyzer)
        counts, documents = LabelSetCounts(), iter(_check_iterable(texts))
        while block := list(islice(documents, BLOCK)):
            if not all(isinstance(document, Document) for document in block):
                raise ValueError("requires labels to be passed, but the target y is None.")
            targets = read_targets([document.labels for document in block])
            counts += self._count_block(block, targets, analyzer)
        return counts

    def _count_block(self, texts, targets, analyzer):
        X, terms = analyzer.count(texts, self.fields)
        return LabelSetCounts.from_matrix(X, targets, terms=terms)

    def _refit(self, counts, analyzer):
        min_df = least_documents(self.min_df, counts.n_docs)
        vocabulary = Vocabulary.from_frequencies(
            counts.terms, counts.document_frequency, min_df=min_df, max_size=self.max_terms
        )
        if counts.set_docs.size and not len(vocabulary):
            raise ValueError(
                f"no term is in min_df == {min_df} of the {counts.n_docs} labelled documents."
            )
        self.model_ = self._new_model().fit_counts(vocabulary_view(counts, vocabulary))
        self.analyzer_, self.vocabulary_, self.counts_ = analyzer, vocabulary, counts
        self.training_ = {
            "documents": counts.n_docs,
            "label_sets": int(counts.set_docs.size),
            "terms": len(counts.terms),
        }
        return self

    def _new_model(self):
        model = self._model()
        if (
            self.rule is not None
            and self.rule.needs_reference
            and not hasattr(model, "world_score")
        ):
            raise ValueError(
                f"the rule {type(self.rule).__name__} needs a general model, which "
                f"{type(model).__name__} has not; use model='nb' or another rule."
            )
        return model

    def _model(self):
        if isinstance(self.model, str):
            if self.model not in MODELS:
                raise ValueError(f"model == {self.model!r}, must be one of {', '.join(MODELS)}.")
            return MODELS[self.model]()
        if not isinstance(self.model, CountModel):
            raise TypeError(
                f"model is a {type(self.model).__name__}, must be one of {', '.join(MODELS)} "
                "or a count model."
            )
        return clone(self.model)

    # Answers

    @property
    def classes_(self):
        """Label ids in sorted order."""
        check_is_fitted(self, "model_")
        return self.model_.classes_

    def transform(self, texts) -> sparse.csr_matrix:
        """Return the counts of known terms that the model sees."""
        check_is_fitted(self, "model_")
        counts, terms = self.analyzer_.count(_check_iterable(texts), self.fields)
        return self.vocabulary_.select(counts, terms)

    def predict(self, texts) -> list[list[str]]:
        """Return the labels of each text; one without a known word gets the commonest set."""
        X = self.transform(texts)
        return LabelLists(self._space.decode(self._choose(self.model_, X)) if X.shape[0] else [])

    def predict_proba(self, texts) -> np.ndarray:
        """Return the model's probability of each label."""
        X = self.transform(texts)
        return self.model_.predict_proba(X)

    def decision_function(self, texts) -> np.ndarray:
        """Return the model's score of each label."""
        X = self.transform(texts)
        return self.model_.decision_function(X)

    def score(self, texts, labels) -> float:
        """Return the labelling F."""
        texts = list(_check_iterable(texts))
        targets = _read_labels(labels, len(texts))
        return labeling_f(LabelSpace(targets.labels).decode(targets.Y), self.predict(texts))

    def suggest(
        self,
        texts,
        k: int = 5,
        *,
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
    ) -> list[list[Suggestion]]:
        """Return the ``k`` best labels of each text, best first, and all that are predicted.

        Parameters
        ----------
        texts : iterable of texts
            What to label.
        k : int, default=5
            Labels to give for each text.
        include, exclude : collection of str, default=None
            The only labels allowed, and labels not allowed.
        """
        X = self.transform(texts)
        if not X.shape[0]:
            return []
        model = self.model_
        if include is not None or exclude:
            model = model.restricted(self._allowed(include, exclude))
        Y, scores, proba = model.assess(X)
        if self.rule is not None:
            Y = self._choose(model, X)
        labels = self._space.ids
        rows = zip(Y.toarray() > 0, scores, proba, strict=True)
        return [_ranked(labels, *row, k) for row in rows]

    def explain(self, text, labels: Collection[str] | None = None) -> Explanation:
        """Say why a text has its labels, or these labels: shares, and words with their places.

        Places are given where the text is one string.
        """
        check_is_fitted(self, "model_")
        counts, terms = self.analyzer_.count([text], self.fields)
        x = self.vocabulary_.select(counts, terms)
        if labels is None:
            (labels,) = self._space.decode(self._choose(self.model_, x))
        labels = sorted(_names("labels", labels))
        if not labels:
            raise ValueError("labels is empty, needs at least one label to explain.")
        reasons = explain_counts(self.model_, self.vocabulary_.terms, x, labels)
        content = getattr(text, "content", text)
        spans = self.analyzer_.spans(content) if isinstance(content, str) else []
        unknown = [term for term in terms if term not in self.vocabulary_]
        return Explanation(reasons, places_of(reasons, spans), unknown)

    def label_terms(self, k: int = 10, labels: Collection[str] | None = None) -> list[dict]:
        """Return the labels with their documents, parent and ``k`` most characteristic terms.

        Terms are ranked by their probability in the label times the logarithm of their lift,
        how much likelier they are in the label than in the corpus.
        """
        space = self._space
        columns = [space.index(label) for label in (space if labels is None else labels)]
        return [self._label_terms(column, k) for column in columns]

    def _label_terms(self, column, k):
        label = str(self.classes_[column])
        proba = self.model_.word_proba_[column]
        lift = np.log(proba) - self.model_.world_log_proba_
        terms = self.vocabulary_.terms
        return {
            "label": label,
            "name": self.tree.names.get(label, label) if self.tree else label,
            "parent": self.tree.parent(label) if self.tree and label in self.tree else None,
            "documents": int(self.model_.label_docs_[column]),
            "words": [
                {"term": terms[w], "probability": float(proba[w]), "lift": float(np.exp(lift[w]))}
                for w in np.argsort(-proba * lift, kind="stable")[:k]
            ],
        }

    def _choose(self, model, X):
        if self.rule is None:
            return model.choose(X)
        return apply_rule(model, self.rule, X, model.fallback)

    @property
    def _space(self):
        return LabelSpace(self.classes_.tolist())

    def _allowed(self, include, exclude):
        space = self._space
        allowed = np.full(len(space), include is None)
        allowed[[space.index(label) for label in _names("include", include or ())]] = True
        allowed[[space.index(label) for label in _names("exclude", exclude or ())]] = False
        if not allowed.any():
            raise ValueError("include and exclude leave no label.")
        return allowed

    # Files

    def save(self, path: str | Path, *, counts: bool = True) -> None:
        """Write the model to one file; without ``counts`` it is smaller and cannot learn."""
        from polytopic.labeler.files import save  # here: files know labelers

        check_is_fitted(self, "model_")
        save(self, path, counts=counts)


def _ranked(labels, chosen, scores, proba, k) -> list[Suggestion]:
    """Return one text's suggestions: predicted labels first, then by score."""
    order = np.lexsort((-scores, ~chosen))[: max(k, chosen.sum())]
    columns = [c for c in order.tolist() if scores[c] > -np.inf]
    rows = zip(columns, scores[columns].tolist(), proba[columns].tolist(), strict=True)
    return [Suggestion(labels[c], s, p, bool(chosen[c])) for c, s, p in rows]


def vocabulary_view(counts: LabelSetCounts, vocabulary: Vocabulary) -> LabelSetCounts:
    """Return the table of a vocabulary's terms, which are all in the larger one."""
    kept = np.flatnonzero(vocabulary.columns(counts.terms) >= 0)
    return counts.select(kept, vocabulary.terms)


def _names(what: str, labels) -> set[str]:
    """Return label names, which must not be one string."""
    if isinstance(labels, str):
        raise ValueError(f"{what} == {labels!r} is one string, must be a list of labels.")
    return set(labels)


def _check_iterable(texts):
    if isinstance(texts, str | bytes | Mapping | Document) or hasattr(texts, "columns"):
        raise ValueError(f"texts is one {type(texts).__name__}, must be a list of texts.")
    return texts


def _read_labels(labels, n_texts: int) -> Targets:
    """Return the labels of texts, which must be names."""
    targets = read_targets(labels)
    if not all(isinstance(label, str) for label in targets.labels):
        raise ValueError("labels must be names: one collection of strings a text, or one string.")
    if targets.Y.shape[0] != n_texts:
        raise ValueError(
            f"there are {n_texts} texts and labels for {targets.Y.shape[0]}; they must be as many."
        )
    return targets
