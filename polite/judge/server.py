"""Serves the practice sites, each on an address of its own (127.0.0.1 and on), and logs each request."""

import asyncio
import errno
import html
import logging
import math
import socket
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
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
from polite.judge.verdict import ROBOTS, Request, canonical

_SLOW_S = 0.5
# Octets of a request's first line and of each field.
_LONGEST = 1 << 16
# What a client sends may be wrong: the log has it, and nobody needs a traceback.
_QUIET = logging.getLogger("polite.judge")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False
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
    """

    hosts: Sequence[Host]
    port: int
    addresses: dict[str, str]
    named: bool = False
    requests: list[Request] = field(default_factory=list)

    def url(self, name: str, path: str = "/") -> str:
        """Return the URL of a page.

        Args:
            name: The host's.
            path: The path of the page, with its query.
        """
        return f"http://{name if self.named else self.addresses[name]}:{self.port}{path}"


class _Connection(RequestHandler):
    """Records the local address, and when the bytes of each request were read, before it is handled."""

    def __init__(self, server: "_Server") -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, logger=_QUIET, max_line_size=_LONGEST, max_field_size=_LONGEST)
        self._log = server.log
        self._arrivals: deque[float] = deque()
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.address = transport.get_extra_info("sockname")[0]
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        waiting = len(self._messages)
        super().data_received(data)
        # Requests that came at once, one behind the other, are handled one after the other.
        self._arrivals.extend([now] * (len(self._messages) - waiting))

    def arrived_at(self) -> float:
        """Return when the request that is being handled came."""
        return self._arrivals.popleft() if self._arrivals else time.monotonic()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Log a request that cannot be read. It is one all the same."""
        self._log(self.address, self.arrived_at(), "(unreadable request)", web.Response(status=status))
        return super().handle_error(request, status, exc, message)


class _Server(web.Server):
    def __init__(self, handler: "SiteHandler") -> None:
        super().__init__(handler.handle)
        self.log = handler.log

    def __call__(self) -> RequestHandler:
        return _Connection(self)


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
        connection = cast("_Connection", request.protocol)
        host, path = self._hosts[connection.address], canonical(request.raw_path)
        self._seen[host.name, path] += 1
        response = self.respond(host, path, self._seen[host.name, path], asyncio.get_running_loop().time())
        if response.headers.get("ETag") and request.headers.get("If-None-Match") == response.headers["ETag"]:
            response = web.Response(status=304, headers={"ETag": response.headers["ETag"]})
        agent = request.headers.get("User-Agent", "")
        self.log(connection.address, connection.arrived_at(), path, response, agent)
        if host.quirk is Quirk.SLOW:
            await asyncio.sleep(_SLOW_S)
        return response

    def log(self, address: str, at: float, path: str, response: web.Response, agent: str = "") -> None:
        """Add a request to the log."""
        host, retry_after = self._hosts[address], float(response.headers.get("Retry-After", "0"))
        took = _SLOW_S if host.quirk is Quirk.SLOW else 0.0
        self._sites.requests.append(Request(at, host.name, path, response.status, agent, retry_after, took))

    def respond(self, host: Host, path: str, times: int, now: float) -> web.Response:
        """Return the response to the n-th request for this path."""
        if path == ROBOTS:
            return self._robots(host, times)
        if path.startswith(HOP):
            return self._hop(host, path)
        if host.quirk is Quirk.LIMITED and path == "/page/2" and times == 1:
            self._refuses_until[host.name] = now + RETRY_AFTER_S
        if now < (until := self._refuses_until.get(host.name, 0.0)):
            return _refusal(429, max(1, math.ceil(until - now)))
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
        text = f"<p>A page of {host.name}, one of the practice sites that polite judge serves.</p>"
        return web.Response(
            text=f"<!doctype html>\n{head}<body>\n{text}\n{anchors}</body></html>\n", content_type="text/html"
        )

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
        else:
            return chosen, opened
        if failed.errno == errno.EADDRNOTAVAIL:
            raise OSError(
                f"each site needs an address of its own, 127.0.0.1 to 127.0.0.{len(hosts)}, and this system lacks some: add each, "
                "as by `sudo ifconfig lo0 alias 127.0.0.2`"
            )
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
    site = _Server(SiteHandler(running))
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(site, sock=listening) for listening in sockets.values()]
    try:
        yield running
    finally:
        for server in servers:
            server.close()
        await site.shutdown(timeout=1.0)
