"""Answers 4xx, 5xx, and beyond: rows of the fault matrix."""

from polite.robots.dialect import GOOGLE
from polite.robots.reason import Reason
from tests.faults.row import allowed, denied, parsed
from tests.faults.stage import OK, answered, endless, http, ok

REFUSALS = [
    *(
        allowed(f"42-{status}", f"{status}", http(answered(b"%d X" % status)))
        for status in (400, 404, 410, 418, 426, 451, 499)
    ),
    *(
        allowed(
            f"43-{status}",
            f"{status}",
            http(answered(b"%d X" % status)),
            option="RobotsPolicy.denied_statuses",
        )
        for status in (401, 403)
    ),
    denied(
        "43-denied",
        "403 if the policy denies it",
        Reason.CLIENT_ERROR,
        http(answered(b"403 Forbidden")),
        robots={"denied_statuses": frozenset({403})},
        option="RobotsPolicy.denied_statuses",
    ),
    denied(
        "44-407",
        "407: a response of our own proxy, not of the site",
        Reason.PROXY_FAILED,
        http(answered(b"407 Proxy Authentication Required")),
    ),
    *(
        allowed(
            f"44-{status}",
            f"{status}, and again after one retry",
            http(answered(b"%d X" % status)),
            hits=2,
            option="RobotsPolicy.retry_once_statuses",
        )
        for status in (408, 421, 425)
    ),
    parsed(
        "44-then",
        "408, then the file after one retry",
        http(answered(b"408 Request Timeout"), ok()),
        hits=2,
        option="RobotsPolicy.retry_once_statuses",
    ),
    allowed(
        "45a",
        "429 with Retry-After: no restriction, and the origin backs off for that long",
        http(answered(b"429 Too Many Requests", b"Retry-After: 77")),
        option="RobotsPolicy.denied_statuses",
    ),
    denied(
        "45b",
        "429 in the dialect google",
        Reason.CLIENT_ERROR,
        http(answered(b"429 Too Many Requests", b"Retry-After: 77")),
        robots={"dialect": GOOGLE},
        option="RobotsPolicy.denied_statuses",
    ),
    *(
        denied(f"46-{status}", f"{status}", Reason.SERVER_ERROR, http(answered(b"%d X" % status)))
        for status in (500, 501, 502, 503, 504, 599)
    ),
    allowed(
        "46-missing",
        "500, for a page that cannot exist too, and a front page without end: if the policy infers that there is no file",
        http(answered(b"500 X"), answered(b"502 X"), endless(OK + b"\r\n", b"x" * 65_536)),
        Reason.INFERRED_MISSING,
        hits=3,
        robots={"infer_missing": True},
        option="RobotsPolicy.infer_missing",
        heavy=True,
    ),
    denied(
        "46-broken",
        "500, and for the front page too: nothing is inferred",
        Reason.SERVER_ERROR,
        http(answered(b"500 X")),
        hits=3,
        robots={"infer_missing": True},
    ),
    denied(
        "47",
        "503 with Retry-After as a date",
        Reason.SERVER_ERROR,
        http(answered(b"503 X", b"Retry-After: Fri, 31 Dec 2999 23:59:59 GMT")),
    ),
    *(
        denied(
            f"48-{n}",
            f"503 with Retry-After: {shown}",
            Reason.SERVER_ERROR,
            http(answered(b"503 X", b"Retry-After: " + value)),
        )
        for n, (shown, value) in enumerate(
            [
                ("soon", b"soon"),
                ("-5", b"-5"),
                ("forty nines", b"9" * 40),
                ("octets that are not text", b"\xff\xfe"),
                ("1e999", b"1e999"),
            ],
            1,
        )
    ),
    *(
        denied(f"49-{status}", f"{status}", Reason.ODD_STATUS, http(answered(status.encode() + b" X")))
        for status in ("600", "999", "000", "099")
    ),
    allowed(
        "49-allowed",
        "999 if the policy takes it for no file",
        http(answered(b"999 X")),
        Reason.ODD_STATUS,
        robots={"allowed_statuses": frozenset({999})},
        option="RobotsPolicy.allowed_statuses",
    ),
]
