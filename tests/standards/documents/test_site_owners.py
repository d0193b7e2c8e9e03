"""Rows X of the requirements: what a site owner gets wrong, found with its line in each dialect where it is wrong."""

import pytest

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.lint.lint import lint

ALL = [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]
in_all = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
with_wildcards = pytest.mark.parametrize("dialect", ALL[1:], ids=lambda dialect: dialect.name)


def found(body: str | bytes, dialect: Dialect, code: str) -> list[int]:
    return [finding.line for finding in lint(body, dialect=dialect) if finding.code == code]


@in_all
def test_x1_an_inverted_record(dialect: Dialect) -> None:
    assert found("User-agent: /\nDisallow: StackRambler\n", dialect, "X1") == [1]
    assert found("User-agent: StackRambler\nDisallow: /\n", dialect, "X1") == []


@in_all
def test_x2_several_paths_in_one_line(dialect: Dialect) -> None:
    assert found("User-agent: *\nDisallow: /css/ /cgi-bin/ /images/\n", dialect, "X2") == [2]
    assert (
        found("User-agent: *\nDisallow: /css/\nDisallow: /cgi-bin/\nDisallow: /images/\n", dialect, "X2")
        == []
    )


@in_all
def test_x3_a_group_without_a_disallow(dialect: Dialect) -> None:
    body = "User-agent: a\nUser-agent: b\nCrawl-delay: 1\n\nUser-agent: c\nDisallow:\n\nUser-agent: d\n"

    lines = found(body, dialect, "X3")

    assert 8 in lines
    assert 5 not in lines


@in_all
def test_x3_a_group_of_allow_lines_only(dialect: Dialect) -> None:
    assert found("User-agent: a\nAllow: /x\n\nUser-agent: b\nDisallow: /\n", dialect, "X3") == [1]


def test_x4_a_wildcard_where_the_dialect_has_none() -> None:
    body = (
        "User-agent: *\nDisallow: *\nDisallow: *.doc\nDisallow: /dir/*.doc\nDisallow: /x$\nDisallow: /dir\n"
    )

    assert found(body, CLASSIC, "X4") == [2, 3, 4, 5]


@with_wildcards
def test_x4_is_no_mistake_where_there_are_wildcards(dialect: Dialect) -> None:
    assert found("User-agent: *\nDisallow: /dir/*.doc$\n", dialect, "X4") == []


def test_x5_an_allow_where_the_dialect_has_none() -> None:
    assert found("User-agent: *\nAllow: /a\nDisallow: /\n", CLASSIC, "X5") == [2]


@with_wildcards
def test_x5_is_no_mistake_where_there_is_allow(dialect: Dialect) -> None:
    assert found("User-agent: *\nAllow: /a\nDisallow: /\n", dialect, "X5") == []


@in_all
def test_x6_a_rule_before_any_user_agent(dialect: Dialect) -> None:
    assert found("# nobody\nDisallow: /a\nUser-agent: *\nDisallow: /b\n", dialect, "X6") == [2]


@in_all
@pytest.mark.parametrize(
    "written",
    ["useragent", "User-agents", "Usre-agent", "dissallow", "site-map", "Crawldelay"],
)
def test_x7_a_mistyped_field(dialect: Dialect, written: str) -> None:
    assert found(f"User-agent: *\nDisallow: /b\n{written}: 1\n", dialect, "X7") == [3]


@in_all
@pytest.mark.parametrize("written", ["USER-AGENT", "disallow", "Sitemap", "crawl-Delay"])
def test_x7_is_not_about_case(dialect: Dialect, written: str) -> None:
    assert found(f"User-agent: *\nDisallow: /b\n{written}: 1\n", dialect, "X7") == []


@in_all
def test_x8_content_beyond_500_kib(dialect: Dialect) -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    whole = head + b"#" * (512_000 - len(head) - 1) + b"\n"

    assert found(whole, dialect, "X8") == []
    assert found(whole + b"Disallow: /b\n", dialect, "X8") == [4]
