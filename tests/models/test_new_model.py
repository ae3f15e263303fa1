"""A count model written as CONTRIBUTING describes works everywhere."""

import numpy as np
import pytest
from scipy import sparse, special

from polytopic import Document, Labeler, NaiveBayes, Store, load
from polytopic.models import CountModel, registry

TEXTS = [
    "The striker scored a goal in the match.",
    "A late goal won the match for the striker.",
    "The rover landed on Mars after months in orbit.",
    "A rover in orbit around Mars sent pictures.",
    "The crew watched the match from orbit.",
]
LABELS = [["sport"], ["sport"], ["space"], ["space"], ["space", "sport"]]


class SplitBayes(CountModel):
    """Naive Bayes that splits the words of a document equally among its labels."""

    name = "split"

    def __init__(self, *, smoothing=0.5):
        self.smoothing = smoothing

    def _estimate(self, matrix, sets):
        shares = sparse.diags_array(1.0 / np.diff(sets.indptr)) @ sets
        return sparse.csr_matrix(shares.T @ matrix)

    def _own_counts(self, X, sets):
        n_labels = np.repeat(np.diff(sets.indptr), np.diff(X.indptr))
        return np.repeat(X.data / n_labels, n_labels)

    def _log_likelihood(self, X, sets, theta=None):
        scores = self._scores(X, None if theta is None else np.log(theta), masked=False)
        scores = np.where(sets.toarray() > 0, scores, -np.inf)
        return special.logsumexp(scores, axis=1) - np.log(np.diff(sets.indptr))

    def _log_words(self, x, sets, theta=None):
        log_theta = self._log_theta if theta is None else np.log(theta)
        log_theta = log_theta[x.indices][:, sets.indices]
        return log_theta @ special.softmax(x.data @ log_theta)


registry.register(SplitBayes, "naive Bayes on split documents", options={"smoothing": "smoothing"})


@pytest.fixture
def labeler():
    """Return a labeler with the new model, given by name."""
    return Labeler("split").fit(TEXTS, LABELS)


def test_it_splits_documents():
    """A word of a document with two labels counts one half for each."""
    model = SplitBayes(smoothing=1.0).fit([[2, 0], [0, 3]], [["a", "b"], ["b"]])

    np.testing.assert_allclose(model.word_proba_, [[2 / 3, 1 / 3], [2 / 6, 4 / 6]])


def test_it_is_listed():
    """Commands and labelers list it, as a model that learns from counts."""
    assert "split" in registry.model_names("counts")
    assert registry.find_model("split").load() is SplitBayes
    with pytest.raises(ValueError, match="the name 'nb' is taken"):
        registry.register(type("Other", (NaiveBayes,), {}), "another")


def test_forgetting_is_exact(labeler):
    """After learning and forgetting a text, the model is the same to the bit."""
    before = labeler.model_.to_arrays()

    labeler.learn(["A new striker."], [["sport", "news"]])
    labeler.forget(["A new striker."], [["sport", "news"]])

    after = labeler.model_.to_arrays()
    assert {name: array.tobytes() for name, array in after.items()} == {
        name: array.tobytes() for name, array in before.items()
    }


def test_it_explains_itself(labeler):
    """The evidence of the words adds up to the score, also against another label."""
    explanation = labeler.explain("A goal from orbit.", ["sport"], why_not="space")

    sums = explanation.breakdown
    assert sum(word.evidence for word in explanation.labels[0].words) == pytest.approx(sums.words)
    assert sums.corpus + sums.words + sums.mixing == pytest.approx(sums.log_likelihood)
    assert sum(word.amount for word in explanation.why_not[0].words) == pytest.approx(
        explanation.why_not[0].difference - explanation.why_not[0].mixing
    )


def test_it_audits(labeler):
    """An audit finds a text with a wrong label."""
    texts, labels = [*TEXTS, "The rover sent pictures of Mars."], [*LABELS, ["sport"]]

    (suspect, *_) = labeler.fit(texts, labels).audit(texts, labels)

    assert (suspect.index, suspect.better) == (len(TEXTS), ["space"])


def test_it_is_saved(labeler, tmp_path):
    """A loaded model gives the same answers, and can learn."""
    labeler.save(tmp_path / "split.model")

    loaded = load(tmp_path / "split.model")

    assert loaded.suggest(TEXTS) == labeler.suggest(TEXTS)
    assert loaded.learn(["A goal."], [["sport"]]).predict(["goal"]) == [["sport"]]


def test_it_works_in_a_store(tmp_path):
    """A store fits and publishes it, and fits it again when documents come."""
    documents = [
        Document(str(place), text, labels=labels)
        for place, (text, labels) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    store = Store(tmp_path / "store.db", model="split")
    store.learn(documents)
    store.publish(store.fit())
    store.learn([Document("new", "A goal.", labels=["sport"])])

    labeler = store.labeler()

    assert labeler.model_.name == "split"
    assert labeler.counts_.n_docs == len(TEXTS) + 1
    store.close()
