"""Explanations: evidence adds up, keywords depend on the labels, and why not another label."""

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polytopic import MML, PDMM, Document, Labeler
from polytopic.decision import TopK
from polytopic.models.registry import model_names
from tests.explain.news import LABELS, TEXTS, fitted
from tests.strategies import TERMS
from tests.strategies import texts as corpora

TEXT = "A goal, a match and a rover in orbit; the goal of an orchestra. Zebra!"
questions = st.lists(st.sampled_from([*TERMS, "unknown"]), max_size=12).map(" ".join)
JUDGING_ALL = [name for name in model_names() if name != "col"]  # models that score every label set


# Their scores are sums in single precision, the evidence of words is in double precision.
SINGLE_PRECISION = ("svm", "knn", "stack", "shortlist-svm", "candidate-stack")


def close(value, other, scale=1.0, model=None):
    """Return whether two sums of numbers of this size, or two scores of a model, are equal."""
    tolerance = 1e-6 if model in SINGLE_PRECISION else 1e-9
    return math.isclose(value, other, rel_tol=tolerance, abs_tol=tolerance * max(1.0, abs(scale)))


def all_words(explanation):
    """Return the words of all labels."""
    return [word for reason in explanation.labels for word in reason.words]


def set_score(labeler, text, labels):
    """Return the model's own score of a label set, which does not come from its words."""
    model, x = labeler.model_, labeler.transform([text])
    if hasattr(model, "log_joint"):
        return model.log_joint(x, [labels])[0]
    if not hasattr(model, "predict_sets"):  # it scores each label on its own
        columns = np.flatnonzero(np.isin(model.classes_, labels))
        return model.assess(x, columns)[1][[0], columns].sum()  # candidates or not
    ranked = model.predict_sets(x, n_best=2**labeler.classes_.size)
    return dict(zip(ranked.sets[0], ranked.scores[0], strict=False))[tuple(labels)]


@st.composite
def labelers(draw, model):
    """Draw a labeler, a text and one or more of its labels."""
    model = MML(rank=None) if model == "mml" else model  # in double precision
    labeler = Labeler(model, language=None)
    corpus = draw(corpora())
    assume(any(text for text, _ in corpus))
    labeler.fit(*zip(*corpus, strict=True))
    labels = draw(st.sets(st.sampled_from(labeler.classes_.tolist()), min_size=1))
    return labeler, draw(questions), sorted(labels)


@pytest.mark.parametrize("model", JUDGING_ALL)
@given(data=st.data())
def test_the_breakdown_adds_up_to_the_models_score(model, data):
    """The parts of corpus, words and mixing add up to the log likelihood, and so to the score."""
    labeler, text, labels = data.draw(labelers(model))
    b = labeler.explain(text, labels).breakdown

    assert close(b.corpus + b.words + b.mixing, b.log_likelihood, b.corpus)
    assert close(b.log_likelihood / b.temperature + b.log_prior, b.score)
    assert close(b.score, set_score(labeler, text, labels), model=model)
    if hasattr(labeler.model_, "log_likelihood"):
        x = labeler.transform([text])
        assert close(b.log_likelihood, labeler.model_.log_likelihood(x, [labels])[0])


@pytest.mark.parametrize("model", model_names())
@given(data=st.data())
def test_all_evidence_is_in_the_breakdown(model, data):
    """The evidence of all words, by label or by place, adds up to that of the breakdown."""
    labeler, text, labels = data.draw(labelers(model))
    explanation = labeler.explain(text, labels)
    words = explanation.breakdown.words

    assert close(math.fsum(word.evidence for word in all_words(explanation)), words)
    assert close(math.fsum(reason.evidence for reason in explanation.labels), words)
    assert close(math.fsum(place.evidence for place in explanation.places), words)


