"""The parts: sessions, proxies, clients, browsers, storages and options keep working, and what cannot is refused."""

import asyncio
import dataclasses
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import BasicCrawler, FileDownloadCrawler, HttpCrawler, ParselCrawler, PlaywrightCrawler
from crawlee.http_clients import CurlImpersonateHttpClient, HttpxHttpClient, ImpitHttpClient
from crawlee.proxy_configuration import ProxyConfiguration
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storage_clients import MemoryStorageClient
from crawlee.storages import RequestQueue

import polite
from polite.integrations.crawlee import PoliteHttpClient, PoliteRequestManager, polite_crawler
from polite.integrations.crawlee.crawler import browser_options
from tests.frameworks.crawlee.crawls import PACING, crawling, options_of_disk
from tests.integrations.site import AGENT, LOOPBACK, PAGE, PIECES, Site, redirect, served_raw

CLIENTS = [
    lambda: ImpitHttpClient(follow_redirects=False),
    lambda: HttpxHttpClient(follow_redirects=False),
    lambda: CurlImpersonateHttpClient(allow_redirects=False, impersonate=None),
]


@pytest.mark.parametrize("client", CLIENTS, ids=["impit", "httpx", "curl"])
async def test_rules_are_for_what_each_client_sends(client):
    paths = ["/a?", "/%zz", "/]b", "/%5db?%7e", "/c%7e", "/d?"]
    with served_raw() as site:
        site.robots = b"User-agent: *\nDisallow: /a$\nDisallow: /%25"
        site.respond = lambda target: redirect(paths[int(target[4:])]) if target.startswith("/hop") else PAGE
        async with crawling(http_client=client(), pacing=polite.PacingPolicy(min_delay=0.0)) as crawl:
            await crawl.run(
                [f"{site.url}{path}" for path in (*paths, *(f"/hop{n}" for n in range(len(paths))))]
            )
            decisions = [await crawl.gate.check(site.url + target) for target in site.targets]

    assert len(decisions) > 10
    assert all(decision.allowed for decision in decisions)
    assert crawl.failed == []


@pytest.mark.parametrize(
    "client",
    [ImpitHttpClient, lambda: HttpxHttpClient(follow_redirects=True), CurlImpersonateHttpClient],
    ids=["impit", "httpx", "curl"],
)
async def test_a_client_that_follows_redirects_by_itself_sends_nothing_more(client, site):
    async with crawling(http_client=client(), max_request_retries=1) as crawl:
        await crawl.run([site.url("/hop/1?to=/end"), *(site.url(f"/{n}") for n in range(5))])
    assert crawl.failed
    assert "follow_redirects=False" in str(crawl.failed[0][1])
    assert [type(error) for _, error in crawl.failed] == [polite.InvalidOption] * len(crawl.failed)
    assert len(crawl.pages) + len(crawl.failed) == 6
    site.hits.clear()


async def test_pages_and_hops_go_through_the_proxy(site: Site) -> None:
    page, hop, end = (site.url(path) for path in ("/a", "/hop", "/end"))
    with served_raw() as proxy:
        proxy.respond = lambda url: redirect("/end") if url == hop else PAGE
        async with crawling(proxy_configuration=ProxyConfiguration(proxy_urls=[proxy.url])) as crawl:
            await crawl.run([page, hop])
    assert (crawl.failed, sorted(proxy.targets)) == ([], sorted([page, hop, end]))
    assert site.paths == []


async def test_a_proxy_that_is_down_is_no_failure_of_the_site(site: Site) -> None:
    proxies = ProxyConfiguration(proxy_urls=["http://127.0.0.1:9"])
    pacing = polite.PacingPolicy(min_delay=0.05, circuit_failures=1, circuit_rest=60)
    async with crawling(proxy_configuration=proxies, max_session_rotations=3, pacing=pacing) as crawl:
        async with asyncio.timeout(10):
            await crawl.run([site.url("/a")])
    assert (site.paths, len(crawl.failed)) == ([], 1)


