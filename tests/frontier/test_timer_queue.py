"""What is to be done later is done in order, at its time, with one timer."""

import pytest

from polite.frontier.timer_queue import TimerQueue
from polite.testing import ManualClock


def test_each_callback_comes_at_its_time_in_order() -> None:
    clock, told = ManualClock(monotonic=0.0), []
    agenda = TimerQueue(clock)
    for when in (3.0, 1.0, 2.0):
        agenda.at(when, lambda when=when: told.append((when, clock.monotonic())))

    clock.advance(2.5)
    assert told == [(1.0, 1.0), (2.0, 2.0)]
    clock.advance(1.0)

    assert told[2:] == [(3.0, 3.0)]


def test_there_is_one_timer_for_all() -> None:
    clock = ManualClock(monotonic=0.0)
    agenda = TimerQueue(clock)
    for when in range(100, 0, -1):
        agenda.at(float(when), lambda: None)

    assert sum(not timer.cancelled for _, _, timer in clock._timers) == 1


def test_a_timer_that_fires_early_is_set_again() -> None:
    clock, told = ManualClock(monotonic=0.0), []
    agenda = TimerQueue(clock)
    agenda.at(5.0, lambda: told.append(clock.monotonic()))

    agenda._call()
    clock.advance(5.0)

    assert told == [5.0]


def test_after_clear_nothing_comes() -> None:
    clock, told = ManualClock(monotonic=0.0), []
    agenda = TimerQueue(clock)
    agenda.at(1.0, lambda: told.append(1))
    agenda.clear()
    agenda.clear()
    clock.advance(10.0)

    assert told == []


def test_a_callback_that_fails_stops_none_of_the_others() -> None:
    clock, told = ManualClock(monotonic=0.0), []
    agenda = TimerQueue(clock)
    agenda.at(1.0, lambda: 1 / 0)
    agenda.at(2.0, lambda: told.append(2))
    with pytest.raises(ZeroDivisionError):
        clock.advance(1.0)
    clock.advance(1.0)

    assert told == [2]


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


def test_a_cancelled_entry_is_not_called() -> None:
    clock, told = ManualClock(monotonic=0.0), []
    agenda = TimerQueue(clock)
    entries = [agenda.at(1.0, lambda each=each: told.append(each)) for each in range(3)]
    entries[1].cancel()

    clock.advance(2.0)

    assert told == [0, 2]


def test_cancelled_entries_do_not_fill_the_heap() -> None:
    agenda = TimerQueue(ManualClock(monotonic=0.0))
    agenda.at(1.0, lambda: None)
    for _ in range(10_000):
        agenda.at(86_400.0, lambda: None).cancel()

    assert len(agenda._entries) <= 101
