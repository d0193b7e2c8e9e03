"""A million fetches in virtual time: what the gate costs a whole crawl.

One asyncio task per host fetches its pages, each in its turn. Responses take a moment, and hosts start at different times.
Nothing uses the network. Each gap is checked.
"""

import asyncio
import random
import sys
import time

import polite
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

HOSTS, FETCHES, MOST_S = 1_000, 1_000_000, 60.0
MIN_DELAY_S = 1.0
# The resolution of the loop's time as a float, with a margin.
ROUNDING_S = 1e-6


class Crawl:
    """The gaps of all hosts: their number, and the shortest."""

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
    """Run this many fetches, evenly spread over the hosts."""
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
    """Print the seconds. Return 1 if a gap was short or the limit exceeded."""
    started = time.perf_counter(), time.process_time()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        run = runner.run(crawl(HOSTS, FETCHES))
        virtual_s = runner.get_loop().time()
    taken_s, cpu_s = time.perf_counter() - started[0], time.process_time() - started[1]
    # The CPU of this process only.
    good = cpu_s < MOST_S and run.shortest_s >= MIN_DELAY_S - ROUNDING_S and run.fetched == FETCHES
    print(
        f"{run.fetched:,} fetches at {HOSTS:,} hosts, {virtual_s:,.0f} s of virtual time: {cpu_s:.1f} s of CPU in {taken_s:.1f} s, "
        f"{cpu_s / run.fetched * 1e6:.0f} us each; shortest gap {run.shortest_s:.6f} s"
        f"   (target: below {MOST_S:g} s of CPU: {'held' if good else 'NOT HELD'})"
    )
    return not good


if __name__ == "__main__":
    sys.exit(main())
