"""Rows X of the requirements: what a site owner gets wrong, found with its line in each dialect where it is wrong."""

import pytest

from polite.robots.dialect import CLASSIC, Dialect
from polite.robots.lint.lint import lint
from tests.standards.dialects import every_dialect, newer_dialects


def found(body: str | bytes, dialect: Dialect, code: str) -> list[int]:
    return [finding.line for finding in lint(body, dialect=dialect) if finding.code == code]


@every_dialect
def test_x1_an_inverted_record(dialect: Dialect) -> None:
    assert found("User-agent: /\nDisallow: StackRambler\n", dialect, "X1") == [1]
    assert found("User-agent: StackRambler\nDisallow: /\n", dialect, "X1") == []


@every_dialect
def test_x2_several_paths_in_one_line(dialect: Dialect) -> None:
    assert found("User-agent: *\nDisallow: /css/ /cgi-bin/ /images/\n", dialect, "X2") == [2]
    assert found("User-agent: *\nDisallow: /css/\nDisallow: /cgi-bin/\n", dialect, "X2") == []


@every_dialect
def test_x3_a_group_without_a_disallow(dialect: Dialect) -> None:
    body = "User-agent: a\nUser-agent: b\nCrawl-delay: 1\n\nUser-agent: c\nDisallow:\n\nUser-agent: d\n"

    lines = found(body, dialect, "X3")

    assert 8 in lines
    assert 5 not in lines


@every_dialect
def test_x3_a_group_of_allow_lines_only(dialect: Dialect) -> None:
    assert found("User-agent: a\nAllow: /x\n\nUser-agent: b\nDisallow: /\n", dialect, "X3") == [1]


@newer_dialects
def test_x4_a_wildcard_where_the_dialect_has_none(dialect: Dialect) -> None:
    body = (
        "User-agent: *\nDisallow: *\nDisallow: *.doc\nDisallow: /dir/*.doc\nDisallow: /x$\nDisallow: /dir\n"
    )

    assert found(body, CLASSIC, "X4") == [2, 3, 4, 5]
    assert found(body, dialect, "X4") == []


@newer_dialects
def test_x5_an_allow_where_the_dialect_has_none(dialect: Dialect) -> None:
    body = "User-agent: *\nAllow: /a\nDisallow: /\n"

    assert found(body, CLASSIC, "X5") == [2]
    assert found(body, dialect, "X5") == []


@every_dialect
def test_x6_a_rule_before_any_user_agent(dialect: Dialect) -> None:
    assert found("# nobody\nDisallow: /a\nUser-agent: *\nDisallow: /b\n", dialect, "X6") == [2]


@every_dialect
@pytest.mark.parametrize(
    ("written", "lines"),
    [
        *(
            (name, [3])
            for name in ("useragent", "User-agents", "Usre-agent", "dissallow", "site-map", "Crawldelay")
        ),
        *((name, []) for name in ("USER-AGENT", "disallow", "Sitemap", "crawl-Delay")),
    ],
)
def test_x7_a_mistyped_field_in_whatever_case(dialect: Dialect, written: str, lines: list[int]) -> None:
    assert found(f"User-agent: *\nDisallow: /b\n{written}: 1\n", dialect, "X7") == lines


@every_dialect
def test_x8_content_beyond_500_kib(dialect: Dialect) -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    whole = head + b"#" * (512_000 - len(head) - 1) + b"\n"

    assert found(whole, dialect, "X8") == []
    assert found(whole + b"Disallow: /b\n", dialect, "X8") == [4]
