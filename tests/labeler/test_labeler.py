"""Labeler: from texts to labels, learning and forgetting."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from polytopic import PMM1, Document, Labeler, NaiveBayes, PolytopicError
from polytopic.corpus import load_sample, stratified_split
from polytopic.decision import TNorm, TopK, TreeCohort, WorldModel, tune_decision
from polytopic.labeler import Answer, Suggestion
from polytopic.metrics import samples_f1
from polytopic.text import Analyzer, TextCounts
from tests.models.test_count_models import same_parameters
from tests.strategies import texts as text_corpora

TEXTS = [
    "The striker scored a late goal and the match was won.",
    "A goal in extra time decided the football match.",
    "The rover landed on Mars and sent pictures from orbit.",
    "Engineers launched a satellite into orbit around Mars.",
    "A football was kicked in orbit: the goal of the rover.",
]
LABELS = [["sport"], ["sport"], ["space"], ["space"], ["space", "sport"]]


def fitted(**settings):
    """Return a labeler of the five texts."""
    return Labeler(**settings).fit(TEXTS, LABELS)


def test_predicts_names():
    """Answers are lists of label names, one list per text."""
    answers = fitted().predict(["The match had one goal.", "In orbit around Mars, a goal, a match"])

    assert answers == [["sport"], ["space", "sport"]]


def test_certainty_of_a_mixture():
    """It is the posterior of the predicted label set, which is the most probable one."""
    labeler = Labeler("pmm1").fit(TEXTS, LABELS)
    texts = [*TEXTS, "", "A rover, a match."]

    certainties = labeler.certainty(texts)

    sets = labeler.model_.predict_sets(labeler.transform(texts), 3)
    assert certainties == pytest.approx(np.exp(sets.scores[:, 0]))
    assert np.all((certainties > 0) & (certainties <= 1))
    assert labeler.certainty([]).shape == (0,)


@pytest.mark.parametrize("settings", [{"model": "nb"}, {"model": "pmm1", "rule": TopK(k=1)}])
def test_certainty_of_independent_labels(settings):
    """If the model has no posterior over sets, each label is right or wrong by itself."""
    labeler = Labeler(**settings).fit(TEXTS, LABELS)
    proba = labeler.predict_proba(TEXTS)

    expected = [np.prod([max(p, 1 - p) for p in row]) for row in proba]

    assert labeler.certainty(TEXTS) == pytest.approx(expected)


def test_texts_without_known_words_get_the_commonest_set():
    """An empty text, or one of unknown words, gets the most frequent label set."""
    labeler = Labeler().fit([*TEXTS, "Both of them"], [*LABELS, ["sport"]])

    assert labeler.predict(["", "zzz qqq", "the of and"]) == [["sport"]] * 3


@pytest.mark.parametrize("model", ["nb", "pmm1"])
@given(a=text_corpora(), b=text_corpora(), min_df=st.integers(1, 3))
def test_forgetting_is_exact_with_a_cut_vocabulary(model, a, b, min_df):
    """The vocabulary is a view: a term that was too rare enters it, and leaves it again."""
    settings = {"language": None, "min_df": min_df, "max_terms": 4}
    frequency = Counter(term for text, _ in a for term in set(text.split()))
    assume(any(count >= min_df for count in frequency.values()))
    alone = Labeler(model, **settings).fit(*zip(*a, strict=True))
    both = Labeler(model, **settings).fit(*zip(*a, strict=True))

    both.learn(*zip(*b, strict=True)).forget(*zip(*b, strict=True))

    assert both.vocabulary_ == alone.vocabulary_
    assert both.counts_ == alone.counts_
    assert same_parameters(both.model_, alone.model_)


@given(a=text_corpora(), b=text_corpora())
def test_learning_is_fitting_all(a, b):
    """Learning in steps gives the same bits as learning at once."""
    b = [("ball", ["sport"]), *b]
    whole = Labeler("pmm1", language=None).fit(*zip(*a, *b, strict=True))

    steps = Labeler("pmm1", language=None).fit(*zip(*b, strict=True)).learn(*zip(*a, strict=True))

    assert same_parameters(steps.model_, whole.model_)
    assert steps.vocabulary_ == whole.vocabulary_


@pytest.mark.parametrize("settings", [{"model": "pmm1"}, {}])
def test_new_labels_and_words_are_learned(settings):
    """What was never seen before is learned with its first document."""
    labeler = fitted(**settings)

    labeler.learn(["The orchestra played a symphony."], [["music"]])

    assert labeler.classes_.tolist() == ["music", "space", "sport"]
    assert labeler.predict(["A symphony for orchestra"]) == [["music"]]


def test_documents_bags_and_fields_are_texts():
    """A document, a bag of words and a text with fields are accepted as a text."""
    labeler = Labeler(language=None, fields={"title": 2})
    documents = [
        Document("1", text="goal match", labels=["sport"]),
        Document("2", counts={"orbit": 2}, labels=["space"]),
        Document("3", fields={"title": "orbit", "body": "goal"}, labels=["space", "sport"]),
    ]

    labeler.fit(iter(documents))

    assert labeler.counts_.terms == ("goal", "match", "orbit")
    assert labeler.counts_.matrix.toarray().tolist() == [[0, 0, 2], [1, 0, 2], [1, 1, 0]]
    assert labeler.predict([{"goal": 3}, {"title": "orbit"}]) == [["sport"], ["space"]]


def test_suggestions_are_ranked():
    """Predicted labels come first, with scores and probabilities; k limits the rest."""
    (best, other), (only,) = (
        fitted().suggest(["A goal!", "Mars"], k=2)[0],
        fitted().suggest(["Mars"], k=1)[0],
    )

    assert (best.label, best.chosen, other.label, other.chosen) == ("sport", True, "space", False)
    assert best.score > 0 > other.score
    assert 1 >= best.probability > other.probability >= 0
    assert only.label == "space"


def test_an_answer_is_a_sequence_of_suggestions():
    """It has its labels, and warns of a text with no known words."""
    answer, unknown = fitted().suggest(["A goal!", "Xyzzy"])

    assert answer.labels == ["sport"]
    assert [s.label for s in answer] == [answer[0].label, answer[1].label] == ["sport", "space"]
    assert (answer.warning, answer.abstained) == (None, False)
    assert unknown.warning == "The model does not know any word in this text."
    assert "<td>sport</td>" in answer._repr_html_()


KNOWN = [  # for a model that knows "goal" and "orbit"
    ("goal orbit", 1.0),
    ("The goal, the xyzzy", 1 / 2),  # stop words are not terms
    ("goal goal goal xyzzy", 3 / 4),
    ("Xyzzy", 0.0),
    ("The", 0.0),
    ("", 0.0),
    ({}, 0.0),
    ({"goal": 2, "xyzzy": 3}, 2 / 5),
    ({"title": "goal", "body": "xyzzy goal"}, 4 / 5),  # of 3 + 2 × 1 occurrences
    ({"title": "", "body": "plugh"}, 0.0),
    (Document("1", "orbit plugh"), 1 / 2),
]


@pytest.mark.parametrize("model", ["nb", "mml"])
def test_an_answer_says_how_much_of_the_text_is_known(model):
    """Occurrences of terms are counted; the first and later uses of a word give the same answer."""
    labeler = Labeler(model, fields={"title": 3}).fit(["goal", "orbit"], [["sport"], ["space"]])
    texts, expected = zip(*KNOWN, strict=True)

    for _ in range(2):
        assert [answer.known for answer in labeler.suggest(texts)] == list(expected)
    assert [labeler.suggest([text])[0].known for text in texts] == list(expected)
    assert [answer.warning is None for answer in labeler.suggest(texts)] == [
        share > 0 for share in expected
    ]


def test_an_answer_as_plain_values():
    """Names are given on request, numbers may be rounded, and infinity is None."""
    answer = Answer([Suggestion("a", math.inf, 1 / 3, True)], known=2 / 3, warning="Beware.")

    assert answer.to_dict(str.upper, digits=2) == {
        "labels": ["a"],
        "suggestions": [
            {"label": "a", "name": "A", "score": None, "probability": 0.33, "chosen": True}
        ],
        "known": 0.67,
        "abstained": False,
        "warning": "Beware.",
    }
    assert answer.to_dict()["suggestions"][0]["probability"] == 1 / 3


def test_suggestions_may_be_restricted():
    """Labels can be excluded or included for one request, and there is still an answer."""
    labeler = fitted()

    without = labeler.suggest(["A goal!", ""], exclude=["sport"])
    alone = labeler.suggest(["Mars"], include=["sport"])

    assert [[s.label for s in row] for row in (*without, *alone)] == [
        ["space"],
        ["space"],
        ["sport"],
    ]
    assert all(row[0].chosen for row in (*without, *alone))
    with pytest.raises(ValueError, match="leave no label"):
        labeler.suggest(["Mars"], include=["sport"], exclude=["sport"])
    with pytest.raises(ValueError, match="label 'music' is not known"):
        labeler.suggest(["Mars"], exclude=["music"])


def test_explanations_have_shares_and_places():
    """Shares of labels and of words sum to one, and each place points into the text."""
    text = "A GOAL, seen from orbit around Mars; the goal of a match. Zebra!"

    explanation = fitted().explain(text)

    assert [reason.label for reason in explanation.labels] == ["sport", "space"]
    assert sum(reason.share for reason in explanation.labels) == pytest.approx(1)
    assert [text[p.start : p.end] for p in explanation.places] == [
        "GOAL",
        "orbit",
        "Mars",
        "goal",
        "match",
    ]
    for place in explanation.places:
        assert sum(place.shares.values()) == pytest.approx(1)
    assert explanation.unknown == ["zebra"]


def test_explanations_of_given_labels():
    """Any label can be explained; the error for an unknown label names it."""
    labeler = fitted()

    assert [r.label for r in labeler.explain("Mars", ["sport"]).labels] == ["sport"]
    assert labeler.explain("", ["sport", "space"]).labels[0].share == 0.5
    with pytest.raises(ValueError, match="label 'music' is not known"):
        labeler.explain("Mars", ["music"])


def test_evidence_is_against_the_corpus():
    """A word's evidence is its count times the log of how much likelier the label makes it."""
    labeler = fitted(model="nb")
    reason = labeler.explain("goal goal", ["sport"]).labels[0]
    model, word = labeler.model_, labeler.vocabulary_.index["goal"]

    expected = 2 * (np.log(model.word_proba_[1, word]) - model.world_log_proba_[word])
    assert reason.words[0].evidence == pytest.approx(expected)
    assert reason.evidence == pytest.approx(expected)


