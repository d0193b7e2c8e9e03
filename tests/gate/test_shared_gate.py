"""Two gates in one world, each in a process of its own: the gap between two requests of a host is kept, whichever sends."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.compose.shared import share_turns
from polite.ports import RobotsStore
from polite.robots.exchange import Ask, Failed, Reply
from polite.stores.memory import MemoryStore
from polite.testing import LoopClock
from tests.pacers.homes import FakeHomes, FakeStore
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

HOSTS = ("a.test", "b.test", "c.test")
GAP_S = 1.0
# Floating point of the virtual clock.
TINY_S = 1e-6


class World:
    """All servers, which note each request."""

    def __init__(self, robots: Reply | None = None) -> None:
        self.sent: dict[str, list[tuple[float, str]]] = {}
        self.robots = robots or Reply(404, b"")

    async def get(self, ask: Ask) -> Reply | Failed:
        self.note(ask.target.url)
        return self.robots

    async def close(self) -> None: ...

    def note(self, url: str) -> None:
        self.sent.setdefault(polite.Origin.of(url).host, []).append((now(), url))

    @property
    def gaps(self) -> list[float]:
        return [later[0] - sooner[0] for sent in self.sent.values() for sooner, later in pairwise(sent)]

    def robots_fetched(self, host: str) -> int:
        return sum(url.endswith("/robots.txt") for _, url in self.sent[host])


class SharedStore(MemoryStore):
    """One store of robots.txt for several gates: none of them closes it."""

    async def close(self) -> None: ...


@asynccontextmanager
async def opened(
    world: World,
    count: int = 2,
    *,
    store: FakeStore | None = None,
    robots: RobotsStore | None = None,
    **options: Any,
) -> AsyncIterator[list[tuple[polite.Gate, FakeHomes]]]:
    """Open gates that share homes, and robots.txt if a store is given."""
    store = store or FakeStore(LoopClock())
    async with AsyncExitStack() as stack:
        gates = []
        for _ in range(count):
            gate = await stack.enter_async_context(scripted_gate(world, **options))
            homes = store.process()
            share_turns(gate, homes, lease_s=store.lease_s, robots=robots)
            gates.append((gate, homes))
        yield gates


async def visit(gate: polite.Gate, world: World, url: str, **report: Any) -> None:
    async with gate.permit(url) as permit:
        world.note(permit.url)
        permit.report(**({"status": 200} | report))


async def test_refusals_that_one_gate_counted_make_the_others_back_off_longer() -> None:
    world = World()
    async with opened(world, robots=SharedStore()) as [(first, _), (second, _)]:
        for number, gate in enumerate((first, second, first)):
            await visit(gate, world, f"https://a.test/{number}", status=503)
        began = now()
        await visit(second, world, "https://a.test/3")

    # 10 s, 20 s, 40 s.
    assert now() - began >= 40.0 - TINY_S


async def test_a_crawl_delay_counts_after_a_gate_that_ended_without_a_word() -> None:
    world = World(Reply(200, b"User-agent: *\nCrawl-delay: 30\n"))
    store = FakeStore(LoopClock(), lease_s=6.0)
    async with opened(world, store=store, robots=SharedStore()) as [(first, homes), (second, _)]:
        await visit(first, world, "https://a.test/1")
        homes.lose_all()
        lost = now()
        await visit(second, world, "https://a.test/2")

    assert now() - lost == pytest.approx(36.0, abs=0.5)


async def test_a_gate_that_has_sent_requests_cannot_be_shared() -> None:
    store = FakeStore(LoopClock())
    async with scripted_gate() as gate:
        await gate.check("https://a.test/")

        with pytest.raises(polite.InvalidOption, match="before the first permit"):
            share_turns(gate, store.process(), lease_s=15.0)


@pytest.mark.parametrize("seed", range(10))
async def test_no_gap_is_short_whatever_happens_to_the_gates(seed: int) -> None:
    draw = random.Random(seed)
    world = World()
    store = FakeStore(LoopClock(), lease_s=4.0, seed=seed, slow_s=0.4)
    async with opened(world, 3, store=store, robots=SharedStore()) as gates:

        async def crawl(gate: polite.Gate) -> None:
            for page in range(15):
                url = f"https://{draw.choice(HOSTS)}/{page}"
                async with gate.permit(url) as permit:
                    await asyncio.sleep(draw.choice([0.0, 0.0, 0.1]))  # connecting
                    if not permit.valid:
                        continue
                    world.note(url)
                    # Longer than this would be a request that the next owner cannot know of.
                    await asyncio.sleep(draw.choice([0.0, 0.3]))
                    permit.report(status=draw.choice([200, 200, 404]))

        async def trouble(homes: FakeHomes) -> None:
            while True:
                await asyncio.sleep(draw.random() * 15.0)
                draw.choice([homes.leave_all, homes.lose_all])()

        troubles = [asyncio.create_task(trouble(homes)) for _, homes in gates]
        async with asyncio.timeout(3_600.0):
            await asyncio.gather(*(crawl(gate) for gate, _ in gates for _ in range(2)))
        for each in troubles:
            each.cancel()

    assert min(world.gaps) >= GAP_S - TINY_S
    assert all(world.robots_fetched(host) == 1 for host in world.sent)
