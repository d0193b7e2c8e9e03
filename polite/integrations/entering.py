"""What clients share: the gate and the User-Agent that they need, errors that are the client's own too, and what counts."""

import ssl
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from polite import blocking
from polite.errors import InvalidOption, InvalidUserAgent, PermitMisused, PoliteError
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.gate.signatures import SignerFailed

# Those of a request that a redirect, or a retry, was made from: they name another server, or have expired.
SIGNATURE_FIELDS = ("Signature-Agent", "Signature-Input", "Signature")


def require_gate(gate: object, *, user: str) -> None:
    """Raise InvalidOption unless this is a gate of `polite.open_gate`.

    Args:
        gate: What a crawler gave.
        user: What needs it, as the crawler calls it.
    """
    if not isinstance(gate, Gate):
        raise InvalidOption(
            f"{user} runs on an event loop: it needs a gate of polite.open_gate, got {gate!r}"
        )


def require_blocking_gate(gate: object, *, user: str) -> None:
    """Raise InvalidOption unless this is a gate of `polite.blocking.open_gate`. The arguments are those of `require_gate`."""
    if not isinstance(gate, blocking.Gate):
        raise InvalidOption(
            f"{user} is for threads: it needs a gate of polite.blocking.open_gate, got {gate!r}"
        )


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
def raised_as(base: type[Exception], **details: object) -> Iterator[None]:
    """Have an error of polite in this block be an error of the client, too.

    Workers catch the base error of their client. One that dies of another leaves its queue waiting for ever.

    Args:
        base: The client's base error.
        details: What the client gives it besides a message, such as the request.
    """
    try:
        yield
    except base:
        raise
    except (PoliteError, SignerFailed) as error:
        raise _joined(error, base, **details).with_traceback(error.__traceback__) from error.__cause__


def _joined(error: Exception, base: type[Exception], **details: object) -> Exception:
    """Return an error that is `error`, with its attributes, and one of `base`."""
    kind: Any = _both(type(error), base)  # type: ignore[arg-type]  # mypy takes a class's hash for that of its instances
    # An OSError is made by its own.
    joined: Exception = base.__new__(kind)
    # Each client's own sets what its methods use. Of polite's, only the attributes are needed.
    base.__init__(joined, "", **details)
    joined.args = error.args
    vars(joined).update(vars(error), _parts=(error, base))
    return joined


@cache
def _both(kind: type[object], base: type[object]) -> Any:  # noqa: ANN401 - it is both
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (_Joined, kind, base), names)


class _Joined(Exception):
    """Pickled, and copied, as its parts: its class has no name of its own."""

    _parts: tuple[Exception, type[Exception]]

    def __reduce__(self) -> tuple[Any, ...]:
        return _joined, self._parts

    def __str__(self) -> str:
        return str(self._parts[0])


@contextmanager
def hint_at_open_responses() -> Iterator[None]:
    """Say what to do if a task or a thread waits for a turn that a response of its own holds."""
    try:
        yield
    except PermitMisused as error:
        raise PermitMisused(
            f"{error}; if that is a response, read or close it before the next request", url=error.url
        ) from error


def sign(headers: MutableMapping[str, str], permit: Permit | blocking.Permit, method: str) -> None:
    """Sign a request that is sent now, in place of the signature that its headers may have. The gate must have a signer.

    Raises:
        TurnLost: The turn was lost: nothing may be sent.
    """
    for field in SIGNATURE_FIELDS:
        headers.pop(field, None)
    headers.update(permit.sign(method))


def brings_page(method: str | None) -> bool:
    """Return whether a request's response is a copy of its page, so that a later 304 is of use.

    HEAD brings none. An ETag of another method's response need not be that of the page (RFC 9110, 9.3).
    """
    return method is not None and method.upper() == "GET"


def failure(error: BaseException, *own: type[Exception]) -> BaseException | None:
    """Return the error for `Permit.leave`, or None if it is the crawler's own: an option or a header that cannot be sent.

    That says nothing of the server: repeated with each request, it would open the circuit of the origin. The delay runs either way.

    Args:
        error: What the client raised instead of returning a response.
        own: What the client raises for requests that cannot be sent, besides TypeError and ValueError.
    """
    # What Python says of a server's certificate is a ValueError, too.
    cannot_be_sent = isinstance(error, (TypeError, ValueError, SignerFailed, *own)) and not isinstance(
        error, ssl.CertificateError
    )
    return None if cannot_be_sent else error
