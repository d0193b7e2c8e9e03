"""The interfaces of Protego and urllib.robotparser, beside the originals: alike, or different as the docs say."""

import asyncio
import gzip
import json
import time
import urllib.robotparser

import protego
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidURL
from polite.integrations.protego import PROTEGO, Protego
from polite.integrations.robotparser import ROBOTPARSER, RobotFileParser
from polite.robots.dialect import RFC9309
from polite.robots.policy import FetchPolicy
from polite.testing import scripted_server
from tests.faults.stage import ok
from tests.standards.dialects import CORPUS, corpus, real_files

FILE = """\
Host: example.com
Sitemap: https://example.com/s.xml
User-agent: *
Disallow: /a
Disallow: /ü
Disallow: /with space
Crawl-delay: 3
Request-rate: 1/10

User-agent: FooBot
User-agent: barbot
Disallow: /
Request-rate: 30/60
"""
AGENTS = ["*", "foobot", "FooBot/1.0 (+https://example.com)", "BARBOT", "other", "Other/1.0"]
URLS = [
    "https://example.com",
    "https://example.com/a",
    "https://example.com/a?b=c",
    "https://example.com/%61",
    "https://example.com/b/c#d",
    "https://example.com/%C3%BC",
    "https://example.com/with%20space",
    "http://other.example:8080/A",
    "/a",
    "/b",
]


def protegos(body):
    return protego.Protego.parse(body), Protego.parse(body)


def robotparsers(body: str) -> tuple[urllib.robotparser.RobotFileParser, RobotFileParser]:
    original, ours = urllib.robotparser.RobotFileParser(), RobotFileParser()
    original.parse(body.splitlines())
    ours.parse(body.splitlines())
    return original, ours


def strict(both, body):
    """Return ours in the strict dialect."""
    if both is protegos:
        return Protego.parse(body, dialect=RFC9309)
    ours = RobotFileParser(dialect=RFC9309)
    ours.parse(body)
    return ours


def fetches(parser, url, agent="x"):
    arguments = (url, agent) if isinstance(parser, Protego | protego.Protego) else (agent, url)
    return parser.can_fetch(*arguments)


BOTH = pytest.mark.parametrize("both", [protegos, robotparsers], ids=["protego", "robotparser"])


@BOTH
@pytest.mark.parametrize("agent", AGENTS)
def test_answers_are_alike(both, agent):
    original, ours = both(FILE)
    assert [fetches(ours, url, agent) for url in URLS] == [fetches(original, url, agent) for url in URLS]
    assert ours.crawl_delay(agent) == original.crawl_delay(agent)
    assert tuple(ours.request_rate(agent)) == tuple(original.request_rate(agent))


@BOTH
def test_the_interface_is_that_of_the_original(both):
    original, ours = both("")
    assert {name for name in dir(type(original)) if not name.startswith("_")} <= set(dir(ours))
    # Not its private attributes.
    assert not hasattr(ours, "_total_line_seen")


def test_sitemaps_and_host_are_alike() -> None:
    for body in (FILE, ""):
        original, ours = protegos(body)
        assert list(ours.sitemaps) == list(original.sitemaps)
        assert ours.preferred_host == original.preferred_host
        parser, our_parser = robotparsers(body)
        assert our_parser.site_maps() == parser.site_maps()


# A rule, a URL, and whether the strict dialect says the same.
ALL_AGENTS = "User-agent: *\n"
LENIENT = {
    "a line without a colon": (protegos, "Disallow: /\nAllow /a", "/a", False),
    "index.html is its folder": (protegos, "Allow: /index.html\nDisallow: /", "/", False),
    "a field between agents": (protegos, "Crawl-delay: 1\nUser-agent: b\nDisallow: /a", "/a", False),
    "a misspelling": (protegos, "Dissallow: /a", "/a", True),
    "words without a colon": (protegos, "Disallow /a", "/a", True),
    "a space": (protegos, "Disallow: /a b", "/a%20b", True),
    "a slash is no escape, 1": (protegos, "Disallow: /a%2Fb", "/a/b", True),
    "a slash is no escape, 2": (protegos, "Disallow: /a?b/c", "/a?b%2Fc", True),
    "an escaped =": (protegos, "Disallow: /c%3Dd", "/c=d", False),
    "an escaped :": (protegos, "Disallow: /a:b", "/a%3Ab", False),
    "an escaped query": (protegos, "Disallow: /a?b&c", "/a%3Fb%26c", False),
    "urllib: an escaped slash": (robotparsers, "Disallow: /a%2Fb", "/a/b", False),
    "urllib: a slash": (robotparsers, "Disallow: /a/b", "/a%2fb", False),
    "urllib: an escaped query": (robotparsers, "Disallow: /a?b=c", "/a%3Fb%3Dc", False),
}
# CPython's later releases of 3.13 and 3.14 read files as RFC 9309 has it, so that less differs.
RFC9309_IN_URLLIB = hasattr(urllib.robotparser, "normalize_uri")
if RFC9309_IN_URLLIB:
    del LENIENT["urllib: an escaped query"]


