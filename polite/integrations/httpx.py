"""httpx and httpx2: transports that wait at a gate before each request, redirect hops and auth flows included."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Never, Self

from polite import blocking
from polite.errors import InvalidOption, PermitMisused, TurnLost
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.entering import (
    brings_page,
    failure,
    hint_at_open_responses,
    raised_as,
    require_agent,
    sign,
)
from polite.origin import Target

if TYPE_CHECKING:
    # Those of httpx2 have the same members.
    from httpx import AsyncBaseTransport, AsyncByteStream, BaseTransport, Request, Response, SyncByteStream

# The event of httpcore before the first octet of a request, in HTTP/1.1 and HTTP/2.
_SENDING = "send_request_headers.started"
_NO_BODY = frozenset({204, 304})


def transport(
    gate: Gate | blocking.Gate,
    module: ModuleType,
    wrapped: Any = None,  # noqa: ANN401 - of either module
) -> Any:  # noqa: ANN401 - of either module
    """Return a transport for `AsyncClient(transport=...)`, or for `Client` if the gate is one of `polite.blocking`.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            async with httpx.AsyncClient(transport=transport(gate, httpx)) as client:
                response = await client.get("https://example.com/about")

    Each redirect hop and each request of an auth flow is checked, waits for its own turn, and is reported. A response holds its
    turn until its body is read or closed. The gate's User-Agent is sent. Time-outs of the client do not count the wait. If the
    gate has a signer, each request is signed, when its connection is there.

    While a request is sent, these are raised, each also as a `RequestError` of the module:

        Disallowed, RobotsUnreachable, InvalidURL, GateClosed, Overloaded: As by `gate.permit`.
        PermitMisused: The task, or the thread, has the response open whose turn it would wait for.
        InvalidUserAgent: The client or the request has another User-Agent than the gate.

    Args:
        gate: A gate. The transport does not close it.
        module: `httpx`, or its successor `httpx2`.
        wrapped: Sends the requests: `module.AsyncHTTPTransport()` or `module.HTTPTransport()` by default. Options such as `proxy`,
            `verify` and `limits` belong there, since the client passes its own to no transport that it is given.

    Raises:
        InvalidOption: `module` is neither of the two, or `gate` is no gate.
    """
    if isinstance(gate, blocking.Gate):
        kind = _derived(_Transport, module.BaseTransport)
        return kind(gate, module, module.HTTPTransport() if wrapped is None else wrapped)
    if not isinstance(gate, Gate):
        raise InvalidOption(
            f"gate must be a gate of polite.open_gate or polite.blocking.open_gate, got {gate!r}"
        )
    kind = _derived(_AsyncTransport, module.AsyncBaseTransport)
    return kind(gate, module, module.AsyncHTTPTransport() if wrapped is None else wrapped)


def _refuse_client(*_: object) -> Never:
    raise InvalidOption(
        "Client(transport=...) is for threads: it needs a gate of polite.blocking.open_gate; or use AsyncClient"
    )


def _refuse_async_client(*_: object) -> Never:
    raise InvalidOption(
        "AsyncClient(transport=...) runs on an event loop: it needs a gate of polite.open_gate; or use Client"
    )


class _AsyncTransport:
    """Waits for a permit, and has the wrapped transport send the request."""

    def __init__(self, gate: Gate, module: ModuleType, wrapped: "AsyncBaseTransport") -> None:
        self._gate = gate
        self._module = module
        self._wrapped = wrapped

    async def handle_async_request(self, request: "Request") -> "Response":
        with raised_as(self._module.RequestError, request=request):
            _set_agent(request, self._gate.agent.header, self._module)
            while True:
                with hint_at_open_responses():
                    permit = await self._gate.permit(str(request.url)).__aenter__()
                try:
                    return await self._send(request, permit)
                except TurnLost:
                    # Nothing was sent: a connection took longer than the turn was held.
                    permit.unsent()
                except self._module.PoolTimeout:
                    permit.unsent()
                    raise
                except BaseException as error:
                    permit.leave(
                        failure(error, self._module.LocalProtocolError, self._module.UnsupportedProtocol)
                    )
                    raise

    async def _send(self, request: "Request", permit: Permit) -> "Response":
        _send_exactly(request, permit.target, self._module)
        if self._gate.signs:
            sign(request.headers, permit, request.method)
        extensions = request.extensions
        # For this request only: the next hop gets a copy of them.
        watch = _Sending(permit, signs=self._gate.signs)
        request.extensions = {**extensions, "trace": _traced_async(watch, extensions.get("trace"))}
        try:
            response = await self._wrapped.handle_async_request(request)
        finally:
            request.extensions = extensions
        try:
            permit.report(status=response.status_code, headers=response.headers.raw)
        except BaseException:
            await response.aclose()
            raise
        if not brings_page(request.method):
            permit.unread()
        if response.is_closed:
            # It came with its content, as those of MockTransport do: the client reads and closes no stream.
            permit.leave()
        else:
            kind = _derived(_AsyncStream, self._module.AsyncByteStream)
            response.stream = kind(response.stream, permit, whole=_has_no_body(response))
        return response

    async def aclose(self) -> None:
        await self._wrapped.aclose()

    async def __aenter__(self) -> Self:
        await self._wrapped.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._wrapped.__aexit__(*error)  # type: ignore[arg-type]

    # What the client for threads calls.
    __enter__ = handle_request = close = _refuse_client


class _Transport:
    """The same, for threads."""

    def __init__(self, gate: blocking.Gate, module: ModuleType, wrapped: "BaseTransport") -> None:
        self._gate = gate
        self._module = module
        self._wrapped = wrapped

    def handle_request(self, request: "Request") -> "Response":
        with raised_as(self._module.RequestError, request=request):
            _set_agent(request, self._gate.agent.header, self._module)
            while True:
                with hint_at_open_responses():
                    permit = self._gate.permit(str(request.url)).__enter__()
                try:
                    return self._send(request, permit)
                except TurnLost:
                    permit.unsent()
                except self._module.PoolTimeout:
                    permit.unsent()
                    raise
                except BaseException as error:
                    permit.leave(
                        failure(error, self._module.LocalProtocolError, self._module.UnsupportedProtocol)
                    )
                    raise

    def _send(self, request: "Request", permit: blocking.Permit) -> "Response":
        _send_exactly(request, permit.target, self._module)
        if self._gate.signs:
            sign(request.headers, permit, request.method)
        extensions = request.extensions
        watch = _Sending(permit, signs=self._gate.signs)
        request.extensions = {**extensions, "trace": _traced(watch, extensions.get("trace"))}
        try:
            response = self._wrapped.handle_request(request)
        finally:
            request.extensions = extensions
        try:
            permit.report(status=response.status_code, headers=response.headers.raw)
        except BaseException:
            response.close()
            raise
        if not brings_page(request.method):
            permit.unread()
        if response.is_closed:
            permit.leave()
        else:
            kind = _derived(_Stream, self._module.SyncByteStream)
            response.stream = kind(response.stream, permit, whole=_has_no_body(response))
        return response

    def close(self) -> None:
        self._wrapped.close()

    def __enter__(self) -> Self:
        self._wrapped.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._wrapped.__exit__(*error)  # type: ignore[arg-type]

    # What the client of an event loop calls.
    __aenter__ = handle_async_request = aclose = _refuse_async_client


class _AsyncStream:
    """A body that holds a permit until it is closed. The client closes it at its end, or when the crawler leaves early.

    Args:
        whole: There is nothing to read.
    """

    def __init__(self, stream: "AsyncByteStream", permit: Permit, *, whole: bool) -> None:
        self._stream = stream
        self._permit = permit
        self._whole = whole
        self._octets = 0
        self._loop = asyncio.get_running_loop()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._octets += len(chunk)
            yield chunk
        self._whole = True

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            _leave(self._permit, whole=self._whole, octets=self._octets)

    def __del__(self) -> None:
        # A response that was dropped unread. The garbage collector may run in any thread.
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(partial(_leave, self._permit, whole=False, octets=self._octets))


class _Stream:
    """The same, for threads. A permit that is dropped is left."""

    def __init__(self, stream: "SyncByteStream", permit: blocking.Permit, *, whole: bool) -> None:
        self._stream = stream
        self._permit = permit
        self._whole = whole
        self._octets = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._octets += len(chunk)
            yield chunk
        self._whole = True

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            _leave(self._permit, whole=self._whole, octets=self._octets)


def _leave(permit: Permit | blocking.Permit, *, whole: bool, octets: int) -> None:
    """Leave the permit: only a body that was read to its end is worth remembering.

    Args:
        octets: Those of the body that came, as they were sent: many responses do not say how long they are.
    """
    with suppress(PermitMisused):  # it is left already
        permit.received(octets)
    if not whole:
        permit.unread()
    permit.leave()


def _has_no_body(response: "Response") -> bool:
    """Whether there is no body (RFC 9112, 6.3): the client may never read one."""
    return response.status_code in _NO_BODY or response.headers.get("Content-Length") == "0"


@cache
def _derived(kind: type, base: type) -> Any:  # noqa: ANN401 - it has both types
    """Return the class as one of the module's own: it checks the types of streams."""
    return type(kind.__name__.lstrip("_"), (kind, base), {})


