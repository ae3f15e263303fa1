"""Composition: join two test texts with one label each, and see whether both labels are found.

500 pairs of labels are drawn uniformly among those that are no training document's label set, then
a test document of each label. Rows marked "2 best" are of models that always predict two labels.
Baselines are tuned for samples F1 on a fifth of the training documents, and predict their best
label if none passes. The second table shows where pairs are missed: by the training documents of
the rarer label, and by the share of the shorter text in the known words of both. The third shows
the limit of the likelihood itself: the best of all pairs of labels if the model is told that there
are two, also with word distributions smoothed towards all documents. The last is LinearSVC by
threshold, since a threshold that suits ordinary documents does not suit joined ones.
"""

import argparse
import sys
from collections import Counter
from itertools import combinations

import numpy as np
from baselines import BASELINES, baseline_answers, svc_scores, tune
from common import markdown, select_models, split_documents
from parts import Part
from scipy import sparse
from sklearn.preprocessing import MultiLabelBinarizer

from polytopic import PDMM, PMM1, PMM2, NaiveBayes
from polytopic.decision import LabelDecision, Threshold, TopK, WorldModel
from polytopic.metrics import samples_f1, subset_accuracy
from polytopic.models import SetPrior
from polytopic.text import TextCounts

CORPORA = ("reuters21578", "debtags-en")
N_PAIRS = 500
RARITY = (10, 51)  # training documents of the rarer label: < 10, 10–50, > 50
BALANCE = (0.2, 0.35)  # share of the shorter text: at most a half


class EvenPrior(SetPrior):
    """As "labels", but all labels are equally likely, so that a rare label costs no more."""

    def _weigh(self):
        super()._weigh()
        share = self.set_docs @ self.sets.sum(axis=1).A1 / self.set_docs.sum() / self.sets.shape[1]
        none = self.sets.shape[1] * np.log1p(-share)
        self.log_odds = np.full(self.sets.shape[1], np.log(share) - np.log1p(-share))
        self.base = none - np.log(-np.expm1(none))
        self.log_seen = self.base + self.sets @ self.log_odds


class EvenPMM1(PMM1):
    """PMM1 with the even prior."""

    def _make_prior(self):
        return EvenPrior("labels", self._sets, self._set_docs)


class EvenPDMM(PDMM):
    """PDMM with the even prior."""

    def _make_prior(self):
        return EvenPrior("labels", self._sets, self._set_docs)


PAPERS = {"prior": "uniform", "decode": "greedy"}
LABELS = {"prior": "labels"}
MODELS = {  # estimators that learn from counts and label sets
    "NaiveBayes, 2 best": LabelDecision(NaiveBayes(), TopK(2)),
    "NaiveBayes + WorldModel": LabelDecision(NaiveBayes(), WorldModel()),
    "PMM1 paper": PMM1(**PAPERS),
    "PMM2 paper": PMM2(**PAPERS),
    "PDMM paper": PDMM(**PAPERS),
    "PMM1 paper, smoothing .1": PMM1(smoothing=0.1, **PAPERS),
    "PMM1 paper, smoothing .03": PMM1(smoothing=0.03, **PAPERS),
    "PMM1 default": PMM1(),
    "PMM1 default, map": PMM1(decode="map"),
    "PMM1 default, temperature 1": PMM1(temperature=1),
    "PMM1 default, smoothing .03": PMM1(smoothing=0.03),
    "PMM2 default": PMM2(),
    "PDMM default": PDMM(),
    "PMM1 labels": PMM1(**LABELS),
    "PMM1 labels, map": PMM1(decode="map", **LABELS),
    "PMM1 labels, temperature 1": PMM1(temperature=1, **LABELS),
    "PMM1 labels, smoothing .03": PMM1(smoothing=0.03, **LABELS),
    "PMM1 labels, smoothing .03, 2 best": LabelDecision(PMM1(smoothing=0.03, **LABELS), TopK(2)),
    "PMM1 even, smoothing .03, 2 best": LabelDecision(EvenPMM1(smoothing=0.03, **LABELS), TopK(2)),
    "PMM1 even": EvenPMM1(**LABELS),
    "PMM1 even, smoothing .03": EvenPMM1(smoothing=0.03, **LABELS),
    "PMM1 even, smoothing .03, temperature 6": EvenPMM1(smoothing=0.03, temperature=6, **LABELS),
    "PDMM even, smoothing .03, temperature 6": EvenPDMM(smoothing=0.03, temperature=6, **LABELS),
}
SMOOTHINGS = (1.0, 0.3, 0.1, 0.03, 0.01)  # of the best pairs
THRESHOLDS = (-0.75, -0.65, -0.6, -0.55, -0.45, -0.35)
WORLD_WORDS = 1000  # pseudo-words of all documents together that a label gets


