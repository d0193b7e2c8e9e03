"""Many pages: arun_many in a batch or a stream, left early, cancelled, with dispatchers of the crawler's own; and deep crawls."""

import asyncio
import time
from typing import Any

import pytest
from crawl4ai import (
    BestFirstCrawlingStrategy,
    BFSDeepCrawlStrategy,
    CacheMode,
    DFSDeepCrawlStrategy,
    MemoryAdaptiveDispatcher,
    RateLimiter,
    SemaphoreDispatcher,
)
from crawl4ai.async_database import async_db_manager

import polite
from tests.frameworks.crawl4ai.crawls import DELAY_S, Hosts, config, crawling, says


def urls_of(hosts: Hosts, pages: int) -> list[str]:
    """Host after host, and a disallowed page for each."""
    paths = [*(f"/{n}" for n in range(pages)), "/private"]
    return [origin + path for origin in hosts.urls for path in paths]


async def idle(gate: polite.Gate) -> None:
    """Wait until nothing waits, for as long as a request could take."""
    async with asyncio.timeout(2):
        while gate.inside or gate.waiting:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_batch_and_a_stream_are_polite_to_all_hosts_at_once(hosts: Hosts, stream: bool) -> None:
    urls = urls_of(hosts, 5)
    async with crawling() as (crawler, _):
        begun = time.monotonic()
        found: Any = await crawler.arun_many(urls, config(stream=stream))
        at = [(result, time.monotonic()) async for result in found] if stream else []
        results = [result for result, _ in at] or list(found)
        took = time.monotonic() - begun

    assert sorted(result.url for result in results) == sorted(urls)
    assert sorted(result.url for result in results if not result.success) == sorted(
        origin + "/private" for origin in hosts.urls
    )
    hosts.judge([f"/{n}" for n in range(5)] * 3)
    assert took < 3 * 5 * DELAY_S
    assert not at or at[-1][1] - at[0][1] > DELAY_S


async def test_a_stream_that_is_left_early_requests_nothing_more(hosts: Hosts) -> None:
    async with crawling() as (crawler, gate):
        async for _ in await crawler.arun_many(urls_of(hosts, 10), config(stream=True)):
            break
        await idle(gate)
        requested = len(hosts.hits)
        await asyncio.sleep(3 * DELAY_S)
        assert len(hosts.hits) == requested
        assert (await crawler.arun(hosts.url("/after"), config())).success

    assert requested < 15
    hosts.judge()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_crawl_that_is_cancelled_requests_nothing_more(hosts: Hosts, stream: bool) -> None:
    hosts.answers = {"/1": says(200, wait_s=5)}

    async def crawl(crawler: Any) -> None:
        results = await crawler.arun_many(urls_of(hosts, 10), config(stream=stream))
        if stream:
            async for _ in results:
                pass

    async with crawling() as (crawler, gate):
        task = asyncio.create_task(crawl(crawler))
        await asyncio.sleep(3.5 * DELAY_S)
        task.cancel()
        await asyncio.wait([task])
        await idle(gate)
        requested = len(hosts.hits)
        await asyncio.sleep(3 * DELAY_S)

    assert task.cancelled()
    assert len(hosts.hits) == requested
    # The site runs on this loop, too: one of its handlers may still answer a connection that is gone.
    left = {task for task in asyncio.all_tasks() if "RequestHandler." not in str(task.get_coro())}
    assert left == {asyncio.current_task()}


async def test_cached_pages_take_no_turn(hosts: Hosts) -> None:
    urls = [hosts.url(f"/{n}") for n in range(4)]
    async with crawling() as (crawler, gate):
        await crawler.arun_many(urls, config(cache_mode=CacheMode.ENABLED))
        requested, granted = len(hosts.hits), gate.counters.granted
        begun = time.monotonic()
        results = await crawler.arun_many(urls, config(cache_mode=CacheMode.ENABLED))
        took = time.monotonic() - begun
    await async_db_manager.cleanup()

    assert [result.success for result in results] == [True] * 4
    assert {result.cache_status for result in results} == {"hit"}
    assert (len(hosts.hits), gate.counters.granted) == (requested, granted)
    assert took < 0.5


