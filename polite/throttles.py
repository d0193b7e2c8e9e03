"""The parts of a throttle, which `polite/pacing/throttle.py` has.

Put them together anew, with your own among them, and give the result to `open_gate(throttle=...)`.

>>> throttle = Longest(MinDelay(2.0), CrawlDelay(most=120.0), RetryAfter(most=86_400.0), BackOff(10.0))
>>> throttle.rest(Outcome(200), ThrottleContext(pace=None, strikes=0, wall=0.0))
Pause(seconds=2.0, because='min_delay 2 s', strike=False)
"""

from polite.pacing.learned_pace import LearnedPace
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.throttle import (
    BackOff,
    CrawlDelay,
    DelayThrottle,
    Jittered,
    Latency,
    Longest,
    MinDelay,
    Part,
    RateLimit,
    RequestRates,
    RetryAfter,
    Throttle,
)

__all__ = [
    "BackOff", "CrawlDelay", "DelayThrottle", "Jittered", "Latency", "LearnedPace", "Longest", "MinDelay",
    "Outcome", "Part", "Pause", "RateLimit", "RequestRates", "RetryAfter", "Throttle", "ThrottleContext",
]  # fmt: skip
