"""Crawlers as they are, made polite: what their handlers get, and what the server sees."""

import asyncio
import dataclasses
import os
import signal
from datetime import timedelta

import pytest
from aiohttp import web
from crawlee import ConcurrencySettings, Request
from crawlee.configuration import Configuration
from crawlee.crawlers import BeautifulSoupCrawler, HttpCrawler, ParselCrawler

import polite
from tests.frameworks.crawlee.crawls import PACING, crawling
from tests.frameworks.examples import SIGNER, hops_to_sign, require_signatures, require_what_the_page_says


@pytest.mark.parametrize("kind", [HttpCrawler, BeautifulSoupCrawler, ParselCrawler])
async def test_pages_keep_the_delay_and_what_is_disallowed_is_skipped(kind, site):
    urls = [f"{origin}/{page}" for page in ("a", "b", "private/x", "c") for origin in site.urls]
    async with crawling(kind) as crawl:
        statistics = await crawl.run(urls)
    assert sorted(crawl.pages) == sorted(url for url in urls if "private" not in url)
    assert sorted(crawl.skipped) == sorted((url, "robots_txt") for url in urls if "private" in url)
    assert (statistics.requests_finished, crawl.failed) == (6, [])


async def test_each_redirect_hop_is_checked_and_waits(site):
    urls = [
        site.url(f"/hop/{n}?to={to}") for n, to in enumerate(("/end", "/private/x", site.urls[1] + "/other"))
    ]
    async with crawling() as crawl:
        await crawl.run(urls)

    assert sorted(crawl.pages) == [urls[0], urls[2]]
    assert sorted(crawl.loaded) == sorted([site.url("/end"), site.urls[1] + "/other"])
    assert crawl.skipped == [(site.url("/private/x"), "robots_txt")]


@pytest.mark.parametrize("hop", [False, True])
async def test_a_host_whose_budget_is_spent_is_skipped_and_not_tried_again(site, caplog, hop: bool):
    spent = site.url("/spent")
    led = f"{site.urls[1]}/hop?to={spent}" if hop else spent
    async with crawling(pacing=dataclasses.replace(PACING, max_pages=1)) as crawl:
        await crawl.run([site.url("/a")])
        await crawl.run([led])

    assert crawl.pages == [site.url("/a")]
    assert (crawl.skipped, crawl.failed) == ([(spent, "robots_txt")], [])
    assert "max_pages=1" in caplog.text
    assert "unreachable" not in caplog.text


async def test_an_endless_redirect_fails(site):
    pacing = PACING.override(site.url("/"), min_delay=0.01)
    async with crawling(max_request_retries=0, pacing=pacing) as crawl:
        await crawl.run([site.url("/loop")])
    assert site.paths == ["/loop"] * 21
    assert [str(error) for _, error in crawl.failed] == ["More than 20 redirects (status code: 302)."]
    site.hits.clear()


async def test_a_post_becomes_a_get_after_303_and_stays_one_after_307(site):
    post = {"method": "POST", "payload": b"q=1", "headers": {"content-type": "text/plain"}}
    urls = [site.url(f"/hop/{status}?status={status}&to=/method") for status in (303, 307)]
    posts = [Request.from_url(url, **post) for url in urls]
    async with crawling() as crawl:
        await crawl.run(posts)
    assert sorted(crawl.texts) == ["GET ", "POST q=1"]


async def test_the_sender_is_the_gates_and_another_fails(site):
    other = Request.from_url(site.url("/b"), headers={"user-agent": "Other/1.0"})
    async with crawling(max_request_retries=0) as crawl:
        await crawl.run([site.url("/headers"), other])
    assert "Mozilla" not in crawl.texts[0]
    assert [type(error) for _, error in crawl.failed] == [polite.InvalidUserAgent]


async def test_requests_of_a_handler_wait_for_turns_and_are_checked(site):
    refused: list[polite.PoliteError] = []
    async with crawling() as crawl:

        @crawl.crawler.router.handler("SENDS")
        async def sends(context):
            response = await context.send_request(site.url("/hop/1?to=/sent"), method="POST", payload=b"x")
            crawl.texts.append((await response.read()).decode())
            try:
                await context.send_request(site.url("/private/x"))
            except polite.Disallowed as error:
                refused.append(error)

        await crawl.run([Request.from_url(site.url("/a"), label="SENDS"), site.url("/b")])

    assert "page /sent" in crawl.texts
    assert len(refused) == 1


