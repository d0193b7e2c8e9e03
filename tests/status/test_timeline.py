"""The last ten minutes: seconds that were missed, what is remembered, rates."""

from polite.status.recorder import LENGTH_S, Second, Timeline


def test_each_second_is_a_row_and_ten_minutes_are_remembered() -> None:
    timeline = Timeline(100.0)

    for n in range(LENGTH_S + 50):
        timeline.add(101.0 + n, Second(well=n))

    assert len(timeline.seconds) == LENGTH_S
    assert (timeline.seconds[0].well, timeline.seconds[-1].well) == (50, LENGTH_S + 49)


def test_seconds_that_were_missed_are_empty_but_for_what_is_the_case() -> None:
    timeline = Timeline(100.0)

    added = timeline.add(104.2, Second(well=7, waiting=3, in_flight=2))

    empty = Second(waiting=3, in_flight=2)
    assert added == [empty, empty, empty, Second(well=7, waiting=3, in_flight=2)]
    assert list(timeline.seconds) == added


def test_a_long_sleep_adds_no_more_than_is_remembered() -> None:
    timeline = Timeline(0.0)

    assert len(timeline.add(1e9, Second(well=1))) == LENGTH_S
    assert len(timeline.add(1e9 + 1, Second(well=1))) == 1


def test_a_tick_that_comes_early_adds_one_second() -> None:
    timeline = Timeline(100.0)
    timeline.add(101.0, Second(well=1))

    assert timeline.add(101.9, Second(well=2)) == [Second(well=2)]
    assert timeline.add(103.0, Second(well=3)) == [Second(well=3)]
    assert timeline.add(105.0, Second(well=4)) == [Second(), Second(well=4)]


def test_ticks_about_a_whole_second_add_one_row_each() -> None:
    timeline = Timeline(100.9995)

    for n in range(1, 500):
        # By turns a little before and after a whole second of the clock.
        late_s = 0.001 * (n % 2)
        assert timeline.add(100.9995 + n + late_s, Second(well=n)) == [Second(well=n)]


def test_there_are_as_many_rows_as_seconds_however_late_ticks_are() -> None:
    timeline, now = Timeline(100.0), 100.0

    for late_s in (0.4, 0.6, 0.0, 2.5, 0.9, 0.5, 1.5) * 20:
        now += 1 + late_s
        timeline.add(now, Second())
        assert abs(100.0 + len(timeline.seconds) - now) <= 1


def test_a_rate_is_of_the_seconds_that_there_were() -> None:
    timeline = Timeline(0.0)
    assert timeline.rate(10) == (0.0, 0.0)

    timeline.add(1.0, Second(granted=4, robots=2))
    timeline.add(2.0, Second(granted=2))
    assert timeline.rate(10) == (3.0, 1.0)
    assert timeline.rate(1) == (2.0, 0.0)