@pytest.mark.parametrize(("both", "rule", "url", "same"), LENIENT.values(), ids=LENIENT)
def test_leniencies_are_kept_and_can_be_left_out(both, rule, url, same):
    body = f"{ALL_AGENTS}{rule}\n"
    original, ours = both(body)
    assert fetches(ours, url) is fetches(original, url)
    assert (fetches(strict(both, body), url) is fetches(ours, url)) is same
    assert ours.robots.dialect is (PROTEGO if both is protegos else ROBOTPARSER)


@pytest.mark.parametrize(
    "rule", ["Disallow: /a$", "Disallow: /*b$\nDisallow: /a$", "Disallow: /\nAllow: /a$"]
)
def test_a_last_dollar_also_means_itself_as_in_protego(rule: str) -> None:
    body = f"{ALL_AGENTS}{rule}\n"
    original, ours = protegos(body)
    for url in ("/a", "/a$", "/a%24", "/a$b", "/ab", "/xb$x", "/a/"):
        assert ours.can_fetch(url, "x") is original.can_fetch(url, "x"), url
        assert ours.robots.decide("x", url).allowed is ours.can_fetch(url, "x"), url
    assert strict(protegos, body).can_fetch("/a$", "x") is not ours.can_fetch("/a$", "x")


# What differs, as docs/how-to/replace-protego.md has it: body, URL, agent, the original's answer. Ours is the other.
ANY, TWO = "User-agent: *\n", "User-agent: a\nDisallow: /\n\nUser-agent: a-b\nDisallow: /x\n"
GROUPS = "User-agent: x\nDisallow: /a\n\nUser-agent: x\nDisallow: /b\n"
DIFFERENT = {
    "no URL is denied": ("", "nowhere", "x", True),
    "an empty URL is denied": ("", "", "x", True),
    "two slashes begin a path": ("User-agent: *\nDisallow: //x\n", "//x", "x", True),
    "a name must be the whole": ("User-agent: foo\nDisallow: /\n", "/", "foobar", False),
    "a name ends before other text": ("User-agent: foo bar\nDisallow: /\n", "/", "foo", True),
    "a name is one of ASCII": ("User-agent: Jävla-Foobot\nDisallow: /\n", "/", "jävla-fanbot", True),
    "a rule is a path": ("User-agent: *\nDisallow: http://x/\n", "/http://x/", "x", False),
    "a star is no part of a name": ("User-agent: *foo*\nDisallow: /\n", "/", "foo", False),
    "a later product is nobody": ("User-agent: bar\nDisallow: /\n", "/", "foo/1 bar/1", False),
    "U+0085 ends no line": ("User-agent: *\n#\x85Disallow: /a\n", "/a", "x", False),
}

FROM_URLLIB = {
    "the longest rule wins, not the first": (f"{ANY}Allow: /\nDisallow: /a\n", "/a", "x", True),
    "wildcards": (f"{ANY}Disallow: /*.gif$\n", "/a.gif", "x", True),
    "a blank line ends no group": ("User-agent: x\n\nDisallow: /a\n", "/a", "x", True),
    "groups hold together": (GROUPS, "/b", "x", True),
    "a name must be the whole": ("User-agent: bot\nDisallow: /\n", "/", "mybot", False),
    "the most specific name, not the first": (TWO, "/y", "a-b", False),
    "robots.txt may always be fetched": (f"{ANY}Disallow: /\n", "/robots.txt", "x", False),
    "no URL is denied": ("", "nowhere", "x", True),
}
if RFC9309_IN_URLLIB:
    FROM_URLLIB = {name: FROM_URLLIB[name] for name in ("a name must be the whole", "no URL is denied")}


@pytest.mark.parametrize(
    ("both", "row"),
    [
        *((protegos, row) for row in DIFFERENT.values()),
        *((robotparsers, row) for row in FROM_URLLIB.values()),
    ],
    ids=[*DIFFERENT, *(f"urllib: {name}" for name in FROM_URLLIB)],
)
def test_what_differs_differs_as_documented(both, row):
    body, url, agent, before = row
    assert [fetches(each, url, agent) for each in both(body)] == [before, not before]


