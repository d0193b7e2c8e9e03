"""PoliteBrowserStrategy: pages, redirect hops and frames of a real Chromium have their turns."""

import shutil
from contextlib import asynccontextmanager

import pytest
from crawl4ai import BFSDeepCrawlStrategy, BrowserConfig
from playwright.async_api import BrowserType

import polite
from polite.integrations.crawl4ai import PoliteBrowserStrategy, PoliteCrawler
from tests.frameworks.crawl4ai.crawls import DELAY_S, Hosts, config, says
from tests.integrations.site import AGENT, LOOPBACK

CHROMIUM = shutil.which("chromium")
FLAGS = ["--disable-quic", "--disable-background-networking", "--disable-sync"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")


@pytest.fixture(autouse=True)
def _debians_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """crawl4ai has no option for the browser's file."""
    launch = BrowserType.launch

    async def launched(self, **options):
        return await launch(self, executable_path=CHROMIUM, **options)

    monkeypatch.setattr(BrowserType, "launch", launched)


@asynccontextmanager
async def browsing(**options):
    pacing = polite.PacingPolicy(min_delay=DELAY_S, backoff=0.2)
    quiet = BrowserConfig(verbose=False, extra_args=FLAGS)
    async with polite.open_gate(AGENT, pacing=pacing, fetching=LOOPBACK) as gate:
        async with PoliteCrawler(PoliteBrowserStrategy(gate, quiet, **options), config=quiet) as crawler:
            yield crawler, gate
        assert (gate.inside, gate.waiting) == (0, 0)


async def test_a_deep_crawl_of_a_browser_is_polite(hosts: Hosts) -> None:
    hosts.links = {"/": ["/a", "/b", "/private/diary", "/moved"]}
    hosts.answers = {"/moved": says(302, Location="/private/2")}
    async with browsing() as (crawler, _):
        deep = config(deep_crawl_strategy=BFSDeepCrawlStrategy(max_depth=1))
        results = await crawler.arun(hosts.url("/"), deep)

    hosts.judge(["/", "/a", "/b", "/moved"])
    assert {result.url: result.status_code for result in results} == {
        hosts.url("/"): 200,
        hosts.url("/a"): 200,
        hosts.url("/b"): 200,
        hosts.url("/private/diary"): 403,
        hosts.url("/moved"): 403,
    }


async def test_a_browser_waits_for_many_turns_without_pages_and_without_time_outs(hosts: Hosts) -> None:
    async with browsing(max_pages=2) as (crawler, gate):
        urls = [f"{origin}/{n}" for n in range(4) for origin in hosts.urls[:2]]
        results = await crawler.arun_many(urls, config(page_timeout=5000))
        counted = gate.counters.granted
    assert [result.success for result in results] == [True] * 8
    hosts.judge()
    assert counted == 8


async def test_a_page_that_is_busy_is_requested_once(hosts: Hosts) -> None:
    hosts.answers = {"/busy": says(503)}
    async with browsing() as (crawler, _):
        result = await crawler.arun(hosts.url("/busy"), config(max_retries=3))
    assert (result.success, result.status_code) == (False, 503)
    hosts.judge(["/busy"])


async def test_a_browser_with_a_foreign_user_agent_is_refused(hosts: Hosts) -> None:
    async with browsing() as (crawler, gate):
        for foreign in (BrowserConfig(user_agent="Mozilla/5.0"), BrowserConfig(user_agent_mode="random")):
            with pytest.raises(polite.InvalidUserAgent):
                PoliteBrowserStrategy(gate, foreign)
        result = await crawler.arun(hosts.url("/a"), config(magic=True))
    assert (result.success, hosts.hits) == (False, [])
    assert "magic" in result.error_message
