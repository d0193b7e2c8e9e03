"""Documents take a permit: pages, redirect hops, frames and popups; and which contexts can be guarded."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, BrowserType, Error, async_playwright

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


async def test_a_persistent_context(tmp_path: Path, site: Site) -> None:
    async with async_playwright() as playwright, opened() as gate:
        context = await playwright.chromium.launch_persistent_context(
            tmp_path, executable_path=CHROMIUM, args=FLAGS
        )
        await guard(context, gate)
        page = context.pages[0]

        await page.goto(site.url("/a"))
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(site.url("/private"))
        await context.close()

    assert site.paths == ["/a"]


async def test_what_cannot_be_guarded_is_refused_by_name(context: BrowserContext, monkeypatch) -> None:
    async with opened() as gate:

        async def refused(message: str, **options: Any) -> None:
            with pytest.raises(polite.InvalidOption, match=message):
                await guard(**{"context": context, "gate": gate, **options})

        await refused("check, pace or allow", subresources="block")
        await refused("needs a BrowserContext of playwright.async_api", context="context")
        await refused("needs a gate of polite.open_gate", gate="gate")
        await guard(context, gate)
        await refused("has a guard already")
        monkeypatch.setattr(type(context.browser.browser_type), "name", "firefox")  # type: ignore[union-attr]
        await refused("Chromium")


async def test_a_context_with_another_agent_is_refused(browser: Browser, site: Site) -> None:
    async with await browser.new_context(user_agent="Mozilla/5.0") as context, opened() as gate:
        with pytest.raises(polite.InvalidUserAgent, match=r"Mozilla/5\.0"):
            await guard(context, gate)

        assert context.pages == []


async def test_a_request_with_another_agent_is_blocked(context: BrowserContext, site: Site) -> None:
    async with opened() as gate:
        guarded = await guard(context, gate)
        await context.set_extra_http_headers({"User-Agent": "Other/1.0"})
        page = await context.new_page()

        with pytest.raises(polite.InvalidUserAgent, match="Other"):
            await guarded.goto(page, site.url("/a"))
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(site.url("/a"))

        assert isinstance(await guarded.refusal(page), polite.InvalidUserAgent)
        assert site.paths == []
        assert (gate.waiting, gate.inside) == (0, 0)
