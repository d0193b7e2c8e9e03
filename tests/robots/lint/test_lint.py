"""What the lint says, mistake by mistake; the rows X1 to X8 are in tests/standards/documents."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.lines import lines
from polite.robots.lint.checks import CODES, Finding
from polite.robots.lint.lint import lint
from polite.robots.parse import parse
from tests.support import calls_of, examples

DIALECTS = [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]
# What else is no mistake: values of other conventions, every form of a path and of a name.
HONEST = """\
User-agent: *
Disallow: /
Crawl-delay: 0.5 # seconds
Host: x
Clean-param: x

User-agent: ExampleBot/1.0 (+https://example.com)
User-agent: a_b-c
User-agent: a_b-c
Disallow: *.js
Disallow: /caf%E9/*\U0001f600$
Request-rate: 30/1m
Visit-time: 06:00-08:45
Content-Signal: /a Search=Yes, use=reference, other=maybe
Content-Usage: /a train-ai=n;x=1, whatever=y
License: HTTP://example.com/l
"""
FLAWLESS = "# ours\nUser-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\nDisallow:\n\nSitemap: https://example.com/s.xml\n"


def codes(findings: list[Finding]) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in findings]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_flawless_file_has_no_findings(dialect: Dialect) -> None:
    assert lint(FLAWLESS, dialect=dialect) == []


def test_what_is_well_formed_is_no_mistake() -> None:
    assert lint(HONEST) == []


def test_html_is_no_typing_error() -> None:
    assert codes(lint("\n<!doctype html>\n<html><p style='color: red'>Hello: world</p></html>")) == [
        (2, "D4")
    ]


@pytest.mark.parametrize("text", ["# <html>\n", "< p\n", "User-agent: *\nDisallow: /<html>\n"])
def test_a_bracket_does_not_make_a_page(text: str) -> None:
    assert "D4" not in [finding.code for finding in lint(text)]


def test_an_inverted_record_is_one_mistake_and_not_two() -> None:
    assert codes(lint("User-agent: /\nDisallow: bot\nUser-agent: *\nDisallow: fish\n")) == [
        (1, "X1"),
        (4, "D5"),
    ]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (["Disallow: /a", "Disallow: /a"], [3]),
        (["Allow: /a", "Disallow: /a"], [3]),
        (["Disallow: /x/b", "Allow: /*x*/b"], [2]),
        (["Disallow: /a", "Disallow: /a*"], [2]),
        (["Disallow: /%C3%BC", "Allow: /ü"], [2]),
        (["Disallow: /x$", "Allow: /*x"], [2]),
        (["Disallow: /x", "Allow: /*x$"], []),
        (["Disallow: /", "Disallow: /a", "Allow: /a/b"], []),
        (["Disallow: /*b", "Disallow: /a*"], []),
    ],
)
def test_a_rule_that_never_decides_is_found(rules: list[str], found: list[int]) -> None:
    body = "\n".join(["User-agent: *", *rules, "User-agent: b", "Disallow: /a"])

    findings = [finding for finding in lint(body) if finding.code == "D7"]

    assert [finding.line for finding in findings] == found


def test_a_second_group_for_a_crawler_is_found() -> None:
    body = "User-agent: a\nDisallow: /x\nUser-agent: b\nUser-agent: A/2\nDisallow: /y\nUser-agent: b\nDisallow:\n"

    both, one = lint(body, dialect=RFC9309), lint(body, dialect=GOOGLE_2010)

    assert codes(both) == codes(one) == [(4, "D8"), (6, "D8")]
    assert "both apply together" in both[0].message
    assert "only the first one applies" in one[0].message


@pytest.mark.parametrize("name", ["", "123", "*bot", "(compatible)", "+bot", "_-_", "Mozilla/5.0 (X11)"])
def test_a_name_that_no_crawler_has_is_found(name: str) -> None:
    assert codes(lint(f"User-agent: {name}\nDisallow: /x\n")) == [(1, "D9")]


def test_a_name_that_one_dialect_cuts_short_is_found_there() -> None:
    body = "User-agent: MJ12bot\nDisallow: /x\n"

    assert lint(body) == []
    assert codes(lint(body, dialect=GOOGLE)) == [(1, "D9")]


@pytest.mark.parametrize("field", ["Crawl-delay: 1", "Request-rate: 1/5", "Visit-time: 0600-0800"])
def test_a_pace_between_user_agent_lines_is_found(field: str) -> None:
    assert codes(lint(f"User-agent: a\n{field}\nUser-agent: b\nDisallow: /x\n")) == [(2, "D10")]
    assert lint(f"User-agent: a\n{field}\nDisallow: /x\n\nUser-agent: b\nDisallow: /x\n") == []


def test_a_file_full_of_mistakes_is_reported_in_part() -> None:
    assert len(lint("Disallow: /a\n" * 20_000)) == 1_000


@given(st.binary(max_size=300), st.sampled_from(DIALECTS))
def test_no_content_makes_it_raise(body: bytes, dialect: Dialect) -> None:
    for finding in lint(body, dialect=dialect):
        assert 1 <= finding.line <= body.count(b"\n") + body.count(b"\r") + 1
        assert finding.code in CODES


