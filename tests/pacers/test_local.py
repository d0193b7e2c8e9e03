"""Turns granted to tasks and to callbacks: one timer for all, cancelled requests, and limits that change."""

import asyncio

import pytest

from polite.errors import GateClosed
from polite.pacing.pacer import LocalPacer
from polite.testing import ManualClock

A = "a.example"


def pending(clock: ManualClock) -> int:
    return sum(not timer.cancelled for _, _, timer in clock._timers)


async def settle_down() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def taken(pacer, pause_s=1.0, *scopes):
    turn = await pacer.acquire(scopes or (A,))
    pacer.settle(turn, pause_s)
    pacer.release(turn)
    return turn


async def test_any_number_of_waiters_needs_one_timer() -> None:
    clock = ManualClock(monotonic=0.0)
    pacer = LocalPacer(clock)
    for seconds, scope in enumerate("fedcba"):
        await taken(pacer, 10.0 - seconds, scope)

    tasks = [asyncio.create_task(pacer.acquire((scope,))) for scope in "fedcba"]
    await settle_down()
    assert pending(clock) == 1
    await clock.advance_and_run(10.0)

    assert [task.result().granted_at for task in tasks] == [10.0, 9.0, 8.0, 7.0, 6.0, 5.0]


async def test_a_timer_that_fires_early_grants_no_turn_and_is_set_again() -> None:
    class HastyClock(ManualClock):
        def call_at(self, when, callback):
            early = when - 0.01 if when - 0.01 > self.monotonic() else when
            return super().call_at(early, callback)

    clock = HastyClock(monotonic=0.0)
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    waiter = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    await clock.advance_and_run(4.995)
    assert not waiter.done()
    assert pending(clock) == 1
    await clock.advance_and_run(0.005)

    assert waiter.result().granted_at == 5.0


async def test_closing_fails_each_waiter_and_leaves_no_timer() -> None:
    clock = ManualClock(monotonic=0.0)
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0, "other")
    turn = await pacer.acquire((A,))
    tasks = [asyncio.create_task(pacer.acquire((scope,))) for scope in (A, A, "other")]
    await settle_down()
    tasks[0].cancel()

    await pacer.close()
    await pacer.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(result) for result in results] == [asyncio.CancelledError, GateClosed, GateClosed]
    assert pending(clock) == 0
    pacer.settle(turn, 1.0)
    pacer.release(turn)


@pytest.mark.parametrize("cancelled_first", [False, True])
async def test_cancelling_a_waiter_in_the_step_of_its_grant_passes_the_turn_on(cancelled_first: bool) -> None:
    clock = ManualClock(monotonic=0.0)
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    first, second = (asyncio.create_task(pacer.acquire((A,))) for _ in range(2))
    await settle_down()

    # The timer resolves the future before or after the task is cancelled, which has not run yet.
    if cancelled_first:
        first.cancel()
    clock.advance(5.0)
    first.cancel()
    await settle_down()
    await clock.advance_and_run(0.0)

    assert first.cancelled()
    assert second.result().granted_at == 5.0


async def test_acquire_now_returns_a_free_turn_or_none() -> None:
    clock = ManualClock()
    pacer = LocalPacer(clock, max_waiting=1)

    turn = pacer.acquire_now([A])
    assert not turn.waited
    assert pacer.acquire_now([A]) is None
    assert pacer.outlook([A]).waiting == 0
    waiting = asyncio.create_task(pacer.acquire([A]))
    await asyncio.sleep(0)
    assert pacer.acquire_now([A]) is None

    pacer.give_back(turn)
    await clock.advance_and_run(1.0)
    assert waiting.done()


async def test_acquire_later_calls_back_in_a_later_step_once_a_turn_is_free() -> None:
    clock = ManualClock()
    pacer, calls = LocalPacer(clock), []

    for name in "12":
        pacer.acquire_later([A], lambda turn, error, name=name: calls.append((name, turn, error)))
    assert calls == []
    await asyncio.sleep(0)
    assert [name for name, _, _ in calls] == ["1"]
    pacer.settle(calls[0][1], 5.0)
    pacer.release(calls[0][1])
    await clock.advance_and_run(4.9)
    assert len(calls) == 1
    await clock.advance_and_run(0.2)

    assert [(name, error) for name, _, error in calls] == [("1", None), ("2", None)]
    assert [turn.waited for _, turn, _ in calls] == [False, True]


async def test_a_callback_that_raises_takes_no_turn_from_others_that_are_due() -> None:
    clock = ManualClock()
    pacer, calls = LocalPacer(clock), []
    for scope in "abc":
        await taken(pacer, 1.0, scope)

    def called(turn, _):
        calls.append(turn.narrowest)
        if turn.narrowest == "a":
            raise RuntimeError("a defect")

    for scope in "abc":
        pacer.acquire_later([scope], called)
    with pytest.raises(RuntimeError, match="a defect"):
        clock.advance(1.0)
    assert calls == ["a"]
    await settle_down()

    assert calls == ["a", "b", "c"]