def test_rules_decide():
    """A rule chooses the labels, for any model."""
    assert fitted(model="nb", rule=TopK(2)).predict(["Mars"]) == [["space", "sport"]]
    assert fitted(model="nb", rule=WorldModel(1.0)).predict(["Mars", ""]) == [["space"], ["space"]]
    with pytest.raises(
        ValueError, match="needs a model of the whole corpus, which PMM1 does not have"
    ):
        fitted(model="pmm1", rule=WorldModel())
    with pytest.raises(ValueError, match="TreeCohort needs the tree of labels"):
        fitted(model="nb", rule=TreeCohort())


def test_a_tuned_rule():
    """A rule is tuned on the scores of the fitted model, and set without another fit."""
    labeler = fitted(model="nb")

    tuned = tune_decision(
        labeler.model_, labeler.transform(TEXTS), LABELS, [TNorm(), TopK()], cv="prefit"
    )
    labeler.rule = tuned.best_rule

    assert samples_f1(LABELS, labeler.predict(TEXTS)) == pytest.approx(tuned.best_score)


def test_in_a_grid_and_a_pipeline():
    """It is a scikit-learn estimator on texts; its score is the samples F1."""
    grid = {"model": [NaiveBayes(), PMM1()], "model__smoothing": [0.1, 1.0], "min_df": [1, 2]}

    search = GridSearchCV(Labeler(), grid, cv=2).fit(TEXTS * 4, LABELS * 4)
    pipeline = Pipeline([("strip", FunctionTransformer(list)), ("labels", Labeler())])

    assert search.best_score_ > 0.9
    assert pipeline.fit(TEXTS, LABELS).predict(["Mars"]) == [["space"]]
    assert len(cross_val_predict(Labeler(), TEXTS * 2, LABELS * 2, cv=2)) == 10


