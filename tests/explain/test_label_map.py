"""The label map: correlations, clusters, terms and topics, compared with slow twins."""

import json
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet
from scipy.spatial.distance import squareform

from polytopic import LabelTree
from polytopic.errors import PolytopicError
from polytopic.explain import LabelMap
from polytopic.explain import label_map as make_map
from polytopic.explain.dendrogram import Dendrogram
from tests.explain.news import fitted
from tests.explain.test_html import HOSTILE, Page

TERMS = [f"w{k}" for k in range(12)]
LABELS = ["a", "b", "c", "d", "e"]
NASTY = ["<script>alert(1)</script>", "it's", "(a,b):[c];", "a\nb\x00\x1b[31m\u202e", "$\\frac$ &_"]


def drawn(seed=0, n_labels=5):
    """Return the arrays of a map: label sets with documents, and distributions of words."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(len(TERMS), 0.5), size=n_labels)
    return {
        "word_proba": proba,
        "world_proba": proba.mean(axis=0),
        "terms": TERMS,
        "sets": np.unique(rng.integers(0, 2, size=(9, n_labels)), axis=0),
        "set_docs": None,
    }


def mapped(labels=LABELS, seed=0, **changed) -> LabelMap:
    """Return a map of random labels."""
    arrays = drawn(seed, len(labels)) | changed
    if arrays["set_docs"] is None:
        arrays["set_docs"] = np.arange(1, len(arrays["sets"]) + 1)
    return make_map(labels, **arrays)


def documents(arrays):
    """Return the label indicators of all documents, one by one."""
    return np.repeat(arrays["sets"], np.arange(1, len(arrays["sets"]) + 1), axis=0)


# Correlations


@pytest.mark.parametrize("seed", range(5))
def test_phi_is_the_correlation_of_documents(seed):
    """Exactly the pairs that occur have a correlation, which is NumPy's over the documents."""
    Y = documents(drawn(seed))

    label_map = mapped(seed=seed)

    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.corrcoef(Y.T)
    expected[(Y.T @ Y == 0) | np.eye(5, dtype=bool)] = np.nan
    np.testing.assert_allclose(label_map.correlations, expected, atol=1e-12)


def test_strongest_pairs():
    """Positive and negative pairs are strongest first, with the documents that have both labels."""
    Y = documents(drawn(1))
    correlations = np.corrcoef(Y.T)
    pairs = [(LABELS[c], LABELS[d]) for c in range(5) for d in range(c + 1, 5)]
    together = {pair: Y[:, list(map(LABELS.index, pair))].all(axis=1).sum() for pair in pairs}
    value = {pair: correlations[tuple(map(LABELS.index, pair))] for pair in pairs}
    seen = [pair for pair in sorted(pairs, key=value.get) if together[pair]]

    label_map = mapped(seed=1, n_pairs=3)

    below = [pair for pair in seen if value[pair] < 0][:3]
    above = [pair for pair in seen[::-1] if value[pair] > 0][:3]
    assert below
    assert above
    assert [pair[:2] for pair in label_map.negative] == below
    assert [pair[:2] for pair in label_map.positive] == above
    for pair in label_map.positive + label_map.negative:
        assert pair.documents == together[pair[:2]]
        assert pair.correlation == pytest.approx(value[pair[:2]])


