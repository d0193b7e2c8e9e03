"""What can go wrong, whose fault it is, and what to change; each error carries the URL it is about."""

import re

# Long input is shown by its head: an error message must not carry a megabyte of URL into a log line.
_SHOWN = 200
_USERINFO = re.compile(r"^([^/?#\\]*:)?([/\\]{2,})([^/?#\\]*)@", re.DOTALL)


def shown(url: str) -> str:
    """A URL as it may stand in an error or a log line: without credentials, without control characters, and short."""
    head = url[: 4 * _SHOWN]
    head = _USERINFO.sub(lambda m: f"{m[1] or ''}{m[2]}", head.lstrip())
    head = "".join(c if c.isprintable() else repr(c)[1:-1] for c in head[:_SHOWN])
    return head if len(url) <= _SHOWN else f"{head}... ({len(url)} characters)"


class PoliteError(Exception):
    """The base of every error that polite raises. `url` is what it is about (credentials removed), or None."""

    def __init__(self, message: str, *, url: str | None = None) -> None:
        super().__init__(message)
        self.url = None if url is None else shown(url)


class InvalidURL(PoliteError, ValueError):
    """A string is no URL that a crawler could fetch (WHATWG URL, basic URL parser: failure).

    `reason` says what is wrong, `position` (0-based, in the string as given) where, or None when it is the whole.
    """

    def __init__(self, url: str, reason: str, position: int | None = None) -> None:
        where = "" if position is None else f" (at character {position})"
        super().__init__(f"{shown(url)!r} is no URL to fetch: {reason}{where}", url=url)
        self.reason = reason
        self.position = position


class InvalidUserAgent(PoliteError, ValueError):
    """A user agent that cannot be sent (RFC 9110, 10.1.5), or that names no product token to look for in a file."""


class InvalidOption(PoliteError, ValueError):
    """An option's value is outside what the option can mean; the message names the option and its limits."""


class GateClosed(PoliteError):
    """The gate was closed: before the call, or while the caller was waiting for its turn."""


class PermitMisused(PoliteError, RuntimeError):
    """A permit was entered twice, or reported outside its block or more than once."""


class Overloaded(PoliteError):
    """A bound was reached (waiting requests, origins in back-off); the message names the option that moves it."""
