"""Any octets as a Retry-After field: nothing, or seconds that a throttle limits."""

import math

from polite.pacing.outcome import Outcome, ThrottleContext, retry_after_s
from polite.pacing.policy import PacingPolicy
from polite.pacing.throttle import DelayThrottle
from tests.fuzz.deadline import expect, in_time

WORDS = (
    b"120", b"0", b"-1", b"1e9", b"99999999999999999999", b"Sun, 06 Nov 1994 08:49:37 GMT",
    b"Sun Nov 6 08:49:37 1994", b"Sunday, 06-Nov-94 08:49:37 GMT", b"9999", b"0000", b"+0000", b"-9999",
    b"GMT", b"Dec", b"31", b":", b",", b" ", b"\t", b"\xc2\xb2", b"\xd9\xa3",
)  # fmt: skip
SEEDS = (b"\0\0120", b"\x01\0Fri, 31 Dec 2027 23:59:59 GMT", b"\x02\0Fri, 31 Dec 9999 23:59:59 -9959")
POLICY = PacingPolicy()
THROTTLE = DelayThrottle(
    min_delay=POLICY.min_delay,
    max_crawl_delay=POLICY.max_crawl_delay,
    jitter=POLICY.jitter,
    max_retry_after=POLICY.max_retry_after,
    backoff=POLICY.backoff,
    max_backoff=POLICY.max_backoff,
)
MOST_S = max(POLICY.max_retry_after, POLICY.max_backoff, POLICY.min_delay) * (1.0 + POLICY.jitter) + 1e-6


def one_input(data: bytes) -> None:
    """Input: two octets for the time, then the field."""
    if len(data) < 2:
        return
    now = int.from_bytes(data[:2]) * 100_000.0
    value = data[2:].decode("utf-8", "surrogateescape")
    with in_time(data):
        wait_s = retry_after_s(value, now)
        later_s = retry_after_s(value, now + 1.0)
        delay = THROTTLE.rest(Outcome(429, wait_s), ThrottleContext(None, data[0], now))
    expect(wait_s is None or 0 <= wait_s < math.inf, "not a number of seconds", wait_s)
    expect(POLICY.min_delay <= delay.seconds <= MOST_S, "the delay exceeds its limits", delay)
    if wait_s is None:
        return
    if value.strip(" \t").isdigit():
        expect(wait_s == later_s == float(value), "a number of seconds depends on the time", wait_s, later_s)
    else:
        same = later_s is None or math.isclose(wait_s - later_s, 1.0, abs_tol=1e-3)
        expect(same, "a date depends on the time", wait_s, later_s)
