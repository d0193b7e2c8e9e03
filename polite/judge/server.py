"""Serves the practice sites, each on an address of its own (127.0.0.1 and on), and logs each request."""

import asyncio
import errno
import html
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from polite.judge.sites import (
    BUSY_S,
    DOWN_S,
    HOP,
    HOP_ASIDE,
    HOP_HOST,
    RETRY_AFTER_S,
    SEARCH_S,
    Host,
    Quirk,
    practice_sites,
)
from polite.judge.verdict import ROBOTS, Request

_SLOW_S = 0.5
# Attempts to find a port that is free on all addresses.
_PORT_TRIES = 20


@dataclass(slots=True)
class Sites:
    """The running sites.

    Attributes:
        hosts: the sites.
        port: their port.
        addresses: the IP address of each host.
        named: links lead to the hosts' names, which a DNS server must know, instead of their addresses.
        requests: all requests so far.
        log: is called with each request.
    """

    hosts: Sequence[Host]
    port: int
    addresses: dict[str, str]
    named: bool = False
    requests: list[Request] = field(default_factory=list)
    log: Callable[[Request], object] | None = None

    def url(self, name: str, path: str = "/") -> str:
        """Return the URL of a page.

        Args:
            name: The host's.
            path: The path of the page, with its query.
        """
        return f"http://{name if self.named else self.addresses[name]}:{self.port}{path}"


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
        self._hosts = {sites.addresses[host.name]: host for host in sites.hosts}
        self._hops = {host.name: host.hops for host in sites.hosts}
        self._ring = [host.name for host in sites.hosts if host.quirk not in (Quirk.PRACTICE, Quirk.DOWN)]
        self._seen: Counter[tuple[str, str]] = Counter()
        self._refuses_until: dict[str, float] = {}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("_TimestampedConnection", request.protocol)
        host, path = self._hosts[connection.address], request.raw_path
        self._seen[host.name, path] += 1
        response = self.respond(host, path, self._seen[host.name, path], asyncio.get_running_loop().time())
        if response.headers.get("ETag") and request.headers.get("If-None-Match") == response.headers["ETag"]:
            response = web.Response(status=304, headers={"ETag": response.headers["ETag"]})
        agent, retry_after = request.headers.get("User-Agent", ""), response.headers.get("Retry-After", "0")
        seen = Request(connection.arrived_at, host.name, path, response.status, agent, float(retry_after))
        self._sites.requests.append(seen)
        if self._sites.log is not None:
            self._sites.log(seen)
        if host.quirk is Quirk.SLOW:
            await asyncio.sleep(_SLOW_S)
        return response

    def respond(self, host: Host, path: str, times: int, now: float) -> web.Response:
        """Return the response to the n-th request for this path."""
        if path == ROBOTS:
            return self._robots(host, times)
        if path.startswith(HOP):
            return self._hop(host, path)
        if host.quirk is Quirk.LIMITED and path == "/page/2" and times == 1:
            self._refuses_until[host.name] = now + RETRY_AFTER_S
        if now < (until := self._refuses_until.get(host.name, 0.0)):
            return _refusal(429, max(1, round(until - now)))
        if path in host.moved:
            name, to = host.moved[path]
            return _redirect(self._sites.url(name if name in self._hops else host.name, to))
        if host.quirk is Quirk.PRACTICE:
            if path == "/search":
                return _refusal(429, SEARCH_S)
            if path == "/sitemap.xml":
                return self._sitemap(host)
        return self._page(host, path) if path in ("/", *host.pages) else web.Response(status=404)

    def _robots(self, host: Host, times: int) -> web.Response:
        match host.quirk:
            case Quirk.DOWN:
                return _refusal(503, DOWN_S)
            case Quirk.MISSING:
                return web.Response(status=404, text="no such file")
            case Quirk.FORBIDDEN:
                return web.Response(status=403, text="not for you")
            case Quirk.BUSY_TWICE if times <= 2:
                return _refusal(503, BUSY_S)
            case Quirk.HOPS:
                return self._to_hop(host.name, 1)
            case _:
                return web.Response(body=host.robots, content_type="text/plain")

    def _hop(self, at: Host, path: str) -> web.Response:
        """Return the n-th redirect to a host's robots.txt. One of them is on another host."""
        name, _, number = path.removeprefix(HOP).partition("/")
        hops = self._hops.get(name, 0)
        if number not in map(str, range(1, hops + 1)):
            return web.Response(status=404)
        if int(number) == hops:
            return web.Response(body=at.robots, content_type="text/plain")
        return self._to_hop(name, int(number) + 1)

    def _to_hop(self, name: str, number: int) -> web.Response:
        at = HOP_HOST if number == HOP_ASIDE and HOP_HOST in self._hops else name
        return _redirect(self._sites.url(at, f"{HOP}{name}/{number}"))

    def _page(self, host: Host, path: str) -> web.Response:
        """Return a page with links to all pages of its host. Most front pages also link to the next host."""
        if path in host.texts:
            return web.Response(text=host.texts[path], content_type="text/html", headers={"ETag": '"1"'})
        links = list(host.pages)
        if path == "/" and host.name in self._ring:
            following = self._sites.url(self._ring[(self._ring.index(host.name) + 1) % len(self._ring)])
            # As a U-label: crawlers meet IDNs in that form.
            links.append(following.encode().decode("idna"))
        anchors = "".join(f'<a href="{html.escape(link)}">{html.escape(link)}</a>\n' for link in links)
        # A whole page: some crawlers take one without a body, or with little text, for a refusal.
        head = f"<html><head><title>{host.name}</title></head>"
        body = f"<body>\n<p>A practice site for crawlers: {html.escape(host.note)}.</p>\n{anchors}</body>"
        return web.Response(text=f"<!doctype html>\n{head}\n{body}</html>\n", content_type="text/html")

    def _sitemap(self, host: Host) -> web.Response:
        dates = {
            "/about": "<lastmod>2026-05-01</lastmod><priority>0.8</priority>",
            "/search": "<lastmod>2025-11-30</lastmod>",
        }
        entries = "".join(
            f"<url><loc>{self._sites.url(host.name, path)}</loc>{dates.get(path, '')}</url>"
            for path in ("/about", "/search", "/private/diary")
        )
        return web.Response(text=f"<urlset>{entries}</urlset>", content_type="application/xml")


