"""A million fetches in virtual time: what the gate costs a whole crawl when nobody has to sleep for it.

Each host has pages to be fetched one after the other, each when its turn has come, by a task of its own; answers
take a moment, and hosts begin at different times. Nothing is on the network. Every gap is looked at.
"""

import asyncio
import random
import sys
import time

import polite
from polite.robots.fetching.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

HOSTS, FETCHES, MOST_S = 1_000, 1_000_000, 60.0
MIN_DELAY_S = 1.0
# What a float of the loop's time can tell apart, with room.
ROUNDING_S = 1e-6


class Crawl:
    """The gaps of all hosts: how many were kept, and the shortest."""

    def __init__(self) -> None:
        self.fetched = 0
        self.shortest_s = float("inf")

    async def host(self, gate: polite.Gate, name: str, pages: int, seed: int) -> None:
        chance = random.Random(seed)
        loop = asyncio.get_running_loop()
        await asyncio.sleep(chance.random())
        reported: float | None = None
        for page in range(pages):
            async with gate.permit(f"https://{name}/{page}") as permit:
                if reported is not None:
                    self.shortest_s = min(self.shortest_s, loop.time() - reported)
                permit.report(status=200)
                reported = loop.time()
                self.fetched += 1


async def crawl(hosts: int, fetches: int) -> Crawl:
    """So many fetches, shared by the hosts."""
    names = [f"host{number}.example" for number in range(hosts)]
    site = ScriptedTransport({f"https://{name}/robots.txt": Reply(404) for name in names})
    run = Crawl()
    pacing = polite.PacingPolicy(min_delay=MIN_DELAY_S)
    async with (
        polite.open_gate(
            "BenchBot/1.0", pacing=pacing, transports={"https": site}, clock=LoopClock()
        ) as gate,
        asyncio.TaskGroup() as tasks,
    ):
        for number, name in enumerate(names):
            tasks.create_task(run.host(gate, name, fetches // hosts, number))
    return run


def main() -> int:
    """Print the seconds; 1 where a gap was short, or it took too long."""
    started = time.perf_counter(), time.process_time()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        run = runner.run(crawl(HOSTS, FETCHES))
        virtual_s = runner.get_loop().time()
    taken_s, cpu_s = time.perf_counter() - started[0], time.process_time() - started[1]
    # The CPU of this one process: other processes on the machine are not the gate's.
    good = cpu_s < MOST_S and run.shortest_s >= MIN_DELAY_S - ROUNDING_S and run.fetched == FETCHES
    print(
        f"{run.fetched:,} fetches at {HOSTS:,} hosts, {virtual_s:,.0f} s of virtual time: {cpu_s:.1f} s of CPU in {taken_s:.1f} s, "
        f"{cpu_s / run.fetched * 1e6:.0f} us each; shortest gap {run.shortest_s:.6f} s"
        f"   (to be below {MOST_S:g} s of CPU: {'held' if good else 'NOT HELD'})"
    )
    return not good


if __name__ == "__main__":
    sys.exit(main())
