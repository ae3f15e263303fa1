"""Reading references of OHSUMED and MEDLINE."""

import gzip
import itertools

import pytest

from polytopic.corpus import Document, read_documents
from polytopic.errors import CorpusWarning
from tests.corpus.reading import read

OHSUMED = """\
.I 1
.U
87049087
.S
J Invented Med 8703; 4(6):491-5
.M
Ambulances/*; Human; Support, U.S. Gov't, P.H.S.; Ventricular Fibrillation/PP/*TH.
.T
Rhythm on the road.
.P
JOURNAL ARTICLE.
.W
Some patients
were driven.
.A
Doe J; Roe R.
.I 2
.M
Human.
.T
A title only.
"""

MEDLINE = """
PMID- 2413982
OWN - NLM
DP  - 1985 Dec 15
TI  - Cold hands and what
      to do about them.
AB  - Thirty hands were warmed
      for a day (days 1-5).
MH  - Adolescent
MH  - Nails/*blood supply
MH  - *Raynaud Disease/blood/chemically
      induced

PMID- 4089584
DP  - 1969 Dec-1970 Jan
TI  - [A title only].
"""


def lines_of(text):
    """Return lines with their ends."""
    return text.splitlines(keepends=True)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_ohsumed(write, pack):
    """Title and abstract are the text, headings without qualifiers the labels."""
    path = write("ohsumed.87", pack(OHSUMED.encode()))

    documents = list(read_documents(path, format="ohsumed"))

    labels = ["Ambulances", "Human", "Support, U.S. Gov't, P.H.S.", "Ventricular Fibrillation"]
    text = "Rhythm on the road.\nSome patients were driven."
    assert documents == [
        Document("87049087", text=text, labels=labels, time="1987-03-01"),
        Document("2", text="A title only.", labels=["Human"]),
    ]


def test_bad_references_of_ohsumed():
    """Errors name the first line of a record, or the text before the first record."""
    documents, errors = read(lines_of("words\nmore\n.I 1\n.U\n7\n" + OHSUMED), format="ohsumed")

    assert [document.id for document in documents] == ["87049087", "2"]
    assert errors == [
        "input, line 1: 'words' is outside of a record.",
        "input, line 3: has neither .T (title) nor .W (abstract).",
    ]


@pytest.mark.parametrize("name", ["a.nbib", "a.medline", "a.medline.gz"])
def test_medline(write, name):
    """Lines that begin with spaces continue a field; a range of dates counts from its start."""
    documents = list(read_documents(write(name, MEDLINE)))

    text = "Cold hands and what to do about them.\nThirty hands were warmed for a day (days 1-5)."
    labels = ["Adolescent", "Nails", "Raynaud Disease"]
    assert documents == [
        Document("2413982", text=text, labels=labels, time="1985-12-15"),
        Document("4089584", text="[A title only].", time="1969-12-01"),
    ]


def test_windows_line_ends():
    """They are not part of a value."""
    lines = [line.replace("\n", "\r\n") for line in lines_of(MEDLINE)]

    assert list(read_documents(lines, format="medline")) == list(
        read_documents(lines_of(MEDLINE), format="medline")
    )


def test_a_bad_reference_of_medline():
    """A line that is not a field invalidates only its record."""
    bad = "PMID- 1\nTI  - one\nwords\nAB  - two\n"

    documents, errors = read(lines_of(bad + MEDLINE), format="medline")

    assert [document.id for document in documents] == ["2413982", "4089584"]
    assert errors == [
        "input, line 1: 'words' must begin with a field such as 'TI  - ', or with "
        "spaces to continue one."
    ]


def test_a_bad_byte_invalidates_only_its_record():
    """The rest of the record is skipped silently."""
    lines = [line.encode() for line in lines_of(MEDLINE)]
    lines[4] = b"TI  - \xff\n"

    documents, errors = read(lines, format="medline")

    assert [document.id for document in documents] == ["4089584"]
    assert len(errors) == 1
    assert errors[0].startswith("input, line 2: not valid UTF-8")


def test_a_record_is_bounded():
    """An endless record does not exhaust the memory."""
    endless = ["PMID- 1\n", "AB  - a\n", *["      word\n"] * 30, *lines_of(MEDLINE)]

    documents, errors = read(endless, format="medline", max_line_bytes=300)

    assert [document.id for document in documents] == ["2413982", "4089584"]
    assert errors == ["input, line 1: longer than 300 bytes."]


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("2022", "2022-01-01"),
        ("2022 May", "2022-05-01"),
        ("2001 Autumn", "2001-10-01"),
        ("1998-1999", "1998-01-01"),
        ("2000 1st Quart", "2000-01-01"),
        ("2020/05/31", "2020-05-31"),
    ],
)
def test_dates(date, day):
    """A missing month or day means the first."""
    [document] = read_documents(["PMID- 1\n", f"DP  - {date}\n"], format="medline")

    assert document.time.date().isoformat() == day


@pytest.mark.parametrize("date", ["2001 Feb 30", "Spring"])
def test_an_invalid_date(date):
    """The date is dropped; the document is read."""
    with pytest.warns(CorpusWarning, match="line 1: time == .*kept without it"):
        [document] = read_documents(["PMID- 1\n", f"DP  - {date}\n"], format="medline")

    assert document.time is None


@pytest.mark.parametrize(("format", "sample"), [("ohsumed", OHSUMED), ("medline", MEDLINE)])
def test_an_endless_stream(format, sample):
    """Records are read one by one."""
    lines = itertools.cycle(lines_of(sample))

    documents = list(itertools.islice(read_documents(lines, format=format), 501))

    assert documents[0] == documents[500]


@pytest.mark.parametrize("format", ["ohsumed", "medline", "pubmed"])
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file(write, format, content):
    """A file without references is not an error."""
    assert list(read_documents(write("a", content), format=format)) == []
