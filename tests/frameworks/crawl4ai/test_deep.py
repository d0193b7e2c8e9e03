"""Deep crawls: each strategy, in a batch and as a stream, keeps the delay and requests no disallowed page."""

from typing import Any

import pytest
from crawl4ai import BestFirstCrawlingStrategy, BFSDeepCrawlStrategy, DFSDeepCrawlStrategy

from tests.frameworks.crawl4ai.crawls import Hosts, config, crawling, says

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