def draw_pairs(train, test, seed=0):
    """Return pairs of test documents, each of one label, that make an unseen label set."""
    random = np.random.default_rng(seed)
    seen = {frozenset(d.labels) for d in train}
    known = frozenset().union(*seen)
    pools = {}
    for doc in test:
        if len(doc.labels) == 1 and doc.labels[0] in known:
            pools.setdefault(doc.labels[0], []).append(doc)
    labels = sorted(pools)
    pairs = {}
    while len(pairs) < N_PAIRS:
        a, b = (labels[k] for k in random.choice(len(labels), 2, replace=False))
        if frozenset((a, b)) not in seen:
            pair = [pools[label][random.integers(len(pools[label]))] for label in (a, b)]
            pairs.setdefault(frozenset(d.id for d in pair), pair)  # the same two texts only once
    return list(pairs.values())


def prepare(name, seed=0):
    """Return the training, test and joined documents, and what the tables split pairs by."""
    train, test = split_documents(name)
    pairs = draw_pairs(train, test, seed)
    counts, binarizer = TextCounts("en"), MultiLabelBinarizer()
    counts.fit([d.text for d in train])
    binarizer.fit([d.labels for d in train])

    def part(texts, labels):
        return Part(texts, counts.transform(texts), binarizer.transform(labels))

    parts = [part([d.text for d in docs], [d.labels for d in docs]) for docs in (train, test)]
    joined = part(
        ["\n".join(d.text for d in pair) for pair in pairs],
        [[d.labels[0] for d in pair] for pair in pairs],
    )
    n_docs = Counter(label for d in train for label in d.labels)
    rarer = np.array([min(n_docs[d.labels[0]] for d in pair) for pair in pairs])
    words = [counts.transform([pair[k].text for pair in pairs]).sum(axis=1).A1 for k in (0, 1)]
    return *parts, joined, rarer, np.minimum(*words) / np.maximum(sum(words), 1)


def all_answers(words, train, *others):
    """Yield each model's name and its answers for each part, None if it is not installed."""
    everything = select_models(MODELS | BASELINES, words)
    for name, model in everything.items():
        if name in MODELS:
            model.fit(train.X, train.Y)
            yield name, [model.predict(part.X) for part in others]
            continue
        try:
            answers = baseline_answers(*model, train, *others)
        except ImportError:
            yield f"{name}: not installed", None
            continue
        for rule, found in answers.items():
            yield f"{name}, {rule}", found


def best_pairs(theta, known, joined):
    """Return the pair of labels of the best mean word distribution, as an indicator."""
    pairs = np.array(list(combinations(known, 2)))
    found = np.zeros(joined.Y.shape, dtype=bool)
    X = joined.X
    for doc in range(X.shape[0]):
        place = slice(X.indptr[doc], X.indptr[doc + 1])
        words = theta[:, X.indices[place]]
        scores = np.zeros(len(pairs))
        for row, count in zip(words.T, X.data[place], strict=True):
            scores += count * np.log(row[pairs[:, 0]] + row[pairs[:, 1]])
        found[doc, pairs[np.argmax(scores)]] = True
    return found


