"""Reading ARFF as Mulan and MEKA write it."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic.corpus import Document, read_documents
from tests.corpus.reading import read
from tests.corpus.strategies import characters

HEAD = """\
% words of an invented corpus
@RELATION words

@attribute wheat numeric
@ATTRIBUTE 'it\\'s' REAL
@attribute rose {0, 1}
@attribute colour {red, 'dark blue'}
@attribute "grain trade" {0,1}
@attribute\tsport\t{0,1}
@data
"""
LABELS = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="grain trade"><label name="sport"></label></label>
</labels>
"""
DENSE = "2, 0.5, 1, red, 1, 0\n%\n\n0,0,0,?,1,1\n"
SPARSE = "{0 2, 1 0.5, 2 1, 3 red, 4 1}\n%\n\n{ 4 1,5 1}\n{}\n"
FIRST = {"counts": {"wheat": 2, "it's": 0.5, "rose": 1, "colour=red": 1}, "labels": ["grain trade"]}


def lines_of(text):
    """Return lines with their ends."""
    return text.splitlines(keepends=True)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(("rows", "number"), [(DENSE, 2), (SPARSE, 3)])
def test_mulan(write, rows, number, pack):
    """Labels are those in the XML file next to it; numbers are counts, without zeros and ?."""
    write("words.xml", LABELS)

    documents = list(read_documents(write("words.arff", pack((HEAD + rows).encode()))))

    expected = [
        Document("11", **FIRST),
        Document("14", counts={}, labels=["grain trade", "sport"]),
        Document("15", counts={}),
    ]
    assert documents == expected[:number]


@pytest.mark.parametrize("name", ["words-train.arff", "words-test.arff.gz", "words_TRAIN.arff"])
def test_mulan_in_parts(write, name):
    """One XML file serves both parts."""
    write("words.xml", LABELS)

    assert next(read_documents(write(name, HEAD + DENSE))).labels == ("grain trade",)


def test_a_folder_of_mulan(write, tmp_path):
    """The list of labels is not read as a corpus."""
    write("words.xml", LABELS)
    write("words-train.arff", HEAD + DENSE)
    write("words-test.arff", HEAD + SPARSE)

    documents = list(read_documents(tmp_path))

    ids = [document.id for document in documents]
    assert ids[:2] == ["words-test.arff:11", "words-test.arff:14"]
    assert len(ids) == 5


@pytest.mark.parametrize("given", ["{}/lists/words.xml", "sport, grain trade"])
def test_explicit_labels(tmp_path, write, given):
    """Labels are given by the file that lists them, or by name."""
    (tmp_path / "lists").mkdir()
    write("lists/words.xml", LABELS)
    path = write("words.arff", HEAD + DENSE)

    documents = list(read_documents(path, labels_column=given.format(tmp_path)))

    assert [document.labels for document in documents] == [
        ("grain trade",),
        ("grain trade", "sport"),
    ]


@pytest.mark.parametrize(
    ("option", "labels", "counts"),
    [
        ("-C 2", ("a", "b"), {"c": 1, "d": 1}),
        ("-C -1 -split-number 2", ("d",), {"a": 1, "b": 1, "c": 1}),
    ],
)
def test_meka(option, labels, counts):
    """The relation says how many of the first, or of the last, attributes are labels."""
    names = [f"@attribute {name} {{0,1}}\n" for name in "abcd"]
    lines = [f"@relation 'words: {option}'\n", *names, "@data\n", "1,1,1,1\n"]

    [document] = read_documents(lines, format="arff")

    assert document == Document("7", counts=counts, labels=labels)


def test_a_text_and_a_column_of_labels():
    """A string is the text, and numbers are ignored; id, time and split have attributes."""
    lines = lines_of(
        "@relation r\n@attribute id string\n@attribute body string\n@attribute length numeric\n"
        "@attribute labels string\n@attribute time date 'yyyy-MM-dd'\n"
        "@attribute split {train,test}\n@data\n"
        "x7,'It\\'s 5%,\\nor \"six\"',12,'corn,oil','2020-05-31',test\n"
    )

    [document] = read_documents(lines, format="arff")

    assert document == Document(
        "x7", text='It\'s 5%,\nor "six"', labels=["corn", "oil"], time="2020-05-31", split="test"
    )


def test_fields_and_a_class():
    """Several strings are fields; a class is a label when it is named."""
    lines = lines_of(
        "@relation r\n@attribute n numeric\n@attribute title string\n@attribute body string\n"
        "@attribute topic {corn,oil}\n@data\n7,a,'b c',corn\n"
    )

    [document] = read_documents(lines, format="arff", labels_column="topic", id_column="n")

    assert document == Document("7", fields={"title": "a", "body": "b c"}, labels=["corn"])


def test_words_called_id_and_time():
    """Numbers are counts, whatever their name."""
    lines = lines_of(
        "@relation 'r: -C 1'\n@attribute x {0,1}\n@attribute id numeric\n"
        "@attribute time numeric\n@data\n1,2,3\n"
    )

    assert list(read_documents(lines, format="arff")) == [
        Document("6", counts={"id": 2, "time": 3}, labels=["x"])
    ]