async def test_a_stream_holds_its_turn_and_follows_hops(site: Site) -> None:
    read: list[int] = []
    async with crawling() as crawl:

        @crawl.crawler.router.handler("STREAMS")
        async def streams(context):
            client = crawl.client
            async with client.stream(site.url("/hop/1?to=/stream"), timeout=timedelta(seconds=5)) as response:
                assert crawl.gate.inside == 1
                with pytest.raises(polite.PermitMisused, match="read or close it"):
                    await context.send_request(site.url("/b"))
                read.append(sum([len(piece) async for piece in response.read_stream()]))
            with pytest.raises(polite.Disallowed):
                async with client.stream(site.url("/private/x")):
                    pass
            with pytest.raises(ValueError, match="mine"):
                async with client.stream(site.url("/c")):
                    raise ValueError("mine")

        await crawl.run([Request.from_url(site.url("/a"), label="STREAMS")])

    assert (crawl.failed, read) == ([], [PIECES * 100_000])


async def test_a_login_in_the_url_is_sent_and_not_to_the_next_origin(site: Site) -> None:
    url = site.url(f"/hop/1?to={site.urls[1]}/headers").replace("http://", "http://user:secret@")
    keyed = Request.from_url(
        site.url(f"/hop/2?to={site.urls[1]}/headers"), headers={"authorization": "mine", "x-mine": "1"}
    )
    async with crawling() as crawl:
        await crawl.run([site.url("/headers").replace("http://", "http://user:secret@"), url, keyed])

    assert "Basic dXNlcjpzZWNyZXQ=" in crawl.texts[0]
    assert not [text for text in crawl.texts[1:] if "authorization" in text.lower()]
    assert len([text for text in crawl.texts if "x-mine" in text.lower()]) == 1


async def test_a_redirect_to_something_else_than_a_web_page_is_a_response(site: Site) -> None:
    urls = [
        site.url("/hop/1?to=mailto:a@b.test"),
        site.url("/hop/2?to=http://a%20b:c/"),
        site.url("/hop/3?to=ftp://a.test/"),
    ]
    async with crawling() as crawl:
        await crawl.run(urls)

    assert sorted(crawl.pages) == urls


async def test_a_hook_that_sends_a_request_waits_for_its_turn_and_not_for_itself(site: Site) -> None:
    async with crawling() as crawl:

        @crawl.crawler.pre_navigation_hook
        async def log_in(context):
            if context.request.url.endswith("/a"):
                await context.send_request(site.url("/login"))

        async with asyncio.timeout(10):
            await crawl.run([site.url("/a"), site.url("/b")])

    assert sorted(crawl.pages) == [site.url("/a"), site.url("/b")]
    assert sorted(site.paths) == ["/a", "/b", "/cookie", "/login"]


