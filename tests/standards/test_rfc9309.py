"""RFC 9309, section 2.2, by its own examples and tables."""

from dataclasses import replace

import pytest

from polite.robots.dialect import RFC9309, Dialect
from polite.robots.parse import parse
from polite.robots.reason import Reason

LITERAL = replace(RFC9309, name="literal", reserved_equal_escapes=True)


def allowed(body: str, path: str, dialect: Dialect = RFC9309, agent: str = "ExampleBot") -> bool:
    """The verdict, in each of the ways to ask for it."""
    rules = parse(body, dialect).rules_for(agent)
    verdict = rules.decide(path).allowed
    assert rules.allows(path) is rules.allows_once(path) is verdict
    return verdict


def forbids(rule: str, path: str, dialect: Dialect = RFC9309) -> bool:
    return not allowed(f"user-agent: *\ndisallow: {rule}", path, dialect)


# 2.2.2: the allow and disallow lines

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
EXCLUDED = [("/a b", "/a%20b"), ('/"<>^`{|}\\', "/%22%3C%3E%5E%60%7B%7C%7D%5C"), ("/it's", "/it%27s")]
RESERVED = [("/%2F", "//"), ("/a%3Fb", "/a?b"), ("/a%26b", "/a&b"), ("/a%2Cb", "/a,b")]
DIFFERENT = [("/%25", "/%"), ("/%41", "/a"), ("/%253A", "/:")]
QUERIES = [
    ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
    ("/a%5bb%5D%40%21%26%28%29%2b%2C%3b%3dc", "/a[b]@!&()+,;=c"),
]


def both_ways(*rows: tuple[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("one", "other"), [*rows, *((other, one) for one, other in rows)])


@both_ways(*SAME)
def test_spellings_of_the_same_octets_match(one: str, other: str):
    assert forbids(f"{one}$", other)
    assert forbids(f"{one}$", other, LITERAL)


@both_ways(*EXCLUDED)
def test_excluded_characters_equal_their_escapes_unless_a_dialect_says_otherwise(one: str, other: str):
    assert forbids(one, other)
    assert not forbids(one, other, replace(RFC9309, name="strict", excluded_equal_escapes=False))


@both_ways(*RESERVED, *QUERIES)
def test_a_reserved_character_is_not_its_escape_unless_the_table_is_read_literally(one: str, other: str):
    assert not forbids(f"{one}$", other)
    assert forbids(f"{one}$", other, LITERAL)
    assert forbids(f"{one}$", other, replace(LITERAL, normalises_urls=False))


@both_ways(*DIFFERENT)
def test_other_escapes_differ_in_any_reading(one: str, other: str):
    assert not forbids(f"{one}$", other)
    assert not forbids(f"{one}$", other, LITERAL)


def test_read_literally_an_escaped_slash_may_differ_nevertheless_and_spellings_have_one_length():
    kept = replace(LITERAL, name="kept", escaped_slash_differs=True)

    assert not forbids("/a%2Fb", "/a/b", kept)
    assert forbids("/a%2Fb", "/a%2fb", kept)
    assert forbids("/c%3Ad", "/c:d", kept)
    assert not forbids("/%23$", "/", LITERAL)
    assert allowed("user-agent: *\ndisallow: /a%3Ab\nallow: /a:b", "/a:b", LITERAL)


@pytest.mark.parametrize(
    ("url", "exempt"),
    [
        *(
            (url, True)
            for url in ("/robots.txt", "/robots.txt#top", "/%72obots.txt", "https://a.test/robots.txt")
        ),
        *((url, False) for url in ("/robots.txt?", "/robots.txt/", "/a/robots.txt", "/ROBOTS.TXT")),
    ],
)
def test_robots_txt_itself_is_allowed_and_nothing_else(url: str, exempt: bool):
    robots = parse("user-agent: *\ndisallow: /")

    assert robots.decide("ExampleBot", url).allowed is exempt
    assert (robots.decide("ExampleBot", url).reason is Reason.ROBOTS_PATH) is exempt
    assert robots.rules_for("ExampleBot").allows("/robots.txt")


# 2.2.3: special characters


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2a.html", "/path/file-with-a-%2A.html", True),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24$", "/path/foo-%24", True),
        ("/path/*-%2A$", "/path/x-*", True),
        ("/a$b", "/a%24b", True),
        ("/%2A.html", "/x.html", False),
        ("/foo%24", "/foo", False),
        ("/%2A", "/", False),
    ],
)
def test_special_characters_are_meant_as_themselves_when_escaped(rule: str, path: str, matches: bool):
    assert forbids(rule, path) is matches
