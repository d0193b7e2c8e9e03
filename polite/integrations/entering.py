"""What clients share: the gate and the User-Agent that they need, errors that are the client's own too, and what counts."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from functools import cache
from inspect import iscoroutinefunction
from typing import Any
from weakref import finalize

from polite import blocking
from polite.errors import InvalidOption, InvalidUserAgent, PermitMisused, PoliteError
from polite.gate.fetcher import SignerFailed
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.origin import Target

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
    joined: Exception = (OSError if issubclass(kind, OSError) else base).__new__(kind)
    # Each client's own sets what its methods use. Of polite's, only the attributes are needed.
    base.__init__(joined, "", **details)
    joined.args = error.args
    vars(joined).update(vars(error), _parts=(error, base))
    return joined


@cache
def _both(kind: type[object], base: type[object]) -> Any:  # noqa: ANN401 - it is both
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    # An error of one client may pass through another, as in a store of your own.
    bases = (kind, base) if issubclass(kind, _Joined) else (_Joined, kind, base)
    return type(kind.__name__, bases, names)


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


class Turn:
    """The permit of one call of an adapter's `send`. A retry by urllib3 is another request: it takes another permit."""

    def __init__(self, gate: blocking.Gate, url: str) -> None:
        self._gate = gate
        self._url = url
        self.permit: blocking.Permit = self._enter()

    def again(self, response: Any = None) -> None:  # noqa: ANN401 - of either urllib3
        """Wait for the turn of a retry: after a response, or after an error."""
        _end(self.permit, response)
        self.permit = self._enter()

    def _enter(self) -> blocking.Permit:
        with hint_at_open_responses():
            return self._gate.permit(self._url).__enter__()


class AsyncTurn:
    """The same, on an event loop. Await `enter` first."""

    permit: Permit

    def __init__(self, gate: Gate, url: str) -> None:
        self._gate = gate
        self._url = url

    async def enter(self) -> None:
        with hint_at_open_responses():
            self.permit = await self._gate.permit(self._url).__aenter__()

    async def again(self, response: Any = None) -> None:  # noqa: ANN401 - of urllib3.future
        """Wait for the turn of a retry: after a response, or after an error."""
        _end(self.permit, response)
        await self.enter()


def _end(permit: blocking.Permit | Permit, response: Any) -> None:  # noqa: ANN401 - of either urllib3
    if response is None:
        permit.leave(ConnectionError())
    else:
        permit.report(status=response.status, headers=response.headers)
        permit.unread()
        permit.leave()


class PacedRetry:
    """Mixed into the `Retry` of an adapter: instead of sleeping for as long as it says, a retry waits for its turn.

    Attributes:
        turn: What waits; a Turn or an AsyncTurn.
    """

    turn: Any

    def new(self, **options: object) -> "PacedRetry":
        made: PacedRetry = super().new(**options)  # type: ignore[misc]
        made.turn = self.turn
        return made

    def sleep(self, response: Any = None) -> None:  # noqa: ANN401 - of either urllib3
        self.turn.again(response)

    async def async_sleep(self, response: Any = None) -> None:  # noqa: ANN401 - of either urllib3
        await self.turn.again(response)


def _paced_retry(retries: Any, turn: object) -> Any:  # noqa: ANN401 - of either urllib3
    """Return a copy of the Retry that waits for the turn."""
    paced = copy(retries)
    paced.__class__ = _with_turns(retries.__class__)
    paced.turn = turn
    return paced


@cache
def _with_turns(kind: type[object]) -> type[object]:
    return type(kind.__name__, (PacedRetry, kind), {})


