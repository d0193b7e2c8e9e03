"""What a server answers: the file in any form, statuses that are none or no success: rows of the fault matrix."""

from polite.robots.dialect import GOOGLE
from polite.robots.reason import Reason
from tests.faults.row import DENY, PARSE, Row, allowed, denied, failing, parsed
from tests.faults.stage import OK, RULES, answered, chunked, endless, http, many, moved, ok

BODIES = [
    parsed("1", "200 with the file as text/plain", ok(RULES, b"Content-Type: text/plain")),
    parsed("2", "200 without a Content-Type", ok()),
    parsed("3", "200 with an empty body", ok(b""), allowed=True),
    parsed("4", "203", ok(status=b"203 Non-Authoritative Information")),
    parsed(
        "5", "200 with HTML (a page instead of a 404)", ok(b"<html>\n<p>User-agent: *</p>\n"), allowed=True
    ),
    parsed("6", "200 with binary data", ok(bytes(range(256)) * 20), allowed=True),
    parsed("7", "200 with NUL octets: no line ends", ok(b"User-agent: *\nDis\0allow: /\nDisallow: /private")),
    parsed("8", "200 that begins with a byte order mark", ok(b"\xef\xbb\xbf" + RULES)),
    parsed("9a", "200 in UTF-16 with its byte order mark", ok(RULES.decode().encode("utf-16"))),
    parsed(
        "9b",
        "200 in UTF-16 without a mark: no rule can be read",
        ok(RULES.decode().encode("utf-16-le")),
        allowed=True,
    ),
    parsed("10a", "lines that end in CR", ok(RULES.replace(b"\n", b"\r"))),
    parsed(
        "10b",
        "lines that end in CR, LF and CR LF in turn",
        ok(b"User-agent: *\r\nAllow: /x\rDisallow: /private\n"),
    ),
    parsed(
        "11",
        "one line of 600 KB: the first 512,000 octets count, and a truncated Disallow disallows more",
        ok(RULES + b"Disallow: /" + b"x" * 600_000),
        heavy=True,
    ),
    parsed(
        "12",
        "a million lines: the first 512,000 octets count",
        http(many(RULES, 1_000_000, before=OK + b"\r\n")),
        heavy=True,
    ),
    parsed("13", "a body without end", http(endless(OK + b"\r\n", RULES * 500)), heavy=True),
    parsed(
        "14",
        "a chunked body without end",
        http(endless(chunked(b""), b"%x\r\n" % (len(RULES) * 500) + RULES * 500 + b"\r\n")),
        heavy=True,
    ),
]


def saying(status: str | int, *fields: bytes) -> bytes:
    return answered(f"{status} X".encode(), *fields)


def part_of(octets: int) -> bytes:
    """The file as the first part of one of so many octets."""
    said = b"Content-Range: bytes 0-%d/%d" % (len(RULES) - 1, octets)
    return ok(RULES, said, status=b"206 Partial Content")


STATUSES = [
    parsed("15a", "204", answered(b"204 No Content"), allowed=True),
    parsed("15b", "205", answered(b"205 Reset Content"), allowed=True),
    Row(
        "16",
        "204 with a body",
        DENY,
        Reason.PROTOCOL_ERROR,
        http(ok(status=b"204 No Content")),
        pure=(PARSE, Reason.OK),
        why="A 204 has no body (RFC 9110, 15.3.5). The C parser takes it for an invalid second response; the Python one "
        "does not read it.",
    ),
    denied("17a", "206 without a Range request, with a part", Reason.ODD_STATUS, part_of(99)),
    parsed("17b", "206 without a Range request, with the whole file", part_of(len(RULES))),
    denied("18", "304 without a conditional request, and without a copy", Reason.ODD_STATUS, saying(304)),
    denied(
        "19a",
        "300 without a Location",
        Reason.REDIRECT_WITHOUT_TARGET,
        moved(None, status=b"300 Multiple Choices"),
    ),
    denied("19b", "302 with an empty Location", Reason.REDIRECT_WITHOUT_TARGET, moved(b"")),
]

DENIED, RETRIED = "RobotsPolicy.denied_statuses", "RobotsPolicy.retry_once_statuses"
BUSY = answered(b"429 Too Many Requests", b"Retry-After: 77")
ODD_TIMES = {
    "soon": b"soon",
    "-5": b"-5",
    "forty nines": b"9" * 40,
    "octets that are not text": b"\xff\xfe",
    "1e999": b"1e999",
}

REFUSALS = [
    *(allowed(f"42-{each}", f"{each}", saying(each)) for each in (400, 404, 410, 418, 426, 451, 499)),
    *(allowed(f"43-{each}", f"{each}", saying(each), option=DENIED) for each in (401, 403)),
    denied(
        "43-denied",
        "403 if the policy denies it",
        Reason.CLIENT_ERROR,
        saying(403),
        robots={"denied_statuses": frozenset({403})},
        option=DENIED,
    ),
    denied("44-407", "407: a response of our own proxy, not of the site", Reason.PROXY_FAILED, saying(407)),
    *(
        allowed(f"44-{each}", f"{each}, and again after one retry", saying(each), hits=2, option=RETRIED)
        for each in (408, 421, 425)
    ),
    parsed("44-then", "408, then the file after one retry", http(saying(408), ok()), hits=2, option=RETRIED),
    allowed(
        "45a",
        "429 with Retry-After: no restriction, and the origin backs off for that long",
        BUSY,
        option=DENIED,
    ),
    denied(
        "45b",
        "429 in the dialect google",
        Reason.CLIENT_ERROR,
        BUSY,
        robots={"dialect": GOOGLE},
        option=DENIED,
    ),
    *(failing(f"46-{each}", f"{each}", saying(each)) for each in (500, 501, 502, 503, 504, 599)),
    allowed(
        "46-missing",
        "500, for a page that cannot exist too, and a front page without end: if the policy infers that there is no file",
        http(saying(500), saying(502), endless(OK + b"\r\n", b"x" * 65_536)),
        Reason.INFERRED_MISSING,
        hits=3,
        robots={"infer_missing": True},
        heavy=True,
    ),
    failing(
        "46-broken",
        "500, and for the front page too: nothing is inferred",
        saying(500),
        hits=3,
        robots={"infer_missing": True},
    ),
    failing(
        "47", "503 with Retry-After as a date", saying(503, b"Retry-After: Fri, 31 Dec 2999 23:59:59 GMT")
    ),
    *(
        failing(f"48-{n}", f"503 with Retry-After: {shown}", saying(503, b"Retry-After: " + value))
        for n, (shown, value) in enumerate(ODD_TIMES.items(), 1)
    ),
    *(denied(f"49-{each}", each, Reason.ODD_STATUS, saying(each)) for each in ("600", "999", "000", "099")),
    allowed(
        "49-allowed",
        "999 if the policy takes it for no file",
        saying(999),
        Reason.ODD_STATUS,
        robots={"allowed_statuses": frozenset({999})},
    ),
]
