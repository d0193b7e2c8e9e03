"""to_text: a tidy file that decides as the one it was made from."""

import pytest

from polite.robots.dialect import BY_NAME, CLASSIC, RFC9309, Dialect
from polite.robots.parse import Robots, parse
from tests.standards.dialects import corpus, some_or_all

NAMED = list(BY_NAME.values())


def again(robots: Robots) -> Robots:
    return parse(robots.to_text(), robots.dialect)


def ruled(robots: Robots) -> list[object]:
    """All that a file says, but for its lines and for fields that its dialect does not know."""
    groups = [
        (group.agents, [(rule.allows, rule.pattern) for rule in group.rules], group.paces)
        for group in robots.groups
    ]
    return [groups, robots.sitemaps, robots.host]


UNTIDY = b"""\xef\xbb\xbf# ours\r\n<p>\r
USER-AGENT:*\rdisallow :/a # not b
Crawl-delay:  2
user-agent: b

allow:
X-Odd: 1
Sitemap: https://example.com/s
Host: example.com"""
TIDY = """\
User-agent: *
Disallow: /a
Crawl-delay: 2

User-agent: b
Allow:
X-Odd: 1
Sitemap: https://example.com/s
Host: example.com
"""


@pytest.mark.parametrize(
    ("body", "dialect", "text"),
    [
        (UNTIDY, RFC9309, TIDY),
        (b"User-agent:\xff\nUser-agent:*\nDisallow:/\xff\xc3\xbc", RFC9309, "User-agent: \\xff\nUser-agent: *\nDisallow: /%FFü\n"),
        # Here a blank line alone parts groups.
        (b"user-agent: a\n\n\nuser-agent: b\ndisallow: /", CLASSIC, "User-agent: a\n\nUser-agent: b\nDisallow: /\n"),
    ],
    ids=["tidied", "octets", "blank line"],
)  # fmt: skip
def test_what_counts_is_kept_and_tidied(body: bytes, dialect: Dialect, text: str):
    robots = parse(body, dialect)

    assert robots.to_text() == text
    for agent, path in (("a", "/x"), ("b", "/x"), ("x", "/%FF%C3%BC")):
        assert again(robots).decide(agent, path).allowed is robots.decide(agent, path).allowed


@some_or_all
@pytest.mark.parametrize("dialect", NAMED, ids=lambda dialect: dialect.name)
def test_the_text_of_a_real_file_says_what_the_file_says(dialect: Dialect, files: int):
    def plain(robots: Robots) -> str:
        # Stray octets of rules are shown as `\\xNN` before, and are `%NN` after.
        return repr(ruled(robots)).replace("\\\\x", "%").lower()

    for body in corpus(files).values():
        robots = parse(body, dialect)
        if b"\xff" not in body:
            assert plain(again(robots)) == plain(robots)
