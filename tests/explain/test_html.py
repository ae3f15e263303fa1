"""The page of an explanation: complete, safe, and with the text unchanged."""

import re
from contextlib import redirect_stdout
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic import Labeler
from polytopic.cli.explain import show
from polytopic.explain import to_html
from polytopic.explain.display import PALETTE, marks, percent, with_names
from tests.explain.news import fitted

TEXT = "A goal, a match and a rover in orbit.\nThe orchestra & <b>Zebra</b>!"
HOSTILE = '<script>alert(\'1\')</script> " onmouseover="x" <img src=http://x.example/y> goal ]]> &'
LABELER = fitted()
VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """A parser that fails if a tag is not closed where it must be."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.pieces = [], [], [], []
        self.titles = []
        self.text = None  # of the part with the class text
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Record the tag and its attributes."""
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes += attrs.items()
        if tag not in VOID:
            self.open.append(tag)
        if attrs.get("class") == "text":
            self.text = ""
        if self.open.count("div") and "title" in attrs:
            self.titles.append(attrs["title"])

    def handle_endtag(self, tag):
        """Close the tag that was opened last."""
        assert self.open.pop() == tag
        if tag == "div" and self.text is not None:
            self.pieces.append(self.text)
            self.text = None

    def handle_data(self, data):
        """Record the text."""
        if self.text is not None:
            self.text += data


def page(text=TEXT, labels=None, labeler=None, **options):
    """Return the page of a text."""
    explanation = (labeler or fitted()).explain(text, labels, why_not=options.pop("why_not", None))
    return to_html(explanation, text, **options)


def test_the_page_is_complete():
    """Every tag is closed where it must be, and every part occurs once."""
    html = page(why_not="film")
    tags = Page(html).tags

    assert html.startswith("<!DOCTYPE html>")
    assert [tags.count(tag) for tag in ("html", "head", "title", "body", "main", "h1")] == [1] * 6
    assert "Why not film?" in html
    assert "What the score is made of" in html


@given(text=st.text(max_size=60) | st.just(HOSTILE))
def test_the_text_is_shown_as_it_is(text):
    """The page shows any text unchanged, except for control characters."""
    shown = Page(page(text, labeler=LABELER)).pieces

    assert shown == [re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", " ", text)]


def test_nothing_in_a_text_or_a_name_is_markup():
    """Scripts in the text, its words, the labels and the title are shown as text."""
    labeler = Labeler(language=None).fit([HOSTILE, "film"], [[HOSTILE], ["<i>film"]])

    html = page(HOSTILE, labeler=labeler, title=HOSTILE, language='"><script>', why_not="<i>film")
    read = Page(html)

    assert not {"script", "img", "i", "b"} & set(read.tags)
    assert "<i>film" not in html
    assert not [name for name, _ in read.attributes if name.startswith("on")]


def test_the_page_stands_alone():
    """The page loads nothing: it has no scripts, links or addresses."""
    read = Page(page())

    assert not {"script", "link", "img", "iframe", "object", "form"} & set(read.tags)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in read.attributes}
    assert not re.search(r"https?:|url\(|@import", page())
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in read.attributes


def test_words_have_tooltips():
    """The tooltip of a known word has its term, its shares and its evidence."""
    titles = Page(page("Goals in orbit", ["space", "sport"])).titles

    assert len(titles) == 2
    assert re.fullmatch(r"goal: sport \d+%, space \d+%; evidence [+−]\d\.\d", titles[0])
    assert titles[1].startswith("orbit: space")


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (0, "0%"),
        (1e-9, "<1%"),
        (0.004, "<1%"),
        (0.006, "1%"),
        (0.5, "50%"),
        (0.994, "99%"),
        (0.998, ">99%"),
        (1 - 1e-9, ">99%"),
        (1, "100%"),
    ],
)
def test_only_all_is_a_hundred_percent(part, shown):
    """On the page and the terminal, only 1 is shown as 100%, and only 0 as 0%."""
    explanation = fitted().explain(TEXT, ["sport"])
    reason = replace(explanation.labels[0], share=part, probability=part)
    explanation = replace(explanation, labels=[reason])
    chip = f"<strong>sport</strong> {escape(shown)} of the known words"

    assert percent(part) == shown
    assert f'{chip} <span class="soft">· probability {escape(shown)}</span>' in to_html(explanation)
    with redirect_stdout(StringIO()) as terminal:
        show(explanation, TEXT, k=3)
    assert re.search(rf" {shown} +{shown} +sport", f" {terminal.getvalue()}")