def test_what_is_no_url_is_denied_where_protego_raises() -> None:
    original, ours = protegos("User-agent: *\nDisallow: /\n")
    with pytest.raises(ValueError, match="IPv6"):
        original.can_fetch("http://[::1", "x")
    for parser in (ours, robotparsers("User-agent: *\nDisallow:")[1]):
        assert [fetches(parser, url) for url in ("http://[::1", None, b"/a")] == [False] * 3


def test_of_several_values_the_slowest_counts_and_not_the_last() -> None:
    body = "User-agent: *\nCrawl-delay: 5\nCrawl-delay: 2.5\nRequest-rate: 1/9\nRequest-rate: 1/3\nHost: a\nHost: b"
    original, ours = protegos(body)

    assert (original.crawl_delay("x"), ours.crawl_delay("x")) == (2.5, 5.0)
    assert (original.request_rate("x").seconds, ours.request_rate("x").seconds) == (3, 9)
    assert (original.preferred_host, ours.preferred_host) == ("b", "a")
    assert [each.crawl_delay("x") for each in robotparsers(body)] == [5, 5.0]
    # urllib knows no fractions.
    assert [each.crawl_delay("x") for each in robotparsers("User-agent: *\nCrawl-delay: 2.5")] == [None, 2.5]


@given(st.text(max_size=80), st.text(max_size=20), st.text(max_size=20))
def test_nothing_that_is_asked_raises(body: str, url: str, agent: str) -> None:
    ours = RobotFileParser(url)
    ours.parse(body.splitlines())
    assert isinstance(str(ours), str)
    for parser in (ours, Protego.parse(body)):
        assert fetches(parser, url, agent) in (True, False)
        assert (parser.crawl_delay(agent) or 0) >= 0
        parser.request_rate(agent)
    Protego.parse(body).visit_time(agent)


@pytest.mark.slow("every file of the corpus")
@real_files
def test_on_real_files_it_answers_as_protego_or_as_google_does() -> None:
    with gzip.open(CORPUS / "google_verdicts.jsonl.gz", "rt") as rows:
        answered = [json.loads(row) for row in rows]

    different = [
        ours is bool(google)
        for name, asked in answered
        for original, mine in [protegos(corpus()[name].decode("utf-8", "replace"))]
        for agent, path, google, _ in asked
        if (ours := mine.can_fetch(f"https://example.com{path}", agent))
        is not original.can_fetch(f"https://example.com{path}", agent)
    ]

    assert len(different) < 0.025 * sum(len(asked) for _, asked in answered)
    assert sum(different) > 0.98 * len(different)


def test_reading_sets_the_time_and_flags_count_as_in_urllib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1234.5)
    assert not RobotFileParser().can_fetch("x", "/")
    for parser in robotparsers(FILE):
        assert parser.mtime() == 1234.5
        parser.allow_all = True
        assert parser.can_fetch("foobot", "/x")
        parser.disallow_all = True
        assert not parser.can_fetch("foobot", "/open")
    monkeypatch.setattr(time, "time", lambda: 1300.0)
    parser.modified()
    assert parser.mtime() == 1300.0


def test_its_text_reads_as_the_same_file() -> None:
    _, ours = robotparsers(FILE)
    assert "\n\nUser-agent: *\nDisallow: /a\n" in str(ours)
    assert not str(ours).endswith("\n")
    assert str(robotparsers(str(ours))[1]) == str(ours)


@pytest.mark.parametrize(
    ("status", "fetched"),
    [(200, [False, True]), (404, [True] * 2), (401, [True] * 2), (500, [False] * 2), (503, [False] * 2)],
)
async def test_read_fetches_the_origins_file_as_rfc_9309_has_it(status: int, fetched: list[bool]) -> None:
    parser = RobotFileParser(agent="TestBot/1.0", fetching=FetchPolicy(allow_private=True))
    async with scripted_server(ok(FILE.encode(), status=b"%d X" % status)) as server:
        parser.set_url(server.url("/folder/robots.txt"))
        await asyncio.to_thread(parser.read)

    assert [parser.can_fetch("x", url) for url in ("/a", "/c")] == fetched
    assert (parser.allow_all, parser.disallow_all) == (all(fetched), not any(fetched))
    assert parser.mtime() > 0
    (request,) = server.requests
    assert request.startswith(b"GET /robots.txt ")
    assert b"\r\nUser-Agent: TestBot/1.0\r\n" in request


async def test_read_raises_what_is_no_url_and_does_not_hold_up_an_event_loop() -> None:
    with pytest.raises(InvalidURL):
        RobotFileParser("nowhere").read()
    with pytest.raises(RuntimeError, match="would block the event loop"):
        RobotFileParser("https://me:secret@example.com/robots.txt").read()
