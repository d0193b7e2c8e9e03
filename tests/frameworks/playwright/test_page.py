"""The page on Playwright, and the five lines, run as they are, on a site on loopback."""

from playwright.async_api import BrowserType

from tests.frameworks.examples import PAGES, require_what_the_page_says
from tests.frameworks.playwright.browsing import FLAGS
from tests.frameworks.playwright.conftest import CHROMIUM


@PAGES
async def test_examples_print_what_the_page_says(page: str, site, monkeypatch, capsys):
    site.pages |= {"/robots.txt": "User-agent: *\nDisallow: /private/\n", "/about": "About this site"}
    launch = BrowserType.launch
    monkeypatch.setattr(
        BrowserType, "launch", lambda kind: launch(kind, executable_path=CHROMIUM, args=FLAGS)
    )

    await require_what_the_page_says(
        page, "playwright", site.url("/"), monkeypatch, lambda: capsys.readouterr().out
    )
