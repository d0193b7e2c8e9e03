"""Deep crawls: each strategy, in a batch and as a stream, keeps the delay and requests no disallowed page."""

from typing import Any

import pytest
from crawl4ai import BestFirstCrawlingStrategy, BFSDeepCrawlStrategy, DFSDeepCrawlStrategy
from crawl4ai.deep_crawling.scorers import KeywordRelevanceScorer

from tests.frameworks.crawl4ai.crawls import DELAY_S, Hosts, config, crawling, says

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

    assert sorted(hosts.paths) == PAGES
    assert (hosts.robots, hosts.short()) == ([1], 0)
    assert sorted(result.url for result in results if result.status_code == 403) == [
        hosts.url(path) for path in REFUSED
    ]
    assert {result.metadata["depth"] for result in results} == {0, 1, 2}


@pytest.mark.parametrize("stream", [False, True])
async def test_deep_crawls_from_many_urls(hosts: Hosts, stream: bool) -> None:
    deep = config(deep_crawl_strategy=BFSDeepCrawlStrategy(max_depth=1), stream=stream)
    async with crawling() as (crawler, _):
        urls = [linked(hosts).url("/", host) for host in (1, 2)]
        results = await collected(await crawler.arun_many(urls, deep), stream=stream)

    assert len(results) == 10
    assert (hosts.robots, hosts.short()) == ([1, 1], 0)


async def test_refused_pages_do_not_count_towards_max_pages(hosts: Hosts) -> None:
    hosts.links = {"/": ["/private/1", "/private/2", "/a", "/b"]}
    strategy = BestFirstCrawlingStrategy(
        max_depth=1, max_pages=3, url_scorer=KeywordRelevanceScorer(keywords=["private"])
    )
    async with crawling() as (crawler, _):
        await crawler.arun(hosts.url("/"), config(deep_crawl_strategy=strategy))

    assert sorted(hosts.paths) == ["/", "/a", "/b"]


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
    assert hosts.short(DELAY_S) == 0
