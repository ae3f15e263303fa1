"""The tree of labels."""

import copy
import gzip
import json
import pickle

import pytest
from hypothesis import given

from polytopic.labels import LabelTree, Level
from tests.labels.strategies import trees

SCIENCE = {"space": "science", "mars": "space", "moon": "space", "sport": None, "golf": "sport"}


@pytest.fixture
def tree():
    """Return two roots, one of them never listed as a child."""
    return LabelTree(SCIENCE)


def write(folder, text, name="tree.tsv"):
    """Write a file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_relatives(tree):
    """A label has ancestors, descendants, children and siblings."""
    assert tree.parent("mars") == "space"
    assert tree.parent("science") is None
    assert tree.children("space") == ["mars", "moon"]
    assert tree.children("mars") == []
    assert tree.siblings("mars") == ["moon"]
    assert tree.ancestors("mars") == ["space", "science"]
    assert tree.descendants("science") == ["space", "mars", "moon"]


def test_roots_are_siblings(tree):
    """The siblings of a root are the other roots."""
    assert tree.roots == ("science", "sport")
    assert tree.siblings("science") == ["sport"]


def test_levels(tree):
    """A root has level 0; a label above a level is not rolled up."""
    assert [tree.level(label) for label in ("science", "space", "mars")] == [0, 1, 2]
    assert tree.at_level("mars", 0) == "science"
    assert tree.at_level("mars", 1) == "space"
    assert tree.at_level("mars", 7) == "mars"
    assert tree.at_level("sport", 1) == "sport"


def test_collection(tree):
    """A tree contains its labels, including those that occur only as a parent."""
    assert tree.nodes == ("golf", "mars", "moon", "science", "space", "sport")
    assert len(tree) == 6
    assert "science" in tree
    assert "pluto" not in tree
    assert repr(tree) == "LabelTree(nodes=6, roots=2, levels=3)"
    assert repr(LabelTree({})) == "LabelTree(nodes=0, roots=0, levels=0)"


def test_equality(tree):
    """Trees with the same parents and names are equal and have the same hash, in any order."""
    same = LabelTree(dict(reversed(SCIENCE.items())))

    assert tree == same
    assert hash(tree) == hash(same)
    assert tree != LabelTree(SCIENCE, {"mars": "Mars"})
    assert tree != LabelTree(SCIENCE | {"mars": "science"})
    assert tree != SCIENCE


def test_immutable(tree):
    """A tree does not change with its argument, or with lists that it returned."""
    parents = dict(SCIENCE)
    other = LabelTree(parents, {"mars": "Mars"})

    parents["mars"] = "golf"
    other.children("space").clear()
    other.to_dict()["parents"].clear()
    with pytest.raises(TypeError):
        other.names["moon"] = {"": "Moon"}
    with pytest.raises(TypeError):
        other.names["mars"]["fi"] = "Mars"

    assert other == LabelTree(SCIENCE, {"mars": "Mars"})


@pytest.mark.parametrize("method", ["parent", "children", "siblings", "ancestors"])
@pytest.mark.parametrize("label", ["pluto", None, 3])
def test_unknown_label(tree, method, label):
    """The error names a label that is not in the tree; None is no label."""
    with pytest.raises(KeyError, match=r"label .* is not in the tree\."):
        getattr(tree, method)(label)


def test_unknown_label_elsewhere(tree):
    """Levels, descendants and names reject it, too."""
    for ask in (tree.level, tree.descendants, lambda label: tree.at_level(label, 0)):
        with pytest.raises(KeyError, match="label 'pluto' is not in the tree"):
            ask("pluto")
    with pytest.raises(KeyError, match="label 'pluto' is not in the tree"):
        LabelTree(SCIENCE, {"pluto": "Pluto"})


def test_negative_level(tree):
    """There is no level above the roots."""
    with pytest.raises(ValueError, match=r"level == -1, must be >= 0\."):
        tree.at_level("mars", -1)


@pytest.mark.parametrize(
    ("parents", "sentence"),
    [
        ({"a": "a"}, "labels form a cycle, 'a' under 'a', must be a tree."),
        ({"x": "a", "a": "b", "b": "a"}, "labels form a cycle, 'a' under 'b' under 'a', must"),
        ({"": "a"}, "a label is empty"),
        ({"a": ""}, "a label is empty"),
    ],
)
def test_no_tree(parents, sentence):
    """A cycle and an empty label are rejected."""
    with pytest.raises(ValueError, match=sentence):
        LabelTree(parents)


def test_labels_are_strings():
    """A number is rejected."""
    with pytest.raises(TypeError, match="label 3 is not a string"):
        LabelTree({3: None})


def test_deep_tree():
    """Deep trees need no recursion, and the error for a long cycle is short."""
    deep = {f"{i:06}": f"{i - 1:06}" for i in range(1, 50_000)}

    tree = LabelTree(deep)

    assert tree.level("049999") == 49_999
    assert len(tree.descendants("000000")) == 49_999
    assert len(tree.ancestors("049999")) == 49_999
    assert Level(tree.nodes, tree, 1).labels == ("000000", "000001")
    with pytest.raises(ValueError, match=r"cycle, .{1,100}, must be a tree"):
        LabelTree(deep | {"000000": "049999"})


def test_many_separators():
    """A path that ends in many separators is read quickly."""
    tree = LabelTree.from_names(["a" + "/" * 1_000_000])

    assert tree.depth == 1


@pytest.mark.parametrize("separator", ["/", "::", "--", "."])
def test_from_names(separator):
    """The parent of a path is its beginning; missing parents are added."""
    path = separator.join(["science", "space", "mars"])

    tree = LabelTree.from_names([path, "sport"], separator)

    assert tree.ancestors(path) == [separator.join(["science", "space"]), "science"]
    assert tree.roots == ("science", "sport")


@pytest.mark.parametrize(
    ("label", "ancestors"),
    [
        ("/a/b", ["/a"]),
        ("a//b", ["a"]),
        ("a/b/", ["a"]),
        ("a/", []),
        ("/", []),
        ("a/b--c", ["a"]),
    ],
)
def test_from_names_edges(label, ancestors):
    """Separators at the ends, or repeated ones, make no empty label."""
    assert LabelTree.from_names([label]).ancestors(label) == ancestors


@pytest.mark.parametrize("separator", ["/", "::", "--"])
def test_guess_separator(separator):
    """The only separator that occurs is used."""
    label = f"a{separator}b"

    assert LabelTree.from_names([label, "c"], None).parent(label) == "a"


@pytest.mark.parametrize("labels", [["a/b", "c::d"], ["a", "b.c"], []])
def test_separator_not_clear(labels):
    """With none or several, the caller must choose."""
    with pytest.raises(ValueError, match=r"separator is ambiguous: .* Give separator\."):
        LabelTree.from_names(labels, None)


def test_from_names_arguments():
    """A string is not a collection of labels, and the separator must not be empty."""
    with pytest.raises(TypeError, match="is the string 'a/b'"):
        LabelTree.from_names("a/b")
    with pytest.raises(ValueError, match="separator is empty"):
        LabelTree.from_names(["a/b"], "")


def test_names_in_several_languages():
    """A name is in the requested language, else a variant of it, none, English, or any other."""
    names = {
        "a": {"fi": "Avaruus", "en": " Outer\n space", "pt-BR": "Espaço"},
        "b": {"": "Film", "en": "Movies"},
        "c": {"sv": "Idrott", "fi": "Urheilu"},
        "d": "",
    }

    tree = LabelTree(dict.fromkeys("abcd"), names)

    assert [tree.name("a", language) for language in ("fi", "pt", "pt-PT", "de", None)] == [
        "Avaruus",
        "Espaço",
        "Espaço",
        "Outer space",
        "Outer space",
    ]
    assert [tree.name("b", language) for language in ("en-GB", "de", None)] == [
        "Movies",
        "Film",
        "Film",
    ]
    assert [tree.name(label, "de") for label in ("c", "d", "nowhere")] == [
        "Urheilu",
        "d",
        "nowhere",
    ]
    with pytest.raises(ValueError, match=r"language == 'e n', must be a tag such as 'en'"):
        LabelTree({"a": None}, {"a": {"e n": "x"}})
    with pytest.raises(TypeError, match="alternatives == 'cars' is one string"):
        LabelTree({"a": None}, alternatives={"a": "cars"})


def test_find():
    """A label is found by id, notation, name or alternative name, in this order, if unique."""
    tree = LabelTree(
        {"u1": None, "u2": "u1", "u3": "u1", "Mars": None},
        {"u1": {"en": "Space", "fi": "Avaruus"}, "u2": "Mars", "u3": {"en": "Moon"}},
        alternatives={"u2": {"en": ["Red planet", "Space"]}, "u3": ["Luna"], "u1": ["Luna"]},
        notations={"u3": "52.3"},
    )

    ids = {name: tree.find(name) for name in ("u1", "52.3", "Avaruus", "Red planet")}

    assert ids == {"u1": "u1", "52.3": "u3", "Avaruus": "u1", "Red planet": "u2"}
    assert tree.find("Space") == "u1"  # a name comes before an alternative one
    assert tree.find("Mars") == "Mars"  # an id comes before a name
    assert tree.find("Luna") is None  # two labels have it
    assert tree.find("Pluto") is None


def test_including():
    """Labels that are not in the tree become roots; everything else stays."""
    tree = LabelTree(SCIENCE, {"mars": {"en": "Mars"}}, notations={"mars": "52"})

    larger = tree.including(["mars", "pluto"])

    assert larger == LabelTree(
        SCIENCE | {"pluto": None}, {"mars": {"en": "Mars"}}, notations={"mars": "52"}
    )
    assert tree.including(["mars"]) == tree


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0\t\tAll\n01\t0\tSome, few\n", "tree.tsv"),
        ("label\tparent\tname\r\n0\t\tAll\r\n\r\n01\t0\tSome, few\r\n", "tree.tsv"),
        ('\ufeffID,Parent_ID,Name\n0,,All\n01,0,"Some, few"\n', "tree.csv"),
        ('child,parent,name\n01, 0,"Some, few"\n0,,All\n', "tree.txt"),
        ("0\t\tAll\n01\t0\tSome, few\n01\t0\n", "tree"),
    ],
)
def test_from_file(tmp_path, text, name):
    """Tabs or commas, with or without a header, give the same tree."""
    tree = LabelTree.from_file(write(tmp_path, text, name))

    assert tree == LabelTree({"0": None, "01": "0"}, {"0": "All", "01": "Some, few"})


def test_from_file_short_rows(tmp_path):
    """Names and empty parents are optional; in a file with tabs, a quote is a character."""
    tree = LabelTree.from_file(str(write(tmp_path, 'a\nb\ta\nc\ta\t"C\n')))

    assert tree == LabelTree({"a": None, "b": "a", "c": "a"}, {"c": '"C'})


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("a\tb\na\tc\n", "t.tsv", r"label 'a' has two parents in '.*', 'b' and 'c' \(line 2\)"),
        ("a\t\na\tc\n", "t.tsv", "label 'a' has two parents"),
        ("a\tb\n\tc\n", "t.tsv", "has no label in line 2"),
        ("a,b,c,d\n", "t.csv", "has 4 columns in line 1, needs id, parent"),
        ("id,parent\na,,b\n", "t.csv", "has 3 columns in line 2, needs id, parent"),
        ("id,titel,oben\n", "t.csv", "has the header id, titel, oben; needs id, parent"),
        ('a,b,"c\n', "t.csv", "is not valid CSV: line 1"),
        ("a\tb\nb\ta\n", "t.tsv", "cycle"),
    ],
)
def test_bad_file(tmp_path, text, name, sentence):
    """The error names the line of the file."""
    with pytest.raises(ValueError, match=sentence):
        LabelTree.from_file(write(tmp_path, text, name))


@given(trees())
def test_above_and_below_agree(tree):
    """A label is a descendant of each of its ancestors, one level deeper per step."""
    for label in tree.nodes:
        above = tree.ancestors(label)
        assert tree.level(label) == len(above)
        assert above[:1] == [tree.parent(label)][: len(above)]
        for node in above:
            assert label in tree.descendants(node)
            assert tree.at_level(label, tree.level(node)) == node
        for node in tree.descendants(label):
            assert label in tree.ancestors(node)


@given(trees())
def test_every_label_is_reached_once(tree):
    """The roots and their descendants are all labels, each once; siblings have the same parent."""
    reached = [node for root in tree.roots for node in [root, *tree.descendants(root)]]

    assert sorted(reached) == list(tree.nodes)
    for label in tree.nodes:
        same_parent = [node for node in tree.nodes if tree.parent(node) == tree.parent(label)]
        assert sorted([label, *tree.siblings(label)]) == same_parent


@given(trees())
def test_round_trip(tree):
    """A tree from JSON, a pickle or a copy is equal."""
    assert LabelTree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree  # noqa: S301
    assert copy.deepcopy(tree) == tree


@pytest.mark.corpus
def test_library_classes(data):
    """The Finnish library classes have ten roots, and contain every label of the corpus."""
    corpus = data("fi-makupalat")
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        used = {label for line in lines for label in json.loads(line)["labels"]}

    tree = LabelTree.from_file(corpus.parent / "fi-makupalat.hierarchy.tsv")

    assert len(tree) == 1309
    assert tree.roots == tuple("0123456789")
    assert used <= set(tree.nodes)
    assert tree.ancestors("00.109") == ["00.1", "00", "0"]
    assert tree.names["00"] == {"fi": "KIRJA-ALA"}


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "level"), [("cei", 2), ("debtags-en", 1)])
def test_path_labels(data, name, level):
    """In corpora with paths as labels, the separator is found, and the tree has several levels."""
    with gzip.open(data(name), "rt", encoding="utf-8") as lines:
        used = {label for line in lines for label in json.loads(line)["labels"]}

    tree = LabelTree.from_names(used, None)

    assert max(tree.level(label) for label in used) >= level


@pytest.mark.parametrize("text", ["parent,id\n,a\na,b\n", "name,id,parent\nA,a,\nB,b,a\n"])
def test_a_header_in_any_order(tmp_path, text):
    """Columns are identified by their titles, in any order."""
    tree = LabelTree.from_file(write(tmp_path, text, "tree.csv"))

    assert tree.nodes == ("a", "b")
    assert tree.parent("b") == "a"
