"""Why a URL has no page, or its redirect was not followed: a stable code, and the detail in words, the cause first.

A code that begins with `ROBOTS_` or `PAGE_` says which request failed; the rest is the name of a `polite.Reason`, mostly.
"""

from typing import NamedTuple

import aiohttp

from polite.cli.fetch.page import AddressBlocked, ConnectionLost, NoFinalResponse
from polite.cli.option_names import fetch_text, option_of
from polite.errors import InvalidURL
from polite.robots.reason import Reason
from polite.transports.http import reason_of_error

ROBOTS = "ROBOTS_"
_PAGE = "PAGE_"
_LONGEST = 500
# Their words say little; aiohttp's say more.
_VAGUE = frozenset({Reason.CONNECT_FAILED, Reason.DNS_FAILURE, Reason.PROTOCOL_ERROR, Reason.TLS_FAILURE})
# How the frontier names why it dropped a URL, if robots.txt is not the reason.
_DROPS = {
    "PacingPolicy.max_pages=": "MAX_PAGES",
    "PacingPolicy.max_bytes=": "MAX_ORIGIN_BYTES",
    "PacingPolicy.max_failures=": "MAX_FAILURES",
    "PacingPolicy.max_crawl_delay=": "LONG_DELAY",
    "max_tries=": "MAX_TRIES",
    "the server asks for ": f"{_PAGE}DEMAND",
}


class Cause(NamedTuple):
    """Why a URL has no page.

    Attributes:
        code: for programs. It does not change.
        detail: for people.
    """

    code: str
    detail: str


def of_line(error: InvalidURL) -> Cause:
    """Return why a line of the list is no URL to fetch."""
    return Cause("INVALID_URL", error.reason)


def of_refusal(reason: str, rule: str | None) -> Cause:
    """Return why robots.txt disallows the URL."""
    return Cause(reason, Reason[reason].value if rule is None else rule)


def of_drop(because: str) -> Cause:
    """Return why the frontier dropped the URL."""
    if because in Reason.__members__:
        return Cause(
            f"{ROBOTS}{because}", f"{words_of(because)}; robots.txt is unreachable, so no page was requested"
        )
    codes = (code for start, code in _DROPS.items() if because.startswith(start))
    return Cause(next(codes, "NO_TURN"), fetch_text(because))


def words_of(because: str) -> str:
    """Return in words why robots.txt is unreachable, with the option that may change it."""
    reason = Reason.__members__.get(because)
    if reason is None:
        return because
    option = option_of(reason.option)
    return reason.value if option is None else f"{reason.value} (see {option})"


def of_error(error: aiohttp.ClientError | TimeoutError, *, timeout_s: float) -> Cause:
    """Return why the last attempt got no response."""
    match error:
        case AddressBlocked():
            reason, text = Reason.ADDRESS_REFUSED, str(error)
        case TimeoutError():
            reason, text = Reason.TIMEOUT, f"no complete response within {timeout_s:g} s (--timeout)"
        case ConnectionLost():
            reason, text = Reason.CONNECTION_LOST, Reason.CONNECTION_LOST.value
        case NoFinalResponse():
            reason, text = Reason.PROTOCOL_ERROR, str(error)
        case _:
            reason = reason_of_error(error)
            text = f"{reason.value} ({error})" if reason in _VAGUE else reason.value
    return Cause(f"{_PAGE}{reason.name}", f"{fetch_text(text)[:_LONGEST]}; the page was not fetched")


def of_status(status: int) -> Cause:
    """Return why a page with this status was given up."""
    return Cause(f"{_PAGE}STATUS", f"status {status} is retried, and this was the last attempt (--tries)")


def of_redirect(error: InvalidURL) -> Cause:
    """Return why a redirect to this URL was not followed."""
    return Cause(f"{_PAGE}{Reason.REDIRECT_INVALID.name}", f"{error}; the redirect was not followed")


def of_redirects(limit: int) -> Cause:
    """Return why one redirect more was not followed."""
    text = f"more than {limit} redirects (--max-redirects); the last one was not followed"
    return Cause(f"{_PAGE}{Reason.TOO_MANY_REDIRECTS.name}", text)
