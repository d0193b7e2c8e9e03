"""The page in a headless Chromium: it renders, updates and filters, shows all as text, and follows colours, keys and widths."""

import asyncio

import pytest
import pytest_asyncio

import polite
from docs.examples.demo.browser import BrowserFailed, browsing, chromium
from polite.events import CircuitOpened, Dropped
from polite.status.survey import Survey
from tests.status.support import served
from tests.support import RULES, A

PROGRAM = chromium()
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed: apt-get install chromium"),
]

# What a hostile site might put where the page shows text.
HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>&amp;\"'"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser():
    async with browsing(PROGRAM or "") as page:
        yield page


@pytest_asyncio.fixture(loop_scope="module")
async def tab(browser):
    browser.messages.clear()
    await browser.show(1_280, 900)
    return browser


async def until(tab, crawl, script):
    loop = asyncio.get_running_loop()
    end = loop.time() + 30
    while loop.time() < end:
        try:
            if await tab.evaluate(script):
                return
        except BrowserFailed:
            pass  # The page is being loaded.
        await crawl.pass_time(1.0)
        await asyncio.sleep(0.02)
    raise AssertionError(f"never true: {script}; the page says {tab.messages}")


def text_of(selector):
    return f"document.querySelector({selector!r}).textContent"


async def opened(tab, crawl):
    await tab.go(crawl.page.url)
    await until(tab, crawl, f"{text_of('#live')} == 'live'")


async def test_what_a_site_says_is_shown_as_text(tab, monkeypatch):
    def hostile(*_, **__):
        shown = dict.fromkeys(("origin", "text", "scope", "because", "url"), HOSTILE)
        numbers = {"urls": 1, "permits": 0, "since_s": 1.0, "until_s": None, "ahead": 0, "in_flight": 0}
        rule = {"allowed": True, "text": HOSTILE, "line": 1}
        return [{**shown, **numbers, "reason": "delay", "rule": rule, "failures": 0}]

    monkeypatch.setattr(Survey, "longest", hostile)
    monkeypatch.setattr(Survey, "held", lambda _: [{"url": HOSTILE, "held_s": 1.0}])
    async with served() as crawl:
        crawl.gate.services.listener(Dropped(HOSTILE, HOSTILE, 1))
        crawl.gate.services.listener(CircuitOpened(HOSTILE, 3, 60.0, HOSTILE))
        await opened(tab, crawl)
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 1")
        await tab.evaluate("document.querySelector('#rows button').click()")
        await until(tab, crawl, f"{text_of('#answer-verdict')} != '...'")
        shown = [
            await tab.evaluate(text_of(selector))
            for selector in ("#rows .origin", "#rows .why + .why", "#events b", "#held .url", "#answer-url")
        ]
        made = await tab.evaluate("document.querySelectorAll('main img, main script').length")
        title = await tab.evaluate("document.title")

    assert all(HOSTILE in each for each in shown), shown
    assert made == 0
    assert "owned" not in title


async def test_the_search_box_says_why_a_url_does_not_come_and_arrows_read_the_timeline(tab):
    async with served({f"{A}/robots.txt": RULES}) as crawl:
        await crawl.visit(f"{A}/1", status=200)
        await opened(tab, crawl)

        await tab.press("/")
        await tab.type(f"{A}/private/x")
        await tab.press("Enter")
        await until(tab, crawl, f"{text_of('#answer-verdict')}.includes('Disallow: /private (line 2)')")
        assert "robots.txt: the server returned a file" in await tab.evaluate(text_of("#answer-text"))

        await tab.press("Escape")
        assert await tab.evaluate("document.querySelector('#answer').hidden")
        await tab.press("/")
        await tab.type("no url")
        await tab.press("Enter")
        await until(tab, crawl, f"{text_of('#answer-verdict')}.includes('no url')")

        assert "0 waiting" in await tab.evaluate("document.title")
        await until(tab, crawl, "document.querySelector('#timeline .well').getAttribute('d').startsWith('M')")
        await tab.evaluate("document.querySelector('#timeline').focus()")
        await tab.press("ArrowRight")
        told = await tab.evaluate(text_of("#readout"))
        assert "no response" in told or "×" in told


@pytest.mark.slow("a browser")
async def test_a_page_that_lost_its_connection_says_so_and_comes_back(tab):
    async with served() as crawl:
        await opened(tab, crawl)
        port = crawl.page.port
        await crawl.page.close()
        await tab.until(f"{text_of('#live')}.startsWith('no connection')")
        assert await tab.evaluate("document.body.classList.contains('stale')")
        async with polite.status.serve(crawl.gate, crawl.frontier, port=port):
            await until(tab, crawl, f"{text_of('#live')} == 'live'")


async def test_a_token_is_typed_once_or_is_once_in_the_address(tab):
    token = "a-token-of-enough-characters"
    live = (
        f"location.href == '{{}}' && {text_of('#live')} == 'live' && document.querySelector('#login').hidden"
    )
    async with served(token=token) as crawl:
        await tab.go(crawl.page.url)
        await tab.until("document.activeElement.id == 'token'")
        await tab.type("wrong-wrong-wrong-wrong")
        await tab.press("Enter")
        await tab.until("document.querySelector('#wrong').checkVisibility()")
        await tab.type(token)
        await tab.press("Enter")
        await until(tab, crawl, live.format(crawl.page.url))
        # It is kept for this tab.
        await tab.go(f"{crawl.page.url}?again")
        await until(tab, crawl, live.format(f"{crawl.page.url}?again"))
    async with served(token=token) as crawl:
        await tab.go(f"{crawl.page.url}#{token}")
        await until(tab, crawl, live.format(crawl.page.url))
