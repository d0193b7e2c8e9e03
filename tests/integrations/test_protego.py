"""The Protego interface, call by call beside the original: alike, or different for a reason that the docs give."""

import gzip
import json
import tarfile
from datetime import time
from pathlib import Path

import protego
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.integrations.protego import PROTEGO, Protego, VisitTime
from polite.robots.dialect import RFC9309

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
FILE = """\
Host: example.com
Sitemap: https://example.com/s.xml
User-agent: *
Disallow: /a
Allow: /a/b
Disallow: /*.gif$
Disallow: /ü
Disallow: /with space
Crawl-delay: 2.5
Request-rate: 1/10 0600-0845
Visit-time: 0600-0845

User-agent: FooBot
User-agent: barbot
Disallow: /
Request-rate: 30/1m
"""
AGENTS = [
    "*",
    "foobot",
    "FooBot/1.0 (+https://example.com)",
    "Mozilla/5.0 (compatible; BarBot/2)",
    "other",
    "afoobot",
]
URLS = [
    "https://example.com",
    "https://example.com/a",
    "https://example.com/a/b?c",
    "https://example.com/x.gif",
    "https://example.com/x.gif?",
    "https://example.com/%C3%BC",
    "https://example.com/ü",
    "https://example.com/with%20space",
    "https://example.com/robots.txt",
    "http://other.example:8080/a#b",
    "/a",
    "/b",
]


def both(body: str) -> tuple[protego.Protego, Protego]:
    return protego.Protego.parse(body), Protego.parse(body)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("url", URLS)
def test_can_fetch_is_alike(url: str, agent: str):
    original, ours = both(FILE)

    assert ours.can_fetch(url, agent) is original.can_fetch(url, agent)


@pytest.mark.parametrize("agent", AGENTS)
def test_crawl_delay_request_rate_and_visit_time_are_alike(agent: str):
    original, ours = both(FILE)

    assert ours.crawl_delay(agent) == original.crawl_delay(agent)
    assert ours.request_rate(agent) == original.request_rate(agent)
    assert ours.visit_time(agent) == original.visit_time(agent)


def test_sitemaps_and_host_are_alike():
    original, ours = both(FILE)

    assert list(ours.sitemaps) == list(original.sitemaps) == ["https://example.com/s.xml"]
    assert next(ours.sitemaps) == "https://example.com/s.xml"
    assert ours.preferred_host == original.preferred_host == "example.com"
    assert both("")[1].preferred_host is both("")[0].preferred_host is None


def test_the_interface_is_that_of_the_original():
    public = {name for name in dir(protego.Protego) if not name.startswith("_")}

    assert public == {name for name in dir(Protego) if not name.startswith("_")} - {"robots"}
    assert hasattr(protego.Protego(), "_total_line_seen")
    assert not hasattr(Protego(), "_total_line_seen")


def test_only_a_str_can_be_parsed_as_in_the_original():
    for parse in (Protego.parse, protego.Protego.parse):
        with pytest.raises(TypeError, match="expects str, got bytes"):
            parse(b"")


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("Disallow: /\nAllow /a", "/a"),
        ("Allow: /index.html\nDisallow: /", "/"),
        ("Crawl-delay: 1\nUser-agent: b\nDisallow: /a", "/a"),
    ],
)
def test_its_leniencies_are_kept_and_can_be_left_out(rule: str, url: str):
    body = f"User-agent: *\n{rule}\n"
    original, ours = both(body)

    assert ours.can_fetch(url, "x") is original.can_fetch(url, "x")
    assert Protego.parse(body, dialect=RFC9309).can_fetch(url, "x") is not ours.can_fetch(url, "x")
    assert ours.robots.dialect is PROTEGO


@pytest.mark.parametrize("rule", ["Dissallow: /a", "Disallow /a", "Disallow: /a b"])
def test_leniencies_that_can_forbid_are_those_of_the_default_too(rule: str):
    body, url = f"User-agent: *\n{rule}\n", "https://example.com/a%20b"
    original, ours = both(body)

    assert original.can_fetch(url, "x") is ours.can_fetch(url, "x") is False
    assert Protego.parse(body, dialect=RFC9309).can_fetch(url, "x") is False