@pytest.mark.parametrize("model", model_names())
@given(data=st.data())
def test_shares_sum_to_one(model, data):
    """The labels' shares of the text, of each word and of each place sum to one."""
    labeler, text, labels = data.draw(labelers(model))
    explanation = labeler.explain(text, labels)
    shares: dict[str, float] = {}
    for word in all_words(explanation):
        shares[word.term] = shares.get(word.term, 0.0) + word.share

    assert close(sum(reason.share for reason in explanation.labels), 1)
    assert all(close(share, 1) for share in shares.values())
    assert all(close(sum(place.shares.values()), 1) for place in explanation.places)


@pytest.mark.parametrize("model", JUDGING_ALL)
@given(data=st.data())
def test_why_not_adds_up(model, data):
    """Words, mixing and prior add up to the difference from the best set with the label."""
    labeler, text, labels = data.draw(labelers(model))
    others = sorted(set(labeler.classes_) - set(labels))
    reasons = labeler.explain(text, labels, why_not=others).why_not
    score = set_score(labeler, text, labels)

    assert [reason.label for reason in reasons] == others
    for reason in reasons:
        amounts = [amount for _, amount in reason.words]
        assert reason.label in reason.labels
        assert amounts == sorted(amounts, reverse=True)
        assert close(math.fsum([*amounts, reason.mixing, reason.prior]), reason.difference)
        other = set_score(labeler, text, reason.labels)
        assert close(reason.difference, score - other, model=model)


def test_scores_are_those_of_suggestions():
    """Each label has the score and the probability of its suggestion."""
    labeler = fitted()

    reasons = {reason.label: reason for reason in labeler.explain(TEXT, ["film", "sport"]).labels}
    suggested = {s.label: s for s in labeler.suggest([TEXT], k=9)[0]}

    for label, reason in reasons.items():
        assert reason.score == suggested[label].score
        assert reason.probability == suggested[label].probability


def test_predicted_labels_are_explained():
    """Without labels, those of predict are explained, also with a rule."""
    for labeler in (fitted(), fitted("nb"), fitted("nb", rule=TopK(3))):
        explained = [reason.label for reason in labeler.explain(TEXT).labels]

        assert sorted(explained) == labeler.predict([TEXT])[0]


def test_keywords_are_ranked_by_entropy():
    """Keywords are sorted by the entropy of their label shares."""
    explanation = fitted().explain(TEXT, ["space", "sport"])
    shares = {place.term: np.array([*place.shares.values()]) for place in explanation.places}
    entropies = [keyword.entropy for keyword in explanation.keywords]

    assert {keyword.term for keyword in explanation.keywords} == {"goal", "match", "orbit", "rover"}
    assert entropies == sorted(entropies)
    for keyword in explanation.keywords:
        p = shares[keyword.term]
        assert keyword.entropy == pytest.approx(-(p * np.log(p)).sum())
        assert keyword.share == p.max()
        assert keyword.evidence > 0


def test_keywords_change_with_the_labels():
    """The same text has other keywords under other labels, and the same ones in another order."""
    labeler = fitted()
    ranked = {
        labels: [keyword.term for keyword in labeler.explain(TEXT, labels).keywords]
        for labels in (("sport",), ("music", "sport"), ("space", "sport"))
    }

    assert ranked["sport",] == ["goal", "match"]
    assert ranked["music", "sport"] == ["orchestra", "goal", "match"]
    assert ranked["space", "sport"] == ["orbit", "match", "goal", "rover"]


def test_keywords_in_the_order_of_the_paper():
    """All words are sorted by increasing sum of p log p: those shared most evenly come first."""
    labeler, labels = fitted("pdmm"), ["music", "space", "sport"]
    text = f"{TEXT} An orchestra played in the hall."

    keywords = labeler.keywords(text, labels, order="paper")

    shares = {
        place.term: list(place.shares.values()) for place in labeler.explain(text, labels).places
    }
    sums = {term: sum(p * math.log(p) for p in own if p > 0) for term, own in shares.items()}
    assert [word.term for word in keywords] == sorted(sums, key=lambda t: (round(sums[t], 12), t))
    for word in keywords:
        assert word.entropy == pytest.approx(-sums[word.term], abs=1e-12)
        assert word.share == max(shares[word.term])
    ours = labeler.keywords(text, labels)
    assert ours == labeler.explain(text, labels).keywords
    assert set(ours) < set(keywords)
    assert keywords == labeler.explain(text, labels, order="paper").keywords
    with pytest.raises(ValueError, match="order == 'best', must be one of specific, paper"):
        labeler.keywords(text, labels, order="best")


