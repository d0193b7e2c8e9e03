"""What a rate limiter of one host (aiolimiter) does beside a gate, as the host sees it; and the CPU of a turn that does not wait.

In virtual time, 200 tasks fetch the pages of one host, at most one request a second. A request reaches the host after up to half
a second, for its name and connection, and its response takes up to three seconds. A gap is the time from one request to the next.
"Within Retry-After" counts requests that come, in a second crawl, before the time that a 429 has named is over: aiolimiter has no
notion of a response, so a crawler writes that itself. Needs aiolimiter (`./dev bench limiter` installs it).
"""

import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise

from aiolimiter import AsyncLimiter

import polite
from polite.clock import SystemClock
from polite.pacing.pacer import LocalPacer
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

PAGES, DELAY_S, CONNECT_S, RESPOND_S, RETRY_AFTER_S = 200, 1.0, 0.5, 3.0, 30
HOSTS, TURNS, ROUNDS = 1_000, 20_000, 7

Enter = Callable[[str], AbstractAsyncContextManager[Callable[[int], object]]]


class Host:
    """A host that notes when requests come. If it `refuses`, it answers every tenth with 429 and `Retry-After: 30`."""

    def __init__(self, *, refuses: bool) -> None:
        self._refuses = refuses
        self._chance = random.Random(1)
        self._refused_until = 0.0
        self._in_flight = 0
        self.requests: list[float] = []
        self.most_in_flight = self.too_early = 0

    async def answer(self, number: int) -> int:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(self._chance.uniform(0.0, CONNECT_S))
        self.requests.append(now())
        self.too_early += now() < self._refused_until
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        await asyncio.sleep(self._chance.uniform(0.0, RESPOND_S))
        self._in_flight -= 1
        if not (self._refuses and number % 10 == 9):
            return 200
        self._refused_until = max(self._refused_until, now() + RETRY_AFTER_S)
        return 429

    @property
    def gaps(self) -> list[float]:
        """Seconds from each request to the next, as they arrived."""
        return [later - earlier for earlier, later in pairwise(self.requests)]


async def crawl(host: Host, enter: Enter) -> None:
    async def fetch(number: int) -> None:
        async with enter(f"https://host.example/{number}") as report:
            report(await host.answer(number))

    await asyncio.gather(*(fetch(number) for number in range(PAGES)))


async def with_limiter(host: Host) -> None:
    limiter = AsyncLimiter(1, DELAY_S)

    @asynccontextmanager
    async def enter(_: str) -> AsyncIterator[Callable[[int], object]]:
        async with limiter:
            yield lambda status: None

    await crawl(host, enter)


async def with_polite(host: Host) -> None:
    pacing, robots = polite.PacingPolicy(min_delay=DELAY_S), {"https": ScriptedTransport()}
    async with polite.open_gate("BenchBot/1.0", pacing=pacing, transports=robots, clock=LoopClock()) as gate:

        @asynccontextmanager
        async def enter(url: str) -> AsyncIterator[Callable[[int], object]]:
            async with gate.permit(url) as permit:
                yield lambda status: permit.report(
                    status=status, headers={"Retry-After": str(RETRY_AFTER_S)} if status == 429 else {}
                )

        await crawl(host, enter)


def print_crawl(name: str, crawler: Callable[[Host], Coroutine[None, None, None]]) -> None:
    hosts = Host(refuses=False), Host(refuses=True)
    for host in hosts:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(crawler(host))
    calm, busy = hosts
    short = sum(gap < DELAY_S - 0.001 for gap in calm.gaps)
    took = calm.requests[-1] - calm.requests[0]
    print(
        f"{name:12} {short:>10} {min(calm.gaps) * 1000:>9.0f} ms {calm.most_in_flight:>14} {took:>8.0f} s {busy.too_early:>18}"
    )


async def limiter_us() -> float:
    """Return microseconds of CPU of a turn that does not wait."""
    limiters = [AsyncLimiter(TURNS, 0.001) for _ in range(HOSTS)]
    start = time.process_time()
    for number in range(TURNS):
        async with limiters[number % HOSTS]:
            pass
    return (time.process_time() - start) / TURNS * 1e6


async def pacer_us() -> float:
    """The same of polite's pacer, which a permit takes its turn from."""
    pacer = LocalPacer(SystemClock())
    keys = [(f"https://host-{number}.example",) for number in range(HOSTS)]
    start = time.process_time()
    for number in range(TURNS):
        turn = await pacer.acquire(keys[number % HOSTS])
        pacer.settle(turn, 0.0)
        pacer.release(turn)
    return (time.process_time() - start) / TURNS * 1e6


def main() -> None:
    """Print both crawls as the host saw them, then the costs of a turn."""
    print(
        f"{'':12} {'short gaps':>10} {'shortest':>12} {'most in flight':>14} {'took':>10} {'within Retry-After':>18}"
    )
    print_crawl("aiolimiter", with_limiter)
    print_crawl("polite", with_polite)
    costs = [(asyncio.run(limiter_us()), asyncio.run(pacer_us())) for _ in range(ROUNDS)]
    theirs, ours = (statistics.median(each) for each in zip(*costs, strict=True))
    print(
        f"a free turn: aiolimiter {theirs:.2f} us, polite's pacer {ours:.2f} us of CPU, {ours / theirs:.1f} times"
    )


if __name__ == "__main__":
    main()
