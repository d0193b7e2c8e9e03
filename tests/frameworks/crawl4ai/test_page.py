"""The page on crawl4ai, and the five lines, run as they are, on a site on loopback."""

import aiohttp
from crawl4ai.antibot_detector import is_blocked

from tests.frameworks.crawl4ai.crawls import CONNECTOR, says
from tests.frameworks.crawl4ai.crawls import page as page_of
from tests.frameworks.examples import PAGES, require_what_the_page_says


@PAGES
async def test_examples_print_what_the_page_says(page: str, hosts, monkeypatch, capsys):
    assert is_blocked(200, page_of("/").text or "") == (False, "")
    hosts.answers["/robots.txt"] = says(200, "User-agent: *\nDisallow: /private/\n")
    hosts.links["/"] = ["/about", "/private/diary"]
    monkeypatch.setattr(aiohttp, "TCPConnector", lambda **_: CONNECTOR())

    await require_what_the_page_says(
        page, "crawl4ai", hosts.url("/"), monkeypatch, lambda: capsys.readouterr().out, logs=True
    )
