"""What a labeler says about texts that it hardly knows."""

from itertools import pairwise

import pytest

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
