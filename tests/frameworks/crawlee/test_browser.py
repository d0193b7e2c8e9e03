"""A crawler with a browser: its options and its hooks, and a crawl where a Chromium is installed."""

import asyncio
import runpy
import shutil
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from crawlee import ConcurrencySettings
from crawlee.crawlers import PlaywrightCrawler
from crawlee.errors import ContextPipelineInterruptedError
from crawlee.storage_clients import MemoryStorageClient

import polite
from polite.integrations.crawlee import PoliteRequestManager, polite_crawler
from polite.integrations.crawlee.crawler import GuardedPages, browser_options
from tests.frameworks.crawlee.crawls import PACING, crawling, judge
from tests.integrations.site import AGENT, LOOPBACK, Site

ROOT = Path(__file__).parents[3]
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


class Page:
    """A page of no browser; it loads nothing."""

    context = type("Context", (), {"on": lambda *_: None})()

    async def goto(self, url: str, **_: Any) -> str:
        return url


class Guarded:
    """A guard that notes the turns that it is given, and ends them as a browser would."""

    def __init__(self, end: Any) -> None:
        self.turns: list[Any] = []
        self._end = end

    @asynccontextmanager
    async def turn(self, _: Page, url: str, turn: Any):
        self.turns.append(turn)
        yield
        self._end(turn)

    async def goto(self, _: Page, url: str, **__: Any) -> str:
        return f"guarded {url}"


async def loaded(site: Site, end: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Guarded, Any]:
    """Load a page whose turn ends as told, and return its guard and what came of it."""
    async with polite.open_gate(AGENT, pacing=PACING, fetching=LOOPBACK) as gate:
        manager = PoliteRequestManager(gate, storage_client=MemoryStorageClient())
        await manager.add_request(site.url("/a"))
        guarded, page = Guarded(end), Page()

        async def guard(*_: Any) -> Guarded:
            return guarded

        monkeypatch.setattr("polite.integrations.playwright.context_guard.guard", guard)
        request = await manager.fetch_next_request()
        assert request is not None
        await GuardedPages(manager).before(SimpleNamespace(page=page, request=request))
        outcome = await asyncio.gather(page.goto(request.url), return_exceptions=True)
        assert (gate.inside, await page.goto("http://b.test/")) == (0, "guarded http://b.test/")
        assert await manager.mark_request_as_handled(request) is not None
        assert await manager.is_finished()
        return guarded, outcome[0]


def _head_came(turn: Any) -> None:
    assert turn.valid
    assert turn.target.path == "/a"
    turn.report(status=200, headers={})
    turn.leave(None)


@pytest.mark.parametrize(
    "end", [_head_came, lambda turn: turn.leave(ConnectionError("lost")), lambda turn: turn.unsent()]
)
async def test_a_page_has_the_turn_of_its_request_and_sends_nothing_back(
    site: Site, monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    guarded, outcome = await loaded(site, end, monkeypatch)

    assert (outcome, len(guarded.turns)) == (site.url("/a"), 1)


HOP = "http://a.test/x"
DECISION = polite.parse("User-agent: *\nDisallow: /").decide("Bot", HOP)
REFUSALS = (
    polite.Disallowed(DECISION, url=HOP),
    polite.OriginDeclined(HOP, "max_pages", 1, "PacingPolicy.max_pages=1: 1 page came"),
    polite.RobotsUnreachable(DECISION, url=HOP, retry_after_s=1.0),
)


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refused_hop_is_skipped_or_tried_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, refusal: polite.PoliteError
) -> None:
    unreachable = isinstance(refusal, polite.RobotsUnreachable)

    def refuse(turn: Any) -> None:
        turn.leave()
        raise refusal

    skipped: list[str] = []
    monkeypatch.setattr(PoliteRequestManager, "skip", lambda _, url, __: skipped.append(url))
    _, outcome = await loaded(site, refuse, monkeypatch)

    assert skipped == ([] if unreachable else [HOP])
    assert type(outcome) is (polite.RobotsUnreachable if unreachable else ContextPipelineInterruptedError)


async def test_other_browsers_than_chromium_are_refused() -> None:
    async with polite.open_gate(AGENT) as gate:
        with pytest.raises(polite.InvalidOption, match="Chromium only, got browser_type='firefox'"):
            polite_crawler(PlaywrightCrawler, gate, browser_type="firefox")


def test_without_crawlee_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crawlee", None)

    with pytest.raises(ImportError, match=r"polite-crawl\[crawlee\]"):
        runpy.run_path(str(ROOT / "polite/integrations/crawlee/__init__.py"))


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


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")
@pytest.mark.parametrize("incognito", [False, True])
async def test_redirects_of_a_browser_are_checked_and_wait(site: Site, *, incognito: bool) -> None:
    launch = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    private, other = f"{site.urls[1]}/private/x", f"{site.urls[1]}/b"
    urls = [site.url(f"/hop?to={to}") for to in (private, other, site.url("/c"))]
    async with crawling(
        PlaywrightCrawler,
        headless=True,
        browser_launch_options=launch,
        use_incognito_pages=incognito,
        concurrency_settings=ConcurrencySettings(desired_concurrency=2),
    ) as crawl:
        own: list[str] = []

        async def note(context: Any) -> None:
            crawl.pages.append(context.request.loaded_url)
            try:
                await context.page.goto(private)
            except polite.Disallowed as error:
                own.append(error.url)

        crawl.crawler.router._default_handler = note
        await crawl.run(urls)

    site.hits = [hit for hit in site.hits if hit.raw != "/favicon.ico"]
    judge(site)
    assert sorted(crawl.pages) == sorted([other, site.url("/c")])
    assert crawl.skipped == [(private, "robots_txt")]
    assert own == [private] * 2
    assert crawl.failed == []
