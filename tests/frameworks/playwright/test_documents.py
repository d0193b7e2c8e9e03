"""Documents take a permit: pages, redirect hops, frames and popups; and which contexts can be guarded."""

import pytest
from playwright.async_api import Browser, BrowserContext, BrowserType, Error, async_playwright

import polite
from polite.integrations.playwright import guard
from polite.integrations.playwright.context_guard import GuardedContexts
from tests.frameworks.examples import require_what_the_page_says
from tests.frameworks.playwright.browsing import AGENT, FLAGS, Site, opened, until
from tests.frameworks.playwright.conftest import CHROMIUM


async def test_pages_wait_for_their_turn_and_have_the_gates_agent(context: BrowserContext, site: Site):
    async with opened() as gate:
        await guard(context, gate)
        page = await context.new_page()

        for path in ("/a", "/b", "/c"):
            assert (await page.goto(site.url(path))).status == 200

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


async def test_examples_print_what_the_page_says(site, monkeypatch, capsys):
    site.pages |= {"/robots.txt": "User-agent: *\nDisallow: /private/\n", "/about": "About this site"}
    launch = BrowserType.launch
    monkeypatch.setattr(BrowserType, "launch", lambda of: launch(of, executable_path=CHROMIUM, args=FLAGS))
    await require_what_the_page_says(
        "playwright", site.url("/"), monkeypatch, lambda: capsys.readouterr().out
    )


async def test_a_context_without_a_guard_goes_on_at_once(browser, context, site):
    site.pages["/page"] = f"<iframe src=/private/frame></iframe><iframe src={site.urls[1]}/nest></iframe>"
    site.pages["/nest"] = "<iframe src=/private/nested></iframe>"
    async with opened() as gate, await browser.new_context() as free:
        await guard(context, gate)
        pages = [await free.new_page(), await context.new_page()]

        for page in pages:
            await page.goto(site.url("/page"), wait_until="networkidle")

        by_us = [hit.raw for hit in site.hits if hit.agent == AGENT and hit.raw != "/favicon.ico"]
        assert sorted(by_us) == ["/nest", "/page", "/robots.txt", "/robots.txt"]
        assert sorted(path for path in site.paths if path.startswith("/private")) == [
            "/private/frame",
            "/private/nested",
        ]


async def test_two_contexts_with_gates_of_their_own(browser: Browser, site: Site) -> None:
    agents = ("OneBot/1.0 (+https://one.test)", "TwoBot/1.0 (+https://two.test)")
    site.pages["/robots.txt"] = "User-agent: onebot\nDisallow: /one\nUser-agent: twobot\nDisallow: /two\n"
    site.pages["/page"] = "<iframe src=/one></iframe><iframe src=/two></iframe>"
    async with opened(agents[0]) as one, opened(agents[1]) as two:
        for gate in (one, two):
            context = await browser.new_context()
            await guard(context, gate)
            page = await context.new_page()
            await page.goto(site.url("/page"), wait_until="networkidle")
            await context.close()

        frames = [(hit.raw, hit.agent) for hit in site.hits if hit.raw in {"/one", "/two"}]
        assert frames == [("/two", agents[0]), ("/one", agents[1])]


async def test_a_context_of_a_framework_is_guarded_once_and_forgotten_when_it_is_closed(browser, site):
    async with opened() as gate:
        contexts = GuardedContexts(gate)
        context = await browser.new_context()
        guarded = await contexts.guard_of(context)
        page = await context.new_page()
        await guarded.goto(page, site.url("/page"))

        assert await contexts.guard_of(context) is guarded
        assert [*contexts.guards] == [context]
        await context.close()
        assert not contexts.guards


async def test_a_persistent_context(tmp_path, site):
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

        async def refused(message, **options):
            with pytest.raises(polite.InvalidOption, match=message):
                await guard(**{"context": context, "gate": gate, **options})

        await refused("check, pace or allow", subresources="block")
        await refused("context must be one of playwright.async_api", context="context")
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
