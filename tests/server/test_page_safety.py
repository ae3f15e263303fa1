"""Hostile texts and labels in a real browser: they are shown literally, and nothing runs."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed, which the page needs here.")

from playwright.sync_api import expect

from polytopic import LabelTree, Store
from tests.server.browsing import TEXT, add, file_of, read, settle, topics
from tests.server.conftest import OWN, served

MARKUP = "<img src=x onerror=alert(1)>"
TEXTS = {
    "markup": f"{MARKUP} striker <svg onload=alert(2)> <a href='javascript:alert(3)'>goal</a>",
    "end of a script": "</script><script>alert(4)</script><!-- <script> striker",
    "quotes": "\" onmouseover=alert(5) ' striker {{ 7 * 7 }} ${alert(6)} {label}",
    "right to left": "\u202eשלום striker مرحبا\u202c \u2066goal\u2069",
    "control characters": "striker\x00 goal \x01\x1b[31m \u2028 \ufeff league",
    "pairs": "👩‍👩‍👧‍👦🏳️‍🌈𝔘𝔫𝔦 striker 🇨🇿 goal",
}
HOSTILE = [
    f"{MARKUP}/sport",
    "</script><script>alert(7)</script>",
    "a\" onclick='alert(8)'",
    "../%2e",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return a client of a service whose texts, ids, labels and names are all markup."""
    path = tmp_path_factory.mktemp("hostile") / "hostile.db"
    names = {label: {"en": f"<b>{label}</b>"} for label in HOSTILE}
    tree = LabelTree(dict.fromkeys(HOSTILE, f"{MARKUP}/all"), names=names)
    documents = [
        {
            "id": f"{MARKUP}{k}",
            "text": f"{list(TEXTS.values())[k % 6]} <i>word{k % 4}</i> word{k % 4}",
            "labels": [] if k % 9 == 8 else [HOSTILE[k % 4]],
            "time": f"2024-01-{1 + k % 28:02d}",
        }
        for k in range(60)
    ]
    with Store(path, keep_texts=True, tree=tree) as store:
        store.learn(documents)
        store.publish(note=MARKUP)
    with served(path, own_token=OWN) as client:
        yield client


def read_by_words(page):
    """Return the drawn text, and each word with the term in its tooltip."""
    return page.locator("#words").evaluate("""place => [place.textContent,
        [...place.children].map(one => [one.textContent, one.title.split(":")[0]])]""")


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts(visit, demo, name):
    """Texts are drawn literally, with marks in the right places."""
    text = TEXTS[name]
    page = visit(demo)

    read(page, text)

    drawn, words = read_by_words(page)
    assert drawn == text
    assert ["striker", "striker"] in words
    assert all(shown.lower().startswith(term[:3]) for shown, term in words)
    assert page.locator("#words :not(mark, span)").count() == 0


def test_a_text_of_a_megabyte(visit, demo):
    """The beginning is drawn, and the whole text is labelled."""
    text = (TEXT + "\n") * (1_000_000 // len(TEXT))
    page = visit(demo)

    page.dispatch_event("#work", "drop", {"dataTransfer": file_of(page, text)})
    expect(page.locator("#topics > li")).to_have_count(2, timeout=30_000)

    expect(page.locator("#words")).to_contain_text("only the beginning of this long text is shown")
    assert page.locator("#words mark").count() > 2000
    page.get_by_role("button", name="health/medicine", exact=True).click()
    expect(page.locator("#words mark", has_text="Striker")).to_have_count(0)


def test_hostile_names(visit, hostile):
    """Ids, labels, names, notes and texts that are markup are shown literally on all pages."""
    page = visit(hostile, "/check")
    settle(page)
    expect(page.locator("main")).to_contain_text(f"{MARKUP}8")
    page.locator(".queue a.button").first.click()
    settle(page)
    expect(page.locator("#words")).to_contain_text("<i>word")
    add(page, MARKUP)
    page.get_by_label("Add a topic").fill("script")
    expect(page.locator("#known option")).to_have_count(1)
    page.get_by_role("button", name="Save topics").click()
    expect(page.locator("#receipt")).to_contain_text(MARKUP)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#receipt")).to_contain_text("Undone")

    for path in ("/labels", "/labels?q=%3Cb", "/map", "/models"):
        page.goto(path)
        settle(page)
        expect(page.locator("main")).to_contain_text(MARKUP)
        assert page.locator("main :is(img, script, b, i)").count() == 0
    page.goto("/labels")
    for label in HOSTILE:
        page.get_by_role("link", name=f"<b>{label}</b>", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"<b>{label}</b>")
        settle(page)
        assert "went wrong" not in page.inner_text("main")
        page.go_back()


@pytest.mark.parametrize("k", range(6))
def test_hostile_documents(visit, hostile, k):
    """A document embedded in the page remains text."""
    page = visit(hostile, f"/?id=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E{k}")

    settle(page)

    assert read_by_words(page)[0].startswith(list(TEXTS.values())[k])
    assert list(topics(page)) == [f"<b>{HOSTILE[k % 4]}</b>"]


def test_hostile_addresses(visit, demo):
    """Parts of the URL are shown literally."""
    page = visit(demo, "/labels?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", statuses=[404])
    expect(page.get_by_label("Search labels")).to_have_value('"><script>alert(1)</script>')

    page.goto("/labels/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
    page.goto("/sign-in?next=javascript:alert(1)")
    expect(page.locator("[name=next]")).to_have_value("/")
