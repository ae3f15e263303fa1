"""Reading PubMed's XML."""

import gzip
import itertools
import tracemalloc

import pytest

from polytopic.corpus import Document, read_documents
from tests.corpus.reading import read

HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://invalid/pubmed.dtd">
<PubmedArticleSet>
"""
ARTICLE = """<PubmedArticle>
  <MedlineCitation>
    <PMID Version="1">{}</PMID>
    <Article>
      <Journal><JournalIssue><PubDate><Year>2020</Year><Month>May</Month><Day>31</Day></PubDate>
      </JournalIssue><Title>Invented Medicine</Title></Journal>
      <ArticleTitle>Growth of <i>E. coli</i> &amp; others in α.</ArticleTitle>
      <Abstract>
        <AbstractText Label="AIM">To grow.</AbstractText>
        <AbstractText Label="RESULT">It
          grew.</AbstractText>
      </Abstract>
    </Article>
    <MeshHeadingList>
      <MeshHeading><DescriptorName UI="D1" MajorTopicYN="Y">Escherichia coli</DescriptorName>
        <QualifierName UI="Q1">growth</QualifierName></MeshHeading>
      <MeshHeading><DescriptorName UI="D2">Humans</DescriptorName></MeshHeading>
    </MeshHeadingList>
  </MedlineCitation>
  <PubmedData><ReferenceList><Reference><ArticleIdList/></Reference></ReferenceList></PubmedData>
</PubmedArticle>
"""
TAIL = "<DeleteCitation><PMID>9</PMID></DeleteCitation>\n</PubmedArticleSet>\n"
TEXT = "Growth of E. coli & others in α.\nTo grow.\nIt grew."


def lines_of(text):
    """Return lines with their ends."""
    return text.splitlines(keepends=True)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_articles(write, pack):
    """Title and abstract are the text, headings the labels; the DTD is not fetched."""
    content = HEAD + ARTICLE.format(1) + ARTICLE.format(2) + TAIL

    documents = list(read_documents(write("pubmed25n0001.xml.gz", pack(content.encode()))))

    labels = ["Escherichia coli", "Humans"]
    assert documents == [
        Document(id, text=TEXT, labels=labels, time="2020-05-31") for id in ("1", "2")
    ]


def test_articles_on_one_line():
    """Line ends have no meaning in XML."""
    content = (HEAD + ARTICLE.format(1) + ARTICLE.format(2) + TAIL).replace("\n", " ")

    documents = list(read_documents([content], format="pubmed"))

    assert [(document.id, document.text) for document in documents] == [("1", TEXT), ("2", TEXT)]


def test_other_articles():
    """Citations as MEDLINE had them, and books, are read too."""
    lines = [
        "<MedlineCitationSet><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>a",
        "</ArticleTitle></Article></MedlineCitation><PubmedBookArticle><BookDocument><PMID>2",
        "</PMID><Book><BookTitle>b</BookTitle><PubDate><MedlineDate>1998 Dec-1999 Jan",
        "</MedlineDate></PubDate></Book></BookDocument></PubmedBookArticle></MedlineCitationSet>",
    ]

    documents = list(read_documents(lines, format="pubmed"))

    assert documents == [Document("1", text="a"), Document("2", text="b", time="1998-12-01")]


def test_broken_xml_is_read_up_to_the_error():
    """The error names the line, and reading stops."""
    content = HEAD + ARTICLE.format(1) + "<PubmedArticle>\n</PMID>\n" + ARTICLE.format(2) + TAIL

    documents, errors = read(lines_of(content), format="pubmed")

    assert [document.id for document in documents] == ["1"]
    line = 2 + (HEAD + ARTICLE).count("\n")
    assert errors == [f"input, line {line}: not valid XML (mismatched tag)."]


def test_a_file_that_ends_too_early():
    """The articles before the end are read, then there is an error."""
    content = HEAD + ARTICLE.format(1) + "<PubmedArticle>\n"

    documents, errors = read(lines_of(content), format="pubmed")

    assert [document.id for document in documents] == ["1"]
    assert len(errors) == 1
    assert "not valid XML (no element found)" in errors[0]


def test_a_bad_byte_invalidates_only_its_article():
    """An article with an invalid line is skipped as a whole."""
    lines = [
        line.encode() for line in lines_of(HEAD + ARTICLE.format(1) + ARTICLE.format(2) + TAIL)
    ]
    lines[11] = b"\xff\n"

    documents, errors = read(lines, format="pubmed")

    assert [document.id for document in documents] == ["2"]
    assert len(errors) == 1
    assert errors[0].startswith("input, line 4: not valid UTF-8")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            '<!DOCTYPE a [<!ENTITY b "c">]><PubmedArticleSet/>',
            "declares an entity, which is not allowed",
        ),
        (
            "<labels/>",
            "the root is <labels>, must be <PubmedArticleSet> or <MedlineCitationSet>",
        ),
        ("plain words", "not valid XML (syntax error)"),
    ],
)
def test_something_else(content, reason):
    """Other XML, and entities that could expand without limit, are rejected."""
    documents, errors = read([content], format="pubmed")

    assert documents == []
    assert errors == [f"input, line 1: {reason}."]


def test_memory_is_constant():
    """Articles are read one by one and removed from the tree."""
    articles = (lines_of(ARTICLE.format(n)) for n in itertools.count())
    lines = itertools.chain(lines_of(HEAD), itertools.chain.from_iterable(articles))

    tracemalloc.start()
    documents = itertools.islice(read_documents(lines, format="pubmed"), 2000)
    number = sum(1 for _ in documents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert number == 2000
    assert peak < 500_000
