"""Visits to one site at an hour of the day, with a status or with an error."""

import asyncio
from typing import Any

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.support import OpenedGate, now, scripted_gate

ROBOTS = "https://site.test/robots.txt"
PAGE = "https://site.test/page"
OTHER = "https://other.test/page"
MIDNIGHT = 19_676 * 86_400.0
HOUR = 3_600.0
OFFICE = b"User-agent: *\nVisit-time: 0600-0845\n"


def opened(transport: ScriptedTransport | None = None, *, hour: float = 0.0, **options: Any) -> OpenedGate:
    """Open a gate; the wall clock shows so many hours after midnight, UTC."""
    return scripted_gate(transport, **{"clock": LoopClock(epoch=MIDNIGHT + hour * HOUR), **options})


def serving(robots: bytes) -> ScriptedTransport:
    """Return a transport with this robots.txt."""
    return ScriptedTransport({ROBOTS: Reply(200, robots)})


async def visit(gate: polite.Gate, url: str = PAGE, *, status: int | None = 200, took: float = 0.0) -> float:
    """Fetch one page; return when its turn came. Without a status the block is left by an error."""
    async with gate.permit(url) as permit:
        granted = now()
        await asyncio.sleep(took)
        if status is None:
            raise ConnectionError
        permit.report(status=status)
    return granted


async def fail(gate: polite.Gate, times: int) -> list[float]:
    """Fail so many visits; return when each of their turns came."""
    granted = []
    for _ in range(times):
        async with gate.permit(PAGE):
            granted.append(now())
        with pytest.raises(ConnectionError):
            await visit(gate, status=None)
    return granted
