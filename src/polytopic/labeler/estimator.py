"""Labeler: from texts to labels, as one estimator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b
from heapq import heappush, heappushpop
from itertools import count, islice
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.corpus.document import Document
from polytopic.counts import LabelSetCounts
from polytopic.decision.estimator import apply_rule
from polytopic.explain import Explanation
from polytopic.explain.reasons import Reasons
from polytopic.labeler.suspects import Suspects, find_suspects
from polytopic.labels import LabelSpace, Targets, read_targets
from polytopic.metrics import labeling_f
from polytopic.models import MODELS, CountModel
from polytopic.models.base import require_counts
from polytopic.models.leave_one_out import TUNING_DOCS
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


class Sample:
    """Some of the labelled texts that pass by, picked by their contents, not by their order."""

    def __init__(self, size: int):
        self.size = size
        self._kept: list[tuple] = []  # a heap: the largest mark first
        self._place = count()  # so that texts are never compared

    def add(self, texts, labels) -> None:
        """Keep those with the smallest marks."""
        if not self.size:
            return
        for text, names in zip(texts, labels, strict=True):
            if names:
                content = repr(getattr(text, "content", text)).encode("utf-8", "backslashreplace")
                mark = int.from_bytes(blake2b(content, digest_size=8).digest(), "big")
                entry = (-mark, sorted(names), next(self._place), text)
                if len(self._kept) < self.size:
                    heappush(self._kept, entry)
                else:
                    heappushpop(self._kept, entry)

    @property
    def texts(self) -> list:
        """The texts that were kept."""
        return [text for *_, text in self._kept]

    @property
    def labels(self) -> list:
        """Their labels."""
        return [names for _, names, *_ in self._kept]


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
        """Count texts, or documents from any iterator block by block; keep a sample of them."""
        sample = Sample(0) if sample is None else sample
        if labels is not None:
            texts = list(_check_iterable(texts))
            targets = _read_labels(labels, len(texts))
            sample.add(texts, LabelSpace(targets.labels).decode(targets.Y))
            return self._count_block(texts, targets, analyzer)
        counts, documents = LabelSetCounts(), iter(_check_iterable(texts))
        while block := list(islice(documents, BLOCK)):
            if not all(isinstance(document, Document) for document in block):
                raise ValueError("requires labels to be passed, but the target y is None.")
            targets = read_targets([document.labels for document in block])
            sample.add(block, [document.labels for document in block])
            counts += self._count_block(block, targets, analyzer)
        return counts

    def _count_block(self, texts, targets, analyzer):
        X, terms = analyzer.count(texts, self.fields)
        return LabelSetCounts.from_matrix(X, targets, terms=terms)

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
        model, space = self.model_, self._space
        asked = [why_not] if isinstance(why_not, str) else list(dict.fromkeys(why_not or ()))
        columns = [space.index(label) for label in asked]
        given = None if labels is None else space.encode([_names("labels", labels)])
        counts, terms = self.analyzer_.count([text], self.fields)
        x = self.vocabulary_.select(counts, terms)
        y, scores, proba = model.assess(x)
        if given is not None:
            y = given
        elif self.rule is not None:
            y = self._choose(model, x)
        if not y.nnz:
            raise ValueError("labels is empty, needs at least one label to explain.")
        for label, column in zip(asked, columns, strict=True):
            if column in y.indices:
                raise ValueError(f"why_not == {label!r} is one of the labels that are explained.")
        reasons = Reasons(model, self.vocabulary_.terms, x, y)
        return Explanation(
            labels=reasons.of_labels(scores[0], proba[0]),
            keywords=reasons.keywords(),
            ledger=reasons.ledger(),
            why_not=reasons.why_not(columns),
            unknown=[term for term in terms if term not in self.vocabulary_],
            find_places=reasons.place_finder(self.analyzer_, text, self.fields or {}),
        )

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
        texts = list(_check_iterable(texts))
        if labels is None:
            if not all(isinstance(text, Document) for text in texts):
                raise ValueError("labels are needed, unless all texts are documents.")
            labels = [text.labels for text in texts]
        Y = _read_labels(labels, len(texts)).over(self.classes_.tolist())
        ids = [getattr(text, "id", None) for text in texts]
        return find_suspects(self.model_, self.vocabulary_.terms, ids, self.transform(texts), Y, k)

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
