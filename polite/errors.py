"""What can go wrong, whose fault it is, and what to change; each error carries the URL it is about."""

import re

# Long input is shown by its head: an error message must not carry a megabyte of URL into a log line.
_SHOWN = 200

# What the URL parser skips must not hide an @ from us. Possessive repeats (*+, ++) keep each match linear.
_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_UNSEEN = re.compile(r"[\t\n\r]+")
# Where an authority may start: `http:user@host` needs no slash, another scheme does.
_SPECIAL_START = re.compile(r"(?:https?|ftp|wss?):[/\\]*+", re.IGNORECASE)
_START = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*+:[/\\]++|[/\\]{2,}+)?")
_SPECIAL_AUTHORITY = re.compile(r"[^/\\?#]*+")
_AUTHORITY = re.compile(r"[^/?#]*+")
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*+\]|[^:]*+)(?::[0-9]*+)?")
_ESCAPED_AT = re.compile(r"%40")
_NESTED = re.compile(r"(?<=[/\\]{2})(?:[^/\\?#@]*+@)++")


def redact_url(url: str) -> str:
    """A URL as it may stand in an error or a log line: without credentials or control characters, and short."""
    text = _without_credentials(_UNSEEN.sub("", url.lstrip(_C0_AND_SPACE)))
    head = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:_SHOWN])
    return head if len(text) <= _SHOWN else f"{head}... ({len(url)} characters)"


def _without_credentials(text: str) -> str:
    """All that could be credentials goes: a URL that is shown mangled is better than a password shown."""
    special = _SPECIAL_START.match(text)
    start = _end(special or _START.match(text))
    authority = text[start : _end((_SPECIAL_AUTHORITY if special else _AUTHORITY).match(text, start))]
    host = start + authority.rfind("@") + 1
    if not _HOST_AND_PORT.fullmatch(text[host : start + len(authority)]):
        # A colon and no port: most likely a password, that holds the slash at which the authority seems to end, or an
        # @ that was escaped by mistake.
        host = max([host, text.rfind("@") + 1, *(at.end() for at in _ESCAPED_AT.finditer(text, host))])
    return text[:start] + _NESTED.sub("", text[host:])


def _end(found: re.Match[str] | None) -> int:
    return found.end() if found else 0


class PoliteError(Exception):
    """The base of every error that polite raises. `url` is what it is about (credentials removed), or None."""

    def __init__(self, message: str, *, url: str | None = None) -> None:
        super().__init__(message)
        self.url = None if url is None else redact_url(url)


class InvalidURL(PoliteError, ValueError):
    """A string is no URL that a crawler could fetch (WHATWG URL, basic URL parser: failure).

    `reason` says what is wrong, `position` (0-based, in the string as given) where, or None when it is the whole.
    """

    def __init__(self, url: str, reason: str, position: int | None = None) -> None:
        where = "" if position is None else f" (at character {position})"
        super().__init__(f"{redact_url(url)!r} is no URL to fetch: {reason}{where}", url=url)
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type["InvalidURL"], tuple[str, str, int | None]]:
        # It crosses process borders (a pool's worker) with what it may show, and no more.
        return type(self), (self.url or "", self.reason, self.position)


class InvalidUserAgent(PoliteError, ValueError):
    """A user agent that cannot be sent (RFC 9110, 10.1.5), or that names no product token to look for in a file."""


class InvalidOption(PoliteError, ValueError):
    """An option's value is outside what the option can mean; the message names the option and its limits."""


class GateClosed(PoliteError):
    """The gate was closed: before the call, or while the caller was waiting for its turn."""


class PermitMisused(PoliteError, RuntimeError):
    """A permit was entered twice, reported outside its block or more than once, or would wait for the permits of its own task."""


class Overloaded(PoliteError):
    """A bound was reached (waiting requests, origins in back-off); the message names the option that moves it."""


class StoreFailed(PoliteError):
    """What is kept between runs could not be read or written; the message names the file, what is wrong, and what to change."""
