"""One real aiohttp server that plays all hosts of the demo, each on its own 127.x.y.z, and writes down what arrives."""

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

from polite.cli.demo.request_log import HOP, ROBOTS, Hit
from polite.cli.demo.sites import HOSTS, RETRY_AFTER_S, Host, Quirk

_SLOW_S = 0.5
# So many times a free port is looked for that is free on all addresses.
_PORT_TRIES = 20
_HOP_ASIDE = 3


@dataclass(slots=True)
class Web:
    """The running web: where each name lives, and every hit so far."""

    port: int
    addresses: dict[str, str]
    hits: list[Hit] = field(default_factory=list)

    def url(self, name: str, path: str = "/") -> str:
        """Where a page of a host is."""
        return f"http://{name}:{self.port}{path}"


class _Stamping(RequestHandler):
    """Knows which address was dialled, and stamps the moment at which bytes are read, before anything is done about them."""

    address = ""
    arrived_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.address = transport.get_extra_info("sockname")[0]
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.arrived_at = time.monotonic()
        super().data_received(data)


class _Stamped(web.Server):
    def __call__(self) -> RequestHandler:
        return _Stamping(self, loop=asyncio.get_running_loop())


class _Site:
    """Answers for all hosts; which one is asked is known by the address that was dialled."""

    def __init__(self, playing: Web) -> None:
        self._web = playing
        self._hosts = {playing.addresses[host.name]: host for host in HOSTS}
        self._names = {host.name: host for host in HOSTS}
        self._seen: Counter[tuple[str, str]] = Counter()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("_Stamping", request.protocol)
        host, path = self._hosts[connection.address], request.raw_path
        self._seen[host.name, path] += 1
        response = self._respond(host, path, self._seen[host.name, path])
        self._web.hits.append(Hit(connection.arrived_at, host.name, path, response.status))
        if host.quirk is Quirk.SLOW:
            await asyncio.sleep(_SLOW_S)
        return response

    def _respond(self, host: Host, path: str, times: int) -> web.Response:
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
        """The n-th stop on the way to a host's rules; one of them lies on another host."""
        name, _, number = path.removeprefix(HOP).partition("/")
        host = self._names.get(name)
        if host is None or number not in map(str, range(1, host.hops + 1)):
            return web.Response(status=404)
        if int(number) == host.hops:
            return web.Response(body=host.robots, content_type="text/plain")
        return self._redirect(host, int(number) + 1)

    def _redirect(self, host: Host, number: int) -> web.Response:
        at = HOSTS[0].name if number == _HOP_ASIDE else host.name
        return web.Response(status=302, headers={"Location": self._web.url(at, f"{HOP}{host.name}/{number}")})

    def _page(self, host: Host, path: str) -> web.Response:
        """Each page links to all of its host's; the front page also to the next host's front page."""
        links = list(host.pages)
        if path == "/":
            names = list(self._names)
            following = names[(names.index(host.name) + 1) % len(names)]
            # Spelled as people write it: a crawler meets IDNs like that.
            links.append(self._web.url(following.encode().decode("idna")))
        anchors = "".join(f'<a href="{html.escape(link)}">{html.escape(link)}</a>\n' for link in links)
        return web.Response(
            text=f"<!doctype html><title>{host.name}</title>\n{anchors}", content_type="text/html"
        )


def _listen() -> tuple[int, dict[str, socket.socket]]:
    """A listening socket per host, all on one port."""
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
    raise OSError(f"no port could be had on all of 127.31.0.1 to 127.31.0.{len(HOSTS)}: {failed}")


@asynccontextmanager
async def playing() -> AsyncIterator[Web]:
    """Serve all hosts while the block lasts. Raises OSError when this machine has no such loopback addresses."""
    port, sockets = _listen()
    running = Web(port, {name: listening.getsockname()[0] for name, listening in sockets.items()})
    site = _Stamped(_Site(running).answer)
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(site, sock=listening) for listening in sockets.values()]
    try:
        yield running
    finally:
        for server in servers:
            server.close()
        await site.shutdown(timeout=1.0)
