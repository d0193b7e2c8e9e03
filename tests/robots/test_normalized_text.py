"""to_text: a tidy file that decides as the one it was made from."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import BY_NAME, CLASSIC, RFC9309, Dialect
from polite.robots.parse import Robots, parse
from tests.standards.dialects import corpus, some_or_all
from tests.support import examples

NAMED = list(BY_NAME.values())
OWN = replace(RFC9309, name="own", any_field_ends_agents=True, blank_line_separates=True, max_line_bytes=40)


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


strays = st.lists(
    st.sampled_from([b"\xfc", b"\xc3", b"\xed\xb2\x80", b"\xc3\xbc", b"a", b"%fc", b"*", b"$", b" "]),
    max_size=30,
).map(b"".join)
long_rows = st.tuples(
    st.sampled_from(
        [b"user-agent", b"disallow", b"allow", b"dissalow", b"disallow-\xfc", b"x\xfc", b"content-usage"]
    ),
    st.sampled_from([b":", b": ", b" : ", b" "]),
    st.sampled_from([b"*", b"a", b"a\xfc", b"/", b"/a", b"/\xfc"]) | strays.map(b"/".__add__),
    st.sampled_from([b"\n", b"\r\n", b" #\xfc\n", b"\n\n"]),
).map(b"".join)


@examples(500, fast=50)
@given(
    st.lists(long_rows | st.binary(max_size=30), max_size=8).map(b"".join),
    st.sampled_from([*NAMED, OWN]),
    st.sampled_from([None, 12, 20, 25, 40]),
    st.integers(20, 200),
    st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"]),
)
def test_at_any_limit_the_text_of_any_octets_decides_as_they_do(
    rows: bytes, dialect: Dialect, max_line_bytes: int | None, max_bytes: int, encoding: str
):
    body = b"user-agent: *\n" + rows
    if encoding != "utf-8":
        body = ("\ufeff" + body.decode("latin-1")).encode(encoding)
    robots = parse(body, replace(dialect, max_line_bytes=max_line_bytes, max_bytes=max_bytes))

    rules, now = robots.rules_for("a"), again(robots).rules_for("a")

    asked = {"/", "/a", "/%FC", "/x"} | {
        path for each in (rules, now) for rule in each.rules for path in _matched_by(rule.pattern)
    }
    for path in asked:
        assert now.allows(path) is rules.allows(path)
    assert again(robots).to_text() == robots.to_text()


def _matched_by(pattern: str) -> Iterator[str]:
    """Paths that a rule may match, and ones that end before it does."""
    path = re.sub(r"\\x([0-9a-f]{2})", r"%\1", pattern).replace("$", "")
    for each in (path.replace("*", ""), path.replace("*", "q"), path[:-1], path[:-3], f"{path}q"):
        if each.startswith("/"):
            yield each


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
