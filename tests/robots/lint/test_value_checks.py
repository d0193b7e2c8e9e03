"""What the lint says about values: hours and rates, Noindex, preferences, licences."""

import pytest

from polite.robots.lint.checks import CODES, Finding
from polite.robots.lint.lint import lint
from polite.robots.parse import parse
from polite.terms.usage import usage

START = "User-agent: *\nDisallow: /x\n"


def findings(line: str) -> list[Finding]:
    return lint(f"{START}{line}\n")


def code_of(line: str) -> str | None:
    found = findings(line)
    assert [each.line for each in found] in ([], [3])
    return found[0].code if found else None


@pytest.mark.parametrize(
    "value", ["", "x", "5", "1/", "0/5", "1/0", "-1/5", "1/5x", "1/5 9-17", "1 per second"]
)
def test_a_malformed_request_rate_is_found(value: str):
    assert code_of(f"Request-rate: {value}") == "D16"


@pytest.mark.parametrize("value", ["1/5", "1/10s", "30/1m", "1/1h", "1 / 5", "1/5 0600-0845", "1/5 # slow"])
def test_an_honest_request_rate_is_none(value: str):
    assert code_of(f"Request-rate: {value}") is None


@pytest.mark.parametrize("value", ["", "always", "0600", "0600-", "9-17", "2500-2600", "0660-0700"])
def test_a_malformed_visit_time_is_found(value: str):
    assert code_of(f"Visit-time: {value}") == "D17"


@pytest.mark.parametrize("value", ["0600-0845", "06:00-08:45", "2200-0200", "0600 - 2400"])
def test_an_honest_visit_time_is_none(value: str):
    assert code_of(f"Visit-time: {value}") is None


@pytest.mark.parametrize("line", ["Noindex: /a", "noindex: /", "NOINDEX : /a"])
def test_a_noindex_is_found(line: str):
    (found,) = findings(line)

    assert (found.line, found.code) == (3, "D15")
    assert "X-Robots-Tag: noindex" in found.hint


def test_a_noindex_in_a_comment_is_none():
    assert code_of("# Noindex: /a") is None


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("train-ai=no", "'train-ai'"),
        ("train-ai=N", "'train-ai'"),
        ("search=y, train-ai", "'train-ai'"),
        ('/news/ train-ai="n"', "'train-ai'"),
        ("train-ai=n, search=yes", "'search'"),
        ("train ai=n", "void as a whole"),
        ("Train-AI=n", "void as a whole"),
        ("/a train-ai=n,", "void as a whole"),
    ],
)
def test_a_content_usage_that_says_nothing_is_found(value: str, named: str):
    (found,) = findings(f"Content-Usage: {value}")

    assert found.code == "D19"
    assert named in found.message


@pytest.mark.parametrize(
    ("value", "reading", "refused"),
    [
        ("train-ai=no", "a refusal of 'train-ai', others may ignore it", 1),
        ("train-ai=n, search=n,", "a refusal of 'train-ai', 'search', others may ignore it", 2),
        ("train-ai=yes", "it is ignored", 0),
        ("search=no, train-ai=yes", "it is ignored", 1),
        ("Train-AI=y", "it is ignored", 0),
        (", ".join(f"a{each}=n" for each in range(6)) + ",", "'a4', ..., others may ignore it", 6),
    ],
)
def test_a_malformed_content_usage_says_what_usage_reads(value: str, reading: str, refused: int):
    read = usage((), parse(f"{START}Content-Usage: {value}"), "x", "/")

    assert findings(f"Content-Usage: {value}")[-1].message.endswith(reading)
    assert len(read.refused) == refused


def test_each_value_that_says_nothing_is_a_finding():
    assert [each.code for each in findings("Content-Usage: train-ai=no, search=yes, x=y")] == ["D19", "D19"]


@pytest.mark.parametrize(
    "value", ["", "train-ai=n", "/a train-ai=n, search=y", "train-ai=n;x=1", "whatever=y"]
)
def test_an_honest_content_usage_is_none(value: str):
    assert code_of(f"Content-Usage: {value}") is None


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("ai-train=n", "yes or no"),
        ("search", "yes or no"),
        ("use=all", "immediate, reference or full"),
        ("noai", "given"),
        ("other=", "given"),
    ],
)
def test_a_content_signal_that_says_nothing_is_found(value: str, wanted: str):
    (found,) = findings(f"Content-Signal: search=yes, {value}")

    assert found.code == "D19"
    assert found.message.endswith(f"is not {wanted}")


@pytest.mark.parametrize(
    "value", ["", "search=yes, ai-train=no", "/a Search=Yes,use=reference", "other=maybe", "search=yes,"]
)
def test_an_honest_content_signal_is_none(value: str):
    assert code_of(f"Content-Signal: {value}") is None


@pytest.mark.parametrize("value", ["/license.xml", "license.xml", "//example.com/l", "", "none"])
def test_a_license_that_is_no_absolute_url_is_found(value: str):
    assert code_of(f"License: {value}") == "D20"


@pytest.mark.parametrize("value", ["https://example.com/license.xml", "HTTP://example.com/l"])
def test_an_absolute_license_is_none(value: str):
    assert code_of(f"License: {value}") is None


def test_fields_of_a_page_of_html_are_none():
    assert [each.code for each in lint("<html>\nLicense: none\nNoindex: /\n")] == ["D4"]


@pytest.mark.parametrize("code", [f"D{number}" for number in range(12, 21)])
def test_each_of_these_codes_makes_a_line_mean_less_than_it_says(code: str):
    assert CODES[code].level == ("error" if code == "D12" else "warning")
