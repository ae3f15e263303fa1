"""Accessibility: narrow and wide, dark and light, keyboard, screen readers, and Czech."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed, which the page needs here.")

from playwright.sync_api import expect

from polytopic.explain.display import PALETTE
from polytopic.server import pages
from tests.server.browsing import PAGES, TEXT, add, read, settle, topics

HERE = Path(pages.__file__).parent
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}
SENTENCE = re.compile(r"""\b_\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def open_all(page):
    """Open everything that the text page can show."""
    read(page)
    add(page, "rehabilitation")
    page.get_by_role("button", name="Why sport/football?").click()
    page.locator("#others [data-why-not]").first.click()
    expect(page.locator("#others .card")).to_be_visible()
    page.locator("#words mark").first.hover()
    for summary in page.locator("summary").all():
        summary.click()


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        ("wide", "light"),
        ("narrow", "dark"),
        pytest.param("wide", "dark", marks=pytest.mark.long),
        pytest.param("narrow", "light", marks=pytest.mark.long),
    ],
)
def test_accessibility(visit, demo, size, scheme):
    """axe-core finds no serious flaw on any page, and no page scrolls sideways."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(demo, viewport=SIZES[size], color_scheme=scheme, statuses=[404])

    for name, path in PAGES.items():
        page.goto(path)
        if name == "text":
            check(page, axe, "empty text")
            open_all(page)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        check(page, axe, name)


def check(page, axe, name):
    """Assert that a page fits its window, and that axe-core finds nothing serious."""
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"], name
    violations = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [v for v in violations if v["impact"] in ("serious", "critical")]
    assert [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in serious] == [], name


def test_theme(visit, demo):
    """The browser's theme applies until the reader chooses one, which is then stored."""
    page = visit(demo, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)

    page.get_by_role("button", name="Theme").click()
    light = page.evaluate(ground)
    page.goto("/labels")

    assert (dark, light) == ("rgb(22, 22, 22)", "rgb(255, 255, 255)")
    assert page.evaluate(ground) == light
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ground) == dark


def test_keyboard(visit, demo):
    """Tab reaches every control, Enter activates it, and arrow keys describe each word."""
    page = visit(demo)
    page.locator("#text").focus()
    page.keyboard.insert_text(TEXT)
    page.keyboard.press("Control+Enter")
    settle(page)
    expect(page.locator("#topics-heading")).to_be_focused()

    reached = reach(page)
    everything = page.locator(
        "main button:visible:enabled, main input:visible, main summary:visible, #words"
    ).evaluate_all("all => all.map(one => one.ariaLabel || one.id || one.textContent)")
    assert reached == everything

    page.locator("#words").focus()
    for key, word in [("ArrowRight", "striker"), ("ArrowRight", "return"), ("End", "early")]:
        page.keyboard.press(key)
        expect(page.locator("#word")).to_contain_text(f"{word}: ")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    expect(page.locator("#word")).to_contain_text("striker: sport/football 99%")
    expect(page.locator("#words .current")).to_have_text("Striker")
    page.get_by_role("button", name="Why sport/football?").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Why sport/football?")).to_be_visible()
    page.get_by_role("button", name="Remove health/medicine").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Add a topic")).to_be_focused()
    assert list(topics(page)) == ["sport/football"]


def reach(page):
    """Return what the Tab key reaches in the content, in order."""
    page.locator("#content").focus()
    reached = []
    while True:
        page.keyboard.press("Tab")
        name = page.evaluate("""() => {
            const one = document.activeElement;
            return one.closest("main") && (one.ariaLabel || one.id || one.textContent);
        }""")
        if not name or len(reached) > 100:
            return reached
        reached.append(name)


def test_skip_link(visit, demo):
    """The first Tab offers to skip the header."""
    page = visit(demo, "/labels")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    expect(page.get_by_label("Search labels")).to_be_focused()


def test_topics_differ_not_only_by_colour(visit, demo):
    """Topics have numbers, and their words have different underlines."""
    page = visit(demo)
    read(page)
    style = "mark => getComputedStyle(mark).textDecorationStyle"

    kinds = {
        page.locator("#words mark", has_text=w).evaluate(style) for w in ("Striker", "doctors")
    }

    assert kinds == {"solid", "dashed"}
    expect(page.locator("#topics .swatch")).to_have_text(["1", "2"])


def test_czech(visit, demo):
    """The pages stay in Czech, and the text page shows no English sentence."""
    page = visit(demo, "/?lang=cs")
    expect(page.locator("html")).to_have_attribute("lang", "cs")
    page.goto("/")
    page.fill("#text", TEXT)
    page.press("#text", "Control+Enter")
    settle(page)
    page.get_by_role("button", name="Proč sport/football?").click()
    page.locator("#others [data-why-not]").first.click()
    expect(page.locator("#others .card")).to_be_visible()
    page.click("#save")
    expect(page.locator("#receipt")).to_contain_text("Uloženo.")
    page.click("#undo")
    expect(page.locator("#receipt")).to_contain_text("Vráceno")

    shown = page.inner_text("main")
    english = json.loads((HERE / "languages" / "cs.json").read_text("utf-8"))
    parts = {part for sentence in english for part in re.split(r"\{\w+\}", sentence)}
    untranslated = {part for part in parts if len(part.split()) > 1 and part in shown}
    assert untranslated == set()
    page.get_by_role("link", name="English").click()
    expect(page.locator("h1")).to_have_text("What is this text about?")


def test_browser_language(visit, demo):
    """A Czech browser gets Czech pages at once."""
    page = visit(demo, locale="cs-CZ")

    expect(page.locator("h1")).to_have_text("O čem je tento text?")


def test_all_sentences_are_translated():
    """Every sentence of templates and scripts is translated, and no translation is unused."""
    sources = [*HERE.glob("templates/*.html"), *HERE.glob("static/*.js")]
    used = {a or b for file in sources for a, b in SENTENCE.findall(file.read_text("utf-8"))}
    translated = json.loads((HERE / "languages" / "cs.json").read_text("utf-8"))

    assert used == set(translated)
    for sentence, other in translated.items():
        assert sorted(re.findall(r"\{\w+\}", sentence)) == sorted(re.findall(r"\{\w+\}", other))


def test_palette():
    """The style sheet has the library's palette, in order."""
    style = (HERE / "static" / "style.css").read_text("utf-8")

    colours = re.findall(r"\.l(\d) \{ --c: (\d+) (\d+) (\d+) \}", style)

    assert [f"#{int(r):02x}{int(g):02x}{int(b):02x}" for _, r, g, b in colours] == list(PALETTE)
    assert [int(k) for k, *_ in colours] == list(range(len(PALETTE)))
