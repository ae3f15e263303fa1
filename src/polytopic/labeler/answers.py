"""What a labeler answers: suggestions, explanations, and descriptions of its labels."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice, pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_scalar

from polytopic.decision import Threshold
from polytopic.decision.estimator import apply_rule
from polytopic.decision.rules import Rule
from polytopic.explain import Explanation, LabelMap, label_map
from polytopic.explain.correlations import Neighbours, labels_alike, labels_together
from polytopic.explain.explanation import Reasons
from polytopic.kernels.ranking import rank_labels
from polytopic.labeler.known_words import find_warning, shrink_labels, shrink_sets
from polytopic.labeler.state import LabelerState, known_shares, vocabulary_view
from polytopic.labels import LabelTree, widen
from polytopic.models.checks import require_counts
from polytopic.models.registry import find_model, model_names
from polytopic.parameters import check_number

if TYPE_CHECKING:
    from polytopic.labeler.estimator import Labeler

NO_THRESHOLD = "guarantee was not set in fit, so no promise can be kept; fit again."
MAX_ASSIGNED_SCORES = 1 << 21  # documents × labels that are assigned at once
MANY_LABELS = 64  # with more suggestions for a text, sorting all labels is faster
NUMBER = int, float, np.integer, np.floating


class Suggestion(NamedTuple):
    """A label for a text.

    ``score`` ranks the labels of a text, ``probability`` is the model's, and ``chosen`` says
    whether the label is in the predicted set.
    """

    label: str
    score: float
    probability: float
    chosen: bool


@dataclass(frozen=True)
class Answer(Sequence[Suggestion]):
    """The labels of one text: a sequence of suggestions, predicted labels first, then by score.

    Attributes
    ----------
    suggestions : list of Suggestion
        The suggestions.
    known : float
        The share of the text's words that the model knows, from 0 to 1: of all occurrences of
        terms, those in the vocabulary. 0 for an empty text.
    abstained : bool
        Whether the labeler abstained, because the predicted set was not probable enough.
    warning : str or None
        A sentence on why the answer may be of little use: the model knows few words of the text, or
        the text is in another language or script.
    """

    suggestions: list[Suggestion]
    known: float
    abstained: bool = False
    warning: str | None = None

    @property
    def labels(self) -> list[str]:
        """The predicted labels, sorted."""
        return sorted(suggestion.label for suggestion in self.suggestions if suggestion.chosen)

    def __getitem__(self, place):
        return self.suggestions[place]

    def __len__(self) -> int:
        return len(self.suggestions)

    def to_dict(
        self, name: Callable[[str], str] | None = None, *, digits: int | None = None
    ) -> dict[str, Any]:
        """Return the answer in a form for strict JSON: None stands for infinity.

        Parameters
        ----------
        name : callable, default=None
            Returns the name of a label, which is then given with each suggestion.
        digits : int, default=None
            Decimals of scores, probabilities and ``known``; all by default.
        """
        suggestions: list[dict[str, Any]] = []
        for label, score, probability, chosen in self.suggestions:
            row: dict[str, Any] = {"label": label}
            if name is not None:
                row["name"] = name(label)
            row["score"] = score if math.isfinite(score) else None
            row["probability"] = probability if math.isfinite(probability) else None
            row["chosen"] = chosen
            suggestions.append(row)
        known = self.known
        if digits is not None:
            known = round(known, digits)
            for row in suggestions:
                for column in ("score", "probability"):
                    row[column] = None if row[column] is None else round(row[column], digits)
        return {
            "labels": self.labels,
            "suggestions": suggestions,
            "known": known,
            "abstained": self.abstained,
            "warning": self.warning,
        }

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'✓' if s.chosen else ''}</td><td>{escape(s.label)}</td>"
            f"<td>{s.probability:.3f}</td><td>{s.score:.3g}</td></tr>"
            for s in self.suggestions
        )
        note = "" if self.warning is None else f"<p>{escape(self.warning)}</p>"
        head = "<tr><th></th><th>label</th><th>probability</th><th>score</th></tr>"
        return f"<table>{head}{rows}</table>{note}"


def rank_candidates(labels, Y, scores, proba, k) -> list[list[Suggestion]]:
    """Return the suggestions of each text, from scores and probabilities of candidates (CSR).

    Labels that are predicted without a score, as for a text without known words, have the score 0.
    """
    scores = sparse.csr_matrix(scores)
    ones = sparse.csr_matrix((np.ones(scores.nnz), scores.indices, scores.indptr), scores.shape)
    union = sparse.csr_matrix(ones + 2 * Y)
    union.sort_indices()
    sizes = np.diff(union.indptr)
    used = np.arange(sizes.max(initial=1)) < sizes[:, None]
    columns = np.zeros(used.shape, dtype=np.int64)
    columns[used] = union.indices
    rows = np.arange(len(used))[:, None]
    values = np.full(used.shape, -np.inf)
    values[used] = np.asarray(scores[rows, columns].todense())[used]
    likely = np.where(used, np.asarray(proba[rows, columns].todense()), 0.0)
    chosen = np.zeros(used.shape, dtype=bool)
    chosen[used] = union.data > 1
    ranked = rank_suggestions(range(used.shape[1]), chosen, values, likely, k)
    return [
        [suggestion._replace(label=labels[of_row[suggestion.label]]) for suggestion in suggestions]
        for suggestions, of_row in zip(ranked, columns.tolist(), strict=True)
    ]


def rank_suggestions(labels, chosen, scores, proba, k) -> list[list[Suggestion]]:
    """Return the suggestions of each text: predicted labels first, then by score."""
    k = min(k, len(labels))
    sizes = np.maximum(k, chosen.sum(axis=1))
    if sizes.max() > MANY_LABELS:
        order = np.lexsort((-scores, ~chosen), axis=1)[:, : sizes.max()]
    else:
        order = np.zeros((len(chosen), sizes.max()), dtype=np.int64)
        rank_labels(scores.astype(np.float64, copy=False), chosen, k, order)
    places = np.arange(len(chosen))[:, None], order  # faster than take_along_axis
    columns = (table[places] for table in (scores, proba, chosen))
    rows = zip(sizes.tolist(), order.tolist(), *(c.tolist() for c in columns), strict=True)
    return [
        [
            Suggestion(labels[c], score, p, is_chosen)
            for c, score, p, is_chosen in islice(zip(*row, strict=True), n)
            if score > -np.inf
        ]
        for n, *row in rows
    ]


def check_abstention(abstain, rule, model) -> None:
    """Raise if the probability of label sets, which abstention needs, is unavailable."""
    check_number(abstain, "abstain", min_val=0, max_val=1)
    if rule is not None:
        raise ValueError(
            f"abstain works with the model's own label sets, not with the rule "
            f"{type(rule).__name__}; use one of them."
        )
    reason = model.why_no_set_probability()
    if reason:
        raise ValueError(f"abstain needs the probability of a label set: {reason}.")


def check_guarantee(labeler: Labeler) -> None:
    """Raise if a guarantee is invalid, or does not work with other parameters."""
    guarantee = labeler.guarantee
    if guarantee is None:
        return
    level = guarantee.get("recall") if isinstance(guarantee, Mapping) else None
    if level is None or len(guarantee) != 1:
        raise ValueError(f"guarantee == {guarantee!r}, must be {{'recall': NUMBER}} or None.")
    check_number(level, "recall", min_val=0, max_val=1, include_boundaries="neither")
    if labeler.features:
        raise ValueError(
            "guarantee holds documents out by their word counts, and features need texts; use one "
            "of them."
        )
    for name in ("rule", "abstain"):
        if getattr(labeler, name) is not None:
            raise ValueError(
                f"guarantee and {name} == {getattr(labeler, name)!r} both decide how many labels a "
                "text gets; use one of them."
            )


def deciding_rule(labeler: Labeler, state: LabelerState) -> Rule | None:
    """Return the rule that decides which labels are predicted, None if the model does."""
    if labeler.guarantee is None:
        return labeler.rule
    if state.threshold is None:
        raise ValueError(NO_THRESHOLD)
    return Threshold(state.threshold)


def choose_labels(labeler: Labeler, state, model, X) -> sparse.csr_matrix:
    """Return the label set of each document: by a rule, or by the model itself."""
    rule = deciding_rule(labeler, state)
    if rule is None:
        return model.predict_indicator(X)
    return apply_rule(model, rule, X, model.fallback, tree=labeler.tree)


def assign_labels(
    labeler: Labeler, state: LabelerState, counts: sparse.csr_matrix, known: np.ndarray
) -> list[list[Suggestion]]:
    """Return the predicted labels of documents, best first.

    Documents are given by the counts of their known words, and the shares of their words that are
    ``known``. They are judged in blocks, so that memory does not grow with their number.
    """
    labels = state.space.ids
    size = max(MAX_ASSIGNED_SCORES // max(len(labels), 1), 1)
    assigned: list[list[Suggestion]] = []
    for start in range(0, counts.shape[0], size):
        X, shares = state.weigh(counts[start : start + size]), known[start : start + size]
        Y, scores, proba = state.model.assess(X, range(len(labels)))
        if deciding_rule(labeler, state) is not None:
            Y = choose_labels(labeler, state, state.model, X)
        sure = is_sure(labeler, state, state.model, X, shares)
        docs, columns = sparse.csr_matrix(Y).nonzero()
        docs, columns = docs[sure[docs]], columns[sure[docs]]
        own = np.asarray(scores[docs, columns]).ravel()
        own_proba = np.asarray(shrink_labels(state, proba, shares)[docs, columns]).ravel()
        order = np.lexsort((columns, -own, docs))
        suggestions = [
            Suggestion(labels[column], score, probability, True)
            for column, score, probability in zip(
                columns[order].tolist(),
                own[order].tolist(),
                own_proba[order].tolist(),
                strict=True,
            )
        ]
        ends = np.searchsorted(docs[order], np.arange(X.shape[0] + 1)).tolist()
        assigned += [suggestions[a:b] for a, b in pairwise(ends)]
    return assigned


def is_sure(labeler: Labeler, state, model, X, known) -> np.ndarray:
    """Return whether the labeler is sure enough to label each document.

    ``known`` are the shares of known words of the documents; None if they are not to matter.
    """
    if labeler.abstain is None:
        return np.ones(X.shape[0], dtype=bool)
    check_abstention(labeler.abstain, labeler.rule, model)
    proba = model.set_probability(X)
    return (proba if known is None else shrink_sets(state, proba, known)) >= labeler.abstain


def certainty(model, X, *, own_sets: bool) -> np.ndarray:
    """Return the probability that all labels of each document are right.

    If the model has no probabilities of label sets, or ``own_sets`` is false because a rule
    decides, labels are assumed to be independent.
    """
    if own_sets and not model.why_no_set_probability():
        return model.set_probability(X)
    proba = model.predict_proba(X)
    if sparse.issparse(proba):  # labels that are no candidates are certainly wrong
        rows = np.repeat(np.arange(proba.shape[0]), np.diff(proba.indptr))
        logs = np.log(np.maximum(proba.data, 1 - proba.data))
        return np.exp(np.bincount(rows, weights=logs, minlength=proba.shape[0]))
    return np.maximum(proba, 1 - proba).prod(axis=1)


def read_mixture(mixture, labels: list[str] | None, resolve: Callable) -> dict[str, float]:
    """Return the given shares of labels by label.

    ``mixture`` maps labels to shares, or lists the shares of ``labels`` in their order. ``labels``
    are those to explain; ``resolve`` returns the label that has an id or a name.
    """
    if isinstance(mixture, Mapping):
        pairs = [(resolve(label), share) for label, share in mixture.items()]
    elif isinstance(mixture, str) or not isinstance(mixture, Iterable):
        raise ValueError(
            f"mixture == {mixture!r}, must be a mapping of labels to shares, or a list of shares."
        )
    else:
        shares = list(mixture)
        if labels is None:
            raise ValueError(
                "mixture is a list of shares, so labels must be a list in the same order; or give "
                "a mapping of labels to shares."
            )
        if len(shares) != len(labels):
            raise ValueError(
                f"mixture has {len(shares)} shares and labels {len(labels)}; give one per label."
            )
        pairs = list(zip(labels, shares, strict=True))
    shares_by_label: dict[str, float] = {}
    for label, share in pairs:
        if label in shares_by_label:
            raise ValueError(f"mixture has two shares of {label!r}; give one per label.")
        if labels is not None and label not in labels:
            raise ValueError(f"mixture names {label!r}, which is not one of the labels.")
        if not (isinstance(share, NUMBER) and 0 <= share <= sys.float_info.max):
            raise ValueError(f"mixture gives {label!r} {share!r}, must be a number >= 0.")
        shares_by_label[label] = float(share)
    if not any(shares_by_label.values()):
        raise ValueError("mixture gives every label a share of 0, at least one must be > 0.")
    return shares_by_label


def mixture_row(state, by_label: Mapping[str, float]) -> np.ndarray:
    """Return given shares of labels as a row over all labels that sums to one."""
    if not state.model.can_set_mixture:
        names = [name for name in model_names() if find_model(name).load().can_set_mixture]
        raise ValueError(
            f"mixture needs a model in which each text has a mixture of its own; "
            f"{type(state.model).__name__} is not one. Use model={names[0]!r} (--model {names[0]})."
        )
    row = np.zeros((1, len(state.space)))
    for label, share in by_label.items():
        row[0, state.space.index(label)] = share
    row /= row.max()  # the sum is then finite
    return row / row.sum()


def explain_labels(
    labeler: Labeler,
    state,
    text,
    labels,
    why_not,
    mixture_model=None,
    *,
    mixture=None,
    order="specific",
) -> Explanation:
    """Explain the labels of a text.

    ``labels`` is an indicator row of the labels to explain, or None for the predicted ones.
    ``why_not`` maps further labels to their columns. A ``mixture_model`` shares words among
    labels in place of the model. ``mixture`` has the shares of all labels in the text, to use
    instead of the model's, and ``order`` is that of the keywords.
    """
    model, vocabulary, fields = state.model, state.vocabulary, labeler.fields
    counts, terms = state.analyzer.count([text], fields)
    known = vocabulary.select(counts, terms)
    share = float(known_shares(known, counts.sum(axis=1).A1)[0])
    x = state.weigh(known) if state.features is None else state.transform([text], fields)
    if labels is None and deciding_rule(labeler, state) is not None:
        labels = choose_labels(labeler, state, model, x)
    predicted, scores, proba = model.assess(x, () if labels is None else labels.indices)
    if sparse.issparse(scores):
        scores, proba = _one_row(scores, -np.inf), _one_row(proba, 0.0)
    y = predicted if labels is None else labels
    if not y.nnz:
        raise ValueError("labels is empty, must have at least one label to explain.")
    for label, column in why_not.items():
        if column in y.indices:
            raise ValueError(f"why_not == {label!r}, must not be one of the explained labels.")
    reasons = Reasons(
        model,
        vocabulary.terms,
        x,
        y,
        counts=known,
        mixture_model=mixture_model,
        mixture=mixture,
        features={} if state.features is None else state.features.columns(len(vocabulary)),
    )
    return Explanation(
        labels=reasons.label_reasons(scores[0], shrink_labels(state, proba, [share])[0]),
        keywords=reasons.keywords(order),
        breakdown=reasons.scores.breakdown,
        why_not=reasons.why_not(list(why_not.values())),
        unknown=[term for term in terms if term not in vocabulary],
        find_places=reasons.place_finder(state.analyzer, text, fields or {}),
        unit=reasons.scores.unit,
        known=share,
        warning=find_warning(state, text, share),
    )


def _one_row(values, absent: float) -> np.ndarray:
    """Return the numbers of one text's candidates as a dense row."""
    row = np.full(values.shape, absent)
    row[0, values.indices] = values.data
    return row


