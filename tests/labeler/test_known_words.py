"""What a labeler says about texts that it hardly knows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from polytopic import Document, Labeler, load
from polytopic.corpus import load_sample
from tests.text.languages import SENTENCES

NEWS = [document.text for document in load_sample()]
FOREIGN = [sentence for language, sentence in SENTENCES.items() if language != "English"]


@pytest.fixture(scope="module")
def labeler():
    """Return a labeler that has learned English news."""
    return Labeler().fit(load_sample())


def test_every_text_in_another_language_gets_a_warning(labeler):
    """A hundred of a hundred, in all languages, whole or with English names in it."""
    texts = [*FOREIGN, *(sentence.split(". ")[0] for sentence in FOREIGN)]
    texts += [f"Apple iPhone: {sentence}" for sentence in FOREIGN]
    texts += [f"{sentence} {other}" for sentence, other in pairwise(FOREIGN)]

    warnings = [answer.warning for answer in labeler.suggest(texts)]

    assert len(texts) > 100
    assert [text for text, warning in zip(texts, warnings, strict=True) if warning is None] == []


def test_texts_like_the_learned_ones_get_none(labeler):
    """News that are learned, and news that are not."""
    other = Labeler().fit(load_sample()[:200])

    assert {answer.warning for answer in labeler.suggest(NEWS)} == {None}
    assert {answer.warning for answer in other.suggest(NEWS[200:])} == {None}


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (SENTENCES["Arabic"], "This text is in Arabic script, which the model has not learned."),
        (
            SENTENCES["German"],
            "This text seems to be in German, but the model has learned English texts.",
        ),
        ("Xyzzy plugh", "The model does not know any word in this text."),
        ("The goal of xyzzy plugh", None),
        ("Goal xyzzy plugh frotz", "The model knows only 25% of the words in this text."),
        ({"goal": 1, "xyzzy": 99}, "The model knows only 1% of the words in this text."),
        ({"title": "Ein Tor", "body": SENTENCES["German"]}, "German"),
        (Document("1", SENTENCES["Russian"]), "Cyrillic"),
        ("", "The model does not know any word in this text."),
    ],
)
def test_the_warning_says_why(labeler, text, warning):
    """It is the same in an explanation, which also has the share of known words."""
    (answer,) = labeler.suggest([text])
    explanation = labeler.explain(text)

    assert answer.warning == warning or warning in answer.warning
    assert explanation.warning == answer.warning
    assert explanation.known == answer.known
    assert explanation.to_dict()["known"] == answer.known


def test_each_text_of_a_block_gets_its_own_warning(labeler):
    """Also of an iterator, whose texts are read in blocks."""
    texts = [NEWS[0], SENTENCES["French"]] * 200

    answers = labeler.suggest(iter(texts))

    assert [answer.warning is None for answer in answers] == [True, False] * 200


def test_a_language_that_the_model_knows_is_no_other_language():
    """A model of texts in two languages knows the words of both."""
    texts, labels = [SENTENCES["English"], SENTENCES["German"]] * 2, [["law"], ["Recht"]] * 2

    answers = Labeler("nb").fit(texts, labels).suggest(texts)

    assert {answer.warning for answer in answers} == {None}


def test_a_loaded_labeler_warns_as_well(labeler, tmp_path):
    """What the warning needs is in every model file."""
    labeler.save(tmp_path / "model", counts=False)

    answers = load(tmp_path / "model").suggest(FOREIGN)

    assert answers == labeler.suggest(FOREIGN)


def part_of(text, n):
    """Return every n-th word of a text; the others are replaced by unknown ones."""
    return " ".join(word if k % n == 0 else f"xyzzy{word}" for k, word in enumerate(text.split()))


def test_few_known_words_make_less_sure(labeler):
    """The more words are unknown, the closer probabilities are to the shares of documents."""
    base = labeler.model_.label_docs_ / len(NEWS)
    texts = NEWS[:20]
    distances = []
    for n in (1, 3, 20):
        parts = [part_of(text, n) for text in texts]
        own = labeler.model_.predict_proba(labeler.transform(parts))
        proba = labeler.predict_proba(parts)
        distances.append(np.abs(proba - base).sum() / np.abs(own - base).sum())
        assert ((proba - base) * (own - base) >= -1e-12).all()
        first = labeler.suggest(parts, k=labeler.classes_.size)[0]
        assert {s.label: s.probability for s in first} == dict(
            zip(labeler.classes_.tolist(), proba[0].tolist(), strict=True)
        )

    assert distances[0] == pytest.approx(1, abs=0.02)
    assert distances[1] < 0.9
    assert distances[2] < 0.6


def test_no_text_in_another_language_is_certain(labeler):
    """Names that the model knows do not make it sure of a foreign text, so it can abstain."""
    texts = [f"Apple iPhone: {sentence}" for sentence in FOREIGN]

    proba = labeler.predict_proba(texts)

    assert proba.max() < 0.6
    careful = clone(labeler).set_params(abstain=0.6).set_state(labeler.state_)
    assert careful.predict(texts) == [[] for _ in texts]


def test_allowed_labels_alone_are_probable(labeler):
    """With ``include``, other labels keep a probability of 0 whatever is known."""
    allowed = labeler.classes_[:2].tolist()

    (answer,) = labeler.suggest([part_of(NEWS[0], 20)], k=9, include=allowed)

    assert {suggestion.label for suggestion in answer} == set(allowed)


def test_older_files_answer_as_before(labeler, tmp_path):
    """Without the usual share of known words, probabilities are the model's."""
    training = {k: v for k, v in labeler.training_.items() if k != "known"}
    older = clone(labeler).set_state(replace(labeler.state_, training=training))
    older.save(tmp_path / "older.model")

    texts = [part_of(text, 20) for text in NEWS[:5]]
    own = labeler.model_.predict_proba(labeler.transform(texts))
    np.testing.assert_array_equal(load(tmp_path / "older.model").predict_proba(texts), own)
