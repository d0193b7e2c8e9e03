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


@pytest.mark.parametrize(
    "field",
    [
        "Host: x",
        "Clean-param: x",
        "Request-rate: 1/5",
        "Content-Signal: search=yes",
        "Content-Usage: search=y",
    ],
)
def test_a_field_of_another_convention_is_no_typing_error(field: str) -> None:
    assert lint(f"User-agent: *\nDisallow:\n{field}\n") == []


def test_a_missing_colon_is_a_typing_error() -> None:
    assert (2, "X7") in codes(lint("User-agent: *\nDisallow /x\nDisallow: /y\n"))


def test_html_is_no_typing_error() -> None:
    assert codes(lint("\n<!doctype html>\n<html><p style='color: red'>Hello: world</p></html>")) == [
        (2, "D4")
    ]


@pytest.mark.parametrize(
    "page", ["<html>", " \r\n<HEAD>", "<!-- x -->", '<?xml version="1.0"?>', "\ufeff<body>"]
)
def test_a_page_is_no_robots_txt(page: str) -> None:
    assert "D4" in [finding.code for finding in lint(page)]


def test_every_line_end_counts_for_the_line_of_a_page() -> None:
    assert [finding.line for finding in lint("\r\r\n\n<html>") if finding.code == "D4"] == [4]


@pytest.mark.parametrize("text", ["# <html>\n", "< p\n", "User-agent: *\nDisallow: /<html>\n"])
def test_a_bracket_does_not_make_a_page(text: str) -> None:
    assert "D4" not in [finding.code for finding in lint(text)]


def test_a_byte_order_mark_is_found() -> None:
    assert codes(lint(b"\xef\xbb\xbf" + FLAWLESS.encode())) == [(1, "D2")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_a_file_in_wide_characters_is_that_and_nothing_else(encoding: str) -> None:
    assert codes(lint(FLAWLESS.encode(encoding))) == [(1, "D3")]


def test_a_stray_nul_does_not_make_wide_characters() -> None:
    assert lint(FLAWLESS.encode() + b"\0\n") == []


@pytest.mark.parametrize("path", ["fish/", "https://example.com/fish", ".js", "$"])
def test_a_path_without_its_slash_is_found(path: str) -> None:
    assert codes(lint(f"User-agent: *\nDisallow: {path}\n")) == [(2, "D5")]


def test_a_slash_that_the_dialect_supplies_is_not_missed() -> None:
    assert lint("User-agent: *\nDisallow: fish/\n", dialect=GOOGLE_2010) == []


def test_an_inverted_record_is_one_mistake_and_not_two() -> None:
    assert codes(lint("User-agent: /\nDisallow: bot\nUser-agent: *\nDisallow: fish\n")) == [
        (1, "X1"),
        (4, "D5"),
    ]


@pytest.mark.parametrize("path", ["", "/", "*.js", "/fish"])
def test_a_path_from_the_root_is_none(path: str) -> None:
    assert lint(f"User-agent: *\nDisallow: {path}\n") == []


@pytest.mark.parametrize("url", ["/sitemap.xml", "sitemap.xml", "//example.com/s.xml", ""])
def test_a_relative_sitemap_is_found(url: str) -> None:
    assert codes(lint(f"{FLAWLESS}Sitemap: {url}\n")) == [(9, "D6")]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (["Disallow: /a", "Disallow: /a"], [3]),
        (["Allow: /a", "Disallow: /a"], [3]),
        (["Disallow: /a", "Allow: /a"], [2]),
        (["Disallow: /x/b", "Allow: /*x*/b"], [2]),
        (["Disallow: /a", "Disallow: /a*"], [2]),
        (["Disallow: *.doc", "Disallow: /*.doc"], [2]),
        (["Disallow: /%C3%BC", "Allow: /ü"], [2]),
        (["Disallow: /x$", "Allow: /*x"], [2]),
        (["Disallow: /x", "Allow: /*x$"], []),
        (["Disallow: /", "Disallow: /a", "Allow: /a/b"], []),
        (["Disallow: /*b", "Disallow: /a*"], []),
        (["Disallow:", "Disallow:"], []),
        (["Disallow: /robots.txt$", "Allow: /"], []),
    ],
)
def test_a_rule_that_never_decides_is_found(rules: list[str], found: list[int]) -> None:
    body = "\n".join(["User-agent: *", *rules, "User-agent: b", "Disallow: /a"])

    findings = [finding for finding in lint(body) if finding.code == "D7"]

    assert [finding.line for finding in findings] == found