def label_name(state, tree: LabelTree | None, label: str, language: str | None = None) -> str:
    """Return the name of a label, by default in the language of the texts."""
    return label if tree is None else tree.name(label, language or state.analyzer.language)


def label_terms(state, tree: LabelTree | None, column: int, k: int) -> dict:
    """Return a label with its number of documents, parent and ``k`` characteristic terms."""
    model, terms = state.model, state.vocabulary.terms
    label = str(model.classes_[column])
    return {
        "label": label,
        "name": label_name(state, tree, label),
        "parent": tree.parent(label) if tree and label in tree else None,
        "documents": int(model.label_docs_[column]),
        "words": [
            {"term": terms[word], **facts}
            for word, facts in _top_words(model, column, k, len(terms))
        ],
    }


def _top_words(model, column, k, n_words):
    """Yield a label's most characteristic words with weight, or probability and lift.

    What a model reads beside the words has columns from ``n_words`` on, and is left out.
    """
    if not model.has_word_proba:
        words, weights = model.top_words(column, k)
        if (words >= n_words).any():
            words, weights = model.top_words(column, model.n_features_in_)
            is_word = words < n_words
            words, weights = words[is_word][:k], weights[is_word][:k]
        for word, weight in zip(words.tolist(), weights.tolist(), strict=True):
            yield word, {"weight": weight}
        return
    proba = model.word_proba_[column]
    lift = np.log(proba) - model.world_log_proba_
    for word in np.argsort(-proba * lift, kind="stable")[:k].tolist():
        yield word, {"probability": float(proba[word]), "lift": float(np.exp(lift[word]))}