@pytest.mark.parametrize("likelihood", ["bound", "paper"])
def test_the_own_mixture_of_a_text_changes_nothing(likelihood):
    """A text's own shares, given by name or in order, give the same explanation."""
    labeler, labels = fitted(PDMM(likelihood=likelihood)), ["music", "space", "sport"]
    plain = labeler.explain(TEXT, labels, why_not="film")
    shares = {reason.label: reason.share for reason in plain.labels}

    by_name = labeler.explain(TEXT, labels, why_not="film", mixture=shares)
    in_order = labeler.explain(TEXT, mixture=[shares[one] for one in labels], labels=labels)
    named = labeler.explain(TEXT, mixture=shares, shares=True)

    for explanation in (by_name, in_order, named):
        assert {r.label: r.share for r in explanation.labels} == pytest.approx(shares)
        assert [word.term for word in explanation.keywords] == [
            word.term for word in plain.keywords
        ]
        assert explanation.breakdown.score == pytest.approx(plain.breakdown.score)
        for place, other in zip(explanation.places, plain.places, strict=True):
            assert place.shares == pytest.approx(other.shares, abs=1e-8)
            assert place.evidence == pytest.approx(other.evidence, abs=1e-7)
    assert by_name.why_not[0].difference == pytest.approx(plain.why_not[0].difference)


def test_words_follow_the_mixture():
    """A label with a larger share of the text has more of its words, up to all of them."""
    labeler, labels = fitted("pdmm"), ["space", "sport"]

    explained = [labeler.explain(TEXT, labels, mixture=[p, 1 - p]) for p in (0.2, 0.5, 0.9, 1.0)]

    goals = [{p.term: p.shares["space"] for p in one.places}["goal"] for one in explained]
    assert goals == sorted(goals)
    assert goals[0] < 0.1 < goals[2] < goals[3] == 1
    assert [{r.label: r.share for r in one.labels}["space"] for one in explained] == [
        pytest.approx(p) for p in (0.2, 0.5, 0.9, 1.0)
    ]
    for one in explained:
        breakdown = one.breakdown
        total = breakdown.corpus + breakdown.words + breakdown.mixing
        assert close(total, breakdown.log_likelihood)
        assert math.isfinite(breakdown.score)
        assert all(close(sum(place.shares.values()), 1) for place in one.places)
        json.dumps(one.to_dict(), allow_nan=False)
    ratios = labeler.explain(TEXT, mixture={"sport": 3, "space": 3})
    assert ratios.to_dict() == explained[1].to_dict()


@pytest.mark.parametrize(
    ("labels", "mixture", "reason"),
    [
        (["space", "sport"], [1], "mixture has 1 shares and labels 2; give one per label"),
        (["space", "sport"], [1, -1], "mixture gives 'sport' -1, must be a number >= 0"),
        (["space", "sport"], [1, math.nan], "mixture gives 'sport' nan, must be a number >= 0"),
        (["space", "sport"], [1, "2"], "mixture gives 'sport' '2', must be a number >= 0"),
        (["space", "sport"], [0, 0], "mixture gives every label a share of 0"),
        (["space", "space"], [1, 1], "mixture has two shares of 'space'"),
        (["space", "sport"], {"space": 1, "film": 1}, "mixture names 'film', which is not one of"),
        (["space"], 0.5, "mixture == 0.5, must be a mapping of labels to shares, or a list"),
        (["space"], "0.5", "mixture == '0.5', must be a mapping of labels to shares, or a list"),
        (None, [0.5, 0.5], "labels must be a list in the same order"),
        ({"space", "sport"}, [0.5, 0.5], "labels must be a list in the same order"),
        (None, {"opera": 1}, "'opera'"),
    ],
)
def test_mixtures_that_make_no_sense(labels, mixture, reason):
    """The error says in one sentence what is wrong."""
    with pytest.raises(ValueError, match=reason):
        fitted("pdmm").explain(TEXT, labels, mixture=mixture)


