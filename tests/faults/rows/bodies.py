"""200, and what then comes: rows of the fault matrix."""

from tests.faults.row import parsed
from tests.faults.stage import OK, RULES, chunked, endless, http, many, ok

LONG = b"User-agent: *\nDisallow: /private\n"

BODIES = [
    parsed("1", "200 with the file as text/plain", http(ok(RULES, b"Content-Type: text/plain"))),
    parsed("2", "200 without a Content-Type", http(ok())),
    parsed("3", "200 with an empty body", http(ok(b"")), allowed=True),
    parsed("4", "203", http(ok(status=b"203 Non-Authoritative Information"))),
    parsed(
        "5",
        "200 with HTML (a page instead of a 404)",
        http(ok(b"<html>\n<p>User-agent: *</p>\n")),
        allowed=True,
    ),
    parsed("6", "200 with binary data", http(ok(bytes(range(256)) * 20)), allowed=True),
    parsed(
        "7",
        "200 with NUL octets: no line ends",
        http(ok(b"User-agent: *\nDis\0allow: /\nDisallow: /private")),
    ),
    parsed("8", "200 that begins with a byte order mark", http(ok(b"\xef\xbb\xbf" + RULES))),
    parsed("9a", "200 in UTF-16 with its byte order mark", http(ok(RULES.decode().encode("utf-16")))),
    parsed(
        "9b",
        "200 in UTF-16 without a mark: no rule can be read",
        http(ok(RULES.decode().encode("utf-16-le"))),
        allowed=True,
    ),
    parsed("10a", "lines that end in CR", http(ok(RULES.replace(b"\n", b"\r")))),
    parsed(
        "10b",
        "lines that end in CR, LF and CR LF in turn",
        http(ok(b"User-agent: *\r\nAllow: /x\rDisallow: /private\n")),
    ),
    parsed(
        "11",
        "one line of 600 KB: the first 512,000 octets count, and a truncated Disallow disallows more",
        http(ok(RULES + b"Disallow: /" + b"x" * 600_000)),
        heavy=True,
    ),
    parsed(
        "12",
        "a million lines: the first 512,000 octets count",
        http(many(LONG, 1_000_000, before=OK + b"\r\n")),
        heavy=True,
    ),
    parsed("13", "a body without end", http(endless(OK + b"\r\n", LONG * 500)), heavy=True),
    parsed(
        "14",
        "a chunked body without end",
        http(endless(chunked(b""), b"%x\r\n" % (len(LONG) * 500) + LONG * 500 + b"\r\n")),
        heavy=True,
    ),
]
