"""A server that keeps a quota, and says so, refuses nothing after its first policy header, in virtual time."""

import asyncio
import math
from collections import deque
from collections.abc import Callable
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


async def test_a_burst_that_was_sent_before_is_spread_over_what_is_left() -> None:
    server = Server([FixedWindow("d", 10, 60)])

    async with scripted_gate(pacing=polite.PacingPolicy(min_delay=0.0, concurrency=8)) as gate:

        async def one(page: int) -> None:
            async with gate.permit(f"https://site.test/{page}") as permit:
                await server.respond(permit)

        await asyncio.gather(*map(one, range(30)))

    assert server.late_refusals == 0
    assert server.responses == 30


async def test_a_policy_holds_for_responses_that_do_not_repeat_it() -> None:
    async with opened() as (gate, _):
        times = [await visit(gate, RateLimit_Policy='"d";q=10;w=60'), await visit(gate), await visit(gate)]

        assert [after - before for before, after in pairwise(times)] == pytest.approx([10, 10])
        await asyncio.sleep(60)
        assert "delay: 6 s between requests (RateLimit-Policy: 10 in 60 s)" in str(await gate.explain(ROBOTS))


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
