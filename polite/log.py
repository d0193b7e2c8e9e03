"""The logger `polite`: names and fields of its lines, no credential in them, and a bound on how many servers can cause.

Each line has a name, the field `polite_event`, and other fields of `fields`; docs/reference/logging.md lists them. A filter of the
logger removes what may be a credential from messages and tracebacks, and leaves out lines of one name beyond 10 a minute.
"""

import logging
import re
import threading
import traceback
from contextlib import suppress

from polite.errors import redact_url

# Lines of one name in so many seconds.
_MOST = 10
_WINDOW_S = 60.0
# Names at one time. Ours are fewer; a program may log to this logger, too.
_MOST_NAMES = 1_000

# A bounded scheme and possessive repeats keep the search linear. An apostrophe, which often ends a URL in a message, may also be a
# part of a password or of a query (RFC 3986, 2.2).
_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]{0,20}:[/\\]{2}(?:[^\s'\"<>?#]++|'(?=[^\s\"<>/\\]{0,300}@))*(?:[?#][^\s\"<>]*+)?"
)
_QUERY = re.compile(r"[?#].*", re.DOTALL)


def fields(
    event: str,
    /,
    *,
    origin: object = None,
    url: str | None = None,
    host: str | None = None,
    store: object = None,
    error: BaseException | None = None,
    reason: str | None = None,
    count: int | None = None,
) -> dict[str, object]:
    """Return the fields of a line, for `extra`. Those that are None are left out.

    >>> fields("robots_hostile", url="https://user:secret@example.com/robots.txt?token=secret", reason="ADDRESS_REFUSED")
    {'polite_event': 'robots_hostile', 'polite_url': 'https://example.com/robots.txt?...', 'polite_reason': 'ADDRESS_REFUSED'}

    Args:
        event: The line's name, which does not change.
        origin: The origin.
        url: The URL. It is shown without credentials and without its query.
        host: A host without a port.
        store: The store's file or address, without credentials.
        error: The error, of which the class is shown.
        reason: A name of Reason.
        count: How much it is about: origins, pages, back-offs.
    """
    given = {
        "polite_event": event,
        "polite_origin": None if origin is None else str(origin),
        "polite_url": None if url is None else without_query(url),
        "polite_host": host,
        "polite_store": None if store is None else str(store),
        "polite_error": None if error is None else type(error).__name__,
        "polite_reason": reason,
        "polite_count": count,
    }
    return {name: value for name, value in given.items() if value is not None}


def without_query(url: str) -> str:
    """Return a URL without credentials, and without the query and the fragment, which may have a token.

    >>> without_query("https://user:secret@example.com/a?token=secret")
    'https://example.com/a?...'
    """
    return _QUERY.sub(lambda found: f"{found[0][0]}...", redact_url(url))


def scrubbed(text: str) -> str:
    """Return a text in which each URL is shown as `without_query` does."""
    return _URL.sub(lambda found: without_query(found[0]), text)


class LineFilter(logging.Filter):
    """Removes credentials from lines, and leaves lines out of which there are too many. In any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        # Of each name: when its window began, and how many lines came since.
        self._windows: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is to be shown, and change it if it must be."""
        note = ""
        if record.levelno >= logging.WARNING:
            came, left_out = self._count(record)
            if came > _MOST:
                return False
            if left_out:
                record.polite_left_out = left_out
                note = f" ({left_out} more like it were left out)"
            elif came == _MOST:
                note = " (more like it are left out for a minute)"
        # Of arguments that do not fit, the handler tells.
        with suppress(Exception):
            _scrub(record, note)
        return True

    def _count(self, record: logging.LogRecord) -> tuple[int, int]:
        """Count a line. Return how many of its name came in its window, and how many of the window before were left out."""
        name = str(getattr(record, "polite_event", record.msg))
        with self._lock:
            began, came = self._windows.get(name, (record.created, 0))
            if not 0 <= record.created - began < _WINDOW_S:
                self._windows[name] = record.created, 1
                return 1, max(0, came - _MOST)
            if len(self._windows) >= _MOST_NAMES and name not in self._windows:
                self._windows.clear()
            self._windows[name] = began, came + 1
            return came + 1, 0

    def forget(self) -> None:
        """Count anew, for tests."""
        with self._lock:
            self._windows.clear()


def _scrub(record: logging.LogRecord, note: str) -> None:
    text = record.getMessage()
    clean = scrubbed(text) + note
    # Left as it is where possible: tools group lines by `msg` and `args`.
    if clean != text:
        record.msg, record.args = clean, ()
    if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
        trace = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        if (shown := scrubbed(trace)) != trace:
            # Formatters show this instead of formatting the error.
            record.exc_text = shown


LINES = LineFilter()
log: logging.Logger = logging.getLogger("polite")
log.addFilter(LINES)
