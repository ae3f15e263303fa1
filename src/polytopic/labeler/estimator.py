"""Labeler: from texts to labels, as one estimator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Integral
from operator import add, sub
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.corpus.document import Document
from polytopic.counts import LabelSetCounts
from polytopic.decision.estimator import apply_rule
from polytopic.explain import Explanation, LabelMap
from polytopic.explain.correlations import Neighbours
from polytopic.labeler.answers import (
    NO_KNOWN_WORD,
    Answer,
    certainty,
    check_abstention,
    explain_labels,
    label_name,
    label_neighbours,
    label_terms,
    map_labels,
    rank_suggestions,
)
from polytopic.labeler.audit import Suspects, find_suspects
from polytopic.labeler.learning import (
    LabelLists,
    LabelReader,
    Sample,
    allowed_labels,
    check_iterable,
    check_warm_start,
    choose_vocabulary,
    collect_rows,
    count_texts,
    new_model,
    read_names,
    require_documents,
    require_some,
    vocabulary_view,
)
from polytopic.labeler.rows import DocumentRows
from polytopic.labeler.state import FittedFrom, LabelerState
from polytopic.labels import LabelSpace, Level
from polytopic.metrics import samples_f1
from polytopic.models.checks import check_name, require_counts
from polytopic.models.mixture.tuning import TUNING_DOCS
from polytopic.models.registry import DEFAULT_COUNT_MODEL
from polytopic.text import Analyzer, Vocabulary
from polytopic.text.weights import SCHEMES, TermWeights


class Labeler(BaseEstimator):
    """Labels texts, says why, learns and forgets.

    A text is a string, a mapping from fields (title, body) to strings, a bag of words (a mapping
    from terms to counts), or a :class:`~polytopic.Document`.

    Parameters
    ----------
    model : {"mml", "pmm1", "pmm2", "pdmm", "nb", "col", "boostexter"} or model, default="mml"
        What scores the labels; an instance brings its own parameters. "mml" chooses its ``C`` and
        is calibrated, and "col" has three topics for each label.
    language : str or None, default="en"
        Language of the texts; None takes words as they are.
    analyzer : Analyzer, default=None
        What makes terms of texts, instead of the language's own.
    rule : rule of :mod:`polytopic.decision`, default=None
        Which labels are enough; the model's own way by default. It can be replaced after ``fit``.
        A :class:`~polytopic.decision.TreeCohort` without a tree takes the labeler's.
    min_df : int or "auto", default="auto"
        A term counts if at least this many documents have it; "auto" is 2 from 1000 documents
        on, else 1.
    max_terms : int, default=None
        The most frequent terms are kept, by documents.
    fields : mapping of str to float, default=None
        Weights of fields; 1 for those not named.
    tree : LabelTree, default=None
        The tree of labels, kept with the model. Labels may then be given by their ids, or by the
        names or notations that the tree has for them; answers have ids.
    weights : {"ltc", "tfidf", "tf", "binary"}, default="ltc"
        What terms weigh in MML, see :class:`~polytopic.text.weights.TermWeights`; the other
        models see counts.
    keep_documents : bool, default=True
        Whether to keep the rows of documents that such a model was fitted on, without which it
        cannot ``learn`` or ``forget``. The others need the table of counts alone.
    abstain : float, default=None
        A text gets no label where the probability that all its labels are right is lower.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order.
    model_ : model
        The fitted model.
    vocabulary_ : Vocabulary
        The terms the model sees, a view of ``counts_``.
    counts_ : LabelSetCounts or None
        All terms of all documents learned; None if loaded from a file without them.
    documents_ : DocumentRows or None
        The documents learned, if they are kept.
    weights_ : TermWeights or None
        What weighs the counts for a model that does not see them as they are.
    training_ : dict
        How many documents, label sets and terms were learned.
    state_ : LabelerState
        All of these together. It never changes: learning puts another in its place.

    Notes
    -----
    One thread may learn or forget while others predict, suggest or explain: each answer is
    entirely of the state before or of the state after, never of a mixture. Several threads must
    not learn at the same time, or what one of them learned is lost.

    Examples
    --------
    >>> texts = ["The striker scored a goal.", "The rover landed on Mars.", "A goal on Mars."]
    >>> labeler = Labeler()
    >>> labeler.fit(texts, [["sport"], ["space"], ["space", "sport"]]).predict(["A rover landed"])
    [['space']]
    >>> labeler.forget(["A goal on Mars."], [["space", "sport"]]).counts_.n_docs
    2
    """

    state_: LabelerState

    def __init__(
        self,
        model="mml",
        *,
        language="en",
        analyzer=None,
        rule=None,
        min_df="auto",
        max_terms=None,
        fields=None,
        tree=None,
        weights="ltc",
        keep_documents=True,
        abstain=None,
    ):
        self.model = model
        self.language = language
        self.analyzer = analyzer
        self.rule = rule
        self.min_df = min_df
        self.max_terms = max_terms
        self.fields = fields
        self.tree = tree
        self.weights = weights
        self.keep_documents = keep_documents
        self.abstain = abstain

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

        ``labels`` may be left out if all texts are documents that carry their own. With a
        ``tree``, a warning tells of labels that are not in it, and of names that were taken for
        ids.
        """
        analyzer = self._new_analyzer()
        model, reader = self._new_model(), LabelReader(self.tree)
        if model.learns_from == "documents":
            rows = collect_rows(texts, labels, analyzer, self.fields, reader=reader)
            self._refit_documents(rows, analyzer)
        else:
            sample = Sample(TUNING_DOCS if model.needs_documents else 0)
            counts = count_texts(texts, labels, analyzer, self.fields, sample, reader=reader)
            rows = None
            if sample.size:  # to choose by
                rows = collect_rows(sample.texts, sample.labels, analyzer, self.fields)
            self._refit_counts(counts, analyzer, sample=rows)
        reader.warn(self.classes_.tolist())
        return self

    def fit_counts(self, counts, *, sample=None, tuned=None, fitted_from=None):
        """Learn from a table of counts, with a count model.

        Parameters
        ----------
        counts : LabelSetCounts
            The table, of terms that this labeler's analyzer makes.
        sample : DocumentRows, default=None
            Some of its documents, to choose by what is not fixed.
        tuned : dict, default=None
            What an earlier fit chose (``model_.tuned_``), to be kept.
        fitted_from : FittedFrom, default=None
            Where the table comes from, if it is a store's.
        """
        if self._new_model().learns_from == "documents":
            raise ValueError(f"model == {self.model!r} learns from documents; use fit_rows.")
        return self._refit_counts(
            counts, self._new_analyzer(), tuned=tuned, sample=sample, fitted_from=fitted_from
        )

    def fit_rows(self, rows, *, tuned=None, fitted_from=None):
        """Learn from documents that are counted already, with a model of documents.

        Parameters
        ----------
        rows : DocumentRows
            The documents, of terms that this labeler's analyzer makes.
        tuned : dict, default=None
            What an earlier fit chose, to be kept.
        fitted_from : FittedFrom, default=None
            Where the documents come from, if they are a store's.
        """
        if self._new_model().learns_from == "counts":
            raise ValueError(f"model == {self.model!r} learns from counts; use fit_counts.")
        return self._refit_documents(
            rows, self._new_analyzer(), tuned=tuned, fitted_from=fitted_from
        )

    def learn(self, texts, labels=None, *, warm=False):
        """Learn more texts; new labels may come.

        Exactly as if all had been given to ``fit``, but for what was chosen then, which stays.

        Parameters
        ----------
        texts, labels
            As in :meth:`fit`.
        warm : bool, default=False
            Whether a model that is fitted on documents goes on from where it is: faster, and
            approximate.
        """
        return self._change(texts, labels, warm, add)

    def forget(self, texts, labels=None, *, warm=False):
        """Unlearn texts with the labels they were learned with, without a trace.

        Of several equal texts one goes.

        Parameters
        ----------
        texts, labels
            See :meth:`learn`.
        warm : bool, default=False
            See :meth:`learn`; if so, a trace may remain.
        """
        return self._change(texts, labels, warm, sub)

    def _change(self, texts, labels, warm, change):
        """Learn from what was learned and these texts, added or taken away."""
        state = self._fitted_state()
        analyzer, tuned, reader = state.analyzer, state.model.tuned_, self._reader(state)
        if state.model.learns_from == "documents":
            new = collect_rows(texts, labels, analyzer, self.fields, reader=reader)
            rows = change(require_documents(state), new)
            require_some(rows.X.shape[0])
            previous = check_warm_start(state.model) if warm else None
            return self._refit_documents(rows, analyzer, tuned=tuned, warm=previous)
        if warm:
            check_warm_start(state.model)
        counts = require_counts(state.counts)
        counts = change(counts, count_texts(texts, labels, analyzer, self.fields, reader=reader))
        require_some(counts.n_docs)
        return self._refit_counts(counts, analyzer, tuned=tuned)

    def _refit_counts(self, counts, analyzer, *, tuned=None, sample=None, fitted_from=None):
        vocabulary = self._vocabulary(counts)
        documents = None
        if sample is not None and sample.X.shape[0]:
            documents = vocabulary.select(sample.X, sample.terms), sample.targets
        view = vocabulary_view(counts, vocabulary)
        model = self._new_model().fit_counts(view, documents=documents, tuned=tuned)
        return self._take_over(model, analyzer, vocabulary, counts, fitted_from=fitted_from)

    def _refit_documents(self, rows, analyzer, *, tuned=None, warm=None, fitted_from=None):
        counts = rows.table()
        vocabulary = self._vocabulary(counts)
        model, weights = self._new_model(), None
        if model.reads == "weights":
            weights = self._term_weights(counts, vocabulary)

        def seen():
            X = vocabulary.select(rows.X, rows.terms)
            return X if weights is None else weights.transform(X, copy=False)

        if warm is None:  # what is seen is not held here, so that a model can let go of it
            model.fit(seen(), rows.targets, tuned=tuned)
        else:
            model.fit(seen(), rows.targets, tuned=tuned, warm=warm, rows=rows.before)
        kept = rows if self.keep_documents else None
        return self._take_over(model, analyzer, vocabulary, counts, kept, weights, fitted_from)

    def take_fitted(self, fit, counts):
        """Learn from documents that are elsewhere, with a model of documents.

        Parameters
        ----------
        fit : callable
            It is given an unfitted model, the vocabulary and the weights of its terms (None for
            counts), and fits the model.
        counts : LabelSetCounts
            The table of these documents, of terms that this labeler's analyzer makes.
        """
        vocabulary, model, weights = self._vocabulary(counts), self._new_model(), None
        if model.reads == "weights":
            weights = self._term_weights(counts, vocabulary)
        fit(model, vocabulary, weights)
        return self._take_over(model, self._new_analyzer(), vocabulary, counts, None, weights)

    def _term_weights(self, counts, vocabulary):
        frequency = vocabulary_view(counts, vocabulary).document_frequency
        return TermWeights(self.weights).fit_frequencies(frequency, counts.n_docs)

    def take_counts(self, counts):
        """Take the table of what was learned, which a file without counts has left out."""
        self.state_ = self._fitted_state().with_counts(counts)
        return self

    def _vocabulary(self, counts):
        return choose_vocabulary(counts, self.min_df, self.max_terms)

    def _take_over(
        self, model, analyzer, vocabulary, counts, documents=None, weights=None, fitted_from=None
    ):
        """Become what was learned, in one step, when nothing can fail any more."""
        if self.abstain is not None:
            check_abstention(self.abstain, self.rule, model)
        training = {
            "documents": counts.n_docs,
            "label_sets": int(counts.set_docs.size),
            "terms": len(counts.terms),
        }
        self.state_ = LabelerState(
            model, analyzer, vocabulary, counts, documents, weights, training, fitted_from
        )
        return self

    def _new_analyzer(self):
        return Analyzer(self.language) if self.analyzer is None else clone(self.analyzer)

    def _new_model(self):
        check_name(self.weights, "weights", SCHEMES)
        model = new_model(self.model, self.rule, self.tree)
        if self.abstain is not None:
            check_abstention(self.abstain, self.rule, model)
        return model

    # What was learned

    def _fitted_state(self) -> LabelerState:
        """Return what was learned. Each answer takes it once, and uses nothing else."""
        if "state_" not in vars(self):  # which check_is_fitted takes long to find
            check_is_fitted(self, "state_")
        return self.state_

    @property
    def classes_(self) -> np.ndarray:
        """Label ids in sorted order."""
        return self._fitted_state().model.classes_

    @property
    def model_(self) -> Any:
        """The fitted model."""
        return self._fitted_state().model

    @property
    def analyzer_(self) -> Analyzer:
        """What makes terms of texts."""
        return self._fitted_state().analyzer

    @property
    def vocabulary_(self) -> Vocabulary:
        """The terms that the model sees."""
        return self._fitted_state().vocabulary

    @property
    def counts_(self) -> LabelSetCounts | None:
        """All terms of all documents learned; None if loaded from a file without them."""
        return self._fitted_state().counts

    @property
    def documents_(self) -> DocumentRows | None:
        """The documents learned, if they are kept."""
        return self._fitted_state().documents

    @property
    def weights_(self) -> TermWeights | None:
        """What weighs the counts for a model that does not see them as they are."""
        return self._fitted_state().weights

    @property
    def training_(self) -> Mapping[str, Any]:
        """How many documents, label sets and terms were learned."""
        return self._fitted_state().training

    @property
    def fitted_from_(self) -> FittedFrom | None:
        """The documents of a store that it was fitted on, None if they come from elsewhere."""
        return self._fitted_state().fitted_from

    # Answers

    def transform(self, texts) -> sparse.csr_matrix:
        """Return what the model sees: the known terms' counts, or their weights."""
        return self._fitted_state().transform(texts, self.fields)

    def predict(self, texts, *, level: int | None = None) -> list[list[str]]:
        """Return the labels of each text; one without a known word gets the commonest set.

        A text gets no label where the labeler abstains.

        Parameters
        ----------
        texts : iterable of texts
            What to label.
        level : int, default=None
            Give the labels' ancestors at this level of the tree instead, 0 being the roots. A
            label that lies no deeper stands for itself.
        """
        return self._predict(self._fitted_state(), texts, level)

    def _predict(self, state, texts, level=None):
        space, above = state.space, None if level is None else self._level(state, level)
        if above is not None:
            space = LabelSpace(above.labels)
        answers = LabelLists()
        for X in state.transform_by_blocks(texts, self.fields):
            Y = self._choose(state.model, X)
            rows = space.decode(Y if above is None else above.sets(Y))
            if self.abstain is not None:
                sure = self._is_sure(state.model, X).tolist()
                rows = [row if ok else [] for row, ok in zip(rows, sure, strict=True)]
            answers += rows
        return answers

    def predict_proba(self, texts) -> np.ndarray:
        """Return the model's probability of each label."""
        state = self._fitted_state()
        return state.model.predict_proba(state.transform(texts, self.fields))

    def certainty(self, texts) -> np.ndarray:
        """Return how probable it is that all labels of each text are right.

        That of the label set by a mixture, or calibrated by MML; where the model does not tell
        (naive Bayes), or a ``rule`` chooses, as if labels were independent.
        """
        state = self._fitted_state()
        X = state.transform(texts, self.fields)
        return certainty(state.model, X, own_sets=self.rule is None) if X.shape[0] else np.empty(0)

    def decision_function(self, texts) -> np.ndarray:
        """Return the model's score of each label."""
        state = self._fitted_state()
        return state.model.decision_function(state.transform(texts, self.fields))

    def score(self, texts, labels) -> float:
        """Return the samples F1."""
        texts = list(check_iterable(texts))
        state = self._fitted_state()
        targets = self._reader(state).read(labels, len(texts))
        true = LabelSpace(targets.labels).decode(targets.Y)
        return samples_f1(true, self._predict(state, texts))

    def suggest(
        self,
        texts,
        k: int = 5,
        *,
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        level: int | None = None,
    ) -> list[Answer]:
        """Return the ``k`` best labels of each text, best first, and all that are predicted.

        None of them is chosen where the labeler abstains.

        Parameters
        ----------
        texts : iterable of texts
            What to label.
        k : int, default=5
            Labels to give for each text.
        include, exclude : collection of str, default=None
            The only labels allowed, and labels not allowed; each stands for those below it in the
            tree, too.
        level : int, default=None
            Roll the labels up to their ancestors at this level of the tree, 0 being the roots: a
            label is chosen if one below it is, its score is the best one's, and its probability
            that of any label below being right, were they independent
            (:class:`~polytopic.labels.Level`).
        """
        state = self._fitted_state()
        model, labels = state.model, state.space.ids
        if include is not None or exclude:
            allowed = allowed_labels(state.space, self._reader(state), include, exclude)
            model = model.restrict_to(allowed)
        above = None if level is None else self._level(state, level)
        answers = []
        for X in state.transform_by_blocks(texts, self.fields):
            Y, scores, proba = model.assess(X, range(len(labels)))
            if self.rule is not None:
                Y = self._choose(model, X)
            if above is not None:
                Y, scores, proba = above.sets(Y), above.scores(scores), above.proba(proba)
            sure = self._is_sure(model, X)
            ranked = rank_suggestions(
                labels if above is None else above.labels,
                (Y.toarray() > 0) & sure[:, None],
                scores,
                proba,
                k,
            )
            known = X.getnnz(axis=1) > 0
            answers += [
                Answer(suggestions, not is_sure, None if has_words else NO_KNOWN_WORD)
                for suggestions, is_sure, has_words in zip(
                    ranked, sure.tolist(), known.tolist(), strict=True
                )
            ]
        return answers

    def explain(
        self,
        text,
        labels: Collection[str] | None = None,
        *,
        why_not: str | Collection[str] | None = None,
        shares: bool = False,
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
        shares : bool, default=False
            Whether a mixture model (PMM1) that is fitted beside the model, on first use, says
            how much of the text and of each word belongs to each label. Otherwise the model
            does: a mixture just so, MML by how much each word adds to the score of each label.
        """
        state = self._fitted_state()
        space, resolve = state.space, self._reader(state).resolve
        asked = [why_not] if isinstance(why_not, str) else why_not or ()
        columns = {label: space.index(label) for label in map(resolve, asked)}
        given = None
        if labels is not None:
            given = space.encode([{resolve(label) for label in read_names("labels", labels)}])
        choose = None if self.rule is None else self._choose
        sharer = state.mixture if shares else None
        return explain_labels(state, text, self.fields, given, columns, choose, sharer)

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
        state = self._fitted_state()
        check_scalar(k, "k", Integral, min_val=1)
        if not state.model.can_audit:
            raise ValueError(
                f"audit works with count models only; {type(state.model).__name__} is not one. "
                f"Use model={DEFAULT_COUNT_MODEL!r} (--model {DEFAULT_COUNT_MODEL})."
            )
        texts = list(check_iterable(texts))
        if labels is None:
            if not all(isinstance(text, Document) for text in texts):
                raise ValueError("labels are needed, unless all texts are documents.")
            labels = [text.labels for text in texts]
        Y = self._reader(state).read(labels, len(texts)).over(list(state.space))
        ids = [getattr(text, "id", None) for text in texts]
        X = state.transform(texts, self.fields)
        return find_suspects(state.model, state.vocabulary.terms, ids, X, Y, k)

    def label_terms(self, k: int = 10, labels: Collection[str] | None = None) -> list[dict]:
        """Return the labels with their documents, parent and ``k`` most characteristic terms.

        Terms are ranked by their probability in the label times the logarithm of their lift,
        how much likelier they are in the label than in the corpus; by MML by their weight for
        the label.

        Parameters
        ----------
        k : int, default=10
            Terms of a label.
        labels : collection of str, default=None
            The labels, by ids or names; None for all.
        """
        state = self._fitted_state()
        asked = state.space if labels is None else map(self._reader(state).resolve, labels)
        columns = [state.space.index(label) for label in asked]
        return [label_terms(state, self.tree, column, k) for column in columns]

    def neighbours(self, label: str, n_pairs: int = 100, n_alike: int = 5) -> Neighbours:
        """Return the labels that a label is given with, and those with similar words.

        Takes time and memory in proportion to the counts, however many labels there are.

        Parameters
        ----------
        label : str
            The label, by its id or a name.
        n_pairs : int, default=100
            Labels that it is given with, of positive and of negative correlation each.
        n_alike : int, default=5
            Labels whose documents have similar words.
        """
        state = self._fitted_state()
        column = state.space.index(self._reader(state).resolve(label))
        return label_neighbours(state, column, n_pairs, n_alike)

    def map(self, n_pairs: int = 20, n_terms: int = 10, n_labels: int = 1000) -> LabelMap:
        """Draw the map of labels: which go together, and whose words are alike.

        Words are those that the model has for each label; where it has none (MML), those of a
        mixture model (PMM1) that is fitted beside it, on first use. Correlations are of the
        labels of the documents learned, or those that the model has.

        Parameters
        ----------
        n_pairs : int, default=20
            Pairs of labels to give, of positive and of negative correlation each.
        n_terms : int, default=10
            Terms to give for each label.
        n_labels : int, default=1000
            Labels on the map, the most frequent ones; time and memory grow with its square.
        """
        return map_labels(self._fitted_state(), self.tree, n_pairs, n_terms, n_labels)

    def name(self, label: str, language: str | None = None) -> str:
        """Return the name of a label that people are shown, the label itself if it has none.

        The tree has the names. The language is by default that of the texts; where there is no
        name in it, one in another language is taken, see :meth:`polytopic.LabelTree.name`.
        """
        return label_name(self._fitted_state(), self.tree, label, language)

    def resolve(self, label: str) -> str:
        """Return the id of a label that is given by its id, or by a name that the tree knows.

        What is not known, or stands for several labels, is returned as it is.
        """
        return self._reader(self._fitted_state()).resolve(label)

    def _reader(self, state):
        return LabelReader(self.tree, state.model.classes_)

    def _level(self, state, level):
        if self.tree is None:
            raise ValueError(
                f"level == {level} needs a tree of labels, which this model was learned without; "
                "give it one (tree=, --tree)."
            )
        return Level(list(state.space), self.tree, level)

    def _choose(self, model, X):
        if self.rule is None:
            return model.predict_indicator(X)
        return apply_rule(model, self.rule, X, model.fallback, tree=self.tree)

    def _is_sure(self, model, X):
        """Return for each document whether it is to get labels at all."""
        if self.abstain is None:
            return np.ones(X.shape[0], dtype=bool)
        check_abstention(self.abstain, self.rule, model)
        return model.set_probability(X) >= self.abstain

    # Files

    def save(self, path: str | Path, *, counts: bool = True) -> None:
        """Write the model to one file.

        Parameters
        ----------
        path : str or Path
            The file.
        counts : bool, default=True
            Whether to write the counts, too; without them it is smaller and cannot learn.
        """
        from polytopic.labeler.files import save  # here: files know labelers

        check_is_fitted(self, "state_")
        save(self, path, counts=counts)
