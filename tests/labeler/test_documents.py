"""Labelers whose model is fitted on documents: rows, learning, forgetting, weights, abstention."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from polytopic import MML, PMM1, CoL, Document, Labeler, NaiveBayes, PolytopicError
from polytopic.corpus import load_sample
from polytopic.counts import RowCollector
from polytopic.decision import TopK
from polytopic.labeler import reading
from polytopic.labels import read_targets
from polytopic.text import TextCounts
from polytopic.text.weights import TermWeights
from tests.labeler.test_files import same_arrays
from tests.labeler.test_labeler import LABELS, TEXTS, fitted
from tests.strategies import texts as text_corpora

QUESTIONS = ["ball goal", "moon star book", "song", ""]


@pytest.fixture(scope="module")
def sample():
    """Return the sample's documents and a labeler of four fifths of them."""
    documents = load_sample()
    return documents, Labeler().fit([d for n, d in enumerate(documents) if n % 5])


@settings(max_examples=50)
@given(
    a=text_corpora(),
    b=text_corpora(),
    min_df=st.integers(1, 2),
    weights=st.sampled_from(["ltc", "tf"]),
)
def test_forgetting_is_exact(a, b, min_df, weights):
    """Learn A and B, then forget B: weights, answers, vocabulary and rows are those of A."""
    assume(any(text for text, _ in a))
    settings = {"language": None, "min_df": min_df, "max_terms": 4, "weights": weights}
    labeler = Labeler(**settings)
    try:
        alone = clone(labeler).fit(*zip(*a, strict=True))
    except ValueError:  # no term is in enough documents
        assume(False)
    both = clone(labeler).fit(*zip(*a, strict=True))

    both.learn(*zip(*b, strict=True)).forget(*zip(*b, strict=True))

    assert both.vocabulary_ == alone.vocabulary_
    assert both.counts_ == alone.counts_
    assert same_arrays(both.documents_, alone.documents_)
    assert same_arrays(both.model_, alone.model_)
    assert both.suggest(QUESTIONS) == alone.suggest(QUESTIONS)


@settings(max_examples=50)
@given(a=text_corpora(), b=text_corpora())
def test_learning_in_steps_is_fitting_all(a, b):
    """In the same order and with a fixed C, learning in steps gives the same bits as one fit."""
    a = [("ball", ["sport"]), *a]
    labeler = Labeler(MML(), language=None)
    whole = clone(labeler).fit(*zip(*a, *b, strict=True))

    steps = clone(labeler).fit(*zip(*a, strict=True)).learn(*zip(*b, strict=True))

    assert same_arrays(steps.model_, whole.model_)
    assert steps.vocabulary_ == whole.vocabulary_


def test_one_of_several_equal_documents_is_forgotten():
    """A text that was learned twice can be forgotten twice, but not a third time."""
    labeler = fitted().learn(TEXTS[:1] * 2, LABELS[:1] * 2)

    labeler.forget(TEXTS[:1], LABELS[:1])
    assert labeler.counts_.n_docs == 6
    labeler.forget(TEXTS[:1], LABELS[:1])
    assert same_arrays(labeler.model_, fitted().model_)

    labeler.forget(TEXTS[:1], LABELS[:1])
    with pytest.raises(ValueError, match="were not learned"):
        labeler.forget(TEXTS[:1], LABELS[:1])
    assert labeler.counts_.n_docs == 4


def test_matching_sums_are_not_enough_to_forget():
    """Even if the counts add up, each document's own row must be there."""
    texts, labels = ["goal match", "orbit moon"], [["a"], ["a"]]
    labeler = Labeler(language=None).fit([*texts, "goal"], [*labels, ["b"]])

    with pytest.raises(ValueError, match="nothing was changed"):
        labeler.forget(["goal moon"], [["a"]])
    with pytest.raises(ValueError, match="nothing was changed"):
        labeler.forget(["goal match"], [["b"]])

    assert labeler.documents_.X.shape[0] == 3


def test_fractional_counts_can_be_forgotten():
    """Rows are compared, not subtracted, so field weights may be fractions."""
    labeler = Labeler(language=None, fields={"title": 0.3})
    texts = [{"title": "goal", "body": "match"}, {"title": "moon", "body": "goal"}]
    labeler.fit(texts, [["sport"], ["space"]])
    alone = clone(labeler).fit(texts[:1], [["sport"]])

    labeler.forget(texts[1:], [["space"]])

    assert same_arrays(labeler.model_, alone.model_)


