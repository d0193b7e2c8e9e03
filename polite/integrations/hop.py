"""Hop: one request of a client, decided, signed, reported and left in one place; what is sent, and how, is the client's.

The steps are the same on an event loop and in a thread, so they are written once, as coroutines. `settled` awaits what a client of
an event loop returns. In a thread, whatever is asked for has happened when it returns: a coroutine never waits there, and `run_now`
runs it to its end.

Below that is what the adapters of requests and niquests share, since either urllib3 retries by itself and has bodies of its own.
"""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from functools import cache, partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Self, TypeVar
from weakref import finalize

from polite import blocking
from polite.errors import InvalidOption, InvalidUserAgent, PermitMisused, PoliteError
from polite.gate.fetcher import SignerFailed
from polite.gate.gate import Gate
from polite.http.header_fields import Headers
from polite.options import instance
from polite.origin import Target
from polite.transports.address_guard import within

T = TypeVar("T")

# Those of a request that a redirect, or a retry, was made from: they name another server, or have expired.
_SIGNATURE = ("signature-agent", "signature-input", "signature")
# What another origin must not get.
PRIVATE_FIELDS = ("Authorization", "Cookie", "Proxy-Authorization")


def becomes_get(status: int, method: str) -> bool:
    """Return whether a redirect is followed with GET and without the body, as browsers do (RFC 9110, 15.4.2 to 15.4.4)."""
    return (status == 303 and method.upper() != "HEAD") or (status in {301, 302} and method.upper() == "POST")


@contextmanager
def needing(package: str, extra: str) -> Iterator[None]:
    """Have a missing package name the extra that brings it."""
    try:
        yield
    except ImportError as error:
        module = f"polite.integrations.{extra.replace('-', '_')}"
        raise ImportError(f"{module} needs {package}: pip install 'polite-crawl[{extra}]'") from error


def require_gate(gate: object, *, user: str, threads: bool = False) -> None:
    """Raise InvalidOption unless this is a gate of `polite.open_gate`, or of `polite.blocking.open_gate`.

    Args:
        gate: What a crawler gave.
        user: What needs it, as the crawler calls it.
        threads: It needs one for threads.
    """
    if not isinstance(gate, blocking.Gate if threads else Gate):
        runs, of = ("is for threads", "polite.blocking") if threads else ("runs on an event loop", "polite")
        raise InvalidOption(f"{user} {runs}: it needs a gate of {of}.open_gate, got {gate!r}")


def require_any_gate(gate: object) -> None:
    """Raise InvalidOption unless this is a gate of either kind."""
    kinds: Any = Gate | blocking.Gate
    instance("gate", gate, kinds, "a gate of polite.open_gate or polite.blocking.open_gate")


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


def set_agent(headers: MutableMapping[str, str], agent: str, *, default: str) -> None:
    """Send the gate's User-Agent, unless the crawler chose one, which must be the same. As `require_agent`."""
    if require_agent(headers.get("User-Agent"), agent, default=default):
        headers["User-Agent"] = agent


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
def _both(kind: type[object], base: type[object]) -> Any:
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


async def settled(value: Any) -> Any:
    """Return what a call returned, awaited if the client runs on an event loop."""
    return await value if isawaitable(value) else value


