"""Computes explanations: what the score of a label set is made of, word by word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse, special

from polytopic.explain.explanation import (
    Keyword,
    LabelReason,
    Objection,
    PlaceFinder,
    WhyNot,
    Word,
    strings_of,
)
from polytopic.models import WordScores
from polytopic.text import Analyzer


class Reasons:
    r"""The evidence of one document for a label set, by a model.

    In a probabilistic model, the evidence of a word :math:`w` is
    :math:`x_w (\log \varphi_w - \log g_w)`, where :math:`\varphi` is the word distribution of
    the label set and :math:`g` that of the corpus; a label's part is its share of the word. In a
    linear model (MML), a label's part is what the word adds to the score through this label, and
    the evidence is their sum; a word of weight 0, such as one in every document, adds 0.

    Parameters
    ----------
    model : model
        A fitted model.
    terms : sequence of str
        Names of the model's words.
    x : csr_matrix of shape (1, n_words)
        The document as the model reads it: counts, or weights.
    y : csr_matrix of shape (1, n_labels)
        Indicator of the label set.
    counts : csr_matrix of shape (1, n_words)
        Word counts of the document; ``x`` itself if the model reads counts.
    sharer : mixture model, default=None
        Shares words among labels in place of the model.
    """

    def __init__(
        self, model, terms: Sequence[str], x: sparse.csr_matrix, y, *, counts, sharer=None
    ):
        self.model, self.x, self.y = model, x, y
        self.counts, self.sharer = counts, sharer
        self.terms = [terms[w] for w in counts.indices.tolist()]
        self.labels = [str(label) for label in model.classes_[y.indices]]
        self.scores = self._word_scores(y)
        self.evidence = self.scores.evidence
        self.shares = self._word_shares()
        self.contributions = self._contributions()

    def _spread(self, values, rest=0.0):
        """Return values of the words of ``x`` over all words of ``counts``."""
        spread = np.full((self.counts.nnz, *values.shape[1:]), rest)
        spread[np.searchsorted(self.counts.indices, self.x.indices)] = values
        return spread

    def _word_scores(self, y) -> WordScores:
        """Return what each word of ``counts`` adds to the score of a label set."""
        found = self.model.explain_words(self.x, y)
        if self.x.nnz == self.counts.nnz:
            return found
        by_label = found.by_label
        return replace(
            found,
            weights=self._spread(found.weights),
            word_scores=self._spread(found.word_scores),
            corpus_scores=self._spread(found.corpus_scores),
            by_label=None if by_label is None else self._spread(by_label),
        )

    def of_labels(self, scores: np.ndarray, proba: np.ndarray) -> list[LabelReason]:
        """Return the labels with their evidence, given the model's scores and probabilities."""
        whole = self._label_shares()
        reasons = [
            LabelReason(
                label=label,
                share=float(whole[k]),
                score=float(scores[column]),
                probability=float(proba[column]),
                evidence=float(self.contributions[:, k].sum()),
                words=self._words(self.shares[:, k], self.contributions[:, k]),
            )
            for k, (label, column) in enumerate(zip(self.labels, self.y.indices, strict=True))
        ]
        return sorted(reasons, key=lambda reason: (-reason.share, reason.label))

    def _word_shares(self):
        """Return the share of each label in each word; equal shares if a word has no weight."""
        n_labels = self.y.nnz
        if self.sharer is not None:
            return self.sharer.word_labels(self.counts, self.y).share.reshape(-1, n_labels)
        shares = self.model.word_labels(self.x, self.y).share.reshape(-1, n_labels)
        return self._spread(shares, 1 / n_labels)

    def _contributions(self):
        """Return each label's part of the evidence of each word: exact, or by its share."""
        if self.scores.by_label is None:
            return self.shares * self.evidence[:, None]
        return self.scores.weights[:, None] * self.scores.by_label

    def _label_shares(self):
        """Return each label's share of the document: that of the mixture, or of the words."""
        if self.sharer is not None:
            return self.sharer.mixture(self.counts, self.y)[0, self.y.indices]
        said = self.counts.data @ self.shares
        if self.model.has_mixture:
            words = np.zeros(self.y.shape)
            words[0, self.y.indices] = said
            return self.model.proportions(words, self.y.toarray())[0, self.y.indices]
        return said / said.sum() if said.any() else np.full(said.size, 1 / said.size)

    def _words(self, share, part):
        order = np.argsort(-part, kind="stable")
        terms = [self.terms[k] for k in order.tolist()]
        columns = (values[order].tolist() for values in (self.counts.data, share, part))
        return list(map(Word._make, zip(terms, *columns, strict=True)))

    def keywords(self) -> list[Keyword]:
        r"""Return the words by the entropy of their label shares, lowest first.

        It is :math:`-\sum_l p_l \log p_l` (Sato and Nakagawa, section 5.3). Words without positive
        evidence are left out. Ties, such as all words of a single label, are ordered by evidence,
        then by term.
        """
        entropy = -special.xlogy(self.shares, self.shares).sum(axis=1) + 0.0  # no -0.0
        order = np.lexsort((-self.evidence, entropy))
        order = order[self.evidence[order] > 0]
        owner = self.shares.argmax(axis=1)
        columns = (
            [self.terms[k] for k in order.tolist()],
            entropy[order].tolist(),
            [self.labels[k] for k in owner[order].tolist()],
            self.shares[order, owner[order]].tolist(),
            self.evidence[order].tolist(),
        )
        return list(map(Keyword._make, zip(*columns, strict=True)))

    def why_not(self, columns: Iterable[int]) -> list[WhyNot]:
        """Return why the document does not have these labels."""
        return [self._why_not(column) for column in columns]

    def _why_not(self, column):
        model, own = self.model, self.scores
        best = model.best_with(self.x, column)
        other = self._word_scores(best)
        amount = own.weights * (own.word_scores - other.word_scores) / own.temperature
        order = np.argsort(-amount, kind="stable")
        terms = [self.terms[k] for k in order.tolist()]
        return WhyNot(
            label=str(model.classes_[column]),
            labels=[str(label) for label in model.classes_[np.sort(best.indices)]],
            difference=own.breakdown.score - other.breakdown.score,
            words=list(map(Objection, terms, amount[order].tolist())),
            mixing=(own.mixing - other.mixing) / own.temperature,
            prior=own.log_prior - other.log_prior,
        )

    def place_finder(self, analyzer: Analyzer, text, weights) -> PlaceFinder:
        """Return what finds the counted words in the text."""
        evidence = self.evidence / self.counts.data  # of one occurrence
        return PlaceFinder(
            analyzer, strings_of(text), weights, self.terms, self.labels, self.shares, evidence
        )
