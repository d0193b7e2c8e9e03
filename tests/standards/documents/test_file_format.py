"""What a robots.txt is made of: rows F1 to F8 of the digest, each in every dialect it names."""

import pytest

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import Robots, parse
from polite.robots.reason import Reason

ALL = [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]
NEWER = [GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]

every_dialect = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
every_newer_dialect = pytest.mark.parametrize("dialect", NEWER, ids=lambda dialect: dialect.name)


def allowed(robots: Robots, path: str) -> bool:
    return robots.decide("ExampleBot/1.0", path).allowed


@every_dialect
@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_f1_lines_end_in_cr_lf_or_both(dialect: Dialect, ending: bytes):
    body = ending.join([b"User-agent: *", b"Disallow: /a", b"Disallow: /b"])

    robots = parse(body, dialect)

    assert not allowed(robots, "/a")
    assert not allowed(robots, "/b")
    assert allowed(robots, "/c")


@every_dialect
def test_f1_line_ends_may_be_mixed_and_crlf_counts_as_one_line(dialect: Dialect):
    robots = parse(b"User-agent: *\r\nDisallow: /a\rDisallow: /b\n\r\n\rDisallow: /c", dialect)

    lines = [rule.line for rule in robots.groups[0].rules]

    assert lines == [2, 3, 6]


@every_dialect
@pytest.mark.parametrize(
    "mark", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"], ids=ascii
)
def test_f1_nothing_else_ends_a_line(dialect: Dialect, mark: str):
    robots = parse(f"User-agent: *\nDisallow: /a{mark}Disallow: /b\n", dialect)

    rules = robots.groups[0].rules

    assert len(rules) == 1
    assert allowed(robots, "/b")


@every_dialect
def test_f1_a_nul_ends_no_line(dialect: Dialect):
    robots = parse(b"User-agent: *\nDisallow: /a\0Disallow: /b\n", dialect)

    assert allowed(robots, "/b")
    assert len(robots.groups[0].rules) == 1


@every_dialect
def test_f2_a_page_of_html_is_no_rules(dialect: Dialect):
    page = b"<!DOCTYPE html>\n<html><head><title>404: not found</title>\n<body>Disallow nothing: /\n</html>"

    robots = parse(page, dialect)

    assert robots.groups == ()
    assert allowed(robots, "/")


@every_dialect
def test_f2_binary_rubbish_is_no_error(dialect: Dialect):
    robots = parse(bytes(range(256)) * 40, dialect)

    assert allowed(robots, "/")


@every_dialect
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_f2_utf_16_holds_no_rules_but_by_default_with_its_mark(dialect: Dialect, encoding: str):
    robots = parse("User-agent: *\nDisallow: /\n".encode(encoding), dialect)

    assert len(robots.groups) == (dialect is RFC9309 and encoding == "utf-16")


@every_dialect
def test_f3_octets_that_are_not_utf_8_spoil_their_own_line_only(dialect: Dialect):
    robots = parse(b"User-agent: *\n\xff\xfe\x80: \xc3\nDisallow: /\xff\nDisallow: /b\n", dialect)

    assert not allowed(robots, "/b")
    assert robots.groups[0].rules[0].pattern == "/\\xff"


@every_newer_dialect
@pytest.mark.parametrize(
    "body", ["\ufeffUser-agent: *\nDisallow: /", b"\xef\xbb\xbfUser-agent: *\nDisallow: /"]
)
def test_f4_a_byte_order_mark_at_the_start_is_ignored(dialect: Dialect, body: str | bytes):
    robots = parse(body, dialect)

    assert not allowed(robots, "/a")


@every_newer_dialect
def test_f4_a_byte_order_mark_elsewhere_spoils_its_line(dialect: Dialect):
    robots = parse("User-agent: *\n\ufeffDisallow: /a\nDisallow: /b", dialect)

    assert allowed(robots, "/a")
    assert not allowed(robots, "/b")