def test_a_rule_written_twice_is_told_from_one_that_loses() -> None:
    twice, loses = lint("User-agent: *\nDisallow: /a\nDisallow: /a\nAllow: /b\nDisallow: /b\n")

    assert "Disallow: /a (line 3) is written twice: Disallow: /a (line 2)" in twice.message
    assert "Disallow: /b (line 5) never decides" in loses.message


def test_a_second_group_for_a_crawler_is_found() -> None:
    body = "User-agent: a\nDisallow: /x\nUser-agent: b\nUser-agent: A/2\nDisallow: /y\nUser-agent: b\nDisallow:\n"

    both, one = lint(body, dialect=RFC9309), lint(body, dialect=GOOGLE_2010)

    assert codes(both) == codes(one) == [(4, "D8"), (6, "D8")]
    assert "both apply together" in both[0].message
    assert "only the first one applies" in one[0].message


def test_a_name_twice_in_one_group_is_no_second_group() -> None:
    assert lint("User-agent: a\nUser-agent: a\nDisallow: /x\n") == []


@pytest.mark.parametrize("name", ["", "123", "*bot", "(compatible)", "+bot", "_-_", "Mozilla/5.0 (X11)"])
def test_a_name_that_no_crawler_has_is_found(name: str) -> None:
    assert codes(lint(f"User-agent: {name}\nDisallow: /x\n")) == [(1, "D9")]


@pytest.mark.parametrize("name", ["*", "* all", "ExampleBot/1.0 (+https://example.com)", "a_b-c", "4bot"])
def test_a_name_that_a_crawler_may_have_is_none(name: str) -> None:
    assert lint(f"User-agent: {name}\nDisallow: /x\n") == []


def test_a_name_that_one_dialect_cuts_short_is_found_there() -> None:
    body = "User-agent: MJ12bot\nDisallow: /x\n"

    assert lint(body) == []
    assert codes(lint(body, dialect=GOOGLE)) == [(1, "D9")]


@pytest.mark.parametrize("field", ["Crawl-delay: 1", "Request-rate: 1/5", "Visit-time: 0600-0800"])
def test_a_pace_between_user_agent_lines_is_found(field: str) -> None:
    assert codes(lint(f"User-agent: a\n{field}\nUser-agent: b\nDisallow: /x\n")) == [(2, "D10")]
    assert lint(f"User-agent: a\n{field}\nDisallow: /x\n\nUser-agent: b\nDisallow: /x\n") == []


def test_a_pace_above_all_groups_stands_between_none() -> None:
    assert lint("Crawl-delay: 1\nUser-agent: a\nDisallow: /x\n") == []


def test_every_code_has_a_title_and_a_level() -> None:
    assert {code.level for code in CODES.values()} == {"error", "warning", "note"}
    assert all(len(code.title) > 10 for code in CODES.values())


def test_a_file_full_of_mistakes_is_reported_in_part() -> None:
    assert len(lint("Disallow: /a\n" * 20_000)) == 1_000


def test_many_strange_fields_cost_a_bounded_search() -> None:
    body = "".join(f"disalloz{number}: /\n" for number in range(40_000))

    assert len(lint(body)) <= 1_000


def test_a_mistake_made_twice_is_found_twice() -> None:
    assert codes(lint("User-agent: *\nDisallow:\nDisalow: /a\nDisalow: /b\n")) == [(3, "X7"), (4, "X7")]


def test_a_very_long_field_is_not_looked_up() -> None:
    assert lint("User-agent: *\nDisallow: /x\n" + "dizallow" * 10 + ": /y\n") == []


