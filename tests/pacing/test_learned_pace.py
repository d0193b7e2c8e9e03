"""A pace is learned from refusals alone: near to what a host gives, hardly ever refused, never below what site and policy ask for."""

import asyncio
import random
import tracemalloc

import pytest

import polite
from benchmarks.pace import HOSTS, Bucket, Host, reached
from polite.events import BackedOff, Event, PaceLearned
from polite.origin import Origin
from polite.pacing.learned_pace import SIZE, LearnedPace, Memories
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.throttle import DelayThrottle
from tests.gate.support import PAGE, SITE, opened, visit

# At least so much of what was possible, and at most so many requests refused (percent), where it is not 92 and 1.
REACH = {
    "no limit": (100, 0),
    "bucket 0.1/s, burst 5": (92, 2),
    "100 in each hour, with Retry-After": (80, 5),
    "100 in each hour": (80, 5),
    "0.2/s after an hour of 2/s": (85, 1),
    "2/s after an hour of 0.2/s": (85, 1),
}


@pytest.mark.parametrize("host", HOSTS)
def test_a_crawl_of_two_hours_gets_most_of_what_a_host_gives(host: str) -> None:
    pages, refused = reached(host, 2, polite.PacingPolicy())

    least, most = REACH.get(host, (92, 1))
    assert round(pages) >= least
    assert refused <= most


def crawl(law: LearnedPace, host: Host, seconds: float, *, status: int = 429, late: float = 0.05) -> list[float]:
    """Return the delays between requests of a saturated crawl."""
    memory, now, delays = b"", 1e9, []
    while now < 1e9 + seconds:
        accepted, after_s = host.ask(now - 1e9)
        outcome = Outcome(200 if accepted else status, after_s)
        pause = law.rest(outcome, ThrottleContext(None, 0, now, memory=memory, elapsed_s=late))
        memory = pause.memory
        assert pause.seconds >= 2.0
        assert len(memory) in (0, SIZE)
        delays.append(pause.seconds)
        now += pause.seconds + late
    return delays


@pytest.mark.parametrize("seed", range(20))
def test_a_limit_that_is_lifted_is_forgotten_within_two_hours(seed: int) -> None:
    chance = random.Random(seed)
    rate, burst = chance.uniform(0.05, 0.4), chance.choice([1, 3, 10])
    host = Bucket(rate, burst)
    law = LearnedPace(DelayThrottle(min_delay=2.0, random=chance.random))
    learned = crawl(law, host, 7_200, status=chance.choice([429, 503]))
    host.rate = 10.0
    # The state begins anew here, so that the law finds the old limit and then none.
    lifting = Bucket(rate, burst)
    pages = iter(range(10**6))

    class Lifted:
        def ask(self, now: float) -> tuple[bool, float | None]:
            next(pages)
            lifting.rate = rate if now < 7_200 else 10.0
            return lifting.ask(now)

        def possible(self, until: float, delay_s: float) -> float:
            return 0.0

    law = LearnedPace(DelayThrottle(min_delay=2.0, random=chance.random))
    delays = crawl(law, Lifted(), 14_400)

    assert max(learned[-50:]) > 2.0
    assert delays[-50:] == [2.0] * 50