@pytest.mark.parametrize("mark", [b"\xef", b"\xef\xbb"])
def test_f4_a_cut_byte_order_mark_is_ignored_by_google_alone(mark: bytes):
    body = mark + b"User-agent: *\nDisallow: /"

    assert not allowed(parse(body, GOOGLE), "/a")
    assert allowed(parse(body, RFC9309), "/a")


@every_dialect
@pytest.mark.parametrize(
    "line",
    [
        "Disallow:/a",
        " \tDisallow \t: \t/a \t",
        "Disallow: /a#comment",
        "Disallow: /a # comment: with a colon",
        "\x0bDisallow:\x0c/a\x0b",
    ],
)
def test_f5_white_space_and_comments_are_not_part_of_field_or_value(dialect: Dialect, line: str):
    robots = parse(f"# first\nUser-agent: * # everyone\n{line}\n", dialect)

    assert [rule.pattern for rule in robots.groups[0].rules] == ["/a"]


@every_dialect
@pytest.mark.parametrize("line", ["#Disallow: /", " # Disallow: /", "Disallow#: /", ": /", "Disallow", ""])
def test_f5_what_is_commented_out_or_lacks_a_part_is_no_rule(dialect: Dialect, line: str):
    robots = parse(f"User-agent: *\n{line}\n", dialect)

    assert robots.groups[0].rules == ()


@every_dialect
@pytest.mark.parametrize(
    "fields", [("USER-AGENT", "DISALLOW"), ("user-agent", "disallow"), ("uSeR-AgEnT", "dIsAlLoW")]
)
def test_f6_fields_are_case_insensitive(dialect: Dialect, fields: tuple[str, str]):
    robots = parse(f"{fields[0]}: *\n{fields[1]}: /a", dialect)

    assert not allowed(robots, "/a")


@every_dialect
def test_f6_paths_are_case_sensitive_and_user_agents_are_not(dialect: Dialect):
    robots = parse("User-agent: EXAMPLEbot\nDisallow: /Fish", dialect)

    assert not allowed(robots, "/Fish")
    assert allowed(robots, "/fish")


MISSPELT = [
    "useragent: *\ndisallow: /",
    "user agent: *\ndisallow: /",
    "user-agent: *\ndissallow: /",
    "user-agent: *\ndisallaw: /",
]


@pytest.mark.parametrize("body", MISSPELT)
@pytest.mark.parametrize("dialect", [CLASSIC, GOOGLE_2019], ids=lambda dialect: dialect.name)
def test_f7_a_mistyped_field_is_not_supported(dialect: Dialect, body: str):
    assert allowed(parse(body, dialect), "/")


@pytest.mark.parametrize("body", MISSPELT)
@pytest.mark.parametrize("dialect", [GOOGLE_2010, RFC9309, GOOGLE], ids=lambda dialect: dialect.name)
def test_f7_a_mistyped_field_is_understood_where_the_document_lets_it_be(dialect: Dialect, body: str):
    assert not allowed(parse(body, dialect), "/")


@pytest.mark.parametrize("line", ["disallow-all: /", "Disallowed: /", "DisallowL /", "Disallow; /"])
def test_f7_google_and_the_default_forgive_longer_fields(line: str):
    body = f"user-agents: *\n{line}"

    assert not allowed(parse(body, GOOGLE), "/")
    assert not allowed(parse(body, RFC9309), "/")
    assert allowed(parse(body, GOOGLE_2019), "/")


@pytest.mark.parametrize("line", ["disallow /", "disallow\t\t/", " disallow / # or: not"])
def test_f7_google_and_the_default_forgive_a_forgotten_colon(line: str):
    body = f"user-agent: *\n{line}"

    assert not allowed(parse(body, GOOGLE), "/")
    assert not allowed(parse(body, RFC9309), "/")
    assert allowed(parse(body, GOOGLE_2019), "/")


@every_dialect
@pytest.mark.parametrize("body", [b"", "", b"\n\n", b"\xef\xbb\xbf", b"# nothing here\n"])
def test_f8_an_empty_file_means_the_same_as_none(dialect: Dialect, body: bytes | str):
    decision = parse(body, dialect).decide("ExampleBot", "/a")

    assert decision.allowed
    assert decision.reason is Reason.NO_GROUP
