"""Documents take a permit: pages, redirect hops, frames and popups."""

import pytest
from playwright.async_api import BrowserContext, BrowserType, Error

import polite
from polite.integrations.playwright import guard
from tests.frameworks.examples import PAGES, require_what_the_page_says
from tests.frameworks.playwright.browsing import AGENT, FLAGS, Site, opened, until
from tests.frameworks.playwright.conftest import CHROMIUM


async def test_pages_wait_for_their_turn_and_have_the_gates_agent(context: BrowserContext, site: Site):
    async with opened() as gate:
        await guard(context, gate)
        page = await context.new_page()

        for path in ("/a", "/b", "/c"):
            response = await page.goto(site.url(path))
            assert response is not None
            assert response.status == 200

        assert site.paths == ["/a", "/b", "/c"]
        assert site.short("/robots.txt", "/a", "/b", "/c") == []
        assert {hit.agent for hit in site.hits} == {AGENT}
        assert (gate.waiting, gate.inside, gate.counters.granted) == (0, 0, 3)


async def test_each_redirect_hop_is_checked_and_waits_and_goto_raises_what_the_gate_says(context, site):
    site.pages |= {"/first": "->/second", "/second": "->/third", "/out": "->/private/x"}
    async with opened() as gate:
        guarded = await guard(context, gate)
        page = await context.new_page()

        await page.goto(site.url("/first"))
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(site.url("/out"))
        for path in ("/private", "/out"):
            with pytest.raises(polite.Disallowed, match="Disallow: /private"):
                await guarded.goto(page, site.url(path))

        assert site.paths == ["/first", "/second", "/third", "/out", "/out"]
        assert site.short(*site.paths) == []
        assert (gate.waiting, gate.inside) == (0, 0)


async def test_frames_and_popups_are_documents(context: BrowserContext, site: Site) -> None:
    site.pages["/page"] = (
        "<iframe src=/frame></iframe><iframe src=/private/frame></iframe>"
        "<script>window.open('/popup'); window.open('/private/popup')</script>"
    )
    async with opened() as gate:
        await guard(context, gate)
        page = await context.new_page()

        await page.goto(site.url("/page"))
        await until(lambda: len(site.paths) == 3)

        assert sorted(site.paths) == ["/frame", "/page", "/popup"]
        assert site.short(*site.paths) == []


async def test_a_turn_takes_over_a_permit_that_was_awaited_before(context: BrowserContext, site: Site):
    async with opened() as gate:
        guarded = await guard(context, gate)
        permit = await gate.acquire(site.url("/a"))
        page = await context.new_page()

        async with guarded.turn(page, site.url("/a"), permit):
            await page.goto(site.url("/a"))

        assert site.paths == ["/a"]
        assert (gate.waiting, gate.inside, gate.counters.granted) == (0, 0, 1)


# The page on Playwright, and the five lines, run as they are.


@PAGES
async def test_examples_print_what_the_page_says(page: str, site, monkeypatch, capsys):
    site.pages |= {"/robots.txt": "User-agent: *\nDisallow: /private/\n", "/about": "About this site"}
    launch = BrowserType.launch
    monkeypatch.setattr(
        BrowserType, "launch", lambda kind: launch(kind, executable_path=CHROMIUM, args=FLAGS)
    )

    await require_what_the_page_says(
        page, "playwright", site.url("/"), monkeypatch, lambda: capsys.readouterr().out
    )
