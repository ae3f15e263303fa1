"""The pages in a real browser: label, correct, save, undo; labels and models."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed, which the page needs here.")

from playwright.sync_api import expect

from polytopic import Store
from polytopic.cli.demo import NEW_TEXTS
from tests.server.browsing import TEXT, add, file_of, item_of, read, settle, topics
from tests.server.conftest import OWN, bearer, served

BOTH = {"sport/football", "health/medicine"}


def digest_of(path):
    """Return the digest of a store."""
    with Store(path, create=False) as store:
        return store.digest


def document_of(path, id):
    """Return a document of a store."""
    with Store(path, create=False) as store:
        return store.document(id)


# Signing in and out


def test_sign_in_by_url(visit, demo):
    """The token moves from the URL to a cookie that scripts cannot read; signing out deletes it."""
    page = visit(demo, f"/labels?q=sport#token={OWN}", signed_in=False)

    page.get_by_role("button", name="Sign out").wait_for()
    assert page.url.endswith("/labels?q=sport")
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"]) == ("polytopic_token", True)
    assert cookie["sameSite"] == "Strict"

    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in").wait_for()
    assert page.context.cookies() == []


def test_sign_in_by_form(visit, demo):
    """A wrong token is reported; a valid one leads back to the previous page."""
    page = visit(demo, "/models", signed_in=False, statuses=[401])
    page.get_by_role("link", name="Sign in", exact=True).click()

    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
    page.get_by_label("Token").fill(OWN)
    page.get_by_role("button", name="Sign in").click()

    page.get_by_role("button", name="Fit and publish").wait_for()
    assert page.url.endswith("/models")


def test_wrong_token_in_the_url(visit, demo):
    """A wrong token in the URL leads to the form."""
    page = visit(demo, "/#token=wrong", signed_in=False, statuses=[401])

    page.get_by_label("Token").wait_for()


def test_reading_with_tokens_only(visit, own_path):
    """Each page leads to the form; a token in the URL leads to the page."""
    with served(own_path, open_reading=False, own_token=OWN) as client:
        page = visit(client, "/labels?q=film", signed_in=False)
        expect(page.get_by_label("Token")).to_be_visible()
        assert "culture" not in page.content()

        page.goto(f"/labels?q=film#token={OWN}")

        page.get_by_role("link", name="culture/film").wait_for()
        assert page.url.endswith("/labels?q=film")


# Reading


def test_paste(visit, demo):
    """A pasted text is labelled at once, unless it is pasted into another text."""
    page = visit(demo, permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", TEXT)

    page.locator("#text").press("Control+V")

    settle(page)
    assert set(topics(page)) == BOTH
    expect(page.locator("#words")).to_have_text(TEXT)

    page.click("#edit")
    page.press("#text", "End")
    page.locator("#text").press("Control+V")
    expect(page.locator("#text")).to_have_value(TEXT + TEXT)
    expect(page.locator("#form")).to_be_visible()


def test_drop(visit, demo):
    """A dropped file is labelled at once."""
    page = visit(demo)
    dropped = file_of(page, TEXT)

    page.dispatch_event("#work", "dragover", {"dataTransfer": dropped})
    expect(page.locator("#work")).to_have_class("dropping")
    page.dispatch_event("#work", "drop", {"dataTransfer": dropped})

    settle(page)
    assert set(topics(page)) == BOTH


def test_read(visit, demo):
    """Topics have bars, shares and confidence; words have colours, and shares on hover."""
    page = visit(demo)
    read(page)

    shares = topics(page)
    assert set(shares) == BOTH
    assert sum(shares.values()) == pytest.approx(100, abs=1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    for item, share in zip(page.locator("#topics > li").all(), shares.values(), strict=True):
        ground, bar = (rect.bounding_box() for rect in item.locator(".bar rect").all())
        assert bar["width"] / ground["width"] == pytest.approx(share / 100, abs=0.01)
        expect(item).to_contain_text("confidence")
    expect(page.locator("#status")).to_contain_text("sport/football 53%")

    place = list(shares).index("sport/football")
    striker = page.locator("#words mark", has_text="Striker")
    expect(striker).to_have_class(f"l{place} u{place}")
    colours = {
        word: page.locator("#words mark", has_text=word).evaluate(
            "mark => getComputedStyle(mark).backgroundColor"
        )
        for word in ("Striker", "doctors")
    }
    assert len(set(colours.values())) == 2
    striker.hover()
    expect(page.locator("#word")).to_contain_text("striker: sport/football 99%")
    assert "sport/football 99%" in striker.get_attribute("title")
    expect(page.locator("#keywords")).to_contain_text("doctor, club")
    expect(page.locator("#unknown")).to_contain_text("ligament")
    page.get_by_text("Score breakdown").click()
    expect(page.locator("#breakdown")).to_contain_text("score of these topics")


def test_one_topic(visit, demo):
    """Clicking a topic marks only its words; another click marks all."""
    page = visit(demo)
    read(page)
    name = page.get_by_role("button", name="health/medicine", exact=True)

    name.click()
    expect(name).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#words mark", has_text="Striker")).to_have_count(0)
    expect(page.locator("#words mark", has_text="doctors")).to_have_count(1)

    page.get_by_role("button", name="Show all topics").click()
    expect(page.locator("#words mark", has_text="Striker")).to_have_count(1)
    expect(name).to_have_attribute("aria-pressed", "false")


def test_why_and_why_not(visit, demo):
    """Reasons list words with shares and evidence, for a topic and against another."""
    page = visit(demo)
    read(page)

    page.get_by_role("button", name="Why sport/football?").click()
    table = page.get_by_role("table", name="Why sport/football?")
    expect(table.locator("tbody tr").first).to_contain_text("99%")
    assert {"striker", "league", "goal"} < set(
        table.locator("tbody td:first-child").all_inner_texts()
    )
    expect(page.get_by_role("button", name="Why sport/football?")).to_be_focused()
    page.get_by_role("button", name="Why sport/football?").click()
    expect(table).to_have_count(0)

    page.get_by_role("button", name="Why not society/education?").click()
    card = item_of(page, "society/education").locator(".card")
    expect(card).to_contain_text("Its score is 2.6 lower")
    expect(card).to_contain_text("Evidence against: doctor")
    expect(card).to_contain_text("Evidence for: year")
    page.get_by_role("button", name="Why not society/education?").click()
    expect(card).to_have_count(0)


# Correcting


def test_correct(visit, demo):
    """Topics can be removed, and added with completion; shares and keywords follow."""
    page = visit(demo)
    read(page)
    before = page.locator("#keywords").inner_text()

    page.get_by_role("button", name="Remove sport/football").click()
    expect(page.locator("#status")).to_have_text("sport/football removed.")
    assert topics(page) == {"health/medicine": 100}
    expect(page.locator("#keywords")).not_to_have_text(before)
    page.get_by_label("Add a topic").press_sequentially("foot")
    expect(page.locator("#known option")).to_have_count(1)
    assert page.locator("#known option").get_attribute("value") == "sport/football"
    add(page, "sport/football")

    assert set(topics(page)) == BOTH
    expect(page.locator("#keywords")).to_have_text(before)
    add(page, "sport/football")
    expect(page.locator("#status")).to_have_text("sport/football has already been added.")
    page.get_by_role("button", name="Add society/education").click()
    expect(page.locator("#topics > li")).to_have_count(3)
    assert sum(topics(page).values()) == pytest.approx(100, abs=1.5)


def test_a_label_that_is_gone(visit, demo):
    """A label that the model no longer knows when it is asked to explain it is shown as new."""
    page = visit(demo, statuses=[422])

    def suggest_another(route):
        response = route.fetch()
        answer = response.json()
        suggestions = answer["documents"][0]["suggestions"]
        suggestions.append({**suggestions[0], "label": "gone", "name": "gone"})
        route.fulfill(response=response, json=answer)

    page.route("**/v1/suggest", suggest_another)
    read(page)

    shares = topics(page)
    assert set(shares) == {*BOTH, "gone"}
    assert shares["gone"] is None
    assert sum(shares[label] for label in BOTH) == pytest.approx(100, abs=1.5)


def test_a_text_without_known_words(visit, demo):
    """There is a warning, and no topic has a share of words that the model does not know."""
    page = visit(demo)
    read(page, "فاز الفريق بالمباراة في الدقيقة الأخيرة")

    expect(page.locator("#warning")).to_have_text(
        "This text is in Arabic script, which the model has not learned."
    )
    expect(page.locator("#topics")).to_contain_text("confidence")
    expect(page.locator("#topics")).not_to_contain_text("of the known words")
    expect(page.locator("#status")).not_to_contain_text("%")


def test_quick_changes(visit, demo):
    """Two changes in quick succession are both made."""
    page = visit(demo)
    read(page)

    page.locator("#others button:first-child").evaluate_all(
        "buttons => buttons.forEach(button => button.click())"
    )

    expect(page.locator("#topics > li")).to_have_count(10)


def test_save_and_undo(visit, demo):
    """The store contains what was saved, with a receipt; undoing restores it."""
    before = digest_of(demo.path)
    page = visit(demo)
    read(page)
    add(page, "rehabilitation")
    assert topics(page)["rehabilitation"] is None

    page.get_by_role("button", name="Save topics").click()
    expect(page.locator("#receipt")).to_contain_text("Saved.")
    page.get_by_text("Receipt").click()
    with Store(demo.path, create=False) as store:
        saved = next(store.documents(newest=1))
        assert saved.id.startswith("page-")
        assert (saved.text, set(saved.labels)) == (TEXT, {*BOTH, "rehabilitation"})
        expect(page.locator("#receipt")).to_contain_text(store.digest)
        expect(page.locator("#receipt")).to_contain_text("rehabilitation")

    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#receipt")).to_contain_text("Undone")
    assert document_of(demo.path, saved.id) is None
    assert digest_of(demo.path) == before


def test_saving_needs_a_token(visit, demo):
    """Without a token, a link leads to the form and back."""
    page = visit(demo, "/?id=fresh-1", signed_in=False)
    settle(page)

    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    page.get_by_role("link", name="sign in with a token").click()
    page.get_by_label("Token").fill(OWN)
    page.get_by_role("button", name="Sign in").click()

    page.get_by_role("button", name="Save topics").wait_for()
    assert page.url.endswith("/?id=fresh-1")


def test_read_only_token(visit, path):
    """A read-only token signs in, but cannot save."""
    with served(path) as client:
        page = visit(client, f"/#token={bearer('read')['Authorization'][7:]}", signed_in=False)
        page.get_by_role("button", name="Sign out").wait_for()
        read(page)

        expect(page.get_by_role("link", name="sign in with a token")).to_be_visible()
        expect(page.get_by_role("button", name="Save")).to_have_count(0)


def test_queue(visit, demo):
    """The least certain text comes first; it can be opened, corrected and restored."""
    before = digest_of(demo.path)
    page = visit(demo, "/check")
    queue = page.get_by_role("region", name="No topics yet").locator("li")
    certainty = [
        int(text.split("certainty ")[1].split("%")[0].strip("<>"))
        for text in queue.all_inner_texts()
    ]
    assert len(certainty) == 3
    assert certainty == sorted(certainty)
    expect(page.get_by_role("region", name="Doubtful").locator("li")).to_have_count(20)

    queue.first.get_by_role("link", name="Review fresh-3").click()
    settle(page)
    expect(page.locator("#words")).to_have_text(NEW_TEXTS[2])
    page.get_by_role("button", name="Save topics").click()
    expect(page.locator("#receipt")).to_contain_text("Saved.")
    assert set(document_of(demo.path, "fresh-3").labels) == set(topics(page))
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#receipt")).to_contain_text("Undone")

    assert document_of(demo.path, "fresh-3").labels == ()
    assert digest_of(demo.path) == before
    page.get_by_role("link", name="Texts to review").click()
    expect(page.get_by_role("link", name="Review fresh-3")).to_be_visible()


# Labels and models


def test_labels(visit, demo):
    """Labels have a tree and a search; one has words, neighbours, counts and drift."""
    page = visit(demo, "/labels")
    expect(page.locator(".tree > li")).to_have_count(9)
    page.get_by_label("Search labels").fill("foot")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Labels found: 1")

    page.get_by_role("link", name="sport/football").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sport/football")
    expect(page.get_by_role("region", name="Words", exact=True)).to_contain_text("striker")
    together = page.get_by_role("region", name="Labels used together with this one")
    expect(together.get_by_role("link", name="health/medicine")).to_be_visible()
    expect(
        page.get_by_role("region", name="Labels with similar words").locator("li")
    ).to_have_count(5)
    counts = page.get_by_role("region", name="Documents over time")
    expect(counts.locator("svg rect")).to_have_count(24)
    expect(page.get_by_role("region", name="Drift").locator("tbody tr")).to_have_count(24)

    together.get_by_role("link", name="health/medicine").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("health/medicine")


def test_map(visit, demo):
    """The map shows a dendrogram next to the labels, and pairs of labels."""
    page = visit(demo, "/map")

    expect(page.locator(".leaves li")).to_have_count(20)
    drawing, labels = (page.locator(f".map > {name}").bounding_box() for name in ("svg", "ol"))
    assert drawing["height"] == pytest.approx(labels["height"], abs=2)
    expect(page.get_by_role("heading", name="More often than by chance")).to_be_visible()


def test_publish_and_roll_back(visit, own_path):
    """A second model is published and becomes active; rolling back restores the first."""
    with served(own_path, own_token=OWN) as client:
        page = visit(client, "/models")
        expect(page.get_by_role("region", name="Quality").locator("circle")).to_have_count(23)
        page.get_by_label("Model", exact=True).select_option("nb")
        page.get_by_label("Note").fill("<b>for a try</b>")
        page.get_by_role("button", name="Fit and publish").click()

        rows = page.get_by_role("region", name="History").locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("<b>for a try</b>")
        expect(rows.first).to_contain_text("active")
        expect(page.locator("#model")).to_contain_text("Model: nb")
        page.get_by_role("button", name="Roll back to number 1").click()

        expect(rows.last).to_contain_text("active")
        expect(page.locator("#model")).to_contain_text("Model: pmm1")


def test_api_page_and_error_pages(visit, demo):
    """The API page lists the routes; a wrong address has an error page."""
    page = visit(demo, "/docs", statuses=[404, 422])
    expect(page.get_by_role("heading", name="POST /v1/suggest")).to_be_visible()
    expect(page.get_by_role("heading", name="GET /v1/queue")).to_be_visible()

    for path in ("/nothing", "/labels/nothing", "/?id=nothing"):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_have_text("Page not found")
    page.goto("/labels?q=" + 201 * "x")
    expect(page.get_by_role("heading", level=1)).to_have_text("Something went wrong")


# Other sources


def test_a_model_file(visit, model):
    """A model file labels and explains, and the page says that it cannot learn."""
    with served(model) as client:
        page = visit(client, signed_in=False)
        read(page)

        assert set(topics(page)) == BOTH
        expect(page.locator("#saving")).to_contain_text("This service uses a model file")
        page.goto("/models")
        expect(page.locator("main")).to_contain_text("This service uses a model file")
        page.goto("/check")
        expect(page.locator("main")).to_contain_text("Nothing to review.")
        page.goto("/labels/sport%2Ffootball")
        expect(page.locator("main")).to_contain_text("striker")


def test_the_first_text(visit, tmp_path):
    """An empty store learns a first text through the page, and labels the next one."""
    path = tmp_path / "empty.db"
    Store(path, keep_texts=True).close()
    with served(path, own_token=OWN) as client:
        page = visit(client, statuses=[409])
        expect(page.locator("main")).to_contain_text("Nothing has been learned yet.")
        for other in ("/check", "/labels", "/models"):
            page.goto(other)
            settle(page)
            assert "went wrong" not in page.inner_text("main")
        page.goto("/")
        read(page, "The quokka sleeps.")
        expect(page.locator("#status")).to_have_text("No topic fits this text.")
        add(page, "animals")
        page.get_by_role("button", name="Save topics").click()
        expect(page.locator("#receipt")).to_contain_text("Saved.")
        expect(page.locator("#receipt")).to_contain_text("0 → 1")

        client.app.state.service.live.update()
        page.get_by_role("button", name="New text").click()
        read(page, "A quokka.")

        assert topics(page) == {"animals": 100}
        expect(page.locator("#nothing")).to_have_count(0)


def test_a_store_without_texts(visit, path):
    """A document without a text is shown by its words."""
    with Store(path) as store:
        store.learn([{"id": "bag", "text": "The striker scored. A striker!"}])
    with served(path) as client:
        page = visit(client, "/check", signed_in=False)
        page.get_by_role("link", name="Review bag").click()
        settle(page)

        expect(page.locator("#words")).to_contain_text("striker ×2")
        assert "sport/football" in topics(page)
