"""A labeler with a tree of labels."""

import warnings

import numpy as np
import pytest

from polytopic import Labeler, LabelTree, load
from polytopic.corpus import read_documents
from polytopic.errors import LabelWarning
from polytopic.metrics import by_level, hierarchical_f1, micro_f1, samples_f1

TREE = LabelTree(
    {"u1": None, "u2": "u1", "u3": "u1", "u4": None},
    {
        "u1": {"en": "science", "fi": "tiede"},
        "u2": {"en": "space", "fi": "avaruus"},
        "u3": {"en": "biology", "fi": "biologia"},
        "u4": {"en": "sport"},
    },
    alternatives={"u2": ["cosmos"]},
    notations={"u4": "79"},
)
TEXTS = ["rover Mars orbit", "cell gene", "goal match striker", "orbit cell", "Mars goal"]
IDS = [["u2"], ["u3"], ["u4"], ["u2", "u3"], ["u2", "u4"]]
NAMES = [["space"], ["biologia"], ["79"], ["cosmos", "biology"], ["avaruus", "sport"]]


def fitted(labels=IDS, model="pmm1", **settings):
    """Return a labeler fitted on a few texts."""
    return Labeler(model, tree=TREE, **settings).fit(TEXTS, labels)


@pytest.mark.parametrize("model", ["pmm1", "nb", "mml"])
def test_names_are_learned_by_their_ids(model):
    """Whichever of its names is used, it is one label; a warning says so."""
    with pytest.warns(LabelWarning) as warned:
        named = fitted(NAMES, model)

    assert named.classes_.tolist() == ["u2", "u3", "u4"]
    assert [str(warning.message) for warning in warned] == [
        "7 labels are names in the tree and were replaced by their ids, such as '79' by 'u4'."
    ]
    assert named.counts_ == fitted(IDS, model).counts_
    assert named.predict(TEXTS) == fitted(IDS, model).predict(TEXTS)
    assert named.score(TEXTS, NAMES) == named.score(TEXTS, IDS)


def test_names_are_forgotten_by_their_ids():
    """Learning and forgetting accept the same names."""
    labeler = fitted()

    labeler.learn(["planet"], [["cosmos"]]).forget(["planet"], [["avaruus"]])

    assert labeler.counts_ == fitted().counts_
    assert labeler.audit(TEXTS, NAMES).audited == labeler.audit(TEXTS, IDS).audited


def test_labels_outside_the_tree():
    """They are learned, and a warning names one; ids in the tree cause no warning."""
    with pytest.warns(LabelWarning, match=r"1 of 4 labels are not in the tree, such as 'x'; they"):
        fitted([["x"], *IDS[1:]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted()


def test_learned_labels_are_taken_as_they_are():
    """A tree that is set later does not rename known labels."""
    labeler = Labeler("nb").fit(TEXTS, [["sport"]] * 5)

    labeler.tree = TREE

    assert labeler.resolve("sport") == "sport"
    assert labeler.resolve("space") == "u2"
    assert labeler.resolve("nonsense") == "nonsense"


def test_names_in_requests():
    """A label can be given by its name."""
    labeler = fitted()
    text = "A goal on Mars"

    assert labeler.explain(text, ["space"]).labels[0].label == "u2"
    assert labeler.explain(text, ["u2"], why_not="biology").why_not[0].label == "u3"
    assert labeler.label_terms(3, ["79"])[0]["label"] == "u4"
    assert [s.label for s in labeler.suggest([text], include=["sport"])[0]] == ["u4"]


def test_a_label_stands_for_its_branch():
    """``include`` and ``exclude`` cover the branch below a label, which must have labels."""
    labeler = fitted()
    text = ["A goal on Mars, in the match"]

    inside = labeler.suggest(text, include=["science"])[0]
    outside = labeler.suggest(text, exclude=["u1"])[0]

    assert {s.label for s in inside} == {"u2", "u3"}
    assert {s.label for s in outside} == {"u4"}
    empty = Labeler("nb", tree=LabelTree({"a": "b", "sport": None, "c": None})).fit(
        ["goal"], [["sport"]]
    )
    with pytest.raises(ValueError, match="label 'b' is in the tree, but no label below"):
        empty.suggest(text, include=["b"])


@pytest.mark.parametrize("model", ["pmm1", "nb", "mml"])
def test_labels_at_a_level(model):
    """Sets, scores and probabilities are those of the labels below the level."""
    labeler = fitted(model=model)
    texts = [*TEXTS, "nonsense"]

    flat, high = labeler.suggest(texts, 9), labeler.suggest(texts, 9, level=0)

    assert labeler.predict(texts, level=0) == [
        sorted({TREE.at_level(label, 0) for label in labels}) for labels in labeler.predict(texts)
    ]
    assert labeler.predict(texts, level=1) == labeler.predict(texts)
    for below, above in zip(flat, high, strict=True):
        by_label = {s.label: s for s in above}
        assert set(by_label) == {"u1", "u4"}
        inside = [s for s in below if s.label in ("u2", "u3")]
        assert by_label["u1"].score == max(s.score for s in inside)
        assert by_label["u1"].chosen == any(s.chosen for s in inside)
        wrong = np.prod([1 - s.probability for s in inside])
        assert by_label["u1"].probability == pytest.approx(1 - wrong)


def test_a_level_needs_a_tree():
    """Without a tree, the error says what to pass."""
    labeler = Labeler("nb").fit(TEXTS, IDS)

    for ask in (labeler.predict, labeler.suggest):
        with pytest.raises(ValueError, match="level == 0 needs a tree of labels"):
            ask(["goal"], level=0)


def test_names_in_the_language_of_the_texts(tmp_path):
    """The labeler's language decides the name, before and after loading."""
    labeler = fitted(language="fi")
    labeler.save(tmp_path / "m")

    loaded = load(tmp_path / "m")

    assert loaded.tree == TREE
    assert [loaded.name(label) for label in ("u2", "u4", "x")] == ["avaruus", "sport", "x"]
    assert loaded.name("u2", "en") == "space"
    assert loaded.label_terms(1, ["u3"])[0]["name"] == "biologia"
    assert Labeler("nb").fit(TEXTS, IDS).name("u2") == "u2"


@pytest.mark.corpus
def test_library_classes(data):
    """The Finnish library classes: near misses count in part, and high levels are easier."""
    corpus = data("fi-makupalat")
    tree = LabelTree.from_file(corpus.parent / "fi-makupalat.hierarchy.tsv")
    test = list(read_documents(corpus, split="test"))

    labeler = Labeler("nb", language="fi", tree=tree)
    labeler.fit(read_documents(corpus, split="train"))
    true, predicted = [d.labels for d in test], labeler.predict(test)

    assert labeler.classes_.size <= 1209
    assert set(labeler.classes_) <= set(tree.nodes)
    assert labeler.name("00") == "KIRJA-ALA"
    assert hierarchical_f1(true, predicted, tree) > micro_f1(true, predicted) + 0.1
    by_height = by_level(true, predicted, tree)
    assert list(by_height.values()) == sorted(by_height.values(), reverse=True)
    assert by_height[max(by_height)] == pytest.approx(samples_f1(true, predicted))
    assert samples_f1(
        [[tree.at_level(label, 0) for label in labels] for labels in true],
        labeler.predict(test, level=0),
    ) == pytest.approx(by_height[0])
