"""Several processes crawl together while one of them, or the store, comes to harm; the servers' log is the judge.

In real time, unlike other tests: what is tested is processes, signals, sockets and a server. This is the short form, and
`./dev soak many` the whole one, with more hosts. The simulated machines (tests/simulation) meet each fault in thousands of worlds.
"""

from dataclasses import replace

import pytest

from tests.many.crawling import FAULTS, run, wrong
from tests.many.world import World

# The crawl lasts some two leases, so that what a lost lease leads to is seen.
WORLD = World(hosts=12, pages=20, delay_s=0.25, lease_s=2.0)
# A busy machine may hold up a process for longer than that, which costs pages a second fetch: where no page may have one, it lasts.
LASTING = replace(WORLD, lease_s=20.0)


@pytest.mark.slow("processes and servers in real time")
@pytest.mark.parametrize(
    "name", ["none", "sigkill", "sigstop-long", "store-restarted", "store-restarted-empty", "failover"]
)
def test_no_gap_is_short_and_no_page_is_lost(name: str) -> None:
    fault = FAULTS[name]
    outcome = run(fault, WORLD if fault.crashes or fault.forgets or fault.empties else LASTING, processes=4)
    assert wrong(fault, outcome) == []
    # The hosts of a killed process go on after its lease.
    assert name != "sigkill" or max(outcome.gaps) <= 4 * WORLD.longest_silence_s
