"""RFC 9309, 2.2.2: how rules are compared with a URL, octet by octet."""

from dataclasses import replace

import pytest

from polite.robots.dialect import RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.reason import Reason

# The section's own table. Its second row also escapes the colon and the slashes of a query; read so, `/` would equal
# `%2F`, which the paragraph above the table forbids for reserved characters. Each spelling equals itself here; see LITERAL.
SAME = [
    ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
    ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
    ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3a%2f%2ffoo.bar"),
    ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84"),
    ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
    ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
    ("/~%2d%2E%5f%7E", "/%7E-._~"),
    ("/a b", "/a b"),
    ("/it's", "/it's"),
    ("/100%", "/100%"),
    ("/%zz%4", "/%zz%4"),
]
# What RFC 3986 excludes from URLs is not named there. A rule that holds it could match nothing, so that by default it equals its
# escape; the strict reading leaves the two apart.
EXCLUDED = [
    ("/a b", "/a%20b"),
    ('/"<>^`{|}\\', "/%22%3C%3E%5E%60%7B%7C%7D%5C"),
    ("/it's", "/it%27s"),
]
DIFFERENT = [
    ("/%2F", "//"),
    ("/a%3Fb", "/a?b"),
    ("/%25", "/%"),
    ("/a%26b", "/a&b"),
    ("/a%2Cb", "/a,b"),
    ("/%41", "/a"),
]


@pytest.mark.parametrize(("one", "other"), [*SAME, *((other, one) for one, other in SAME)])
def test_spellings_of_the_same_octets_match(one: str, other: str):
    robots = parse(f"user-agent: *\ndisallow: {one}")

    assert not robots.decide("ExampleBot", other)


@pytest.mark.parametrize(("one", "other"), [*EXCLUDED, *((other, one) for one, other in EXCLUDED)])
def test_excluded_characters_equal_their_escapes_unless_a_dialect_says_otherwise(one: str, other: str):
    body = f"user-agent: *\ndisallow: {one}"
    strict = replace(RFC9309, name="strict", excluded_equal_escapes=False)

    assert parse(body, strict).decide("ExampleBot", other)
    assert not parse(body).decide("ExampleBot", other)
    assert not parse(body).rules_for("ExampleBot").allows(other)


@pytest.mark.parametrize(("one", "other"), [*DIFFERENT, *((other, one) for one, other in DIFFERENT)])
def test_a_reserved_character_is_not_its_escape(one: str, other: str):
    robots = parse(f"user-agent: *\ndisallow: {one}$")

    assert robots.decide("ExampleBot", other)


LITERAL = [
    ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
    ("/a%5bb%5D%40%21%26%28%29%2b%2C%3b%3dc", "/a[b]@!&()+,;=c"),
    *((one, other) for one, other in DIFFERENT if one not in ("/%25", "/%41")),
]


@pytest.mark.parametrize(
    ("one", "other"), [*SAME, *LITERAL, *((other, one) for one, other in [*SAME, *LITERAL])]
)
@pytest.mark.parametrize("base", [RFC9309, replace(RFC9309, normalises_urls=False)])
def test_read_literally_the_table_makes_a_reserved_character_equal_its_escape(
    one: str, other: str, base: Dialect
):
    literal = replace(base, name="literal", reserved_equal_escapes=True)
    rules = parse(f"user-agent: *\ndisallow: {one}$", literal).rules_for("ExampleBot")

    if base is RFC9309 or (one, other) in LITERAL:
        assert not rules.decide(other)
        assert not rules.allows(other)
        assert not rules.allows_once(other)


@pytest.mark.parametrize(("one", "other"), [("/%25", "/%"), ("/%41", "/a"), ("/%253A", "/:"), ("/%23", "/")])
def test_read_literally_other_escapes_differ_as_before(one: str, other: str):
    literal = replace(RFC9309, name="literal", reserved_equal_escapes=True)

    assert parse(f"user-agent: *\ndisallow: {one}$", literal).decide("ExampleBot", other)


def test_an_escaped_slash_may_differ_nevertheless():
    kept = replace(RFC9309, name="kept", reserved_equal_escapes=True, escaped_slash_differs=True)
    rules = parse("user-agent: *\ndisallow: /a%2Fb\ndisallow: /c%3Ad", kept).rules_for("ExampleBot")

    assert rules.allows("/a/b")
    assert not rules.allows("/a%2fb")
    assert not rules.allows("/c:d")


def test_read_literally_both_spellings_of_a_rule_have_one_length():
    literal = replace(RFC9309, name="literal", reserved_equal_escapes=True)

    decision = parse("user-agent: *\ndisallow: /a%3Ab\nallow: /a:b", literal).decide("ExampleBot", "/a:b")

    assert decision.allowed


@pytest.mark.parametrize("body", ["user-agent: *\ndisallow: /a", "user-agent: *"])
def test_without_a_match_or_without_rules_the_uri_is_allowed(body: str):
    decision = parse(body).decide("ExampleBot", "/b")

    assert decision.allowed
    assert decision.reason is Reason.NO_RULE


@pytest.mark.parametrize(
    "url", ["/robots.txt", "/robots.txt#top", "/%72obots.txt", "https://example.com/robots.txt"]
)
def test_robots_txt_itself_is_allowed(url: str):
    robots = parse("user-agent: *\ndisallow: /")

    decision = robots.decide("ExampleBot", url)

    assert decision.allowed
    assert decision.reason is Reason.ROBOTS_PATH
    assert robots.rules_for("ExampleBot").allows("/robots.txt")


@pytest.mark.parametrize("path", ["/robots.txt?", "/robots.txt/", "/a/robots.txt", "/ROBOTS.TXT"])
def test_nothing_else_is_taken_for_robots_txt(path: str):
    assert not parse("user-agent: *\ndisallow: /").decide("ExampleBot", path)
