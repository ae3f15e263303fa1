"""Reading Reuters-21578 in SGML."""

import gzip
import itertools
import tracemalloc

import pytest

from polytopic.corpus import Document, read_documents
from polytopic.errors import CorpusWarning
from tests.corpus.reading import read

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'


def story(number, *, lewis="TRAIN", topics="YES", date="26-FEB-1987 15:01:01.79", text=None):
    """Return a story in the format of the files."""
    text = text or (
        "<TEXT>&#2;\n<TITLE>CAFÉ &lt;CF> UP</TITLE>\n<DATELINE>    LIMA, Feb 26 - </DATELINE>"
        "<BODY>Coffee &amp; tea rose\n5 pct.\n Reuter\n&#3;</BODY></TEXT>"
    )
    return (
        f'<REUTERS TOPICS="{topics}" LEWISSPLIT="{lewis}" CGISPLIT="TRAINING-SET" OLDID="9" '
        f'NEWID="{number}">\n<DATE>{date}</DATE>\n<TOPICS><D>coffee</D><D>tea</D></TOPICS>\n'
        "<PLACES><D>peru</D></PLACES>\n<UNKNOWN> \n&#5;&#22;f0704\x1freute</UNKNOWN>\n"
        f"{text}\n</REUTERS>\n"
    )


TEXT = "CAFÉ <CF> UP\nCoffee & tea rose\n5 pct.\n Reuter"
TIME = "1987-02-26T15:01:01"
STORY = Document("1", text=TEXT, labels=["coffee", "tea"], time=TIME, split="train")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["reut2-000.sgm", "reut2-000.sgml", "reut2-000.sgm.gz"])
def test_a_story(write, name, pack):
    """Title and body are the text, topics the labels; places and control codes are ignored."""
    path = write(name, pack((HEAD + story(1)).encode("latin-1")))

    assert list(read_documents(path)) == [STORY]


@pytest.mark.parametrize(
    ("lewis", "topics", "split"),
    [
        ("TRAIN", "YES", "train"),
        ("TEST", "YES", "test"),
        ("TRAIN", "NO", "unused"),
        ("TEST", "BYPASS", "unused"),
        ("NOT-USED", "YES", "unused"),
    ],
)
def test_the_modapte_split(lewis, topics, split):
    """The split follows from two attributes; unused documents are not trained on."""
    [document] = read_documents([story(1, lewis=lewis, topics=topics)], format="reuters")

    assert document.split == split


def lines_of(text):
    """Return lines with their ends."""
    return text.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '<TEXT TYPE="UNPROC">&#2;\n  RAW <AUTHOR>by me</AUTHOR> &lt;X>\n&#3;</TEXT>',
            "RAW by me <X>",
        ),
        ('<TEXT TYPE="BRIEF">&#2;\n******<TITLE>FLASH</TITLE>\n&#3;</TEXT>', "FLASH"),
        ("<TEXT><TITLE></TITLE></TEXT>", ""),
    ],
)
def test_texts_of_other_types(text, expected):
    """A text without parts is read as a whole; a brief has only a title."""
    [document] = read_documents(lines_of(story(1, text=text)), format="reuters")

    assert document.text == expected


@pytest.mark.parametrize(
    ("date", "time"),
    [
        (" 2-MAR-1987 05:12:19.12", "1987-03-02T05:12:19+00:00"),
        ("31-MAR-1987 605:12:19.12", "1987-03-31T00:00:00+00:00"),
        ("31-MAR-1987", "1987-03-31T00:00:00+00:00"),
    ],
)
def test_dates(date, time):
    """An invalid hour is dropped; the day stays."""
    [document] = read_documents(lines_of(story(1, date=date)), format="reuters")

    assert document.time.isoformat() == time


@pytest.mark.parametrize("date", ["30-FEB-1987", "soon", "1-XYZ-1987"])
def test_an_invalid_date(date):
    """The date is dropped with a warning; the story is read."""
    with pytest.warns(CorpusWarning, match=r"input, line 1: time == .*kept without it"):
        [document] = read_documents(lines_of(story(1, date=date)), format="reuters")

    assert document.time is None


def test_bad_stories():
    """Without an end or a text, the error names the first line; other stories are read."""
    whole = story(1)
    no_text = story(2, text="<NOTE/>")
    open_one = story(3).replace("</REUTERS>\n", "")

    documents, errors = read(lines_of(HEAD + whole + no_text + open_one + whole), format="reuters")

    assert [document.id for document in documents] == ["1", "1"]
    assert errors == [
        f"input, line {2 + whole.count(chr(10))}: has no <TEXT>.",
        f"input, line {2 + (whole + no_text).count(chr(10))}: "
        "<REUTERS> is not closed, must end with </REUTERS>.",
    ]


def test_the_rest_of_a_bad_story_is_skipped():
    """A bad line gives one error; reading continues with the next story."""
    bad = story(2).replace("Coffee", "\0")

    documents, errors = read(lines_of(story(1) + bad + story(3)), format="reuters")

    assert [document.id for document in documents] == ["1", "3"]
    assert len(errors) == 1
    assert errors[0].endswith("contains a NUL byte.")


def test_something_else_is_one_error():
    """A file without stories gives an error."""
    documents, errors = read(["plain words\n", "more words\n"], format="reuters")

    assert documents == []
    assert errors == ["input, line 1: 'plain words' is outside of a record."]


def test_a_folder_and_a_pattern(write, tmp_path):
    """A folder of files, or a pattern, is one corpus in the order of names."""
    for number in (2, 1):
        write(f"reut2-00{number}.sgm", story(number))
    write("README.doc", "about")

    for source in (tmp_path, str(tmp_path / "reut2-*.sgm")):
        assert [document.id for document in read_documents(source)] == ["1", "2"]


def test_another_encoding():
    """The encoding is Latin-1 by default."""
    lines = [line.encode() for line in lines_of(story(1))]

    [document] = read_documents(lines, format="reuters", encoding="utf-8")

    assert document.text == TEXT


def test_memory_is_constant():
    """Stories are read one by one, and an endless stream only as far as needed."""
    lines = itertools.chain.from_iterable(lines_of(story(n)) for n in itertools.count())

    tracemalloc.start()
    documents = itertools.islice(read_documents(lines, format="reuters"), 3000)
    number = sum(1 for _ in documents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert number == 3000
    assert peak < 500_000


def test_an_empty_file(write):
    """An empty file is not an error."""
    assert list(read_documents(write("a.sgm", HEAD))) == []
