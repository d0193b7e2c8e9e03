"""The parts of a throttle, one by one, and what is made of them."""

import pytest

from polite.pace import RequestedPace, RequestRate, VisitTime
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.throttle import (
    BackOff,
    CrawlDelay,
    DelayThrottle,
    Latency,
    Longest,
    MinDelay,
    Part,
    RequestRates,
    RetryAfter,
)

NOON = 12 * 3_600.0
NOTHING = ThrottleContext(None, 0, NOON)
ALL_PARTS: list[Part] = [
    CrawlDelay(60.0),
    RequestRates(60.0),
    Latency(3.0),
    RetryAfter(600.0),
    BackOff(10.0),
]


def asking(*rates: RequestRate, crawl_delay: float | None = None) -> ThrottleContext:
    return ThrottleContext(RequestedPace(crawl_delay, rates), 0, NOON)


@pytest.mark.parametrize("part", ALL_PARTS, ids=lambda part: type(part).__name__)
def test_a_part_that_nothing_concerns_has_no_say(part: Part) -> None:
    assert part.rest(Outcome(200), NOTHING) is None
    assert part.rest(Outcome(200), asking()) is None


def test_t3_a_request_rate_counts_within_its_window_only() -> None:
    by_day = RequestRate(1, 30.0, VisitTime(6 * 60, 18 * 60))
    at_night = RequestRate(1, 5.0, VisitTime(18 * 60, 6 * 60))
    part, given = RequestRates(60.0), asking(by_day, at_night)

    day = part.rest(Outcome(200), given)
    night = part.rest(Outcome(200), given._replace(wall=0.0))

    assert day == Pause(30.0, "Request-rate 1/30 at 06:00-18:00 UTC")
    assert night == Pause(5.0, "Request-rate 1/5 at 18:00-06:00 UTC")


def test_t3_of_the_rates_that_count_the_slowest_holds_up_to_the_limit() -> None:
    given = asking(RequestRate(1, 5.0), RequestRate(1, 90.0), RequestRate(2, 60.0))

    pause = RequestRates(60.0).rest(Outcome(200), given)

    assert pause == Pause(60.0, "Request-rate 1/90, held to max_crawl_delay 60 s")


@pytest.mark.parametrize(
    ("elapsed_s", "seconds"), [(None, None), (0.0, 1.0), (0.1, 1.0), (0.5, 2.5), (3.0, 10.0), (9_000.0, 10.0)]
)
def test_a_slow_server_is_left_alone_for_longer_within_limits(
    elapsed_s: float | None, seconds: float | None
) -> None:
    pause = Latency(5.0, least=1.0, most=10.0).rest(Outcome(200, elapsed_s=elapsed_s), NOTHING)

    assert (None if pause is None else pause.seconds) == seconds


def test_a_composition_takes_the_longest_and_every_strike() -> None:
    throttle = Longest(MinDelay(1.0), CrawlDelay(60.0), RetryAfter(600.0), BackOff(10.0))

    assert throttle.rest(Outcome(200), NOTHING) == Pause(1.0, "min_delay 1 s")
    assert throttle.rest(Outcome(200), asking(crawl_delay=7.0)) == Pause(7.0, "Crawl-delay 7 s")
    refused = throttle.rest(Outcome(429, retry_after_s=2.0), asking(crawl_delay=7.0))
    assert refused == Pause(7.0, "Crawl-delay 7 s", strike=True)


@pytest.mark.parametrize(
    ("factor", "seconds"), [(0.0, 1.0), (4.0, 8.0)], ids=["without a factor", "with a factor"]
)
def test_the_throttle_of_a_policy_minds_latency_when_it_is_asked_to(factor: float, seconds: float) -> None:
    throttle = DelayThrottle(latency_factor=factor)

    assert throttle.rest(Outcome(200, elapsed_s=2.0), NOTHING).seconds == seconds
    assert throttle.timed is bool(factor)