def _refusal(status: int, retry_after_s: int) -> web.Response:
    return web.Response(status=status, text="Not so fast", headers={"Retry-After": str(retry_after_s)})


def _redirect(location: str) -> web.Response:
    return web.Response(status=302, headers={"Location": location})


def _listen(hosts: Sequence[Host], port: int) -> tuple[int, dict[str, socket.socket]]:
    """Return one listening socket per host, all on one port; 0 chooses one. Raises OSError."""
    failed: OSError | None = None
    for _ in range(1 if port else _PORT_TRIES):
        opened: dict[str, socket.socket] = {}
        chosen = port
        try:
            for number, host in enumerate(hosts, start=1):
                opened[host.name] = socket.create_server((f"127.0.0.{number}", chosen))
                chosen = opened[host.name].getsockname()[1]
        except OSError as error:
            failed = error
            for listening in opened.values():
                listening.close()
            if error.errno == errno.EADDRNOTAVAIL:
                break
        else:
            return chosen, opened
    what = f"port {port} is not free" if port else "no port is free"
    raise OSError(f"{what} on all of 127.0.0.1 to 127.0.0.{len(hosts)}, which the sites need: {failed}")


@asynccontextmanager
async def serving(
    hosts: Sequence[Host] = practice_sites(), port: int = 0, *, named: bool = False
) -> AsyncIterator[Sites]:
    """Serve sites until the block exits.

    Args:
        hosts: The sites; by default all.
        port: The port of all of them; 0 for one that is free.
        named: Whether links lead to the hosts' names instead of their addresses.

    Raises:
        OSError: This machine lacks the loopback addresses, or the port is not free.
    """
    port, sockets = _listen(hosts, port)
    addresses = {name: listening.getsockname()[0] for name, listening in sockets.items()}
    running = Sites(hosts, port, addresses, named)
    site = _TimestampedServer(SiteHandler(running).handle)
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(site, sock=listening) for listening in sockets.values()]
    try:
        yield running
    finally:
        for server in servers:
            server.close()
        await site.shutdown(timeout=1.0)
