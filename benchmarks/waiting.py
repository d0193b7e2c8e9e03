"""100,000 tasks that wait in `gate.permit`: memory of each, order of turns, and time to cancel all.

The garbage collector is off while they are cancelled: a hundred thousand tracebacks that are alive at once make it run over and
over, whatever waits. Plain tasks that wait for a future at the same depth are cancelled in the same way, for comparison.

Also a frontier with a faulty scheduler: the error it ends with, and the shortest gap. In virtual time.
"""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import polite
from polite.schedulers import Fifo
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

TASKS = 100_000
ORIGINS = 100


def gate() -> Any:
    transports = {"https": ScriptedTransport()}
    pacing = polite.PacingPolicy(max_waiting=2 * TASKS)
    return polite.open_gate("BenchBot/1.0", transports=transports, clock=LoopClock(), pacing=pacing)


async def wait(origins: int) -> None:
    """Print memory per waiting task, whether turns were in order, and the time to cancel the others."""
    order: dict[int, list[int]] = {}

    async def visit(opened: polite.Gate, number: int) -> None:
        async with opened.permit(f"https://host-{number % origins}.example/{number}") as permit:
            order.setdefault(number % origins, []).append(number)
            permit.report(status=200)

    async with gate() as opened:
        for number in range(origins):
            await opened.check(f"https://host-{number}.example/")
        gc.collect()
        tracemalloc.start()
        tasks = [asyncio.create_task(visit(opened, number)) for number in range(TASKS)]
        await asyncio.sleep(0)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await asyncio.sleep(TASKS // origins // 10)
        granted = sum(map(len, order.values()))
        in_order = all(sorted(numbers) == numbers for numbers in order.values())
        elapsed = await cancel(tasks)
    print(
        f"{TASKS:,} wait at {origins:>7,} origins: {used / TASKS:,.0f} octets each (4,096); {granted:,} granted, "
        f"in order: {in_order}; the others cancelled in {elapsed:.2f} s of CPU (1.5)",
        flush=True,
    )


async def cancel(tasks: list[asyncio.Task[None]]) -> float:
    """Cancel all tasks, and return the seconds of CPU."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return time.process_time() - start
    finally:
        gc.enable()


async def plain() -> None:
    """Print the time to cancel tasks that wait for a future as deep in coroutines as a permit does."""

    async def wait_at(depth: int) -> None:
        await (wait_at(depth - 1) if depth else asyncio.get_running_loop().create_future())

    tasks = [asyncio.create_task(wait_at(3)) for _ in range(TASKS)]
    await asyncio.sleep(0)
    print(f"{TASKS:,} plain tasks cancelled in {await cancel(tasks):.2f} s of CPU", flush=True)


class Wrong(Fifo):
    """A scheduler that is correct twice, and then returns a given value."""

    def __init__(self, wrong: Callable[["Wrong"], Any]) -> None:
        super().__init__()
        self._wrong = wrong
        self.chosen: list[polite.Task] = []

    def next(self) -> Any:
        if len(self.chosen) == 2:
            return self._wrong(self)
        self.chosen.append(super().next())
        return self.chosen[-1]


WRONG: dict[str, Callable[[Wrong], Any]] = {
    "nothing": lambda _: None,
    "the same task twice": lambda wrong: wrong.chosen[0],
    "a foreign origin": lambda _: polite.Task(target=polite.Target.of("https://foreign.example/"), number=7),
    "an exception": lambda _: 1 / 0,
}


async def run_wrong(what: str) -> None:
    """Print how the frontier ended."""
    times: list[float] = []
    async with gate() as opened:
        frontier = polite.Frontier(opened, scheduler=Wrong(WRONG[what]))
        await frontier.put_many(f"https://host.example/{number}" for number in range(9))
        try:
            async for permit in frontier:
                async with permit:
                    times.append(asyncio.get_running_loop().time())
        except polite.SchedulerFailed as error:
            gap = min(later - earlier for earlier, later in pairwise(times))
            left = len(await frontier.drain())
            print(f"{what}: {error}; shortest gap {gap:.1f} s, {left} tasks returned by drain")


def main() -> None:
    """Print all figures."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        for origins in (1, ORIGINS, TASKS):
            runner.run(wait(origins))
        runner.run(plain())
        for what in WRONG:
            runner.run(run_wrong(what))


if __name__ == "__main__":
    main()