def test_a_covariance_is_known_up_to_a_common_shift():
    """Correlations are those of P Σ P, which a common shift does not change."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5))
    sigma, P = root @ root.T, np.eye(5) - 1 / 5
    sets = np.array([[1, 1, 1, 1, 0], [0, 0, 0, 0, 1]])

    label_map = mapped(sets=sets, covariance=sigma)
    shifted = mapped(sets=sets, covariance=sigma + 7.0)

    known = P @ sigma @ P
    expected = known / np.sqrt(np.outer(known.diagonal(), known.diagonal()))
    upper = np.triu_indices(4, 1)
    expected = np.where(expected > 0, expected, np.nan)  # the four are always together
    np.testing.assert_allclose(label_map.correlations[upper], expected[upper])
    np.testing.assert_allclose(shifted.correlations, label_map.correlations)
    assert np.isnan(label_map.correlations[4]).all()
    assert (label_map.measure, mapped().measure) == ("covariance", "phi")
    assert len(label_map.positive) == (expected[upper] > 0).sum() > 0
    assert label_map.negative == []


def test_two_labels_have_no_correlation_by_a_covariance():
    """The correlation could only be -1, whatever the model."""
    label_map = mapped(["a", "b"], sets=[[1, 1]], covariance=np.eye(2))

    assert label_map.positive == label_map.negative == []


# Clusters


def test_hellinger_distance_by_hand():
    """Two labels that share half of their words, and one with words of its own."""
    proba = [[0.5, 0.5, 0, 0, 0], [0, 0.5, 0.5, 0, 0], [0, 0, 0, 0.2, 0.8]]

    _, heights = zip(*Dendrogram.from_words("abc", proba).linkage[:, 1:3], strict=True)

    assert heights == pytest.approx([np.sqrt(0.5), 1.0])


def test_neighbours_are_as_alike_as_the_joins_allow():
    """Neighbours in the dendrogram are as similar as its joins allow: no flip improves that."""
    proba = drawn(2)["word_proba"]
    dendrogram = Dendrogram.from_words(LABELS, proba)
    rest = proba - proba.min(axis=1, keepdims=True)
    roots = np.sqrt(rest / rest.sum(axis=1, keepdims=True))
    apart = np.sqrt(np.clip(1 - roots @ roots.T, 0, 1))

    def orders(node):
        if "label" in node:
            return [[LABELS.index(node["label"])]]
        first, second = map(orders, node["children"])
        return [way for one in first for other in second for way in (one + other, other + one)]

    lengths = [sum(apart[way[:-1], way[1:]]) for way in orders(dendrogram.to_dict())]

    assert len(lengths) == 2**4
    assert sum(apart[dendrogram.order[:-1], dendrogram.order[1:]]) == pytest.approx(min(lengths))
    assert max(lengths) > min(lengths) + 1e-3


def test_smoothing_does_not_bring_labels_together():
    """Labels with few words join as they would without pseudo-counts."""
    counts = np.random.default_rng(0).poisson(0.3, size=(6, 40)) * np.array([[1, 1, 1, 9, 9, 9]]).T
    counts[:, 0], counts[:, -1] = 0, 5
    smoothed = counts + 0.7
    labels = list("abcdef")

    raw = Dendrogram.from_words(labels, counts / counts.sum(axis=1, keepdims=True))
    tree = Dendrogram.from_words(labels, smoothed / smoothed.sum(axis=1, keepdims=True))

    np.testing.assert_allclose(cophenet(tree.linkage), cophenet(raw.linkage))


def test_agreement_by_hand():
    """The correlation of six heights with six numbers of steps."""
    linkage = np.array([[0, 1, 0.2, 2], [2, 3, 0.5, 2], [4, 5, 0.9, 4]])
    tree = LabelTree({"s/a": "s", "s/b": "s", "s/c": "s", "t": None})
    heights = [0.2, 0.9, 0.9, 0.9, 0.9, 0.5]  # ab ac ad bc bd cd
    steps = [2, 2, 3, 2, 3, 3]

    dendrogram = Dendrogram(("s/a", "s/b", "s/c", "t"), linkage)
    strange = Dendrogram(("s/a", "s/b", "s/c", "new"), linkage)

    assert dendrogram.agreement(tree) == pytest.approx(np.corrcoef(heights, steps)[0, 1])
    assert strange.agreement(tree) == pytest.approx(dendrogram.agreement(tree))


def test_agreement_with_itself_and_with_nothing():
    """A tree with the same joins agrees fully; if no distances differ, there is no agreement."""
    linkage = np.array([[0, 1, 0.25, 2], [2, 3, 0.5, 3]])
    dendrogram = Dendrogram(("a", "b", "c"), linkage)

    assert dendrogram.agreement(LabelTree({"a": "x", "b": "x"})) == pytest.approx(1)
    assert np.isnan(dendrogram.agreement(LabelTree({})))
    assert np.isnan(Dendrogram(("a",), np.empty((0, 4))).agreement(LabelTree({})))
    with pytest.raises(ValueError, match="no tree of their own"):
        mapped().agreement()


def read_newick(text):
    """Return a Newick tree as nested pairs of (name or children, branch length)."""
    tokens = re.findall(r"'(?:[^']|'')*'|[(),:;]|[^(),:;']+", text)

    def node(place):
        if tokens[place] == "(":
            inside, place = [], place + 1
            while True:
                child, place = node(place)
                inside.append(child)
                place += 1
                if tokens[place - 1] == ")":
                    break
        else:
            quoted = tokens[place].startswith("'")
            name = tokens[place][1:-1].replace("''", "'") if quoted else tokens[place]
            inside, place = name if quoted else name.replace("_", " "), place + 1
        if tokens[place] == ":":
            return (inside, float(tokens[place + 1])), place + 2
        return (inside, 0.0), place

    tree, place = node(0)
    assert tokens[place:] == [";"]
    return tree


def leaves(tree):
    """Yield the names of a tree, each with the branches above it as (node, length)."""
    inside, length = tree
    if isinstance(inside, str):
        yield inside, {id(tree): length}
        return
    for child in inside:
        for name, path in leaves(child):
            yield name, path | {id(tree): length}


def test_newick_keeps_the_distances():
    """The branches between two labels add up to the height at which they join."""
    label_map = mapped()
    joined = squareform(cophenet(label_map.dendrogram.linkage))

    paths = dict(leaves(read_newick(label_map.newick())))

    assert sorted(paths) == LABELS
    for one, first in paths.items():
        for other, second in paths.items():
            apart = [(first | second)[node] for node in first.keys() ^ second.keys()]
            expected = joined[LABELS.index(one), LABELS.index(other)]
            assert sum(apart) == pytest.approx(expected, abs=1e-4)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
def test_newick_keeps_every_name(names):
    """Any name is kept; a blank replaces characters that cannot be printed."""
    label_map = mapped(names, sets=np.eye(len(names)))

    read = [name for name, _ in leaves(read_newick(label_map.newick()))]

    printable = ["".join(c if c.isprintable() else " " for c in name) for name in names]
    assert sorted(read) == sorted(printable)


def test_nested_joins_are_those_of_the_linkage():
    """Heights fall from the root to the labels, and each label occurs once."""
    label_map = mapped()

    def heights(node, above):
        if "label" in node:
            return [node["label"]], []
        assert node["height"] <= above
        (one, first), (other, second) = (heights(c, node["height"]) for c in node["children"])
        return one + other, [node["height"], *first, *second]

    labels, joined = heights(label_map.to_dict()["dendrogram"], 1.0)

    assert labels == [label.label for label in label_map.in_order]
    assert sorted(joined) == label_map.dendrogram.linkage[:, 2].tolist()


def test_lines():
    """The tree is drawn in box characters; joins at the same place are drawn as one."""
    linkage = np.array([[0, 1, 0.1, 2], [2, 3, 0.85, 2], [5, 6, 0.85, 4], [4, 7, 1.0, 5]])
    dendrogram = Dendrogram(tuple("abcde"), linkage)

    lines = [
        f"{line} {dendrogram.labels[place]}"
        for line, place in zip(dendrogram.lines(20), dendrogram.order, strict=True)
    ]

    assert lines == [
        "┌─────────────────── e",
        "└──────┬──────────┬─ a",
        "       │          └─ b",
        "       ├──────────── c",
        "       └──────────── d",
    ]


# Terms and topics


def test_relevant_terms():
    """Terms are ranked by p(w|c) / p(w)^0.3, each with its probability and lift."""
    arrays = drawn(4)
    proba, world = arrays["word_proba"], arrays["world_proba"]

    label_map = mapped(seed=4, k=4)

    for label, p in zip(label_map.labels, proba, strict=True):
        relevance = {term: p[k] / world[k] ** 0.3 for k, term in enumerate(TERMS)}
        assert [t.term for t in label.terms] == sorted(TERMS, key=relevance.get)[:-5:-1]
        for term, probability, lift in label.terms:
            assert probability == p[TERMS.index(term)]
            assert lift == pytest.approx(p[TERMS.index(term)] / world[TERMS.index(term)])


def test_terms_that_a_label_never_has_are_not_relevant():
    """A term with a probability from smoothing alone is not listed, even if no other is left."""
    proba = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.3, 0.5]])
    world = np.array([0.97, 0.01, 0.01, 0.01])

    label_map = make_map(["a", "b"], proba, world, TERMS[:4], sets=np.eye(2), set_docs=[1, 1])

    assert [[t.term for t in label.terms] for label in label_map.labels] == [["w0"], ["w3", "w2"]]


def test_topics():
    """Topics are ranked by use; rarely used ones, and labels without documents, are left out."""
    words = np.eye(12)[:4] * 0.9 + 0.1 / 12
    prior = np.array([[8.0, 2, 0, 0], [0, 5, 0.1, 4.9], [0, 0, 9, 1]])
    sets = np.array([[1, 0, 0], [0, 1, 0]])

    label_map = mapped(["a", "b", "c"], sets=sets, set_docs=[10, 30], topics=(words, prior))

    assert [topic.topic for topic in label_map.topics] == [1, 3, 0]
    assert [topic.documents for topic in label_map.topics] == pytest.approx([17, 14.7, 8])
    assert [topic.terms[0].term for topic in label_map.topics] == ["w1", "w3", "w0"]
    assert [[use.label for use in topic.labels] for topic in label_map.topics] == [
        ["b", "a"],
        ["b"],
        ["a"],
    ]
    assert [use.share for use in label_map.topics[0].labels] == pytest.approx([0.5, 0.2])
    assert [[topic for topic, _ in label.topics] for label in label_map.labels] == [
        [0, 1],
        [1, 3],
        [],
    ]
    assert mapped().topics == mapped().labels[0].topics == []


# The complete map


def test_a_permutation_of_labels_permutes_the_map():
    """Nothing depends on the order of labels, of label sets or of words."""
    arrays = drawn(6)
    order, words = [3, 0, 4, 1, 2], np.random.default_rng(0).permutation(len(TERMS))
    label_map = mapped(seed=6)

    other = mapped(
        [LABELS[c] for c in order],
        word_proba=arrays["word_proba"][np.ix_(order, words)],
        world_proba=arrays["world_proba"][words],
        terms=[TERMS[w] for w in words],
        sets=arrays["sets"][::-1][:, order],
        set_docs=np.arange(len(arrays["sets"]), 0, -1),
    )

    def pairs(side):
        return {(frozenset(p[:2]), round(p.correlation, 12), p.documents) for p in side}

    assert pairs(other.positive) == pairs(label_map.positive)
    assert pairs(other.negative) == pairs(label_map.negative)
    assert sorted(other.labels) == label_map.labels
    heights = squareform(cophenet(label_map.dendrogram.linkage))[np.ix_(order, order)]
    np.testing.assert_allclose(squareform(cophenet(other.dendrogram.linkage)), heights)


def test_to_dict_is_strict_json():
    """Unknown values are None, and numbers of documents are integers."""
    tree = LabelTree.from_names(["x/a", "x/b"])

    values = json.loads(json.dumps(mapped(tree=tree).to_dict(), allow_nan=False))

    assert values["agreement"] is None
    assert values["documents"] == len(documents(drawn()))
    assert [label["label"] for label in values["labels"]] == LABELS
    assert set(values["positive"][0]) == {"first", "second", "correlation", "documents"}
    assert all(isinstance(pair["documents"], int) for pair in values["negative"])


@pytest.mark.parametrize("n_labels", [1, 2])
def test_few_labels(n_labels):
    """A map of one or two labels is complete."""
    label_map = mapped(LABELS[:n_labels], sets=np.eye(n_labels))

    names = [name for name, _ in leaves(read_newick(label_map.newick()))]
    assert sorted(names) == LABELS[:n_labels]
    assert label_map.positive == label_map.negative == []
    assert len(label_map.dendrogram.lines(10)) == n_labels
    assert Page(label_map.to_html()).tags.count("li") == n_labels
    assert [t.get_text() for t in label_map.plot().axes[1].get_yticklabels()] == names


def test_labels_without_documents():
    """Labels without documents are on the map, but have no terms and no pairs."""
    proba = np.vstack([drawn()["word_proba"][:3], np.full((2, 12), 1 / 12)])
    sets = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 0]])

    label_map = mapped(word_proba=proba, sets=sets, covariance=np.eye(5))

    assert [(label.documents, bool(label.terms)) for label in label_map.labels[3:]] == [
        (0, False)
    ] * 2
    assert not {"d", "e"} & {
        name for pair in label_map.positive + label_map.negative for name in pair[:2]
    }
    assert sorted(label_map.dendrogram.order) == list(range(5))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [({"n_pairs": 0}, "n_pairs == 0"), ({"k": 0}, "k == 0")],
)
def test_numbers_of_pairs_and_terms(changed, sentence):
    """At least one pair and one term must be requested."""
    with pytest.raises(ValueError, match=sentence):
        mapped(**changed)


def test_a_map_without_labels():
    """A map needs at least one label."""
    with pytest.raises(ValueError, match="labels is empty"):
        make_map([], np.zeros((0, 1)), [1.0], ["w"], sets=np.zeros((1, 0)), set_docs=[1])


# Pages and drawings


def test_nothing_in_a_name_or_a_term_is_markup():
    """Scripts in labels, names, terms and the title are shown as text, and nothing is loaded."""
    names = [HOSTILE, *NASTY[1:]]
    prior = np.ones((5, 2))
    terms = [HOSTILE, *TERMS[1:]]

    label_map = mapped(NASTY, names=names, terms=terms, topics=(np.eye(12)[:2], prior))
    html = label_map.to_html(title=HOSTILE)
    read = Page(html)

    assert not {"script", "img", "b", "link"} & set(read.tags)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in read.attributes}
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|\x00|\x1b", html)
    assert "Topics" in html


def test_the_page_shows_the_map():
    """The page has the labels by cluster, all pairs and, with a tree, the agreement."""
    names = [f"Name {label}" for label in LABELS]
    label_map = mapped(names=names, tree=LabelTree({"a": "x", "b": "x"}))

    html = label_map.to_html()

    mixture_map = re.findall(r'<strong title="(\w) · Name \1">', html)
    assert mixture_map == [label.label for label in label_map.in_order]
    for pair in label_map.positive + label_map.negative:
        assert f"{pair.first} · Name {pair.first}<br>{pair.second} · Name {pair.second}" in html
    assert f"{label_map.agreement():+.2f}".replace("-", "−") in html
    assert html.count("<path ") == 1
    (path,) = re.findall(r'<path d="([^"]*)"', html)
    assert len(path.split("M")) == len(LABELS)


def test_plot():
    """Correlations are in the order of the names, in which dollar signs are no formulas."""
    label_map = mapped(NASTY)

    figure = label_map.plot()
    figure.canvas.draw()

    left, right = figure.axes[:2]
    image = np.ma.filled(right.images[-1].get_array(), np.nan)
    order = label_map.dendrogram.order
    np.testing.assert_array_equal(image, label_map.correlations[np.ix_(order, order)])
    shown = [text.get_text() for text in right.get_yticklabels()]
    assert shown == [
        "".join(c if c.isprintable() else " " for c in NASTY[place]) for place in order
    ]
    assert len(left.collections[0].get_segments()) == len(NASTY) - 1


def test_the_plot_grows_with_the_labels():
    """The plot has space for one line of text per label."""
    many = [f"label {k}" for k in range(60)]

    small, large = mapped().plot(), mapped(many, sets=np.eye(60)).plot()

    assert large.get_figheight() > 60 * 0.15 > small.get_figheight()


def test_plot_without_matplotlib(monkeypatch):
    """The error says in one sentence what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(PolytopicError, match=r"pip install 'polytopic\[plots\]'"):
        mapped().plot()


