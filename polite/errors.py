"""The errors that polite raises. Each message says what is wrong and what to change; `url` names the URL."""

import re

# Characters of a long URL that a message shows: a log line must not contain a megabyte of URL.
_SHOWN = 200

# Characters that the URL parser skips must not hide an @. Possessive repeats (*+, ++) keep each match linear.
_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_UNSEEN = re.compile(r"[\t\n\r]+")
# Where an authority may start: `http:user@host` needs no slash, another scheme does.
_SPECIAL_START = re.compile(r"(?:https?|ftp|wss?):[/\\]*+", re.IGNORECASE)
# The @ of a mail address hides nothing. With a colon, a password may be before it.
_START = re.compile(r"(?:(?i:mailto):[^:/\\?#@%]*+@|[A-Za-z][A-Za-z0-9+.\-]*+:[/\\]++|[/\\]{2,}+)?")
_SPECIAL_AUTHORITY = re.compile(r"[^/\\?#]*+")
_AUTHORITY = re.compile(r"[^/?#]*+")
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*+\]|[^:]*+)(?::[0-9]*+)?")
_ESCAPED_AT = re.compile(r"%40")
# A name before the @ is no password; what follows it is a host alone.
_MAIL_ADDRESS = re.compile(r"\s*+[^\s:/\\?#@%]++@[A-Za-z0-9.\-]++\s*+")
_NESTED = re.compile(r"(?<=[/\\]{2})(?:[^/\\?#@]*+@)+")


def redact_url(url: str) -> str:
    """Return a URL for an error or a log line: short, and without credentials or control characters.

    >>> redact_url("https://user:secret@example.com/a")
    'https://example.com/a'
    """
    text = _without_credentials(_UNSEEN.sub("", url.lstrip(_C0_AND_SPACE)))
    head = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:_SHOWN])
    return head if len(text) <= _SHOWN else f"{head}... ({len(url)} characters)"


def without_credentials(text: str) -> str:
    """Return a text as it is, except that what may be credentials of a URL is removed. A mail address has none.

    >>> without_credentials("https://user:secret@example.com/a#top "), without_credentials("joe@example.com")
    ('https://example.com/a#top ', 'joe@example.com')
    """
    if "@" not in text and "%40" not in text:
        return text
    if _MAIL_ADDRESS.fullmatch(text):
        return text
    # Characters that the URL parser skips may hide where the authority starts.
    return _without_credentials(_UNSEEN.sub("", text.lstrip(_C0_AND_SPACE)))


def _without_credentials(text: str) -> str:
    """Remove everything that may be credentials: a mangled URL is better than a visible password."""
    special = _SPECIAL_START.match(text)
    start = _end(special or _START.match(text))
    authority = text[start : _end((_SPECIAL_AUTHORITY if special else _AUTHORITY).match(text, start))]
    host = start + authority.rfind("@") + 1
    if not _HOST_AND_PORT.fullmatch(text[host : start + len(authority)]):
        # A colon without a port: most likely a password with a slash, at which the authority seems to end, or with an
        # @ that was escaped by mistake.
        host = max([host, text.rfind("@") + 1, *(at.end() for at in _ESCAPED_AT.finditer(text, host))])
    return text[:start] + _NESTED.sub("", text[host:])


def _end(found: re.Match[str] | None) -> int:
    return found.end() if found else 0


class PoliteError(Exception):
    """The base class of all errors that polite raises.

    >>> str(PoliteError("the URL cannot be fetched", url="https://user:secret@example.com/").url)
    'https://example.com/'

    Attributes:
        url: The URL that the error is about, without credentials, or None.
    """

    def __init__(self, message: str, *, url: str | None = None) -> None:
        super().__init__(message)
        self.url: str | None = None if url is None else redact_url(url)


class InvalidURL(PoliteError, ValueError):
    """A string is not a URL that can be fetched (WHATWG URL, basic URL parser: failure).

    >>> raise InvalidURL("https://", "the host is empty", 8)
    Traceback (most recent call last):
    ...
    polite.errors.InvalidURL: 'https://' is no URL to fetch: the host is empty (at character 8)

    Attributes:
        reason: What is wrong.
        position: The index in the string as given (0-based), or None if it is the string as a whole.
    """

    def __init__(self, url: str, reason: str, position: int | None = None) -> None:
        where = "" if position is None else f" (at character {position})"
        super().__init__(f"{redact_url(url)!r} is no URL to fetch: {reason}{where}", url=url)
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type["InvalidURL"], tuple[str, str, int | None]]:
        # Pickled, for a pool of processes, without what must not be shown.
        return type(self), (self.url or "", self.reason, self.position)


