"""Texts selected by topic."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic import Labeler, LabelTree, PolytopicError
from polytopic.corpus import load_sample
from polytopic.labeler import Selector

MIXED = (
    "The striker scored a goal in the league match. After surgery, doctors at the hospital "
    "praised the patient."
)
TEXTS = [
    MIXED,
    "The striker scored in the match.",
    "xyzzy",
    "The rover reached Mars and its orbit.",
]


@pytest.fixture(scope="module")
def labelers():
    """Return labelers of the sample by model, with a tree built from its label names."""
    documents = load_sample()
    tree = LabelTree.from_names({label for d in documents for label in d.labels})
    return {name: Labeler(name, tree=tree).fit(documents) for name in ("nb", "pmm1", "pdmm", "mml")}


@pytest.mark.parametrize("model", ["nb", "pmm1", "pdmm", "mml"])
def test_by_label_or_branch(labelers, model):
    """A topic is a label or all labels below it; a text without a known word has none."""
    labeler = labelers[model]
    documents = [*load_sample()[:60], "xyzzy"]

    selector = Selector(labeler, ["sport", "culture/film"])
    selected = selector.select(documents)

    for topics, labels in zip(selected[:-1], labeler.predict(documents[:-1]), strict=True):
        expected = {
            "sport": [label for label in labels if label.startswith("sport")],
            "culture/film": [label for label in labels if label == "culture/film"],
        }
        assert {topic: selection.labels for topic, selection in topics.items()} == {
            topic: names for topic, names in expected.items() if names
        }
    assert selected[-1] == {}
    assert selector.counts["read"] == 61
    assert selector.counts["no known word"] == 1
    assert selector.counts["selected"] == sum(map(bool, selected))
    assert selector.topic_counts["sport"] == sum("sport" in topics for topics in selected)


@pytest.mark.parametrize("model", ["pmm1", "pdmm", "mml"])
def test_by_share(labelers, model):
    """The shares of a topic's labels add up, and the sum must reach the minimum."""
    labeler = labelers[model]
    texts = [*[d.text for d in load_sample()[:80]], MIXED]
    sharer = labeler.state_.mixture

    selected = Selector(labeler, ["sport", "health"], min_share=0.4).select(texts)

    counts = labeler.vocabulary_.select(*labeler.analyzer_.count(texts))
    shares = sharer.mixture(counts, labeler.predict(texts))
    for row, topics in zip(shares, selected, strict=True):
        sums = {
            topic: sum(row[k] for k, c in enumerate(labeler.classes_) if c.startswith(topic))
            for topic in ("sport", "health")
        }
        assert {topic: what.share for topic, what in topics.items()} == pytest.approx(
            {topic: share for topic, share in sums.items() if share >= 0.4}
        )
    assert 0 < sum(map(bool, selected)) < len(texts)


def test_every_topic(labelers):
    """All topics are required, or just one; with shares, each must reach the minimum."""
    labeler = labelers["mml"]
    topics = ["sport", "health"]

    one, both, much = (
        [set(selected) for selected in Selector(labeler, topics, **settings).select(TEXTS)]
        for settings in ({}, {"every": True}, {"every": True, "min_share": 0.6})
    )

    assert one == [{"sport", "health"}, {"sport"}, set(), set()]
    assert both == [{"sport", "health"}, set(), set(), set()]
    assert much == [set()] * 4


@given(st.lists(st.sampled_from(TEXTS), max_size=6), st.integers(1, 4))
def test_blocks_do_not_matter(labelers, texts, size):
    """A stream gives the same result as one block."""
    whole, parts = (Selector(labelers["nb"], ["sport", "science"]) for _ in range(2))

    selected = [parts.select(texts[k : k + size]) for k in range(0, len(texts), size)]

    assert list(chain.from_iterable(selected)) == whole.select(texts)
    assert parts.counts["read"] == len(texts)
    assert +parts.counts == +whole.counts
    assert parts.topic_counts == whole.topic_counts


def test_nothing_is_selected_where_the_labeler_abstains(labelers):
    """A text without labels has no topic."""
    labeler = Labeler("pmm1", tree=labelers["pmm1"].tree, abstain=1.0).fit(load_sample())

    selected = Selector(labeler, ["sport"]).select(TEXTS)

    sure = [bool(labels) for labels in labeler.predict(TEXTS)]
    assert [bool(topics) for topics in selected] == list(np.logical_and(sure, [1, 1, 0, 0]))


def test_bad_topics(labelers, tmp_path):
    """Topics that cannot be selected are rejected before anything is read."""
    labeler = labelers["mml"]

    for topics, sentence in (
        (["golf"], "label 'golf' is not known"),
        ([], "topics is empty"),
        ("sport", "topics == 'sport' is one string"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Selector(labeler, topics)
    with pytest.raises(ValueError, match="min_share == 2"):
        Selector(labeler, ["sport"], min_share=2)
    labeler.save(tmp_path / "m", counts=False)
    from polytopic import load

    with pytest.raises(PolytopicError, match="no mixture can be fitted"):
        Selector(load(tmp_path / "m"), ["sport"], min_share=0.2)
