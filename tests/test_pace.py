"""What a site asks about pace: hours that run over midnight, rates with hours, and the slowest of all."""

import math

import pytest

from polite.pace import RequestedPace, RequestRate, VisitTime

DAY = 86_400.0
MIDNIGHT = 19_676 * DAY


def at(hour: float) -> float:
    return MIDNIGHT + hour * 3_600.0


@pytest.mark.parametrize(
    ("window", "hour", "opens_in_h", "closed_for_h"),
    [
        *((VisitTime(360, 525), hour, 0.0, 0.0) for hour in (6.0, 8.74)),
        *((VisitTime(1320, 360), hour, 0.0, 0.0) for hour in (23.0, 5.9)),
        *((VisitTime(0, 1440), 12.0, 0.0, 0.0), (VisitTime(600, 600), 3.0, 0.0, 0.0)),
        (VisitTime(360, 525), 8.75, 21.25, 0.0),
        (VisitTime(360, 525), 5.0, 1.0, 20.25),
        (VisitTime(1320, 360), 6.0, 16.0, 0.0),
    ],
)
def test_a_window_says_when_it_opens_and_since_when_it_is_closed(window, hour, opens_in_h, closed_for_h):
    assert window.opens_in_s(at(hour)) == pytest.approx(opens_in_h * 3_600.0)
    assert window.closed_for_s(at(hour)) == pytest.approx(closed_for_h * 3_600.0)
    assert window.covers_wall(at(hour)) is (opens_in_h == 0.0)


def test_the_opening_is_in_the_window_to_the_second() -> None:
    rate = RequestRate(1, 5.0, VisitTime(360, 525))
    assert not rate.holds(math.nextafter(at(6), 0.0))
    assert rate.holds(at(6))
    assert RequestRate(1, 5.0).holds(at(12))


def test_the_slowest_of_all_that_is_asked_at_any_hour() -> None:
    rates = (RequestRate(1, 5.0), RequestRate(1, 60.0, VisitTime(0, 1)))
    assert RequestedPace().slowest_s is None
    assert RequestedPace(3.0).slowest_s == 3.0
    assert RequestedPace(90.0, rates).slowest_s == 90.0
    assert RequestedPace(None, rates).slowest_s == 60.0


def test_a_site_without_hours_is_always_open() -> None:
    assert (RequestedPace().opens_in_s(at(3)), RequestedPace().closed_for_s(at(3))) == (0.0, 0.0)
    assert RequestedPace(None, (), VisitTime(360, 525)).opens_in_s(at(5)) == 3_600.0
    assert RequestedPace(None, (), VisitTime(360, 525)).closed_for_s(at(9)) == 900.0


def test_all_of_it_can_be_read() -> None:
    assert str(VisitTime(360, 525)) == "06:00-08:45 UTC"
    assert str(RequestRate(1, 5.0)) == "1/5"
    assert str(RequestRate(30, 60.0, VisitTime(0, 1440))) == "30/60 at 00:00-24:00 UTC"