@pytest.mark.parametrize("model", ["pmm1", "mml"])
def test_a_given_mixture_needs_a_mixture_of_documents(model):
    """Other models name one that accepts a mixture."""
    with pytest.raises(ValueError, match="Use model='pdmm'"):
        fitted(model).explain(TEXT, mixture={"space": 0.5, "sport": 0.5}, shares=True)


def test_keywords_of_one_label_are_ranked_by_evidence():
    """All entropies are 0 under one label, so the evidence decides."""
    keywords = fitted().explain(TEXT, ["space"]).keywords

    assert [keyword.entropy for keyword in keywords] == [0.0] * len(keywords)
    evidence = [keyword.evidence for keyword in keywords]
    assert evidence == sorted(evidence, reverse=True)
    assert {keyword.term for keyword in keywords} == {"orbit", "rover"}


def test_evidence_against_another_label():
    """Words of the labels are evidence against a set without them, those of the other for it."""
    (reason,) = fitted().explain(TEXT, ["sport"], why_not="music").why_not
    amounts = dict(reason.words)

    assert amounts["goal"] > 0 > amounts["orchestra"]
    assert reason.words[-1].term == "orchestra"


def test_a_better_set_with_another_label():
    """Given labels may be worse than the best set with the label in question."""
    (reason,) = fitted().explain("goal match striker", ["film"], why_not=["sport"]).why_not

    assert reason.labels == ["sport"]
    assert reason.difference < 0


def test_labels_that_cannot_be_asked_about():
    """``why_not`` rejects explained labels and unknown ones."""
    labeler = fitted()

    with pytest.raises(ValueError, match="why_not == 'sport', must not be one of the expl"):
        labeler.explain("A goal", ["sport"], why_not="sport")
    with pytest.raises(ValueError, match="label 'golf' is not known"):
        labeler.explain("A goal", why_not=["golf"])
    with pytest.raises(ValueError, match="labels is empty"):
        labeler.explain("A goal", [])


def test_a_text_without_known_words():
    """A text without known words has equal shares, no keywords, and no evidence."""
    explanation = fitted().explain("Zebra", ["film", "sport"], why_not="music")

    assert [reason.share for reason in explanation.labels] == [0.5, 0.5]
    assert (explanation.keywords, explanation.places) == ([], [])
    assert explanation.breakdown.words == explanation.breakdown.corpus == 0
    assert explanation.why_not[0].words == []
    assert explanation.unknown == ["zebra"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("İstanbul GOAL ﬁlm", ["GOAL", "ﬁlm"]),
        ("दूरबीन orbit ‏ירח orbit", ["orbit", "orbit"]),
        ("🎬 film\u0301 film🎬goal", ["film", "goal"]),
        ("go\u00adal, \u202egoal", ["go\u00adal", "goal"]),
    ],
)
def test_places_in_any_script(text, words):
    """Places are positions in the given text, whatever characters precede them."""
    places = fitted().explain(text).places

    assert [text[place.start : place.end] for place in places] == words


def test_places_in_fields():
    """A place has the name of its field, and its evidence is multiplied by the field's weight."""
    labeler = fitted(fields={"title": 2, "note": 0})
    text = {"title": "A goal", "body": "The match: goal", "note": "goal"}

    explanation = labeler.explain(Document("1", fields=text))

    places = [
        (place.field, text[place.field][place.start : place.end]) for place in explanation.places
    ]
    assert places == [("title", "goal"), ("body", "match"), ("body", "goal")]
    first, _, last = explanation.places
    assert first.evidence == pytest.approx(2 * last.evidence)
    assert sum(p.evidence for p in explanation.places) == pytest.approx(explanation.breakdown.words)


