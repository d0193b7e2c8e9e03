"""What tests of the gate share: one site with rules, and a visit to one of its pages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.support import calls_of, now, scripted_gate

AGENT = "TestBot/1.0 (+https://bot.test)"
ROBOTS = "https://site.test/robots.txt"
PAGE = "https://site.test/page"
RULES = b"User-agent: testbot\nDisallow: /private\nAllow: /private/open\n\nUser-agent: *\nDisallow: /\n"


@asynccontextmanager
async def opened(
    transport: ScriptedTransport | None = None, **options: Any
) -> AsyncIterator[tuple[polite.Gate, ScriptedTransport]]:
    """Open a gate, by default with a site that serves RULES; yield it with its transport."""
    transport = transport or ScriptedTransport({ROBOTS: Reply(200, RULES)})
    async with scripted_gate(transport, agent=AGENT, **options) as gate:
        yield gate, transport


async def visit(gate: polite.Gate, url: str = PAGE, status: int | None = 200, **headers: str) -> float:
    """Fetch one page; return when its turn came. Without a status nothing is reported."""
    async with gate.permit(url) as permit:
        granted = now()
        if status is not None:
            permit.report(status=status, headers={name.replace("_", "-"): v for name, v in headers.items()})
    return granted


async def calls_of_a_permit(gate: polite.Gate) -> int:
    """Return how many calls a permit for the page takes, whose rules are known and whose turn is free."""
    await asyncio.sleep(10)
    permit = gate.permit(PAGE)

    def enter_and_leave() -> None:
        # It waits for nothing.
        with pytest.raises(StopIteration):
            permit.__aenter__().send(None)
        permit.report(status=200)
        permit.leave()

    return calls_of(enter_and_leave)
