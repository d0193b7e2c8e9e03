"""Crawl-delay, Request-rate and Visit-time: read leniently, and garbage ignored."""

import pytest

from polite.pace import RequestRate, VisitTime, crawl_delay, request_rates, visit_time
from polite.robots.parse import parse

MORNING = VisitTime(360, 525)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *[("5", 5.0), ("0", 0.0), (".5", 0.5), ("1e2", 100.0)],
        *((odd, None) for odd in ("", "-1", "inf", "1_0", "1,5", "\xb2", "1e999")),
    ],
)
def test_a_crawl_delay_is_a_finite_number_of_seconds_and_of_several_the_largest(value, seconds):
    assert crawl_delay([value]) == seconds
    assert crawl_delay(["2", value, "nan", "1"]) == max(2.0, seconds or 0.0)


@pytest.mark.parametrize(
    ("value", "rates"),
    [
        ("1/5", (RequestRate(1, 5.0),)),
        ("1/10s", (RequestRate(1, 10.0),)),
        ("100 / 2 H", (RequestRate(100, 7_200.0),)),
        ("9000/1d", (RequestRate(9_000, 86_400.0),)),
        ("1/5 600 845", (RequestRate(1, 5.0, MORNING),)),
        ("1/5 0600-0845", (RequestRate(1, 5.0, MORNING),)),
        *((odd, ()) for odd in ("", "5", "1/0", "0/5", "1/5 9-17", "-1/5", "1/5/9", "1/" + "9" * 99)),
    ],
)
def test_a_request_rate_is_requests_in_seconds_perhaps_within_a_window(value, rates):
    assert request_rates([value]) == request_rates([value] * 3) == rates


def test_several_request_rates_are_kept_each_with_its_window_and_of_a_flood_the_slowest():
    day, night = RequestRate(1, 5.0, VisitTime(360, 1320)), RequestRate(1, 60.0, VisitTime(1320, 360))

    assert request_rates(["1/5 0600-2200", "1/60 2200-0600", "1/5 0600-2200"]) == (day, night)
    assert request_rates([f"1/{seconds} 0600-0700" for seconds in range(1, 1_000)]) == (
        RequestRate(1, 999.0),
    )


@pytest.mark.parametrize(
    ("value", "time"),
    [
        *((value, MORNING) for value in ("0600-0845", "06:00 - 08:45", "600 845")),
        ("2300-0100", VisitTime(1_380, 60)),
        ("0000-2400", VisitTime(0, 1_440)),
        *(
            (odd, None)
            for odd in ("", "0600", "9-17", "2500-0100", "0660-0700", "2401-0100", "0600-0845" + " " * 99)
        ),
    ],
)
def test_a_visit_time_is_a_window_of_the_day_and_of_several_the_shortest(value: str, time: VisitTime | None):
    assert visit_time([value]) == time
    assert visit_time(["0000-2400", value, "0600-0601"]) == VisitTime(360, 361)


def test_a_file_gives_each_agent_the_pace_of_its_own_group():
    pace = "Crawl-delay: 5\nRequest-rate: 1/9\nVisit-time: 0600-0845"
    robots = parse(f"User-agent: a\n{pace}\nUser-agent: b\nDisallow:\nUser-agent: *\nCrawl-delay: 1")

    named, others = robots.rules_for("b"), robots.rules_for("other")

    assert (named.crawl_delay, named.request_rate, named.visit_time) == (5.0, RequestRate(1, 9.0), MORNING)
    assert (others.crawl_delay, others.request_rate, others.visit_time) == (1.0, None, None)
