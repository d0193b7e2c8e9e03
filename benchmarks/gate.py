"""What a permit costs compared with its request: client CPU of `async with gate.permit(url)` and of one aiohttp GET.

Both are measured alternately in one process and one event loop; the server is another process. CPU is what `time.process_time`
counts. The URLs are distinct, the rules of their origins are known, and no request has to wait. Each origin has six rules
of its own, with wildcards.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import aiohttp
from yarl import URL

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport

T = TypeVar("T")
ORIGINS, ROUNDS, BATCH, AT_ONCE = 200, 15, 1_000, 50
RULES = b"""User-agent: *
Disallow: /private/
Disallow: /*?sort=
Allow: /private/open
Disallow: /cgi-bin/
Disallow: /*.pdf$
"""

SERVER = """
import asyncio

ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\nContent-Length: 100\\r\\n\\r\\n" + b"x" * 100

class Answering(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.transport.write(ANSWER * data.count(b"\\r\\n\\r\\n"))

async def main():
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def robots(origins: list[str]) -> dict[str, ScriptedTransport]:
    transport = ScriptedTransport({f"{origin}/robots.txt": Reply(200, RULES) for origin in origins})
    return {"http": transport, "https": transport}


async def permits(gate: polite.Gate, urls: list[str]) -> float:
    """Return microseconds of CPU per permit."""
    start = time.process_time()
    for url in urls:
        async with gate.permit(url) as permit:
            permit.report(status=200)
    return (time.process_time() - start) / len(urls) * 1e6


async def gets(session: aiohttp.ClientSession, urls: list[URL]) -> float:
    """Return microseconds of client CPU per GET, with this many in flight."""
    queue = iter(urls)

    async def worker() -> None:
        for url in queue:
            async with session.get(url) as response:
                await response.read()

    start = time.process_time()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return (time.process_time() - start) / len(urls) * 1e6


async def measure(port: int, rounds: int = ROUNDS) -> tuple[list[float], list[float]]:
    """Return microseconds of CPU of each round, per permit and per GET."""
    origins = [f"https://host{n}.example" for n in range(ORIGINS)]
    pacing = polite.PacingPolicy(min_delay=0.0)
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        polite.open_gate("BenchBot/1.0", pacing=pacing, transports=robots(origins)) as gate,
        aiohttp.ClientSession(connector=connector) as session,
    ):
        for origin in origins:
            await gate.check(f"{origin}/")
        permit_us, get_us = [], []
        for turn in range(-1, rounds):
            paths = [f"/shop/item-{turn}-{n}.html?ref={n}" for n in range(BATCH)]
            ours = await permits(gate, [origins[n % ORIGINS] + path for n, path in enumerate(paths)])
            theirs = await gets(session, [URL(f"http://127.0.0.1:{port}{path}") for path in paths])
            if turn >= 0:
                permit_us.append(ours)
                get_us.append(theirs)
    return permit_us, get_us


def served(work: Callable[[int], T]) -> T:
    """Return what `work` returns for the port of a server in another process."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            return work(int(server.stdout.readline()))
        finally:
            server.kill()


def main() -> None:
    permit_us, get_us = served(lambda port: asyncio.run(measure(port)))
    ratio = statistics.median(ours / theirs for ours, theirs in zip(permit_us, get_us, strict=True))
    print(f"{'':32} {'median':>8} {'min':>8} {'max':>8}")
    for name, figures in (("permit, us of CPU", permit_us), (f"aiohttp GET, {AT_ONCE} at once", get_us)):
        print(f"{name:32} {statistics.median(figures):8.2f} {min(figures):8.2f} {max(figures):8.2f}")
    print(f"{'permit / GET':32} {ratio:8.1%}   (target: at most 10 %)")


if __name__ == "__main__":
    main()
