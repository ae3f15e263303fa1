"""Measures from sums over documents, which may be counted in parts and added up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from polytopic.metrics.evaluation import SCORE_MEASURES
from polytopic.metrics.ranking import score_values
from polytopic.metrics.sets import BY_DOCUMENT, harmonic_mean

Labels = Collection[str]
COVERAGE = list(SCORE_MEASURES).index("coverage")


class SetTally:
    """How many labels are both true and predicted, true, and predicted: by document, by label.

    Attributes
    ----------
    by_document : Counter
        How many documents have each triple of these numbers.
    by_label : dict of str to ndarray
        The triple of each label that occurs.
    """

    def __init__(self) -> None:
        self.by_document: Counter[tuple[int, int, int]] = Counter()
        self.by_label: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(3, dtype=np.int64))

    def __getstate__(self):
        return self.by_document, dict(self.by_label)

    def __setstate__(self, state):
        fresh = SetTally()
        self.by_document, by_label = state
        self.by_label = fresh.by_label
        self.by_label.update(by_label)

    def add(self, true: Iterable[Labels], predicted: Iterable[Labels]) -> None:
        """Count documents."""
        for own, given in zip(map(set, true), map(set, predicted), strict=True):
            both = own & given
            self.by_document[len(both), len(own), len(given)] += 1
            for place, labels in enumerate((both, own, given)):
                for label in labels:
                    self.by_label[label][place] += 1

    def __add__(self, other: SetTally) -> SetTally:
        total = SetTally()
        for part in (self, other):
            total.by_document.update(part.by_document)
            for label, triple in part.by_label.items():
                total.by_label[label] = total.by_label[label] + triple
        return total

    def document_mean(self, measure: str) -> float:
        """Return the mean over documents of one of the measures by document."""
        triples = sorted(self.by_document)
        numbers = np.array([self.by_document[triple] for triple in triples])
        values = BY_DOCUMENT[measure](*np.array(triples).T)
        return float((values * numbers).sum() / numbers.sum())

    def micro(self) -> tuple[int, int, int]:
        """Return the numbers over all documents."""
        both, true, pred = (
            sum(triple[place] * number for triple, number in self.by_document.items())
            for place in range(3)
        )
        return both, true, pred

    def micro_f1(self) -> float:
        """Return the F of all pairs of document and label."""
        both, true, pred = self.micro()
        return 2 * both / (true + pred) if true + pred else 1.0

    def macro_f1(self, labels: Collection[str]) -> float:
        """Return the mean F of these labels."""
        both, true, pred = np.array([self.by_label.get(x, (0, 0, 0)) for x in labels]).T
        return float((2 * both / np.maximum(true + pred, 1)).mean())


class Tally:
    """All measures of answers to documents, from sums; those of two tallies add up.

    Parameters
    ----------
    classes : sequence of str
        The labels of the columns of scores: all that the model knows.
    tree : LabelTree, default=None
        What lies above the labels, for the hierarchical measures and those by level.

    Examples
    --------
    >>> one, other = Tally(["a", "b", "c"]), Tally(["a", "b", "c"])
    >>> one.add([["a", "b"]], [["a"]], [[3.0, 1.0, 2.0]])
    >>> other.add([["c"]], [["c"]], [[0.0, 1.0, 2.0]])
    >>> measures = (one + other).measures()
    >>> round(measures["samples_f1"], 3), measures["coverage"]
    (0.833, 2.0)
    """

    def __init__(self, classes: Sequence[str], tree=None) -> None:
        self.classes, self.tree = list(classes), tree
        self.plain, self.extended = SetTally(), SetTally()
        self.by_level: list[SetTally] = []  # above the last one, where labels are as they are
        self._scores = np.zeros(len(SCORE_MEASURES))
        self._out_of_reach = 0  # documents with a true label that no score reaches

    @property
    def n_docs(self) -> int:
        """Documents that were counted."""
        return self.plain.by_document.total()

    def add(self, true: Sequence[Labels], predicted: Sequence[Labels], scores) -> None:
        """Count documents: their true and predicted labels, and the scores of all classes."""
        if not len(true):
            return
        if self.tree is not None:
            self._add_levels(true, predicted)
        self.plain.add(true, predicted)
        self._add_scores(true, np.asarray(scores))

    def _add_scores(self, true, scores) -> None:
        column = {label: place for place, label in enumerate(self.classes)}
        known = np.array(
            [
                all(x in column and row[column[x]] > -np.inf for x in labels)
                for labels, row in zip(true, scores, strict=True)
            ]
        )
        self._out_of_reach += int((~known).sum())
        start = 0
        for values in score_values(true, scores, self.classes, list(SCORE_MEASURES.values())):
            stop = start + values[0].size
            values[COVERAGE] = values[COVERAGE][known[start:stop]]
            self._scores += [each.sum() for each in values]
            start = stop

    def _add_levels(self, true, predicted) -> None:
        found = {x for side in (true, predicted) for labels in side for x in labels}
        depth = self._depth(found.union(self.classes))
        self._deepen(depth)
        pairs = list(map(set, true)), list(map(set, predicted))
        above = {x: {x, *(self.tree.ancestors(x) if x in self.tree else ())} for x in found}
        self.extended.add(*([set().union(*(above[x] for x in s)) for s in side] for side in pairs))
        for level, tally in enumerate(self.by_level):
            up = {x: self.tree.at_level(x, level) if x in self.tree else x for x in found}
            tally.add(*([{up[x] for x in s} for s in side] for side in pairs))

    def _depth(self, labels) -> int:
        return 1 + max((self.tree.level(x) for x in labels if x in self.tree), default=0)

    def _deepen(self, depth: int) -> None:
        """Have a tally for each level but the last; labels so far lie no deeper than theirs."""
        while len(self.by_level) < depth:
            self.by_level.append(SetTally() + self.plain)

    def __add__(self, other: Tally) -> Tally:
        total = Tally(self.classes, self.tree)
        total.plain = self.plain + other.plain
        total.extended = self.extended + other.extended
        for part in (self, other):
            part._deepen(max(len(self.by_level), len(other.by_level)))
        total.by_level = [a + b for a, b in zip(self.by_level, other.by_level, strict=True)]
        total._scores = self._scores + other._scores
        total._out_of_reach = self._out_of_reach + other._out_of_reach
        return total

    def measures(self) -> dict[str, float]:
        """Return what :func:`polytopic.metrics.evaluate` gives, in its order."""
        if not self.n_docs:
            raise ValueError("no labelled document to measure on.")
        labels, sets = {*self.classes, *self.plain.by_label}, self.plain
        precision, recall = map(sets.document_mean, ("samples_precision", "samples_recall"))
        values = {
            "samples_f1": sets.document_mean("samples_f1"),
            "subset_accuracy": sets.document_mean("subset_accuracy"),
            "macro_f1": sets.macro_f1(labels),
            "micro_f1": sets.micro_f1(),
            "samples_precision": precision,
            "samples_recall": recall,
            "document_f1": float(harmonic_mean(precision, recall)),
        }
        if self.tree is not None:
            both, true, pred = self.extended.micro()
            values["hierarchical_precision"] = both / pred if pred else float(true == 0)
            values["hierarchical_recall"] = both / true if true else float(pred == 0)
            values["hierarchical_f1"] = self.extended.micro_f1()
        sums = self._scores.copy()
        sums[COVERAGE] += self._out_of_reach * len(labels)
        return values | dict(zip(SCORE_MEASURES, (sums / self.n_docs).tolist(), strict=True))

    def levels(self) -> dict[int, dict[str, float]]:
        """Return the measures at each level of the tree, labels replaced by those above them."""
        if self.tree is None:
            return {}
        labels = {*self.classes, *self.plain.by_label}
        found = {}
        for level, sets in enumerate(self.by_level):
            own = {self.tree.at_level(x, level) if x in self.tree else x for x in labels}
            found[level] = {
                "labels": len(own),
                "samples_f1": sets.document_mean("samples_f1"),
                "subset_accuracy": sets.document_mean("subset_accuracy"),
                "micro_f1": sets.micro_f1(),
                "macro_f1": sets.macro_f1(own),
            }
        return found