KILLED = """
import asyncio, os, sys
from crawlee.configuration import Configuration
from tests.frameworks.crawlee.crawls import crawling, options_of_disk

async def main(folder, urls):
    async with crawling(**options_of_disk(folder)) as crawl:
        @crawl.crawler.router.handler("ALL")
        async def kill_at_3(context):
            print(context.request.url, flush=True)
            crawl.pages.append(context.request.url)
            if len(crawl.pages) == 4:
                os._exit(9)
        from crawlee import Request
        await crawl.run([Request.from_url(url, label="ALL") for url in urls])

asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


async def test_a_crawl_that_was_killed_is_resumed_from_crawlees_storage(site, tmp_path):
    urls = [f"{origin}/{n}" for n in range(5) for origin in site.urls]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(tmp_path), *urls, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, _ = await process.communicate()
    before = output.decode().split()
    async with crawling(**options_of_disk(tmp_path)) as resumed:
        resumed.crawler.router.handler("ALL")(resumed.handle)
        await resumed.run([])

    assert (process.returncode, len(before)) == (9, 4)
    assert set(before + resumed.pages) == set(urls)
    site.hits.clear()


async def test_a_window_smaller_than_the_queue_gives_out_all(site: Site) -> None:
    urls = [f"{origin}/{n}" for n in range(8) for origin in site.urls]
    async with crawling(window=2) as crawl:
        await crawl.run(urls)
        manager = crawl.client.manager
        assert "0 taken" in repr(manager)
        assert await manager.get_handled_count() == await manager.get_total_count() == 16
    assert sorted(crawl.pages) == sorted(urls)


@asynccontextmanager
async def managed(**options):
    async with polite.open_gate(AGENT, pacing=PACING, fetching=LOOPBACK) as gate:
        manager = PoliteRequestManager(gate, storage_client=MemoryStorageClient(), **options)
        yield manager
        await manager.drop()
        assert (gate.waiting, gate.inside) == (0, 0)


async def test_a_request_that_is_reclaimed_is_given_out_again(site: Site) -> None:
    async with managed() as manager:
        assert await manager.fetch_next_request() is None
        await manager.add_request(site.url("/a"))
        assert not await manager.is_empty()
        first = await manager.fetch_next_request()
        assert first is not None
        assert await manager.is_empty()
        assert not await manager.is_finished()
        await manager.reclaim_request(first, forefront=True)
        again = await manager.fetch_next_request()
        assert again is not None
        await manager.mark_request_as_handled(again)
        assert await manager.is_finished()

    assert first.url == again.url == site.url("/a")


async def test_a_queue_that_fails_ends_the_crawl(site: Site) -> None:
    class Failing(RequestQueue):
        async def fetch_next_request(self):
            raise OSError("the disk is full")

    queue = await Failing.open(storage_client=MemoryStorageClient())
    async with crawling(request_manager=queue) as crawl:
        with pytest.raises(OSError, match="the disk is full"):
            await crawl.run([site.url("/a")])


async def test_a_url_that_polite_cannot_read_is_skipped(site: Site) -> None:
    url = site.url("/").replace("127.0.0.1", "a..b%zz")
    async with crawling() as crawl:
        await crawl.run(
            [
                Request.model_construct(**{**dict(Request.from_url(site.url("/x"))), "url": url}),
                site.url("/a"),
            ]
        )

    assert crawl.skipped == [(url, "robots_txt")]


async def test_a_host_whose_robots_txt_is_out_of_reach_is_skipped_in_time(site: Site) -> None:
    dead, robots = "http://127.0.0.1:9/a", polite.RobotsPolicy(retry_min=0.1, retry_max=0.2)
    async with crawling(robots=robots, respect_robots_txt_file=True) as crawl:
        await crawl.run([dead, site.url("/a")])
    assert crawl.skipped == [(dead, "robots_txt")]


@pytest.fixture
async def gate():
    async with polite.open_gate(AGENT) as gate:
        yield gate


async def test_what_is_of_the_wrong_kind_is_refused(gate: polite.Gate) -> None:
    queue = await RequestQueue.open(storage_client=MemoryStorageClient())
    throttled = ThrottlingRequestManager(queue, domains=["a.test"], request_manager_opener=RequestQueue.open)
    manager = PoliteRequestManager(gate)
    wrong = [
        lambda: polite_crawler(HttpCrawler(), gate),
        lambda: polite_crawler(str, gate),
        lambda: polite_crawler(type("AdaptivePlaywrightCrawler", (HttpCrawler,), {}), gate),
        lambda: polite_crawler(HttpCrawler, AGENT),
        lambda: polite_crawler(HttpCrawler, gate, request_manager=throttled),
        lambda: polite_crawler(HttpCrawler, gate, request_manager="queue"),
        lambda: polite_crawler(HttpCrawler, gate, http_client="client"),
        lambda: polite_crawler(HttpCrawler, gate, http_client=PoliteHttpClient(manager)),
        lambda: PoliteHttpClient(gate),
        lambda: PoliteHttpClient(manager, PoliteHttpClient(manager)),
        lambda: PoliteRequestManager(gate, window=0),
        lambda: PoliteRequestManager(gate, max_robots_tries=0),
    ]
    for make in wrong:
        with pytest.raises(polite.InvalidOption):
            make()
    async with polite.open_gate(AGENT) as other:
        with pytest.raises(polite.InvalidOption, match="another gate"):
            polite_crawler(HttpCrawler, other, request_manager=manager)


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
async def browsing(**options):
    async with crawling(
        PlaywrightCrawler,
        headless=True,
        browser_launch_options={"executable_path": CHROMIUM, "args": ["--no-sandbox"]},
        concurrency_settings=ConcurrencySettings(desired_concurrency=2),
        **options,
    ) as crawl:

        async def note(context):
            crawl.pages.append(context.request.loaded_url)

        crawl.crawler.router._default_handler = note
        yield crawl


@chromium
async def test_pages_that_fail_are_retried_and_robots_txt_is_obeyed(site: Site) -> None:
    broken = f"{site.urls[1]}/broken"
    urls = [site.url("/a"), broken, site.url("/b"), site.url("/private/x")]
    async with browsing(max_request_retries=1) as crawl:
        await crawl.run(urls)

    # Chromium itself requests again at once if a connection breaks.
    assert site.paths.count("/broken") >= 2
    site.hits = [hit for hit in site.hits if hit.raw != "/broken"]
    assert sorted(crawl.pages) == [site.url("/a"), site.url("/b")]
    assert crawl.skipped == [(urls[3], "robots_txt")]
    assert [url for url, _ in crawl.failed] == [broken]


@chromium
async def test_a_host_whose_budget_is_spent_is_skipped(site: Site) -> None:
    async with browsing(pacing=dataclasses.replace(PACING, max_pages=2)) as crawl:
        await crawl.run([site.url("/a"), site.url(f"/hop?to={site.url('/b')}")])
    assert (crawl.pages, crawl.failed) == ([site.url("/a")], [])
    assert crawl.skipped == [(site.url("/b"), "robots_txt")]


@chromium
@pytest.mark.parametrize("incognito", [False, True])
async def test_redirects_of_a_browser_are_checked_and_wait(site: Site, *, incognito: bool) -> None:
    private, other = f"{site.urls[1]}/private/x", f"{site.urls[1]}/b"
    urls = [site.url(f"/hop?to={to}") for to in (private, other, site.url("/c"))]
    own: list[str] = []
    async with browsing(use_incognito_pages=incognito) as crawl:

        async def note(context):
            crawl.pages.append(context.request.loaded_url)
            try:
                await context.page.goto(private)
            except polite.Disallowed as error:
                own.append(error.url)

        crawl.crawler.router._default_handler = note
        await crawl.run(urls)

    assert sorted(crawl.pages) == sorted([other, site.url("/c")])
    assert (crawl.skipped, own) == ([(private, "robots_txt")], [private] * 2)
    assert crawl.failed == []


@pytest.mark.parametrize("kind", [BasicCrawler, FileDownloadCrawler])
async def test_crawlers_that_send_by_themselves_use_the_permit_of_the_page(kind, site):
    async with crawling(kind) as crawl:

        async def handle(context):
            if kind is BasicCrawler:
                await context.send_request(context.request.url)
            crawl.pages.append(context.request.url)

        crawl.crawler.router._default_handler = handle
        async with asyncio.timeout(10):
            await crawl.run([site.url("/a"), site.url("/private/x"), site.url("/b")])

    assert crawl.pages == [site.url("/a"), site.url("/b")]
    assert site.hits[-1].at - site.hits[0].at < 1.0


async def test_a_named_queue_keeps_its_requests_over_two_runs_and_another_does_not(site: Site) -> None:
    queue = await RequestQueue.open(name="kept", storage_client=MemoryStorageClient())
    for options, again in (({"request_manager": queue}, 0), ({}, 1)):
        async with crawling(**options) as crawl:
            await crawl.run([site.url("/a")])
            await crawl.run([site.url("/a"), site.url("/b")])
        assert crawl.pages == [site.url("/a")] * (1 + again) + [site.url("/b")]
    site.hits.clear()


async def test_a_crawler_of_the_users_own_keeps_its_name_and_what_it_sets_up(gate: polite.Gate) -> None:
    class Mine(ParselCrawler):
        def __init__(self, **options):
            super().__init__(**options)
            self.on_skipped_request(self.skipped)

        async def skipped(self, url: str, reason: str) -> None:
            pass

    manager = PoliteRequestManager(gate)
    crawler = polite_crawler(Mine, gate, request_manager=manager, http_client=PoliteHttpClient(manager))

    assert isinstance(crawler, Mine)
    assert (type(crawler).__name__, manager._on_skipped) == ("Mine", crawler.skipped)