def test_a_bag_of_words_has_no_places():
    """The words of a bag have no places, but are explained."""
    explanation = fitted().explain({"goal": 2, "match": 1, "zebra": 1})

    assert explanation.places == []
    assert [word.count for word in explanation.labels[0].words] == [2, 1]
    assert explanation.unknown == ["zebra"]


def test_json_is_strict():
    """An infinite score, as of a single label, becomes null."""
    labeler = Labeler("pmm1").fit(["goal", "match"], [["sport"], ["sport"]])

    explanation = json.loads(json.dumps(labeler.explain("goal").to_dict(), allow_nan=False))

    assert explanation["labels"][0]["score"] is None
    assert explanation["labels"][0]["words"][0]["term"] == "goal"
    assert explanation["places"][0] == {
        "start": 0,
        "end": 4,
        "term": "goal",
        "shares": {"sport": 1.0},
        "evidence": explanation["breakdown"]["words"],
        "field": None,
    }
    assert set(explanation) == {
        "labels",
        "keywords",
        "breakdown",
        "why_not",
        "places",
        "unknown",
        "unit",
        "known",
        "warning",
    }


def test_evidence_of_a_linear_model_is_exact():
    """A word's evidence is what it adds to the score, and its count is that of the text."""
    labeler = fitted("mml")
    text = "A goal, a goal, a match and a rover in orbit"

    explanation = labeler.explain(text, ["space", "sport"])
    x, model = labeler.transform([text]), labeler.model_

    goal = {r.label: word for r in explanation.labels for word in r.words if word.term == "goal"}
    breakdown = model.explain_words(x, labeler.state_.space.encode([["space", "sport"]]))
    added = x.data[:, None] * breakdown.by_label
    row = x.indices.tolist().index(labeler.vocabulary_.index["goal"])
    assert [goal[label].evidence for label in ("space", "sport")] == added[row].tolist()
    assert goal["sport"].evidence > goal["space"].evidence
    assert goal["sport"].count == 2
    assert [place.evidence for place in explanation.places[:2]] == [
        pytest.approx(added[row].sum() / 2)
    ] * 2
    assert (explanation.unit, explanation.breakdown.corpus) == ("score", 0)


@pytest.mark.parametrize("shares", [False, True])
def test_a_word_of_every_text_has_no_weight(shares):
    """With ltc, it is listed for all labels with its count, but without evidence."""
    labeler = Labeler("mml").fit([f"{text} News." for text in TEXTS], LABELS)
    text = "News of a goal in orbit: news!"

    explanation = labeler.explain(text, ["space", "sport"], why_not="film", shares=shares)

    places = [place for place in explanation.places if place.term == "news"]
    assert [text[place.start : place.end] for place in places] == ["News", "news"]
    assert [place.evidence for place in places] == [0, 0]
    assert all(close(sum(place.shares.values()), 1) for place in places)
    for reason in explanation.labels:
        (word,) = (word for word in reason.words if word.term == "news")
        assert (word.count, word.evidence) == (2, 0)
        assert word.share == places[0].shares[reason.label]
    assert dict(explanation.why_not[0].words)["news"] == 0
    assert "news" not in [keyword.term for keyword in explanation.keywords]
    assert explanation.unknown == []


def test_shares_of_a_mixture():
    """Shares are those of a PMM1 that is fitted once; the evidence stays the model's."""
    labeler, mixture = fitted("mml"), fitted("pmm1")

    shared = labeler.explain(TEXT, ["space", "sport"], shares=True)
    own, mixed = (each.explain(TEXT, ["space", "sport"]) for each in (labeler, mixture))

    assert {r.label: r.share for r in shared.labels} == pytest.approx(
        {r.label: r.share for r in mixed.labels}
    )
    for place, other in zip(shared.places, mixed.places, strict=True):
        assert place.shares == pytest.approx(other.shares)
    assert {r.label: r.evidence for r in shared.labels} == {r.label: r.evidence for r in own.labels}
    assert shared.breakdown == own.breakdown
    assert labeler.state_.mixture is labeler.state_.mixture
    assert mixture.explain(TEXT, shares=True).to_dict() == mixture.explain(TEXT).to_dict()