def _set_agent(request: "Request", agent: str, module: ModuleType) -> None:
    """Send the gate's User-Agent, unless the crawler chose one, which must be the same."""
    default = f"python-{module.__name__}/{module.__version__}"
    if require_agent(request.headers.get("User-Agent"), agent, default=default):
        request.headers["User-Agent"] = agent


def _send_exactly(request: "Request", target: Target, module: ModuleType) -> None:
    """Make the request send the URL that the gate decided about."""
    netloc, path = target.origin.text.partition("://")[2], target.path.encode("ascii")
    before = request.url.netloc.decode("ascii")
    if request.url.raw_path == path and before == netloc:
        return
    request.url = module.URL(target.origin.text).copy_with(raw_path=path)
    if request.headers.get("Host") == before:
        request.headers["Host"] = netloc


class _Sending:
    """Sees to it that a request is sent only while its turn is held, with a signature of this moment."""

    def __init__(self, permit: Permit | blocking.Permit, *, signs: bool) -> None:
        # Empty once the request is sent: the pool keeps the trace of a response that is dropped, which must not keep the permit.
        self._held = [permit]
        self._signs = signs

    def ready(self, event: str) -> Awaitable[None] | None:
        """When a connection is there, wait until the request may be sent. Raises TurnLost if the turn is lost by then."""
        return self._held[0].ready() if self._held and event.endswith(_SENDING) else None

    def note(self, event: str, info: object) -> None:
        """Sign the request if it is sent now."""
        if not self._held or not event.endswith(_SENDING):
            return
        request = info.get("request") if isinstance(info, dict) else None
        if request is not None and request.method == b"CONNECT":
            # To a proxy, which must not see the signature. The request itself follows.
            return
        permit = self._held.pop()
        if self._signs and request is not None:
            # Connecting, and waiting for a connection of the pool, may have taken longer than a signature is valid.
            fresh = {
                name.lower().encode(): value for name, value in permit.sign(request.method.decode()).items()
            }
            request.headers[:] = [
                (name, fresh[name.lower()].encode() if name.lower() in fresh else value)
                for name, value in request.headers
            ]


def _traced_async(
    sending: _Sending, trace: Callable[[str, object], Awaitable[None]] | None
) -> Callable[[str, object], Awaitable[None]]:
    async def traced(event: str, info: object) -> None:
        if (ready := sending.ready(event)) is not None:
            await ready
        sending.note(event, info)
        if trace is not None:
            await trace(event, info)

    return traced


def _traced(sending: _Sending, trace: Callable[[str, object], None] | None) -> Callable[[str, object], None]:
    def traced(event: str, info: object) -> None:
        sending.ready(event)
        sending.note(event, info)
        if trace is not None:
            trace(event, info)

    return traced
