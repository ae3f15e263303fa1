"""Reading tables, SVMlight and plain text."""

from polytopic.corpus import Document, read_documents


def test_table_with_quoted_lines(write):
    """A cell may contain line ends and separators; ids are the lines where records start."""
    path = write("a.csv", 'text,labels\r\n"one\r\ntwo, ""three""","a, b,"\r\n\r\nlast,\r\n')

    documents = list(read_documents(path))

    quoted = Document("2", text='one\r\ntwo, "three"', labels=["a", "b"])
    assert documents == [quoted, Document("5", text="last")]


def test_table_columns(write):
    """Columns are found by name; several text columns become fields; others are ignored."""
    path = write("a.tsv", "n\ttitle\tbody\ttopics\tx\n7\tA\tB\tcorn; oil\t0\n\tC\tD\t\t0\n")
    names = {"text_column": "title,body", "labels_column": "topics", "id_column": "n"}

    documents = list(read_documents(path, label_separator=";", **names))

    first = Document("7", fields={"title": "A", "body": "B"}, labels=["corn", "oil"])
    assert documents == [first, Document("3", fields={"title": "C", "body": "D"})]


def test_table_with_time_and_split(write):
    """Time and split are read if the table has them; an empty cell means none."""
    path = write("a.csv", "text,time,split\na,2020-01-01,test\nb,,\n")

    documents = list(read_documents(path))

    assert documents == [
        Document("2", text="a", time="2020-01-01", split="test"),
        Document("3", text="b"),
    ]


def test_a_long_cell(write):
    """The csv module's default limit on cells does not apply."""
    path = write("a.csv", "text\n" + "a" * 200_000 + "\n")

    [document] = read_documents(path)

    assert len(document.text) == 200_000


def test_svmlight(write):
    """Labels and indices stay strings; comments and zeros are ignored."""
    path = write("a.svm", "# made by hand\n1,7 3:2 4:0.5 9:0 # good\n 5:1e2\n2\n6:1\n")

    documents = list(read_documents(path))

    assert documents == [
        Document("2", counts={"3": 2, "4": 0.5}, labels=["1", "7"]),
        Document("3", counts={"5": 100}),
        Document("4", counts={}, labels=["2"]),
        Document("5", counts={"6": 1}),
    ]


def test_header_of_the_extreme_classification_repository(write):
    """The line with the numbers of documents, features and labels is not a document."""
    path = write("train.txt", "2 10 8\n1,7 3:2\n 5:1\n")

    documents = list(read_documents(path, format="svmlight"))

    assert [document.id for document in documents] == ["2", "3"]


def test_text_lines(write):
    """Each line that is not blank is a document."""
    path = write("a.txt", " one \r\n\ntwo\u2028three")

    documents = list(read_documents(path))

    assert documents == [Document("1", text=" one "), Document("3", text="two\u2028three")]
