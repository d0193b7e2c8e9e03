"""Subresources are checked, paced or allowed, what was sent unseen is charged, and what has no response leaves its permit."""

import asyncio

import pytest
from playwright.async_api import BrowserContext, Error, async_playwright

import polite
from polite.integrations.playwright import Subresources, guard
from tests.frameworks.playwright.browsing import AGENT, DELAY_S, FLAGS, Site, opened, until
from tests.frameworks.playwright.conftest import CHROMIUM

NO_ICON = "<link rel=icon href='data:,'>"
IMAGES = f"{NO_ICON}<img src=/1.png><img src=/2.png><img src=/private/3.png>"


@pytest.mark.parametrize(
    ("subresources", "seen", "short"), [("check", 3, True), ("pace", 3, False), ("allow", 4, True)]
)
async def test_three_ways_to_treat_them(subresources: Subresources, seen: int, short: bool, context, site):
    site.pages["/page"] = IMAGES
    async with opened() as gate:
        await guard(context, gate, subresources=subresources)
        await (await context.new_page()).goto(site.url("/page"))
        assert (len(site.paths), "/private/3.png" in site.paths) == (seen, subresources == "allow")
        assert bool(site.short(*site.paths)) == short
        assert (gate.waiting, gate.inside) == (0, 0)


async def test_workers_are_checked_and_have_the_gates_agent(context: BrowserContext, site: Site) -> None:
    site.pages["/page"] = (
        f"{NO_ICON}<script>new Worker('/worker.js'); new SharedWorker('/shared.js');"
        "navigator.serviceWorker.register('/service.js')</script>"
    )
    for name in ("worker", "shared", "service"):
        site.pages[f"/{name}.js"] = f"fetch('/of-{name}'); fetch('/private/of-{name}')"
    async with opened() as gate:
        await guard(context, gate)
        await (await context.new_page()).goto(site.url("/page"))
        await until(lambda: len(site.paths) == 5)
        await asyncio.sleep(DELAY_S)

        assert sorted(site.paths) == ["/of-shared", "/of-worker", "/page", "/shared.js", "/worker.js"]
        assert {hit.agent for hit in site.hits} == {AGENT}


async def test_service_workers_from_before_are_unregistered(context: BrowserContext, site: Site) -> None:
    site.pages["/page"] = f"{NO_ICON}<script>navigator.serviceWorker.register('/service.js')</script>"
    site.pages["/service.js"] = (
        "self.addEventListener('activate', event => event.waitUntil(clients.claim()));"
        "self.addEventListener('fetch', event => event.respondWith(fetch(event.request)))"
    )
    page = await context.new_page()
    await page.goto(site.url("/page"))
    await page.wait_for_function("navigator.serviceWorker.controller")
    async with opened() as gate:
        guarded = await guard(context, gate)
        site.hits.clear()

        for path in ("/a", "/b"):
            assert not (await guarded.goto(page, site.url(path))).from_service_worker
        await page.goto(site.url("/c"))
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(site.url("/private/d"))

        assert site.paths == ["/a", "/b", "/c"]
        assert site.short("/a", "/b", "/c") == []


async def test_a_websocket_and_a_prefetch_are_charged(context: BrowserContext, site: Site) -> None:
    site.pages["/socket"] = f"{NO_ICON}<script>setTimeout(() => new WebSocket('/ws'), 250)</script>"
    site.pages["/rules"] = (
        f"{NO_ICON}<script type=speculationrules>"
        '{"prefetch": [{"urls": ["/ahead"], "eagerness": "immediate"}]}</script>'
    )
    async with opened() as gate:
        guarded = await guard(context, gate)
        for path, sent in (("/socket", "/ws"), ("/rules", "/ahead")):
            page = await context.new_page()
            await page.goto(site.url(path))
            await until(lambda sent=sent: site.hits[-1].raw == sent)
            # Chromium says so a moment later.
            await asyncio.sleep(DELAY_S / 4)

            await guarded.goto(page, site.url("/next"))

            assert site.short(sent, "/next") == []


async def test_pages_from_before_are_charged_and_their_scripts_checked(context: BrowserContext, site: Site):
    page = await context.new_page()
    await page.goto(site.url("/before"))
    async with opened(min_delay=1.0) as gate:
        await gate.check(site.url(""))
        await asyncio.sleep(1.0)  # robots.txt delays the origin, too
        started_at = asyncio.get_running_loop().time()

        guarded = await guard(context, gate)
        assert await page.evaluate("fetch('/private/x').then(r => r.status, e => 'blocked')") == "blocked"
        assert await page.evaluate("fetch('/public').then(r => r.status)") == 200
        await guarded.goto(page, site.url("/next"))

        assert site.paths == ["/before", "/public", "/next"]
        assert site.hits[-1].at - started_at >= 1.0


