"""A crawl on a shared store, to ten million waiting URLs: CPU of the process and of the server, calls, and the server's memory.

`python -m benchmarks.shared_frontier [--urls N] [--origins M]`. A Valkey server of its own runs on loopback; it writes nothing to
disk. URLs are put 500 at a time, each to another host than the one before, while no worker waits. Then some are put again, and
2,000 workers take some. Time is real, and delays are a second, but robots.txt is fetched from memory. `kept_frontier` has a file.
"""

import argparse
import asyncio
import gc
import random
import tempfile
import time
from pathlib import Path

import polite
from benchmarks.kept_frontier import AT_A_TIME, KNOWN, resident_mib, take, url
from polite.testing import ScriptedTransport
from tests.many.servers import ValkeyServer


class Laps:
    """Prints what each part of a run cost."""

    def __init__(self, server: ValkeyServer) -> None:
        self._server = server
        self._begin()

    def _begin(self) -> None:
        self._own, self._calls, self._busy = time.process_time(), *self._served()

    def _served(self) -> tuple[int, float]:
        """Return the calls of scripts so far, and the seconds of CPU that the server has taken."""
        stats, cpu = self._server.client.info("commandstats"), self._server.client.info("cpu")
        calls = sum(stats.get(f"cmdstat_{each}", {}).get("calls", 0) for each in ("evalsha", "fcall"))
        return calls, cpu["used_cpu_user"] + cpu["used_cpu_sys"]

    def end(self, name: str, count: int) -> None:
        """End a part of so many operations, and begin the next one."""
        own = time.process_time() - self._own
        calls, busy = self._served()
        octets = self._server.client.info("memory")["used_memory"]
        print(
            f"{name:<20} {own / count * 1e6:>6.1f} us of CPU, {(busy - self._busy) / count * 1e6:>5.1f} us of the server's in "
            f"{(calls - self._calls) / count:.4f} calls; {resident_mib():.0f} MiB resident, server {octets / 2**20:,.0f} MiB",
            flush=True,
        )
        self._begin()


async def run(server: ValkeyServer, count: int, origins: int) -> None:
    """Fill the crawl, and take some of it."""
    gate = polite.open_gate(
        "BenchBot/1.0",
        transports={"https": ScriptedTransport()},
        store=server.url,
        crawl="bench",
        pacing=polite.PacingPolicy(min_delay=1.0),
    )
    async with (
        gate as ready,
        polite.open_frontier(ready, store=server.url, crawl="bench", max_waiting=2 * count) as frontier,
    ):
        frontier.pause()
        laps, tenth = Laps(server), max(AT_A_TIME, count // 10)
        empty = server.client.info("memory")["used_memory"]
        for first in range(0, count, tenth):
            end = min(count, first + tenth)
            for chunk in range(first, end, AT_A_TIME):
                await frontier.put_many(url(n, origins) for n in range(chunk, min(end, chunk + AT_A_TIME)))
            laps.end(f"new, to {end:,}", end - first)
        octets = server.client.info("memory")["used_memory"] - empty
        print(f"{octets / count:.0f} octets of the server's memory for each URL", flush=True)
        drawn = random.Random(1)
        known = min(KNOWN, count)
        for _ in range(0, known, AT_A_TIME):
            await frontier.put_many(url(drawn.randrange(count), origins) for _ in range(AT_A_TIME))
        laps.end("known", known)
        some = min(50_000, count // 4, origins)
        frontier.resume()
        for name in ("take, new hosts", "take"):
            await take(frontier, some)
            laps.end(name, some)


def main() -> None:
    """Start a server, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=500_000)
    parser.add_argument("--origins", type=int, default=50_000)
    chosen = parser.parse_args()
    gc.set_threshold(100_000, 10, 100)
    print(f"{chosen.urls:,} URLs of {chosen.origins:,} origins")
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder)).start()
        try:
            asyncio.run(run(server, chosen.urls, chosen.origins))
        finally:
            server.close()


if __name__ == "__main__":
    main()