@pytest.mark.parametrize(("agent", "bound"), [("foo-b", True), ("b-foo", False)])
def test_a_name_with_a_hyphen_is_bound_by_the_group_of_its_start(agent: str, bound: bool):
    body = "User-agent: *\nDisallow: /\n\nUser-agent: foo\nAllow: /\n"
    original, ours = both(body)

    assert original.can_fetch("/x", agent) is ours.can_fetch("/x", agent) is bound
    assert Protego.parse(body, dialect=RFC9309).can_fetch("/x", agent) is False


# What differs, as docs/how-to/replace-protego.md has it: body, URL, agent, the original's answer, ours.
DIFFERENT = {
    "no URL is denied": ("", "nowhere", "x", True, False),
    "an empty URL is denied": ("", "", "x", True, False),
    "two slashes begin a path": ("User-agent: *\nDisallow: //x\n", "//x", "x", True, False),
    "a name must be the whole": ("User-agent: foo\nDisallow: /\n", "/", "foobar", False, True),
    "a name ends before other text": ("User-agent: foo bar\nDisallow: /\n", "/", "foo", True, False),
    "a name is one of ASCII": (
        "User-agent: Jävla-Foobot\nDisallow: /\n",
        "/",
        "jävla-fanbot",
        True,
        False,
    ),
    "a rule is a path": ("User-agent: *\nDisallow: http://x/\n", "/http://x/", "x", False, True),
    "a star is no part of a name": ("User-agent: *foo*\nDisallow: /\n", "/", "foo", False, True),
    "a later product is nobody": ("User-agent: bar\nDisallow: /\n", "/", "foo/1 bar/1", False, True),
    "U+0085 ends no line": ("User-agent: *\n#\x85Disallow: /a\n", "/a", "x", False, True),
}