def map_labels(state, tree: LabelTree | None, k: int, n_pairs: int, n_labels: int) -> LabelMap:
    """Return the map of labels from the model, or an additional mixture, and the counts."""
    check_scalar(n_labels, "n_labels", Integral, min_val=1)
    counts = require_counts(state.counts, "it has no map of labels")
    model, space = state.model, state.space
    sets = widen(counts.indicator, counts.labels, space)
    matrix = vocabulary_view(counts, state.vocabulary).matrix
    columns = np.sort(np.argsort(-(sets.T @ counts.set_docs), kind="stable")[:n_labels])
    labels = [space.ids[column] for column in columns.tolist()]
    words = matrix.sum(axis=0).A1
    covariance, topics = None, None
    if model.has_topics:
        covariance = model.label_covariance_[np.ix_(columns, columns)]
        topics = model.topic_word_proba_, model.label_topics_[columns]
    return label_map(
        labels,
        _word_proba(state, columns, sets, matrix),
        words / words.sum(),
        state.vocabulary.terms,
        sets=sets[:, columns],
        set_docs=counts.set_docs,
        names=[label_name(state, tree, label) for label in labels],
        covariance=covariance,
        topics=topics,
        tree=tree,
        k=k,
        n_pairs=n_pairs,
        n_labels=len(space.ids),
    )


def _word_proba(state, columns, sets, matrix) -> np.ndarray:
    """Return the word distributions of some labels.

    If the model has none, those of an additional mixture or, if there are too many labels for one,
    of the documents of each label.
    """
    if state.model.has_word_proba:
        return state.model.word_proba_[columns]
    if len(columns) == len(state.space):
        return state.mixture.word_proba_
    words = (sets[:, columns].T @ matrix).astype(np.float32).toarray()
    total = words.sum(axis=1, keepdims=True)
    return np.where(total > 0, words / np.where(total > 0, total, 1), 1 / words.shape[1])


def label_neighbours(state, column: int, n_pairs: int, n_alike: int) -> Neighbours:
    """Return the neighbours of the label in a column."""
    counts = require_counts(state.counts, "its labels have no neighbours")
    labels = list(state.space)
    sets = widen(counts.indicator, counts.labels, state.space)
    matrix = vocabulary_view(counts, state.vocabulary).matrix
    return Neighbours(
        labels_together(
            labels,
            column,
            sets,
            counts.set_docs,
            covariance=state.model.label_covariance_ if state.model.has_topics else None,
            n_pairs=n_pairs,
        ),
        labels_alike(labels, column, sets, matrix, n_labels=n_alike),
    )