def test_text_counts_in_a_pipeline():
    """The transformer and a bare model do what a labeler does."""
    pipeline = Pipeline([("counts", TextCounts("en")), ("model", PMM1())]).fit(TEXTS, LABELS)
    labeler = fitted(model="pmm1")

    np.testing.assert_allclose(
        pipeline.decision_function(TEXTS), labeler.decision_function(TEXTS), rtol=1e-9
    )


def test_clones_keep_their_settings():
    """Cloning copies the settings and nothing learned."""
    labeler = fitted(model=PMM1(smoothing=0.3), analyzer=Analyzer("de"), min_df=2)

    copy = clone(labeler)

    assert copy.get_params()["model__smoothing"] == 0.3
    assert copy.analyzer == Analyzer("de")
    assert not hasattr(copy, "model_")


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        ("one text", [["a"]], "texts is one str, must be a list of texts"),
        (["a"], [["a"], ["b"]], "1 texts, but labels for 2"),
        (["goal"], [[1, 0]], "labels must be names"),
        (["goal"], None, "target y is None"),
        (["goal"], [[]], "no labelled document"),
        (["the"], [["a"]], "no term occurs in min_df == 1 of the 1 labelled documents"),
    ],
)
def test_bad_input_is_rejected(texts, labels, sentence):
    """The error names each wrong argument."""
    with pytest.raises(ValueError, match=sentence):
        Labeler().fit(texts, labels)


