"""What comes before a body: rows of the fault matrix."""

from polite.robots.reason import Reason
from tests.faults.row import denied, parsed
from tests.faults.stage import OK, RULES, endless, http, many, ok

HEADS = [
    denied("71a", "a header of 100 KB", Reason.HEAD_TOO_LARGE, http(ok(RULES, b"X: " + b"y" * 100_000))),
    denied(
        "71b",
        "a header without end",
        Reason.HEAD_TOO_LARGE,
        http(endless(OK + b"X: ", b"y" * 10_000)),
        heavy=True,
    ),
    denied("72a", "5,000 headers", Reason.HEAD_TOO_LARGE, http(ok(RULES, *[b"X: y"] * 5_000))),
    denied(
        "72b",
        "headers without end",
        Reason.HEAD_TOO_LARGE,
        http(endless(OK, b"X: y\r\n" * 1_000)),
        heavy=True,
    ),
    parsed("73a", "a folded header", http(ok(RULES, b"X: y\r\n z"))),
    parsed("73b", "header lines that end in LF", http(ok().replace(b"\r\n", b"\n"))),
    denied("74a", "NUL in a header", Reason.PROTOCOL_ERROR, http(ok(RULES, b"X: y\0z"))),
    denied("74b", "a header without colon", Reason.PROTOCOL_ERROR, http(ok(RULES, b"XYZ"))),
    denied("74c", "a space in a header's name", Reason.PROTOCOL_ERROR, http(ok(RULES, b"X Y: z"))),
    denied(
        "75",
        "a status line of 100 KB",
        Reason.HEAD_TOO_LARGE,
        http(b"HTTP/1.1 200 " + b"O" * 100_000 + b"\r\n\r\n" + RULES),
    ),
    parsed(
        "76", "100 cookies: none is kept", http(ok(RULES, *(b"Set-Cookie: c%d=1" % n for n in range(100))))
    ),
    parsed(
        "77a",
        "20,000 responses 103 before the file",
        http(many(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 20_000, before=b"", after=ok())),
        heavy=True,
    ),
    denied(
        "77b",
        "responses 100 without end",
        Reason.TIMEOUT,
        http(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100)),
        heavy=True,
    ),
    denied(
        "78",
        "101 Switching Protocols",
        Reason.ODD_STATUS,
        http(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
        option="",
    ),
]
