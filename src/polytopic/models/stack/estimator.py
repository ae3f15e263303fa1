"""The estimator that combines several models."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from polytopic.array_specs import check_arrays
from polytopic.counts.sampling import draw_documents
from polytopic.kernels.blocks import run_tasks
from polytopic.labels import read_targets, with_fallback
from polytopic.modelfile import pack_arrays, unpack_arrays
from polytopic.models.base import LABEL_ARRAYS, check_label_arrays
from polytopic.models.calibration import rising_curve
from polytopic.models.checks import check_name
from polytopic.models.label_scores import WordWeightModel
from polytopic.models.large import CandidateStack
from polytopic.models.large.combining import choose_sets as choose_prefixes
from polytopic.models.registry import LARGE_LABELS, find_model
from polytopic.models.results import LabelEvidence
from polytopic.models.stack import kernels
from polytopic.models.stack.combining import (
    Combination,
    best_thresholds,
    check_combination,
    member_odds,
    without_infinity,
)
from polytopic.models.stack.members import as_member

GOALS = ("f", "macro", "exact")
LARGE_GOALS = {"f": "f", "macro": "f", "exact": "exact"}  # of the stack of candidates
MARGIN = {"f": 1.5, "macro": 1.0}  # a label is added above this multiple of its best threshold
MIN_PROBA = 0.02  # and above this probability
MIN_DOCS = 30  # documents to combine members on
MAX_DOCS = 12000  # documents to hold some out of
FOLDS = 3
MAX_MEMBERS = 100
LARGE = "large."  # what the names of the arrays of a stack of candidates begin with
MANY_EXPECTED = kernels.MAX_RANKED / 2  # labels of a document, for which F1 is approximated
MANY_DOCS = 2000  # documents for which one fold is enough
TINY = 1e-12


class Stack(WordWeightModel):
    r"""A stack of models, which combines their scores and decides by expected F1.

    Each member scores documents that it was not fitted on. Isotonic regression turns the scores of
    each member into probabilities, and a logistic regression on their log odds weighs the
    members [1]_. Labels are then treated as independent, and the set with the highest expected F1
    is predicted.

    Parameters
    ----------
    members : tuple of str or estimators, default=("mml", "svm", "knn", "forest")
        The models to combine: names of models that read weights, instances of these, or
        scikit-learn classifiers. A classifier that predicts one label is fitted on each label.
    goal : {"f", "macro", "exact"}, default="f"
        What to predict. "f" is the set with the highest expected F1, plus rare labels that are
        probable enough; "macro" adds more of these, for a higher F1 per label; "exact" is the most
        probable set.
    random_state : int, RandomState or None, default=0
        Determines which documents are held out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Label ids in sorted order, or column numbers if fitted on an indicator.
    members_ : list of estimators
        The members, fitted on all documents.
    member_weights_ : ndarray of shape (n_members,)
        Their weights in the combination.
    large_ : CandidateStack or None
        The stack of candidates that answers if there are thousands of labels.
    tuned_ : dict
        What was tuned on held-out documents: the combination, parameters of members, the
        thresholds of labels, and the curve of probabilities of sets.

    Notes
    -----
    ``decision_function`` returns the log odds of labels, ``predict_proba`` their probabilities.
    With fewer than 30 documents, there is no combination: the first member answers alone.

    Below 2000 documents, three folds are held out in turn; above, one third of the documents, or of
    12000 of them. A forest uses its out-of-bag scores instead.

    From 1000 labels on, the members would take much memory and time. The stack is then a
    :class:`CandidateStack` (``large_``), whatever the ``members``: it combines linear machines,
    centroids and neighbours, and answers are sparse.

    References
    ----------
    .. [1] Wolpert, "Stacked Generalization", Neural Networks 5, 1992.

    Examples
    --------
    >>> X = [[3, 0, 1], [0, 2, 1], [2, 2, 0]] * 20
    >>> Y = [["sport"], ["film"], ["film", "sport"]] * 20
    >>> model = Stack(("mml", "knn")).fit(X, Y)
    >>> model.classes_, model.predict([[4, 0, 1]])
    (array(['film', 'sport'], dtype=object), array([[0, 1]]))
    """

    name = "stack"
    needs_documents = True
    large_: CandidateStack | None = None

    def __init__(self, members=("mml", "svm", "knn", "forest"), *, goal="f", random_state=0):
        self.members = members
        self.goal = goal
        self.random_state = random_state

    # Learning

    def fit(self, X, y, *, tuned=None):
        """Learn from documents.

        Parameters
        ----------
        X, y
            As in the other models of weighted words.
        tuned : dict, default=None
            What an earlier fit has tuned (``tuned_``), to be reused.
        """
        targets = read_targets(y)
        if np.count_nonzero(targets.Y.getnnz(axis=0)) < LARGE_LABELS:
            self.large_ = None
            return super().fit(X, targets, tuned=_own(tuned, large=False))
        self._check_parameters()
        large = CandidateStack(goal=LARGE_GOALS[self.goal], random_state=self.random_state)
        self._set_large(large.fit(X, targets, tuned=_own(tuned, large=True)))
        return self

    def _set_large(self, model):
        """Let a stack of candidates answer."""
        self.large_, self.members_ = model, []
        self.tuned_, self.classes_, self.label_docs_ = (
            model.tuned_,
            model.classes_,
            model.label_docs_,
        )
        self.n_features_in_ = model.n_features_in_

    def _learn(self, X, Y, tuned):
        members = [as_member(member) for member in self.members]
        if not X.shape[0]:  # no document has both words and labels: all labels score 0
            members = []
        fitted = [None] * len(members)
        if tuned is not None:
            self._set_tuned(tuned)
        elif X.shape[0] < MIN_DOCS:
            self._set_tuned({})
        else:
            fitted = self._tune(members, X, Y)
        tuned_members = self.tuned_.get("members", [{}] * len(members))

        def fit_member(k):
            return members[k].fit(X, Y, tuned=tuned_members[k]) if fitted[k] is None else fitted[k]

        self.members_ = run_tasks(fit_member, range(len(members)))

    def _tune(self, members, X, Y):
        """Combine members on held-out documents; return those that are already fitted on all."""
        order = draw_documents(X.shape[0], MAX_DOCS, self.random_state)
        fold_of = np.arange(order.size) % FOLDS
        n_folds = FOLDS if order.size < MANY_DOCS else 1
        folds = [(order[fold_of != k], order[fold_of == k]) for k in range(n_folds)]
        held_out = [member.held_out_scores(X, Y, folds) for member in members]
        truth = Y[np.concatenate([test for _, test in folds])].toarray() > 0
        scores = [member.scores for member in held_out]
        combination = Combination.fit(scores, truth)
        proba = expit(combination.log_odds(scores))
        tuned = {
            "members": [member.tuned for member in held_out],
            **combination._asdict(),
            "thresholds": dict(
                zip(
                    self.classes_[self._columns].tolist(),
                    best_thresholds(proba).tolist(),
                    strict=True,
                )
            ),
        }
        self._set_tuned(tuned)
        chosen = self._choose(proba)
        right = (chosen == truth).all(axis=1)
        self.tuned_["set_curve"] = rising_curve(log_chance(proba, chosen), right)
        return [member.fitted for member in held_out]

    def _set_tuned(self, tuned: Mapping[str, Any]) -> None:
        """Set the tuned values, without those of labels that no longer exist."""
        labels = self.classes_[self._columns].tolist()
        self.tuned_, self._combination = dict(tuned), None
        if "weights" in tuned:
            known = tuned["thresholds"]
            self.tuned_["thresholds"] = {label: known[label] for label in labels if label in known}
            self._thresholds = np.array([known.get(label, np.inf) for label in labels])
            self._combination = Combination(*(tuned[name] for name in Combination._fields))

    @property
    def member_weights_(self) -> np.ndarray:
        """The weights of the members in the combination; empty if there are thousands of labels."""
        check_is_fitted(self)
        if self.large_ is not None:
            return np.zeros(0)
        if self._combination is None:
            return np.eye(1, len(self.members_))[0]
        return np.array(self._combination.weights)

    def _check_parameters(self):
        check_name(self.goal, "goal", GOALS)
        if not isinstance(self.members, list | tuple) or not self.members:
            raise ValueError(f"members == {self.members!r}, must be a tuple of one model or more.")
        if len(self.members) > MAX_MEMBERS:
            raise ValueError(
                f"members has {len(self.members)} models, must have at most {MAX_MEMBERS}."
            )
        for member in self.members:
            as_member(member)

    def restrict_to(self, allowed):
        """Return a copy that predicts only the labels where ``allowed`` is true."""
        if self.large_ is None:
            return super().restrict_to(allowed)
        model = copy(self)
        model.large_ = self.large_.restrict_to(allowed)
        return model

    # Files and stores

    def to_arrays(self):
        """Return what was learned as plain arrays."""
        if self.large_ is not None:
            packed = pack_arrays(self.large_.to_arrays(), find_model(self.large_.name).packing)
            return {f"{LARGE}{name}": array for name, array in packed.items()}
        arrays = self._label_arrays()
        for prefix, member in self._named_members():
            packed = pack_arrays(member.to_arrays(), find_model(member.name).packing)
            arrays |= {f"{prefix}.{name}": array for name, array in packed.items()}
        return arrays

    def from_arrays(self, arrays, *, labels, n_words, tuned=None):
        """Restore what :meth:`to_arrays` returned; predictions are then identical bit for bit.

        Arrays that no model could have produced raise ValueError.
        """
        self._check_parameters()
        if any(name.startswith(LARGE) for name in arrays):
            self._restore_large(arrays, labels, n_words, tuned)
            return self
        self.large_ = None
        check_arrays(arrays, LABEL_ARRAYS, n_labels=len(labels), n_words=n_words)
        check_label_arrays(arrays)
        self._restore_labels(arrays, labels, {})
        has_members = any("." in name for name in arrays)  # else no document to learn from
        self.members_ = [as_member(member) for member in self.members] if has_members else []
        check_combination(tuned, len(self.members_))
        self._set_tuned(tuned or {})
        chosen = self.tuned_.get("members", [{}] * len(self.members_))
        for (prefix, member), own in zip(self._named_members(), chosen, strict=True):
            packed = {
                name.removeprefix(f"{prefix}."): array
                for name, array in arrays.items()
                if name.startswith(f"{prefix}.")
            }
            member.from_arrays(
                unpack_arrays(packed, find_model(member.name).packing),
                labels=list(range(self._columns.size)),
                n_words=n_words,
                tuned=own,
            )
        self._allowed = np.ones(self._columns.size, dtype=bool)
        self.n_features_in_ = n_words
        return self

    def _restore_large(self, arrays, labels, n_words, tuned):
        large = CandidateStack(goal=LARGE_GOALS[self.goal], random_state=self.random_state)
        packed = {name.removeprefix(LARGE): array for name, array in arrays.items()}
        unpacked = unpack_arrays(packed, find_model(large.name).packing)
        self._set_large(large.from_arrays(unpacked, labels=labels, n_words=n_words, tuned=tuned))

    def _named_members(self):
        """Yield each member with the beginning of the names of its arrays."""
        for k, member in enumerate(self.members_):
            yield f"{k}-{member.name}", member

    # Answers, if there are thousands of labels

    def decision_function(self, X):
        """Return the log odds of labels; those of candidates if there are thousands of labels."""
        return (
            super().decision_function(X)
            if self.large_ is None
            else self.large_.decision_function(X)
        )

    def predict_proba(self, X):
        """Return the probabilities of labels; those of candidates if there are thousands."""
        return super().predict_proba(X) if self.large_ is None else self.large_.predict_proba(X)

    def assess(self, X, labels=None):
        """Return predicted sets (CSR indicator), scores and probabilities."""
        return super().assess(X, labels) if self.large_ is None else self.large_.assess(X, labels)

    def predict(self, X):
        """Return the labels of each document; a CSR indicator if there are thousands of labels."""
        return super().predict(X) if self.large_ is None else self.large_.predict(X)

    def predict_indicator(self, X) -> sparse.csr_matrix:
        """Return the predicted label sets as a sparse indicator, whatever the form of ``Y``."""
        return (
            super().predict_indicator(X)
            if self.large_ is None
            else self.large_.predict_indicator(X)
        )

    def label_evidence(self, x, labels) -> LabelEvidence:
        """Return what the scores of labels (columns of ``classes_``) are made of."""
        return (
            super().label_evidence(x, labels)
            if self.large_ is None
            else self.large_.label_evidence(x, labels)
        )

    @property
    def fallback(self) -> np.ndarray:
        """Columns of the most frequent label set, which documents without words get."""
        return self._fallback if self.large_ is None else self.large_.fallback

    # Scores

    def _column_scores(self, X):
        if not self.members_:
            return np.zeros((X.shape[0], self._columns.size))
        return self._combined([member.decision_function(X) for member in self.members_])

    def _combined(self, scores):
        if self._combination is None:
            return without_infinity(scores[0] - self.members_[0].cut)
        return self._combination.log_odds(scores)

    def _score_proba(self, scores):
        return expit(scores)

    def _label_sets(self, X, scores):
        if self._form.kind == "single" or self._combination is None:
            return super()._label_sets(X, scores)
        chosen = np.zeros(scores.shape, dtype=bool)
        chosen[:, self._columns] = self._choose(expit(scores[:, self._columns]))
        return with_fallback(X, sparse.csr_matrix(chosen.astype(np.float64)), self._fallback)

    def _choose(self, proba):
        """Return the label sets for these probabilities of columns."""
        if self.goal == "exact":
            chosen = proba > 0.5
            chosen[np.arange(len(proba)), proba.argmax(axis=1)] = True
            return chosen
        chosen = np.zeros(proba.shape, dtype=bool)
        many = proba.sum(axis=1) > MANY_EXPECTED
        if many.any():
            chosen[many] = choose_prefixes(proba[many])
        few = np.zeros((np.count_nonzero(~many), proba.shape[1]), dtype=bool)
        kernels.choose_sets(np.ascontiguousarray(proba[~many]), few)
        chosen[~many] = few
        return chosen | (proba > np.maximum(MARGIN[self.goal] * self._thresholds, MIN_PROBA))

    def best_with(self, X, label) -> sparse.csr_matrix:
        """Return the predicted label set of each document, with a label (a column) added."""
        if self.large_ is not None:
            return self.large_.best_with(X, label)
        alone = super().best_with(X, label)
        if self._form.kind == "single" or self._combination is None:
            return alone
        sets = self.predict_indicator(X).tolil()
        sets[:, label] = 1.0
        return sparse.csr_matrix(sets)

    def set_probability(self, X):
        """Return the probability that each document's predicted label set is right.

        By isotonic regression, on held-out documents, on the probability that it would have if
        labels were independent.
        """
        check_is_fitted(self)
        if self.large_ is not None:
            return self.large_.set_probability(X)
        reason = self.why_no_set_probability()
        if reason:
            raise ValueError(f"set_probability is not available: {reason}.")
        X = self._check_words(X)
        scores = self._scores(X)
        chosen = self._label_sets(X, scores).toarray()[:, self._columns] > 0
        chance = log_chance(expit(scores[:, self._columns]), chosen)
        proba = np.interp(chance, *self.tuned_["set_curve"])
        return np.where(X.getnnz(axis=1) > 0, proba, self._fallback_docs / self._n_docs)

    def why_no_set_probability(self):
        """Return why :meth:`set_probability` is unavailable and what to do; "" if it is not."""
        if self.is_fitted and "set_curve" not in self.tuned_:
            return f"Stack needs at least {MIN_DOCS} documents to combine members"
        return ""

    # Explanations

    def _column_evidence(self, x, columns):
        by_word, base = np.zeros((x.nnz, len(columns))), np.zeros(len(columns))
        if not self.members_:
            return LabelEvidence(x.data, by_word, base)
        if self._combination is None:
            evidence = self.members_[0].label_evidence(x, columns)
            return evidence._replace(base=without_infinity(evidence.base - self.members_[0].cut))
        base += self._combination.intercept
        for curve, weight, member in zip(
            self._combination.curves, self._combination.weights, self.members_, strict=True
        ):
            evidence = member.label_evidence(x, columns)
            # Log odds are no sum over words, but the way from the base to the score is a straight
            # line, along which each word contributes in proportion (integrated gradients).
            words = evidence.weights @ evidence.by_word
            start = member_odds(curve, evidence.base)
            rise = member_odds(curve, evidence.base + words) - start
            slope = np.divide(rise, words, out=np.zeros_like(rise), where=np.abs(words) > TINY)
            by_word += weight * slope * evidence.by_word
            base += weight * start
        return LabelEvidence(x.data, by_word, base)

    def top_words(self, label, k):
        """Return the ``k`` words with the largest weights for a label (a column), and these.

        They are those of the first member, or of the machines if there are thousands of labels.
        """
        check_is_fitted(self)
        if self.large_ is not None:
            return self.large_.top_words(label, k)
        place = np.flatnonzero(self._columns == label)
        if not place.size or not self.members_:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        return self.members_[0].top_words(int(place[0]), k)

    def _column_words(self, column):
        raise NotImplementedError


def _own(tuned: Mapping[str, Any] | None, *, large: bool) -> Mapping[str, Any] | None:
    """Return tuned values, or None if they are those of the other form."""
    return None if tuned and ("missed" in tuned) != large else tuned


def log_chance(proba, chosen) -> np.ndarray:
    """Return the log probability of label sets if labels are independent."""
    return np.log(np.maximum(np.where(chosen, proba, 1 - proba), TINY)).sum(axis=1)
