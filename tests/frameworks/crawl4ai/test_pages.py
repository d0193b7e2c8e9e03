"""Pages, one or many, and deep crawls: a turn for each request, and what becomes of pages that are refused, fail, move or hang."""

import asyncio
import time
import warnings

import aiohttp
import pytest
from crawl4ai import (
    AsyncWebCrawler,
    BestFirstCrawlingStrategy,
    BFSDeepCrawlStrategy,
    BrowserConfig,
    CacheMode,
    DFSDeepCrawlStrategy,
    FilterChain,
    HTTPCrawlerConfig,
    LinkPreviewConfig,
    MemoryAdaptiveDispatcher,
    ProxyConfig,
    RateLimiter,
    SemaphoreDispatcher,
    SEOFilter,
)
from crawl4ai.antibot_detector import is_blocked
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from crawl4ai.async_database import async_db_manager

import polite
from polite.integrations.crawl4ai import PoliteCrawler, PoliteHTTPStrategy
from tests.frameworks.crawl4ai.crawls import (
    CONNECTOR,
    DELAY_S,
    Hosts,
    config,
    crawler_of,
    crawling,
    page,
    says,
)
from tests.frameworks.crawl4ai.crawls import page as page_of
from tests.frameworks.examples import require_what_the_page_says
from tests.integrations.site import AGENT


async def test_a_page_and_each_redirect_hop_are_fetched_in_their_turn(hosts: Hosts) -> None:
    hosts.answers = {"/one": says(302, Location="/two"), "/two": says(302, Location=hosts.url("/b", other=1))}
    async with crawling() as (crawler, gate):
        first = await crawler.arun(hosts.url("/a"), config())
        moved = await crawler.arun(hosts.url("/one"), config())

    assert (first.success, first.status_code, first.url) == (True, 200, hosts.url("/a"))
    assert (moved.success, moved.redirected_url) == (True, hosts.url("/b", other=1))
    assert "the page /b" in moved.markdown
    hosts.judge(["/a", "/one", "/two", "/b"])
    assert gate.counters.granted == 4


async def test_a_disallowed_page_is_tried_by_no_retry_no_proxy_and_no_fallback(hosts: Hosts) -> None:
    called: list[str] = []

    async def fallback(url: str) -> str:
        called.append(url)
        return "<html></html>"

    hosts.answers = {"/moved": says(302, Location="/private/2")}
    proxies = [ProxyConfig(server=origin) for origin in hosts.urls[1:]]
    insisting = config(max_retries=3, proxy_config=proxies, fallback_fetch_function=fallback)
    async with crawling() as (crawler, gate):
        result = await crawler.arun(hosts.url("/private/diary"), insisting)
        moved = await crawler.arun(hosts.url("/moved"), config())
        assert gate.counters.refused == 2

    assert (result.success, result.status_code, result.html) == (False, 403, "")
    assert "Disallow: /private (line 2)" in result.error_message
    assert result.response_headers == {"X-Robots-Status": "Blocked by robots.txt"}
    assert (moved.status_code, moved.redirected_url) == (403, hosts.url("/private/2"))
    assert (hosts.paths, called) == (["/moved"], [])


async def test_pages_that_fail_are_requested_once_and_their_host_backs_off(hosts: Hosts) -> None:
    hosts.answers = {f"/{n}": says(503) for n in range(3)}
    async with crawling(pacing=polite.PacingPolicy(min_delay=0.05, backoff=0.2)) as (crawler, _):
        results = await crawler.arun_many([hosts.url(f"/{n}") for n in range(3)], config(max_retries=3))
    assert {(result.success, result.status_code) for result in results} == {(False, 503)}
    assert sorted(hosts.paths) == ["/0", "/1", "/2"]
    assert all(gap >= 0.199 for gap in hosts.gaps()[1:])


async def test_page_timeout_counts_neither_the_wait_nor_that_between_hops(hosts: Hosts) -> None:
    hosts.answers = {f"/{n}": says(302, Location=f"/{n + 1}") for n in range(5)}
    async with crawling() as (crawler, _):
        urls = [hosts.url(path) for path in ("/0", "/a", "/b", "/c")]
        results = await crawler.arun_many(urls, config(page_timeout=300))
    assert all(result.success for result in results)
    assert hosts.hits[-1].at - hosts.hits[0].at > 0.7


