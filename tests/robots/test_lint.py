"""What the lint says, mistake by mistake; the rows X1 to X8 are in tests/documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.lint import Finding, lint

DIALECTS = [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]
FLAWLESS = "# ours\nUser-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\nDisallow:\n\nSitemap: https://example.com/s.xml\n"


def codes(findings: list[Finding]) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in findings]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_flawless_file_has_no_findings(dialect: Dialect) -> None:
    assert lint(FLAWLESS, dialect=dialect) == []


def test_findings_come_in_the_order_of_the_lines() -> None:
    body = "Disallow: /a\nUser-agent: x\nDisalow: /b\nUser-agent: y\nDisallow: /c /d\n"

    assert [finding.line for finding in lint(body)] == [1, 3, 5]


def test_each_finding_has_a_message_and_a_hint() -> None:
    for finding in lint("Disallow: /a /b\nUser-agent: /\nCrawl-delay: soon\nUseragent: x"):
        assert len(finding.message) > 10
        assert len(finding.hint) > 10


@pytest.mark.parametrize("value", ["soon", "-1", "inf", "nan", "", "1,5"])
def test_a_crawl_delay_that_is_no_number_is_found(value: str) -> None:
    assert codes(lint(f"User-agent: *\nDisallow:\nCrawl-delay: {value}\n")) == [(3, "D1")]


@pytest.mark.parametrize("value", ["0", "0.5", "10", "1.5 # seconds"])
def test_an_honest_crawl_delay_is_none(value: str) -> None:
    assert lint(f"User-agent: *\nDisallow:\nCrawl-delay: {value}\n") == []


@pytest.mark.parametrize("field", ["Host", "Clean-param", "Request-rate", "Noindex", "Content-Signal"])
def test_a_field_of_another_convention_is_no_typing_error(field: str) -> None:
    assert lint(f"User-agent: *\nDisallow:\n{field}: x\n") == []


def test_a_missing_colon_is_a_typing_error() -> None:
    assert (2, "X7") in codes(lint("User-agent: *\nDisallow /x\nDisallow: /y\n"))


def test_html_is_no_typing_error() -> None:
    assert lint("<!doctype html>\n<html><p style='color: red'>Hello: world</p></html>") == []


def test_a_file_full_of_mistakes_is_reported_in_part() -> None:
    assert len(lint("Disallow: /a\n" * 20_000)) == 1_000


def test_many_strange_fields_cost_a_bounded_search() -> None:
    body = "".join(f"disalloz{number}: /\n" for number in range(40_000))

    assert len(lint(body)) <= 1_000


def test_bytes_and_text_are_alike() -> None:
    body = "User-agent: /ü\nDisallow: bot\n"

    assert lint(body) == lint(body.encode())


@given(st.binary(max_size=300), st.sampled_from(DIALECTS))
def test_no_content_makes_it_raise(body: bytes, dialect: Dialect) -> None:
    for finding in lint(body, dialect=dialect):
        assert 1 <= finding.line <= body.count(b"\n") + body.count(b"\r") + 1