HOSTILE = {
    "wildcards": "Disallow: /*a*b*c\n",
    "numbered": "".join(f"Disallow: /*{number}*x\n" for number in range(30_000)),
    "groups": "User-agent: a\nDisallow: /*b*c*d*e*f\nDisallow: /\n",
    "agents": "".join(f"User-agent: a{number}\n" for number in range(30_000)),
    "long paths": "Disallow: /" + "*a" * 2_000 + "\n",
    "mark-up": " <",
}


@pytest.mark.parametrize("block", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("dialect", [CLASSIC, RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
def test_a_hostile_file_costs_a_bounded_search(block: str, dialect: Dialect) -> None:
    body = "User-agent: *\n" + block * (512_000 // len(block))

    started = time.process_time()
    lint(body, dialect=dialect)

    # 1 s at most where this was written; anything quadratic needs minutes.
    assert time.process_time() - started < 15.0


paths = st.text("/ab*$", max_size=6)


@examples(300, fast=30)
@given(
    st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), paths), max_size=6),
    st.sampled_from(DIALECTS),
    st.lists(st.text("/ab$x", max_size=6).map("/{}".format), max_size=20),
)
def test_a_rule_that_is_said_never_to_decide_never_does(
    rules: list[tuple[str, str]], dialect: Dialect, asked: list[str]
) -> None:
    body = "\n".join(["User-agent: *", *(f"{field}: {path}" for field, path in rules)])
    idle = {finding.line for finding in lint(body, dialect=dialect) if finding.code == "D7"}

    bound = parse(body, dialect).rules_for("x")

    assert idle.isdisjoint({decision.rule.line for path in asked if (decision := bound.decide(path)).rule})


def test_what_is_no_file_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes or str"):
        lint(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a Dialect"):
        lint("", "google")


def test_a_longer_field_without_its_colon_is_found_and_a_very_long_one_is_not_looked_up() -> None:
    assert codes(lint("User-agent: *\nDisallow: /x\nDisallowed /y\n", CLASSIC)) == [(3, "X7")]
    assert lint("User-agent: *\nDisallow: /x\n" + "dizallow" * 10 + ": /y\n") == []


@pytest.mark.parametrize("path", ["/my page", "/{id}", "/a|b", "/a\\b", "/a`b", "/a^b"])
@pytest.mark.parametrize("equal", [True, False])
def test_such_characters_are_found_whether_or_not_they_equal_their_escapes(path: str, equal: bool):
    (found,) = lint(f"User-agent: *\nDisallow: {path}\n", replace(RFC9309, excluded_equal_escapes=equal))

    assert (found.line, found.code) == (2, "D11")
    assert ("polite reads it as %" in found.message) is equal


@pytest.mark.parametrize(
    "line",
    [
        "useragent: *",
        "dissallow: /",
        "DisallowL /js/",
        "Disallow\u00a0: /-/",
        "User-agent\u00a0: *",
        "Useragents-of-all-kinds: *",
    ],
)
def test_each_misspelling_that_the_default_reads_is_found(line: str):
    assert (3, "X7") in codes(lint(f"User-agent: a\nDisallow: /a\n{line}\n"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_in_wide_characters_that_is_read_is_looked_at_line_by_line(encoding: str):
    body = "User-agent: *\r\nDisalow: /a\r\nDisallow: /b c\r\n".encode(encoding)

    assert codes(lint(body)) == [(1, "D3"), (2, "X7"), (3, "D11")]
    assert "polite reads it" in lint(body)[0].message
    assert codes(lint(body, dialect=GOOGLE)) == [(1, "D3")]


def test_lines_of_a_field_that_is_no_mistake_cost_little_more_than_to_read_them() -> None:
    body = b"x:\n" * 8_000
    reading = calls_of(lambda: list(lines(body, RFC9309)))

    # Six calls a line more when each was looked at.
    assert calls_of(lambda: lint(body)) <= reading + 4.5 * 8_000


STRICT = replace(
    RFC9309, excluded_equal_escapes=False, misspellings=(), colon_optional=False, reads_utf16=False
)


@pytest.mark.parametrize(
    ("line", "default", "strict"),
    [
        ("Disalow: /x", "polite reads it as Disallow", "polite ignores the line"),
        ("Alow: /x", "polite ignores the line", "polite ignores the line"),
        ("Disallow /x", "polite reads it as Disallow", "polite ignores the line"),
        ("Disallow /x /y", "polite ignores the line", "polite ignores the line"),
        ("Disallow: /a b", "polite reads it as %20", "polite reads it as it is"),
        ("Disallow: /a|b", "polite reads it as %7C", "polite reads it as it is"),
    ],
)
def test_a_finding_says_what_polite_reads(line: str, default: str, strict: str):
    for dialect, reading in ((RFC9309, default), (STRICT, strict)):
        (found,) = (
            each
            for each in lint(f"User-agent: a\nDisallow: /a\n{line}\n", dialect)
            if each.code in {"X7", "D11"}
        )
        assert reading in found.message
