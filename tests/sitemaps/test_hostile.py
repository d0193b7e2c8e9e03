"""Files made to cost: each is refused early, keeps what came before, and says why.

Sitemaps in gzip (in one stream, in several, in another, cut short, and as a bomb), and sitemaps of one URL per line.
"""

import gzip
import time
import tracemalloc

import pytest

from polite.sitemaps import SitemapKind, SitemapParser
from polite.sitemaps.parser import _MOST_MEMBERS
from tests.sitemaps.support import XML, pages, read, urls, urlset

BEFORE = "<loc>https://example.com/before</loc>"
LAUGHS = "<!DOCTYPE urlset [" + "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10)
)


@pytest.mark.parametrize(
    ("doctype", "problem"),
    [
        (f"{LAUGHS}]>", "the XML declares entities or attributes in its DOCTYPE"),
        ('<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "declares entities"),
        (
            '<!DOCTYPE urlset [<!ATTLIST url a CDATA "' + "x" * 9_999 + '">]>',
            "declares entities or attributes",
        ),
    ],
    ids=["billion laughs", "external entity", "default attributes"],
)
def test_declarations_are_refused(doctype, problem):
    parser, found = read(f"{XML}{doctype}<urlset><url><loc>&l9;&x;</loc></url></urlset>")
    assert not found
    assert problem in parser.problem


def test_an_external_dtd_is_not_read():
    parser, found = read(
        f'{XML}<!DOCTYPE urlset SYSTEM "http://127.0.0.1/x.dtd"><urlset><url>{BEFORE}<x>&unknown;</x></url></urlset>'
    )
    assert (len(found), parser.problem) == (1, None)


@pytest.mark.parametrize(
    "token", [b"<url a='", b"<!-- ", b"<![CDATA[", b"<"], ids=["attribute", "comment", "cdata", "name"]
)
def test_a_token_that_does_not_end_is_not_read_again_and_again(token):
    data = urlset(BEFORE).encode().replace(b"</urlset>", b"") + token + b"x" * 8_000_000
    began = time.process_time()
    parser, found = read(data, size=4_096)
    # CDATA is read as it comes. All others would take 10 s with expat 2.5.
    assert time.process_time() - began < 2.0
    assert [each.url for each in found] == ["https://example.com/before"]
    assert parser.problem is not None


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        ("<a>" * 200, "more than 100 elements are nested"),
        ("".join(f"<a{n}/>" for n in range(2_000)), "more than 1000 different names"),
        ("".join(f"<a b{n}=''/>" for n in range(2_000)), "more than 1000 different names"),
        (f"<{'a' * 1_000}/>", "one of more than 256 characters"),
        ("<a " + " ".join(f"b{n}=''" for n in range(101)) + "/>", "more than 100 attributes"),
        ("<url><loc>&nbsp;</loc></url>", "the XML is not well-formed: undefined entity"),
        ("<url></loc></url>", "the XML is not well-formed: mismatched tag"),
        ("<url><loc>https://example.com/cut", "the XML is not well-formed: no element found"),
    ],
    ids=[
        *("deep nesting", "names", "names of attributes", "long name", "attributes"),
        *("unknown entity", "mismatched tag", "truncated"),
    ],
)
def test_what_expat_would_keep_is_limited_and_xml_not_well_formed_keeps_what_came_before(inside, problem):
    parser, found = read(f"<urlset><url>{BEFORE}</url>{inside}")
    assert [each.url for each in found] == ["https://example.com/before"]
    assert problem in parser.problem


@pytest.mark.parametrize("encoding", ["big5", "no-such", "cp932", "utf-7", "unicode_escape"])
def test_an_unknown_encoding_is_a_problem(encoding):
    parser, found = read(f"<?xml version='1.0' encoding='{encoding}'?><urlset><url>{BEFORE}</url></urlset>")
    assert not found
    assert parser.problem.startswith("the XML ")


def test_a_page_in_the_place_of_a_sitemap_is_none():
    assert read("<html><body>404</body></html>")[0].problem == "no sitemap: the root element is 'html'"
    assert read("<!doctype html><html>")[0].problem.startswith("the XML is not well-formed")
    assert read("")[0].problem == read(" \n")[0].problem == "the file is empty"
    assert read(b"\xef\xbb\xbf")[0].problem == "the file is empty"
    assert read(b" " * 200_000, size=1_000)[0].problem.startswith("no sitemap: it begins with")


def test_the_limits_hold_to_the_entry_and_to_the_octet():
    file = pages(10)
    assert read(file, max_entries=10, max_bytes=len(file))[0].problem is None
    assert read(f"{file} ", max_bytes=len(file))[0].problem is not None
    assert len(read(file, max_entries=9)[1]) == 9
    # The octet after the limit is a line end, after the root element.
    assert read(file[:-1] + ">", max_bytes=len(file) - 2)[0].problem is not None


