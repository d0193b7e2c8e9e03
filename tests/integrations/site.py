"""Real servers on loopback that log what came when: one of pages, redirects and logins, and one of octets as they were."""

import asyncio
import hashlib
import socketserver
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO, TypeVar

from aiohttp import web

import polite

AGENT = "TestBot/1.0 (+https://bot.test)"
DELAY_S = 5.0
LOOPBACK = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])
PACING = polite.PacingPolicy(min_delay=DELAY_S)
PIECES = 8

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Hit:
    at: float
    url: str
    raw: str
    headers: Any
    wall: float
    connection: Any

    @property
    def agent(self) -> str:
        return str(self.headers.get("User-Agent", ""))


@dataclass
class Site:
    """A running server on several addresses, which are origins to a crawler. `answers` goes before what it says by itself."""

    now: Callable[[], float]
    wall: Callable[[], float] = time.time
    urls: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    refusals: int = 0  # how many 429s come before a 200
    robots_status: int = 200
    cut: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, Answer] = field(default_factory=dict)

    def url(self, path: str, *, other: int = 0) -> str:
        return self.urls[other] + path

    @property
    def paths(self) -> list[str]:
        return [hit.raw for hit in self.hits if hit.raw != "/robots.txt"]

    def gaps(self, *, other: bool = False) -> list[float]:
        times = [hit.at for hit in self.hits if hit.url == self.urls[other]]
        return [round(after - before, 3) for before, after in pairwise(times)]

    def all_gaps(self) -> list[float]:
        times: dict[str, list[float]] = {}
        for hit in self.hits:
            times.setdefault(hit.url, []).append(hit.at)
        return [round(after - before, 3) for each in times.values() for before, after in pairwise(each)]

    def paced(self) -> bool:
        """Whether all gaps were kept, and every request had the crawler's agent."""
        agents = {hit.agent for hit in self.hits}
        return agents <= {AGENT} and min(self.all_gaps(), default=DELAY_S) >= DELAY_S

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        raw, url = request.raw_path, f"{request.scheme}://{request.host}"
        self.hits.append(Hit(self.now(), url, raw, request.headers, self.wall(), request.protocol))
        if request.path in self.answers:
            return await self.answers[request.path](request)
        match request.path.split("/")[1:]:
            case ["robots.txt"]:
                return web.Response(status=self.robots_status, text="User-agent: *\nDisallow: /private\n")
            case ["hop", *_]:
                status = int(request.query.get("status", "302"))
                return web.Response(status=status, headers={"Location": request.query["to"]}, text="x" * 5000)
            case ["loop"]:
                return web.Response(status=302, headers={"Location": "/loop"})
            case ["headers"]:
                return web.Response(text=str(request.headers))
            case ["method"]:
                return web.Response(text=f"{request.method} {await request.text()}")
            case ["login"]:
                moved = web.Response(status=302, headers={"Location": "/cookie"})
                moved.set_cookie("session", "secret")
                return moved
            case ["cookie"]:
                return web.Response(text=request.cookies.get("session", "none"))
            case ["digest"]:
                return _digest(request)
            case ["refuse"] if self.refusals:
                self.refusals -= 1
                return web.Response(status=429, headers={"Retry-After": "60"})
            case ["down"]:
                return web.Response(status=503)
            case ["stream"]:
                return await self._stream(request)
            case ["tagged", *how]:
                return await self._tagged(request, how)
            case ["broken"]:
                request.transport.abort()
                return web.Response()
            case ["slow"]:
                await self.cut.wait()
                return web.Response(text="slow")
            case _:
                return self.page(request)

    def page(self, request: web.BaseRequest) -> web.Response:
        return web.Response(text=f"page {request.path_qs}")

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(PIECES):
            await response.write(b"x" * 100_000)
        await response.write_eof()
        return response

    async def _tagged(self, request: web.BaseRequest, how: list[str]) -> web.StreamResponse:
        """A page with an ETag, of known length or `chunked`; `cut` off in its middle, or `empty`."""
        if request.headers.get("If-None-Match") == '"1"':
            return web.Response(status=304, headers={"ETag": '"1"'})
        if "empty" in how:
            return web.Response(headers={"ETag": '"1"'})
        response = web.StreamResponse(headers={"ETag": '"1"'})
        if "chunked" not in how:
            response.content_length = PIECES * 100_000
        await response.prepare(request)
        for piece in range(PIECES):
            if "cut" in how and piece == PIECES // 2:
                request.transport.close()
                return response
            await response.write(b"x" * 100_000)
        await response.write_eof()
        return response


