"""What a task costs in the frontier, in CPU and memory, as the origins grow to 100,000.

Time is virtual and nothing is fetched, so the figures cover the frontier, the gate, the pacer, the event loop and the worker's
own steps. A task is put, waits for its origin's turn, is assigned, and its permit is entered, reported and left. Each origin has a
delay of 1 s. One run has many workers (an idle one for each turn), one has few (each is busy for 10 ms, and origins are always
ready). For comparison, the same run has as many plain tasks that do `async with gate.permit(url)` each. Memory is what
`tracemalloc` counts for waiting tasks, known rules included, with one and with ten tasks per origin.

The garbage collector is off while CPU is measured: how often it visits all that waits depends on its thresholds, which are the
crawler's. With those of Python, a task took a tenth to four fifths more.
"""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import polite
from polite.frontier.frontier import Frontier
from polite.schedulers import Priority
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

ORIGINS = (1_000, 10_000, 100_000)
TASKS = 100_000
MANY, FEW = 2_000, 100
BUSY_S = 0.01


@asynccontextmanager
async def opened() -> AsyncIterator[polite.Gate]:
    robots = ScriptedTransport()
    async with polite.open_gate("BenchBot/1.0", transports={"https": robots}, clock=LoopClock()) as gate:
        yield gate


def urls(count: int, origins: int) -> Iterator[str]:
    return (f"https://www.host-{n % origins}.example/page/{n}" for n in range(count))


async def know(gate: polite.Gate, origins: int) -> None:
    """Fetch the robots.txt of each origin before the measurement."""
    for start in range(0, origins, 1_000):
        some = [f"https://www.host-{n}.example/" for n in range(start, min(start + 1_000, origins))]
        await asyncio.gather(*(gate.check(url) for url in some))
    await asyncio.sleep(10)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the garbage collector off in a block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def through_the_frontier(origins: int, workers: int, tasks: int = TASKS) -> tuple[float, float]:
    """Return microseconds of CPU per task: for put, and for everything else."""
    async with opened() as gate:
        await know(gate, origins)
        frontier = Frontier(gate, scheduler=Priority())
        with without_collector():
            return await _put_and_visit(frontier, origins, workers, tasks)


async def _put_and_visit(frontier: Frontier, origins: int, workers: int, tasks: int) -> tuple[float, float]:
    start = time.process_time()
    for number, url in enumerate(urls(tasks, origins)):
        await frontier.put(url, priority=number * 7_919 % 1_000)
    frontier.close()
    put = time.process_time() - start

    async def worker() -> None:
        async for permit in frontier:
            async with permit:
                if workers < origins:
                    await asyncio.sleep(BUSY_S)
                permit.report(status=200)

    await asyncio.gather(*(worker() for _ in range(workers)))
    others = time.process_time() - start - put
    assert frontier.done == tasks
    return put / tasks * 1e6, others / tasks * 1e6


async def through_the_gate(origins: int) -> float:
    """Return microseconds of CPU per permit, with one asyncio task per permit."""
    async with opened() as gate:
        await know(gate, origins)

        async def visit(url: str) -> None:
            async with gate.permit(url) as permit:
                permit.report(status=200)

        with without_collector():
            start = time.process_time()
            await asyncio.gather(*(visit(url) for url in urls(TASKS, origins)))
            return (time.process_time() - start) / TASKS * 1e6


async def memory(origins: int, each: int) -> float:
    """Return bytes per waiting task, URL included."""
    async with opened() as gate:
        await know(gate, origins)
        gc.collect()
        tracemalloc.start()
        frontier = Frontier(gate)
        await frontier.put_many(urls(origins * each, origins))
        await asyncio.sleep(0)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert frontier.waiting == origins * each
        await frontier.drain()
    return used / (origins * each)


def main() -> None:
    """Print the table: microseconds of CPU and bytes per task."""
    print(f"{TASKS:,} tasks, Priority; us of CPU per task (put + everything else), bytes per waiting task")
    print(
        f"{'origins':>8}  {f'{MANY} workers':>14}  {f'{FEW} workers':>14}  {'bare permits':>12}  {'1 each':>8}  {'10 each':>8}"
    )
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        for origins in ORIGINS:
            many, few = [runner.run(through_the_frontier(origins, workers)) for workers in (MANY, FEW)]
            bare = runner.run(through_the_gate(origins))
            one, ten = runner.run(memory(origins, 1)), runner.run(memory(min(origins, 10_000), 10))
            print(
                f"{origins:>8,}  {f'{many[0]:.1f} + {many[1]:.1f}':>14}  {f'{few[0]:.1f} + {few[1]:.1f}':>14}"
                f"  {bare:>12.1f}  {one:>8.0f}  {ten:>8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
