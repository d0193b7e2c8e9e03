"""httpx and httpx2: transports that wait at a gate before each request, redirect hops and auth flows included."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from polite import blocking
from polite.errors import TurnLost
from polite.gate.gate import Gate
from polite.integrations import hop as hops

if TYPE_CHECKING:
    # Those of httpx2 have the same members.
    from httpx import Request, Response

# The event of httpcore before the first octet of a request, in HTTP/1.1 and HTTP/2.
_SENDING = "send_request_headers.started"
_NO_BODY = frozenset({204, 304})


def transport(gate: Gate | blocking.Gate, module: ModuleType, wrapped: Any = None) -> Any:
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
    hops.require_any_gate(gate)
    threads = isinstance(gate, blocking.Gate)
    if wrapped is None:
        wrapped = module.HTTPTransport() if threads else module.AsyncHTTPTransport()
    kind = _derived(_Transport, module.BaseTransport if threads else module.AsyncBaseTransport)
    return kind(gate, module, wrapped)


class _Transport:
    """Waits for a permit, and has the wrapped transport send the request: what a client of either kind calls."""

    def __init__(self, gate: Gate | blocking.Gate, module: ModuleType, wrapped: Any) -> None:
        self._gate = gate
        self._module = module
        self._wrapped = wrapped

    def _of(self, client: str) -> Any:
        """Return what the client uses. Raises InvalidOption if the gate is of the other kind."""
        hops.require_gate(self._gate, user=f"{client}(transport=...)", threads=client == "Client")
        return self._wrapped

    async def handle_async_request(self, request: "Request") -> "Response":
        send = self._of("AsyncClient").handle_async_request
        return await self._exchange(request, send, self._module.AsyncByteStream)

    async def aclose(self) -> None:
        await self._of("AsyncClient").aclose()

    async def __aenter__(self) -> Self:
        await self._of("AsyncClient").__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._wrapped.__aexit__(*error)

    def handle_request(self, request: "Request") -> "Response":
        send = self._of("Client").handle_request
        return hops.run_now(self._exchange(request, send, self._module.SyncByteStream))

    def close(self) -> None:
        self._of("Client").close()

    def __enter__(self) -> Self:
        self._of("Client").__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._wrapped.__exit__(*error)

    async def _exchange(self, request: "Request", send: Any, stream: type) -> "Response":
        module = self._module
        with hops.raised_as(module.RequestError, request=request):
            default = f"python-{module.__name__}/{module.__version__}"
            hops.set_agent(request.headers, self._gate.agent.header, default=default)
            while True:
                hop = await hops.Hop.enter(self._gate, str(request.url), request.method)
                try:
                    return await self._sent(request, hop, send, stream)
                except TurnLost:
                    # Nothing was sent: a connection took longer than the turn was held.
                    hop.permit.unsent()
                except module.PoolTimeout:
                    hop.permit.unsent()
                    raise
                except BaseException as error:
                    hop.fail(error, module.LocalProtocolError, module.UnsupportedProtocol)
                    raise

    async def _sent(self, request: "Request", hop: hops.Hop, send: Any, stream: type) -> "Response":
        # The URL that the gate decided about.
        target, before = hop.permit.target, request.url.netloc.decode("ascii")
        netloc, path = target.origin.text.partition("://")[2], target.path.encode("ascii")
        if request.url.raw_path != path or before != netloc:
            request.url = self._module.URL(target.origin.text).copy_with(raw_path=path)
            if request.headers.get("Host") == before:
                request.headers["Host"] = netloc
        hop.sign(request.headers)
        extensions = request.extensions
        sending = _Sending(hop, extensions.get("trace"))
        traced = sending.noted if isinstance(self._gate, Gate) else sending.noted_now
        # For this request only: the next hop gets a copy of them.
        request.extensions = {**extensions, "trace": traced}
        try:
            response: Response = await hops.settled(send(request))
        finally:
            request.extensions = extensions
        try:
            hop.report(response.status_code, response.headers.raw)
        except BaseException:
            if isinstance(self._gate, Gate):
                await response.aclose()
            else:
                response.close()
            raise
        if response.is_closed:
            # It came with its content, as those of MockTransport do: the client reads and closes no stream.
            hop.permit.leave()
        else:
            # RFC 9112, 6.3: if there is no body, the client may never read one.
            whole = response.status_code in _NO_BODY or response.headers.get("Content-Length") == "0"
            response.stream = _derived(_Body, stream)(response.stream, hop, whole=whole)
        return response


class _Body:
    """A body that holds a hop until it is closed. The client closes it at its end, or when the crawler leaves early.

    Args:
        whole: There is nothing to read.
    """

    def __init__(self, stream: Any, hop: hops.Hop, *, whole: bool) -> None:
        self._stream = stream
        self._hop = hop
        self._whole = whole
        self._octets = 0
        # A permit for threads is left when it is dropped, but one of an event loop must be left on its loop.
        self._loop = asyncio.get_running_loop() if isinstance(hop.gate, Gate) else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._octets += len(chunk)
            yield chunk
        self._whole = True

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._octets += len(chunk)
            yield chunk
        self._whole = True

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._hop.end(self._octets, whole=self._whole)

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._hop.end(self._octets, whole=self._whole)

    def __del__(self) -> None:
        # A response that was dropped unread.
        if self._loop is not None:
            self._hop.end_from_any_thread(self._loop, self._octets)


@cache
def _derived(kind: type, base: type) -> Any:
    """Return the class as one of the module's own: it checks the types of streams."""
    return type(kind.__name__.lstrip("_"), (kind, base), {})


class _Sending:
    """Sees to it that a request is sent only while its turn is held, with a signature of this moment."""

    def __init__(self, hop: hops.Hop, trace: Callable[[str, object], Any] | None) -> None:
        # Empty once the request is sent: the pool keeps the trace of a response that is dropped, which must not keep the permit.
        self._held = [hop]
        self._trace = trace

    async def noted(self, event: str, info: object) -> None:
        """When a connection is there, wait until the request may be sent. Raises TurnLost if the turn is lost by then."""
        if self._held and event.endswith(_SENDING):
            await hops.settled(self._held[0].permit.ready())
            request = info.get("request") if isinstance(info, dict) else None
            # One to a proxy must not see the signature. The request itself follows.
            if request is None or request.method != b"CONNECT":
                hop = self._held.pop()
                if hop.gate.signs and request is not None:
                    # Connecting, and waiting for a connection of the pool, may have taken longer than a signature is valid.
                    fields = hop.permit.sign(request.method.decode())
                    fresh = {name.lower().encode(): value.encode() for name, value in fields.items()}
                    request.headers[:] = [
                        (name, fresh.get(name.lower(), value)) for name, value in request.headers
                    ]
        if self._trace is not None:
            await hops.settled(self._trace(event, info))

    def noted_now(self, event: str, info: object) -> None:
        hops.run_now(self.noted(event, info))
