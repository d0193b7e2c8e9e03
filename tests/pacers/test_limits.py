"""Limits of a pacer: concurrency, changes of it while turns are held, and the number of waiters."""

import asyncio
import time
import tracemalloc
from collections.abc import Hashable
from itertools import pairwise

import pytest

from polite.pacing import pacer as local
from polite.pacing.pacer import LocalPacer
from polite.testing import ManualClock
from tests.pacers.conftest import A, CountingClock, settle_down


@pytest.mark.slow("thousands of waiters")
async def test_twenty_thousand_waiters_use_little_memory_go_in_order_and_cancel_fast() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    opened = await pacer.acquire((A,))
    count = 20_000

    tracemalloc.start()
    try:
        tasks = [asyncio.create_task(pacer.acquire((A,))) for _ in range(count)]
        await asyncio.sleep(0)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for task in tasks[:10]:
        pacer.settle(opened, 1.0)
        pacer.release(opened)
        await clock.advance_and_run(1.0)
        opened = task.result()
    start = time.process_time()
    for task in tasks[10:]:
        task.cancel()
    await settle_down()

    assert used / count < 4096
    assert time.process_time() - start < 2.0
    assert pacer.outlook((A,)).waiting == 0


async def test_new_limits_reach_all_scopes_in_steps() -> None:
    limited: list[Hashable] = []
    limit = 1

    def concurrency(scope: Hashable) -> int:
        limited.append(scope)
        return limit

    scopes = [f"h{number}.example" for number in range(2 * local._RELIMITED_AT_ONCE + 1)]
    clock = ManualClock(monotonic=0.0)
    pacer = LocalPacer(clock, concurrency=concurrency, provisional_s=0.0)
    for scope in scopes:
        await pacer.acquire((scope,))
    waiting = [asyncio.create_task(pacer.acquire((scope,))) for scope in scopes]
    await settle_down()
    limited.clear()

    limit = 2
    pacer.relimit()
    steps = [len(limited)]
    while steps[-1] < len(scopes):
        await asyncio.sleep(0)
        steps.append(len(limited))

    assert max(later - earlier for earlier, later in pairwise(steps)) <= local._RELIMITED_AT_ONCE
    assert sorted(map(str, limited)) == sorted(scopes)
    clock.advance(0.0)
    await settle_down()
    assert all(task.done() for task in waiting)