def test_bytes_and_text_are_alike() -> None:
    body = "User-agent: /ü\nDisallow: bot\n"

    assert lint(body) == lint(body.encode())


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
    "paces": "User-agent: a\nCrawl-delay: 1\n",
    "long paths": "Disallow: /" + "*a" * 2_000 + "\n",
    "line ends": "\n",
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


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_missing_colon_is_found_also_where_it_is_forgiven(dialect: Dialect) -> None:
    assert (1, "X7") in codes(lint("User-agent *\nDisallow: /\n", dialect=dialect))


def test_what_is_no_file_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes or str"):
        lint(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "written"), [("/my page", "%20"), ('/a"b', "%22"), ("/a<b", "%3C")])
def test_a_character_that_no_url_has_is_found_in_a_path(path: str, written: str):
    found = lint(f"User-agent: *\nDisallow: {path}\n")

    assert codes(found) == [(2, "D11")]
    assert written in found[0].hint


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
        "user agent: *",
        "dissallow: /",
        "dissalow: /",
        "disalow: /",
        "diasllow: /",
        "disallaw: /",
        "DisallowL /js/",
        "Disallow; /x",
        "Disallow\u00a0: /-/",
        "disallow-all: /",
        "User-agent\u00a0: *",
        "Dissallow-these-pages: /",
        "Useragents-of-all-kinds: *",
        "Allow; /x",
    ],
)
def test_each_misspelling_that_the_default_reads_is_found(line: str):
    assert (3, "X7") in codes(lint(f"User-agent: a\nDisallow: /a\n{line}\n"))


def test_a_longer_field_is_named_with_what_polite_reads() -> None:
    body = "User-agent: a\nDisallow; /x\nAllowed: /y\nDisallow those pages please\n"

    assert [str(each.message) for each in lint(body) if each.code == "X7"] == [
        "'Disallow;' is not a field; polite reads it as Disallow, many crawlers ignore the line",
        "'Allowed' is not a field; polite ignores the line, as many crawlers do",
        "the colon is missing after 'disallow'; polite ignores the line, as many crawlers do",
    ]
    assert (2, "X7") in codes(lint(body, dialect=GOOGLE_2019))


@pytest.mark.parametrize("line", ["User-agent *", "Disallow /x", "Allow /x", "Useragent *", "Disalow /x"])
def test_each_line_without_its_colon_is_found(line: str):
    assert (3, "X7") in codes(lint(f"User-agent: a\nDisallow: /a\n{line}\n"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_in_wide_characters_that_is_read_is_looked_at_line_by_line(encoding: str):
    body = "User-agent: *\r\nDisalow: /a\r\nDisallow: /b c\r\n".encode(encoding)

    assert codes(lint(body)) == [(1, "D3"), (2, "X7"), (3, "D11")]
    assert "polite reads it" in lint(body)[0].message
    assert codes(lint(body, dialect=GOOGLE)) == [(1, "D3")]


def test_a_space_is_named_as_one() -> None:
    assert "' '" in lint("User-agent: *\nDisallow: /my page\n")[0].message


def test_the_name_of_a_dialect_is_none() -> None:
    with pytest.raises(TypeError, match="must be a Dialect"):
        lint("", "google")


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
        ("Useragent: b", "polite reads it as User-agent", "polite ignores the line"),
        ("Alow: /x", "polite ignores the line", "polite ignores the line"),
        ("Disallow /x", "polite reads it as Disallow", "polite ignores the line"),
        ("Disallow /x /y", "polite ignores the line", "polite ignores the line"),
        ("Allow /x", "polite ignores the line", "polite ignores the line"),
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


@pytest.mark.parametrize(
    ("dialect", "encoding", "reading"),
    [
        (RFC9309, "utf-16", "polite reads it"),
        (RFC9309, "utf-16-le", "polite finds no rule in it"),
        (STRICT, "utf-16", "polite finds no rule in it"),
    ],
)
def test_a_finding_says_whether_polite_reads_wide_characters(dialect: Dialect, encoding: str, reading: str):
    body = "User-agent: *\nDisallow: /\n".encode(encoding)

    found = lint(body, dialect)[0]

    assert found.code == "D3"
    assert reading in found.message
    assert bool(parse(body, dialect=dialect).groups) is (reading == "polite reads it")
