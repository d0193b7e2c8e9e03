"""Ten thousand fetches at a hundred hosts in virtual time: every gap kept, and not a moment more than politeness asks."""

import asyncio

from benchmarks.virtual import MIN_DELAY_S, ROUNDING_S, crawl
from polite.testing import VirtualTimeLoop

HOSTS, FETCHES = 100, 10_000


def test_ten_thousand_fetches_keep_every_gap_and_lose_no_time() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        run = runner.run(crawl(HOSTS, FETCHES))
        took_s = runner.get_loop().time()
    assert run.fetched == FETCHES
    assert run.shortest_s >= MIN_DELAY_S - ROUNDING_S
    # Its robots.txt and its pages, one after the other; the last host begins within the first second.
    assert took_s < (FETCHES / HOSTS + 1) * MIN_DELAY_S + 0.01
