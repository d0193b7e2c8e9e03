"""What is to be done later is done in order, at its time, with one timer."""

import pytest

from polite.frontier.timer_queue import TimerQueue
from polite.testing import ManualClock


async def test_of_many_that_are_due_at_one_time_the_loop_runs_others_between():
    clock = ManualClock()
    agenda = TimerQueue(clock)
    called: list[int] = []
    for number in range(1_200):
        agenda.at(clock.monotonic() + 5.0, lambda number=number: called.append(number))
    fired: list[int] = []
    real = clock.call_at
    clock.call_at = lambda when, callback: real(when, lambda: (callback(), fired.append(len(called))))

    agenda.at(clock.monotonic() + 4.0, lambda: None)
    clock.advance(5.0)

    assert called == list(range(1_200))
    assert fired == [0, 500, 1_000, 1_200]


def test_cancelled_entries_do_not_fill_the_heap() -> None:
    agenda = TimerQueue(ManualClock(monotonic=0.0))
    agenda.at(1.0, lambda: None)
    for _ in range(10_000):
        agenda.at(86_400.0, lambda: None).cancel()

    assert len(agenda._entries) <= 101


def test_each_callback_comes_at_its_time_in_order_and_one_that_fails_or_is_cancelled_stops_no_other() -> None:
    clock, told = ManualClock(monotonic=0.0), []
    agenda = TimerQueue(clock)
    entries = {when: agenda.at(when, lambda when=when: told.append(when)) for when in (3.0, 1.0, 2.0)}
    agenda.at(1.5, lambda: 1 / 0)
    entries[2.0].cancel()
    assert sum(not timer.cancelled for _, _, timer in clock._timers) == 1

    # A timer that fires early is set again.
    agenda._call()
    with pytest.raises(ZeroDivisionError):
        clock.advance(2.5)
    assert told == [1.0]
    clock.advance(2.5)

    assert told == [1.0, 3.0]
