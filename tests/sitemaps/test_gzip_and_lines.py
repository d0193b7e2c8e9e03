"""Sitemaps in gzip (in one stream, in several, in another, cut short, and as a bomb), and sitemaps of one URL per line."""

import gzip

import pytest

from polite.sitemaps import SitemapKind
from polite.sitemaps.parser import _MOST_MEMBERS
from tests.sitemaps.support import pages, read, urls

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

    assert [each.url for each in found] == ["https://example.com/"] * 2
    assert parser.skipped == 1


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
