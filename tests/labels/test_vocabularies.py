"""Reading and writing vocabularies: SKOS, TSV and CSV."""

import sys
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polytopic.errors import LabelWarning, PolytopicError
from polytopic.labels import LabelTree
from tests.labels.strategies import trees

URIS = st.sampled_from(["http://example.org/", "https://x.org/a#", "urn:nbn:"]).flatmap(
    lambda start: st.text(min_size=1, max_size=3).map(lambda end: start + end)
)
LABELS = st.text(min_size=1, max_size=3) | URIS
ODD = LabelTree(
    {"a|b": None, '"q"': "a|b", "http://x.org/å": None, "urn:polytopic:label:a%20b": '"q"'},
    {"a|b": {"en": 'A "b", c', "": "=1"}, '"q"': "☃"},
    alternatives={"a|b": {"fi": ["x|y", "\\", "\\|", "z,\t"]}, '"q"': ["one", "two"]},
    notations={'"q"': "00.109"},
)
SKOS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://example.org/> .
:scheme a skos:ConceptScheme ; skos:hasTopConcept :science .
:science skos:prefLabel "science"@en, "tiede"@fi ; skos:narrower :space .
:space a skos:Concept ; skos:prefLabel "space"@en, "outer space"@en ;
    skos:altLabel "cosmos"@EN, "kosmos"@fi, "universum" ; skos:notation "52" .
