"""What tests of the gate share: one site with rules, and a visit to one of its pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import polite
from polite.robots.fetching.exchange import Reply
from polite.testing import ScriptedTransport
from tests.support import now, scripted_gate

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