@pytest.mark.parametrize(("body", "url", "agent", "before", "now"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_differs_as_documented(body: str, url: str, agent: str, before: bool, now: bool):
    original, ours = both(body)

    assert original.can_fetch(url, agent) is before
    assert ours.can_fetch(url, agent) is now


@pytest.mark.parametrize(
    ("rule", "url"), [("/c%3Dd", "/c=d"), ("/c=d", "/c%3dd"), ("/a:b", "/a%3Ab"), ("/a?b&c", "/a%3Fb%26c")]
)
def test_a_reserved_character_equals_its_escape_as_in_the_original(rule: str, url: str):
    body = f"User-agent: *\nDisallow: {rule}\n"
    original, ours = both(body)

    assert original.can_fetch(url, "x") is ours.can_fetch(url, "x") is False
    assert Protego.parse(body, dialect=RFC9309).can_fetch(url, "x") is True


@pytest.mark.parametrize(("rule", "url"), [("/a%2Fb", "/a/b"), ("/a/b", "/a%2Fb"), ("/a?b/c", "/a?b%2Fc")])
def test_a_slash_differs_from_its_escape_as_in_the_original(rule: str, url: str):
    original, ours = both(f"User-agent: *\nDisallow: {rule}\n")

    assert original.can_fetch(url, "x") is ours.can_fetch(url, "x") is True


@pytest.mark.parametrize(
    "rule", ["Disallow: /a$", "Disallow: /*b$\nDisallow: /a$", "Disallow: /\nAllow: /a$"]
)
@pytest.mark.parametrize("url", ["/a", "/a$", "/a%24", "/a$b", "/ab", "/xb$x", "/a/"])
def test_a_last_dollar_also_means_itself_as_in_the_original(rule: str, url: str):
    body = f"User-agent: *\n{rule}\n"
    original, ours = both(body)

    assert ours.can_fetch(url, "x") is original.can_fetch(url, "x")
    assert ours.robots.decide("x", url).allowed is ours.can_fetch(url, "x")
    if url in ("/a$", "/a%24"):
        assert Protego.parse(body, dialect=RFC9309).can_fetch(url, "x") is not ours.can_fetch(url, "x")


def test_an_ipv6_url_that_is_none_raises_in_the_original_only():
    original, ours = both("User-agent: *\nDisallow: /\n")

    with pytest.raises(ValueError, match="IPv6"):
        original.can_fetch("http://[::1", "x")
    assert ours.can_fetch("http://[::1", "x") is False


def test_of_several_values_the_slowest_counts_and_not_the_last():
    original, ours = both(
        "User-agent: *\nCrawl-delay: 5\nCrawl-delay: 2\nRequest-rate: 1/9\nRequest-rate: 1/3\nHost: a\nHost: b\n"
    )

    assert (original.crawl_delay("x"), ours.crawl_delay("x")) == (2.0, 5.0)
    assert (original.request_rate("x").seconds, ours.request_rate("x").seconds) == (3, 9)
    assert (original.preferred_host, ours.preferred_host) == ("b", "a")


@pytest.mark.parametrize("time", ["0200-0630", "0200 0630", "200-630", "200 630"])
def test_a_visit_time_may_have_a_space_or_three_digits_as_in_the_original(time: str):
    original, ours = both(f"User-agent: *\nVisit-time: {time}\nRequest-rate: 1/5 {time.replace(' ', '-')}\n")

    assert ours.visit_time("x") == original.visit_time("x") is not None
    assert ours.request_rate("x") == original.request_rate("x") is not None


COLONLESS = """\
Sitemap https://example.com/s.xml
sitemaps: https://example.com/t.xml
user agent harry potter
disallow /horcrux
crawl delay 3
request rate 1/10s 1820-1940
visit-time 0200 0630
User-agent must match exactly: see the docs
user agent
Disallow: /nobody
"""


def test_a_line_without_a_colon_may_have_many_words_as_in_the_original():
    original, ours = both(COLONLESS)

    assert list(ours.sitemaps) == list(original.sitemaps)
    assert len(list(ours.sitemaps)) == 2
    assert ours.crawl_delay("harry potter") == original.crawl_delay("harry potter") == 3
    assert ours.request_rate("harry potter") == original.request_rate("harry potter") is not None
    assert ours.visit_time("harry potter") == original.visit_time("harry potter") is not None
    for url in ("/horcrux", "/nobody", "/x"):
        for agent in ("harry potter", "*", "x"):
            assert ours.can_fetch(url, agent) is original.can_fetch(url, agent)
    assert Protego.parse(COLONLESS, dialect=RFC9309).can_fetch("/horcrux", "harry potter")


def test_a_window_may_end_at_midnight():
    assert Protego.parse("User-agent: *\nVisit-time: 2200-2400\n").visit_time("x") == VisitTime(
        time(22), time(0)
    )


@given(st.text(max_size=80), st.text(max_size=20), st.text(max_size=20))
def test_nothing_that_is_asked_raises(body: str, url: str, agent: str):
    ours = Protego.parse(body)

    assert ours.can_fetch(url, agent) in (True, False)
    assert ours.crawl_delay(agent) is None or ours.crawl_delay(agent) >= 0
    ours.request_rate(agent)
    ours.visit_time(agent)


@pytest.mark.slow("every file of the corpus")
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real files is not beside the project")
def test_on_real_files_it_answers_alike_or_as_google_does():
    with tarfile.open(CORPUS / "bodies.tar.xz") as archive:
        files = [(each.name.removesuffix(".txt"), archive.extractfile(each)) for each in archive]
        bodies = {name: file.read().decode("utf-8", "replace") for name, file in files if file is not None}
    with gzip.open(CORPUS / "google_verdicts.jsonl.gz", "rt") as rows:
        answered = [json.loads(row) for row in rows]

    different = [
        ours is bool(google)
        for name, asked in answered
        for original, mine in [both(bodies[name])]
        for agent, path, google, _ in asked
        if (ours := mine.can_fetch(f"https://example.com{path}", agent))
        is not original.can_fetch(f"https://example.com{path}", agent)
    ]

    assert len(different) < 0.025 * sum(len(asked) for _, asked in answered)
    assert sum(different) > 0.98 * len(different)
