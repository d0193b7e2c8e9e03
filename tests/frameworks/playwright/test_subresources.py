"""Subresources are checked, paced or allowed; what was sent unseen is charged."""

import asyncio

import pytest
from playwright.async_api import BrowserContext, Error

from polite.integrations.playwright import Subresources, guard
from tests.frameworks.playwright.browsing import AGENT, DELAY_S, Site, opened, until

NO_ICON = "<link rel=icon href='data:,'>"
IMAGES = f"{NO_ICON}<img src=/1.png><img src=/2.png><img src=/private/3.png>"


@pytest.mark.parametrize(
    ("subresources", "seen", "short"),
    [("check", 3, True), ("pace", 3, False), ("allow", 4, True)],
)
async def test_three_ways_to_treat_them(subresources: Subresources, seen: int, short: bool, context, site):
    site.pages["/page"] = IMAGES
    async with opened() as gate:
        await guard(context, gate, subresources=subresources)
        page = await context.new_page()

        await page.goto(site.url("/page"))

        assert len(site.paths) == seen
        assert ("/private/3.png" in site.paths) == (subresources == "allow")
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
        page = await context.new_page()

        await page.goto(site.url("/page"))
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
            response = await guarded.goto(page, site.url(path))
            assert response is not None
            assert not response.from_service_worker
        await page.goto(site.url("/c"))
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(site.url("/private/d"))

        assert site.paths == ["/a", "/b", "/c"]
        assert site.short("/a", "/b", "/c") == []


@pytest.mark.parametrize("icon", ["/favicon.ico", "/icon.png"])
async def test_an_icon_is_charged(icon: str, context: BrowserContext, site: Site) -> None:
    site.pages["/page"] = "" if icon == "/favicon.ico" else f"<link rel=icon href={icon}>"
    async with opened() as gate:
        guarded = await guard(context, gate)
        page = await context.new_page()

        await page.goto(site.url("/page"))
        await until(lambda: site.hits[-1].raw == icon)
        await guarded.goto(page, site.url("/next"))

        assert site.short(icon, "/next") == []


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