@given(st.lists(st.text(characters.filter(lambda sign: sign != "\0")), min_size=1, max_size=4))
def test_quoting(texts):
    """Any quoted string is read back unchanged."""
    signs = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    cells = ["'" + "".join(signs.get(sign, sign) for sign in text) + "'" for text in texts]
    names = [f"f{number}" for number in range(len(texts))]
    lines = [*(f"@attribute {name} string\n" for name in names), "@data\n", ", ".join(cells) + "\n"]

    [document] = read_documents(lines, format="arff", text_column=",".join(names))

    assert (document.fields or {"f0": document.text}) == dict(zip(names, texts, strict=True))


BAD_ROWS = {
    "1,2": "2 values, must be 6, one per attribute",
    "-1,0,0,red,0,0": "'wheat' is -1, must be >= 0: numbers are counts of terms",
    "x,0,0,red,0,0": "'wheat' is 'x', must be a number",
    "nan,0,0,red,0,0": "counts['wheat'] == nan, must be a number > 0 and <= 2**53",
    "0,0,0,red,2,0": "label 'grain trade' is '2', must be 0 or 1",
    "0,0,0,'red,2,0": '"\'red,2,0" is not a value, or a quote is not closed',
    "{0 1": "begins with {, must end with }",
    "{0}": "'0' is not a pair 'attribute value'",
    "{6 1}": "attribute 6 must be below 6",
    "{1 1, 1 2}": "attribute 1 occurs twice",
}


@pytest.mark.parametrize(("row", "reason"), BAD_ROWS.items())
def test_a_bad_row(row, reason):
    """The error names the line, and the other lines are read."""
    names = {"labels_column": "grain trade,sport"}

    documents, errors = read(lines_of(f"{HEAD}{row}\n{DENSE}"), format="arff", **names)

    assert [document.id for document in documents] == ["12", "15"]
    assert errors == [f"input, line 11: {reason}."]


BAD_HEADS = {
    "@attribute a\n": "line 1: '@attribute a' must be '@attribute name type'",
    "@attribute a relational\n": "line 1: attribute 'a' is of type 'relational', which cannot",
    "@attribute a real\n@attribute a real\n@data\n": "line 3: attribute 'a' occurs twice",
    "words\n": "line 1: 'words' must begin with @relation, @attribute or @data",
    "@attribute a real\n": "line 1: the file ends without @data",
    "@attribute a real\n@data\n1\n": "line 2: no labels are declared; add",
    "@relation 'a: -C 3'\n@attribute a real\n@data\n": "line 3: -C 3 in @relation, but there are 1",
}


@pytest.mark.parametrize(("head", "reason"), BAD_HEADS.items())
def test_a_bad_header_stops_reading(head, reason):
    """No row can be read without it, so there is one error."""
    documents, errors = read(lines_of(head), format="arff")

    assert documents == []
    assert len(errors) == 1
    assert errors[0].startswith(f"input, {reason}")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"labels_column": "none"}, "label 'none' of labels_column is not an attribute"),
        ({"labels_column": "no.xml"}, "'no.xml' does not exist"),
        ({"labels_column": "", "text_column": "a"}, "attribute 'a' is missing"),
        ({"labels_column": "", "id_column": "a"}, "attribute 'a' is missing"),
        ({"labels_column": "", "text_column": "wheat"}, "attribute 'wheat' is the text, must be"),
    ],
)
def test_unknown_names(options, reason):
    """The message names what was given."""
    documents, errors = read(lines_of(HEAD + DENSE), format="arff", **options)

    assert documents == []
    assert errors[0].startswith(f"input, line 10: {reason}")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<labels", "is not valid XML (unclosed token"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><labels/>', "declares an entity, which is not allowed"),
        ('<labels><label name="x"/></labels>', "is not an attribute"),
    ],
)
def test_a_bad_list_of_labels(write, content, reason):
    """Reading stops."""
    write("words.xml", content)

    documents, errors = read(write("words.arff", HEAD + DENSE))

    assert documents == []
    assert reason in errors[0]


def test_a_list_of_labels_in_another_encoding(write, tmp_path):
    """The encoding of an XML file hides no entity, and names are read in any."""
    (tmp_path / "words.xml").write_bytes(
        '<!DOCTYPE a [<!ENTITY b "c">]><labels><label name="&b;"/></labels>'.encode("utf-16")
    )
    path = write("words.arff", HEAD + DENSE)

    _, errors = read(path)
    (tmp_path / "words.xml").write_bytes('<labels><label name="č"/></labels>'.encode("utf-16"))
    _, unknown = read(path)

    assert "declares an entity, which is not allowed" in errors[0]
    assert "label 'č' of" in unknown[0]


def test_no_labels():
    """An empty name means no labels."""
    documents = list(read_documents(lines_of(HEAD + DENSE), format="arff", labels_column=""))

    assert [document.labels for document in documents] == [(), ()]


@pytest.mark.parametrize("content", ["", "% nothing\n"])
def test_an_empty_file(write, content):
    """A file without rows is not an error."""
    assert list(read_documents(write("a.arff", content))) == []
