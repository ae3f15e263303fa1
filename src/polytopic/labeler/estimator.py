"""Labeler: analysis, model and decision as one estimator on texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from numbers import Integral
from operator import add, sub
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from polytopic.corpus.document import Document
from polytopic.counts import DocumentRows, LabelSetCounts
from polytopic.explain import Explanation, Keyword, LabelMap
from polytopic.explain.correlations import Neighbours
from polytopic.labeler.answers import (
    Answer,
    certainty,
    choose_labels,
    deciding_rule,
    explain_labels,
    is_sure,
    label_name,
    label_neighbours,
    label_terms,
    map_labels,
    mixture_row,
    rank_candidates,
    rank_suggestions,
    read_mixture,
)
from polytopic.labeler.audit import Suspects, find_suspects
from polytopic.labeler.features import FeatureBlock
from polytopic.labeler.known_words import find_warning, shrink_labels, shrink_sets
from polytopic.labeler.learning import change_texts, learn_texts
from polytopic.labeler.reading import (
    LabelLists,
    LabelReader,
    allowed_labels,
    check_iterable,
    read_names,
)
from polytopic.labeler.state import LabelerState
from polytopic.labels import LabelSpace, Level
from polytopic.metrics import samples_f1
from polytopic.text import Analyzer, Vocabulary
from polytopic.text.weights import TermWeights


class Labeler(BaseEstimator):
    """Label texts, explain the labels, learn and forget.

    A text is a string, a mapping from fields (title, body) to strings, a bag of words (a mapping
    from terms to counts), or a :class:`~polytopic.Document`.

    Parameters
    ----------
    model : str, model or classifier, default=None
        The model that scores labels: an instance with its own parameters, or a name such as "mml"
        or "pmm1"; :func:`polytopic.models.registry.model_names` lists them. By name, MML tunes
        ``C`` and is calibrated. A classifier of scikit-learn is fitted on weighted words
        (:class:`~polytopic.models.classifier.ClassifierModel`). By default, the model that
        ``quality`` stands for.
    quality : {"fast", "balanced", "best"}, default=None
        How much time to spend for better labels, instead of a ``model``: "fast" is MML, "balanced"
        (the default) combines MML, a linear SVM and nearest neighbours, and "best" also a random
        forest (:class:`~polytopic.models.Stack`). From 1000 labels on, all of them are
        :class:`~polytopic.models.CandidateStack`, where everything is sparse; "fast" does without
        its linear machines.
    language : str or None, default="en"
        Language of the texts; None does not normalize words.
    analyzer : Analyzer, default=None
        Splits texts into terms, instead of the default for the language. From 1000 labels on, the
        default counts the words of titles four times, if nearly all texts have a short first line.
    rule : rule of :mod:`polytopic.decision`, default=None
        Decides which labels to predict by their scores; by default the model decides. It can be
        replaced after ``fit``. A :class:`~polytopic.decision.TreeCohort` without a tree uses that
        of the labeler.
    min_df : int or "auto", default="auto"
        Terms that occur in fewer documents are ignored. "auto" is 2 for 1000 documents or more, and
        1 for fewer.
    max_terms : int, default=None
        Maximum number of terms: those that occur in the most documents are kept.
    fields : mapping of str to float, default=None
        Weights of fields; the default weight is 1.
    tree : LabelTree, default=None
        The tree of labels, which is saved with the model. Labels may then be given by id, name or
        notation; answers have ids.
    weights : {"ltc", "tfidf", "tf", "binary"}, default="ltc"
        Weights of terms for models that read weights (MML), see
        :class:`~polytopic.text.weights.TermWeights`.
    keep_documents : bool, default=True
        Whether to keep the documents that a document model was fitted on, without which it cannot
        ``learn`` or ``forget``. Count models (mixtures, naive Bayes) need the counts alone.
    abstain : float, default=None
        Predict no label for texts whose label set is less probable than this.
    features : list, default=None
        What the model reads beside the words, for models that read weights. Each is a scikit-learn
        transformer of texts, such as :class:`~polytopic.text.CharacterNGrams`,
        :class:`~polytopic.text.WordNGrams` or :class:`~polytopic.text.Embeddings`, a function
        from texts to rows of numbers, or a pair of a name and one of these. How much each weighs
        is chosen on held-out documents. To ``learn`` and ``forget``, such a labeler keeps the texts
        (``keep_documents``), but files do not hold them.
    guarantee : mapping, default=None
        ``{"recall": 0.9}`` promises that texts like the learned ones get, on average, about 90% of
        their labels. ``fit`` chooses the lowest score of predicted labels on held-out documents.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order.
    model_ : model
        The fitted model.
    vocabulary_ : Vocabulary
        The terms that the model uses, a view of ``counts_``.
    counts_ : LabelSetCounts or None
        All terms of all documents learned; None if loaded from a file without them.
    documents_ : DocumentRows or None
        The documents learned, if they are kept.
    weights_ : TermWeights or None
        The weights of terms, for a model that reads weights.
    features_ : tuple of FeatureBlock
        The fitted features: their names, sources, dimensions and weights.
    training_ : dict
        The numbers of documents, label sets and terms, and ``known``, the share of the words of a
        learned document that the others teach.
    state_ : LabelerState
        All of the above in one immutable object, which learning replaces.

    Notes
    -----
    One thread may learn or forget while others predict, suggest or explain: each answer comes from
    the state before or the state after, never from a mixture of both. Do not learn in several
    threads at once, or what one of them learned is lost.

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
        model=None,
        *,
        quality=None,
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
        features=None,
        guarantee=None,
    ):
        self.model = model
        self.quality = quality
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
        self.features = features
        self.guarantee = guarantee

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags

    # Learning

    def fit(self, texts, labels=None):
        """Learn from texts and their labels.

        Parameters
        ----------
        texts : iterable of texts
            The texts.
        labels : iterable of collections of str, default=None
            The labels of each text. Leave them out if the texts are documents with labels.

        Warns
        -----
        LabelWarning
            If a label is not in the ``tree``, or is a name that was replaced by its id.
        """
        reader = LabelReader(self.tree)
        self.set_state(learn_texts(self, texts, labels, reader))
        reader.warn(self.classes_.tolist())
        return self

    def learn(self, texts, labels=None, *, warm=False):
        """Learn more texts, which may have new labels.

        The result is exactly that of ``fit`` on all texts, with the parameters that were tuned
        before.

        Parameters
        ----------
        texts, labels
            As in :meth:`fit`.
        warm : bool, default=False
            Whether to start from the present weights (MML), which is faster and approximate.
        """
        return self._change(texts, labels, warm, add)

    def forget(self, texts, labels=None, *, warm=False):
        """Unlearn texts, exactly: the result is that of ``fit`` without them.

        Give each text with the labels that it was learned with. Of several equal texts, one is
        removed.

        Parameters
        ----------
        texts, labels
            See :meth:`learn`.
        warm : bool, default=False
            See :meth:`learn`; traces of the texts may then remain.
        """
        return self._change(texts, labels, warm, sub)

    def _change(self, texts, labels, warm, change):
        state = self._fitted_state()
        reader = self._reader(state)
        return self.set_state(
            change_texts(self, state, texts, labels, change, reader=reader, warm=warm)
        )

    def set_state(self, state: LabelerState) -> Labeler:
        """Replace what was learned, and return the labeler.

        The store, Dask and model files use this; other users need :meth:`fit`.
        """
        self.state_ = state
        return self

    # What was learned

    def _fitted_state(self) -> LabelerState:
        """Return the state. Each answer reads it once, and uses nothing else."""
        if "state_" not in vars(self):  # check_is_fitted is slow
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
        """Splits texts into terms."""
        return self._fitted_state().analyzer

    @property
    def vocabulary_(self) -> Vocabulary:
        """The terms that the model uses."""
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
        """The weights of terms, for a model that reads weights."""
        return self._fitted_state().weights

    @property
    def features_(self) -> tuple[FeatureBlock, ...]:
        """The fitted features; none if the model reads words alone."""
        features = self._fitted_state().features
        return () if features is None else features.blocks

    @property
    def training_(self) -> Mapping[str, Any]:
        """The numbers of documents, label sets and terms, and the usual share of known words."""
        return self._fitted_state().training

    # Answers

    def transform(self, texts) -> sparse.csr_matrix:
        """Return what the model reads of texts: counts of known terms, or weights and features."""
        return self._fitted_state().transform(texts, self.fields)

    def predict(self, texts, *, level: int | None = None) -> list[list[str]]:
        """Return the labels of each text.

        A text with no known words gets the most frequent label set, and a text for which the
        labeler abstains gets no label.

        Parameters
        ----------
        texts : iterable of texts
            The texts to label.
        level : int, default=None
            Return the labels' ancestors at this level of the tree, where 0 is the roots. Labels
            above it are returned unchanged.
        """
        return self._predict(self._fitted_state(), texts, level)

    def _predict(self, state, texts, level=None):
        space, above = state.space, None if level is None else self._level(state, level)
        if above is not None:
            space = LabelSpace(above.labels)
        answers = LabelLists()

        def decode(X):
            Y = choose_labels(self, state, state.model, X)
            return space.decode(Y if above is None else above.sets(Y))

        if self.abstain is None:
            for X in state.transform_by_blocks(texts, self.fields):
                answers += decode(X)
        else:
            for X, known, _ in state.transform_with_shares(texts, self.fields):
                sure = is_sure(self, state, state.model, X, known).tolist()
                answers += [row if ok else [] for row, ok in zip(decode(X), sure, strict=True)]
        return answers

    def predict_proba(self, texts):
        """Return the model's probability of each label, as an array.

        If the model knows few words of a text, its probabilities are drawn to the share of learned
        documents that have the label. With thousands of labels, the result is a CSR matrix of the
        candidates of each text.
        """
        state = self._fitted_state()
        X, known = state.transform_all_with_shares(texts, self.fields)
        return shrink_labels(state, state.model.predict_proba(X), known)

    def certainty(self, texts) -> np.ndarray:
        """Return the probability that all labels of each text are right.

        A model with a posterior over label sets (mixtures, calibrated MML) gives that of the
        predicted set. Otherwise, and with a ``rule``, labels are assumed to be independent. The
        probability is lower if the model knows few words of a text.
        """
        state = self._fitted_state()
        X, known = state.transform_all_with_shares(texts, self.fields)
        if not X.shape[0]:
            return np.empty(0)
        own_sets = deciding_rule(self, state) is None
        return shrink_sets(state, certainty(state.model, X, own_sets=own_sets), known)

    def decision_function(self, texts):
        """Return the model's score of each label, as an array.

        With thousands of labels, it is a CSR matrix of the candidates of each text; an absent label
        is not one of them.
        """
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
        """Return an answer per text: all predicted labels, then the best others, ``k`` in total.

        If the labeler abstains, no label is chosen.

        Parameters
        ----------
        texts : iterable of texts
            The texts to label.
        k : int, default=5
            Number of labels per text; more if more are predicted.
        include, exclude : collection of str, default=None
            The only labels allowed, and labels not allowed. Each includes the labels below it in
            the tree.
        level : int, default=None
            Roll labels up to their ancestors at this level of the tree, where 0 is the roots. An
            ancestor is chosen if a label below it is; it has the best of their scores, and the
            probability that any of them is right, if they are independent
            (:class:`~polytopic.labels.Level`).
        """
        state = self._fitted_state()
        model, labels = state.model, state.space.ids
        if include is not None or exclude:
            allowed = allowed_labels(state.space, self._reader(state), include, exclude)
            model = model.restrict_to(allowed)
        above = None if level is None else self._level(state, level)
        answers: list[Answer] = []
        for X, known, block in state.transform_with_shares(texts, self.fields):
            Y, scores, proba = model.assess(X, range(len(labels)))
            proba = shrink_labels(state, proba, known)
            if deciding_rule(self, state) is not None:
                Y = choose_labels(self, state, model, X)
            if above is not None:
                Y, scores, proba = above.sets(Y), above.scores(scores), above.proba(proba)
            sure = is_sure(self, state, model, X, known)
            shown = labels if above is None else above.labels
            if sparse.issparse(scores):
                Y = sparse.csr_matrix(sparse.diags_array(sure.astype(np.float64)) @ Y)
                ranked = rank_candidates(shown, Y, scores, proba, k)
            else:
                chosen = (Y.toarray() > 0) & sure[:, None]
                ranked = rank_suggestions(shown, chosen, scores, proba, k)
            answers += [
                Answer(suggestions, share, not ok, find_warning(state, text, share))
                for text, suggestions, share, ok in zip(
                    block, ranked, known.tolist(), sure.tolist(), strict=True
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
        mixture: Mapping[str, float] | Sequence[float] | None = None,
        order: str = "specific",
    ) -> Explanation:
        """Explain the labels of a text.

        Parameters
        ----------
        text : text
            The text. Places of words are available if it is a string or has fields.
        labels : collection of str, default=None
            The labels to explain; the predicted ones by default.
        why_not : str or collection of str, default=None
            Labels that the text does not have; the explanation says why not.
        shares : bool, default=False
            Whether an additional mixture model (PMM1), fitted on first use, determines the share
            of each label in the text and in each word. By default the model itself does; MML
            shares a word by what it adds to the score of each label.
        mixture : mapping of label to number, or sequence of numbers, default=None
            Shares of the labels in the text, in place of those that the model finds; a sequence has
            those of ``labels``, in the same order. They are normalized to sum to one. Without
            ``labels``, a mapping also names the labels to explain; labels that it lacks have a
            share of 0. Needs ``PDMM``, in which each text has a mixture of its own.
        order : {"specific", "paper"}, default="specific"
            Order of the keywords, see :meth:`keywords`.

        Examples
        --------
        >>> texts = ["goal match", "film actor", "a film about a football match"]
        >>> labeler = Labeler("pdmm").fit(texts, [["sport"], ["film"], ["film", "sport"]])
        >>> text = "a film about a goal in the match"
        >>> [(r.label, round(r.share, 2)) for r in labeler.explain(text, ["film", "sport"]).labels]
        [('sport', 0.61), ('film', 0.39)]
        >>> changed = labeler.explain(text, mixture={"film": 3, "sport": 1})
        >>> [(reason.label, reason.share) for reason in changed.labels]
        [('film', 0.75), ('sport', 0.25)]
        """
        state = self._fitted_state()
        space, resolve = state.space, self._reader(state).resolve
        why_not = [why_not] if isinstance(why_not, str) else why_not or ()
        columns = {label: space.index(label) for label in map(resolve, why_not)}
        names, row = None, None
        if labels is not None:
            names = [resolve(label) for label in read_names("labels", labels)]
        if mixture is not None:
            unordered = isinstance(labels, Set) and not isinstance(mixture, Mapping)
            by_label = read_mixture(mixture, None if unordered else names, resolve)
            names, row = names or list(by_label), mixture_row(state, by_label)
        explained = None if names is None else space.encode([set(names)])
        mixture_model = state.mixture if shares else None
        return explain_labels(
            self, state, text, explained, columns, mixture_model, mixture=row, order=order
        )

    def keywords(
        self,
        text,
        labels: Collection[str] | None = None,
        *,
        mixture: Mapping[str, float] | Sequence[float] | None = None,
        order: str = "specific",
    ) -> list[Keyword]:
        """Return the words of a text that distinguish its labels.

        They depend on the labels and, with ``PDMM``, on their mixture: ask for some of the labels,
        for others, or for other shares of them. These are the ``keywords`` of :meth:`explain`.

        Parameters
        ----------
        text : text
            The text.
        labels : collection of str, default=None
            Its labels; the predicted ones by default.
        mixture : mapping of label to number, or sequence of numbers, default=None
            Shares of the labels in the text, see :meth:`explain`.
        order : {"specific", "paper"}, default="specific"
            "specific": words with positive evidence, those of a single label first, by ascending
            entropy of their label shares, then by descending evidence. "paper": all known words
            of the text as Sato and Nakagawa (2007, section 5.3) list them, those that labels share
            most evenly first and those of a single label last; ties by term.

        Examples
        --------
        >>> texts = ["goal match", "film actor", "a film about a football match"]
        >>> labeler = Labeler("pdmm").fit(texts, [["sport"], ["film"], ["film", "sport"]])
        >>> text, labels = "a film about a goal in the match", ["film", "sport"]
        >>> [word.term for word in labeler.keywords(text, labels)]
        ['goal', 'match']
        >>> [word.term for word in labeler.keywords(text, labels, order="paper")]
        ['film', 'goal', 'match']
        >>> [word.label for word in labeler.keywords(text, labels, mixture=[0.9, 0.1])]
        ['film']
        """
        return self.explain(text, labels, mixture=mixture, order=order).keywords

    def audit(self, texts, labels=None, *, k: int = 20) -> Suspects:
        """Find learned texts whose labels are doubtful, most suspicious first.

        Each text is assessed as if it had not been learned, with all models. The labeler does not
        change.

        Parameters
        ----------
        texts : iterable of texts
            Texts that were learned. If the model learns from documents, and the labeler has not
            kept them, give all of them: each is then assessed by what the others teach.
        labels : collections of names, default=None
            The labels that they were learned with. Leave them out if the texts are documents with
            labels.
        k : int, default=20
            Maximum number of texts.

        Notes
        -----
        The model's ``audit_method`` says how a text is left out.

        "leave-one-out", for count models: the counts of a text are removed from the table. Words
        that several labels share stay shared as before, and vocabulary and temperature are kept.
        The suspicion is the difference between the scores of the better and of its own labels (the
        log joint of label sets or, for naive Bayes, the log likelihood of the best label), divided
        by the square root of the number of words, because differences grow with the text.

        "out-of-fold", for all others: the texts are divided into five folds, and those of a fold
        are assessed by a model that is fitted on all other documents, with the parameters tuned
        before. ``better`` is what it predicts. All scores together are calibrated. The suspicion is
        the mean of -log p of a text's labels, plus the largest -log(1 - p) of its other labels; 0
        if its labels are predicted.

        The ``rule`` is not used.
        """
        state = self._fitted_state()
        check_scalar(k, "k", Integral, min_val=1)
        texts = list(check_iterable(texts))
        if labels is None:
            if not all(isinstance(text, Document) for text in texts):
                raise ValueError("labels is None, must be given unless all texts are documents.")
            labels = [text.labels for text in texts]
        Y = self._reader(state).read(labels, len(texts)).over(list(state.space))
        ids = [text.id if isinstance(text, Document) else None for text in texts]
        return find_suspects(self, state, texts, ids, Y, k)

    def label_terms(self, k: int = 10, labels: Collection[str] | None = None) -> list[dict]:
        """Return labels with their number of documents, parent and most characteristic terms.

        Terms are ranked by their probability in the label times the logarithm of their lift (how
        much likelier they are in the label than in the corpus) or, in a linear model, by weight.

        Parameters
        ----------
        k : int, default=10
            Number of terms per label.
        labels : collection of str, default=None
            The labels, by id or name; all by default.
        """
        state = self._fitted_state()
        ids = state.space if labels is None else map(self._reader(state).resolve, labels)
        columns = [state.space.index(label) for label in ids]
        return [label_terms(state, self.tree, column, k) for column in columns]

    def neighbours(self, label: str, n_pairs: int = 100, n_alike: int = 5) -> Neighbours:
        """Return the labels that occur together with a label, and those with similar words.

        Time and memory are linear in the size of the counts, however many labels there are.

        Parameters
        ----------
        label : str
            The label, by id or name.
        n_pairs : int, default=100
            Number of labels of positive, and of negative, correlation.
        n_alike : int, default=5
            Number of labels with similar words.
        """
        state = self._fitted_state()
        column = state.space.index(self._reader(state).resolve(label))
        return label_neighbours(state, column, n_pairs, n_alike)

    def map(self, k: int = 10, *, n_pairs: int = 20, n_labels: int = 1000) -> LabelMap:
        """Return the map of labels: which occur together, and which have similar words.

        Word distributions are those of the model or, if it has none (MML), of an additional
        mixture model (PMM1), fitted on first use. Correlations are those of the model or, if it
        has none, of the labels of the learned documents.

        Parameters
        ----------
        k : int, default=10
            Number of terms per label.
        n_pairs : int, default=20
            Number of pairs of positive, and of negative, correlation.
        n_labels : int, default=1000
            Number of labels, the most frequent ones; time and memory grow with its square.
        """
        return map_labels(self._fitted_state(), self.tree, k, n_pairs, n_labels)

    def name(self, label: str, language: str | None = None) -> str:
        """Return the display name of a label from the tree, or the label if it has none.

        The default language is that of the texts. If there is no name in this language, another
        one is used, see :meth:`polytopic.LabelTree.name`.
        """
        return label_name(self._fitted_state(), self.tree, label, language)

    def resolve(self, label: str) -> str:
        """Return the id of a label that is given by id, or by a name that the tree knows.

        Unknown and ambiguous names are returned unchanged.
        """
        return self._reader(self._fitted_state()).resolve(label)

    def _reader(self, state):
        return LabelReader(self.tree, state.model.classes_)

    def _level(self, state, level):
        if self.tree is None:
            raise ValueError(
                f"level == {level} needs a tree of labels; use Labeler(tree=...) or --tree."
            )
        return Level(list(state.space), self.tree, level)

    # Files

    def save(self, path: str | Path, *, counts: bool = True) -> None:
        """Write the model to one file.

        Parameters
        ----------
        path : str or Path
            The file.
        counts : bool, default=True
            Whether to include the counts; without them the file is smaller, and cannot learn.
        """
        from polytopic.labeler.files import save  # here: files import labelers

        check_is_fitted(self, "state_")
        save(self, path, counts=counts)
