"""A live status page of one gate and its frontier: who waits, for what, and since when.

    async with polite.status.serve(gate, frontier, port=8080) as page:
        print(page.url)

Theory of operation. Counters are read once a second (`monitor`), and events are counted as they come (`recorder`), so a permit
costs nothing more. Which origins wait, and why, is found when it is asked for, in one look of at most three milliseconds
(`survey`): beyond some thousand origins, the oldest are looked at and the others are counted. Each list is bounded. What fails
here is logged, and never reaches the crawl.

The page (`page/`) is plain HTML, CSS and one script, without a build step, and without anything from another host. Its script asks
for `/api/status` once a second, with the token in a header, and shows each text from outside as text. `server` decides who may see
it.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from polite.errors import InvalidOption
from polite.frontier.frontier import Frontier
from polite.gate.gate import Gate
from polite.options import instance, integer

if TYPE_CHECKING:
    from polite.status.monitor import Monitor
    from polite.status.server import StatusServer

__all__ = ["StatusPage", "serve"]


class StatusPage:
    """A status page that is served. Made by `serve`.

    Attributes:
        url: Its address, without the token.
        port: The port that it listens at.
    """

    def __init__(self, url: str, port: int, server: "StatusServer", monitor: "Monitor") -> None:
        self.url = url
        self.port = port
        self._server = server
        self._monitor = monitor

    async def close(self) -> None:
        """End all connections, and stop listening, within about two seconds. May be called twice. The gate goes on."""
        try:
            await self._server.http.end()
        finally:
            await self._monitor.stop()

    def __repr__(self) -> str:
        return f"<StatusPage {self.url}>"


@asynccontextmanager
async def serve(
    gate: Gate,
    frontier: Frontier | None = None,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    token: str | None = None,
    names: Collection[str] = (),
    max_clients: int = 8,
) -> AsyncIterator[StatusPage]:
    """Serve a live status page of a gate until the block exits: who waits, for what, and since when. `/api` has the same as JSON.

    It shows URLs, so by default only this machine reaches it. No request to it fetches anything, and only an
    operator's orders, which need the token, change the crawl.

    Example:
        async with polite.status.serve(gate, frontier, port=8080) as page:
            print(page.url)  # http://127.0.0.1:8080/

    Args:
        gate: The gate.
        frontier: The frontier of this gate, if there is one.
        port: The port to listen at; 0 for any that is free.
        host: The address to listen at. Any but loopback needs a token.
        token: What a script must send as `Authorization: Bearer TOKEN`, and a browser must type once or have in the address,
            `http://127.0.0.1:8080/#TOKEN`: 16 characters or more. The connection is not
            encrypted: across a network, put a server with TLS before it.
        names: Host names of this server, such as "status.example.com": requests for other names are refused, so that no other
            site reaches the page by DNS rebinding. Addresses and `localhost` need not be named.
        max_clients: How many browsers may look at one time: each may have 4 connections, and beyond them the oldest ends.

    Raises:
        InvalidOption: An option has the wrong type or value, or a token is missing.
        OSError: The port is taken, or the address is not one of this machine.
    """
    instance("status: gate", gate, Gate)
    if (
        frontier is not None
        and instance("status: frontier", frontier, Frontier).dispatcher.services is not gate.services
    ):
        raise InvalidOption("status: the frontier is one of another gate")
    integer("status: port", port, least=0, most=65_535)
    integer("status: max_clients", max_clients, least=1, most=100)
    if type(host) is not str or not host:
        raise InvalidOption(f"status: host must be an address to listen at, got {host!r}")
    # Imported here: `import polite` loads no HTTP server.
    from polite.status.monitor import Monitor
    from polite.status.server import Access, StatusServer

    access = Access(host, token, names)
    monitor = Monitor(gate, frontier)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(monitor.stop)
        server = StatusServer(monitor, access, max_clients)
        stack.push_async_callback(server.http.end)
        yield StatusPage(*await server.http.listen(host, port), server, monitor)
