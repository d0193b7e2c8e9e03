"""The judge of shared crawls counts over all hosts, and the servers log what it needs."""

import pytest

from docs.examples.demo.judge import ROBOTS, Request
from tests.many.judge import judge
from tests.many.world import World

WORLD = World(hosts=2, pages=3, delay_s=0.5, network=79)


def perfect() -> list[Request]:
    return [
        Request(100 + number * WORLD.required_s(host), host, path)
        for host in range(2)
        for number, path in enumerate((ROBOTS, "/p/0", "/p/1", "/p/2"))
    ]


def test_a_perfect_crawl_has_nothing_wrong() -> None:
    verdict = judge(WORLD, perfect())

    assert (verdict.requests, verdict.gaps, verdict.short, verdict.lost, verdict.twice) == (8, 6, [], 0, 0)
    assert (verdict.robots, verdict.before_rules, verdict.forbidden) == (1, 0, 0)
    assert (verdict.efficiency, verdict.per_host, verdict.silence_s) == pytest.approx((1, 1, 0.5))


def test_short_lost_doubled_early_and_forbidden_requests_are_counted() -> None:
    requests = [each for each in perfect() if (each.host, each.path) != (1, "/p/2")]
    requests += [
        Request(200, 0, ROBOTS),
        Request(201, 0, "/p/1"),
        Request(202, 0, "/private/x"),
        Request(99.6, 1, "/p/0", sender="q"),
    ]

    verdict = judge(WORLD, requests)

    assert verdict.short == ["host 1: /robots.txt came 0.400 s after /p/0 by q, not 0.5 s"]
    assert (verdict.lost, verdict.twice, verdict.robots) == (1, 2, 2)
    assert (verdict.before_rules, verdict.forbidden) == (1, 1)


# In real time: the kernel and other processes are what it is about.
