"""A frontier in a file, from thousands of URLs to a hundred million: CPU of a new URL, a known one and a take, memory, and disk.

`python -m benchmarks.kept_frontier [--urls N] [--origins M] [--folder F]`, or `./dev soak scale` for 20,000,000 URLs of 1,000,000
hosts, which takes an hour and 2 GB of disk. Delays are virtual, work is real: the figures cover the frontier, its thread, the
gate, the pacer and the event loop. URLs are put 500 at a time, each to another host than the one before, which is the worst order,
while no worker waits. Then some are put again, and 2,000 workers take some: first each of a host that is new, so that its
robots.txt is fetched and parsed, then of hosts that are known. The first process kills itself; another one opens the file, and
counts what waits. Each process reports its own memory, and has the thresholds of garbage that docs/how-to/deploy.md advises.
"""

import argparse
import asyncio
import gc
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import polite
from polite.schedulers import Priority
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

AT_A_TIME = 500
WORKERS = 2_000
KNOWN = 50_000


def resident_mib() -> float:
    """Return the resident memory of the process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def url(number: int, origins: int) -> str:
    return f"https://www.host-{number % origins}.example/page/{number}"


class Loop(VirtualTimeLoop):
    """Notes the longest step, by CPU of its thread."""

    longest = 0.0

    def _run_once(self) -> None:
        start = time.thread_time()
        super()._run_once()
        self.longest = max(self.longest, time.thread_time() - start)


class Laps:
    """Prints what each part of a run cost: CPU of the whole process, memory, and the longest step of the event loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        self._loop: Loop = loop
        self._begin()

    def _begin(self) -> None:
        self._loop.longest, self._start, self._busy = 0.0, time.perf_counter(), time.process_time()

    def end(self, name: str, count: int) -> None:
        """End a part of so many operations, and begin the next one."""
        elapsed, busy = time.perf_counter() - self._start, time.process_time() - self._busy
        print(
            f"{name:<24} {busy / count * 1e6:>6.1f} us of CPU, {count / elapsed:>8,.0f} per second; "
            f"{resident_mib():.0f} MiB resident; longest step {self._loop.longest * 1000:.0f} ms",
            flush=True,
        )
        self._begin()


async def take(frontier: polite.Frontier, count: int) -> None:
    """Fetch this many tasks with all workers."""
    left = count

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            async with await anext(frontier) as permit:
                permit.report(status=200)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))


@asynccontextmanager
async def opened(path: str, count: int) -> AsyncGenerator[polite.Frontier]:
    gate = polite.open_gate("BenchBot/1.0", transports={"https": ScriptedTransport()}, clock=LoopClock())
    async with (
        gate as ready,
        polite.open_frontier(ready, store=path, scheduler=Priority(), max_waiting=2 * count) as frontier,
    ):
        yield frontier


async def fill(path: str, count: int, origins: int) -> None:
    async with opened(path, count) as frontier:
        frontier.pause()
        laps, tenth = Laps(), max(AT_A_TIME, count // 10)
        for first in range(0, count, tenth):
            end = min(count, first + tenth)
            for chunk in range(first, end, AT_A_TIME):
                await frontier.put_many(url(n, origins) for n in range(chunk, min(end, chunk + AT_A_TIME)))
            laps.end(f"new, to {end:,}", end - first)
        drawn = random.Random(1)
        known = min(KNOWN, count)
        for _ in range(0, known, AT_A_TIME):
            await frontier.put_many(url(drawn.randrange(count), origins) for _ in range(AT_A_TIME))
        laps.end("known", known)
        await take_some(frontier, count, origins, laps)
        # Its answer comes when all before it is written.
        await frontier.put(url(0, origins))
        print(f"killed with {frontier.waiting:,} waiting", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


async def go_on(path: str, count: int, origins: int) -> None:
    start, busy = time.perf_counter(), time.process_time()
    async with opened(path, count) as frontier:
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        print(
            f"open again after {seconds:.2f} s ({busy:.2f} s of CPU): {frontier.waiting:,} waiting",
            flush=True,
        )
        await take_some(frontier, count, origins, Laps())


async def take_some(frontier: polite.Frontier, count: int, origins: int, laps: Laps) -> None:
    some = min(50_000, count // 4, origins)
    frontier.resume()
    await take(frontier, some)
    laps.end("take, new hosts", some)
    await take(frontier, some)
    laps.end("take", some)


def in_virtual_time(work: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
    gc.set_threshold(100_000, 10, 100)
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(work(*arguments))


def main() -> None:
    """Fill the file, reopen it in another process, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=500_000)
    parser.add_argument("--origins", type=int, default=50_000)
    parser.add_argument("--folder", default=None, help="the folder for the file, which is deleted at the end")
    chosen = parser.parse_args()
    print(f"{chosen.urls:,} URLs of {chosen.origins:,} origins")
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        path = f"{folder}/queue.sqlite"
        for work in (fill, go_on):
            process = multiprocessing.get_context("spawn").Process(
                target=in_virtual_time, args=(work, path, chosen.urls, chosen.origins)
            )
            process.start()
            process.join()
            assert process.exitcode == (-signal.SIGKILL if work is fill else 0)
        octets = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"file:  {octets / chosen.urls:.0f} octets per URL")


if __name__ == "__main__":
    main()
