"""A crawler with a browser: its options, and crawls where a Chromium is installed."""

import dataclasses
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from crawlee import ConcurrencySettings
from crawlee.crawlers import PlaywrightCrawler

import polite
from polite.integrations.crawlee import polite_crawler
from polite.integrations.crawlee.crawler import browser_options
from tests.frameworks.crawlee.crawls import PACING, Crawl, crawling, judge
from tests.integrations.site import AGENT, Site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")


async def test_the_browser_sends_the_gates_user_agent_and_no_invented_one() -> None:
    async with polite.open_gate(AGENT) as gate:
        options = browser_options(
            PlaywrightCrawler, gate, {"browser_new_context_options": {"locale": "de-DE"}}
        )
        crawler = polite_crawler(PlaywrightCrawler, gate, headless=True)

        assert options == {
            "browser_new_context_options": {"locale": "de-DE", "user_agent": AGENT},
            "fingerprint_generator": None,
        }
        assert isinstance(crawler, PlaywrightCrawler)
        with pytest.raises(polite.InvalidUserAgent):
            polite_crawler(PlaywrightCrawler, gate, browser_new_context_options={"user_agent": "Mozilla/5.0"})
        for option, wrong in (
            ("browser_pool", object()),
            ("fingerprint_generator", "default"),
            ("browser_type", "firefox"),
        ):
            with pytest.raises(polite.InvalidOption, match=option):
                polite_crawler(PlaywrightCrawler, gate, **{option: wrong})


@asynccontextmanager
async def browsing(**options: Any) -> AsyncIterator[Crawl]:
    """A crawl whose handler notes what was loaded."""
    async with crawling(
        PlaywrightCrawler,
        headless=True,
        browser_launch_options={"executable_path": CHROMIUM, "args": ["--no-sandbox"]},
        concurrency_settings=ConcurrencySettings(desired_concurrency=2),
        **options,
    ) as crawl:

        async def note(context: Any) -> None:
            crawl.pages.append(context.request.loaded_url)

        crawl.crawler.router._default_handler = note
        yield crawl


def without_icons(site: Site) -> Site:
    site.hits = [hit for hit in site.hits if hit.raw != "/favicon.ico"]
    return site


@chromium
async def test_pages_that_fail_are_retried_and_robots_txt_is_obeyed(site: Site) -> None:
    broken = f"{site.urls[1]}/broken"
    urls = [site.url("/a"), broken, site.url("/b"), site.url("/private/x")]
    async with browsing(max_request_retries=1) as crawl:
        await crawl.run(urls)

    # Chromium itself requests again at once if a connection breaks.
    assert site.paths.count("/broken") >= 2
    site.hits = [hit for hit in site.hits if hit.raw != "/broken"]
    judge(without_icons(site))
    assert sorted(crawl.pages) == [site.url("/a"), site.url("/b")]
    assert crawl.skipped == [(urls[3], "robots_txt")]
    assert [url for url, _ in crawl.failed] == [broken]


@chromium
async def test_a_host_whose_budget_is_spent_is_skipped(site: Site) -> None:
    async with browsing(pacing=dataclasses.replace(PACING, max_pages=2)) as crawl:
        await crawl.run([site.url("/a"), site.url(f"/hop?to={site.url('/b')}")])

    judge(without_icons(site))
    assert (crawl.pages, crawl.failed) == ([site.url("/a")], [])
    assert crawl.skipped == [(site.url("/b"), "robots_txt")]


@chromium
@pytest.mark.parametrize("incognito", [False, True])
async def test_redirects_of_a_browser_are_checked_and_wait(site: Site, *, incognito: bool) -> None:
    private, other = f"{site.urls[1]}/private/x", f"{site.urls[1]}/b"
    urls = [site.url(f"/hop?to={to}") for to in (private, other, site.url("/c"))]
    own: list[str] = []
    async with browsing(use_incognito_pages=incognito) as crawl:

        async def note(context: Any) -> None:
            crawl.pages.append(context.request.loaded_url)
            try:
                await context.page.goto(private)
            except polite.Disallowed as error:
                own.append(error.url)

        crawl.crawler.router._default_handler = note
        await crawl.run(urls)

    judge(without_icons(site))
    assert sorted(crawl.pages) == sorted([other, site.url("/c")])
    assert crawl.skipped == [(private, "robots_txt")]
    assert own == [private] * 2
    assert crawl.failed == []
