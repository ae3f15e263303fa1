"""Labeler: from texts to labels, as one estimator."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.corpus.document import Document
from polytopic.decision.estimator import apply_rule
from polytopic.explain import Explanation
from polytopic.labeler.answers import Suggestion, explain_labels, label_terms, ranked
from polytopic.labeler.learning import Sample, count_texts, new_model, vocabulary_view
from polytopic.labeler.reading import (
    LabelLists,
    allowed_labels,
    check_iterable,
    read_labels,
    read_names,
)
from polytopic.labeler.suspects import Suspects, find_suspects
from polytopic.labels import LabelSpace
from polytopic.metrics import labeling_f
from polytopic.models.checks import require_counts
from polytopic.models.leave_one_out import TUNING_DOCS
from polytopic.text import Analyzer, Vocabulary, least_documents


class Labeler(BaseEstimator):
    """Labels texts, says why, learns and forgets.

    A text is a string, a mapping from fields (title, body) to strings, a bag of words (a mapping
    from terms to counts), or a :class:`~polytopic.Document`.

    Parameters
    ----------
    model : {"pmm1", "pmm2", "pdmm", "nb"} or count model, default="pmm1"
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
        sample = Sample(TUNING_DOCS if self._new_model().needs_documents else 0)
        return self._refit(self._count(texts, labels, analyzer, sample), analyzer, sample=sample)

    def learn(self, texts, labels=None):
        """Learn more texts, exactly as if all had been given to ``fit``; new labels may come."""
        check_is_fitted(self, "model_")
        new = self._count(texts, labels, self.analyzer_)
        counts = require_counts(self.counts_) + new
        return self._refit(counts, self.analyzer_, chosen=self.model_.chosen_)

    def forget(self, texts, labels=None):
        """Unlearn texts with the labels they were learned with, without a trace."""
        check_is_fitted(self, "model_")
        left = require_counts(self.counts_) - self._count(texts, labels, self.analyzer_)
        if not left.set_docs.size:
            raise ValueError("no document would be left to learn from; nothing was forgotten.")
        return self._refit(left, self.analyzer_, chosen=self.model_.chosen_)

    def _count(self, texts, labels, analyzer, sample=None):
        return count_texts(texts, labels, analyzer, self.fields, sample)

    def _refit(self, counts, analyzer, *, chosen=None, sample=None):
        min_df = least_documents(self.min_df, counts.n_docs)
        vocabulary = Vocabulary.from_frequencies(
            counts.terms, counts.document_frequency, min_df=min_df, max_size=self.max_terms
        )
        if counts.set_docs.size and not len(vocabulary):
            raise ValueError(
                f"no term is in min_df == {min_df} of the {counts.n_docs} labelled documents."
            )
        documents = None
        if sample is not None and sample.texts:
            X = vocabulary.select(*analyzer.count(sample.texts, self.fields))
            documents = X, sample.labels
        self.model_ = self._new_model().fit_counts(
            vocabulary_view(counts, vocabulary), documents=documents, chosen=chosen
        )
        self.analyzer_, self.vocabulary_, self.counts_ = analyzer, vocabulary, counts
        self.training_ = {
            "documents": counts.n_docs,
            "label_sets": int(counts.set_docs.size),
            "terms": len(counts.terms),
        }
        return self

    def _new_model(self):
        return new_model(self.model, self.rule)

    # Answers

    @property
    def classes_(self):
        """Label ids in sorted order."""
        check_is_fitted(self, "model_")
        return self.model_.classes_

    def transform(self, texts) -> sparse.csr_matrix:
        """Return the counts of known terms that the model sees."""
        check_is_fitted(self, "model_")
        counts, terms = self.analyzer_.count(check_iterable(texts), self.fields)
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
        texts = list(check_iterable(texts))
        targets = read_labels(labels, len(texts))
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
            model = model.restricted(allowed_labels(self._space, include, exclude))
        Y, scores, proba = model.assess(X)
        if self.rule is not None:
            Y = self._choose(model, X)
        labels = self._space.ids
        rows = zip(Y.toarray() > 0, scores, proba, strict=True)
        return [ranked(labels, *row, k) for row in rows]

    def explain(
        self,
        text,
        labels: Collection[str] | None = None,
        *,
        why_not: str | Collection[str] | None = None,
    ) -> Explanation:
        """Say why a text has its labels.

        Parameters
        ----------
        text : text
            What to explain; places are given where it is a string or has fields.
        labels : collection of str, default=None
            The labels to explain; the predicted ones by default.
        why_not : str or collection of str, default=None
            Labels to say of why the text does not have them.
        """
        check_is_fitted(self, "model_")
        asked = [why_not] if isinstance(why_not, str) else why_not or ()
        columns = {label: self._space.index(label) for label in asked}
        given = None if labels is None else self._space.encode([read_names("labels", labels)])
        return explain_labels(self, text, given, columns)

    def audit(self, texts, labels=None, *, k: int = 20) -> Suspects:
        """Find the learned texts whose own labels suit them least, most suspicious first.

        Each text is judged as if it had not been learned itself; nothing is learned or changed.

        Parameters
        ----------
        texts : iterable of texts
            Texts that were learned.
        labels : collections of names, default=None
            The labels they were learned with; may be left out if all texts are documents that
            carry their own.
        k : int, default=20
            Texts to give at most.

        Notes
        -----
        A text's counts are taken out of the table; words that several labels share stay shared
        as they are, and the vocabulary and the temperature are kept. The model's own scores
        decide, not the ``rule``: the log joint of label sets, or for naive Bayes the log
        likelihood of the best label.
        """
        check_is_fitted(self, "model_")
        check_scalar(k, "k", Integral, min_val=1)
        texts = list(check_iterable(texts))
        if labels is None:
            if not all(isinstance(text, Document) for text in texts):
                raise ValueError("labels are needed, unless all texts are documents.")
            labels = [text.labels for text in texts]
        Y = read_labels(labels, len(texts)).over(self.classes_.tolist())
        ids = [getattr(text, "id", None) for text in texts]
        return find_suspects(self.model_, self.vocabulary_.terms, ids, self.transform(texts), Y, k)

    def label_terms(self, k: int = 10, labels: Collection[str] | None = None) -> list[dict]:
        """Return the labels with their documents, parent and ``k`` most characteristic terms.

        Terms are ranked by their probability in the label times the logarithm of their lift,
        how much likelier they are in the label than in the corpus.
        """
        space, terms = self._space, self.vocabulary_.terms
        columns = [space.index(label) for label in (space if labels is None else labels)]
        return [label_terms(self.model_, terms, self.tree, column, k) for column in columns]

    def _choose(self, model, X):
        if self.rule is None:
            return model.choose(X)
        return apply_rule(model, self.rule, X, model.fallback)

    @property
    def _space(self):
        return LabelSpace(self.classes_.tolist())

    # Files

    def save(self, path: str | Path, *, counts: bool = True) -> None:
        """Write the model to one file; without ``counts`` it is smaller and cannot learn."""
        from polytopic.labeler.files import save  # here: files know labelers

        check_is_fitted(self, "model_")
        save(self, path, counts=counts)
