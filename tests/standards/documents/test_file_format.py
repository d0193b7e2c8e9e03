"""What a robots.txt is made of: rows F1 to F8 of the digest, each in every dialect it names."""

import pytest

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import Robots, parse
from polite.robots.reason import Reason
from tests.standards.dialects import every_dialect, newer_dialects


def allowed(robots: Robots, path: str) -> bool:
    return robots.decide("ExampleBot/1.0", path).allowed


@every_dialect
@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_f1_lines_end_in_cr_lf_or_both(dialect: Dialect, ending: bytes):
    robots = parse(ending.join([b"User-agent: *", b"Disallow: /a", b"Disallow: /b"]), dialect)

    assert [allowed(robots, path) for path in ("/a", "/b", "/c")] == [False, False, True]


@every_dialect
def test_f1_line_ends_may_be_mixed_and_crlf_counts_as_one_line(dialect: Dialect):
    robots = parse(b"User-agent: *\r\nDisallow: /a\rDisallow: /b\n\r\n\rDisallow: /c", dialect)

    assert [rule.line for rule in robots.groups[0].rules] == [2, 3, 6]


@every_dialect
@pytest.mark.parametrize("mark", "\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e\0", ids=ascii)
def test_f1_nothing_else_ends_a_line(dialect: Dialect, mark: str):
    robots = parse(f"User-agent: *\nDisallow: /a{mark}Disallow: /b\n", dialect)

    assert len(robots.groups[0].rules) == 1
    assert allowed(robots, "/b")


@every_dialect
@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html>\n<html><head><title>404: not found</title>\n<body>Disallow nothing: /\n</html>",
        bytes(range(256)) * 40,
    ],
)
def test_f2_a_page_of_html_and_binary_rubbish_are_no_rules(dialect: Dialect, body: bytes):
    assert parse(body, dialect).groups == ()


@every_dialect
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_f2_utf_16_holds_no_rules_but_by_default_with_its_mark(dialect: Dialect, encoding: str):
    robots = parse("User-agent: *\nDisallow: /\n".encode(encoding), dialect)

    assert len(robots.groups) == (dialect is RFC9309 and encoding == "utf-16")


@every_dialect
def test_f3_octets_that_are_not_utf_8_spoil_their_own_line_only(dialect: Dialect):
    robots = parse(b"User-agent: *\n\xff\xfe\x80: \xc3\nDisallow: /\xff\nDisallow: /b\n", dialect)

    assert [rule.pattern for rule in robots.groups[0].rules] == ["/\\xff", "/b"]


@newer_dialects
def test_f4_a_byte_order_mark_is_ignored_at_the_start_and_spoils_its_line_elsewhere(dialect: Dialect):
    for body in ("\ufeffUser-agent: *\nDisallow: /", b"\xef\xbb\xbfUser-agent: *\nDisallow: /"):
        assert not allowed(parse(body, dialect), "/a")
    robots = parse("User-agent: *\n\ufeffDisallow: /a\nDisallow: /b", dialect)

    assert [rule.pattern for rule in robots.groups[0].rules] == ["/b"]


@pytest.mark.parametrize("mark", [b"\xef", b"\xef\xbb"])
def test_f4_a_cut_byte_order_mark_is_ignored_by_google_alone(mark: bytes):
    body = mark + b"User-agent: *\nDisallow: /"

    assert not allowed(parse(body, GOOGLE), "/a")
    assert allowed(parse(body, RFC9309), "/a")


@every_dialect
@pytest.mark.parametrize(
    ("line", "patterns"),
    [
        ("Disallow:/a", ["/a"]),
        (" \tDisallow \t: \t/a \t", ["/a"]),
        ("Disallow: /a#comment", ["/a"]),
        ("Disallow: /a # comment: with a colon", ["/a"]),
        ("\x0bDisallow:\x0c/a\x0b", ["/a"]),
        *((line, []) for line in ("#Disallow: /", " # Disallow: /", "Disallow#: /", ": /", "Disallow", "")),
    ],
)
def test_f5_white_space_and_comments_are_not_part_of_field_or_value(dialect, line: str, patterns: list[str]):
    robots = parse(f"# first\nUser-agent: * # everyone\n{line}\n", dialect)

    assert [rule.pattern for rule in robots.groups[0].rules] == patterns


@every_dialect
@pytest.mark.parametrize("fields", ["USER-AGENT DISALLOW", "user-agent disallow", "uSeR-AgEnT dIsAlLoW"])
def test_f6_fields_and_user_agents_are_case_insensitive_and_paths_are_not(dialect: Dialect, fields: str):
    agent, disallow = fields.split()
    robots = parse(f"{agent}: EXAMPLEbot\n{disallow}: /Fish", dialect)

    assert not allowed(robots, "/Fish")
    assert allowed(robots, "/fish")


MISSPELT = [
    "useragent: *\ndisallow: /",
    "user agent: *\ndisallow: /",
    "user-agent: *\ndissallow: /",
    "user-agent: *\ndisallaw: /",
]


@pytest.mark.parametrize("body", MISSPELT)
def test_f7_a_mistyped_field_is_understood_where_the_document_lets_it_be(body: str):
    for dialect in (CLASSIC, GOOGLE_2019):
        assert allowed(parse(body, dialect), "/")
    for dialect in (GOOGLE_2010, RFC9309, GOOGLE):
        assert not allowed(parse(body, dialect), "/")


@pytest.mark.parametrize(
    "line",
    [
        *("disallow-all: /", "Disallowed: /", "DisallowL /", "Disallow; /"),
        *("disallow /", "disallow\t\t/", " disallow / # or: not"),
    ],
)
def test_f7_google_and_the_default_forgive_longer_fields_and_a_forgotten_colon(line: str):
    for agents in ("user-agents: *", "user-agent *"):
        body = f"{agents}\n{line}"
        assert not allowed(parse(body, GOOGLE), "/")
        assert not allowed(parse(body, RFC9309), "/")
    assert allowed(parse(f"user-agent: *\n{line}", GOOGLE_2019), "/")


@every_dialect
@pytest.mark.parametrize("body", [b"", "", b"\n\n", b"\xef\xbb\xbf", b"# nothing here\n"])
def test_f8_an_empty_file_means_the_same_as_none(dialect: Dialect, body: bytes | str):
    decision = parse(body, dialect).decide("ExampleBot", "/a")

    assert (decision.allowed, decision.reason) == (True, Reason.NO_GROUP)
