"""Texts in another language or script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.corpus import load_sample
from polytopic.text.detection import name_of_language, other_language, other_script, scripts_of
from tests.text.languages import SENTENCES

LATIN = frozenset({"Latin"})


@pytest.mark.parametrize("language", [name for name in SENTENCES if name != "English"])
def test_a_sentence_in_another_language_is_noticed(language):
    """The script is named if it is another one, otherwise the language."""
    sentence = SENTENCES[language]

    script, name = other_script(sentence, LATIN), other_language(sentence, "en")

    assert script is not None or name == language


def test_a_text_in_the_language_of_the_model_is_not_noticed():
    """News in English are not in another language than English."""
    texts = [document.text for document in load_sample()]

    assert [text for text in texts if other_language(text, "en") is not None] == []
    assert [text for text in texts if other_script(text, LATIN) is not None] == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("Xyzzy plugh", "en"),
        ("Der", "en"),  # one word is not enough
        ("Der Stürmer hat ein Tor geschossen.", None),
        ("Der Stürmer hat ein Tor geschossen.", "ka"),  # no stop words of Georgian are known
        ("Det er ikke sant at vi skal dit", "nn"),  # the list is that of both Norwegian languages
    ],
)
def test_nothing_is_said_without_evidence(text, language):
    """Few stop words, an unknown language or one that shares its list give no name."""
    assert other_language(text, language) is None


def test_quotations_in_another_script_are_few():
    """A third of the letters must be in another script."""
    assert other_script("The Greek word for it is λόγος.", LATIN) is None
    assert other_script("Apple 公司今天发布了新的 iPhone。", LATIN) == "Chinese"
    assert (
        other_script("Apple 公司今天发布了新的 iPhone。", frozenset({"Latin", "Chinese"})) is None
    )
    assert other_script("1234 !?", LATIN) is None


def test_the_scripts_of_a_vocabulary():
    """A script with one letter in a thousand is not one of them."""
    terms = ["word"] * 999 + ["слово", "λ"]

    assert scripts_of(terms) == LATIN
    assert scripts_of(["word", "слово"]) == {"Latin", "Cyrillic"}
    assert scripts_of([]) == frozenset()


@given(st.text(), st.sampled_from(["en", "cs", "ar", "nb", None]))
def test_any_string_is_a_text(text, language):
    """Nothing fails, and the language named is not that of the model."""
    name, script = other_language(text, language), other_script(text, LATIN)

    assert name is None or name != name_of_language(language)
    assert script != "Latin"
