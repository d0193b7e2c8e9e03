"""The delay of a scope: min_delay, Crawl-delay, Retry-After, back-off, each part of a throttle, and what is made of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidOption
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


def context(crawl_delay: float | None, strikes: int) -> ThrottleContext:
    return ThrottleContext(None if crawl_delay is None else RequestedPace(crawl_delay), strikes, 0.0)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(429, retry_after_s=120.0), Pause(120.0, "status 429, Retry-After 120 s", strike=True)),
        (
            Outcome(503, retry_after_s=1e9),
            Pause(
                86_400.0, "status 503, Retry-After 1000000000 s, held to max_retry_after 86400 s", strike=True
            ),
        ),
        (Outcome(429, retry_after_s=0.0), Pause(5.0, "Crawl-delay 5 s", strike=True)),
        # On any other response it is no refusal.
        (Outcome(301, retry_after_s=30.0), Pause(30.0, "status 301, Retry-After 30 s")),
    ],
)
def test_t4_a_refusal_delays_for_its_retry_after(outcome: Outcome, expected: Pause) -> None:
    assert DelayThrottle().rest(outcome, context(5.0, 0)) == expected


@pytest.mark.parametrize("asked", [None, math.nan, -1.0])
def test_a_refusal_that_asks_for_nothing_backs_off_twice_as_long_each_time(asked: float | None) -> None:
    throttle = DelayThrottle(backoff=10.0, max_backoff=100.0, random=lambda: 0.0)
    pauses = [throttle.rest(Outcome(503, asked), context(None, strikes)) for strikes in (0, 1, 2, 3, 4)]
    assert [pause.seconds for pause in pauses] == [10.0, 20.0, 40.0, 80.0, 100.0]
    assert pauses[1] == Pause(20.0, "status 503, refusal 2 in a row: back-off 20 s", strike=True)
    spread = DelayThrottle(backoff=10.0, random=lambda: 1.0)
    assert spread.rest(Outcome(429), context(None, 0)).seconds == 12.5


@given(
    status=st.sampled_from([None, 200, 429, 503]),
    retry_after_s=st.none() | st.floats(),
    crawl_delay=st.none() | st.floats(),
    strikes=st.integers(0, 10_000),
    chance=st.floats(0.0, 1.0),
)
def test_jitter_only_adds_and_every_pause_can_be_settled(status, retry_after_s, crawl_delay, strikes, chance):
    plain, jittery = (DelayThrottle(jitter=jitter, random=lambda: chance) for jitter in (0.0, 0.5))
    outcome = Outcome(status, retry_after_s)
    least = plain.rest(outcome, context(crawl_delay, strikes))
    pause = jittery.rest(outcome, context(crawl_delay, strikes))
    assert 1.0 <= least.seconds <= pause.seconds <= 1.5 * least.seconds
    assert pause.seconds <= 1.5 * 86_400.0
    assert pause.strike == least.strike == (status in {429, 503})


@pytest.mark.parametrize("name", ["min_delay", "jitter", "max_backoff"])
@pytest.mark.parametrize("value", [-1.0, math.inf, 10**400, True, None])
def test_an_option_that_is_no_number_of_seconds_is_named_with_its_value(name: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"DelayThrottle: {name} must be a finite number >= 0, got"):
        DelayThrottle(**{name: value})  # type: ignore[arg-type]


NOON = 12 * 3_600.0
NOTHING = ThrottleContext(None, 0, NOON)
ALL_PARTS: list[Part] = [CrawlDelay(60.0), RequestRates(60.0), Latency(3.0), RetryAfter(600.0), BackOff(1.0)]


def asking(*rates: RequestRate, crawl_delay: float | None = None) -> ThrottleContext:
    return ThrottleContext(RequestedPace(crawl_delay, rates), 0, NOON)


@pytest.mark.parametrize("part", ALL_PARTS, ids=lambda part: type(part).__name__)
def test_a_part_that_nothing_concerns_has_no_say(part: Part) -> None:
    assert [part.rest(Outcome(200), context) for context in (NOTHING, asking())] == [None, None]


def test_t3_a_request_rate_counts_within_its_window_only() -> None:
    by_day = RequestRate(1, 30.0, VisitTime(6 * 60, 18 * 60))
    at_night = RequestRate(1, 5.0, VisitTime(18 * 60, 6 * 60))
    part, given = RequestRates(60.0), asking(by_day, at_night)

    day = part.rest(Outcome(200), given)
    night = part.rest(Outcome(200), given._replace(wall=0.0))

    assert day == Pause(30.0, "Request-rate 1/30 at 06:00-18:00 UTC")
    assert night == Pause(5.0, "Request-rate 1/5 at 18:00-06:00 UTC")
    # Of several, the slowest, up to the limit.
    several = asking(RequestRate(1, 5.0), RequestRate(1, 90.0), RequestRate(2, 60.0))
    assert part.rest(Outcome(200), several) == Pause(60.0, "Request-rate 1/90, held to max_crawl_delay 60 s")


@pytest.mark.parametrize(
    ("elapsed_s", "seconds"), [(None, None), (0.0, 1.0), (0.1, 1.0), (0.5, 2.5), (3.0, 10.0), (9_000.0, 10.0)]
)
def test_a_slow_server_is_left_alone_for_longer_within_limits(elapsed_s, seconds):
    pause = Latency(5.0, least=1.0, most=10.0).rest(Outcome(200, elapsed_s=elapsed_s), NOTHING)
    assert (None if pause is None else pause.seconds) == seconds
    policy = DelayThrottle(latency_factor=4.0)
    assert (policy.rest(Outcome(200, elapsed_s=2.0), NOTHING).seconds, policy.timed) == (8.0, True)


def test_a_composition_takes_the_longest_and_every_strike() -> None:
    throttle = Longest(MinDelay(1.0), CrawlDelay(60.0), RetryAfter(600.0), BackOff(10.0))
    assert throttle.rest(Outcome(200), NOTHING) == Pause(1.0, "min_delay 1 s")
    assert throttle.rest(Outcome(200), asking(crawl_delay=7.0)) == Pause(7.0, "Crawl-delay 7 s")
    refused = throttle.rest(Outcome(429, retry_after_s=2.0), asking(crawl_delay=7.0))
    assert refused == Pause(7.0, "Crawl-delay 7 s", strike=True)
