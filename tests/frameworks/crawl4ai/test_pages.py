"""Single pages: a turn for each request, and what becomes of pages that are refused, fail, move or hang."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from crawl4ai import AsyncWebCrawler, BrowserConfig, HTTPCrawlerConfig, ProxyConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy

import polite
from polite.integrations.crawl4ai import PoliteCrawler, PoliteHTTPStrategy
from tests.frameworks.crawl4ai.crawls import (
    AGENT,
    CONNECTOR,
    DELAY_S,
    Hosts,
    config,
    crawler_of,
    crawling,
    page,
    says,
    slow,
)


def location(to: str, status: int = 302) -> Any:
    return says(status, Location=to)


async def test_a_page_is_fetched_in_its_turn_with_the_gates_agent(hosts: Hosts) -> None:
    async with crawling() as (crawler, gate):
        first = await crawler.arun(hosts.url("/a"), config())
        second = await crawler.arun(hosts.url("/b"), config())

    assert (first.success, first.status_code, first.url) == (True, 200, hosts.url("/a"))
    assert "the page /b" in second.markdown
    assert hosts.paths == ["/a", "/b"]
    assert hosts.short() == 0
    assert set(hosts.agents) == {AGENT}
    assert gate.counters.granted == 2


async def test_a_disallowed_page_is_never_requested_and_its_result_names_the_rule(hosts: Hosts) -> None:
    async with crawling() as (crawler, _):
        result = await crawler.arun(hosts.url("/private/diary"), config())

    assert (result.success, result.status_code, result.html) == (False, 403, "")
    assert "Disallow: /private (line 2)" in result.error_message
    assert result.response_headers == {"X-Robots-Status": "Blocked by robots.txt"}
    assert hosts.paths == []


async def test_a_disallowed_page_is_tried_by_no_retry_no_proxy_and_no_fallback(hosts: Hosts) -> None:
    called: list[str] = []

    async def fallback(url: str) -> str:
        called.append(url)
        return "<html></html>"

    proxies = [ProxyConfig(server=hosts.url("", host)) for host in (2, 3)]
    insisting = config(max_retries=3, proxy_config=proxies, fallback_fetch_function=fallback)
    async with crawling() as (crawler, gate):
        result = await crawler.arun(hosts.url("/private/diary"), insisting)
        assert gate.counters.refused == 1

    assert (result.success, hosts.paths, called) == (False, [], [])


async def test_redirects_to_disallowed_pages_are_not_followed(hosts: Hosts) -> None:
    hosts.answers = {f"/hop{n}": location(f"/private/{n}") for n in range(3)}
    async with crawling() as (crawler, _):
        results = await crawler.arun_many([hosts.url(f"/hop{n}") for n in range(3)], config())

    assert {(result.success, result.status_code) for result in results} == {(False, 403)}
    assert {result.redirected_url for result in results} == {hosts.url(f"/private/{n}") for n in range(3)}
    assert sorted(hosts.paths) == ["/hop0", "/hop1", "/hop2"]


async def test_each_redirect_hop_waits_for_its_own_turn(hosts: Hosts) -> None:
    hosts.answers = {"/one": location("/two"), "/two": location(hosts.url("/three", 2))}
    async with crawling() as (crawler, gate):
        result = await crawler.arun(hosts.url("/one"), config())

    assert (result.success, result.redirected_url) == (True, hosts.url("/three", 2))
    assert hosts.paths == ["/one", "/two", "/three"]
    assert (hosts.short(), gate.counters.granted) == (0, 3)


async def test_a_redirect_that_the_crawler_does_not_follow_is_a_result(hosts: Hosts) -> None:
    hosts.answers = {"/one": location("/two")}
    async with crawling(requests=HTTPCrawlerConfig(follow_redirects=False)) as (crawler, _):
        result = await crawler.arun(hosts.url("/one"), config())

    assert (result.success, result.status_code, result.response_headers["Location"]) == (False, 302, "/two")
    assert hosts.paths == ["/one"]


async def test_pages_that_fail_are_requested_once_and_their_host_backs_off(hosts: Hosts) -> None:
    hosts.answers = {f"/{n}": says(503) for n in range(3)}
    pacing = polite.PacingPolicy(min_delay=0.05, backoff=0.2)
    async with crawling(pacing=pacing) as (crawler, _):
        results = await crawler.arun_many([hosts.url(f"/{n}") for n in range(3)], config(max_retries=3))

    assert {(result.success, result.status_code) for result in results} == {(False, 503)}
    assert sorted(hosts.paths) == ["/0", "/1", "/2"]
    assert all(gap >= 0.199 for gap in hosts.gaps()[1:])


async def test_page_timeout_does_not_count_the_wait(hosts: Hosts) -> None:
    async with crawling() as (crawler, _):
        urls = [hosts.url(f"/{n}") for n in range(8)]
        results = await crawler.arun_many(urls, config(page_timeout=300))

    assert all(result.success for result in results)
    assert hosts.hits[-1][0] - hosts.hits[0][0] > 0.7


async def test_page_timeout_does_not_count_the_wait_between_hops(hosts: Hosts) -> None:
    hosts.answers = {f"/{n}": location(f"/{n + 1}") for n in range(5)}
    async with crawling() as (crawler, _):
        result = await crawler.arun(hosts.url("/0"), config(page_timeout=300))

    assert (result.success, hosts.paths[-1]) == (True, "/5")


async def test_page_timeout_ends_a_page_that_hangs_and_its_turn(hosts: Hosts) -> None:
    hosts.answers = {"/slow": slow(5)}
    async with crawling() as (crawler, _):
        begun = time.monotonic()
        result = await crawler.arun(hosts.url("/slow"), config(page_timeout=300))
        took = time.monotonic() - begun
        after = await crawler.arun(hosts.url("/a"), config(page_timeout=300))

    assert not result.success
    assert "timed out" in result.error_message
    assert 0.3 <= took < 2
    assert after.success


async def test_page_timeout_counts_all_hops_together(hosts: Hosts) -> None:
    async def moved(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        return web.Response(status=302, headers={"Location": f"/{int(request.path[1:]) + 1}"})

    hosts.answers = {f"/{n}": moved for n in range(5)}
    async with crawling(delay=0.02) as (crawler, _):
        result = await crawler.arun(hosts.url("/0"), config(page_timeout=500))

    assert (result.success, hosts.paths) == (False, ["/0", "/1", "/2"])


async def test_retries_of_pages_that_look_blocked_wait_for_their_turn(hosts: Hosts) -> None:
    hosts.answers = {"/wall": says(200, "<html><body></body></html>")}
    async with crawling() as (crawler, _):
        result = await crawler.arun(hosts.url("/wall"), config(max_retries=2))

    assert (result.success, hosts.paths, hosts.short()) == (False, ["/wall"] * 3, 0)


async def test_a_fallback_waits_for_its_turn(hosts: Hosts) -> None:
    called: list[float] = []

    async def fallback(url: str) -> str:
        called.append(time.monotonic())
        return (page("fallback").text or "") + url

    hosts.answers = {"/wall": says(200, "<html><body></body></html>")}
    async with crawling() as (crawler, _):
        result = await crawler.arun(hosts.url("/wall"), config(fallback_fetch_function=fallback))

    assert (result.success, len(called)) == (True, 1)
    assert called[0] - hosts.hits[-1][0] >= DELAY_S - 0.001


async def test_raw_and_file_urls_take_no_turn(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page("/file").text or "")
    async with crawling() as (crawler, gate):
        raw = await crawler.arun(f"raw:{page('/raw').text}", config())
        from_file = await crawler.arun(f"file://{file}", config())
        checked = await crawler.arun(f"file://{file}", config(check_robots_txt=True))

    assert (raw.success, from_file.success, checked.success) == (True, True, True)
    assert gate.counters.granted == 0


@pytest.mark.parametrize("name", ["User-Agent", "user-agent"])
async def test_a_foreign_user_agent_of_the_requests_is_refused(hosts: Hosts, name: str) -> None:
    async with crawling() as (_, gate):
        with pytest.raises(polite.InvalidUserAgent, match="Mozilla"):
            PoliteHTTPStrategy(gate, HTTPCrawlerConfig(headers={name: "Mozilla/5.0"}))
        async with crawler_of(gate, HTTPCrawlerConfig(headers={name: AGENT, "X-Mine": "yes"})) as crawler:
            assert (await crawler.arun(hosts.url("/a"), config())).success

    assert set(hosts.agents) == {AGENT}
    assert hosts.headers[-1]["X-Mine"] == "yes"


async def test_a_foreign_user_agent_of_a_run_is_refused(hosts: Hosts) -> None:
    foreign = config(user_agent="Mozilla/5.0")
    async with crawling() as (crawler, _):
        with pytest.raises(polite.InvalidUserAgent):
            await crawler.arun(hosts.url("/a"), foreign)
        with pytest.raises(polite.InvalidUserAgent):
            await crawler.arun_many([hosts.url("/a")], foreign)
        assert (await crawler.arun(hosts.url("/b"), config(user_agent=AGENT))).success

    assert hosts.paths == ["/b"]


async def test_a_hook_that_sets_a_foreign_user_agent_sends_nothing(hosts: Hosts) -> None:
    async def before(_url: str, options: dict[str, Any]) -> None:
        options["headers"]["User-Agent"] = "Mozilla/5.0"

    async with crawling() as (crawler, _):
        crawler.crawler_strategy.set_hook("before_request", before)
        result = await crawler.arun(hosts.url("/a"), config(max_retries=2))

    assert (result.success, result.status_code, hosts.paths) == (False, None, [])
    assert "Mozilla/5.0" in result.error_message


async def test_hooks_are_called(hosts: Hosts) -> None:
    seen: list[Any] = []
    hosts.answers = {"/broken": slow(5)}
    async with crawling() as (crawler, _):
        strategy = crawler.crawler_strategy
        strategy.set_hook("before_request", lambda _, options: options["headers"].update({"X-Mine": "yes"}))
        strategy.set_hook("after_request", lambda response: seen.append(response.status_code))
        strategy.set_hook("on_error", lambda error: seen.append(type(error)))
        await crawler.arun(hosts.url("/a"), config())
        hosts.answers = {"/gone": says(404)}
        await crawler.arun(hosts.url("/gone"), config())

    assert hosts.headers[-1]["X-Mine"] == "yes"
    assert seen[0] == 200
    assert len(seen) == 2


async def test_after_the_gate_is_closed_every_page_fails_and_none_is_requested(hosts: Hosts) -> None:
    async with crawling() as (crawler, gate):
        await gate.close()
        result = await crawler.arun(hosts.url("/a"), config(max_retries=3))
        assert not await crawler.robots_parser.can_fetch(hosts.url("/a"))

    assert (result.success, result.status_code, hosts.hits) == (False, None, [])


async def test_the_crawlers_robots_parser_is_the_gate(hosts: Hosts) -> None:
    async with crawling() as (crawler, gate):
        assert await crawler.robots_parser.can_fetch(hosts.url("/a"), "Mozilla/5.0")
        assert not await crawler.robots_parser.can_fetch(hosts.url("/private"))
        assert await crawler.robots_parser.can_fetch("raw:<html></html>")
        assert gate.counters.robots == 1


async def test_only_a_polite_crawler_sends_the_requests_of_the_strategy(hosts: Hosts) -> None:
    async with crawling() as (_, gate):
        strategy = PoliteHTTPStrategy(gate, connector=CONNECTOR)
        async with AsyncWebCrawler(strategy, config=BrowserConfig(verbose=False)) as plain:
            result = await plain.arun(hosts.url("/a"), config())

    assert not result.success
    assert "PoliteCrawler(PoliteHTTPStrategy(gate))" in result.error_message
    assert hosts.hits == []


async def test_a_polite_crawler_needs_a_polite_strategy_and_that_a_gate() -> None:
    with pytest.raises(polite.InvalidOption, match="PoliteHTTPStrategy"):
        PoliteCrawler(AsyncHTTPCrawlerStrategy())  # type: ignore[arg-type]
    with pytest.raises(polite.InvalidOption, match=r"polite\.open_gate"):
        PoliteHTTPStrategy(None)  # type: ignore[arg-type]


async def test_a_cancelled_page_leaves_no_permit(hosts: Hosts) -> None:
    hosts.answers = {"/slow": slow(5)}
    async with crawling() as (crawler, gate):
        for path in ("/slow", "/a"):
            task = asyncio.create_task(crawler.arun(hosts.url(path), config()))
            await asyncio.sleep(0.15)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() == (path == "/slow")
        assert (gate.inside, gate.waiting) == (0, 0)


async def test_a_crawler_may_be_closed_and_started_again(hosts: Hosts) -> None:
    async with crawling() as (crawler, _):
        await crawler.close()
        await crawler.start()
        await crawler.start()
        assert (await crawler.arun(hosts.url("/a"), config())).success