class InvalidUserAgent(PoliteError, ValueError):
    """A user agent cannot be sent (RFC 9110, 10.1.5), or has no product token to match in robots.txt.

    Example:
        try:
            agent = polite.UserAgent(name)
        except polite.InvalidUserAgent as error:
            sys.exit(f"configuration: {error}")
    """


class InvalidOption(PoliteError, ValueError):
    """An option has the wrong type or value. The message names the option, its limits and the value.

    Example:
        try:
            pacing = polite.PacingPolicy(min_delay=seconds)
        except polite.InvalidOption as error:
            sys.exit(f"configuration: {error}")

    Attributes:
        option: The option if it is one alone, such as "PacingPolicy.min_delay"; else None.
        problem: The message without the option's name.
        url: The URL that the error is about, without credentials, or None.
    """

    def __init__(self, problem: str, *, option: str | None = None, url: str | None = None) -> None:
        super().__init__(problem if option is None else f"{option} {problem}", url=url)
        # Messages name a field as "PacingPolicy: min_delay".
        self.option: str | None = None if option is None else option.replace(": ", ".").partition(" ")[0]
        self.problem = problem


class GateClosed(PoliteError):
    """The gate was closed before the call, or while the request waited for its turn.

    Example:
        try:
            async with gate.permit(url) as permit:
                ...
        except polite.GateClosed:
            return  # the crawl ends
    """


class PermitMisused(PoliteError, RuntimeError):
    """A permit was entered twice, reported twice or outside its block, or would wait for a turn that its own task holds.

    Example:
        async with gate.permit(url) as permit:
            permit.report(status=200)
        try:
            permit.report(status=200)  # too late: the turn was released
        except polite.PermitMisused as error:
            print(error)
    """


class TurnLost(PoliteError):
    """A permit's turn does not hold any more: it was held for too long, or another process may send requests there by now.

    Example:
        async with gate.permit(url) as permit:
            await asyncio.sleep(0.1)  # whatever takes long before the request is sent
            try:
                await permit.ready()
            except polite.TurnLost:
                return  # send nothing: request a new permit
            permit.report(status=200)
    """


class Overloaded(PoliteError):
    """A limit was reached (waiting requests, origins in back-off). The message names its option.

    Example:
        try:
            async with gate.permit(url) as permit:
                ...
        except polite.Overloaded:
            await asyncio.sleep(1.0)  # let other requests finish first
    """


class OriginDeclined(PoliteError):
    """The pacing policy permits no more requests to the URL's origin: a budget is spent, or robots.txt asks for too much.

    Example:
        try:
            async with gate.permit(url) as permit:
                ...
        except polite.OriginDeclined as error:
            print(error.option, error.limit)  # max_pages 1000

    Attributes:
        option: The option of PacingPolicy that decides: `max_pages`, `max_bytes`, `max_failures`,
            `max_crawl_delay` or `hours`.
        limit: Its value for the origin.
        because: The reason.
    """

    def __init__(self, url: str, option: str, limit: float | str, because: str) -> None:
        super().__init__(f"{redact_url(url)}: no more requests to this origin. {because}", url=url)
        self.option = option
        self.limit = limit
        self.because = because

    def __reduce__(self) -> tuple[type["OriginDeclined"], tuple[str, str, float | str, str]]:
        return type(self), (self.url or "", self.option, self.limit, self.because)


class StoreFailed(PoliteError):
    """A store could not be read or written. The message names its file or server, what is wrong, and what to change.

    Example:
        try:
            async with polite.open_gate(agent, store="robots.sqlite") as gate:
                ...
        except polite.StoreFailed as error:
            sys.exit(str(error))

    Attributes:
        may_pass: Whether it may pass by itself: a shared store's server was not reached.
    """

    def __init__(self, message: str, *, url: str | None = None, may_pass: bool = False) -> None:
        super().__init__(message, url=url)
        self.may_pass = may_pass


class StoreEmptied(StoreFailed):
    """A shared crawl's data is gone from its server, so its tasks are lost: the server was flushed, or it restarted without them.

    Example:
        try:
            async with polite.open_gate(agent, store="redis://example.com/0", crawl="news") as gate:
                async with polite.open_frontier(gate, crawl="news") as frontier:
                    ...
        except polite.StoreEmptied:
            ...  # put the seeds again, in a new crawl
    """
