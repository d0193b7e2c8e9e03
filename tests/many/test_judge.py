"""The judge of shared crawls counts over all hosts, and the servers log what it needs."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from docs.examples.demo.judge import ROBOTS, Request
from tests.many.judge import judge, read_request
from tests.many.running import ROOT
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


def test_every_page_is_reached_by_links_of_its_own_host() -> None:
    world = World()
    for host in range(world.hosts):
        reached, waiting = {(host, 0)}, [(host, 0)]
        while waiting:
            new = [each for each in world.links(*waiting.pop()) if each[0] == host and each not in reached]
            reached.update(new)
            waiting += new
        assert len(reached) == world.pages


@pytest.fixture
def late_sites(tmp_path: Path) -> Iterator[tuple[World, int, Path]]:
    world = World(hosts=6, pages=3, late=True, network=78)
    log = tmp_path / "hits"
    command = [sys.executable, "-m", "tests.many.sites", world.written(), str(log)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sites:
        assert sites.stdin is not None
        assert sites.stdout is not None
        yield world, int(sites.stdout.readline()), log
        sites.stdin.close()


# In real time: the kernel and other processes are what it is about.
@pytest.mark.slow("processes and servers in real time")
async def test_sites_log_when_a_request_arrives_and_late_ones_are_connected_late(
    late_sites: tuple[World, int, Path],
) -> None:
    world, port, log = late_sites
    started = time.monotonic()
    async with aiohttp.ClientSession(
        headers={"User-Agent": "Bot/1.0 (process 7)"},
        connector=aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver()),
    ) as session:
        for host in (0, 5):
            async with session.get(f"http://{world.address(host)}:{port}{ROBOTS}") as response:
                assert await response.read() == world.robots(host)

    prompt, late = (read_request(line) for line in log.read_text().splitlines())
    assert (prompt.host, prompt.path, prompt.sender, late.host) == (0, ROBOTS, "7", 5)
    assert prompt.at - started < 0.5 < late.at - started
