"""A frontier in a file: puts and takes per second, memory of the process, size of the file, and time to reopen it.

`python -m benchmarks.kept_frontier [--urls N] [--origins M] [--folder F]`; the target is for 10 million URLs of a million origins,
which takes about 15 minutes and 2 GB of disk. Delays are virtual, work is real: the figures cover the frontier, its thread, the
gate, the pacer and the event loop. URLs are put with `put_many` while there are no workers, then 2,000 workers take some of
them. Each process (the first one, and the one that reopens the file) reports its own memory.
"""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import polite
from polite.schedulers import Priority
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

AT_A_TIME = 50_000
WORKERS = 2_000


def resident_mib() -> float:
    """Return the resident memory of the process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def urls(first: int, end: int, origins: int) -> Iterator[str]:
    return (f"https://www.host-{n % origins}.example/page/{n}" for n in range(first, end))


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


async def fill(path: str, count: int, origins: int) -> None:
    gate = polite.open_gate("BenchBot/1.0", transports={"https": ScriptedTransport()}, clock=LoopClock())
    async with (
        gate as opened,
        polite.open_frontier(opened, store=path, scheduler=Priority(), max_waiting=2 * count) as frontier,
    ):
        frontier.pause()
        start, busy, largest = time.perf_counter(), time.process_time(), 0.0
        for first in range(0, count, AT_A_TIME):
            await frontier.put_many(urls(first, min(count, first + AT_A_TIME), origins))
            largest = max(largest, resident_mib())
        elapsed, busy = time.perf_counter() - start, time.process_time() - busy
        print(
            f"put:   {count / elapsed:>8,.0f} per second, {busy / count * 1e6:.0f} us of CPU each; "
            f"at most {largest:.0f} MiB resident",
            flush=True,
        )
        frontier.resume()
        await take_some(frontier, count)


async def go_on(path: str, count: int, origins: int) -> None:
    gate = polite.open_gate("BenchBot/1.0", transports={"https": ScriptedTransport()}, clock=LoopClock())
    start = time.perf_counter()
    async with (
        gate as opened,
        polite.open_frontier(opened, store=path, scheduler=Priority(), max_waiting=2 * count) as frontier,
    ):
        print(
            f"again: open after {time.perf_counter() - start:.2f} s, {frontier.waiting:,} tasks of {origins:,} origins wait"
        )
        await take_some(frontier, count)


async def take_some(frontier: polite.Frontier, count: int) -> None:
    some = min(50_000, count // 4)
    start, busy = time.perf_counter(), time.process_time()
    await take(frontier, some)
    elapsed, busy = time.perf_counter() - start, time.process_time() - busy
    print(
        f"take:  {some / elapsed:>8,.0f} per second, {busy / some * 1e6:.0f} us of CPU each; {resident_mib():.0f} MiB resident",
        flush=True,
    )


def in_virtual_time(work: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
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
            assert process.exitcode == 0
        octets = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"file:  {octets / chosen.urls:.0f} octets per URL")


if __name__ == "__main__":
    main()
