"""What visitors do on the pages, for tests and screenshots."""

import re

from playwright.sync_api import expect

from polytopic.cli.demo import NEW_TEXTS

TEXT = NEW_TEXTS[0]  # about sport/football and health/medicine
PAGES = {
    "text": "/",
    "check": "/check",
    "labels": "/labels",
    "label": "/labels/sport%2Ffootball",
    "map": "/map",
    "models": "/models",
    "docs": "/docs",
    "sign in": "/sign-in",
    "nothing": "/nothing",
}


def read(page, text=TEXT):
    """Enter a text and label it with the keyboard."""
    page.fill("#text", text)
    page.press("#text", "Control+Enter")
    settle(page)


def file_of(page, text):
    """Return a file with a text, ready to be dropped on a page."""
    return page.evaluate_handle(
        """text => {
            const dropped = new DataTransfer();
            dropped.items.add(new File([text], "text.txt"));
            return dropped;
        }""",
        text,
    )


def settle(page):
    """Wait until no request is in progress."""
    if page.locator("#work").count():
        expect(page.locator("#words > *, #topics > *, #status:not(:empty)").first).to_be_attached()
    expect(page.locator("[aria-busy]")).to_have_count(0)


def topics(page):
    """Return the topics with their shares in percent; None for new ones."""
    shares = {}
    for item in page.locator("#topics > li").all():
        name = item.locator("button.name").inner_text().split("\n")[-1].lstrip("0123456789").strip()
        summary = item.locator(".summary").inner_text()
        shares[name] = int(summary.split("%")[0]) if "%" in summary else None
    return shares


def item_of(page, topic):
    """Return the list item of a topic."""
    return page.locator("#topics > li, #others > li").filter(has_text=topic)


def add(page, topic):
    """Add a topic by its name."""
    page.fill("#add", topic)
    page.press("#add", "Enter")
    # not the topic alone, which the message about its removal contains, too
    expect(page.locator("#status")).to_have_text(re.compile(f"{re.escape(topic)}.* added"))
    settle(page)
