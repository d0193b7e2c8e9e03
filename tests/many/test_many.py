"""Several processes crawl together while one of them, or the store, comes to harm; the servers' log is the judge.

In real time, unlike other tests: what is tested is processes, signals, sockets and a server. This is the short form, and
`./dev soak many` the whole one, with more hosts. The simulated machines (tests/simulation) meet each fault in thousands of worlds.
"""

import pytest

from docs.examples.demo.judge import ROBOTS, Request
from tests.many.crawling import FAULTS, run, wrong
from tests.many.world import World, judge

# The crawl lasts some two leases, so that what a lost lease leads to is seen.
WORLD = World(hosts=12, pages=20, delay_s=0.25, lease_s=2.0)
SMALL = World(hosts=2, pages=3, delay_s=0.5, network=79)


@pytest.mark.slow("processes and servers in real time")
@pytest.mark.parametrize(
    "name", ["none", "sigkill", "sigstop-long", "store-restarted", "store-restarted-empty", "failover"]
)
def test_no_gap_is_short_and_no_page_is_lost(name: str) -> None:
    fault = FAULTS[name]

    outcome = run(fault, WORLD, processes=4)

    assert wrong(fault, outcome) == []
    # The hosts of a killed process go on after its lease.
    assert name != "sigkill" or outcome.verdict.silence_s <= 4 * WORLD.longest_silence_s


def perfect() -> list[Request]:
    return [
        Request(100 + number * SMALL.required_s(host), host, path)
        for host in range(2)
        for number, path in enumerate((ROBOTS, "/p/0", "/p/1", "/p/2"))
    ]


def test_the_judge_finds_nothing_wrong_with_a_perfect_crawl() -> None:
    verdict = judge(SMALL, perfect())

    assert (verdict.requests, verdict.gaps, verdict.short, verdict.lost, verdict.twice) == (8, 6, [], 0, 0)
    assert (verdict.robots, verdict.before_rules, verdict.forbidden) == (1, 0, 0)
    assert (verdict.efficiency, verdict.per_host, verdict.silence_s) == pytest.approx((1, 1, 0.5))


def test_the_judge_counts_short_lost_doubled_early_and_forbidden_requests() -> None:
    requests = [each for each in perfect() if (each.host, each.path) != (1, "/p/2")]
    requests += [
        Request(200, 0, ROBOTS),
        Request(201, 0, "/p/1"),
        Request(202, 0, "/private/x"),
        Request(99.6, 1, "/p/0", sender="q"),
    ]

    verdict = judge(SMALL, requests)

    assert verdict.short == ["host 1: /robots.txt came 0.400 s after /p/0 by q, not 0.5 s"]
    assert (verdict.lost, verdict.twice, verdict.robots) == (1, 2, 2)
    assert (verdict.before_rules, verdict.forbidden) == (1, 1)
