"""aiohttp: a client middleware that waits at a gate before each request, redirect hops and retries included."""

import warnings
from functools import partial
from typing import Never
from weakref import WeakSet

import aiohttp
from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse, hdrs
from aiohttp.connector import Connection
from aiohttp.http import SERVER_SOFTWARE
from aiohttp.streams import EmptyStreamReader

from polite.errors import InvalidOption, PermitMisused, TurnLost, redact_url
from polite.gate.gate import Gate
from polite.integrations.hop import Hop, raised_as, require_gate, set_agent
from polite.transports.address_guard import collect_refused
from polite.transports.connection_pool import ProxyRefused

# RFC 9110, 15.5.2 and 15.5.8: middlewares that log in send the request again before they read the body.
_ASKS_TO_LOG_IN = frozenset({401, 407})
# A WebSocket has no body that ends.
_SWITCHING = 101


def middleware(gate: Gate, *handler: Never) -> ClientMiddlewareType:
    """Return a client middleware that gives each request of a session its turn at the gate.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=30)
            async with aiohttp.ClientSession(middlewares=[middleware(gate)], timeout=timeout) as session:
                async with session.get("https://example.com/about") as response:
                    body = await response.read()

    Each redirect hop and each repetition by aiohttp is checked, waits for its own turn, and is reported. A response holds its turn
    until its body is read or released; that of a 401, a 407 or a WebSocket until its head. The gate's User-Agent is sent.

    If the gate has a signer, each request is signed when its connection is there.

    It must be the last middleware. Set `ClientTimeout(total=None)`: a total counts the time that a request waits for its turn.

    While a request is sent, these are raised, each also as an `aiohttp.ClientError`:

        Disallowed, RobotsUnreachable, InvalidURL, GateClosed, Overloaded: As by `gate.permit`.
        PermitMisused: The task has the response open whose turn it would wait for.
        InvalidUserAgent: The session or the request has another User-Agent than the gate.
        InvalidOption: It is not the last middleware.

    Args:
        gate: A gate of `polite.open_gate`. The session does not close it.
        handler: Nothing. aiohttp passes one if this function itself was given to the session; that raises InvalidOption.
    """
    if handler:
        raise InvalidOption("ClientSession(middlewares=[middleware]): write [middleware(gate)]")
    require_gate(gate, user="middleware")
    warned: WeakSet[aiohttp.ClientSession] = WeakSet()

    async def polite_middleware(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        with raised_as(aiohttp.ClientError):
            if handler.__module__ == "aiohttp.client_middlewares":
                # What another middleware inside this one sends again would have no turn.
                raise InvalidOption("polite's middleware must be the last in ClientSession(middlewares=...)")
            set_agent(request.headers, gate.agent.header, default=SERVER_SOFTWARE)
            if request.session.timeout.total is not None and request.session not in warned:
                warned.add(request.session)
                warnings.warn(
                    f"ClientTimeout(total={request.session.timeout.total:g}) counts the time that requests wait for their turn; "
                    "use aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=30)",
                    stacklevel=2,
                )
            while True:
                try:
                    return await _in_its_turn(gate, request, handler)
                except TurnLost:
                    # Nothing was sent: connecting took longer than the turn was held.
                    continue

    return polite_middleware


class ConnectionLost(aiohttp.ClientConnectionError):
    """The server closed the connection before its response began."""


async def send_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """A client middleware for a session whose requests have permits of their own: `ClientSession(middlewares=[send_once])`.

    Without it, aiohttp sends a GET a second time, at once, if its connection breaks before the response begins. That request has no
    permit. With it, such a request fails, and may be sent again with another permit.

    Args:
        request: What is sent.
        handler: What sends it, which aiohttp passes.

    Raises:
        ConnectionLost: The connection broke.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        # Nothing was sent.
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise ConnectionLost(str(error) or type(error).__name__) from error


class PacedRequest(ClientRequest):
    """A request that is sent only by `middleware`: one with middlewares of its own would be sent without a turn."""

    async def send(self, conn: Connection) -> ClientResponse:
        """Send the request, as aiohttp calls it.

        Raises:
            PermitMisused: The request has middlewares of its own, so it has no turn.
        """
        with raised_as(aiohttp.ClientError):
            if "send" not in vars(self):
                raise PermitMisused(
                    f"{redact_url(str(self.url))} was requested with middlewares of its own, which replace those of the session; "
                    "open a gate and a session, and give polite's middleware to both"
                )
        return await super().send(conn)


async def _in_its_turn(gate: Gate, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    socket = request.url.scheme in {"ws", "wss"}
    # A WebSocket counts as a request to its http or https origin.
    asked = f"http{str(request.url).removeprefix('ws')}" if socket else str(request.url)
    hop = await Hop.enter(gate, asked, request.method)
    began = False  # whether the server may have seen the request

    async def send(connection: Connection) -> ClientResponse:
        """Send the request, only while its turn is held."""
        nonlocal began
        # A lookup, a connection and a handshake may have taken longer than the turn is held, or a signature is valid.
        await hop.permit.ready()
        hop.sign(request.headers)
        began = True
        return await type(request).send(request, connection)

    if request.session.closed:
        # What aiohttp raises. It may have been closed during the wait for the turn.
        hop.permit.unsent()
        raise RuntimeError("Session is closed")
    try:
        # The URL that the gate decided about is sent, and only while its turn is held.
        url = hop.permit.request_url
        if socket:
            url = url.with_scheme(request.url.scheme)
        host = url.host_port_subcomponent
        if host and request.headers.get(hdrs.HOST) == request.url.host_port_subcomponent:
            request.headers[hdrs.HOST] = host
        request.url = url
        # The request's own attribute goes before the method of its class.
        vars(request)["send"] = send
        with collect_refused() as refused:
            response = await handler(request)
    except BaseException as error:
        # The address guard blocked the connection, so the server has seen nothing.
        blocked = isinstance(error, aiohttp.ClientConnectorError) and refused
        # An error of the crawler's own before the request is sent says nothing of its server: it must not open the circuit.
        # A cancellation may have interrupted a handshake, so the delay runs.
        own = isinstance(error, Exception) and not isinstance(error, aiohttp.ClientError | OSError)
        if not began and (blocked or own or isinstance(error, ProxyRefused)):
            hop.permit.unsent()
        else:
            hop.fail(error)
        raise
    try:
        hop.report(response.status, response.headers)
    except BaseException as error:
        response.close()
        hop.permit.leave(error)
        raise
    if response.connection is None or response.status in _ASKS_TO_LOG_IN or response.status == _SWITCHING:
        hop.end(_octets(response), whole=True)
    else:
        response.connection.add_callback(partial(_ended, response, hop))
    return response


def _ended(response: ClientResponse, hop: Hop) -> None:
    """The connection is released, or was lost."""
    content = response.content
    hop.end(_octets(response), whole=content.is_eof() and content.exception() is None)


def _octets(response: ClientResponse) -> int:
    """Return the octets of the body that came, as they were sent: many responses do not say how long they are."""
    content = response.content
    return 0 if isinstance(content, EmptyStreamReader) else content.total_raw_bytes