def test_a_field_of_an_entry_is_kept_no_longer_than_it_can_mean_something():
    filler = "x" * 1_000_000
    parser, found = read(
        urlset(f"<loc>https://example.com/{filler}</loc>", f"{BEFORE}<lastmod>{filler}</lastmod>"),
        size=10_000,
    )
    assert [(each.url, each.lastmod) for each in found] == [("https://example.com/before", None)]
    assert parser.skipped == 1


def test_a_field_of_20_mb_takes_no_memory():
    parser = SitemapParser("https://example.com/sitemap.xml")
    list(parser.feed(b"<urlset><url><loc>"))
    tracemalloc.start()
    for _ in range(2_000):
        list(parser.feed(b"x" * 10_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 200_000


def test_alternates_are_limited():
    link = '<link rel="alternate" hreflang="de" href="/{}"/>'
    (entry,) = read(urlset(BEFORE + "".join(link.format(number) for number in range(500))))[1]
    assert len(entry.alternates) == 200


FILE = pages(500).encode()
FOUND = [f"https://example.com/{number}" for number in range(500)]
HALVES = gzip.compress(FILE[:9_999]) + gzip.compress(b"") + gzip.compress(FILE[9_999:])


@pytest.mark.parametrize("size", [1, 3, 1_000, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(FILE),
        gzip.compress(gzip.compress(FILE)),
        HALVES,
        gzip.compress(HALVES) + b"\x1f",
        gzip.compress(FILE) + b"\0" * 512 + HALVES,
    ],
    ids=["one stream", "twice", "members", "members in one", "junk after the end"],
)
def test_what_was_compressed_is_read(data, size):
    assert urls(data, size=size) == FOUND


@pytest.mark.parametrize("kept", [5, 100, 1_000, -1])
def test_a_stream_that_is_cut_short_keeps_what_came(kept):
    data = gzip.compress(FILE + b" " * 100_000)
    parser, found = read(data[:kept] if kept > 0 else data[: len(data) // 2])
    assert [each.url for each in found] == FOUND[: len(found)]
    assert parser.problem == "the file is cut short" or len(found) == 500


def test_a_corrupt_stream_keeps_what_came():
    data = bytearray(gzip.compress("".join(f"https://example.com/{n}\n" for n in range(500)).encode()))
    data[-8:] = bytes(8)  # the checksum
    parser, found = read(bytes(data))
    assert [each.url for each in found] == FOUND[: len(found)]
    assert parser.problem.startswith("the gzip stream is corrupt")


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_bomb_ends_at_the_limit(layers):
    data = b"<urlset>" + b"<!-- -->" * 1_000_000
    for _ in range(layers):
        data = gzip.compress(data)

    parser, found = read(data, max_bytes=100_000)

    assert not found
    assert parser.problem in {
        "more than SitemapPolicy.max_bytes=100000 octets",
        # A third gzip is a file like any other: neither XML nor lines.
        "no sitemap: neither XML nor lines with URLs",
    }


def test_members_without_end_are_refused():
    parser, _ = read(gzip.compress(b"") * (_MOST_MEMBERS + 1) + gzip.compress(FILE))
    assert parser.problem == f"more than {_MOST_MEMBERS} gzip members"


LINES = "https://example.com/a\r\nhttps://example.com/é\rHTTP://example.com/c\n\n  https://example.com/d \n# no URL\n/relative\nhttps://example.com/e"
LINE_URLS = [
    f"{scheme}://example.com/{path}"
    for scheme, path in (("https", "a"), ("https", "%C3%A9"), ("http", "c"), ("https", "d"), ("https", "e"))
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("size", [1, 5, 65_536])
def test_lines_that_are_urls(encoding, size):
    parser, found = read(LINES.encode(encoding), size=size)
    assert [each.url for each in found] == LINE_URLS
    assert (parser.kind, parser.skipped, parser.problem) == (SitemapKind.TEXT, 2, None)


def test_octets_that_are_not_utf_8_are_kept():
    assert urls(b"https://example.com/caf\xe9\n") == ["https://example.com/caf%E9"]


def test_a_line_that_is_too_long_is_skipped():
    data = b"https://example.com/\nhttps://example.com/" + b"x" * 1_000_000 + b"\nhttps://example.com/"
    parser, found = read(data, size=1_000)
    assert ([each.url for each in found], parser.skipped) == (["https://example.com/"] * 2, 1)


@pytest.mark.parametrize(
    "data", [b"this is a bogus sitemap", b'{"urls": []}', b"\x89PNG\r\n\x1a\n" * 50_000, b"%PDF-1.7"]
)
def test_a_file_without_a_url_is_no_sitemap(data):
    parser, found = read(data)
    assert not found
    assert parser.problem == "no sitemap: neither XML nor lines with URLs"


def test_the_last_line_of_a_file_that_is_cut_short_may_be_a_part_of_a_url():
    parser, found = read(b"https://example.com/a\nhttps://example.com/ab", cut_short=True)
    assert [each.url for each in found] == ["https://example.com/a"]
    assert parser.problem == "the file is cut short"