def test_tuned_values_stay(sample):
    """Learning and forgetting keep the tuned values of members and the calibration curves."""
    documents, _ = sample
    labeler = Labeler().fit(documents[:120])
    tuned = labeler.model_.tuned_

    labeler.learn(documents[120:150])

    assert set(tuned) >= {"members", "curves", "set_curve"}
    assert labeler.model_.tuned_ == tuned


@pytest.mark.parametrize("model", [MML(), None], ids=["mml", "default"])
def test_a_warm_start_is_close(sample, model):
    """It starts from the present dual variables; nearly all answers are those of a cold fit."""
    documents, _ = sample
    cold = Labeler(model).fit(documents[:250])
    warm = clone(cold).fit(documents[:250])

    cold.learn(documents[250:]).forget(documents[:10])
    warm.learn(documents[250:], warm=True).forget(documents[:10], warm=True)

    questions = documents[10:]
    same = [a == b for a, b in zip(cold.predict(questions), warm.predict(questions), strict=True)]
    assert np.mean(same) > 0.9
    assert warm.counts_ == cold.counts_
    assert same_arrays(warm.documents_, cold.documents_)


def test_learning_needs_documents():
    """Without its documents a labeler says what to do; count models have no warm start."""
    labeler = fitted(keep_documents=False)

    for change in (labeler.learn, labeler.forget):
        with pytest.raises(PolytopicError, match="keep_documents=True"):
            change(TEXTS[:1], LABELS[:1])
    with pytest.raises(ValueError, match="warm == True is not for"):
        fitted(model="pmm1").learn(TEXTS[:1], LABELS[:1], warm=True)
    assert labeler.documents_ is None
    assert fitted(model="pmm1").documents_ is None


def test_documents_are_read_block_by_block(monkeypatch):
    """Reading an iterator in blocks, each with its own terms and labels, gives the same model."""
    documents = [
        Document(str(n), text=text, labels=labels)
        for n, (text, labels) in enumerate(zip([*TEXTS, "no label"], [*LABELS, []], strict=True))
    ]
    whole = Labeler().fit(documents)
    monkeypatch.setattr(reading, "BLOCK", 2)

    blocks = Labeler().fit(iter(documents))

    assert same_arrays(blocks.documents_, whole.documents_)
    assert same_arrays(blocks.model_, whole.model_)
    assert blocks.documents_.label_names == LABELS


@pytest.mark.parametrize("scheme", ["ltc", "tfidf", "tf", "binary"])
def test_the_model_sees_weights(scheme):
    """A model that is fitted on documents sees weights; other models see counts."""
    counts = TextCounts("en").fit_transform(TEXTS)
    labeler, other = fitted(weights=scheme), fitted(model="pmm1", weights=scheme)

    expected = TermWeights(scheme).fit_transform(counts).toarray()

    np.testing.assert_allclose(labeler.transform(TEXTS).toarray(), expected)
    np.testing.assert_array_equal(other.transform(TEXTS).toarray(), counts.toarray())
    with pytest.raises(ValueError, match="weights == 'bm25', must be one of"):
        fitted(weights="bm25")


def test_model_names_set_parameters():
    """Given by name, MML tunes C and is calibrated; an instance keeps its own parameters."""
    named, plain = fitted(model="mml").model_, fitted(model=MML()).model_

    assert (named.C, named.calibrate, named.random_state) == ("auto", True, 0)
    assert (plain.C, plain.calibrate) == (1.0, False)


@pytest.mark.parametrize("n_texts", [1, 2, 3])
def test_a_few_texts_are_enough(n_texts):
    """They are too few to tune anything, but are learned all the same."""
    labeler = Labeler().fit(TEXTS[1 : n_texts + 1], LABELS[1 : n_texts + 1])

    assert labeler.predict(["A goal", ""]) == [["sport"], ["sport" if n_texts == 1 else "space"]]
    assert labeler.explain("A goal in orbit").labels
    assert labeler.suggest(["A goal"])[0][0].chosen


