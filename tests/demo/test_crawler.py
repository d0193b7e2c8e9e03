"""The crawler of the demo: retries, links, and its end."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from multidict import CIMultiDict

import polite
from docs.examples.demo.crawler import TRIES, crawl, links
from polite.robots.exchange import Failed, Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

ROBOTS = "http://a.test/robots.txt"


class Page:
    def __init__(self, body="", status=200, **headers):
        self.status = status
        self.headers = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        self._body = body

    async def text(self, errors):
        return self._body


class Session:
    """Responds to each URL with its pages in order, the last one repeated; raises exceptions. `asked`: URLs and times."""

    def __init__(self, **pages):
        self.asked = []
        self._pages = {f"http://a.test/{name}": list(answers) for name, answers in pages.items()}

    @asynccontextmanager
    async def get(self, url, allow_redirects):
        assert not allow_redirects
        self.asked.append((str(url), asyncio.get_running_loop().time()))
        answers = self._pages[str(url)]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        yield answer


def _crawled(session, *robots):
    """Return the outcome of each URL found from http://a.test/start, within ten hours of virtual time."""
    found = {}

    async def crawling():
        transport = ScriptedTransport({ROBOTS: robots or [Reply(404)]})
        async with (
            asyncio.timeout(36_000),
            polite.open_gate("Bot/1.0", clock=LoopClock(), transports={"http": transport}) as gate,
        ):
            await crawl(gate, session, ["http://a.test/start"], found)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(crawling())
    return {url.removeprefix("http://a.test/"): state for url, state in found.items()}


def test_links_are_followed_once():
    session = Session(start=[Page('<a href="b">b</a> <a href=/b#top>b</a>')], b=[Page('<a href="start">')])

    assert _crawled(session) == {"start": 200, "b": 200}
    assert len(session.asked) == 2


def test_a_redirect_asks_the_gate_like_any_link():
    session = Session(start=[Page(status=302, Location="/no")])

    found = _crawled(session, Reply(200, b"User-agent: *\nDisallow: /no\n"))

    assert found == {"start": 302, "no": "disallowed by Disallow: /no (line 2)"}
    assert len(session.asked) == 1


def test_a_busy_server_is_asked_again_when_it_said():
    session = Session(start=[Page(status=429, Retry_After="40"), Page()])

    assert _crawled(session) == {"start": 200}
    (_, first), (_, second) = session.asked
    assert second - first >= 40


@pytest.mark.parametrize("answer", [Page(status=503), aiohttp.ClientError(), TimeoutError()])
def test_a_page_that_always_fails_is_given_up(answer):
    session = Session(start=[answer])

    assert _crawled(session) == {"start": f"given up after {TRIES} tries"}
    assert len(session.asked) == TRIES
    assert all(b - a >= 1.0 for (_, a), (_, b) in zip(session.asked, session.asked[1:], strict=False))


def test_rules_that_come_late_are_waited_for():
    session = Session(start=[Page()])

    assert _crawled(session, Reply(503), Reply(503), Reply(200, b"")) == {"start": 200}


def test_rules_that_never_come_leave_everything_unfetched():
    session = Session()

    found = _crawled(session, Failed(polite.Reason.TIMEOUT))

    assert "robots.txt is unreachable" in found["start"]
    assert session.asked == []


def test_what_is_no_page_is_not_followed():
    links = ["mailto:a@b.test", "http://x:99999/", "ftp://a.test/x", "javascript:go()"]

    assert _crawled(Session(start=[Page("".join(f'<a href="{each}">' for each in links))])) == {"start": 200}


def test_links_are_the_anchors_that_lead_somewhere():
    page = '<a href="/a?b=1&amp;c">x</a><a name=x></a><a href></a><link href="/css"><A HREF=/d'

    assert links(page + ">") == ["/a?b=1&c", "/d"]