def test_fields_are_shown_one_by_one():
    """Each field has its own part, in which its words are marked."""
    text = {"title": "A goal", "body": "The <match>"}

    read = Page(page(text, ["sport"]))

    assert read.pieces == ["A goal", "The <match>"]
    assert read.tags.count("mark") == 2


def test_a_bag_of_words_has_no_text():
    """The words of a bag are listed, and no text is drawn."""
    html = page({"goal": 2.0, "match": 1.0})

    assert Page(html).pieces == []
    assert "goal ×2" in html


def test_the_language_is_declared():
    """The text is marked with its language; the page around it is in English."""
    attributes = Page(page(language="cs")).attributes

    assert [value for name, value in attributes if name == "lang"] == ["en", "cs"]


def test_names_are_shown_with_ids():
    """The name of a label is shown everywhere; nothing else changes."""
    explanation = fitted().explain("goal rover orbit", ["space", "sport"], why_not="film")
    names = {"sport": "Sport & games", "film": "Cinema", "space": "space"}

    named = with_names(explanation, names)

    assert {reason.label for reason in named.labels} == {"space", "sport · Sport & games"}
    assert named.why_not[0].label == "film · Cinema"
    assert "film · Cinema" in named.why_not[0].labels
    assert set(named.places[0].shares) == {"space", "sport · Sport & games"}
    assert [m.label for m in marks(named)] == [m.label for m in marks(explanation)]
    assert with_names(explanation, {}) == explanation


def test_marks_take_the_strongest_label():
    """A word has the colour of the label with its largest share; the strongest word is opaque."""
    explanation = fitted().explain("goal rover orbit symphony", ["space", "sport"])
    order = [reason.label for reason in explanation.labels]

    mark_of = {mark.place.term: mark for mark in marks(explanation)}

    assert order[mark_of["goal"].label] == "sport"
    assert order[mark_of["orbit"].label] == "space"
    assert max(mark.strength for mark in mark_of.values()) == 1
    assert mark_of["symphony"].strength == 0


@pytest.mark.parametrize(
    ("ink", "ground", "fade"), [("1b1b1b", "ffffff", 0.55), ("ececec", "161616", 0.38)]
)
def test_marked_words_are_readable(ink, ground, fade):
    """Text on each colour has a contrast of at least 4.5, in light and in dark."""
    for colour in PALETTE:
        mixed = [
            fade * c + (1 - fade) * g for c, g in zip(rgb(colour[1:]), rgb(ground), strict=True)
        ]
        light, dark = sorted([luminance(mixed), luminance(rgb(ink))], reverse=True)

        assert (light + 0.05) / (dark + 0.05) >= 4.5


def rgb(code):
    """Return the parts of a colour, from 0 to 1."""
    return [int(code[k : k + 2], 16) / 255 for k in (0, 2, 4)]


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_of_a_linear_model():
    """Its evidence adds to a score, so the page mentions no likelihoods or logarithms."""
    explanation = fitted("mml").explain(TEXT, ["space", "sport"], why_not="music")

    page = to_html(explanation, TEXT)

    assert "what a word adds to the score" in page
    assert re.search(r'title="goal: [^"]*; evidence [+−]\d\.\d\d"', page)
    assert "corpus as a whole" not in page
    assert "logarithm" not in page
