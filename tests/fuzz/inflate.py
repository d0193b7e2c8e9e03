"""Any octets as a coded body: no exception, at most the limit, and the same result for any chunks."""

import gzip
import zlib
from functools import partial

from polite.robots.exchange import BodyEnd
from polite.transports.inflate import Inflater
from tests.fuzz.deadline import expect, in_time

WORDS = (
    b"\x1f\x8b", b"\x1f\x8b\x08\0\0\0\0\0\0\xff", b"\x1f", b"\x03\0", b"\0\0\xff\xff", b"\x01\0\0\xff\xff",
    gzip.compress(b"", mtime=0), gzip.compress(b"User-agent: *\nDisallow: /\n", mtime=0),
)  # fmt: skip
SEEDS = (
    b"\x10\x01\x01" + gzip.compress(b"User-agent: *\n", mtime=0),
    b"\x03\x03\x08" + gzip.compress(b"a", mtime=0) * 3,
    b"\x20\x05\x02" + gzip.compress(b"\0" * 100_000, mtime=0),
    b"\x01\x02\x09" + b"User-agent: *\nDisallow: /\n" * 3,
)
GZIP = ("gzip", "x-gzip")
CODINGS = ("gzip", "", " X-GZIP ", "identity", "br", "gzip, gzip")


def one_input(data: bytes) -> None:
    """Input: three octets for chunk size, coding, and limit, then the body."""
    if len(data) < 3:
        return
    size, flags, limit = data[0] + 1, data[1], data[2] * 16
    coding, junk_allowed = CODINGS[flags // 2 % len(CODINGS)], bool(flags & 1)
    body = data[3:] if flags < 128 else gzip.compress(data[3:], mtime=0)
    cut_short, finds_gzip = bool(flags & 64), bool(flags & 32)
    with in_time(data):
        make = partial(Inflater, coding, limit, junk_allowed=junk_allowed, finds_gzip=finds_gzip)
        seen = [inflated(make(), body, each, cut_short) for each in (size, len(body) or 1)]
    for decoded, end in seen:
        expect(len(decoded) <= limit, "more than the limit", len(decoded), limit)
        full = end is not BodyEnd.CAPPED or len(decoded) == limit
        expect(full, "capped below the limit", len(decoded), limit)
        expect(end is not BodyEnd.COMPLETE or not cut_short, "a body cut short counts as complete", end)
    (decoded, end), (whole, whole_end) = seen
    # If invalid data follows right after the limit, zlib drops output depending on where a chunk ends.
    if {end, whole_end} != {BodyEnd.CAPPED, BodyEnd.CORRUPT}:
        # The part of a corrupt body before the error is not used.
        same = end is whole_end and (end not in (BodyEnd.COMPLETE, BodyEnd.CAPPED) or decoded == whole)
        expect(same, "the chunks change the result", *seen)
    if coding.strip().lower() in GZIP and end is BodyEnd.COMPLETE and body and not junk_allowed:
        expect(decoded == gzip.decompress(body), "the result differs from gzip's", decoded)


def inflated(inflater: Inflater, body: bytes, size: int, cut_short: bool) -> tuple[bytes, BodyEnd]:
    """Return the result of an inflater for a body in chunks."""
    for start in range(0, len(body), size):
        if inflater.full:
            break
        try:
            inflater.feed(body[start : start + size])
        except zlib.error as error:
            raise AssertionError(f"zlib's own error: {error}") from error
    return inflater.body, inflater.end(cut_short=cut_short)
