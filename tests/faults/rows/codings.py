"""How a body is packed: rows of the fault matrix."""

import gzip
import zlib
from typing import Any

from polite.robots.reason import Reason
from tests.faults.row import denied, parsed
from tests.faults.stage import OK, RULES, endless, http, many, ok

GZIP = b"Content-Encoding: gzip"
PACKED = gzip.compress(RULES)


def bomb() -> Any:
    """512 MiB of comment behind the rules, made while it is sent."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(RULES) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same input gives the same octets: one MiB stands for all.
    mebibyte = packer.compress(b"#" * 1_048_576) + packer.flush(zlib.Z_FULL_FLUSH)
    return many(mebibyte, 512, before=OK + GZIP + b"\r\n\r\n" + start)


CODINGS = [
    denied(
        "64a",
        "an unknown Content-Encoding",
        Reason.CODING_UNKNOWN,
        http(ok(RULES, b"Content-Encoding: rot13")),
    ),
    denied(
        "64b",
        "gzip within gzip",
        Reason.CODING_UNKNOWN,
        http(ok(gzip.compress(PACKED), b"Content-Encoding: gzip, gzip")),
    ),
    denied("65a", "labelled gzip, and is not gzip", Reason.BODY_CORRUPT, http(ok(RULES, GZIP))),
    denied("65b", "gzip cut short", Reason.BODY_CUT_SHORT, http(ok(PACKED[:-9], GZIP))),
    denied(
        "65c",
        "gzip with a wrong checksum",
        Reason.BODY_CORRUPT,
        http(ok(PACKED[:-8] + bytes(4) + PACKED[-4:], GZIP)),
    ),
    parsed("65d", "gzip without a Content-Encoding", http(ok(PACKED))),
    denied(
        "65e",
        "gzip within gzip, labelled gzip once",
        Reason.BODY_CORRUPT,
        http(ok(gzip.compress(PACKED), GZIP)),
    ),
    denied("65f", "gzip's magic number, and then no gzip", Reason.BODY_CORRUPT, http(ok(PACKED[:2] + RULES))),
    parsed(
        "66a",
        "junk after the gzip stream: the complete stream counts",
        http(ok(PACKED + b"junk", GZIP)),
        option="FetchPolicy.junk_after_gzip",
    ),
    denied(
        "66b",
        "junk after the gzip stream if the policy does not allow it",
        Reason.BODY_CORRUPT,
        http(ok(PACKED + b"junk", GZIP), fetching={"junk_after_gzip": False}),
    ),
    parsed("67", "a gzip bomb of 512 MiB: the first 512,000 decoded octets count", http(bomb()), heavy=True),
    denied(
        "68",
        "a brotli body, which polite does not accept",
        Reason.CODING_UNKNOWN,
        http(endless(OK + b"Content-Encoding: br\r\n\r\n", bytes(65_536))),
        heavy=True,
    ),
    denied(
        "69",
        "a zstd body, which polite does not accept",
        Reason.CODING_UNKNOWN,
        http(endless(OK + b"Content-Encoding: zstd\r\n\r\n", bytes(65_536))),
        heavy=True,
    ),
    denied(
        "70",
        "20,000 gzip members",
        Reason.BODY_CORRUPT,
        http(many(gzip.compress(b"#\n"), 20_000, before=OK + GZIP + b"\r\n\r\n")),
        heavy=True,
    ),
]
