"""A crawler with a browser: its options and its hooks, and a crawl where a Chromium is installed."""

import shutil
from types import SimpleNamespace
from typing import Any

import pytest
from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import PlaywrightCrawler

import polite
from polite.integrations.crawlee import PoliteRequestManager, polite_crawler
from polite.integrations.crawlee.browser import browser_options, follow_pages
from tests.frameworks.crawlee.crawls import PACING, crawling, judge
from tests.integrations.site import AGENT, LOOPBACK, Site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


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
        for wrong in ({"browser_pool": object()}, {"fingerprint_generator": "default"}):
            with pytest.raises(polite.InvalidOption):
                polite_crawler(PlaywrightCrawler, gate, **wrong)


class Hooks(PlaywrightCrawler):
    """Notes its hooks; it has no browser."""

    def __init__(self) -> None:
        self.before: Any = None
        self.after: Any = None

    def pre_navigation_hook(self, hook: Any, **_: Any) -> None:
        self.before = hook

    def post_navigation_hook(self, hook: Any) -> None:
        self.after = hook


async def test_a_page_is_reported_when_it_came_and_hops_of_the_browser_are_charged(site: Site) -> None:
    async with polite.open_gate(AGENT, pacing=PACING, fetching=LOOPBACK) as gate:
        manager, hooks = PoliteRequestManager(gate), Hooks()
        follow_pages(hooks, manager)
        request = Request.from_url(site.url("/a"))
        first = SimpleNamespace(url=site.url("/a"), redirected_from=None)
        second = SimpleNamespace(url=f"{site.urls[1]}/b", redirected_from=first)
        third = SimpleNamespace(url="about:blank", redirected_from=second)
        response = SimpleNamespace(status=200, headers={}, request=third)
        context = SimpleNamespace(request=request, response=response)

        await hooks.before(context)
        assert gate.inside == 1
        await hooks.before(context)
        assert gate.inside == 1
        await hooks.after(context)
        assert gate.inside == 0
        charged = await gate.explain(f"{site.urls[1]}/b")
        await hooks.after(context)

    assert charged.wait_s > 0.0


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")
async def test_pages_of_a_browser_keep_the_delay(site: Site) -> None:
    launch = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    urls = [site.url(path) for path in ("/a", "/b", "/private/x")]
    settings = ConcurrencySettings(desired_concurrency=2)
    async with crawling(
        PlaywrightCrawler, headless=True, browser_launch_options=launch, concurrency_settings=settings
    ) as crawl:

        async def note(context: Any) -> None:
            crawl.pages.append(context.request.url)

        crawl.crawler.router._default_handler = note
        await crawl.run(urls)

    site.hits = [hit for hit in site.hits if hit.raw != "/favicon.ico"]
    judge(site)
    assert sorted(crawl.pages) == sorted(urls[:2])
    assert crawl.skipped == [(urls[2], "robots_txt")]
