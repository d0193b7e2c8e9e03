"""A server that keeps a quota, and says so, refuses nothing after its first policy header, in virtual time."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import ROBOTS, opened, visit
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

Rounded = Callable[[float], int]


@dataclass
class FixedWindow:
    """A quota that is whole again when each window ends."""

    name: str
    quota: int
    window_s: int
    rounded: Rounded = math.floor
    begun: float = -math.inf
    used: int = 0

    def take(self) -> bool:
        if now() >= self.begun + self.window_s:
            self.begun, self.used = now() - now() % self.window_s, 0
        self.used += 1
        return self.used <= self.quota

    @property
    def left(self) -> str:
        reset = self.rounded(self.begun + self.window_s - now())
        return f'"{self.name}";r={max(0, self.quota - self.used)};t={reset}'


@dataclass
class SlidingWindow:
    """So many requests in any stretch of time as long as the window."""

    name: str
    quota: int
    window_s: int
    rounded: Rounded = math.floor
    times: deque[float] = field(default_factory=deque)

    def take(self) -> bool:
        while self.times and self.times[0] <= now() - self.window_s:
            self.times.popleft()
        allowed = len(self.times) < self.quota
        if allowed:
            self.times.append(now())
        return allowed

    @property
    def left(self) -> str:
        reset = self.rounded(self.times[0] + self.window_s - now()) if self.times else 0
        return f'"{self.name}";r={self.quota - len(self.times)};t={reset}'


@dataclass
class Silent:
    """A transport that counts robots.txt in a quota, and does not tell it."""

    quota: SlidingWindow

    async def get(self, ask: object) -> Reply:
        self.quota.take()
        return Reply(200, b"")

    async def close(self) -> None:
        pass


@dataclass
class Server:
    """Responds after `latency_s`, and counts refusals of requests that were sent after it told its policy."""

    limits: list[FixedWindow | SlidingWindow]
    latency_s: float = 0.2
    tells: bool = True
    tells_left: bool = True
    told_at: float = math.inf
    late_refusals: int = 0
    responses: int = 0

    @property
    def policy(self) -> str:
        return ", ".join(f'"{each.name}";q={each.quota};w={each.window_s}' for each in self.limits)

    async def respond(self, permit: polite.Permit) -> None:
        sent = now()
        await asyncio.sleep(self.latency_s * 0.4)
        allowed = min([each.take() for each in self.limits])
        left = ", ".join(each.left for each in self.limits)
        await asyncio.sleep(self.latency_s * 0.6)
        self.responses += allowed
        if not allowed and sent > self.told_at:
            self.late_refusals += 1
        self.told_at = min(self.told_at, now())
        headers = {"RateLimit-Policy": self.policy} if self.tells else {}
        if self.tells_left:
            headers["RateLimit"] = left
        permit.report(status=200 if allowed else 429, headers=headers)


def servers() -> Iterator[tuple[str, Server]]:
    for kind in (FixedWindow, SlidingWindow):
        for rounded in (math.floor, math.ceil):
            name = f"{kind.__name__} {rounded.__name__}"
            yield f"{name}, one policy", Server([kind("d", 10, 30, rounded)])
            yield (
                f"{name}, two policies",
                Server([kind("burst", 4, 2, rounded), kind("long", 30, 60, rounded)]),
            )
            yield f"{name}, slow", Server([kind("d", 10, 10, rounded)], latency_s=5.0)


@pytest.mark.parametrize("kind", [FixedWindow, SlidingWindow])
async def test_what_is_left_is_kept_where_no_policy_is_told(
    kind: type[FixedWindow] | type[SlidingWindow],
) -> None:
    server = Server([kind("d", 10, 30)], tells=False)

    async with scripted_gate(pacing=polite.PacingPolicy(min_delay=0.0)) as gate:
        for page in range(60):
            async with gate.permit(f"https://site.test/{page}") as permit:
                await server.respond(permit)

    assert (server.late_refusals, server.responses) == (0, 60)


@pytest.mark.parametrize(
    ("quota", "window_s", "concurrency", "latency_s"), [(2, 60, 1, 0.2), (5, 60, 4, 3.0), (10, 10, 4, 0.5)]
)
async def test_requests_before_the_policy_was_told_are_allowed_for(
    quota: int, window_s: int, concurrency: int, latency_s: float
) -> None:
    counted = SlidingWindow("d", quota, window_s)
    server = Server([counted], latency_s=latency_s, tells_left=False)
    pacing = polite.PacingPolicy(concurrency=concurrency)

    async with scripted_gate(Silent(counted), pacing=pacing) as gate:

        async def one(page: int) -> None:
            async with gate.permit(f"https://site.test/{page}") as permit:
                await server.respond(permit)

        await asyncio.gather(*map(one, range(40)))

    assert server.late_refusals == 0
    assert server.responses >= 35


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize(("workers", "concurrency"), [(1, 1), (8, 1), (5, 5)])
async def test_a_server_with_a_quota_refuses_nothing_once_it_has_said_so(
    number: int, workers: int, concurrency: int
) -> None:
    name, server = list(servers())[number]
    urls = iter([f"https://site.test/{page}" for page in range(60)])

    async def work(gate: polite.Gate) -> None:
        for url in urls:
            async with gate.permit(url) as permit:
                await server.respond(permit)

    pacing = polite.PacingPolicy(min_delay=0.0, concurrency=concurrency)
    async with scripted_gate(pacing=pacing) as gate, asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(work(gate))

    assert server.late_refusals == 0, name
    assert server.responses >= 50, name


async def test_a_burst_that_was_sent_before_is_spread_over_what_is_left() -> None:
    server = Server([FixedWindow("d", 10, 60)])

    async with scripted_gate(pacing=polite.PacingPolicy(min_delay=0.0, concurrency=8)) as gate:

        async def one(page: int) -> None:
            async with gate.permit(f"https://site.test/{page}") as permit:
                await server.respond(permit)

        await asyncio.gather(*map(one, range(30)))

    assert server.late_refusals == 0
    assert server.responses == 30


async def test_the_quota_of_a_frontier_with_many_workers_is_kept() -> None:
    server = Server([SlidingWindow("d", 5, 10)])

    async with scripted_gate(pacing=polite.PacingPolicy(min_delay=0.0)) as gate:
        frontier = polite.Frontier(gate)
        await frontier.put_many(f"https://site.test/{page}" for page in range(40))
        frontier.close()

        async def work() -> None:
            async for permit in frontier:
                async with permit:
                    await server.respond(permit)

        await asyncio.gather(*(work() for _ in range(6)))

    assert (server.late_refusals, server.responses) == (0, 40)


async def test_a_spent_quota_on_a_200_delays_the_origin_alone() -> None:
    async with opened() as (gate, _):
        first = await visit(gate, RateLimit='"d";r=0;t=30')

        assert await visit(gate) == pytest.approx(first + 31)
        assert "RateLimit: nothing is left for 31 s" not in str(await gate.explain(ROBOTS))


async def test_a_policy_holds_for_responses_that_do_not_repeat_it() -> None:
    async with opened() as (gate, _):
        times = [await visit(gate, RateLimit_Policy='"d";q=10;w=60'), await visit(gate), await visit(gate)]

        assert [after - before for before, after in pairwise(times)] == pytest.approx([10, 10])
        await asyncio.sleep(60)
        assert "delay: 6 s between requests (RateLimit-Policy: 10 in 60 s)" in str(await gate.explain(ROBOTS))


async def test_the_limit_can_be_set_for_one_origin() -> None:
    pacing = polite.PacingPolicy().override("https://site.test", max_rate_limit_delay=0)
    async with opened(pacing=pacing) as (gate, _):
        first = await visit(gate, RateLimit='"d";r=0;t=30')

        assert await visit(gate) == pytest.approx(first + 1)


async def test_robots_txt_tells_a_quota_too() -> None:
    reply = Reply(200, b"", rate_limit='"d";r=0;t=30', rate_limit_policy='"d";q=10;w=60')
    async with opened(ScriptedTransport({ROBOTS: reply})) as (gate, _):
        assert await visit(gate) == pytest.approx(31)
        assert "6 s between requests" in str(await gate.explain(ROBOTS))


async def test_a_long_wait_for_a_quota_is_kept_in_a_store(tmp_path: Path) -> None:
    store = str(tmp_path / "robots.sqlite")
    async with opened(store=store) as (gate, _):
        await visit(gate, RateLimit='"d";r=0;t=3000')
    async with opened(store=store) as (gate, _):
        assert await visit(gate) >= 2_900
