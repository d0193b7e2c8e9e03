"""A server that keeps a quota, and says so, refuses nothing after its first policy header, in virtual time."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import ROBOTS, opened, visit

pytestmark = pytest.mark.virtual_time


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
