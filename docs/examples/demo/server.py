"""One aiohttp server for all hosts of the demo, each on its own address 127.x.y.z. Logs each request."""

import asyncio
import html
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from docs.examples.demo.judge import ROBOTS, Request
from docs.examples.demo.sites import HOP, HOP_ASIDE, HOSTS, RETRY_AFTER_S, Host, Quirk

_SLOW_S = 0.5
# Attempts to find a port that is free on all addresses.
_PORT_TRIES = 20


@dataclass(slots=True)
class Sites:
    """The running hosts.

    Attributes:
        addresses: the IP address of each host name.
        requests: all requests so far.
    """

    port: int
    addresses: dict[str, str]
    requests: list[Request] = field(default_factory=list)

    def url(self, name: str, path: str = "/") -> str:
        """Return the URL of a page."""
        return f"http://{name}:{self.port}{path}"


class _TimestampedConnection(RequestHandler):
    """Records the local address, and when the bytes of a request were read, before they are parsed."""

    address = ""
    arrived_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.address = transport.get_extra_info("sockname")[0]
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.arrived_at = time.monotonic()
        super().data_received(data)


class _TimestampedServer(web.Server):
    def __call__(self) -> RequestHandler:
        return _TimestampedConnection(self, loop=asyncio.get_running_loop())


class SiteHandler:
    """Responds for all hosts. The local address of the connection says which host is requested."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._hosts = {sites.addresses[host.name]: host for host in HOSTS}
        self._names = {host.name: host for host in HOSTS}
        self._seen: Counter[tuple[str, str]] = Counter()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("_TimestampedConnection", request.protocol)
        host, path = self._hosts[connection.address], request.raw_path
        self._seen[host.name, path] += 1
        response = self.respond(host, path, self._seen[host.name, path])
        self._sites.requests.append(Request(connection.arrived_at, host.name, path, response.status))
        if host.quirk is Quirk.SLOW:
            await asyncio.sleep(_SLOW_S)
        return response

    def respond(self, host: Host, path: str, times: int) -> web.Response:
        """Return the response to the n-th request for this path."""
        if path == ROBOTS:
            return self._robots(host, times)
        if path.startswith(HOP):
            return self._hop(path)
        if host.quirk is Quirk.LIMITED and path == "/page/2" and times == 1:
            return web.Response(status=429, headers={"Retry-After": str(RETRY_AFTER_S)})
        return self._page(host, path) if path in host.pages else web.Response(status=404)

    def _robots(self, host: Host, times: int) -> web.Response:
        match host.quirk:
            case Quirk.MISSING:
                return web.Response(status=404, text="no such file")
            case Quirk.FORBIDDEN:
                return web.Response(status=403, text="not for you")
            case Quirk.BUSY_TWICE if times <= 2:
                return web.Response(status=503, text="busy")
            case Quirk.HOPS:
                return self._redirect(host, 1)
            case _:
                return web.Response(body=host.robots, content_type="text/plain")

    def _hop(self, path: str) -> web.Response:
        """Return the n-th redirect to a host's robots.txt. One of them is on another host."""
        name, _, number = path.removeprefix(HOP).partition("/")
        host = self._names.get(name)
        if host is None or number not in map(str, range(1, host.hops + 1)):
            return web.Response(status=404)
        if int(number) == host.hops:
            return web.Response(body=host.robots, content_type="text/plain")
        return self._redirect(host, int(number) + 1)

    def _redirect(self, host: Host, number: int) -> web.Response:
        at = HOSTS[0].name if number == HOP_ASIDE else host.name
        return web.Response(
            status=302, headers={"Location": self._sites.url(at, f"{HOP}{host.name}/{number}")}
        )

    def _page(self, host: Host, path: str) -> web.Response:
        """Return a page with links to all pages of its host. The front page also links to the next host."""
        links = list(host.pages)
        if path == "/":
            names = list(self._names)
            following = names[(names.index(host.name) + 1) % len(names)]
            # As a U-label: crawlers meet IDNs in that form.
            links.append(self._sites.url(following.encode().decode("idna")))
        anchors = "".join(f'<a href="{html.escape(link)}">{html.escape(link)}</a>\n' for link in links)
        return web.Response(
            text=f"<!doctype html><title>{host.name}</title>\n{anchors}", content_type="text/html"
        )


def _listen() -> tuple[int, dict[str, socket.socket]]:
    """Return one listening socket per host, all on one port. Raises OSError."""
    failed: OSError | None = None
    for _ in range(_PORT_TRIES):
        opened: dict[str, socket.socket] = {}
        port = 0
        try:
            for number, host in enumerate(HOSTS, start=1):
                opened[host.name] = socket.create_server((f"127.31.0.{number}", port))
                port = opened[host.name].getsockname()[1]
        except OSError as error:
            failed = error
            for listening in opened.values():
                listening.close()
        else:
            return port, opened
    raise OSError(f"no port is free on all of 127.31.0.1 to 127.31.0.{len(HOSTS)}: {failed}")


@asynccontextmanager
async def serving() -> AsyncIterator[Sites]:
    """Serve all hosts until the block exits. Raises OSError if this machine lacks the loopback addresses."""
    port, sockets = _listen()
    running = Sites(port, {name: listening.getsockname()[0] for name, listening in sockets.items()})
    site = _TimestampedServer(SiteHandler(running).handle)
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(site, sock=listening) for listening in sockets.values()]
    try:
        yield running
    finally:
        for server in servers:
            server.close()
        await site.shutdown(timeout=1.0)
