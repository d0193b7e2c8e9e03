"""The urllib.robotparser interface, call by call beside the original: alike, or different for a reason that the docs give."""

import time
import urllib.robotparser
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidURL
from polite.integrations.robotparser import ROBOTPARSER, RobotFileParser
from polite.robots.dialect import RFC9309
from polite.robots.policy import FetchPolicy

FILE = """\
User-agent: *
Disallow: /a
Disallow: /b/
Crawl-delay: 3
Request-rate: 1/10

User-agent: FooBot
User-agent: barbot
Allow: /open
Disallow: /

Sitemap: https://example.com/s.xml
"""
AGENTS = ["*", "", "foobot", "FooBot/1.0 (+https://example.com)", "BARBOT", "other", "Other/1.0"]
URLS = [
    "https://example.com",
    "https://example.com/",
    "https://example.com/a",
    "https://example.com/a?b=c",
    "https://example.com/%61",
    "https://example.com/b",
    "https://example.com/b/c#d",
    "https://example.com/open",
    "http://other.example:8080/A",
    "/a",
    "/b",
]


def both(body: str) -> tuple[urllib.robotparser.RobotFileParser, RobotFileParser]:
    original, ours = urllib.robotparser.RobotFileParser(), RobotFileParser()
    original.parse(body.splitlines())
    ours.parse(body.splitlines())
    return original, ours


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("url", URLS)
def test_can_fetch_is_alike(agent: str, url: str):
    original, ours = both(FILE)

    assert ours.can_fetch(agent, url) is original.can_fetch(agent, url)


@pytest.mark.parametrize("agent", AGENTS)
def test_crawl_delay_and_request_rate_are_alike(agent: str):
    original, ours = both(FILE)

    assert ours.crawl_delay(agent) == original.crawl_delay(agent)
    assert ours.request_rate(agent) == original.request_rate(agent)


def test_site_maps_are_a_list_or_none_as_in_the_original():
    original, ours = both(FILE)

    assert ours.site_maps() == original.site_maps() == ["https://example.com/s.xml"]
    assert both("")[1].site_maps() is both("")[0].site_maps() is None


def test_reading_sets_the_time_as_in_the_original(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "time", lambda: 1234.5)

    original, ours = both("")

    assert ours.mtime() == original.mtime() == 1234.5
    monkeypatch.setattr(time, "time", lambda: 1300.0)
    ours.modified()
    assert ours.mtime() == 1300.0


def test_flags_that_are_set_count_as_in_the_original():
    for parser in both(FILE):
        parser.allow_all = True
        assert parser.can_fetch("foobot", "/x")
        parser.disallow_all = True
        assert not parser.can_fetch("foobot", "/open")


def test_its_text_reads_as_the_same_file():
    _, ours = both(FILE)

    assert str(ours).startswith("User-agent: *\nDisallow: /a\n")
    assert not str(ours).endswith("\n")
    assert str(both(str(ours))[1]) == str(ours)


def test_the_methods_are_those_of_the_original():
    public = {name for name in dir(urllib.robotparser.RobotFileParser) if not name.startswith("_")}

    assert public <= set(dir(RobotFileParser))


# What differs, as docs/how-to/replace-protego.md has it: body, agent, URL, the original's answer, ours.
DIFFERENT = {
    "the longest rule wins, not the first": (
        "User-agent: *\nAllow: /\nDisallow: /a\n",
        "x",
        "/a",
        True,
        False,
    ),
    "wildcards": ("User-agent: *\nDisallow: /*.gif$\n", "x", "/a.gif", True, False),
    "a blank line ends no group": ("User-agent: x\n\nDisallow: /a\n", "x", "/a", True, False),
    "several groups hold together": (
        "User-agent: x\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n",
        "x",
        "/b",
        True,
        False,
    ),
    "a name must be the whole": ("User-agent: bot\nDisallow: /\n", "mybot", "/", False, True),
    "the most specific name, not the first": (
        "User-agent: a\nDisallow: /\n\nUser-agent: a-b\nDisallow: /x\n",
        "a-b",
        "/y",
        False,
        True,
    ),
    "robots.txt may always be fetched": ("User-agent: *\nDisallow: /\n", "x", "/robots.txt", False, True),
    "no URL is denied": ("", "x", "nowhere", True, False),
}


