"""Where a response begins and where its body ends: rows of the fault matrix."""

from polite.robots.reason import Reason
from tests.faults.row import DENY, denied, parsed
from tests.faults.stage import OK, RULES, chunked, http, many, ok

FRAMING = [
    denied("50a", "a status that is not a number", Reason.PROTOCOL_ERROR, http(b"HTTP/1.1 abc OK\r\n\r\n")),
    denied("50b", "HTTP/0.9: the body alone", Reason.PROTOCOL_ERROR, http(RULES)),
    denied("50c", "an HTTP/2 preface", Reason.PROTOCOL_ERROR, http(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    denied("50d", "an SSH banner", Reason.PROTOCOL_ERROR, http(b"SSH-2.0-OpenSSH_9.2\r\n")),
    denied("50e", "an ICY status line", Reason.PROTOCOL_ERROR, http(b"ICY 200 OK\r\n\r\n" + RULES)),
    parsed(
        "51a", "HTTP/1.0, the end of the connection ends the body", http(b"HTTP/1.0 200 OK\r\n\r\n" + RULES)
    ),
    parsed("51b", "no reason phrase", http(ok(status=b"200"))),
    denied(
        "52",
        "Content-Length too large",
        Reason.BODY_CUT_SHORT,
        http(OK + b"Content-Length: 100\r\n\r\n" + RULES),
    ),
    denied(
        "53",
        "Content-Length too small",
        Reason.BODY_CUT_SHORT,
        http(OK + b"Content-Length: 14\r\n\r\n" + RULES),
    ),
    denied(
        "54",
        "Content-Length below zero",
        Reason.PROTOCOL_ERROR,
        http(OK + b"Content-Length: -1\r\n\r\n" + RULES),
    ),
    denied(
        "55",
        "Content-Length of forty nines",
        Reason.PROTOCOL_ERROR,
        http(OK + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + RULES),
    ),
    denied(
        "56",
        "Content-Length twice",
        Reason.PROTOCOL_ERROR,
        http(OK + b"Content-Length: 33\r\nContent-Length: 14\r\n\r\n" + RULES),
    ),
    denied(
        "57",
        "Content-Length and chunks",
        Reason.PROTOCOL_ERROR,
        http(
            OK + b"Content-Length: 33\r\nTransfer-Encoding: chunked\r\n\r\n21\r\n" + RULES + b"\r\n0\r\n\r\n"
        ),
    ),
    denied(
        "58",
        "a chunk size that is not a number",
        Reason.PROTOCOL_ERROR,
        http(chunked(b"ZZ\r\n" + RULES + b"\r\n0\r\n\r\n")),
    ),
    denied(
        "59",
        "a chunk size that overflows",
        Reason.PROTOCOL_ERROR,
        http(chunked(b"F" * 20 + b"\r\n" + RULES + b"\r\n0\r\n\r\n")),
        pure=(DENY, Reason.BODY_CUT_SHORT),
        why="The C parser counts in 64 bits and notices the overflow. The pure-Python one waits for that many octets, and the "
        "connection ends before they arrive. Both deny.",
    ),
    denied("60", "no last chunk", Reason.BODY_CUT_SHORT, http(chunked(b"21\r\n" + RULES + b"\r\n"))),
    parsed(
        "61",
        "a chunk extension of 200 KB",
        http(chunked(b"21;" + b"x" * 200_000 + b"\r\n" + RULES + b"\r\n0\r\n\r\n")),
        pure=(DENY, Reason.HEAD_TOO_LARGE),
        why="The C parser skips an extension without keeping it. The pure-Python one needs the whole line, of which it keeps "
        "at most 8,190 octets, and denies.",
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
        http(OK + b"Transfer-Encoding: rot13\r\nConnection: close\r\n\r\n" + RULES),
        option="FetchPolicy.transfer_codings",
    ),
    parsed(
        "63b",
        "a Transfer-Encoding that the policy names",
        http(
            OK + b"Transfer-Encoding: identity\r\nConnection: close\r\n\r\n" + RULES,
            fetching={"transfer_codings": frozenset({"identity"})},
        ),
        option="FetchPolicy.transfer_codings",
    ),
]
