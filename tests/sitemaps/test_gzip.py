"""Sitemaps in gzip: in one stream, in several, in another, cut short, and as a bomb."""

import gzip

import pytest

from polite.sitemaps import SitemapParser
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
    data = bytearray(
        gzip.compress("".join(f"https://example.com/{number}\n" for number in range(500)).encode())
    )
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


def test_no_piece_of_a_bomb_is_large():
    parser = SitemapParser("https://example.com/sitemap.txt")

    pieces = list(map(len, parser.feed(gzip.compress(b"https://example.com/\n" * 30_000))))

    assert max(pieces) <= 16_384 // 21 + 1
    assert sum(pieces) == 30_000


def test_members_without_end_are_refused():
    parser, _ = read(gzip.compress(b"") * (_MOST_MEMBERS + 1) + gzip.compress(FILE))

    assert parser.problem == f"more than {_MOST_MEMBERS} gzip members"
