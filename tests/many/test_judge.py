"""The judge of shared crawls finds what is wrong, and nothing where nothing is; and the servers log what it needs."""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.many.judge import Hit, judge
from tests.many.proxy import TcpProxy
from tests.many.running import ROOT
from tests.many.world import ROBOTS, World

WORLD = World(hosts=2, pages=3, delay_s=0.5, network=79)


def perfect() -> list[Hit]:
    return [
        Hit(100 + number * WORLD.required_s(host), host, path, "p")
        for host in range(2)
        for number, path in enumerate((ROBOTS, "/p/0", "/p/1", "/p/2"))
    ]


def test_a_perfect_crawl_has_nothing_wrong() -> None:
    verdict = judge(WORLD, perfect())

    assert (verdict.requests, verdict.gaps, verdict.short, verdict.lost, verdict.twice) == (8, 6, [], 0, 0)
    assert (verdict.robots, verdict.before_rules, verdict.forbidden) == (1, 0, 0)
    assert verdict.efficiency == pytest.approx(1)
    assert verdict.per_host == pytest.approx(1)
    assert verdict.silence_s == pytest.approx(0.5)


def test_a_gap_is_short_by_the_delay_of_its_host() -> None:
    hits = [
        Hit(0, 0, ROBOTS, "p"),
        Hit(0.4, 0, "/p/0", "p"),
        Hit(0, 1, ROBOTS, "p"),
        Hit(0.4, 1, "/p/0", "q"),
    ]

    verdict = judge(WORLD, hits)

    assert verdict.short == ["host 1: /p/0 by q came 0.400 s after /robots.txt by p, not 0.5 s"]
    assert verdict.shortfall_s == pytest.approx(0.1)


def test_a_gap_may_be_a_millisecond_below_the_delay_and_no_more() -> None:
    assert not judge(WORLD, [Hit(0, 1, ROBOTS, "p"), Hit(0.4995, 1, "/p/0", "p")]).short
    assert judge(WORLD, [Hit(0, 1, ROBOTS, "p"), Hit(0.4985, 1, "/p/0", "p")]).short


def test_lost_doubled_early_and_forbidden_requests_are_counted() -> None:
    hits = [hit for hit in perfect() if (hit.host, hit.path) != (1, "/p/2")]
    hits += [
        Hit(200, 0, ROBOTS, "p"),
        Hit(201, 0, "/p/1", "p"),
        Hit(202, 0, "/private/x", "p"),
        Hit(99, 1, "/p/0", "p"),
    ]

    verdict = judge(WORLD, hits)

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

    prompt, late = (Hit.of(line) for line in log.read_text().splitlines())
    assert (prompt.host, prompt.path, prompt.process, late.host) == (0, ROBOTS, "7", 5)
    assert prompt.at - started < 0.5 < late.at - started


async def test_a_proxy_holds_bytes_back_loses_them_and_leads_elsewhere() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with TcpProxy(port) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"one\n")
        assert await reader.readline() == b"one\n"

        proxy.stop_passing()
        writer.write(b"two\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        proxy.pass_again()
        assert await reader.readline() == b"two\n"

        await asyncio.to_thread(proxy.lead_to, None)
        with pytest.raises(ConnectionError):
            assert not await reader.read(1)
            raise ConnectionError
        writer.close()
        await asyncio.to_thread(proxy.lead_to, port)
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"three\n")
        assert await reader.readline() == b"three\n"
        writer.close()
    server.close()
    # Sockets are closed in the loop's next rounds.
    await asyncio.sleep(0.05)
