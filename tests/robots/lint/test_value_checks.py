"""What the lint says about values: hours and rates, Noindex, preferences, licences."""

import pytest

from polite.robots.lint.checks import Finding
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
    ("line", "code"),
    [
        ("Crawl-delay: nan", "D1"),
        ("Disallow: fish/", "D5"),
        ("Request-rate: 1/0", "D16"),
        ("Request-rate: 1/5 9-17", "D16"),
        ("Visit-time:", "D17"),
        ("Visit-time: 0660-0700", "D17"),
        ("NOINDEX : /a", "D15"),
        ("License: /license.xml", "D20"),
        ("Sitemap: /s.xml", "D6"),
        ("Content-Usage: search=y, train-ai", "D19"),
        ("Content-Usage: Train-AI=n", "D19"),
    ],
)
def test_a_value_that_says_nothing_is_found(line: str, code: str):
    assert code_of(line) == code
    assert code_of(f"# {line}") is None


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


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("ai-train=n", "yes or no"),
        ("search", "yes or no"),
        ("use=all", "immediate, reference or full"),
        ("other=", "given"),
    ],
)
def test_a_content_signal_that_says_nothing_is_found(value: str, wanted: str):
    (found,) = findings(f"Content-Signal: search=yes, {value}")

    assert found.code == "D19"
    assert found.message.endswith(f"is not {wanted}")


def test_fields_of_a_page_of_html_are_none():
    assert [each.code for each in lint("<html>\nLicense: none\nNoindex: /\n")] == ["D4"]


def codes(name: str) -> list[str]:
    return [finding.code for finding in lint(f"User-agent: {name}\nDisallow: /x\n")]


@pytest.mark.parametrize("names", ["Googlebot, Bingbot", "a|b", "*, a", "Download Ninja, Teleport Pro"])
def test_several_names_in_one_line_are_found(names: str):
    assert codes(names) == ["D14"]


@pytest.mark.parametrize(
    "name",
    [
        "Download Ninja",
        "ExampleBot/1.0 (+https://example.com, a; b)",
        "HTTrack [NC,OR]",
        "WebReaper v7.3 - www,example.com/webreaper",
    ],
)
def test_one_name_in_many_words_is_none(name: str):
    assert codes(name) == []


@pytest.mark.parametrize(
    ("names", "read"), [("Foo, Bar", "is read as 'foo'"), ("*, Bar", "names no crawler")]
)
def test_the_finding_says_which_name_is_read(names: str, read: str):
    assert lint(f"User-agent: {names}\nDisallow: /x\n")[0].message.endswith(read)