async def test_page_timeout_ends_a_page_that_hangs_and_its_turn_and_counts_all_hops(hosts: Hosts) -> None:
    hosts.answers = {f"/{n}": says(302, wait_s=0.2, Location=f"/{n + 1}") for n in range(5)}
    hosts.answers["/slow"] = says(200, wait_s=5)
    async with crawling(delay=0.02) as (crawler, _):
        begun = time.monotonic()
        result = await crawler.arun(hosts.url("/slow"), config(page_timeout=300))
        took = time.monotonic() - begun
        moved = await crawler.arun(hosts.url("/0"), config(page_timeout=500))
        after = await crawler.arun(hosts.url("/a"), config(page_timeout=300))

    assert not result.success
    assert "timed out" in result.error_message
    assert 0.3 <= took < 2
    assert (moved.success, after.success) == (False, True)
    assert hosts.paths == ["/slow", "/0", "/1", "/2", "/a"]


async def test_retries_of_pages_that_look_blocked_and_a_fallback_wait_for_their_turn(hosts: Hosts) -> None:
    called: list[float] = []

    async def fallback(url: str) -> str:
        called.append(time.monotonic())
        return (page("fallback").text or "") + url

    hosts.answers = {"/wall": says(200, "<html><body></body></html>")}
    async with crawling() as (crawler, _):
        result = await crawler.arun(hosts.url("/wall"), config(max_retries=2))
        other = await crawler.arun(hosts.url("/wall"), config(fallback_fetch_function=fallback))

    hosts.judge(["/wall"] * 4)
    assert (result.success, other.success, len(called)) == (False, True, 1)
    assert called[0] - hosts.hits[-1].at >= DELAY_S - 0.001


async def test_a_foreign_user_agent_is_refused_wherever_it_is_set(hosts: Hosts) -> None:
    async def before(_url, options):
        options["headers"]["User-Agent"] = "Mozilla/5.0"

    foreign = config(user_agent="Mozilla/5.0")
    async with crawling() as (crawler, gate):
        for name in ("User-Agent", "user-agent"):
            with pytest.raises(polite.InvalidUserAgent, match="Mozilla"):
                PoliteHTTPStrategy(gate, HTTPCrawlerConfig(headers={name: "Mozilla/5.0"}))
            async with crawler_of(gate, HTTPCrawlerConfig(headers={name: AGENT, "X-Mine": "yes"})) as own:
                assert (await own.arun(hosts.url("/a"), config(user_agent=AGENT))).success
        for call in (crawler.arun(hosts.url("/b"), foreign), crawler.arun_many([hosts.url("/b")], foreign)):
            with pytest.raises(polite.InvalidUserAgent):
                await call
        crawler.crawler_strategy.set_hook("before_request", before)
        result = await crawler.arun(hosts.url("/c"), config(max_retries=2))

    assert (result.success, result.status_code) == (False, None)
    assert "Mozilla/5.0" in result.error_message
    hosts.judge(["/a", "/a"])
    assert hosts.hits[-1].headers["X-Mine"] == "yes"


async def test_the_crawlers_robots_parser_is_the_gate_and_nothing_is_requested_when_that_is_closed(hosts):
    async with crawling() as (crawler, gate):
        for url, allowed in ((hosts.url("/a"), True), (hosts.url("/private"), False), ("raw:<p>", True)):
            assert await crawler.robots_parser.can_fetch(url, "Mozilla/5.0") is allowed
        assert gate.counters.robots == 1
        await gate.close()
        result = await crawler.arun(hosts.url("/a"), config(max_retries=3))
        assert not await crawler.robots_parser.can_fetch(hosts.url("/a"))

    assert (result.success, result.status_code, hosts.paths) == (False, None, [])


async def test_a_polite_crawler_and_a_polite_strategy_need_each_other_and_a_gate(hosts: Hosts) -> None:
    with pytest.raises(polite.InvalidOption, match="PoliteHTTPStrategy"):
        PoliteCrawler(AsyncHTTPCrawlerStrategy())  # type: ignore[arg-type]
    with pytest.raises(polite.InvalidOption, match=r"polite\.open_gate"):
        PoliteHTTPStrategy(None)  # type: ignore[arg-type]
    async with crawling() as (_, gate):
        strategy = PoliteHTTPStrategy(gate, connector=CONNECTOR)
        async with AsyncWebCrawler(strategy, config=BrowserConfig(verbose=False)) as plain:
            result = await plain.arun(hosts.url("/a"), config())

    assert not result.success
    assert "PoliteCrawler(PoliteHTTPStrategy(gate))" in result.error_message
    assert hosts.hits == []


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ({"link_preview_config": LinkPreviewConfig(include_internal=True)}, "link_preview_config"),
        ({"check_cache_freshness": True}, "check_cache_freshness"),
        ({"fetch_ssl_certificate": True}, "fetch_ssl_certificate"),
        (
            {
                "deep_crawl_strategy": BFSDeepCrawlStrategy(
                    max_depth=1, filter_chain=FilterChain([SEOFilter(keywords=["x"])])
                )
            },
            "SEOFilter",
        ),
    ],
)
@pytest.mark.parametrize("many", [False, True])
async def test_a_config_whose_requests_are_not_paced_is_warned_of_once(hosts, options, warning, many):
    async with crawling() as (crawler, _):
        call = crawler.arun_many if many else crawler.arun
        url = hosts.url("/a")
        with pytest.warns(UserWarning, match=warning) as noticed:
            await call([url] if many else url, config(**options))
        with warnings.catch_warnings(record=True) as again:
            warnings.simplefilter("always")
            await call([url] if many else url, config(**options))

    assert noticed[0].filename == __file__
    assert not [each for each in again if warning in str(each.message)]
    hosts.judge()


