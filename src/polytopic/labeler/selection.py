"""Selecting texts by topic from a stream of any length."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from polytopic.labeler.answers import choose_labels, is_sure
from polytopic.labeler.estimator import Labeler
from polytopic.labeler.reading import LabelReader, check_iterable, read_names
from polytopic.labels import indicator
from polytopic.parameters import check_number

SELECTED = "selected"  # the key of a document's topics


class TopicMatch(NamedTuple):
    """A text's labels in a topic and, on request, their share of the text."""

    labels: list[str]
    share: float | None


class Selector:
    """Selects texts about given topics, block by block, and counts them.

    A text is about a topic if one of its predicted labels is the topic, or lies below it in the
    tree. Texts with no known words, or for which the labeler abstains, are about no topic.

    Parameters
    ----------
    labeler : Labeler
        Labels the texts, with what it knows now; what it learns later has no effect.
    topics : collection of str
        Labels or inner nodes of the tree, by id or name.
    min_share : float, default=None
        The smallest share of a text, from 0 to 1, that its labels in the topic must have. Shares
        come from the labeler's model if it is a mixture, otherwise from an additional mixture.
    every : bool, default=False
        Whether a text must be about all topics, not just one.

    Attributes
    ----------
    counts : Counter
        Numbers of texts that were ``read``, were ``selected``, and had ``no known word``.
    topic_counts : Counter
        Number of selected texts about each topic.

    Examples
    --------
    >>> labeler = Labeler("pmm1").fit(["goal match", "orbit rover"], [["sport"], ["space"]])
    >>> Selector(labeler, ["sport"]).select(["a late goal", "in orbit", "nonsense"])
    [{'sport': TopicMatch(labels=['sport'], share=None)}, {}, {}]
    """

    def __init__(
        self,
        labeler: Labeler,
        topics: Collection[str],
        *,
        min_share: float | None = None,
        every: bool = False,
    ) -> None:
        if not read_names("topics", topics):
            raise ValueError("topics is empty, must have at least one label.")
        self.labeler = labeler = copy(labeler)
        self.min_share, self.every = min_share, every
        self.topics = tuple(dict.fromkeys(topics))
        if min_share is not None:
            check_number(min_share, "min_share", min_val=0, max_val=1)
        check_is_fitted(labeler, "state_")
        state = labeler.state_
        self._space, reader = state.space, LabelReader(labeler.tree, state.model.classes_)
        branches = [reader.branch(self._space, topic) for topic in self.topics]
        indptr = np.cumsum([0, *map(len, branches)])
        self._members = indicator(np.concatenate(branches), indptr, len(self._space))
        self._mixture_model = None if min_share is None else state.mixture
        self.counts: Counter[str] = Counter()
        self.topic_counts: Counter[str] = Counter()

    def with_labeler(self, labeler: Labeler) -> Selector:
        """Return a selector of the same topics with another labeler, and counts of its own."""
        selector = copy(self)
        selector.labeler = labeler
        selector.counts, selector.topic_counts = Counter(), Counter()
        return selector

    def select(self, texts) -> list[dict[str, TopicMatch]]:
        """Return the topics of each text; none if it is not selected."""
        return self.select_counted(self.count(texts))

    def count(self, texts) -> sparse.csr_matrix:
        """Return the counts of known words, as :meth:`select_counted` takes them."""
        state, texts = self.labeler.state_, check_iterable(texts)
        return state.analyzer.count_known(texts, state.vocabulary, self.labeler.fields)

    def select_counted(self, counts: sparse.csr_matrix) -> list[dict[str, TopicMatch]]:
        """Return the topics of each text, given by its counts of known words."""
        n_texts, with_words = counts.shape[0], np.flatnonzero(counts.getnnz(axis=1))
        self.counts.update(read=n_texts)
        self.counts["no known word"] += n_texts - with_words.size
        selected: list[dict[str, TopicMatch]] = [{} for _ in range(n_texts)]
        if with_words.size:
            for row, matches in self._match(counts[with_words]).items():
                selected[with_words[row]] = matches
                self.topic_counts.update(matches.keys())
                self.counts.update(selected=1)
        return selected

    def _match(self, counts: sparse.csr_matrix) -> dict[int, dict[str, TopicMatch]]:
        """Return the topics of the rows that are selected."""
        Y = self._labels(counts)
        hits = (Y @ self._members.T).toarray() > 0
        rows = np.flatnonzero(self._is_selected(hits))
        hits, Y, shares = hits[rows], Y[rows], None
        if self._mixture_model is not None and rows.size:
            shares = self._mixture_model.mixture(counts[rows], Y) @ self._members.T
            hits &= shares >= self.min_share
            places = np.flatnonzero(self._is_selected(hits))
            rows, hits, Y, shares = rows[places], hits[places], Y[places], shares[places]
        return {
            row: self._describe(labels, hits[place], None if shares is None else shares[place])
            for place, (row, labels) in enumerate(zip(rows.tolist(), _rows(Y), strict=True))
        }

    def _labels(self, counts: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return the predicted label sets, empty where the labeler abstains."""
        labeler, model = self.labeler, self.labeler.model_
        X = labeler.state_.weigh(counts)
        Y = sparse.csr_matrix(choose_labels(labeler, labeler.state_, model, X))
        if labeler.abstain is None:
            return Y
        sure = is_sure(labeler, labeler.state_, model, X, None).astype(np.float64)
        return sparse.csr_matrix(sparse.diags_array(sure) @ Y)

    def _is_selected(self, hits: np.ndarray) -> np.ndarray:
        """Return whether each text is about enough topics, by which topics it is about."""
        return hits.sum(axis=1) >= (hits.shape[1] if self.every else 1)

    def _describe(self, labels: set[int], hits: np.ndarray, shares) -> dict[str, TopicMatch]:
        """Return the topics of one text, with its labels in each."""
        matches = {}
        for number in np.flatnonzero(hits).tolist():
            members = self._members.indices[slice(*self._members.indptr[number : number + 2])]
            names = sorted(self._space.ids[column] for column in labels.intersection(members))
            share = None if shares is None else float(shares[number])
            matches[self.topics[number]] = TopicMatch(names, share)
        return matches


def _rows(Y: sparse.csr_matrix) -> list[set[int]]:
    """Return the columns of each row."""
    columns = Y.indices.tolist()
    return [set(columns[start:stop]) for start, stop in pairwise(Y.indptr.tolist())]


def selected_line(
    document: Any, origin: str | Mapping[str, Any], topics: Mapping[str, TopicMatch]
) -> str:
    """Return a selected document with its topics as a line of JSON.

    ``origin`` is the line of JSON that the document was read from, of which nothing is changed, or
    the other columns of its row in a table.
    """
    selected = {topic: _to_dict(match) for topic, match in topics.items()}
    if isinstance(origin, str) and f'"{SELECTED}"' not in origin:
        body = origin.rstrip().removesuffix("}")
        return f'{body}, "{SELECTED}": {json.dumps(selected, ensure_ascii=False)}}}\n'
    content = json.loads(origin) if isinstance(origin, str) else document.to_dict() | dict(origin)
    return json.dumps({**content, SELECTED: selected}, ensure_ascii=False) + "\n"


def _to_dict(match: TopicMatch) -> dict[str, Any]:
    if match.share is None:
        return {"labels": match.labels}
    return {"labels": match.labels, "share": round(match.share, 6)}