def run_now(exchange: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of a client for threads, which awaits nothing that has not happened."""
    try:
        exchange.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    exchange.close()
    raise RuntimeError("a client for threads waits for an event loop")


class Hop:
    """One request in its turn. `permit.url` is to be sent as it is, then the head is reported, and the hop ends with its body.

    Attributes:
        gate: What decides: of `polite.open_gate`, or of `polite.blocking`.
        permit: The turn. A retry has another one.
        method: The request's method.
    """

    def __init__(self, gate: Gate | blocking.Gate, permit: Any, method: str | None) -> None:
        self.gate = gate
        self.permit = permit
        self.method: str = method or ""

    @classmethod
    async def enter(cls, gate: Gate | blocking.Gate, url: str, method: str | None) -> Self:
        """Have a URL decided, and wait for its turn. Raises what entering a permit raises."""
        try:
            permit = gate.permit(url)
            entered = permit.__enter__() if isinstance(permit, blocking.Permit) else await permit.__aenter__()
        except PermitMisused as error:
            raise PermitMisused(
                f"{error}; if that is a response, read or close it before the next request", url=error.url
            ) from error
        return cls(gate, entered, method)

    def sign(self, headers: MutableMapping[str, Any]) -> None:
        """Sign what is sent now, in place of the signature that its headers may have, if the gate has a signer.

        Raises:
            TurnLost: The turn was lost: nothing may be sent.
        """
        if self.gate.signs:
            for field in _SIGNATURE:
                headers.pop(field, None)
            headers.update(self.permit.sign(self.method))

    def report(self, status: int, headers: Headers) -> None:
        """Report the head of the response. Only that of a GET is a copy of its page, so that a later 304 is of use.

        HEAD brings none. An ETag of another method's response need not be that of the page (RFC 9110, 9.3).
        """
        self.permit.report(status=status, headers=headers)
        if self.method.upper() != "GET":
            self.permit.unread()

    def fail(self, error: BaseException, *own: type[Exception]) -> None:
        """End it: no response came.

        The crawler's own errors, an option or a header that cannot be sent, say nothing of the server: repeated with each request,
        they would open the circuit of the origin. The delay runs either way.

        Args:
            error: What the client raised instead of returning a response.
            own: What the client raises for requests that cannot be sent, besides TypeError and ValueError.
        """
        # What Python says of a server's certificate is a ValueError, too.
        own = (TypeError, ValueError, SignerFailed, *own)
        cannot_be_sent = isinstance(error, own) and not isinstance(error, ssl.CertificateError)
        self.permit.leave(None if cannot_be_sent else error)

    def end(self, octets: int | None, *, whole: bool) -> None:
        """End it with its body: only one that was read to its end is worth remembering.

        Args:
            octets: Those of the body that came, as they were sent: many responses do not say how long they are. None: it says so.
            whole: It was read to its end.
        """
        if octets is not None:
            with suppress(PermitMisused):  # it is left already
                self.permit.received(octets)
        if not whole:
            self.permit.unread()
        self.permit.leave()

    def end_from_any_thread(self, loop: asyncio.AbstractEventLoop, octets: int | None = None) -> None:
        """End it on its loop, with a body that was not read to its end: the garbage collector may run in any thread."""
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(partial(self.end, octets, whole=False))


class PacedRetry:
    """Mixed into the `Retry` of an adapter: instead of sleeping for as long as it says, a retry waits for its turn.

    Attributes:
        hop: Has the turn.
    """

    hop: Hop

    def new(self, **options: object) -> "PacedRetry":
        made: PacedRetry = super().new(**options)  # type: ignore[misc]
        made.hop = self.hop
        return made

    def sleep(self, response: Any = None) -> None:
        run_now(self.async_sleep(response))

    async def async_sleep(self, response: Any = None) -> None:
        """End the turn after a response, or after an error, and wait for another."""
        hop, permit = self.hop, self.hop.permit
        if response is None:
            permit.leave(ConnectionError())
        else:
            permit.report(status=response.status, headers=response.headers)
            hop.end(None, whole=False)
        hop.permit = (await Hop.enter(hop.gate, permit.url, hop.method)).permit


@cache
def _mixed(mixin: type, kind: Any) -> Any:
    return type(kind.__name__, (mixin, kind), {})


class PoliteSending:
    """Mixed into an adapter: the gate decides about the URL as urllib3 spells it, and retries take turns of their own.

    Its `max_retries` are those that the crawler chose, but paced while a request is sent.
    """

    _gate: Gate | blocking.Gate
    # Those of the adapter's module, and of its urllib3.
    _base_error: type[Exception]
    _default_agent: Callable[[], str]
    _parse_url: Callable[[str], Any]

    async def exchange(self, request: Any, args: tuple[Any, ...], options: dict[str, Any], send: Any) -> Any:
        """Send a request in its turn.

        Args:
            request: The prepared request.
            args: What the adapter's `send` got besides, by position.
            options: The same, by name.
            send: The `send` of the module's own adapter.
        """
        with raised_as(self._base_error, request=request):
            set_agent(request.headers, self._gate.agent.header, default=self._default_agent())
            url = self._spelled(request, args, options)
            # None: as many as the other limits allow.
            if self._gate.signs and (self._retries.total is None or self._retries.total):
                raise InvalidOption(
                    "PoliteAdapter(max_retries=...) with open_gate(signer=...): a retry would be sent with an old signature; "
                    "leave max_retries out",
                    url=url,
                )
            hop = await Hop.enter(self._gate, url, request.method)
            request.url = hop.permit.url
            try:
                # urllib3 connects after that: a signature must be valid for longer than this takes.
                hop.sign(request.headers)
                paced = copy(self._retries)
                paced.__class__ = _mixed(PacedRetry, paced.__class__)
                paced.hop = hop
                # The adapter may send requests of other threads and tasks meanwhile.
                with within(_paced, paced):
                    response = await settled(send(request, *args, **options))
                hop.report(response.status_code or 0, response.headers)
            except BaseException as error:
                hop.fail(error)
                raise
            # The hop ends when urllib3 takes the connection back: at the body's end, or when it is closed or dropped.
            raw = response.raw
            leaving = AsyncLeavingBody if iscoroutinefunction(raw.close) else LeavingBody
            raw.__class__ = _mixed(leaving, raw.__class__)
            raw.hop = hop
            if isinstance(hop.gate, Gate):
                # A permit for threads is left when it is dropped, but this one must be left on its loop.
                finalize(raw, hop.end_from_any_thread, asyncio.get_running_loop()).atexit = False
            return response

    def _spelled(self, request: Any, args: tuple[Any, ...], options: dict[str, Any]) -> str:
        """Return the request's URL as it will be sent. Raises InvalidURL.

        urllib3 spells escapes in upper case, and escapes more characters than browsers do. A module drops a `?` without a query,
        and more for a proxy. What this returns is sent unchanged: a second pass changes nothing.
        """
        target = Target.of(request.url or "")
        request.url = target.url
        proxies = args[4] if len(args) > 4 else options.get("proxies")
        # With a proxy this is the whole URL.
        path = self.request_url(request, proxies).removeprefix(target.origin.text)  # type: ignore[attr-defined]
        return f"{target.origin}{self._parse_url(f'http://host{path}').request_uri}"

    @property
    def max_retries(self) -> Any:
        """How requests are sent again."""
        return _paced.get() or self._retries

    @max_retries.setter
    def max_retries(self, retries: Any) -> None:
        self._retries = retries


# The Retry of the request that this thread or task sends.
_paced: ContextVar[Any] = ContextVar("polite_paced_retry", default=None)


class LeavingBody:
    """Mixed into a response of urllib3. Of one that is not read to its end, nothing is remembered for recrawling.

    Attributes:
        hop: Ended with the connection.
        closed_early: Closed by the crawler, before its end.
        in_chunks: Octets that came in chunks, decoded.
    """

    hop: Hop
    closed_early: bool = False
    in_chunks: int = 0

    def read_chunked(self, *args: Any, **options: Any) -> Iterator[bytes]:
        for piece in super().read_chunked(*args, **options):  # type: ignore[misc]
            self.note_chunk(piece)
            yield piece

    def release_conn(self) -> None:
        try:
            super().release_conn()  # type: ignore[misc]
        finally:
            # urllib3 counts what came as it was sent, but no chunks.
            told = "Content-Length" in self.headers  # type: ignore[attr-defined]
            octets = None if told else max(int(self.tell()), self.in_chunks)  # type: ignore[attr-defined]
            # Perhaps it has no body, as a 304, and was not asked for one. urllib3 releases while an error of the body is on its
            # way. If it is another that the crawler handles meanwhile, the page is only fetched whole once more.
            empty = self.length_remaining == 0  # type: ignore[attr-defined]
            ended = self.closed and not self.closed_early  # type: ignore[attr-defined]
            self.hop.end(octets, whole=empty or (ended and sys.exception() is None))

    def close(self) -> None:
        self.note_closing()
        super().close()  # type: ignore[misc]

    def note_chunk(self, piece: bytes) -> None:
        """Count what came."""
        self.in_chunks += len(piece)

    def note_closing(self) -> None:
        """It closes itself at its end."""
        self.closed_early = self.closed_early or not self.closed  # type: ignore[attr-defined]


class AsyncLeavingBody(LeavingBody):
    """The same, where closing is awaited."""

    async def read_chunked(self, *args: Any, **options: Any) -> AsyncIterator[bytes]:  # type: ignore[override]
        async for piece in super(LeavingBody, self).read_chunked(*args, **options):  # type: ignore[misc]
            self.note_chunk(piece)
            yield piece

    async def close(self) -> None:  # type: ignore[override]
        self.note_closing()
        await super(LeavingBody, self).close()  # type: ignore[misc]
