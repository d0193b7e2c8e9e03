"""Successes that are none, and redirects that go nowhere: rows of the fault matrix."""

from polite.robots.reason import Reason
from tests.faults.row import DENY, PARSE, Row, denied, parsed
from tests.faults.stage import RULES, answered, http, moved, ok

STATUSES = [
    parsed("15a", "204", http(answered(b"204 No Content")), allowed=True),
    parsed("15b", "205", http(answered(b"205 Reset Content")), allowed=True),
    Row(
        "16",
        "204 with a body",
        DENY,
        Reason.PROTOCOL_ERROR,
        http(ok(status=b"204 No Content")),
        pure=(PARSE, Reason.OK),
        why="A 204 has no body (RFC 9110, 15.3.5). The C parser takes the body for an invalid second response, and fails. "
        "The pure-Python one does not read it. The verdict is that of a plain 204: a file without rules.",
    ),
    denied(
        "17a",
        "206 without a Range request, with a part",
        Reason.ODD_STATUS,
        http(ok(RULES, b"Content-Range: bytes 0-32/99", status=b"206 Partial Content")),
    ),
    parsed(
        "17b",
        "206 without a Range request, with the whole file",
        http(
            ok(
                RULES,
                b"Content-Range: bytes 0-%d/%d" % (len(RULES) - 1, len(RULES)),
                status=b"206 Partial Content",
            )
        ),
    ),
    denied(
        "18",
        "304 without a conditional request, and without a copy",
        Reason.ODD_STATUS,
        http(answered(b"304 Not Modified")),
    ),
    denied(
        "19a",
        "300 without a Location",
        Reason.REDIRECT_WITHOUT_TARGET,
        http(moved(None, status=b"300 Multiple Choices")),
    ),
    denied("19b", "302 with an empty Location", Reason.REDIRECT_WITHOUT_TARGET, http(moved(b""))),
]
