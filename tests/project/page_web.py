"""The web that README and docs speak of, on loopback and in virtual time."""

import asyncio
import socket
import ssl
import threading
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import anyio
import pytest
from aiohttp import web
from curl_cffi.requests import Session as CurlSession

import polite
from polite.judge.server import serving
from polite.robots.exchange import Ask, Failed, Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop
from polite.transports.http import HttpTransport
from tests.hasty_clock import HastyClock

PRACTICE_PORT = 8031

# Each robots.txt and sitemap comes from a script, each page from a real server on loopback.
ROBOTS = {
    "https://example.com/robots.txt": Reply(
        200, b"User-agent: *\nDisallow: /private/\nAllow: /private/press\nCrawl-delay: 2\n"
    ),
    "https://busy.example/robots.txt": Reply(503, retry_after="120"),
    "https://example.com/sitemap.xml": Reply(
        200,
        b"<urlset><url><loc>https://example.com/about</loc><lastmod>2026-05-01</lastmod><priority>0.8</priority></url>"
        b"<url><loc>https://example.com/search</loc><lastmod>2025-11-30</lastmod></url>"
        b"<url><loc>https://example.com/private/diary</loc></url></urlset>",
    ),
}
WEB = {
    "https://example.com/": (200, '<a href="/about">About</a> <a href="/private/diary">Diary</a>'),
    "https://example.com/about": (200, "About this site"),
    "https://example.com/private/press": (200, "Press"),
    "https://example.com/search": (429, "Not so fast"),
}


class Everywhere(aiohttp.abc.AbstractResolver):
    """Every name is the server on loopback, whatever its port."""

    def __init__(self, ports: dict[int, int]) -> None:
        self._ports = ports

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[Any]:
        here = {"host": "127.0.0.1", "port": self._ports[port], "family": socket.AF_INET}
        return [{"hostname": host, "proto": 0, "flags": 0, **here}]

    async def close(self) -> None:
        pass


class PageTransport:
    """Fetches robots.txt from the practice sites, or as ROBOTS says."""

    def __init__(self, real: HttpTransport) -> None:
        self._real = real
        self._scripted = ScriptedTransport(ROBOTS)

    async def get(self, ask: Ask) -> Reply | Failed:
        practice = ask.target.origin.port == PRACTICE_PORT
        return await (self._real if practice else self._scripted).get(ask)

    async def close(self) -> None:
        await self._real.close()
        await self._scripted.close()


class PageWeb:
    """Servers on loopback, in virtual time, in the place of the real web.

    Args:
        server_tls: That of the servers.
        client_tls: That of clients, which trust them.
        ca_file: The certificate that clients trust.

    Attributes:
        transport, session: The real ones, for blocks that connect to addresses.
    """

    def __init__(self, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext, ca_file: str) -> None:
        self.transport = HttpTransport
        self.session = aiohttp.ClientSession
        self._server_tls = server_tls
        self._client_tls = client_tls
        self._ca_file = ca_file
        self._ports: dict[int, int] = {}

    def replace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the pages' web in the place of the real one, and virtual time in that of the clock."""
        reach_from_other_clients(monkeypatch, self._ports, self._ca_file)
        monkeypatch.setattr(aiohttp, "ClientSession", self._session)
        monkeypatch.setattr("polite.compose.gate.SystemClock", clock_of_the_loop)
        monkeypatch.setattr("polite.cli.fetch.command.SystemClock", LoopClock)
        monkeypatch.setattr(
            "polite.transports.http.HttpTransport", lambda *options: PageTransport(self.transport(*options))
        )
        reach_the_practice_sites(monkeypatch, self._ports)
        monkeypatch.setattr(asyncio, "run", self.run)

    def run(self, main: Awaitable[Any]) -> Any:
        """Do what asyncio.run does, with the servers."""
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(self._with_servers(main))

    @contextmanager
    def in_a_thread(self) -> Iterator[None]:
        """For clients that block: the servers are in another thread meanwhile."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        served = self._serving()
        try:
            asyncio.run_coroutine_threadsafe(served.__aenter__(), loop).result()
            yield
        finally:
            asyncio.run_coroutine_threadsafe(served.__aexit__(None, None, None), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _with_servers(self, main: Awaitable[Any]) -> Any:
        async with self._serving():
            return await main

    @asynccontextmanager
    async def _serving(self) -> Any:
        runner = web.ServerRunner(web.Server(self._answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._server_tls).start()
        self._ports.update(zip((80, 443), (port for _, port in runner.addresses), strict=True))
        try:
            async with serving() as sites:
                # Links have the port that pages name.
                self._ports[PRACTICE_PORT], sites.port = sites.port, PRACTICE_PORT
                yield
        finally:
            await runner.cleanup()

    def _session(self, **options: Any) -> aiohttp.ClientSession:
        everywhere = aiohttp.TCPConnector(resolver=Everywhere(self._ports), ssl=self._client_tls)
        # The pool of `open_session` is closed by itself; this connector by its session.
        return self.session(**{**options, "connector": everywhere, "connector_owner": True})

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        status, text = WEB.get(f"{request.scheme}://{request.host}{request.raw_path}", (404, "no such page"))
        headers = (
            {"Retry-After": "60"} if status == 429 else {"ETag": '"1"'} if text == "About this site" else {}
        )
        if request.headers.get("If-None-Match") == '"1"':
            return web.Response(status=304, headers=headers)
        return web.Response(status=status, text=text, headers=headers, content_type="text/html")


def reach_the_practice_sites(monkeypatch: pytest.MonkeyPatch, ports: dict[int, int]) -> None:
    """Have connections to the port that pages name lead to the one that was free."""
    connect = BaseSelectorEventLoop.sock_connect

    async def sock_connect(self: Any, sock: socket.socket, address: Any) -> None:
        await connect(
            self, sock, (address[0], ports[PRACTICE_PORT]) if address[1] == PRACTICE_PORT else address
        )

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", sock_connect)


def clock_of_the_loop() -> LoopClock | HastyClock:
    """A gate of `polite.blocking` has a loop of its own, which is not virtual."""
    virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    return LoopClock() if virtual else HastyClock()


def reach_from_other_clients(monkeypatch: pytest.MonkeyPatch, ports: dict[int, int], ca_file: str) -> None:
    """Have httpx, requests, niquests and curl_cffi reach the web of the pages, and trust its certificate."""
    connect, getaddrinfo, curl = anyio.connect_tcp, socket.getaddrinfo, CurlSession.request

    async def connect_tcp(remote_host: str, remote_port: int, **options: Any) -> Any:
        return await connect(here(remote_host), ports[remote_port], **options)

    def addresses(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        return getaddrinfo(here(host), ports.get(port, port), *args, **options)

    def here(host: str) -> str:
        return host if str(host).startswith("127.") else "127.0.0.1"

    def request(self: Any, method: str, url: str, **options: Any) -> Any:
        # libcurl looks up names itself.
        target = polite.Target.of(url)
        if target.origin.port == PRACTICE_PORT:
            return curl(
                self, method, f"http://{target.origin.host}:{ports[PRACTICE_PORT]}{target.path}", **options
            )
        options["headers"]["Host"] = target.origin.host
        site = f"https://127.0.0.1:{ports[443]}{target.path}"
        return curl(self, method, site, verify=False, **options)

    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", ca_file)
    monkeypatch.setattr(anyio, "connect_tcp", connect_tcp)
    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    monkeypatch.setattr(CurlSession, "request", request)