def word_distributions(train):
    """Yield names and word distributions of PMM1."""
    for smoothing in SMOOTHINGS:
        theta = PMM1(smoothing=smoothing, **PAPERS).fit(train.X, train.Y).word_proba_
        yield f"smoothing {smoothing:g}", theta
    counts = theta / theta.min(axis=1, keepdims=True) - 1  # every label lacks some word
    counts *= smoothing
    world = train.X.sum(axis=0).A1 + smoothing
    counts += WORLD_WORDS * world / world.sum()
    yield f"{WORLD_WORDS} words of all documents", counts / counts.sum(axis=1, keepdims=True)


def score_pairs(model, answers, test, joined):
    """Return a row of figures, and which pairs were exactly recovered."""
    usual, found = (np.asarray(sparse.csr_matrix(a).todense()) > 0 for a in answers)
    both = (found & (joined.Y > 0)).sum(axis=1) == 2
    exact = both & (found.sum(axis=1) == 2)
    figures = samples_f1(joined.Y, found), exact.mean(), both.mean()
    usual = samples_f1(test.Y, usual), subset_accuracy(test.Y, usual)
    labels = f"{found.sum(axis=1).mean():.2f}"
    return (model, *map(_short, figures), labels, *map(_short, usual)), exact


def by_threshold(train, test, joined):
    """Return rows of LinearSVC at several thresholds."""
    settings, _ = tune(*BASELINES["LinearSVC"][:3], train)
    scores = svc_scores(settings, train, test, joined)
    return [
        score_pairs(
            f"LinearSVC, threshold {value}",
            [Threshold(value).decide(s) for s in scores],
            test,
            joined,
        )[0]
        for value in THRESHOLDS
    ]


def report(name, words, seed):
    """Print the tables of a corpus."""
    train, test, joined, rarer, balance = prepare(name, seed)
    groups = [np.digitize(rarer, RARITY) == k for k in range(3)]
    groups += [np.digitize(balance, BALANCE) == k for k in range(3)]
    quality, losses = [], []
    for model, answers in all_answers(words, train, test, joined):
        if answers is None:
            quality.append((model, *["–"] * 6))
            continue
        row, exact = score_pairs(model, answers, test, joined)
        print(*row, file=sys.stderr, flush=True)
        quality.append(row)
        losses.append((model, *(_short(_share(exact[group])) for group in groups)))
    print(f"\n{name}: {len(joined.texts)} joined pairs; on the right the ordinary test documents\n")
    header = ["model", "F", "exact", "both given", "labels", "test F", "test exact"]
    markdown(header, quality)
    edges = ["rarer < 10", "10–50", "> 50", "shorter < .2", ".2–.35", "> .35"]
    sizes = [f"{e} ({group.sum()})" for e, group in zip(edges, groups, strict=True)]
    print("\nShare of exactly recovered pairs (number of pairs)\n")
    markdown(["model", *sizes], losses)
    if words:  # what follows is of no single model
        return
    limits = []
    for smoothing, theta in word_distributions(train):
        found = best_pairs(theta, np.flatnonzero(train.Y.any(axis=0)), joined)
        exact = (found == (joined.Y > 0)).all(axis=1)
        shares = [exact, *(exact[group] for group in groups)]
        limits.append((smoothing, *(_short(_share(share)) for share in shares)))
    print("\nThe best of all pairs by PMM1's likelihood: share of exactly recovered pairs\n")
    markdown(["word distributions", "exact", *sizes], limits)
    print("\nLinearSVC by threshold\n")
    markdown(header, by_threshold(train, test, joined))


def _share(found):
    return found.mean() if found.size else np.nan


def _short(value):
    return "–" if np.isnan(value) else f"{value:.3f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="words in the names of models; all by default")
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--seed", type=int, default=0, help="of the pairs; 0 by default")
    arguments = parser.parse_args()
    for corpus in arguments.corpora:
        report(corpus, arguments.models, arguments.seed)