async def test_a_refused_page_does_not_replace_the_cached_one(hosts: Hosts) -> None:
    url = hosts.url("/page")
    async with crawling() as (crawler, _):
        await crawler.arun(url, config(cache_mode=CacheMode.ENABLED))
    hosts.answers["/robots.txt"] = says(200, "User-agent: *\nDisallow: /\n")
    async with crawling() as (crawler, _):
        refused = await crawler.arun(url, config(cache_mode=CacheMode.WRITE_ONLY))
        cached = await crawler.arun(url, config(cache_mode=CacheMode.ENABLED))
    await async_db_manager.cleanup()

    assert (refused.success, cached.success, hosts.paths) == (False, True, ["/page"])


@pytest.mark.parametrize(
    ("dispatcher", "warning"),
    [
        (MemoryAdaptiveDispatcher, "20 places"),
        (SemaphoreDispatcher, "5 places"),
        (
            lambda: MemoryAdaptiveDispatcher(
                max_session_permit=1000, rate_limiter=RateLimiter(base_delay=(0, 0))
            ),
            "rate_limiter",
        ),
    ],
)
async def test_a_dispatcher_that_slows_the_crawl_is_warned_of_once(hosts, dispatcher: Any, warning: str):
    async with crawling() as (crawler, _):
        with pytest.warns(UserWarning, match=warning):
            results = await crawler.arun_many([hosts.url("/1")], config(), dispatcher())
        await crawler.arun_many([hosts.url("/2")], config(), dispatcher())

    assert [result.success for result in results] == [True]
    hosts.judge()


# Deep crawls: each strategy, in a batch and as a stream, keeps the delay and requests no disallowed page.


STRATEGIES = [BFSDeepCrawlStrategy, DFSDeepCrawlStrategy, BestFirstCrawlingStrategy]
LINKS = {
    "/": ["/a", "/b", "/private/diary", "/moved"],
    "/a": ["/a/1", "/a/2", "/private/1"],
    "/b": ["/b/1", "/b/2"],
}
PAGES = ["/", "/a", "/a/1", "/a/2", "/b", "/b/1", "/b/2", "/moved"]
REFUSED = ["/moved", "/private/1", "/private/diary"]


async def collected(results: Any, *, stream: bool) -> list[Any]:
    return [result async for result in results] if stream else list(results)


def linked(hosts: Hosts) -> Hosts:
    hosts.links = LINKS
    hosts.answers = {"/moved": says(302, Location="/private/2")}
    return hosts


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_deep_crawl_is_polite(hosts: Hosts, strategy: Any, stream: bool) -> None:
    deep = config(deep_crawl_strategy=strategy(max_depth=2), stream=stream)
    async with crawling() as (crawler, _):
        results = await collected(await crawler.arun(linked(hosts).url("/"), deep), stream=stream)

    hosts.judge(PAGES)
    assert sorted(result.url for result in results if result.status_code == 403) == [
        hosts.url(path) for path in REFUSED
    ]
    assert {result.metadata["depth"] for result in results} == {0, 1, 2}


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_after_a_deep_stream_that_is_left_early_the_next_is_whole(hosts: Hosts, strategy: Any) -> None:
    async with crawling() as (crawler, _):
        url = linked(hosts).url("/")
        async for _ in await crawler.arun(
            url, config(deep_crawl_strategy=strategy(max_depth=2), stream=True)
        ):
            break
        hosts.hits.clear()
        results = await crawler.arun(url, config(deep_crawl_strategy=strategy(max_depth=2)))

    assert len(results) == len(PAGES) + 2
    hosts.judge()
