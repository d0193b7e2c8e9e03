"""What a robots.txt costs compared with an aiohttp GET: client CPU of `gate.check(url)` at origins that are not known yet.

Both are measured alternately in one process and one event loop; the server is another process. CPU is what `time.process_time`
counts. Each origin has an address of its own, and each fetch a connection of its own. The last rows show robots.txt and the
first page of an origin: on one connection in `polite.open_session`, and as two GETs of aiohttp.

The minima of the rounds are compared: other load on the machine only adds.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import aiohttp
from yarl import URL

import polite
from benchmarks import hosts
from polite.origin import Target
from polite.ports import Ask
from polite.transports.http import HttpTransport

ORIGINS, AT_ONCE = 200, 50
AGENT = "BenchBot/1.0"
HOME = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])
PACING = polite.PacingPolicy(min_delay=0.0)


async def cpu_us(work: Callable[[str], Awaitable[object]], origins: list[str]) -> float:
    """Return microseconds of CPU per origin, with this many in flight."""
    queue = iter(origins)

    async def worker() -> None:
        for origin in queue:
            await work(origin)

    start = time.process_time()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return (time.process_time() - start) / len(origins) * 1e6


async def one_round(origins: list[str]) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        new = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0))
        )
        kept = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        gate = await stack.enter_async_context(polite.open_gate(AGENT, fetching=HOME, pacing=PACING))
        session = await stack.enter_async_context(polite.open_session(AGENT, fetching=HOME, pacing=PACING))
        transport = HttpTransport(AGENT, HOME)
        stack.push_async_callback(transport.close)

        async def get(by: aiohttp.ClientSession, origin: str, path: str) -> None:
            async with by.get(URL(f"{origin}{path}")) as response:
                await response.read()

        async def two_gets(origin: str) -> None:
            await get(new, origin, "/robots.txt")
            await get(kept, origin, "/p/2")

        return {
            "aiohttp GET, new connection": await cpu_us(lambda origin: get(new, origin, "/robots.txt"), origins),
            "HttpTransport.get": await cpu_us(
                lambda origin: transport.get(Ask(Target.of(f"{origin}/robots.txt"))), origins
            ),
            "gate.check, new origin": await cpu_us(lambda origin: gate.check(f"{origin}/"), origins),
            "aiohttp, robots.txt and a page": await cpu_us(two_gets, origins),
            "aiohttp GET, open connection": await cpu_us(lambda origin: get(kept, origin, "/p/3"), origins),
            "open_session, robots.txt and a page": await cpu_us(
                lambda origin: get(session, origin, "/p/1"), origins
            ),
        }  # fmt: skip


async def measure(port: int, rounds: int) -> list[dict[str, float]]:
    """Return microseconds of CPU per origin, by what is done, of each round."""
    origins = [f"http://{hosts.address(number)}:{port}" for number in range(ORIGINS)]
    await one_round(origins)
    return [await one_round(origins) for _ in range(rounds)]


def served(rounds: int) -> list[dict[str, float]]:
    """Return the figures beside a server in another process."""
    with tempfile.NamedTemporaryFile() as log:
        command = [sys.executable, "-m", "benchmarks.hosts", "--hosts", str(ORIGINS), "--log", log.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                return asyncio.run(measure(int(server.stdout.readline()), rounds))
            finally:
                server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    figures = served(parser.parse_args().rounds)
    least = {name: min(each[name] for each in figures) for name in figures[0]}
    print(f"{'us of CPU for each origin':38} {'min':>8} {'median':>8}")
    for name, value in least.items():
        print(f"{name:38} {value:8.0f} {statistics.median(each[name] for each in figures):8.0f}")
    get, _, check, two, _, page = least.values()
    print(f"{'gate.check / GET':38} {check / get:8.2f}   (target: at most 1.2)")
    print(f"{'open_session / two GETs':38} {page / two:8.2f}")


if __name__ == "__main__":
    main()
