"""Budgets under workers that do anything: what is drawn at random never exceeds a budget, and no page of it is lost."""

import asyncio
import contextlib
import random
from typing import Any

import pytest

import polite
from polite.errors import OriginDeclined, TurnLost
from polite.events import BudgetSpent, Event
from polite.frontier.in_flight import TaskPermit
from polite.robots.exchange import Failed, Reply
from tests.frontier.support import Opened, turns_of
from tests.support import RULES, TimedTransport

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.parametrize("store", ["in memory", "in a file"], indirect=True),
]

SEEDS = 25
PAGES = 12
HOLD_S = 30.0
WAYS = ("sent", "sent", "sent", "retried", "failed", "cancelled", "unsent", "dropped", "late", "lost")
ORIGINS = [f"https://{name}.test" for name in "abc"]


class Workers:
    """Workers that use their permits in ways drawn at random, and count each page that was perhaps requested."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.pages = dict.fromkeys(ORIGINS, 0)
        self.octets = dict.fromkeys(ORIGINS, 0)

    async def work(self, frontier: polite.Frontier) -> None:
        async for permit in frontier:
            way = self.draw.choice(WAYS)
            with contextlib.suppress(OSError, OriginDeclined, TurnLost, asyncio.CancelledError):
                if way == "unsent" and self.draw.random() < 0.5:
                    permit.unsent(requeue=self.draw.random() < 0.5)
                elif way == "late":
                    # Its turn is taken back before it is entered.
                    await asyncio.sleep(HOLD_S * 2)
                    await self.use(permit, "sent")
                elif way != "dropped":
                    await self.use(permit, way)
            del permit

    async def visit(self, gate: polite.Gate) -> None:
        """Request a page without the frontier, or give up waiting for its turn."""
        await asyncio.sleep(self.draw.random() * 20)
        permit = gate.permit(f"{self.draw.choice(ORIGINS)}/own")
        with contextlib.suppress(
            OriginDeclined, polite.Disallowed, TimeoutError, OSError, asyncio.CancelledError
        ):
            async with asyncio.timeout(self.draw.choice((0.0, 2.0, 1e6))):
                await self.use(permit, self.draw.choice(("sent", "unsent", "failed", "cancelled")))

    async def use(self, permit: polite.Permit, way: str) -> None:
        origin = permit.target.origin.text
        async with permit:
            if way == "unsent":
                permit.unsent()
                return
            self.pages[origin] += 1
            await asyncio.sleep(self.draw.random())
            if way == "failed":
                raise OSError("no response")
            if way == "cancelled":
                raise asyncio.CancelledError
            permit.report(status=self.draw.choice((200, 200, 404, 429, 500)))
            octets = self.draw.randrange(10)
            permit.received(octets)
            self.octets[origin] += octets
            if way == "lost":
                await asyncio.sleep(HOLD_S * 2)
            if way == "retried" and isinstance(permit, TaskPermit):
                permit.retry(after=self.draw.random())


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_no_budget_is_exceeded_and_what_was_not_requested_is_given_back(
    opened: Opened, seed: int
) -> None:
    draw, events = random.Random(seed), list[Event]()
    robots: dict[str, Any] = {
        f"{origin}/robots.txt": Failed(polite.Reason.TIMEOUT) if draw.random() < 0.1 else RULES
        for origin in ORIGINS
    }
    robots[f"{ORIGINS[2]}/robots.txt"] = Reply(200, b"User-agent: *\nCrawl-delay: 4000")
    limits = {
        "max_pages": draw.choice((1, 5, PAGES)),
        "max_bytes": draw.choice((None, 20)),
        "max_failures": draw.choice((None, 2)),
    }
    pacing = polite.PacingPolicy(
        **limits, concurrency=draw.choice((1, 3)), on_long_delay="refuse", max_hold=HOLD_S
    )
    workers = Workers(draw)

    async with opened(
        TimedTransport(robots), pacing=pacing, listener=events.append, frontier={"max_tries": 50}
    ) as (frontier, gate):
        await frontier.put_many(f"{origin}/{n}" for n in range(3 * PAGES) for origin in ORIGINS)
        frontier.close()
        await asyncio.gather(
            *(workers.work(frontier) for _ in range(draw.choice((1, 4)))),
            *(workers.visit(gate) for _ in range(30)),
        )
        turns = turns_of(gate)
        spent = {origin: turns.budgets.of(polite.Origin.of(origin)) for origin in ORIGINS}

        assert {origin: each.pages for origin, each in spent.items()} == workers.pages
        assert {origin: each.octets for origin, each in spent.items()} == workers.octets
        assert not turns.budgets._open
        assert gate.inside == 0

    assert all(count <= limits["max_pages"] for count in workers.pages.values())
    assert workers.pages[ORIGINS[2]] == 0
    assert (frontier.waiting, frontier.in_flight) == (0, 0)
    assert frontier.done + frontier.dropped == 3 * PAGES * len(ORIGINS)
    told = {event.origin for event in events if isinstance(event, BudgetSpent)}
    assert told >= {origin for origin, count in workers.pages.items() if count == limits["max_pages"]}
