"""Crawl-delay, Request-rate and Visit-time: read leniently, and garbage ignored."""

import pytest

from polite.pace import RequestRate, VisitTime, crawl_delay, request_rates, visit_time
from polite.robots.parse import parse


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("5", 5.0), ("0", 0.0), ("0.5", 0.5), (".5", 0.5), ("1e2", 100.0)],
)
def test_a_crawl_delay_is_a_number_of_seconds(value: str, seconds: float):
    assert crawl_delay([value]) == seconds


@pytest.mark.parametrize("value", ["", "-1", "inf", "1_0", "1,5", "\xb2", "1e999"])
def test_what_is_no_finite_number_of_seconds_is_ignored(value: str):
    assert crawl_delay([value]) is None


def test_of_several_crawl_delays_the_largest_holds():
    assert crawl_delay(["2", "nan", "10", "3"]) == 10.0


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        ("1/5", RequestRate(1, 5.0)),
        ("1/10s", RequestRate(1, 10.0)),
        ("100 / 2 H", RequestRate(100, 7_200.0)),
        ("9000/1d", RequestRate(9_000, 86_400.0)),
        ("1/5 600 845", RequestRate(1, 5.0, VisitTime(360, 525))),
        ("1/5 0600-0845", RequestRate(1, 5.0, VisitTime(360, 525))),
    ],
)
def test_a_request_rate_is_requests_in_seconds_perhaps_within_a_window(value: str, rate: RequestRate):
    assert request_rates([value]) == (rate,)


@pytest.mark.parametrize("value", ["", "5", "1/0", "0/5", "1/5 9-17", "-1/5", "1/5/9", "1/" + "9" * 99])
def test_what_is_no_request_rate_is_ignored(value: str):
    assert request_rates([value]) == ()


def test_several_request_rates_are_kept_each_with_its_window():
    day, night = RequestRate(1, 5.0, VisitTime(360, 1320)), RequestRate(1, 60.0, VisitTime(1320, 360))

    assert request_rates(["1/5 0600-2200", "1/60 2200-0600", "1/5 0600-2200"]) == (day, night)


def test_of_a_flood_of_request_rates_the_slowest_holds_at_any_hour():
    rates = request_rates([f"1/{seconds} 0600-0700" for seconds in range(1, 1_000)])

    assert rates == (RequestRate(1, 999.0),)


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("0600-0845", VisitTime(360, 525)),
        ("06:00 - 08:45", VisitTime(360, 525)),
        ("600 845", VisitTime(360, 525)),
        ("2300-0100", VisitTime(1_380, 60)),
        ("0000-2400", VisitTime(0, 1_440)),
    ],
)
def test_a_visit_time_is_a_window_of_the_day(value: str, time: VisitTime):
    assert visit_time([value]) == time


@pytest.mark.parametrize(
    "value",
    ["", "0600", "9-17", "2500-0100", "0660-0700", "2401-0100", "0600-0845" + " " * 99],
)
def test_what_is_no_visit_time_is_ignored(value: str):
    assert visit_time([value]) is None


def test_of_several_visit_times_the_shortest_holds():
    assert visit_time(["0000-2400", "0600-0845", "nonsense"]) == VisitTime(360, 525)


def test_a_file_gives_each_agent_the_pace_of_its_own_group():
    pace = "Crawl-delay: 5\nRequest-rate: 1/9\nVisit-time: 0600-0845"
    robots = parse(f"User-agent: a\n{pace}\nUser-agent: b\nDisallow:\nUser-agent: *\nCrawl-delay: 1")

    named, others = robots.rules_for("b"), robots.rules_for("other")

    assert (named.crawl_delay, named.request_rate) == (5.0, RequestRate(1, 9.0))
    assert named.visit_time == VisitTime(360, 525)
    assert (others.crawl_delay, others.request_rate, others.visit_time) == (1.0, None, None)
