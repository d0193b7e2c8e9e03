"""The User-Agent of the gate is sent, or another one is refused."""

import pytest
from playwright.async_api import Browser, BrowserContext, Error

import polite
from polite.integrations.playwright import guard
from tests.frameworks.playwright.browsing import AGENT, Site, opened


async def test_a_context_with_the_gates_agent_is_left_alone(browser: Browser, site: Site) -> None:
    async with await browser.new_context(user_agent=AGENT) as context, opened() as gate:
        await guard(context, gate)
        page = await context.new_page()

        await page.goto(f"{site.url}/a")

        assert await page.evaluate("navigator.userAgent") == AGENT
        assert {hit.agent for hit in site.hits} == {AGENT}


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
            await guarded.goto(page, f"{site.url}/a")
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(f"{site.url}/a")

        assert isinstance(await guarded.refusal(page), polite.InvalidUserAgent)
        assert site.paths == []
        assert (gate.waiting, gate.inside) == (0, 0)
