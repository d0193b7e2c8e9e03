"""The page in a headless Chromium: it renders, updates and filters, shows all as text, and follows colours, keys and widths."""

import asyncio

import pytest
import pytest_asyncio

import polite
from docs.examples.demo.browser import BrowserFailed, browsing, chromium
from polite.events import CircuitOpened, Dropped
from polite.origin import Origin
from polite.status.monitor import Monitor
from polite.status.survey import Survey
from tests.status.support import served
from tests.support import RULES, A, B

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
    """Let the crawl's time pass until an expression of the page is true."""
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


async def test_a_shared_crawl_has_its_sessions_and_homes(tab, monkeypatch):
    async with served() as crawl:
        await opened(tab, crawl)
        assert await tab.evaluate("document.querySelector('#shared-card').hidden")
        shared, state = {}, Monitor.state
        monkeypatch.setattr(Monitor, "state", lambda *given: {**state(*given), "shared": shared or None})
        shared |= {
            "crawl": "news",
            "store": "redis://example.com/0",
            "lease_s": 15.0,
            "sessions": [{"name": HOSTILE, "ends_s": 12.0, "homes": 2, "closed": True}],
            "held": [{"home": "a.test", "session": HOSTILE, "delayed_s": 90.0}],
            "line": [{"home": "b.test", "in_s": -5.0}, {"home": "c.test", "in_s": 5.0}],
            "counts": {"held": 1, "line": 2, "later": 0},
            "quiet_s": 3.0,
        }
        await until(tab, crawl, "!document.querySelector('#shared-card').hidden")
        shown = await tab.evaluate(text_of("#shared-card"))
        made = await tab.evaluate("document.querySelectorAll('main img, main script').length")
        shared.clear()
        shared |= {"error": "no permission"}
        await until(tab, crawl, f"{text_of('#shared-card')}.includes('no permission')")

    for text in (
        "news redis://example.com/0",
        f"{HOSTILE}2 homes, lease 12 s, puts no more",
        "a.testheld, delayed 90 s",
        "b.testin line for 5.0 s",
        "c.testin line, in 5.0 s",
        "No home is given for 3.0 s",
    ):
        assert text in shown
    assert made == 0


async def test_rows_are_filtered_by_name_and_by_reason(tab):
    robots = {f"https://h{n}.test/robots.txt": RULES for n in range(9)}
    robots[f"{A}/robots.txt"] = polite.testing.Reply(503, retry_after="600")
    async with served(robots) as crawl:
        await crawl.frontier.put_many([*(f"https://h{n}.test/1" for n in range(9)), f"{A}/1"])
        await crawl.pass_time(30)
        await opened(tab, crawl)
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 10")

        await tab.press("f")
        await tab.type("h7")
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 1")
        assert "https://h7.test" in await tab.evaluate(text_of("#rows"))
        await tab.press("Escape")
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 10")

        await tab.evaluate(
            "[...document.querySelectorAll('#waiting button')].find(b => b.textContent.includes('out of reach')).click()"
        )
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 1")
        assert A in await tab.evaluate(text_of("#rows"))
        # A filter holds while the page is updated.
        await crawl.pass_time(3)
        assert await tab.evaluate("document.querySelectorAll('#rows tr').length") == 1

    # Its security policy has nothing to say. The page of the test before may have lost its server.
    assert [each for each in tab.messages if "ERR_CONNECTION_REFUSED" not in each] == []


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
async def test_everything_is_reached_by_the_tab_key(tab):
    async with served({f"{A}/robots.txt": RULES}) as crawl:
        await crawl.frontier.put(f"{A}/2")
        await opened(tab, crawl)
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 1")
        await tab.evaluate("document.body.focus()")
        reached = set()
        for _ in range(14):
            await tab.press("Tab")
            reached.add(await tab.evaluate("document.activeElement.id || document.activeElement.className"))

    assert reached >= {"url", "pause", "timeline", "reason", "filter", "origin", "label"}


async def test_pause_keeps_the_page_still_and_focus_stays_on_its_row(tab):
    async with served({f"{A}/robots.txt": RULES, f"{B}/robots.txt": RULES}) as crawl:
        await crawl.frontier.put_many([f"{A}/1", f"{B}/1"])
        await crawl.pass_time(5)
        await opened(tab, crawl)
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 2")
        await tab.evaluate("document.querySelectorAll('#rows button')[1].focus()")
        focused = await tab.evaluate("document.activeElement.textContent")
        await crawl.pass_time(3)
        assert await tab.evaluate("document.activeElement.textContent") == focused

        await tab.press("p")
        assert await tab.evaluate(text_of("#live")) == "paused"
        before = await tab.evaluate(text_of("#tiles"))
        await crawl.frontier.put(f"{A}/2")
        await crawl.pass_time(3)
        assert await tab.evaluate(text_of("#tiles")) == before
        await tab.press("p")
        await until(tab, crawl, f"{text_of('#tiles')} != {before!r}")


# 80 columns of a terminal are about 640 pixels; 400 are a telephone.
@pytest.mark.parametrize("width", [400, 1_280])
async def test_nothing_is_cut_off_on_a_narrow_screen_and_colours_are_as_its_user_prefers(tab, width):
    async with served({f"{A}/robots.txt": RULES}) as crawl:
        long = "https://" + ".".join(["a-very-long-label-of-a-host"] * 6) + ".test"
        await crawl.frontier.put_many([f"{A}/1", f"{long}/{'x' * 500}"])
        await crawl.pass_time(5)
        await tab.show(width, 900)
        await opened(tab, crawl)
        await until(tab, crawl, "document.querySelectorAll('#rows tr').length == 2")
        wide = await tab.evaluate(
            "[...document.querySelectorAll('body, body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
            " && !e.closest('svg, .skip, .brand')).map(e => e.tagName + e.id + e.className)"
        )
        scrolls = await tab.evaluate("document.documentElement.scrollWidth > innerWidth")
        colour = "getComputedStyle(document.body).color + getComputedStyle(document.body).backgroundColor"
        light = await tab.evaluate(colour)
        await tab.show(width, 900, dark=True)
        dark = await tab.evaluate(colour)

    assert wide == []
    assert not scrolls
    assert light != dark
    assert Origin.of(long).text == long


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