:mars a skos:Concept ; skos:broader :space ; skos:prefLabel "Mars" .
:vulcan a skos:Concept ; skos:broader :space ; owl:deprecated true .
:romulus a skos:Concept ; skos:broader :vulcan ; owl:deprecated false .
:alone skos:topConceptOf :scheme .
[] a skos:Concept ; skos:prefLabel "nameless" .
"""


def write(folder, text, name):
    """Write a file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder for all examples of a test."""
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize("ending", [".ttl", ".rdf", ".nt", ".csv", ".tsv"])
@given(tree=trees(LABELS))
@settings(max_examples=40)
@example(tree=ODD)
@example(tree=LabelTree({}))
def test_round_trip(folder, ending, tree):
    """A written tree reads back identically; one that the format cannot represent is rejected."""
    path = folder / f"tree{ending}"
    path.unlink(missing_ok=True)

    try:
        tree.to_file(path)
    except ValueError as error:
        message = str(error)
    else:
        assert LabelTree.from_file(path) == tree
        return

    assert "cannot represent" in message or "cannot be written as XML" in message
    assert ending in (".rdf", ".csv", ".tsv")
    assert not path.exists()


def test_a_skos_vocabulary(tmp_path):
    """Both directions of the hierarchy are read, with all names, but no deprecated concepts."""
    tree = LabelTree.from_file(write(tmp_path, SKOS, "tree.ttl"))

    def at(*names):
        return [f"http://example.org/{name}" for name in names]

    assert list(tree.nodes) == sorted(at("science", "space", "mars", "romulus", "alone"))
    assert tree.ancestors(*at("mars")) == at("space", "science")
    assert list(tree.roots) == at("alone", "romulus", "science")
    space = "http://example.org/space"
    assert tree.names[space] == {"en": "outer space"}  # the first in sorted order
    assert tree.alternatives[space] == {
        "en": ("cosmos", "space"),
        "fi": ("kosmos",),
        "": ("universum",),
    }
    assert tree.notations[space] == "52"
    assert tree.name("http://example.org/science", "fi") == "tiede"


def test_the_same_vocabulary_in_xml(tmp_path):
    """RDF/XML gives the same tree as Turtle."""
    tree = LabelTree.from_file(write(tmp_path, SKOS, "tree.ttl"))

    tree.to_file(tmp_path / "tree.rdf")

    assert (tmp_path / "tree.rdf").read_bytes().startswith(b"<?xml")
    assert LabelTree.from_file(tmp_path / "tree.rdf") == tree


def test_several_broader_concepts(tmp_path):
    """The first one in sorted order is kept, and a warning names a label with several."""
    several = """
    @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
    <c> skos:broader <b>, <a> . <d> skos:broader <a> .
    <a> skos:narrower <e> . <b> skos:narrower <e> .
    """
    path = write(tmp_path, several, "tree.ttl")

    with pytest.warns(LabelWarning) as warned:
        tree = LabelTree.from_file(path)

    assert tree == LabelTree({"c": "a", "d": "a", "e": "a", "b": None})
    (sentence,) = [str(warning.message) for warning in warned]
    assert sentence.startswith("2 labels of ")
    assert sentence.endswith("'c' is under 'a', not under 'b'.")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<http://x.org/1>\tnetworks\n<http://x.org/2>\tprotocols\t42.42\n", "subjects.tsv"),
        (
            "uri,label_en,notation\nhttp://x.org/1,networks,\nhttp://x.org/2,protocols,42.42\n",
            "subjects.csv",
        ),
        (
            "notation,label_en,uri\n,networks,<http://x.org/1>\n42.42,protocols,http://x.org/2\n",
            "subjects.csv",
        ),
    ],
)
def test_subject_vocabularies(tmp_path, text, name):
    """Flat lists of URIs with labels, as libraries exchange them, are read."""
    tree = LabelTree.from_file(write(tmp_path, text, name))

    assert tree.nodes == tree.roots == ("http://x.org/1", "http://x.org/2")
    assert [tree.name(label) for label in tree.nodes] == ["networks", "protocols"]
    assert tree.notations == {"http://x.org/2": "42.42"}
    assert set(tree.names["http://x.org/1"]) == ({""} if name.endswith("tsv") else {"en"})


def test_columns_in_any_order(tmp_path):
    """Columns are identified by their titles; a warning names columns with unknown titles."""
    text = "id,label_fi,broader,altLabel_pt_BR,label,definition\nb,Beta,a,x| y\\|z,B,?\n"
    path = write(tmp_path, text, "tree.csv")

    with pytest.warns(LabelWarning, match="the columns definition are ignored"):
        tree = LabelTree.from_file(path)

    assert tree == LabelTree(
        {"b": "a"}, {"b": {"fi": "Beta", "": "B"}}, alternatives={"b": {"pt-br": ["x", "y|z"]}}
    )


def test_a_table_for_other_programs(tmp_path):
    """If all labels are URIs, the title of the first column says so."""
    tree = LabelTree({"http://x.org/1": None}, {"http://x.org/1": {"en": "one", "fi": "yksi"}})

    tree.to_file(tmp_path / "tree.csv")

    header = "uri,parent,label_en,label_fi"
    assert (tmp_path / "tree.csv").read_text() == f"{header}\nhttp://x.org/1,,one,yksi\n"


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("<a> nonsense", "t.ttl", r"t.ttl' cannot be read as turtle: at line 1"),
        ("<a", "t.rdf", "t.rdf' cannot be read as xml: "),
        (
            "<a> <http://www.w3.org/2004/02/skos/core#broader> <a> .",
            "t.ttl",
            "cycle, 'a' under 'a'",
        ),
    ],
)
def test_bad_skos(tmp_path, text, name, sentence):
    """The error says in one sentence what is wrong."""
    with pytest.raises(ValueError, match=sentence):
        LabelTree.from_file(write(tmp_path, text, name))


def test_bytes_that_are_not_text(tmp_path):
    """A table must be UTF-8."""
    path = tmp_path / "tree.tsv"
    path.write_bytes(b"a\xff\t\n")

    with pytest.raises(ValueError, match=r"is not valid UTF-8 \(byte 2\)"):
        LabelTree.from_file(path)


def test_where_trees_are_written(tmp_path):
    """The file extension must be known, and the folder must exist."""
    tree = LabelTree({"a": None})

    with pytest.raises(ValueError, match=r"must end in \.ttl, \.rdf, \.nt, \.csv or \.tsv"):
        tree.to_file(tmp_path / "tree.docx")
    with pytest.raises(PolytopicError, match="does not exist"):
        tree.to_file(tmp_path / "nowhere" / "tree.csv")


def test_without_rdflib(tmp_path, monkeypatch):
    """For SKOS, the error says what to install; tables need no library."""
    monkeypatch.setitem(sys.modules, "rdflib", None)
    tree = LabelTree({"a": None})

    tree.to_file(tmp_path / "tree.csv")

    path = write(tmp_path, SKOS, "skos.ttl")
    for act in (tree.to_file, LabelTree.from_file):
        with pytest.raises(PolytopicError, match=r"pip install 'polytopic\[formats\]'"):
            act(path)


def test_a_plain_file_gives_no_warning(tmp_path):
    """There is no warning if nothing was ambiguous."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelTree.from_file(write(tmp_path, SKOS, "tree.ttl"))


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("id,parent,parent", "parent and parent"),
        ("id,id,parent", "id and id"),
        ("id,parent,name,label", "name and label"),
        ("id,parent,alt_en,altLabel_en", "alt_en and altLabel_en"),
    ],
)
def test_columns_that_say_the_same(tmp_path, header, columns):
    """Two columns with the same meaning are rejected."""
    path = tmp_path / "tree.csv"
    path.write_text(f"{header}\n{','.join('abcd'[: header.count(',') + 1])}\n")

    with pytest.raises(ValueError, match=f"has the columns {columns}, which mean the same"):
        LabelTree.from_file(path)


ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [
{declared}
]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="&a;1"><skos:prefLabel>One</skos:prefLabel></skos:Concept>
</rdf:RDF>
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY b "bbbbbbbb"><!ENTITY a "&b;&b;&b;&b;">',
        f'<!ENTITY a "{"b" * 2000}">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
    ],
)
def test_hostile_entities(tmp_path, declared, encoding):
    """A file whose entities contain entities, long texts or files is not parsed."""
    path = tmp_path / "tree.rdf"
    path.write_bytes(ENTITIES.format(declared=declared).encode(encoding))

    with pytest.raises(ValueError, match="declares the entity 'a', must be at most"):
        LabelTree.from_file(path)


def test_entities_in_another_encoding_than_declared(tmp_path):
    """The file is checked in the encoding that it is read in."""
    path = tmp_path / "tree.rdf"
    declared = '<!ENTITY b "bbbbbbbb"><!ENTITY a "&b;&b;&b;&b;">'
    content = ENTITIES.format(declared=declared).removeprefix('<?xml version="1.0"?>')
    path.write_text('<?xml version="1.0" encoding="UTF-16"?>' + content)

    with pytest.raises(ValueError, match="declares the entity 'a', must be at most"):
        LabelTree.from_file(path)


def test_header_with_many_columns(tmp_path):
    """A header with very many languages is read quickly."""
    path = tmp_path / "tree.csv"
    languages = [f"x{i}" for i in range(100_000)]
    path.write_text(f"id,parent,{','.join(f'name_{code}' for code in languages)}\na,b\n")

    assert LabelTree.from_file(path).parent("a") == "b"


def test_entities_for_namespaces(tmp_path):
    """Entities for namespaces are common in ontologies, and are accepted."""
    path = tmp_path / "tree.rdf"
    path.write_text(ENTITIES.format(declared='<!ENTITY a "http://example.org/">'))

    assert LabelTree.from_file(path).nodes == ("http://example.org/1",)