async def test_a_429_backs_off_and_its_page_comes_with_another_session(site):
    site.refusals = 1
    async with crawling(pacing=polite.PacingPolicy(min_delay=0.1, max_retry_after=0.5)) as crawl:
        await crawl.run([site.url("/refuse")])
    assert crawl.pages == [site.url("/refuse")]
    first, second = (hit.at for hit in site.hits if hit.raw == "/refuse")
    assert second - first >= 0.5


async def test_a_hook_that_fails_gives_its_turn_back(site):
    async with crawling(max_request_retries=1) as crawl:

        @crawl.crawler.pre_navigation_hook
        async def fail(context):
            if context.request.url.endswith("/bad"):
                raise ValueError("bad")

        await crawl.run([site.url("/bad"), site.url("/good")])

    assert (site.paths, [str(error) for _, error in crawl.failed]) == (["/good"], ["bad"])


async def test_a_permit_that_was_lost_before_it_was_used_is_replaced(site):
    async with crawling(pacing=polite.PacingPolicy(min_delay=0.1, max_hold=0.05)) as crawl:

        @crawl.crawler.pre_navigation_hook
        async def slow(context):
            await asyncio.sleep(0.2)

        await crawl.run([site.url("/a"), site.url("/b")])

    assert sorted(crawl.pages) == [site.url("/a"), site.url("/b")]


async def test_forefront_goes_first_also_before_what_waits_already(site):
    async with crawling(
        concurrency_settings=ConcurrencySettings(desired_concurrency=1, max_concurrency=1)
    ) as crawl:

        @crawl.crawler.router.handler("FIRST")
        async def first(context):
            await crawl.crawler.add_requests([site.url("/urgent/1"), site.url("/urgent/2")], forefront=True)

        rest = [site.url(f"/{n}") for n in range(4)]
        await crawl.run([Request.from_url(site.url("/first"), label="FIRST"), *rest])

    assert site.paths[1:3] == ["/urgent/1", "/urgent/2"] or set(site.paths[1:4]) >= {"/urgent/1", "/urgent/2"}
    assert len(site.paths) == 7


async def test_a_callback_that_fails_ends_the_crawl(site):
    async with crawling() as crawl:

        @crawl.crawler.on_skipped_request
        async def fail(url: str, reason: str) -> None:
            raise ValueError("mine")

        with pytest.raises(Exception, match="user-defined skipped request callback"):
            await crawl.run([site.url("/private/x"), site.url("/a")])

        assert (crawl.gate.waiting, crawl.gate.inside) == (0, 0)


async def test_a_gate_that_closes_ends_the_crawl(site):
    async with crawling() as crawl:

        @crawl.crawler.router.handler("CLOSE")
        async def close(context):
            await crawl.gate.close()

        with pytest.raises(polite.GateClosed):
            await crawl.run(
                [Request.from_url(site.url("/a"), label="CLOSE"), *(site.url(f"/{n}") for n in range(9))]
            )

    assert len(site.paths) <= 2


async def test_the_wait_for_a_turn_is_longer_than_crawlees_limit_on_a_fetch(site):
    pacing = polite.PacingPolicy(min_delay=1.0)
    configuration = Configuration(internal_timeout=timedelta(seconds=0.4))
    async with crawling(pacing=pacing, configuration=configuration) as crawl:
        await crawl.run([site.url("/a"), site.url("/b")])
    assert crawl.pages == [site.url("/a"), site.url("/b")]
    assert crawl.failed == []


async def test_ctrl_c_ends_the_crawl_at_once_and_leaves_nothing(site):
    async with crawling(pacing=polite.PacingPolicy(min_delay=3.0)) as crawl:
        asyncio.get_running_loop().call_later(0.7, os.kill, os.getpid(), signal.SIGINT)
        async with asyncio.timeout(2.5):
            await crawl.run([site.url(f"/{n}") for n in range(20)])
    assert crawl.pages == []


async def test_pages_and_redirects_are_signed(site):
    async with crawling(signer=SIGNER) as crawl:
        await crawl.run(hops_to_sign(site))
    require_signatures(site)


PAGE_SITE = {"/robots.txt": "User-agent: *\nDisallow: /private/\n", "/about": "About this site"}


def says(path):
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=200 if path in PAGE_SITE else 404, text=PAGE_SITE.get(path, ""))

    return answer


async def test_examples_print_what_the_page_says(site, monkeypatch, capsys):
    site.answers = {path: says(path) for path in (*PAGE_SITE, "/")}
    await require_what_the_page_says("crawlee", site.url("/"), monkeypatch, lambda: capsys.readouterr().out)
    site.hits.clear()
