"""The reason of a failed connection, from an operating system's error."""

import errno

from polite.robots.reason import Reason

_REASONS = {
    errno.ECONNREFUSED: Reason.CONNECTION_REFUSED,
    errno.ECONNRESET: Reason.CONNECTION_LOST,
    errno.ECONNABORTED: Reason.CONNECTION_LOST,
    errno.EPIPE: Reason.CONNECTION_LOST,
    errno.ETIMEDOUT: Reason.TIMEOUT,
} | dict.fromkeys(
    (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.EADDRNOTAVAIL),
    Reason.HOST_UNREACHABLE,
)


def reason_of(error: OSError) -> Reason:
    """Return the reason of a failed connection, CONNECT_FAILED by default."""
    if isinstance(error, TimeoutError):
        return Reason.TIMEOUT
    return _REASONS.get(error.errno or 0, Reason.CONNECT_FAILED)