@pytest.mark.parametrize("model", ["mml", PMM1(), "pdmm", CoL(60, predict_mode="sets")])
def test_it_abstains_when_unsure(model, sample):
    """If the set is less probable than required, there are no labels and no chosen suggestion."""
    documents, _ = sample
    questions = [d for n, d in enumerate(documents) if n % 5 == 0]
    labeler = Labeler(model).fit([d for n, d in enumerate(documents) if n % 5])
    answers = labeler.predict(questions)

    labeler.abstain = 0.6
    sure = labeler.predict(questions)
    suggested = labeler.suggest(questions, k=3)

    has_labels = [bool(labels) for labels in sure]
    assert 0 < sum(has_labels) < len(questions)
    assert all(a == b for a, b in zip(sure, answers, strict=True) if b and a)
    chosen = [sorted(s.label for s in row if s.chosen) for row in suggested]
    assert chosen == [*sure]
    assert all(len(row) >= 3 for row in suggested)
    right = np.array([sorted(d.labels) == a for d, a in zip(questions, answers, strict=True)])
    assert right[has_labels].mean() > right.mean()


def test_it_is_sure_of_the_only_label_allowed(sample):
    """With one label allowed there is one label set, so the labeler does not abstain."""
    documents, labeler = sample
    labeler = clone(labeler).fit(documents[:200])
    labeler.abstain = max(labeler.model_.tuned_["set_curve"][1])

    answers = labeler.suggest(["The striker scored.", "Xyzzy"], include=["sport/football"])

    assert [[s.label for s in row if s.chosen] for row in answers] == [["sport/football"]] * 2


def test_abstention_needs_probabilities():
    """A model without label set probabilities is rejected before anything is learned."""
    with pytest.raises(ValueError, match=r"use MML\(calibrate=True\)"):
        fitted(model=MML(), abstain=0.5)
    with pytest.raises(ValueError, match="NaiveBayes has none"):
        fitted(model=NaiveBayes(), abstain=0.5)
    with pytest.raises(ValueError, match="not with the rule TopK"):
        fitted(rule=TopK(2), abstain=0.5)
    with pytest.raises(ValueError, match="at least 30 documents"):
        fitted(abstain=0.5).predict(["Mars"])
    with pytest.raises(ValueError, match=r"abstain == 2, must be <= 1"):
        fitted(abstain=2)


def test_words_of_labels_have_weights():
    """The words of a linear model are ranked by their weight for the label."""
    (space, sport) = fitted().label_terms(3)

    assert (space["label"], space["documents"]) == ("space", 3)
    weights = [word["weight"] for word in space["words"]]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0
    assert sport["words"][0]["term"] in ("match", "goal", "football")


def test_a_rule_works_on_margins():
    """A rule also decides on the scores of MML."""
    assert fitted(rule=TopK(2)).predict(["Mars"]) == [["space", "sport"]]


def test_topics_of_labels(sample):
    """A labeler with the correlated labeling model sees counts, and forgets exactly."""
    documents, _ = sample
    train, test = ([d for n, d in enumerate(documents) if bool(n % 5) == part] for part in (1, 0))
    labeler = Labeler("col").fit(train)
    text, before = test[0].text, labeler.suggest(test)

    reasons = labeler.explain(text, why_not="science/space")
    labeler.learn(test[:3]).forget(test[:3])

    assert labeler.weights_ is None
    assert labeler.score([d.text for d in test], [d.labels for d in test]) > 0.85
    assert reasons.breakdown.corpus + reasons.breakdown.words == pytest.approx(
        reasons.breakdown.log_likelihood, abs=1e-9
    )
    assert reasons.why_not[0].label in reasons.why_not[0].labels
    assert labeler.suggest(test) == before
    with pytest.raises(ValueError, match="warm == True is not for CoL"):
        labeler.learn(test[:3], warm=True)
    with pytest.raises(ValueError, match="predict_mode='sets'"):
        Labeler("col", abstain=0.5).fit(train)


def test_the_map_of_a_model_with_topics(sample):
    """Its covariance shows which labels go together, and its topics are on the map."""
    documents, _ = sample

    label_map = Labeler(CoL(60)).fit(documents).map()

    assert label_map.measure == "covariance"
    assert label_map.topics
    assert all(pair.documents > 0 for pair in label_map.positive + label_map.negative)
    shares = [share for topic in label_map.topics for _, share in topic.labels]
    assert 0 < min(shares) <= max(shares) <= 1


def test_the_row_collector_leaves_its_input_unchanged():
    """Rows sort their terms; the matrix that was added keeps its own order."""
    X = sparse.csr_matrix([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    added, collector = X.copy(), RowCollector()

    collector.add(added, ["c", "b", "a"], read_targets([["x"], ["y"]]))
    rows = collector.rows()

    assert added.toarray().tolist() == X.toarray().tolist()
    assert rows.terms == ("a", "b", "c")
    assert rows.X.toarray().tolist() == [[0, 2, 1], [4, 3, 0]]