# Labelers


def test_a_labeler_with_words():
    """A model with word distributions uses its own; correlations are those of its documents."""
    parents = {"sport": "fun", "film": "fun", "music": "fun", "space": None}
    labeler = fitted(tree=LabelTree(parents, {"sport": "Sport!"}))
    labeler.learn(["A match in orbit."], [["space", "sport"]])

    label_map = labeler.map(3, n_pairs=5)

    assert [label.label for label in label_map.labels] == labeler.classes_.tolist()
    assert [label.documents for label in label_map.labels] == [2, 2, 4, 4]
    assert label_map.labels[3].display_name == "sport · Sport!"
    assert [len(label.terms) for label in label_map.labels] == [3] * 4
    term = label_map.labels[0].terms[0]
    column = labeler.vocabulary_.terms.index(term.term)
    assert term.probability == labeler.model_.word_proba_[0, column]
    assert label_map.positive == [("space", "sport", pytest.approx(4 / 24), 2)]
    assert -1 <= label_map.agreement() <= 1


def test_a_labeler_without_words_uses_a_mixture():
    """The words of mml's labels are those of a pmm1 of the same counts."""
    label_map, mixture_map = fitted("mml").map(), fitted("pmm1").map()

    assert label_map.labels == mixture_map.labels
    assert label_map.newick() == mixture_map.newick()


def test_a_labeler_with_topics_and_covariance():
    """The map shows the covariance of labels and the topics of a model."""
    labeler = fitted()
    labeler.model_.has_topics = True
    labeler.model_.label_covariance_ = np.diag([1.0, 2, 3, 4])
    labeler.model_.topic_word_proba_ = labeler.model_.word_proba_[:2]
    labeler.model_.label_topics_ = np.full((4, 2), 0.5)

    label_map = labeler.map()

    assert label_map.measure == "covariance"
    assert [topic.documents for topic in label_map.topics] == [5, 5]


def test_a_labeler_without_counts(tmp_path):
    """The error says in one sentence what is missing."""
    from polytopic import load

    fitted().save(tmp_path / "m", counts=False)

    with pytest.raises(PolytopicError, match="it has no map of labels; save it with counts"):
        load(tmp_path / "m").map()