S = TypeVar("S", bound=Site)


def _digest(request: web.BaseRequest) -> web.Response:
    sent = request.headers.get("Authorization", "")
    if not sent.startswith("Digest "):
        nonce = hashlib.sha256(b"nonce").hexdigest()
        challenge = f'Digest realm="r", nonce="{nonce}", qop="auth", algorithm=SHA-256'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge}, text="x" * 5000)
    return web.Response(text="logged in" if 'username="user"' in sent else "who?")


def slow(seconds: float) -> Answer:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "4"})
        await response.prepare(request)
        await response.write(b"pa")
        await asyncio.sleep(seconds)
        await response.write(b"ge")
        return response

    return answer


@asynccontextmanager
async def served(now, addresses=2, *, kind=Site, **options) -> AsyncIterator[S]:
    """Serve the site in this loop. `options` are those of `aiohttp.web.TCPSite`."""
    site = kind(now)
    runner = web.ServerRunner(web.Server(site.answer), handler_cancellation=False, shutdown_timeout=0.1)
    await runner.setup()
    for number in range(addresses):
        await web.TCPSite(runner, f"127.0.{number // 200}.{number % 200 + 1}", 0, **options).start()
    site.urls = [f"http://{host}:{port}" for host, port in runner.addresses]
    try:
        yield site
    finally:
        site.cut.set()
        # A connection that a client has opened and left is accepted, so that it is closed.
        for _ in range(10):
            await asyncio.sleep(0)
        await runner.cleanup()


@contextmanager
def served_in_a_thread(now: Callable[[], float], addresses: int = 2) -> Iterator[Site]:
    """Serve the site in a thread, for clients that block."""
    started: Any = []
    ready = threading.Event()

    async def main() -> None:
        async with served(now, addresses) as site:
            ending = asyncio.Event()
            started.extend((site, asyncio.get_running_loop(), ending))
            ready.set()
            await ending.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    ready.wait()
    site, loop, ending = started
    try:
        yield site
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()


PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


@dataclass
class RawSite:
    """A running server. Its targets are read when its clients are idle.

    Attributes:
        url: Its origin.
        robots: Its robots.txt.
        targets: The request targets in their order, without that of robots.txt.
        respond: What a target gets, as octets; None closes the connection. It may raise Closed.
    """

    url: str = ""
    robots: bytes = b""
    targets: list[str] = field(default_factory=list)
    respond: Callable[[str], bytes | None] = lambda _: PAGE

    def answer(self, target: str) -> bytes | None:
        if target == "/robots.txt":
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(self.robots), self.robots)
        self.targets.append(target)
        return self.respond(target)


def redirect(location: str) -> bytes:
    return b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % location.encode()


@contextmanager
def served_raw() -> Iterator[RawSite]:
    """Serve in threads, one for each connection."""
    site = RawSite()

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):
                while (target := _read(self.rfile)) is not None:
                    response = site.answer(target)
                    if response is None:
                        return
                    self.wfile.write(response)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield site
        finally:
            server.shutdown()


def _read(file: BinaryIO) -> str | None:
    """Read a request with its body, and return its target; None at the connection's end."""
    line, length = file.readline(), 0
    while (field := file.readline().strip().lower()) != b"":
        if field.startswith(b"content-length:"):
            length = int(field.partition(b":")[2])
    file.read(length)
    return line.decode("latin-1").split(" ", 1)[1].rpartition(" ")[0] if line else None
