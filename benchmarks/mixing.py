"""Do pages of two labels mix the words of both? Section 2.2 of Ueda and Saito, on web pages.

Usage: mixing.py [FIGURE.png] [--pseudo-words N]. The word distribution of a label comes from half
of the pages that have it alone; the other half are a control. It is smoothed by the words of all
pages: by as many as suit the other half best, or by N. Pages with exactly two labels are then
compared with mixtures ``weight * first + (1 - weight) * second`` of two labels; the first is the
one with more pages of its own. Gains are in bits per word over the distribution of all pages.
"""

import argparse
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from common import bag_counts, markdown
from yahoo import FULL, REDUCED

N_ALONE, N_BOTH = 50, 20  # fewest pages of a label alone, and of a pair
MAX_PAGES = 50  # of each kind that are looked at one by one, for each pair
PSEUDO_WORDS = (1e3, 3e3, 1e4, 3e4, 1e5, 3e5)  # of all pages, in each word distribution
STEPS = 25  # of bisection
GAINS = {
    "strangers": "two other labels,\nmean of all pairs",
    "best strangers": "two other labels,\nbest pair",
    "one stranger": "one of the two and\nanother, mean of all",
    "alone": "one of the two\nalone, the better",
    "half": "the two,\nhalf and half",
    "mixture": "the two,\nbest weight",
    "own words": "best weight, and\nwords of the pair",
}


class Pair(NamedTuple):
    """A pair of labels: gains, the best weight of all its pages, its rank among all pairs."""

    gains: dict
    weight: float
    rank: int
    n_pairs: int
    n_pages: int
    both: list  # for each page with both labels: best weight, and whether half beats each alone
    first: list  # the same for held-out pages of the first label alone
    second: list


def best_weight(counts, first, second):
    """Return the weight of the first distribution with the highest likelihood, by bisection."""
    low, high = 0.0, 1.0
    difference = first - second
    for _ in range(STEPS):
        middle = (low + high) / 2
        slope = counts @ (difference / (second + middle * difference))
        low, high = (middle, high) if slope > 0 else (low, middle)
    return (low + high) / 2


def bits(counts, words):
    """Return the log likelihood in bits per word."""
    return float(counts @ np.log2(words) / counts.sum())


def mix(weight, first, second):
    """Return a mixture."""
    return weight * first + (1 - weight) * second


def study_set(corpus, pseudo_words=PSEUDO_WORDS, seed=0):
    """Return the pairs of a set that have enough pages."""
    X, Y = bag_counts(corpus)
    X = X.tocsr().astype(float)
    X, Y = X[X.sum(axis=1).A1 > 0], Y[X.sum(axis=1).A1 > 0] > 0
    rng = np.random.default_rng(seed)
    alone = Y.sum(axis=1) == 1
    pages = {k: rng.permutation(np.flatnonzero(alone & Y[:, k])) for k in range(Y.shape[1])}
    labels = sorted((k for k in pages if pages[k].size >= N_ALONE), key=lambda k: -pages[k].size)
    halves = {k: np.array_split(pages[k], 2) for k in labels}
    learned = np.concatenate([halves[k][0] for k in labels])
    common = X[learned].sum(axis=0).A1 + 1
    common /= common.sum()

    def smooth(rows, prior, strength):
        counts = X[rows].sum(axis=0).A1
        return (counts + strength * prior) / (counts.sum() + strength)

    def held_out_bits(strength):
        return np.mean(
            [
                bits(X[halves[k][1]].sum(axis=0).A1, smooth(halves[k][0], common, strength))
                for k in labels
            ]
        )

    strength = max(pseudo_words, key=held_out_bits)
    smooth = partial(smooth, strength=strength)
    theta = {k: smooth(halves[k][0], common) for k in labels}
    found = []
    for pair in combinations(labels, 2):
        rows = np.flatnonzero((Y.sum(axis=1) == 2) & Y[:, list(pair)].all(axis=1))
        if rows.size >= N_BOTH:
            found.append(study_pair(X, rng.permutation(rows), pair, theta, common, smooth, halves))
    return found


def study_pair(X, rows, pair, theta, common, smooth, halves):
    """Return the figures of a pair of labels."""
    whole = X[rows].sum(axis=0).A1
    some = np.flatnonzero(whole)
    counts = whole[some]
    base = bits(counts, common[some])
    gain = {}
    for one in combinations(theta, 2):
        first, second = (theta[k][some] for k in one)
        weight = best_weight(counts, first, second)
        gain[one] = bits(counts, mix(weight, first, second)) - base
    first, second = (theta[k] for k in pair)
    weight = best_weight(counts, first[some], second[some])
    one_right = [value for one, value in gain.items() if len(set(one) & set(pair)) == 1]
    strangers = [value for one, value in gain.items() if not set(one) & set(pair)]
    # words that only pages of the pair have, learned from half of them for the other half
    own = []
    for learned, tested in zip(np.array_split(rows, 2), np.array_split(rows, 2)[::-1], strict=True):
        counted = X[tested].sum(axis=0).A1
        weight_learned = best_weight(X[learned].sum(axis=0).A1, first, second)
        words = smooth(learned, mix(weight_learned, first, second))
        own.append(bits(counted, words) - bits(counted, common))
    gains = {
        "strangers": np.mean(strangers),
        "best strangers": np.max(strangers),
        "one stranger": np.mean(one_right),
        "alone": max(bits(counts, words[some]) for words in (first, second)) - base,
        "half": bits(counts, mix(0.5, first, second)[some]) - base,
        "mixture": gain[pair],
        "own words": np.mean(own),
    }
    rank = 1 + sum(value > gain[pair] for value in gain.values())
    tested = rows, halves[pair[0]][1], halves[pair[1]][1]
    groups = [[study_page(X[row], first, second) for row in group[:MAX_PAGES]] for group in tested]
    return Pair(gains, weight, rank, len(gain), rows.size, *groups)


