"""Signatures estimate how similar texts are."""

import random

import numpy as np

from polytopic.desk.near_duplicates import RecentSignatures, signature


def words(rng, n):
    """Return random words."""
    return ["".join(rng.choices("abcdefghij", k=5)) for _ in range(n)]


def test_signatures_estimate_the_similarity():
    """The share of equal minima is near the Jaccard similarity of the runs of four words."""
    rng, errors = random.Random(0), []
    for _ in range(40):
        one = words(rng, 200)
        cut = rng.randrange(0, 150)
        other = one[:cut] + words(rng, 40) + one[cut:]
        runs = [{tuple(t[k : k + 4]) for k in range(len(t) - 3)} for t in (one, other)]
        exact = len(runs[0] & runs[1]) / len(runs[0] | runs[1])
        own, its = (np.frombuffer(signature(" ".join(t)), dtype="<u2") for t in (one, other))
        errors.append((own == its).mean() - exact)

    assert abs(np.mean(errors)) < 0.04
    assert np.std(errors) < 0.12


def test_short_texts_have_no_signature():
    """Too little to compare."""
    assert signature("a few words only, as in a headline") is None


def test_the_window_forgets_the_oldest():
    """Only the newest are compared, and an article is never a copy of itself."""
    rng = random.Random(1)
    own = [signature(" ".join(words(rng, 60))) for _ in range(4)]
    recent = RecentSignatures([("0", own[0]), ("1", own[1])], window=2)

    assert recent.find("x", own[0]) == "0"
    assert recent.find("0", own[0]) is None
    recent.add("2", own[2])
    assert recent.find("x", own[0]) is None
    assert recent.find("x", own[1]) == "1"
    recent.add("1", own[3])
    assert recent.find("x", own[1]) is None
    assert recent.find("x", own[3]) == "1"
    assert RecentSignatures().find("x", own[0]) is None
