"""Turns given to tasks: one timer, a future for each that waits, nothing lost by cancelling."""

import asyncio
import time
import tracemalloc
from collections.abc import Callable, Hashable
from itertools import pairwise

import pytest

from polite.errors import GateClosed, Overloaded
from polite.gate.background import start_later
from polite.pacers import local
from polite.pacers.local import LocalPacer
from polite.pacing.turn import Turn, TurnState
from polite.testing import ManualClock

A, B, ALL = "a.example", "b.example", "everything"


class CountingClock(ManualClock):
    """How many timers are pending, and how many were made."""

    def __init__(self) -> None:
        super().__init__(monotonic=0.0)
        self.pending = 0
        self.made = 0

    def call_at(self, when: float, callback: Callable[[], None]) -> "CountedTimer":
        self.pending += 1
        self.made += 1
        return CountedTimer(self, when, callback)


class CountedTimer:
    def __init__(self, clock: CountingClock, when: float, callback: Callable[[], None]) -> None:
        self.clock, self.callback = clock, callback
        self.timer = ManualClock.call_at(clock, when, self.fire)

    def fire(self) -> None:
        self.clock.pending -= 1
        self.callback()

    def cancel(self) -> None:
        self.clock.pending -= 1
        self.timer.cancel()


async def settle_down() -> None:
    """Let every task go as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def taken(pacer: LocalPacer, pause_s: float = 1.0, *scopes: str) -> Turn:
    """A turn that is over already."""
    turn = await pacer.acquire(scopes or (A,))
    pacer.settle(turn, pause_s)
    pacer.release(turn)
    return turn


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


async def test_however_many_wait_there_is_one_timer() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    for seconds, scope in enumerate("fedcba"):
        await taken(pacer, 10.0 - seconds, scope)

    tasks = [asyncio.create_task(pacer.acquire((scope,))) for scope in "fedcba"]
    await settle_down()
    assert clock.pending == 1
    await clock.advance_and_run(10.0)

    assert [task.result().granted_at for task in tasks] == [10.0, 9.0, 8.0, 7.0, 6.0, 5.0]


async def test_those_who_come_later_leave_the_timer_as_it_is() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer)

    tasks = [asyncio.create_task(pacer.acquire((A,))) for _ in range(100)]
    await settle_down()
    assert clock.made == 1

    await pacer.close()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_timer_that_fires_early_gives_nothing_and_is_set_again() -> None:
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


async def test_a_place_that_becomes_free_goes_to_the_next_at_once() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    turn = await pacer.acquire((A,))
    waiter = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    pacer.settle(turn, 0.0)
    pacer.release(turn)
    await clock.advance_and_run(0.0)

    assert waiter.result().state is TurnState.OPEN


async def test_a_turn_given_back_rests_nobody_and_goes_to_the_next() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    turn = await pacer.acquire((A,))
    waiter = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    pacer.give_back(turn)
    await clock.advance_and_run(0.0)

    assert waiter.result().granted_at == 0.0


async def test_a_turn_given_back_is_free_for_whoever_comes() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)

    pacer.give_back(await pacer.acquire((A,)))

    assert (await pacer.acquire((A,))).granted_at == 0.0
    assert clock.pending == 0


async def test_urgent_requests_go_first() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer)
    page = asyncio.create_task(pacer.acquire((A,)))
    robots = asyncio.create_task(pacer.acquire((A,), urgent=True))
    await settle_down()

    await clock.advance_and_run(1.0)

    assert robots.done()
    assert not page.done()


async def test_cancelling_one_who_waits_hurries_nobody() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    first, second = (asyncio.create_task(pacer.acquire((A,))) for _ in range(2))
    await clock.advance_and_run(1.0)

    first.cancel()
    await clock.advance_and_run(3.9)
    assert not second.done()
    await clock.advance_and_run(0.1)

    assert first.cancelled()
    assert second.result().granted_at == 5.0


async def test_cancelling_one_who_has_just_been_given_a_turn_passes_it_on() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    first, second = (asyncio.create_task(pacer.acquire((A,))) for _ in range(2))
    await settle_down()

    # The timer resolves the future; the task has not run yet when it is cancelled.
    clock.advance(5.0)
    first.cancel()
    await settle_down()
    await clock.advance_and_run(0.0)

    assert first.cancelled()
    assert second.result().granted_at == 5.0


async def test_one_cancelled_in_the_very_step_of_its_grant_passes_it_on() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    first, second = (asyncio.create_task(pacer.acquire((A,))) for _ in range(2))
    await settle_down()

    # Cancelled first; its task has not run yet when the timer gives it the turn.
    first.cancel()
    clock.advance(5.0)
    await settle_down()
    await clock.advance_and_run(0.0)

    assert first.cancelled()
    assert second.result().granted_at == 5.0


async def test_a_task_that_never_began_to_wait_leaves_nothing_behind() -> None:
    pacer = LocalPacer(CountingClock())
    task = start_later(lambda: pacer.acquire((A,)))

    task.cancel()
    await settle_down()

    assert (await pacer.acquire((A,))).granted_at == 0.0


async def test_a_clock_that_fails_leaves_nobody_in_line() -> None:
    class BrokenClock(CountingClock):
        def call_at(self, when: float, callback: Callable[[], None]) -> CountedTimer:
            raise OSError("no more timers")

    pacer = LocalPacer(BrokenClock())
    await taken(pacer)

    with pytest.raises(OSError, match="no more timers"):
        await pacer.acquire((A,))

    assert pacer.outlook((A,)).waiting == 0


async def test_closing_tells_everyone_who_waits() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    turn = await pacer.acquire((A,))
    tasks = [asyncio.create_task(pacer.acquire((A,))) for _ in range(3)]
    await settle_down()

    await pacer.close()
    await pacer.close()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(answer) for answer in answers] == [GateClosed] * 3
    assert clock.pending == 0
    pacer.settle(turn, 1.0)
    pacer.release(turn)


async def test_closing_stops_the_timer_of_those_who_rest() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer)
    task = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    await pacer.close()

    assert clock.pending == 0
    with pytest.raises(GateClosed, match="while this request waited"):
        await task


async def test_one_cancelled_before_closing_is_cancelled_all_the_same() -> None:
    pacer = LocalPacer(CountingClock())
    await pacer.acquire((A,))
    task = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    task.cancel()
    await pacer.close()
    await settle_down()

    assert task.cancelled()


async def test_a_closed_pacer_gives_no_turns() -> None:
    pacer = LocalPacer(CountingClock())
    await pacer.close()

    with pytest.raises(GateClosed, match="closed"):
        await pacer.acquire((A,))


async def test_too_many_waiters_are_refused_and_wait_for_nothing() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock, max_waiting=1)
    await taken(pacer)
    waiter = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    with pytest.raises(Overloaded, match="max_waiting"):
        await pacer.acquire((A,))

    await clock.advance_and_run(1.0)
    assert waiter.done()


async def test_a_hold_is_counted_from_now_and_shows_in_the_outlook() -> None:
    clock = CountingClock()
    clock.advance(10.0)
    pacer = LocalPacer(clock)

    pacer.hold((A, ALL), 30.0, "robots.txt is asked again then")

    outlook = pacer.outlook((A,))
    assert (outlook.ready_at, outlook.because) == (40.0, "robots.txt is asked again then")
    assert pacer.outlook((ALL,)).ready_at == 40.0


async def test_strikes_and_reasons_are_handed_on() -> None:
    pacer = LocalPacer(CountingClock())
    turn = await pacer.acquire((A,))

    pacer.settle(turn, 60.0, strike=True, because="status 429")
    pacer.release(turn)

    assert pacer.strikes(A) == 1
    assert pacer.outlook((A,)).because == "status 429"


async def test_several_scopes_are_taken_together() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 1.0, A)
    await taken(pacer, 3.0, ALL)

    task = asyncio.create_task(pacer.acquire((A, ALL)))
    await clock.advance_and_run(2.0)
    assert pacer.outlook((A,)).open == 0
    await clock.advance_and_run(1.0)

    assert task.result().granted_at == 3.0


async def test_with_concurrency_so_many_run_at_one_time() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock, concurrency=2, provisional_s=1.0)

    tasks = [asyncio.create_task(pacer.acquire((A,))) for _ in range(3)]
    await clock.advance_and_run(100.0)

    assert [task.done() for task in tasks] == [True, True, False]
    tasks[2].cancel()


async def test_tens_of_thousands_wait_in_little_memory_go_in_order_and_leave_in_no_time() -> None:
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


# For who does not wait in a task.


async def test_a_turn_is_had_at_once_where_nobody_needs_to_wait_and_else_not_at_all() -> None:
    clock = ManualClock()
    pacer = LocalPacer(clock, max_waiting=1)

    turn = pacer.acquire_now([A])
    assert turn is not None
    assert not turn.waited
    assert pacer.acquire_now([A]) is None
    assert pacer.outlook([A]).waiting == 0
    waiting = asyncio.create_task(pacer.acquire([A]))
    await asyncio.sleep(0)
    assert pacer.acquire_now([A]) is None

    pacer.give_back(turn)
    await clock.advance_and_run(1.0)
    assert waiting.done()


async def test_a_call_comes_in_another_step_with_the_turn_that_is_free_or_when_it_is() -> None:
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


@pytest.mark.parametrize("steps", [0, 1])
async def test_a_call_that_is_cancelled_before_it_came_gives_its_turn_back(steps: int) -> None:
    clock = ManualClock()
    pacer, calls = LocalPacer(clock), []
    first = pacer.acquire_now([A])
    assert first is not None

    call = pacer.acquire_later([A], lambda *_: calls.append(1))
    if steps:
        pacer.give_back(first)
        clock.advance(1.0)
    call.cancel()
    call.cancel()
    if not steps:
        pacer.give_back(first)
    await clock.advance_and_run(10.0)

    assert calls == []
    assert pacer.acquire_now([A]) is not None


async def test_cancelling_a_call_that_came_changes_nothing() -> None:
    pacer, calls = LocalPacer(ManualClock()), []

    call = pacer.acquire_later([A], lambda turn, _: calls.append(turn))
    await asyncio.sleep(0)
    call.cancel()

    assert calls[0].state is TurnState.OPEN


async def test_who_would_be_called_back_hears_of_the_closing() -> None:
    pacer, errors = LocalPacer(ManualClock()), []
    assert pacer.acquire_now([A]) is not None
    call = pacer.acquire_later([A], lambda _, error: errors.append(type(error)))
    cancelled = pacer.acquire_later([A], lambda _, error: errors.append("cancelled"))
    cancelled.cancel()

    await pacer.close()
    await asyncio.sleep(0)

    assert errors == [GateClosed]
    assert call.done()
    for ask in (lambda: pacer.acquire_now([A]), lambda: pacer.acquire_later([A], lambda *_: None)):
        with pytest.raises(GateClosed):
            ask()


async def test_many_scopes_are_told_of_new_limits_in_steps_and_none_is_forgotten() -> None:
    asked: list[Hashable] = []
    limit = 1

    def concurrency(scope: Hashable) -> int:
        asked.append(scope)
        return limit

    scopes = [f"h{number}.example" for number in range(2 * local._RELIMITED_AT_ONCE + 1)]
    clock = ManualClock(monotonic=0.0)
    pacer = LocalPacer(clock, concurrency=concurrency, provisional_s=0.0)
    for scope in scopes:
        await pacer.acquire((scope,))
    waiting = [asyncio.create_task(pacer.acquire((scope,))) for scope in scopes]
    await settle_down()
    asked.clear()

    limit = 2
    pacer.relimit()
    steps = [len(asked)]
    while steps[-1] < len(scopes):
        await asyncio.sleep(0)
        steps.append(len(asked))

    assert max(later - earlier for earlier, later in pairwise(steps)) <= local._RELIMITED_AT_ONCE
    assert sorted(map(str, asked)) == sorted(scopes)
    clock.advance(0.0)
    await settle_down()
    assert all(task.done() for task in waiting)


async def test_a_pacer_that_is_closed_tells_no_scope_any_more() -> None:
    pacer = LocalPacer(ManualClock(monotonic=0.0), concurrency=lambda _: 1)
    for number in range(local._RELIMITED_AT_ONCE + 1):
        await pacer.acquire((number,))

    pacer.relimit()
    await pacer.close()
    await settle_down()

    assert not pacer._relimiting


def test_without_a_loop_all_are_told_at_once() -> None:
    asked: list[Hashable] = []
    pacer = LocalPacer(ManualClock(monotonic=0.0), concurrency=lambda scope: asked.append(scope) or 1)
    for number in range(local._RELIMITED_AT_ONCE + 1):
        assert pacer.acquire_now((number,)) is not None
    asked.clear()

    pacer.relimit()

    assert len(asked) == local._RELIMITED_AT_ONCE + 1