class AdapterTurns:
    """Mixed into an adapter: the gate decides about the URL as urllib3 spells it, and retries take turns of their own.

    Its `max_retries` are those that the crawler chose, but paced while a request is sent.
    """

    # That of the adapter's urllib3.
    _parse_url: Callable[[str], Any]

    def spelled(self, request: Any, args: tuple[Any, ...], options: dict[str, Any]) -> str:  # noqa: ANN401
        """Return the request's URL as it will be sent. Raises InvalidURL.

        urllib3 spells escapes in upper case, and escapes more characters than browsers do. A module drops a `?` without a query,
        and more for a proxy. What this returns is sent unchanged: a second pass changes nothing.

        Args:
            request: The prepared request. Its URL is made that of browsers.
            args: What the adapter's `send` got besides, by position.
            options: The same, by name.
        """
        target = Target.of(request.url or "")
        request.url = target.url
        proxies = args[4] if len(args) > 4 else options.get("proxies")
        # With a proxy this is the whole URL.
        path = self.request_url(request, proxies).removeprefix(target.origin.text)  # type: ignore[attr-defined]
        return f"{target.origin}{self._parse_url(f'http://host{path}').request_uri}"

    @property
    def max_retries(self) -> Any:  # noqa: ANN401 - of either urllib3
        """How requests are sent again."""
        return _paced.get() or self._retries

    @max_retries.setter
    def max_retries(self, retries: Any) -> None:  # noqa: ANN401 - of either urllib3
        self._retries = retries

    def sign(self, request: Any, turn: Turn | AsyncTurn) -> None:  # noqa: ANN401 - of either module
        """Sign a request whose turn has come. urllib3 connects after that: a signature must be valid for longer than this takes.

        Raises:
            InvalidOption: urllib3 might send the request again, with this signature, when it has expired.
        """
        if self._retries.total:
            raise InvalidOption(
                "PoliteAdapter(max_retries=...) with open_gate(signer=...): a retry would be sent with an old signature; "
                "leave max_retries out",
                url=turn.permit.url,
            )
        sign(request.headers, turn.permit, request.method)

    @contextmanager
    def retries_in(self, turn: Turn | AsyncTurn) -> Iterator[None]:
        """Have retries wait for turns in this block. The adapter may send requests of other threads and tasks meanwhile."""
        token = _paced.set(_paced_retry(self._retries, turn))
        try:
            yield
        finally:
            _paced.reset(token)


# The Retry of the request that this thread or task sends.
_paced: ContextVar[Any] = ContextVar("polite_paced_retry", default=None)


def leave_at_the_end(raw: Any, permit: blocking.Permit | Permit) -> None:  # noqa: ANN401 - of either urllib3
    """Leave the permit when urllib3 takes the connection back: at the body's end, or when the response is closed or dropped."""
    raw.__class__ = _leaving(raw.__class__, asynchronous=iscoroutinefunction(raw.close))
    raw.permit = permit
    if isinstance(permit, Permit):
        # A permit for threads is left when it is dropped, but this one must be left on its loop.
        finalize(raw, _leave_on, asyncio.get_running_loop(), permit).atexit = False


class LeavingBody:
    """Mixed into a response of urllib3. Of one that is not read to its end, nothing is remembered for recrawling.

    Attributes:
        permit: Left with the connection.
        closed_early: Closed by the crawler, before its end.
        in_chunks: Octets that came in chunks, decoded.
    """

    permit: blocking.Permit | Permit
    closed_early: bool = False
    in_chunks: int = 0

    def read_chunked(self, *args: Any, **options: Any) -> Iterator[bytes]:  # noqa: ANN401 - as urllib3 has them
        for piece in super().read_chunked(*args, **options):  # type: ignore[misc]
            self.note_chunk(piece)
            yield piece

    def release_conn(self) -> None:
        try:
            super().release_conn()  # type: ignore[misc]
        finally:
            if "Content-Length" not in self.headers:  # type: ignore[attr-defined]
                # urllib3 counts what came as it was sent, but no chunks.
                with suppress(PermitMisused):  # it is left already
                    self.permit.received(max(int(self.tell()), self.in_chunks))  # type: ignore[attr-defined]
            if not self._read_to_its_end():
                self.permit.unread()
            self.permit.leave()

    def close(self) -> None:
        self.note_closing()
        super().close()  # type: ignore[misc]

    def note_chunk(self, piece: bytes) -> None:
        """Count what came."""
        self.in_chunks += len(piece)

    def note_closing(self) -> None:
        """It closes itself at its end."""
        self.closed_early = self.closed_early or not self.closed  # type: ignore[attr-defined]

    def _read_to_its_end(self) -> bool:
        if self.length_remaining == 0:  # type: ignore[attr-defined]
            # Perhaps it has no body, as a 304, and was not asked for one.
            return True
        # urllib3 releases while an error of the body is on its way. If it is another that the crawler handles meanwhile, the page
        # is only fetched whole once more.
        return self.closed and not self.closed_early and sys.exception() is None  # type: ignore[attr-defined]


class AsyncLeavingBody(LeavingBody):
    """The same, where closing is awaited."""

    async def read_chunked(self, *args: Any, **options: Any) -> AsyncIterator[bytes]:  # type: ignore[override]  # noqa: ANN401
        async for piece in super(LeavingBody, self).read_chunked(*args, **options):  # type: ignore[misc]
            self.note_chunk(piece)
            yield piece

    async def close(self) -> None:  # type: ignore[override]
        self.note_closing()
        await super(LeavingBody, self).close()  # type: ignore[misc]


@cache
def _leaving(kind: type[object], *, asynchronous: bool) -> type[object]:
    return type(kind.__name__, (AsyncLeavingBody if asynchronous else LeavingBody, kind), {})


def _leave_on(loop: asyncio.AbstractEventLoop, permit: Permit) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(_leave_unread, permit)


def _leave_unread(permit: Permit) -> None:
    permit.unread()
    permit.leave()
