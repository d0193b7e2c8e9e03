"""What a robots.txt is made of, and where it is: rows F1 to F8, S1 and L1 to L6 of the digest."""

import pytest

from polite.origin import Origin, Target
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


# S: sitemaps.


@every_dialect
def test_s1_any_number_of_sitemaps_on_any_host_anywhere_in_the_file(dialect: Dialect):
    body = (
        "Sitemap: https://example.com/a.xml\nuser-agent: otherbot\ndisallow: /\n"
        "SITEMAP:http://other.example.org/b.xml # news\nsitemap: ftp://example.com/ü.xml\n"
    )

    robots = parse(body, dialect)

    assert robots.sitemaps == (
        "https://example.com/a.xml",
        "http://other.example.org/b.xml",
        "ftp://example.com/ü.xml",
    )


@every_dialect
@pytest.mark.parametrize("value", ["", "/sitemap.xml", "sitemap.xml", "//example.com/a.xml", "none"])
def test_s1_a_sitemap_is_an_absolute_url(dialect: Dialect, value: str):
    assert parse(f"sitemap: {value}", dialect).sitemaps == ()


def test_s1_google_reads_a_hyphen_into_it():
    assert parse("site-map: https://example.com/a.xml", GOOGLE).sitemaps == ("https://example.com/a.xml",)
    assert parse("site-map: https://example.com/a.xml", RFC9309).sitemaps == ()


# L: where a robots.txt is and what it covers. The location is the same in every dialect.


def _covers(robots_url, url):
    """Whether the file at `robots_url` is the one that speaks for `url`."""
    return Target.of(url).origin.robots_url == Target.of(robots_url).url


@pytest.mark.parametrize(
    ("url", "robots_url"),
    [
        ("http://example.com/", "http://example.com/robots.txt"),
        ("https://example.com/folder/page.html?q", "https://example.com/robots.txt"),
        ("http://example.com:8181/a", "http://example.com:8181/robots.txt"),
        ("ftp://example.com/a", "ftp://example.com/robots.txt"),
    ],
)
def test_l1_the_file_is_at_the_top_of_the_origin(url, robots_url):
    assert Origin.of(url).robots_url == robots_url


def test_l1_a_file_in_a_sub_folder_is_not_a_robots_file():
    assert not _covers("http://example.com/folder/robots.txt", "http://example.com/folder/")
    assert not _covers("http://example.com/folder/robots.txt", "http://example.com/folder/page")


def test_l2_the_rules_hold_for_everything_below_the_origin_and_for_no_other_scheme_host_or_port():
    for url in ("http://example.com/", "http://example.com/folder/file", "HTTP://EXAMPLE.COM/folder/"):
        assert _covers("http://example.com/robots.txt", url)
    for url in ("http://other.example.com/", "https://example.com/", "http://example.com:8181/"):
        assert not _covers("http://example.com/robots.txt", url)


@pytest.mark.parametrize(
    "url", ["http://example.com/", "http://shop.www.example.com/", "http://www.shop.example.com/"]
)
def test_l3_a_sub_domain_is_another_host(url):
    assert _covers("http://www.example.com/robots.txt", "http://www.example.com/")
    assert not _covers("http://www.example.com/robots.txt", url)


def test_l4_an_internationalised_host_equals_its_punycode():
    assert _covers("http://www.müller.eu/robots.txt", "http://www.xn--mller-kva.eu/")
    assert _covers("http://www.xn--mller-kva.eu/robots.txt", "http://www.müller.eu/")


@pytest.mark.parametrize("spelling", ["212.96.21013", "0xd4605215", "3563082261", "0324.0140.0122.025"])
def test_l5_an_ip_address_stands_for_itself_alone_in_every_spelling(spelling):
    assert _covers("http://212.96.82.21/robots.txt", f"http://{spelling}/")
    assert not _covers(f"http://{spelling}/robots.txt", "http://example.com/")


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443), ("ftp", 21)])
def test_l6_the_default_port_equals_no_port(scheme, port):
    assert _covers(f"{scheme}://example.com:{port}/robots.txt", f"{scheme}://example.com/")
    assert _covers(f"{scheme}://example.com:{port}/robots.txt", f"{scheme}://example.com:{port}/")
    assert _covers(f"{scheme}://example.com/robots.txt", f"{scheme}://example.com:{port}/")
    assert not _covers(f"{scheme}://example.com:{port}/robots.txt", f"{scheme}://example.com:{port + 1}/")