def study_page(x, first, second):
    """Return a page's best weight, and whether half and half is likelier than each alone."""
    counts, first, second = x.data, first[x.indices], second[x.indices]
    half = bits(counts, mix(0.5, first, second))
    between = half > max(bits(counts, first), bits(counts, second))
    return best_weight(counts, first, second), between


def mean_gain(pairs, kind):
    """Return the mean gain of pairs."""
    return np.mean([pair.gains[kind] for pair in pairs])


def weights(pairs, group):
    """Return the best weights of all pages of a group."""
    return np.array([page[0] for pair in pairs for page in getattr(pair, group)])


def between(pairs, group):
    """Return the share of pages for which half and half is likelier than each label alone."""
    return np.mean([page[1] for pair in pairs for page in getattr(pair, group)])


def show(studies):
    """Print tables by set, and means over the pairs of all sets with all words."""
    groups = {"all six": [pair for name in FULL for pair in studies[name]]}
    groups |= {"five reduced": [pair for name in REDUCED for pair in studies[name]]}
    rows = studies | groups
    print("\nGains in bits per word\n")
    markdown(
        ["set", "pairs", "pages", *GAINS, "best of all pairs", "ahead of"],
        [
            (
                name,
                len(pairs),
                sum(pair.n_pages for pair in pairs),
                *(f"{mean_gain(pairs, kind):.3f}" for kind in GAINS),
                f"{sum(pair.rank == 1 for pair in pairs)} of {len(pairs)}",
                f"{np.mean([1 - (pair.rank - 1) / (pair.n_pairs - 1) for pair in pairs]):.2f}",
            )
            for name, pairs in rows.items()
        ],
    )
    print("\nBest weights of pairs and of pages\n")
    table = []
    for name, pairs in rows.items():
        own = np.array([pair.weight for pair in pairs])
        cells = [f"{own.mean():.2f} ± {own.std():.2f}", f"{(abs(own - 0.5) <= 0.15).mean():.2f}"]
        for group in ("first", "both", "second"):
            values = weights(pairs, group)
            cells += [f"{np.median(values):.2f}", f"{between(pairs, group):.2f}"]
        table.append((name, *cells))
    heads = [
        f"{group}: {what}"
        for group in ("first", "both", "second")
        for what in ("median", "between")
    ]
    markdown(["set", "weight of pairs", "within .15 of ½", *heads], table)


def draw(path, pairs):
    """Draw weights of pages, weights of pairs and gains."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 0.8, 1.1))
    bins = np.linspace(0, 1, 21)
    titles = {
        "first": "pages of the first label alone",
        "both": "pages of both",
        "second": "pages of the second alone",
    }
    for (group, title), color in zip(titles.items(), ("C0", "black", "C1"), strict=True):
        values = weights(pairs, group)
        shares = np.full(values.size, 1 / values.size)
        left.hist(
            values, bins, weights=shares, histtype="step", color=color, label=title, linewidth=1.6
        )
    left.set(xlabel="best weight of the first label", ylabel="share of pages", title="Pages")
    left.legend(fontsize="small")
    middle.hist([pair.weight for pair in pairs], bins, color="0.6")
    middle.axvline(0.5, color="black", linestyle="--", linewidth=1)
    middle.set(xlabel="best weight of the first label", ylabel="pairs of labels")
    middle.set_title("All pages of a pair")
    values = [mean_gain(pairs, kind) for kind in GAINS]
    bars = right.barh(list(GAINS.values()), values, color=["0.8"] * 3 + ["C2"] * 4)
    right.bar_label(bars, fmt="%.2f", padding=3, fontsize="small")
    right.set(xlabel="gain in bits per word", title="Likelihood of the pages of both")
    right.margins(x=0.15)
    right.invert_yaxis()
    right.tick_params(axis="y", labelsize="small")
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", nargs="?")
    parser.add_argument("--pseudo-words", nargs="+", type=float, default=PSEUDO_WORDS)
    arguments = parser.parse_args()
    corpora = {name: f"yahoo-{name}-full" for name in FULL}
    corpora |= {name: f"yahoo-{name}" for name in REDUCED}
    studies = {name: study_set(corpora[name], arguments.pseudo_words) for name in corpora}
    show(studies)
    if arguments.figure:
        draw(arguments.figure, [pair for name in FULL for pair in studies[name]])