async def test_a_closed_page_leaves_the_permit_and_ends_the_wait(context: BrowserContext, site: Site) -> None:
    async with opened() as gate:
        await guard(context, gate)
        held, waits = await context.new_page(), await context.new_page()
        going = [asyncio.create_task(held.goto(site.url("/hang")))]
        await until(lambda: gate.inside == 1 and site.paths)
        going.append(asyncio.create_task(waits.goto(site.url("/never"))))
        await until(lambda: gate.waiting == 1)

        await waits.close()
        await until(lambda: gate.waiting == 0)
        assert gate.inside == 1
        await held.close()
        await until(lambda: gate.inside == 0)

        for error in await asyncio.gather(*going, return_exceptions=True):
            assert isinstance(error, Error)
        assert site.paths == ["/hang"]


@pytest.mark.parametrize("ends", ["context", "closed", "killed", "stopped"])
async def test_the_end_of_the_context_or_the_browser_leaves_all(ends: str, site: Site) -> None:
    async with opened() as gate:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            context = await browser.new_context()
            await guard(context, gate)
            pages = [await context.new_page() for _ in range(3)]
            going = [
                asyncio.create_task(page.goto(site.url(f"/hang{number}")))
                for number, page in enumerate(pages)
            ]
            await until(lambda: gate.inside == 1 and gate.waiting == 2 and site.paths)

            if ends == "context":
                await context.close()
                await until(lambda: gate.inside == gate.waiting == 0)
            elif ends == "closed":
                await browser.close()
            elif ends == "killed":
                session = await browser.new_browser_cdp_session()
                with pytest.raises(Error):
                    await session.send("Browser.crash")
        await until(lambda: gate.inside == gate.waiting == 0)

        await asyncio.gather(*going, return_exceptions=True)
        assert len(site.paths) == 1


async def test_a_server_that_hangs_up_counts_as_a_failure(context: BrowserContext, site: Site) -> None:
    async with opened(min_delay=0.05, circuit_failures=1) as gate:
        guarded = await guard(context, gate)
        page = await context.new_page()
        with pytest.raises(Error, match="ERR_EMPTY_RESPONSE"):
            await guarded.goto(page, site.url("/broken"))
        assert (await gate.explain(site.url("/next"))).wait_s > 1
        assert (gate.waiting, gate.inside) == (0, 0)


async def test_a_turn_that_no_request_used_is_given_back(context: BrowserContext, site: Site) -> None:
    url = site.url("/a")
    async with opened() as gate:
        guarded = await guard(context, gate)
        page = await context.new_page()

        async with guarded.turn(page, url):
            assert gate.inside == 1
        async with guarded.turn(page, url, await gate.acquire(url)):
            pass
        # The later of two turns of a page counts.
        async with guarded.turn(page, url), guarded.turn(page, site.url("/b", other=1)):
            assert gate.inside == 1
            await page.goto(site.url("/b", other=1))
        await guarded.goto(page, site.url("/b#fragment", other=1))
        await guarded.goto(page, "about:blank")
        await page.close()
        with pytest.raises(Error):
            async with guarded.turn(page, url, await gate.acquire(url)):
                pytest.fail("it has no page")
        with pytest.raises(Error):
            async with guarded.turn(await context.new_page(), url, await gate.acquire(url)):
                await context.close()
                raise Error("the page is closed")

        assert (site.paths, gate.waiting, gate.inside) == (["/b"], 0, 0)


async def test_a_closed_gate_blocks_everything(context: BrowserContext, site: Site) -> None:
    async with opened() as gate:
        guarded = await guard(context, gate)
        page = await context.new_page()
        await page.goto(site.url("/a"))

    with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
        await page.goto(site.url("/b"))
    with pytest.raises(polite.GateClosed):
        await guarded.goto(page, site.url("/b"))
    assert isinstance(await guarded.refusal(page), polite.GateClosed | None)
    assert site.paths == ["/a"]


async def test_what_nobody_expected_blocks(context, site, monkeypatch):
    loop = asyncio.get_running_loop()
    said: list[BaseException] = []
    loop.set_exception_handler(lambda _, told: said.append(told["exception"]))
    async with opened() as gate:
        await guard(context, gate)
        page = await context.new_page()
        monkeypatch.setattr(gate, "acquire", lambda _: 1 / 0)

        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(site.url("/a"))

    assert site.paths == []
    loop.set_exception_handler(None)


async def test_a_time_out_does_not_count_the_wait_of_goto(context: BrowserContext, site: Site) -> None:
    async with opened(min_delay=6.0) as gate:
        guarded = await guard(context, gate)
        page = await context.new_page()
        for path in ("/a", "/b"):
            assert await guarded.goto(page, site.url(path), timeout=5_500) is not None
        assert site.paths == ["/a", "/b"]
