"""What clients share about permits: the User-Agent that they may send, a response that is still open, and which bring a page."""

from collections.abc import Iterator
from contextlib import contextmanager

from polite.errors import InvalidUserAgent, PermitMisused


def require_agent(sent: str | bytes | None, agent: str, *, default: str) -> bool:
    """Return whether the gate's User-Agent must be set: the crawler chose none.

    Args:
        sent: The request's header.
        agent: The gate's.
        default: What the client sends if the crawler chose none.

    Raises:
        InvalidUserAgent: The crawler chose another.
    """
    sent = sent.decode("latin-1") if isinstance(sent, bytes) else sent
    if sent is None or sent == default:
        return True
    if sent != agent:
        raise InvalidUserAgent(
            f"the request's User-Agent is {sent!r}, but the gate obeys the rules for {agent!r}; remove it, or open the gate with it"
        )
    return False


@contextmanager
def hint_at_open_responses() -> Iterator[None]:
    """Say what to do if a task or a thread waits for a turn that a response of its own holds."""
    try:
        yield
    except PermitMisused as error:
        raise PermitMisused(
            f"{error}; if that is a response, read or close it before the next request", url=error.url
        ) from error


def brings_page(method: str | None) -> bool:
    """Return whether a request's response is a copy of its page, so that a later 304 is of use.

    HEAD brings none. An ETag of another method's response need not be that of the page (RFC 9110, 9.3).
    """
    return method is not None and method.upper() == "GET"
