"""Gates opened on a shared store: one real server, and a process for each gate but in name."""

import time
from typing import Any

import pytest
from redis.asyncio import Redis

import polite
from polite.robots.exchange import Ask, Failed, Reply
from tests.many.servers import ValkeyServer

DELAY_S = 0.2
PACING = polite.PacingPolicy(min_delay=DELAY_S)


class World:
    """All servers, which note each request."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, str]] = []
        self.closed = 0

    async def get(self, ask: Ask) -> Reply | Failed:
        self.note(ask.target.url)
        return Reply(200, b"User-agent: *\nDisallow: /private\n")

    async def close(self) -> None:
        self.closed += 1

    def note(self, url: str) -> None:
        self.sent.append((time.monotonic(), url))


def opened(world: World, store: Any, **options: Any) -> Any:
    transports = {"http": world, "https": world}
    return polite.open_gate(
        "TestBot/1.0", store=store, transports=transports, **({"pacing": PACING} | options)
    )


async def visit(gate: polite.Gate, world: World, url: str) -> None:
    async with gate.permit(url) as permit:
        permit.require()
        world.note(url)
        permit.report(status=200)


async def test_a_gate_that_closes_leaves_its_homes_with_what_is_left_of_their_delays(
    valkey: ValkeyServer,
) -> None:
    world = World()
    async with opened(world, valkey.url, crawl="news") as first:
        await visit(first, world, "https://a.test/1")
    async with Redis.from_url(valkey.url) as client, opened(world, client, crawl="news") as second:
        began = time.monotonic()
        await visit(second, world, "https://a.test/2")

    assert time.monotonic() - began < 2.0
    assert world.sent[-1][0] - world.sent[-2][0] >= DELAY_S - 0.001
    assert sum(url.endswith("robots.txt") for _, url in world.sent) == 1


async def test_homes_by_address_need_addresses_and_what_was_opened_is_closed(valkey: ValkeyServer) -> None:
    world = World()
    pacing = polite.PacingPolicy(home="address")

    with pytest.raises(polite.InvalidOption, match=r"Scopes\(address=\.\.\.\)"):
        async with opened(world, valkey.url, crawl="by-address", pacing=pacing):
            pass
    assert world.closed