def test_unknown_models_are_named():
    """The error lists the models that exist."""
    with pytest.raises(ValueError, match="model == 'magic', must be one of mml, pmm1"):
        Labeler("magic").fit(TEXTS, LABELS)
    with pytest.raises(TypeError, match="model is a TopK"):
        Labeler(TopK()).fit(TEXTS, LABELS)


@pytest.mark.parametrize("settings", [{"model": "pmm1"}, {}])
def test_forgetting_what_was_not_learned(settings):
    """The labeler stays as it was."""
    labeler = fitted(**settings)
    before = labeler.counts_.copy()

    with pytest.raises(ValueError, match="cannot be removed; nothing was changed"):
        labeler.forget(["A striker in orbit"], [["sport"]])
    with pytest.raises(ValueError, match="nothing was forgotten"):
        labeler.forget(TEXTS, LABELS)
    assert labeler.counts_ == before


def test_a_single_label_works():
    """A single label is always the answer, and can be explained."""
    labeler = Labeler().fit(TEXTS, [["news"]] * 5)

    assert labeler.predict(["Mars", "nothing"]) == [["news"]] * 2
    assert labeler.explain("Mars").labels[0].share == 1
    assert labeler.suggest(["Mars"])[0][0].probability == 1


def test_learning_needs_counts():
    """A labeler without its counts says what to do."""
    labeler = fitted()
    labeler.state_ = replace(labeler.state_, table=None, documents=None)

    with pytest.raises(PolytopicError, match="saved without its counts"):
        labeler.learn(["Mars"], [["space"]])


def test_the_sample_can_be_learned():
    """Models trained on three quarters of the bundled sample label the rest well."""
    documents = load_sample()
    train, test = stratified_split([d.labels for d in documents], 0.25, seed=0)
    true = [documents[d].labels for d in test]

    score = {}
    for model in ("nb", "pmm1", "mml"):
        labeler = Labeler(model).fit([documents[d] for d in train])
        score[model] = samples_f1(true, labeler.predict([documents[d] for d in test]))

    assert score["mml"] > 0.7
    assert score["pmm1"] > 0.7
    assert score["nb"] > 0.6


def test_before_fitting():
    """An unfitted labeler, or one whose fit failed, says so whatever you ask it."""
    labeler = Labeler()
    with pytest.raises(ValueError, match="no labelled document"):
        labeler.fit(["goal"], [[]])

    for question in (labeler.predict, labeler.predict_proba, labeler.suggest, labeler.transform):
        with pytest.raises(NotFittedError):
            question(["goal"])


def test_no_texts_get_no_labels():
    """An empty list gives an empty list."""
    assert fitted().predict([]) == []
    assert fitted().suggest([]) == []


def test_a_string_is_not_a_list_of_labels():
    """A string where a list is needed is rejected, not split into letters."""
    with pytest.raises(ValueError, match="labels == 'sport' is one string"):
        fitted().explain("Mars", "sport")
    with pytest.raises(ValueError, match="include == 'sport' is one string"):
        fitted().suggest(["Mars"], include="sport")


def test_text_counts_take_documents():
    """The transformer accepts what a labeler accepts."""
    documents = [Document("1", text="goal"), Document("2", counts={"goal": 2})]

    assert TextCounts(None).fit_transform(documents).toarray().tolist() == [[1], [2]]


def test_max_terms_is_named():
    """The message about too few terms names the parameter of the labeler."""
    with pytest.raises(ValueError, match="max_terms == 0, must be >= 1"):
        Labeler("nb", max_terms=0).fit(TEXTS, LABELS)
