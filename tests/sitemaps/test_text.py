"""Sitemaps of one URL per line."""

import pytest

from polite.sitemaps import SitemapKind
from tests.sitemaps.support import read, urls

LINES = "https://example.com/a\r\nhttps://example.com/é\rHTTP://example.com/c\n\n  https://example.com/d \n# no URL\n/relative\nhttps://example.com/e"
FOUND = [
    f"{scheme}://example.com/{path}"
    for scheme, path in (("https", "a"), ("https", "%C3%A9"), ("http", "c"), ("https", "d"), ("https", "e"))
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("size", [1, 5, 65_536])
def test_lines_that_are_urls(encoding, size):
    parser, found = read(LINES.encode(encoding), size=size)

    assert [each.url for each in found] == FOUND
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
