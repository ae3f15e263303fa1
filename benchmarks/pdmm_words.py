"""Words of a document by how evenly its labels share them: Sato & Nakagawa, Tables 1 to 5.

The paper ranks the words of an abstract by the increasing sum of phi log phi, which it calls
entropy but which lacks a sign: words that the labels share most evenly come first. Here on
medline-cf, with ``Labeler.explain`` and ``order="paper"``: the tables for two test documents, one
with three labels and one with four, under their own labels, others, some of their own, and changed
shares, and in our order; then, over all test documents, a check of what the paper says such lists
show.
"""

from collections import Counter
from itertools import combinations

import numpy as np
from common import markdown, split_documents

from polytopic import PDMM, Labeler

SHOWN = 10


def read():
    """Return training and test documents of medline-cf with labels of 20 to 600 documents."""
    train, test = split_documents("medline-cf")
    docs = Counter(label for document in train + test for label in document.labels)
    used = {label for label, n in docs.items() if 20 <= n <= 600}
    return [[(d.text, sorted(used.intersection(d.labels))) for d in part] for part in (train, test)]


class WordLists:
    """The words of documents in the paper's order, by a labeler that learned other documents."""

    def __init__(self, documents):
        model = PDMM(smoothing=1.0, prior="uniform", decode="greedy", likelihood="paper")
        texts, labels = zip(*documents, strict=True)
        self.labeler = Labeler(model, min_df=1).fit(list(texts), list(labels))
        counts = self.labeler.counts_
        idf = np.log(counts.n_docs / counts.document_frequency)
        self.idf = dict(zip(counts.terms, idf.tolist(), strict=True))

    def explain(self, text, labels, mixture=None, order="paper"):
        """Return the explanation of a text under some labels, and shares of them if given."""
        return self.labeler.explain(text, labels, mixture=mixture, order=order)

    def show(self, text, labels, mixture=None, order="paper"):
        """Return the cells of a table: labels with shares, first and last words, tf-idf ranks."""
        explanation = self.explain(text, labels, mixture, order)
        tf = {word.term: word.count for word in explanation.labels[0].words}
        by_weight = sorted(tf, key=lambda term: (-tf[term] * self.idf[term], term))
        rank = {term: place for place, term in enumerate(by_weight, start=1)}
        words = [f"{word.term} ({rank[word.term]})" for word in explanation.keywords]
        shares = ", ".join(f"{r.label} {r.share:.3f}" for r in explanation.labels)
        return shares, ", ".join(words[:SHOWN]), ", ".join(words[-SHOWN:])


def shares_of(explanation):
    """Return the share of each label."""
    return {reason.label: reason.share for reason in explanation.labels}


def swapped(shares):
    """Return the same shares, the largest for the label that has the smallest, and so on."""
    order = sorted(shares, key=lambda label: (shares[label], label))
    return dict(zip(order, sorted(shares.values(), reverse=True), strict=True))


def tables(lists, documents, labels, random):
    """Print Tables 1 to 5 for the first documents with three and with four labels."""
    rows = []
    x, y = (next(d for d in documents if len(d[1]) == n) for n in (3, 4))
    others = sorted(random.choice([one for one in labels if one not in x[1]], 3, replace=False))
    rows.append(("X, its own", *lists.show(*x)))
    rows.append(("X, its own, our order", *lists.show(*x, order="specific")))
    rows.append(("X, others at random", *lists.show(x[0], others)))
    rows.append(
        ("X, its own, shares swapped", *lists.show(*x, swapped(shares_of(lists.explain(*x)))))
    )
    rows.append(("Y, its own", *lists.show(*y)))
    rows.append(("Y, its own, our order", *lists.show(*y, order="specific")))
    by_share = list(shares_of(lists.explain(*y)))
    rows.append(("Y, the two largest", *lists.show(y[0], by_share[:2])))
    rows.append(("Y, the two smallest", *lists.show(y[0], by_share[2:])))
    markdown(["labels given", "shares", f"first {SHOWN}", f"last {SHOWN}"], rows)


def means(lists, documents, labels, random):
    """Print the means over documents of what the paper says of its lists."""
    rows = {name: [] for name in ("its own", "as many others at random")}
    common = {name: [] for name in ("others at random", "half of its own", "swapped shares")}
    turned = []
    for text, own in documents:
        others = random.choice([one for one in labels if one not in own], len(own), replace=False)
        half = random.choice(own, max(2, len(own) // 2), replace=False)
        plain = lists.explain(text, own)
        shares = shares_of(plain)
        found = {
            "others at random": lists.explain(text, others.tolist()),
            "half of its own": lists.explain(text, half.tolist()),
            "swapped shares": lists.explain(text, own, swapped(shares)),
        }
        rows["its own"].append(_summary(lists, plain))
        rows["as many others at random"].append(_summary(lists, found["others at random"]))
        first = {word.term for word in plain.keywords[:SHOWN]}
        for name, explanation in found.items():
            common[name].append(len(first & {word.term for word in explanation.keywords[:SHOWN]}))
        of_half = shares_of(found["half of its own"])
        turned += [
            (shares[a] - shares[b]) * (of_half[a] - of_half[b]) < 0
            for a, b in combinations(half.tolist(), 2)
        ]
    print(f"\n{len(documents)} test documents with three labels or more; means:\n")
    markdown(
        [
            "labels given",
            *(
                f"{what}, {part} {SHOWN}"
                for what in ("idf", "largest share")
                for part in ("first", "last")
            ),
        ],
        [(name, *(f"{v:.2f}" for v in np.mean(values, axis=0))) for name, values in rows.items()],
    )
    for name, values in common.items():
        print(f"\nof the first {SHOWN} words, {np.mean(values):.1f} stay with {name}")
    print(f"\n{np.mean(turned):.0%} of {len(turned)} pairs of labels change places in the mixture")


def _summary(lists, explanation):
    """Return the mean idf of the first and of the last words, and their mean largest shares."""
    ends = explanation.keywords[:SHOWN], explanation.keywords[-SHOWN:]
    return [np.mean([lists.idf[word.term] for word in end]) for end in ends] + [
        np.mean([word.share for word in end]) for end in ends
    ]


def report():
    """Print the tables of two documents, and the means over all."""
    train, test = read()
    lists, random = WordLists([d for d in train if d[1]]), np.random.default_rng(0)
    labels = lists.labeler.classes_.tolist()
    several = [(text, own) for text, own in test if len(own) >= 3]
    several = [d for d in several if len(lists.explain(*d).keywords) >= 4 * SHOWN]
    tables(lists, several, labels, random)
    means(lists, several, labels, random)


if __name__ == "__main__":
    report()
