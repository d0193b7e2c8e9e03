"""How a response is framed, packed and headed: rows of the fault matrix."""

import gzip
import zlib
from typing import Any

from polite.robots.reason import Reason
from tests.faults.row import DENY, cut_short, denied, flooded, invalid, parsed
from tests.faults.stage import OK, RULES, chunk, chunked, headed, http, many, ok

FRAMING = [
    invalid("50a", "a status that is not a number", b"HTTP/1.1 abc OK\r\n\r\n"),
    invalid("50b", "HTTP/0.9: the body alone", RULES),
    invalid("50c", "an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    invalid("50d", "an SSH banner", b"SSH-2.0-OpenSSH_9.2\r\n"),
    invalid("50e", "an ICY status line", b"ICY 200 OK\r\n\r\n" + RULES),
    parsed("51a", "HTTP/1.0, the end of the connection ends the body", b"HTTP/1.0 200 OK\r\n\r\n" + RULES),
    parsed("51b", "no reason phrase", ok(status=b"200")),
    cut_short("52", "Content-Length too large", headed(b"Content-Length: 100")),
    cut_short("53", "Content-Length too small", headed(b"Content-Length: 14")),
    invalid("54", "Content-Length below zero", headed(b"Content-Length: -1")),
    invalid("55", "Content-Length of forty nines", headed(b"Content-Length: " + b"9" * 40)),
    invalid("56", "Content-Length twice", headed(b"Content-Length: 33", b"Content-Length: 14")),
    invalid(
        "57",
        "Content-Length and chunks",
        headed(b"Content-Length: 33", b"Transfer-Encoding: chunked", body=chunk(b"21")),
    ),
    invalid("58", "a chunk size that is not a number", chunked(chunk(b"ZZ"))),
    invalid(
        "59",
        "a chunk size that overflows",
        chunked(chunk(b"F" * 20)),
        pure=(DENY, Reason.BODY_CUT_SHORT),
        why="The C parser notices the overflow. The Python one waits for that many octets, and the connection ends first.",
    ),
    cut_short("60", "no last chunk", chunked(b"21\r\n" + RULES + b"\r\n")),
    parsed(
        "61",
        "a chunk extension of 200 KB",
        chunked(chunk(b"21;" + b"x" * 200_000)),
        pure=(DENY, Reason.HEAD_TOO_LARGE),
        why="The C parser skips an extension. The Python one needs the whole line, of which it keeps at most 8,190 octets.",
        heavy=True,
    ),
    denied(
        "62",
        "50,000 trailers",
        Reason.HEAD_TOO_LARGE,
        http(many(b"X-Y: z\r\n", 50_000, before=chunked(b"21\r\n" + RULES + b"\r\n0\r\n"), after=b"\r\n")),
        heavy=True,
    ),
    denied(
        "63",
        "an unknown Transfer-Encoding",
        Reason.TRANSFER_CODING_UNKNOWN,
        headed(b"Transfer-Encoding: rot13", b"Connection: close"),
    ),
    parsed(
        "63b",
        "a Transfer-Encoding that the policy names",
        http(
            headed(b"Transfer-Encoding: identity", b"Connection: close"),
            fetching={"transfer_codings": frozenset({"identity"})},
        ),
        option="FetchPolicy.transfer_codings",
    ),
]

GZIP = b"Content-Encoding: gzip"
PACKED = gzip.compress(RULES)


def coded(body: bytes, coding: bytes = b"gzip") -> bytes:
    return ok(body, b"Content-Encoding: " + coding)


def bomb() -> Any:
    """512 MiB of comment behind the rules, made while it is sent."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(RULES) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same input gives the same octets: one MiB stands for all.
    mebibyte = packer.compress(b"#" * 1_048_576) + packer.flush(zlib.Z_FULL_FLUSH)
    return many(mebibyte, 512, before=OK + GZIP + b"\r\n\r\n" + start)


CODINGS = [
    denied("64a", "an unknown Content-Encoding", Reason.CODING_UNKNOWN, coded(RULES, b"rot13")),
    denied("64b", "gzip within gzip", Reason.CODING_UNKNOWN, coded(gzip.compress(PACKED), b"gzip, gzip")),
    denied("65a", "labelled gzip, and is not gzip", Reason.BODY_CORRUPT, coded(RULES)),
    cut_short("65b", "gzip cut short", coded(PACKED[:-9])),
    denied(
        "65c", "gzip with a wrong checksum", Reason.BODY_CORRUPT, coded(PACKED[:-8] + bytes(4) + PACKED[-4:])
    ),
    parsed("65d", "gzip without a Content-Encoding", ok(PACKED)),
    denied("65e", "gzip within gzip, labelled gzip once", Reason.BODY_CORRUPT, coded(gzip.compress(PACKED))),
    denied("65f", "gzip's magic number, and then no gzip", Reason.BODY_CORRUPT, ok(PACKED[:2] + RULES)),
    parsed(
        "66a",
        "junk after the gzip stream: the complete stream counts",
        coded(PACKED + b"junk"),
        option="FetchPolicy.junk_after_gzip",
    ),
    denied(
        "66b",
        "junk after the gzip stream if the policy does not allow it",
        Reason.BODY_CORRUPT,
        http(coded(PACKED + b"junk"), fetching={"junk_after_gzip": False}),
    ),
    parsed("67", "a gzip bomb of 512 MiB: the first 512,000 decoded octets count", http(bomb()), heavy=True),
    *(
        flooded(
            row,
            f"a {name} body, which polite does not accept",
            Reason.CODING_UNKNOWN,
            OK + b"Content-Encoding: %s\r\n\r\n" % coding,
            bytes(65_536),
        )
        for row, name, coding in [("68", "brotli", b"br"), ("69", "zstd", b"zstd")]
    ),
    denied(
        "70",
        "20,000 gzip members",
        Reason.BODY_CORRUPT,
        http(many(gzip.compress(b"#\n"), 20_000, before=OK + GZIP + b"\r\n\r\n")),
        heavy=True,
    ),
]

HEADS = [
    denied("71a", "a header of 100 KB", Reason.HEAD_TOO_LARGE, ok(RULES, b"X: " + b"y" * 100_000)),
    flooded("71b", "a header without end", Reason.HEAD_TOO_LARGE, OK + b"X: ", b"y" * 10_000),
    denied("72a", "5,000 headers", Reason.HEAD_TOO_LARGE, ok(RULES, *[b"X: y"] * 5_000)),
    flooded("72b", "headers without end", Reason.HEAD_TOO_LARGE, OK, b"X: y\r\n" * 1_000),
    parsed("73a", "a folded header", ok(RULES, b"X: y\r\n z")),
    parsed("73b", "header lines that end in LF", ok().replace(b"\r\n", b"\n")),
    invalid("74a", "NUL in a header", ok(RULES, b"X: y\0z")),
    invalid("74b", "a header without colon", ok(RULES, b"XYZ")),
    invalid("74c", "a space in a header's name", ok(RULES, b"X Y: z")),
    denied(
        "75",
        "a status line of 100 KB",
        Reason.HEAD_TOO_LARGE,
        b"HTTP/1.1 200 " + b"O" * 100_000 + b"\r\n\r\n" + RULES,
    ),
    parsed("76", "100 cookies: none is kept", ok(RULES, *(b"Set-Cookie: c%d=1" % n for n in range(100)))),
    parsed(
        "77a",
        "20,000 responses 103 before the file",
        http(many(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 20_000, before=b"", after=ok())),
        heavy=True,
    ),
    flooded("77b", "responses 100 without end", Reason.TIMEOUT, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    denied(
        "78",
        "101 Switching Protocols",
        Reason.ODD_STATUS,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        option="",
    ),
]
