"""Screenshots of the pages for the manual: ``python -m tests.server.screenshots [folder]``."""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from polytopic.cli.demo import learn
from tests.server.browsing import read, settle
from tests.server.conftest import OWN, served

WIDE = {"viewport": {"width": 1120, "height": 800}, "color_scheme": "light"}
NARROW = {"viewport": {"width": 360, "height": 1400}, "color_scheme": "dark"}


def main(folder: str = "docs") -> None:
    """Serve a store of the bundled sample and take screenshots of its pages."""
    with tempfile.TemporaryDirectory() as own:
        path = f"{own}/sample.db"
        learn(path)
        with served(path, own_token=OWN) as client, sync_playwright() as playwright:
            chromium = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

            def visited(address, settings):
                base = str(client.base_url)
                page = browser.new_page(base_url=base, locale="en-US", **settings)
                cookie = {"name": "polytopic_token", "value": OWN, "url": base}
                page.context.add_cookies([cookie])
                page.goto(address)
                return page

            page = visited("/", WIDE)
            read(page)
            page.get_by_role("button", name="Why sport/football?").click()
            page.locator("#words mark", has_text="doctors").hover()
            save(page, f"{folder}/page.png")
            page = visited("/", NARROW)
            read(page)
            save(page, f"{folder}/page-dark-narrow.png")
            for name, address in (("labels", "/labels/sport%2Ffootball"), ("models", "/models")):
                page = visited(address, WIDE)
                settle(page)
                save(page, f"{folder}/page-{name}.png")
            browser.close()


def save(page, path: str) -> None:
    """Take a screenshot of the visible part of a page."""
    page.screenshot(path=path)
    print(f"{path}: {Path(path).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:])
