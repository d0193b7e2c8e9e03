"""What is counted of events, which are remembered, the last ten minutes, and what an operator is told first."""

import pytest

from polite.events import CircuitOpened, Dropped, Left
from polite.status.monitor import notices
from polite.status.recorder import LENGTH_S, Recorder, Second, Timeline

URL, ORIGIN = "https://example.com/a", "https://example.com"


def left(status, elapsed_s=0.5):
    return Left(URL, status, elapsed_s, 1.0)


def second(recorder):
    return recorder.take_second(robots=0, granted=0, in_flight=0, waiting=0)


def test_responses_are_counted_by_status_and_by_what_they_mean():
    recorder = Recorder(lambda: 7.0)
    for status in (200, 200, 301, 404, 429, 503, 500, 599, 1_000, None):
        recorder(left(status))
    assert recorder.responses == {200: 2, 301: 1, 404: 1, 429: 1, 503: 1, 500: 1, 599: 1, 999: 1, 0: 1}
    assert second(recorder) == Second(well=3, not_well=1, slowed=2, failed=4)
    assert second(recorder) == Second()


def test_a_flood_of_one_kind_pushes_out_no_other_and_memory_is_bounded():
    recorder = Recorder(lambda: 7.0)
    recorder(CircuitOpened(ORIGIN, 5, 60.0, "5 failures in a row"))

    for n in range(10_000):
        recorder(Dropped(f"https://example.com/{n}", f"reason {n} {'x' * 1_000}", 1))

    assert len(recorder.noted(10_000)) == 41
    assert {each.kind for each in recorder.noted(10_000)} == {"Dropped", "CircuitOpened"}
    assert (len(recorder.dropped), recorder.dropped["other reasons"]) == (51, 10_000 - 50)
    assert max(len(each.text) for each in recorder.noted(10_000)) < 320


def test_each_second_is_a_row_ten_minutes_are_remembered_and_missed_seconds_are_empty():
    timeline = Timeline(100.0)
    timeline.add(101.0, Second(well=1))
    # A tick that comes a little early or late adds one row. Of missed seconds, only what is the case at their end is known.
    assert timeline.add(101.9, Second(well=2)) == [Second(well=2)]
    assert timeline.add(103.0, Second(well=3)) == [Second(well=3)]
    late = Second(well=7, waiting=3, in_flight=2)
    assert timeline.add(106.2, late) == [Second(waiting=3, in_flight=2)] * 2 + [late]

    for n in range(LENGTH_S):
        timeline.add(107.0 + n, Second(well=n))

    assert [each.well for each in timeline.seconds] == [*range(LENGTH_S)]
    assert len(timeline.add(1e9, Second(well=1))) == LENGTH_S
    assert len(timeline.add(1e9 + 1, Second(well=1))) == 1


GRAVEST = ("bad", "warn", "info")
WELL = dict.fromkeys(("closed", "ended", "paused"), False) | {"failure": None, "store_away_s": None}
WELL |= dict.fromkeys(("open_circuits", "unreachable", "wait_for_worker"), 0)
WELL |= {"waiting": 5, "silent_s": 1.0, "minute": [Second(well=50)], "late_s": 0.0}


@pytest.mark.parametrize(
    ("changed", "level", "text"),
    [
        ({}, "info", "All is well."),
        ({"failure": "SchedulerFailed: no"}, "bad", "The frontier has failed: SchedulerFailed: no"),
        ({"closed": True, "silent_s": 900.0}, "warn", "The gate is closed"),
        ({"ended": True}, "info", "The crawl has ended: nothing is left."),
        ({"paused": True, "silent_s": 900.0}, "warn", "The frontier is paused"),
        ({"store_away_s": 12.4}, "bad", "The shared store has not responded for 12 s."),
        ({"silent_s": 61.0}, "bad", "No permit was granted for 61 s, and 5 URLs wait."),
        ({"waiting": 0, "silent_s": 900.0}, "info", "All is well."),
        ({"open_circuits": 1200}, "warn", "1,200 circuits are open."),
        ({"unreachable": 1}, "warn", "robots.txt of 1 origin is out of reach; its URLs wait."),
        ({"wait_for_worker": 3}, "info", "3 origins wait for an idle worker"),
        ({"late_s": 0.7}, "warn", "The event loop was late by 0.7 s"),
        ({"minute": [Second(well=30), Second(failed=10)]}, "bad", "10 of 40 requests failed"),
        ({"minute": [Second(failed=9)]}, "info", "All is well."),
        ({"minute": [Second(well=30, slowed=10)]}, "bad", "10 of 40 responses in the last minute were 429 or 503."),
        ({"minute": [Second(well=300, slowed=1)]}, "warn", "1 response in the last minute was 429 or 503."),
    ],
)  # fmt: skip
def test_each_trouble_has_a_sentence(changed, level, text):
    (found,) = notices(**{**WELL, **changed})
    assert found.level == level
    assert found.text.startswith(text)
    # The gravest comes first.
    several = notices(**{**WELL, **changed, "wait_for_worker": 1, "open_circuits": 1, "store_away_s": 3.0})
    assert [each.level for each in several] == sorted((each.level for each in several), key=GRAVEST.index)
