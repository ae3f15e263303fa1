"""Label sets that keep a promised recall."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic import Labeler, Store, load
from polytopic.corpus import load_sample
from polytopic.decision import TopK
from polytopic.errors import ModelFileError
from polytopic.labeler.guarantee import certain_scores, threshold_for_recall
from polytopic.metrics import samples_recall
from polytopic.modelfile import read_model, write_model

NEWS = load_sample()
PROMISE = {"recall": 0.9}


@pytest.fixture(scope="module")
def labeler():
    """Return a labeler with a promise, fitted on news."""
    return Labeler("svm", guarantee=PROMISE).fit(NEWS[:250])


# The threshold


@st.composite
def held_out(draw):
    """Draw scores and labels of a few documents."""
    n_docs, n_labels = draw(st.integers(2, 30)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    own = rng.random((n_docs, n_labels)) < 0.4
    own[np.arange(n_docs), rng.integers(n_labels, size=n_docs)] = True
    scores = rng.integers(-3, 4, size=own.shape).astype(float)
    scores[rng.random(own.shape) < 0.1] = -np.inf
    scores[rng.random(own.shape) < 0.1] = np.inf
    return scores, own


@given(held_out(), st.sampled_from([0.3, 0.5, 0.7, 0.9]))
def test_the_threshold_is_the_highest_that_keeps_the_promise(case, level):
    """The recalls of all documents add up to the promise for one document more."""
    scores, own = case
    least = (len(own) + 1) * level - 1e-9

    def recall(threshold):
        chosen = (scores >= threshold) & (scores > -np.inf)
        return ((chosen & own).sum(axis=1) / own.sum(axis=1)).sum()

    try:
        threshold = threshold_for_recall(scores, own, level)
    except ValueError:
        assert recall(-np.inf) < least
        return

    assert recall(threshold) >= least
    finite = scores[np.isfinite(scores)]
    higher = finite[finite > threshold]
    if higher.size and recall(np.inf) < least:
        assert recall(higher.min()) < least


def test_labels_that_no_threshold_removes_have_infinite_scores():
    """The best label, and the fallback of a document without known words."""
    scores = np.array([[1.0, 3.0, 2.0], [0.0, 0.0, 0.0]])
    sets = np.array([[True, True, False], [False, False, True]])

    certain = certain_scores(scores, sets, np.array([True, False]))

    assert certain.tolist() == [[1.0, np.inf, 2.0], [-np.inf, -np.inf, np.inf]]


# The labeler


@pytest.mark.parametrize("model", ["mml", "svm", "pmm1"])
def test_the_promise_is_kept_on_other_documents(model):
    """Higher promises mean more labels; the recall on unseen news is near the promise or above."""
    true = [document.labels for document in NEWS[250:]]

    answers = {
        level: Labeler(model, guarantee={"recall": level}).fit(NEWS[:250]).predict(NEWS[250:])
        for level in (0.6, 0.9)
    }

    sizes = {level: sum(map(len, sets)) for level, sets in answers.items()}
    assert sizes[0.6] < sizes[0.9]
    assert all(map(all, answers.values()))  # none is empty
    for level, sets in answers.items():
        assert samples_recall(true, sets) >= level - 0.08


def test_all_answers_have_the_same_labels(labeler):
    """Predictions, suggestions, explanations and files agree; certainty is that of these sets."""
    text = NEWS[260].text

    predicted = labeler.predict([text])[0]

    assert labeler.suggest([text])[0].labels == predicted
    assert sorted(reason.label for reason in labeler.explain(text).labels) == predicted
    assert 0 <= labeler.certainty([text])[0] <= 1


def test_the_promise_is_saved(labeler, tmp_path):
    """A loaded labeler has the same threshold, and predicts the same labels."""
    labeler.save(tmp_path / "model")

    loaded = load(tmp_path / "model")

    assert loaded.guarantee == PROMISE
    assert loaded.state_.threshold == labeler.state_.threshold
    assert loaded.predict(NEWS[250:]) == labeler.predict(NEWS[250:])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"threshold": None}, "there must be a threshold"),
        ({"guarantee": None}, "there must be a threshold"),
        ({"threshold": "low"}, "threshold"),
        ({"threshold": [0.1]}, "threshold"),
        ({"threshold": 10**400}, "finite"),
        ({"guarantee": {"recall": 2}}, "recall"),
        ({"guarantee": {"precision": 0.9}}, "guarantee"),
        ({"guarantee": 0.9}, "guarantee"),
        ({"abstain": 0.5}, "use one of them"),
    ],
)
def test_impossible_promises_in_files_are_rejected(labeler, tmp_path, changes, reason):
    """A file with a promise has a threshold, and nothing that contradicts it."""
    labeler.save(tmp_path / "model", counts=False)
    manifest, arrays = read_model(tmp_path / "model")
    manifest = json.loads(json.dumps(manifest))
    manifest["settings"] |= changes
    write_model(tmp_path / "other", manifest, arrays)

    with pytest.raises(ModelFileError, match=reason):
        load(tmp_path / "other")


@pytest.mark.parametrize("model", ["svm", "pmm1"])
def test_learning_keeps_the_threshold(model):
    """It is one of the things that are chosen in fit; without it, learning cannot choose it."""
    fitted = Labeler(model, guarantee=PROMISE).fit(NEWS[:200])
    threshold = fitted.state_.threshold

    assert fitted.learn(NEWS[200:250]).state_.threshold == threshold
    assert fitted.forget(NEWS[200:250]).state_.threshold == threshold
    late = Labeler(model).fit(NEWS[:50]).set_params(guarantee=PROMISE)
    with pytest.raises(ValueError, match="guarantee was not set in fit"):
        late.predict(["A goal"])


def test_a_store_keeps_the_promise(tmp_path):
    """A published model has the threshold, also after it was fitted again."""
    with Store(tmp_path / "news.db") as store:
        store.learn(NEWS[:200])
        labeler = store.fit("pmm1", guarantee=PROMISE)
        store.publish(labeler)
        store.learn(NEWS[200:210])

        again = store.labeler()

    assert again.guarantee == PROMISE
    assert again.state_.threshold == labeler.state_.threshold


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"guarantee": 0.9}, r"guarantee == 0.9, must be \{'recall': NUMBER\} or None"),
        ({"guarantee": {"f1": 0.9}}, "must be {'recall': NUMBER} or None"),
        ({"guarantee": {"recall": 0.9, "f1": 1}}, "must be {'recall': NUMBER} or None"),
        ({"guarantee": {"recall": 1}}, "recall == 1, must be < 1"),
        ({"guarantee": {"recall": 0}}, "recall == 0, must be > 0"),
        ({"guarantee": {"recall": float("nan")}}, "recall == nan, must be finite"),
        ({"guarantee": PROMISE, "rule": TopK(2)}, "guarantee and rule == .* use one of them"),
        ({"guarantee": PROMISE, "abstain": 0.5}, "guarantee and abstain == 0.5 .* use one of them"),
        ({"guarantee": PROMISE, "features": [len]}, "features need texts; use one of them"),
    ],
)
def test_impossible_promises_are_rejected(settings, reason):
    """Each error says what is needed."""
    with pytest.raises((TypeError, ValueError), match=reason):
        Labeler(**settings).fit(NEWS[:20])


def test_too_few_documents_cannot_promise_much():
    """The error says how much is possible."""
    texts, labels = ["goal match", "orbit", "goal", "orbit moon"], [["a"], ["b"], ["a"], ["b"]]

    with pytest.raises(ValueError, match=r"4 held-out documents allow at most 0\.\d+\. Some of"):
        Labeler("svm", guarantee=PROMISE).fit(texts, labels)
