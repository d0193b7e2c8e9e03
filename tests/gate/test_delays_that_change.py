"""A delay that changes while requests wait with more than one allowed at one time: each grant keeps the delay of its own moment."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.robots.exchange import Reply
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

SITE = "https://site.test"


async def grants(
    gate: polite.Gate, count: int, change: Callable[[], Any] = lambda: None, at: float = 0.0
) -> list[float]:
    """When `count` pages go that ask at one time and take longer than the whole crawl; `change` is called meanwhile."""
    granted: list[float] = []

    async def page(number: int) -> None:
        async with gate.permit(f"{SITE}/{number}") as permit:
            granted.append(asyncio.get_running_loop().time())
            await asyncio.sleep(3_000)
            permit.report(status=200)

    pages = [asyncio.create_task(page(number)) for number in range(count)]
    await asyncio.sleep(at)
    change()
    await asyncio.gather(*pages)
    return granted


def opened(robots: bytes, **pacing: Any) -> Any:
    script = {f"{SITE}/robots.txt": Reply(200, robots)}
    return scripted_gate(script, pacing=polite.PacingPolicy(concurrency=20, **pacing))


async def test_permits_that_wait_keep_the_crawl_delay_that_a_new_policy_allows() -> None:
    async with opened(b"User-agent: *\nCrawl-delay: 30\n", max_crawl_delay=5) as gate:

        def change() -> None:
            gate.pacing = replace(gate.pacing, max_crawl_delay=300)

        granted = await grants(gate, 8, change, at=12.0)

    # What runs already stays as it is: 5, 10, 15.
    assert all(later - earlier >= 30.0 for earlier, later in pairwise(granted[2:]))
