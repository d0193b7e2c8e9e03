"""Connections that stay silent, crawl, or break: rows of the fault matrix."""

from polite.robots.reason import Reason
from tests.faults.row import denied, parsed
from tests.faults.stage import OK, RULES, http, hung_up_after, moved, ok, reset_after, silence, slowly, tls

CONNECTIONS = [
    denied("79", "a connection without a response", Reason.TIMEOUT, http(silence)),
    denied("80", "headers octet by octet", Reason.TIMEOUT, http(slowly(ok(RULES, b"X: " + b"y" * 500)))),
    denied("81", "a body octet by octet", Reason.TIMEOUT, http(slowly(ok(RULES * 10)))),
    denied("82", "closed before the reply", Reason.CONNECTION_LOST, http(b"")),
    denied("83", "closed within a header", Reason.CONNECTION_LOST, http(OK + b"Content-Le")),
    denied("84", "reset at once", Reason.CONNECTION_LOST, http(reset_after(b""))),
    denied(
        "85",
        "reset within the body",
        Reason.BODY_CUT_SHORT,
        http(reset_after(OK + b"Content-Length: 100\r\n\r\n" + RULES)),
    ),
    denied(
        "85b",
        "reset within a body that the end of the connection ends",
        Reason.BODY_CUT_SHORT,
        http(reset_after(OK + b"\r\n" + RULES)),
    ),
    denied(
        "85c",
        "TLS cut without a close_notify within a body that the end of the connection ends",
        Reason.BODY_CUT_SHORT,
        tls(hung_up_after(OK + b"\r\n" + RULES)),
    ),
    parsed(
        "85d", "TLS cut without a close_notify after a body of the announced length", tls(hung_up_after(ok()))
    ),
    parsed("85e", "a close_notify that ends a body without a length", tls(OK + b"\r\n" + RULES)),
    parsed("86", "a second response after the first", http(ok() + ok(b"User-agent: *\nAllow: /\n"))),
    parsed(
        "87",
        "closed after each response without notice: each hop has its own connection",
        http(moved(b"/there"), ok()),
        hits=2,
    ),
]
