"""Limits of a pacer: concurrency, changes of it while turns are held, and the number of waiters."""

import asyncio
import time
import tracemalloc

import pytest

from polite.pacing.pacer import LocalPacer
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