@pytest.mark.parametrize("method", ["aseed_urls", "amap_domain"])
async def test_discovery_past_the_gate_is_warned_of(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    async def discovered(*_: object, **__: object) -> list[str]:
        return ["https://a.test/"]

    monkeypatch.setattr(AsyncWebCrawler, method, discovered)
    async with crawling() as (crawler, _):
        with pytest.warns(UserWarning, match=rf"{method}.*gate\.sitemaps"):
            assert await getattr(crawler, method)("a.test") == ["https://a.test/"]


async def test_examples_print_what_the_page_says(hosts, monkeypatch, capsys):
    assert is_blocked(200, page_of("/").text or "") == (False, "")
    hosts.answers["/robots.txt"] = says(200, "User-agent: *\nDisallow: /private/\n")
    hosts.links["/"] = ["/about", "/private/diary"]
    monkeypatch.setattr(aiohttp, "TCPConnector", lambda **_: CONNECTOR())
    await require_what_the_page_says(
        "crawl4ai", hosts.url("/"), monkeypatch, lambda: capsys.readouterr().out, logs=True
    )


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
        found = await crawler.arun_many(urls, config(stream=stream))
        at = [(result, time.monotonic()) async for result in found] if stream else []
        results = [result for result, _ in at] or list(found)

    assert sorted(result.url for result in results) == sorted(urls)
    assert sorted(result.url for result in results if not result.success) == sorted(
        origin + "/private" for origin in hosts.urls
    )
    hosts.judge([f"/{n}" for n in range(5)] * 3)
    pages = [hit.url for hit in hosts.hits if hit.raw != "/robots.txt"]
    places = [[at for at, url in enumerate(pages) if url.startswith(origin)] for origin in hosts.urls]
    assert max(of_host[0] for of_host in places) < min(of_host[-1] for of_host in places)  # all hosts at once
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

    async def crawl(crawler):
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
        results = await crawler.arun_many(urls, config(cache_mode=CacheMode.ENABLED))
    await async_db_manager.cleanup()

    assert [result.success for result in results] == [True] * 4
    assert {result.cache_status for result in results} == {"hit"}
    assert (len(hosts.hits), gate.counters.granted) == (requested, granted)


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
async def test_a_dispatcher_that_slows_the_crawl_is_warned_of_once(hosts, dispatcher, warning):
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
LINKED = ["/", "/a", "/a/1", "/a/2", "/b", "/b/1", "/b/2", "/moved"]
REFUSED = ["/moved", "/private/1", "/private/diary"]


async def collected(results, *, stream):
    return [result async for result in results] if stream else list(results)


def linked(hosts: Hosts) -> Hosts:
    hosts.links = LINKS
    hosts.answers = {"/moved": says(302, Location="/private/2")}
    return hosts


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_deep_crawl_is_polite(hosts, strategy, stream):
    deep = config(deep_crawl_strategy=strategy(max_depth=2), stream=stream)
    async with crawling() as (crawler, _):
        results = await collected(await crawler.arun(linked(hosts).url("/"), deep), stream=stream)

    hosts.judge(LINKED)
    assert sorted(result.url for result in results if result.status_code == 403) == [
        hosts.url(path) for path in REFUSED
    ]
    assert {result.metadata["depth"] for result in results} == {0, 1, 2}


async def test_a_cancelled_page_leaves_no_permit_and_a_crawler_may_be_started_again(hosts: Hosts) -> None:
    hosts.answers = {"/slow": says(200, wait_s=5)}
    async with crawling() as (crawler, gate):
        task = asyncio.create_task(crawler.arun(hosts.url("/slow"), config()))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (gate.inside, gate.waiting) == (0, 0)
        await crawler.close()
        closed = await crawler.arun(hosts.url("/a"), config())
        await crawler.start()
        await crawler.start()
        assert (await crawler.arun(hosts.url("/a"), config())).success

    assert "start it again" in closed.error_message