@pytest.mark.parametrize(("body", "agent", "url", "before", "now"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_differs_as_documented(body: str, agent: str, url: str, before: bool, now: bool):
    original, ours = both(body)

    assert original.can_fetch(agent, url) is before
    assert ours.can_fetch(agent, url) is now


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("/a%2Fb", "/a/b"),
        ("/a/b", "/a%2fb"),
        ("/a:b", "/a%3Ab"),
        ("/a%3Fb", "/a?b"),
        ("/a?b=c", "/a%3Fb%3Dc"),
    ],
)
def test_a_reserved_character_equals_its_escape_as_in_the_original(rule: str, url: str):
    original, ours = both(f"User-agent: *\nDisallow: {rule}\n")
    strict = RobotFileParser(dialect=RFC9309)
    strict.parse(["User-agent: *", f"Disallow: {rule}"])

    assert original.can_fetch("x", url) is ours.can_fetch("x", url) is False
    assert strict.can_fetch("x", url) is True
    assert ours.robots.dialect is ROBOTPARSER


def test_a_delay_may_be_a_fraction_and_of_several_the_longest_counts():
    original, ours = both("User-agent: *\nCrawl-delay: 5\nCrawl-delay: 2.5\n")

    assert original.crawl_delay("x") == 5
    assert ours.crawl_delay("x") == 5.0
    assert both("User-agent: *\nCrawl-delay: 2.5\n")[0].crawl_delay("x") is None
    assert both("User-agent: *\nCrawl-delay: 2.5\n")[1].crawl_delay("x") == 2.5


@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=20), st.text(max_size=20))
def test_nothing_that_is_asked_raises(lines: list[str], url: str, agent: str):
    ours = RobotFileParser(url)
    ours.parse(lines)

    assert ours.can_fetch(agent, url) in (True, False)
    ours.crawl_delay(agent)
    ours.request_rate(agent)
    assert isinstance(str(ours), str)


class Answering(BaseHTTPRequestHandler):
    """Answers with what the server's `answer` holds, and counts."""

    def do_GET(self) -> None:
        status, body = self.server.answer
        self.server.asked.append((self.path, self.headers["User-Agent"]))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        server.asked = []
        server.answer = (200, FILE.encode())
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def reading(site: HTTPServer, path: str = "/robots.txt") -> RobotFileParser:
    parser = RobotFileParser(agent="TestBot/1.0", fetching=FetchPolicy(allow_private=True))
    parser.set_url(f"http://127.0.0.1:{site.server_port}{path}")
    parser.read()
    return parser


def test_read_fetches_the_file_and_reads_it(site: HTTPServer):
    parser = reading(site)

    assert not parser.can_fetch("x", "/a")
    assert parser.can_fetch("x", "/c")
    assert parser.mtime() > 0
    assert site.asked == [("/robots.txt", "TestBot/1.0")]


def test_read_asks_for_the_origins_file_whatever_the_path(site: HTTPServer):
    reading(site, "/folder/robots.txt")

    assert [path for path, _ in site.asked] == ["/robots.txt"]


@pytest.mark.parametrize(
    ("status", "allowed"), [(404, True), (401, True), (403, True), (410, True), (500, False), (503, False)]
)
def test_read_takes_an_answer_without_a_file_as_rfc_9309_does(site: HTTPServer, status: int, allowed: bool):
    site.answer = (status, b"User-agent: *\nDisallow: /a\n")

    parser = reading(site)

    assert parser.can_fetch("x", "/a") is allowed
    assert parser.allow_all is allowed
    assert parser.disallow_all is not allowed


def test_read_of_what_is_no_url_raises():
    with pytest.raises(InvalidURL):
        RobotFileParser("nowhere").read()


async def test_read_does_not_hold_up_an_event_loop():
    with pytest.raises(RuntimeError, match="would block the event loop"):
        RobotFileParser("https://me:secret@example.com/robots.txt").read()


def test_what_is_no_text_may_not_be_fetched():
    parser = RobotFileParser()
    parser.parse(["User-agent: *", "Disallow:"])

    assert not parser.can_fetch("x", None)
    assert not parser.can_fetch("x", b"/a")


@pytest.mark.slow("files at the limit of size")
def test_a_file_at_a_limit_can_be_printed_whatever_its_octets():
    parser = RobotFileParser()
    parser.parse([b"user-agent: *\ndisallow: /".decode() + "\udcfc" * 200_000])

    assert str(parser).encode()
    assert not parser.can_fetch("x", "https://example.com/" + "%FC" * 200_000)
