"""Turns granted to tasks: one timer, and a future for each request that waits."""

import asyncio
from collections.abc import Callable

import pytest

from polite.errors import GateClosed
from polite.pacing.pacer import LocalPacer
from polite.pacing.turn import TurnState
from tests.pacers.conftest import A, CountedTimer, CountingClock, settle_down, taken


async def test_a_free_turn_costs_no_future_and_no_timer() -> None:
    clock = CountingClock()
    coroutine = LocalPacer(clock).acquire((A,))

    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)

    assert stop.value.value.state is TurnState.OPEN
    assert clock.pending == 0


async def test_a_waiter_gets_its_turn_at_its_time_and_not_before() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 2.0)
    waiter = asyncio.create_task(pacer.acquire((A,)))

    await clock.advance_and_run(1.9)
    assert not waiter.done()
    await clock.advance_and_run(0.1)

    assert waiter.result().granted_at == 2.0


async def test_any_number_of_waiters_needs_one_timer() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    for seconds, scope in enumerate("fedcba"):
        await taken(pacer, 10.0 - seconds, scope)

    tasks = [asyncio.create_task(pacer.acquire((scope,))) for scope in "fedcba"]
    await settle_down()
    assert clock.pending == 1
    await clock.advance_and_run(10.0)

    assert [task.result().granted_at for task in tasks] == [10.0, 9.0, 8.0, 7.0, 6.0, 5.0]


async def test_a_timer_that_fires_early_grants_no_turn_and_is_set_again() -> None:
    class HastyClock(CountingClock):
        def call_at(self, when: float, callback: Callable[[], None]) -> CountedTimer:
            early = when - 0.01 if when - 0.01 > self.monotonic() else when
            return super().call_at(early, callback)

    clock = HastyClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    waiter = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    await clock.advance_and_run(4.995)
    assert not waiter.done()
    assert clock.pending == 1
    await clock.advance_and_run(0.005)

    assert waiter.result().granted_at == 5.0


async def test_a_failing_clock_leaves_no_request_in_the_queue() -> None:
    class BrokenClock(CountingClock):
        def call_at(self, when: float, callback: Callable[[], None]) -> CountedTimer:
            raise OSError("no more timers")

    pacer = LocalPacer(BrokenClock())
    await taken(pacer)

    with pytest.raises(OSError, match="no more timers"):
        await pacer.acquire((A,))

    assert pacer.outlook((A,)).waiting == 0


async def test_closing_fails_each_waiter() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    turn = await pacer.acquire((A,))
    tasks = [asyncio.create_task(pacer.acquire((A,))) for _ in range(3)]
    await settle_down()

    await pacer.close()
    await pacer.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(result) for result in results] == [GateClosed] * 3
    assert clock.pending == 0
    pacer.settle(turn, 1.0)
    pacer.release(turn)


async def test_closing_cancels_the_timer_of_a_delay() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer)
    task = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    await pacer.close()

    assert clock.pending == 0
    with pytest.raises(GateClosed, match="while this request waited"):
        await task
