"""Texts are labelled block by block, as they arrive."""

import pytest

from polytopic import Labeler
from polytopic.corpus import load_sample
from polytopic.labeler import answers, state


@pytest.fixture(scope="module")
def texts():
    """Return the texts of the sample, and one without a word."""
    return [*(document.text for document in load_sample()[:200]), ""]


@pytest.mark.parametrize("model", ["mml", "pmm1"])
def test_blocks_do_not_matter(monkeypatch, texts, model):
    """Answers are the same whether texts are labelled all at once or a few at a time."""
    labeler = Labeler(model).fit(load_sample())
    labels, suggestions = labeler.predict(texts), labeler.suggest(texts, 3)
    monkeypatch.setattr(state, "MAX_TEXTS", 7)

    assert labeler.predict(iter(texts)) == labels
    assert labeler.suggest(iter(texts), 3) == suggestions
    assert labeler.predict([]) == labeler.suggest([]) == []


def test_only_one_block_is_held_in_memory(monkeypatch, texts):
    """Of a long stream, only the texts of one block are alive at a time."""
    labeler = Labeler("nb").fit(load_sample())
    monkeypatch.setattr(state, "MAX_TEXTS", 8)
    alive, most = set(), 0

    class Text(dict):
        def __init__(self, number):
            nonlocal most
            super().__init__(body=texts[number % len(texts)])
            alive.add(number)
            most, self.number = max(most, len(alive)), number

        def __del__(self):
            alive.discard(self.number)

    assert len(labeler.predict(Text(number) for number in range(1000))) == 1000
    assert most <= 2 * 8 + 1


def test_a_bad_text_is_named_by_its_position_in_the_stream(monkeypatch):
    """Its number counts the texts of all blocks."""
    labeler = Labeler("nb").fit(load_sample())
    monkeypatch.setattr(state, "MAX_TEXTS", 8)

    with pytest.raises(TypeError, match=r"texts\[100\] is a int"):
        labeler.predict([*["a text"] * 100, 3])


def test_all_labels_are_ranked_as_a_few_are(monkeypatch, texts):
    """The first labels are the same, however many are requested."""
    labeler = Labeler("mml").fit(load_sample())
    few, n_labels = labeler.suggest(texts, 4), labeler.classes_.size
    monkeypatch.setattr(answers, "MANY_LABELS", 5)
    every = labeler.suggest(texts, 10**20)

    assert {len(own) for own in every} == {n_labels}
    assert [own[: len(first)] for own, first in zip(every, few, strict=True)] == [
        list(first) for first in few
    ]
