"""The bounded inflater: complete, capped, cut short and corrupt are four different ends."""

import gzip

import pytest

from polite.robots.exchange import BodyEnd
from polite.transports.inflate import Inflater

TEXT = b"User-agent: *\nDisallow: /private/\n" * 50
PACKED = gzip.compress(TEXT, mtime=0)


def fed(coding: str, data: bytes, *, limit: int = 10_000, step: int = 7, **options: bool) -> Inflater:
    inflater = Inflater(coding, limit, **options)
    for at in range(0, len(data), step):
        inflater.feed(data[at : at + step])
    return inflater


def test_a_gzip_body_cut_anywhere_and_any_whose_connection_broke_off_are_cut_short() -> None:
    for cut in range(1, len(PACKED)):
        assert fed("gzip", PACKED[:cut]).end() is BodyEnd.CUT_SHORT
    assert fed("", TEXT).end(cut_short=True) is BodyEnd.CUT_SHORT
    assert fed("gzip", b"").end() is BodyEnd.COMPLETE


@pytest.mark.parametrize(
    "damaged", [b"not gzip at all", PACKED[:-5] + b"\x00" + PACKED[-4:], b"\x1f\x8b\x00" + bytes(20)]
)
def test_a_broken_stream_is_corrupt(damaged: bytes) -> None:
    assert fed("gzip", damaged).end() is BodyEnd.CORRUPT


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "gzip, gzip", "gzip, br", "nonsense"])
def test_a_coding_that_was_not_asked_for_is_not_guessed_at(coding: str) -> None:
    assert fed(coding, PACKED).end() is BodyEnd.UNKNOWN_CODING


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_h9_a_body_of_exactly_the_limit_is_complete_and_one_more_is_capped(coding: str) -> None:
    exact = fed(coding, gzip.compress(b"x" * 100) if coding else b"x" * 100, limit=100)
    over = fed(coding, gzip.compress(b"x" * 101) if coding else b"x" * 101, limit=100)

    assert (len(exact.body), exact.end()) == (100, BodyEnd.COMPLETE)
    assert (len(over.body), over.end()) == (100, BodyEnd.CAPPED)


def test_a_bomb_is_never_held_and_thousands_of_members_are_refused() -> None:
    bomb = fed("gzip", gzip.compress(b"\0" * 50_000_000, 9), limit=512_000, step=65_536)

    assert (len(bomb.body), bomb.end()) == (512_000, BodyEnd.CAPPED)
    assert fed("gzip", gzip.compress(b"") * 5_000, step=1_000).end() is BodyEnd.CORRUPT


@pytest.mark.parametrize("step", [1, 11, 100_000])
def test_several_members_are_one_body(step: int) -> None:
    inflater = fed("gzip", gzip.compress(b"a") + gzip.compress(b"b"), step=step)

    assert (inflater.body, inflater.end()) == (b"ab", BodyEnd.COMPLETE)


@pytest.mark.parametrize("junk", [b"\0\0\0", b"junk", b"\x1f", b"\x1fjunk"])
@pytest.mark.parametrize("allowed", [True, False])
def test_junk_behind_the_stream_is_dropped_or_corrupts_it(junk: bytes, allowed: bool) -> None:
    inflater = fed("gzip", PACKED + junk, step=1, junk_allowed=allowed)

    assert inflater.body == TEXT
    assert inflater.end() is (BodyEnd.COMPLETE if allowed else BodyEnd.CORRUPT)


@pytest.mark.parametrize(
    ("coding", "data", "end"),
    [
        ("", PACKED[:-1], BodyEnd.CUT_SHORT),
        ("", PACKED[:1], BodyEnd.CUT_SHORT),
        ("", b"\x1f\x8bUser-agent: *", BodyEnd.CORRUPT),
        ("", gzip.compress(PACKED, mtime=0), BodyEnd.CORRUPT),
        ("gzip", gzip.compress(PACKED, mtime=0), BodyEnd.CORRUPT),
        ("", b"\x1f\nUser-agent: *", BodyEnd.COMPLETE),
        ("", b"", BodyEnd.COMPLETE),
        ("identity", PACKED, BodyEnd.COMPLETE),
    ],
    ids=["cut", "one-octet", "no-gzip", "twice", "twice-and-named-once", "another-octet", "empty", "whole"],
)
def test_gzip_that_no_header_names_has_the_same_ends(coding: str, data: bytes, end: BodyEnd) -> None:
    inflater = fed(coding, data, step=1, finds_gzip=True)

    assert inflater.end() is end
    assert data != PACKED or inflater.body == TEXT
