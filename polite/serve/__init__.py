"""One gate for all programs of a machine, behind HTTP with JSON: permits, decisions, pages, events and the status page.

    async with polite.serve.serve(gate, port=8700) as served:
        print(served.url)

Theory of operation. A client asks for a permit (`POST /v1/permits`), which waits for its turn; if that takes longer than the client
wants to wait, it asks again. It sends the request itself, and reports the response's head; that ends the permit. `permits` owns
what waits and what is out. A permit ends without its client, too: if its client asks for it no more, or at its deadline.

`api` has the types: an operation names its fields with their limits, so one table checks requests and makes the OpenAPI
document. `endpoints` has the operations, `fetching` fetches for clients, `server` decides who may ask. Everything that a client
sends is bounded, and so is everything that is kept for it.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.options import instance, integer, number
from polite.robots.policy import FetchPolicy
from polite.serve.api import document
from polite.serve.endpoints import OPERATIONS, Services
from polite.serve.fetching import Relay
from polite.serve.permits import Permits
from polite.serve.server import GateServer
from polite.status.monitor import Monitor
from polite.status.server import Access, StatusServer

__all__ = ["ServedGate", "openapi", "serve"]

# Browsers that may look at the status page: connections are limited by the server that passes its requests on.
_BROWSERS = 1


@dataclass(frozen=True, slots=True)
class ServedGate:
    """A gate that is served. Made by `serve`.

    Attributes:
        url: Its address, without a token: `http://127.0.0.1:8700/`, or `unix:PATH`.
        port: The port that it listens at; 0 for a socket file.
    """

    url: str
    port: int


def openapi() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the API."""
    return document(OPERATIONS)


@asynccontextmanager
async def serve(
    gate: Gate,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    unix: str | None = None,
    tokens: Mapping[str, str] | None = None,
    names: Collection[str] = (),
    fetching: FetchPolicy | None = None,
    resolver: Mapping[str, str] | None = None,
    forward: Collection[str] = (),
    max_permits: int = 20_000,
    max_connections: int = 1_000,
    grace: float = 30.0,
) -> AsyncIterator[ServedGate]:
    """Serve a gate over HTTP until the block exits, for programs in any language.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            async with serve(gate, port=8700) as served:
                print(served.url)  # http://127.0.0.1:8700/

    Args:
        gate: The gate. `PacingPolicy.max_hold` says how long a client may hold a permit.
        port: The port to listen at; 0 for any that is free.
        host: The address to listen at. Any but loopback needs a token.
        unix: The path of a socket to listen at instead, which only this user may use.
        tokens: The tokens of clients by name: what they send as `Authorization: Bearer TOKEN`, 16 characters or more. A permit of
            one name is invisible to others. The one named "operator", or the only one, may give orders, and see events and the
            status page. Without tokens, orders are possible at a socket only. The connection is not encrypted.
        names: Host names of this server, as in `polite.status.serve`.
        fetching: Which addresses `/v1/fetch` permits, and its limits on size and time.
        resolver: The addresses of hosts, as `open_gate` takes it.
        forward: Header fields of callers that `/v1/fetch` passes on besides harmless ones, such as "Cookie".
        max_permits: How many permits may wait or be out at one time; of one client half as many if there are several.
        max_connections: How many connections may be open.
        grace: Seconds to wait at the end for reports of permits that are out.

    Raises:
        InvalidOption: An option has the wrong type or value, or a token is missing.
        OSError: The port is taken, or the address is not one of this machine.
    """
    instance("serve: gate", gate, Gate)
    integer("serve: port", port, least=0, most=65_535)
    integer("serve: max_permits", max_permits, least=1, most=1_000_000)
    integer("serve: max_connections", max_connections, least=8, most=1_000_000)
    number("serve: grace", grace, most=3_600.0)
    access = Access("localhost" if unix is not None else host, tokens or None, names, user="serve")
    if tokens and "authorization" in {name.lower() for name in forward}:
        raise InvalidOption("serve: forward cannot have Authorization, which has the token of this server")
    most_each = max(1, max_permits // 2) if tokens and len(tokens) > 1 else max_permits
    async with AsyncExitStack() as stack:
        monitor = Monitor(gate, None)
        stack.push_async_callback(monitor.stop)
        relay = Relay(gate, fetching or FetchPolicy(), resolver, forward)
        stack.push_async_callback(relay.close)
        metrics, end = _metrics(gate)
        stack.callback(end)
        permits = Permits(gate, max_permits, most_each)
        # A socket is this user's alone.
        may_order = access.may_order if unix is None else access.may_look
        services = Services(gate, permits, relay, metrics, access.may_look, may_order)
        status = StatusServer(monitor, access, _BROWSERS)
        server = GateServer(services, OPERATIONS, access, status, max_connections)
        stack.push_async_callback(server.close, grace)
        if unix is not None:
            await server.listen_unix(unix)
            yield ServedGate(f"unix:{unix}", 0)
            return
        yield ServedGate(*await server.http.listen(host, port))


def _metrics(gate: Gate) -> tuple[Callable[[], bytes] | None, Callable[[], object]]:
    """Return what makes the metrics as text, if prometheus-client is there; and what ends that."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest

        from polite.integrations import prometheus
    except ImportError:
        return None, lambda: None
    registry = CollectorRegistry()
    end = prometheus.observe(gate, registry=registry)
    return lambda: generate_latest(registry), end
