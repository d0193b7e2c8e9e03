"""Helpers that tests of several packages share: a gate of scripted servers, the loop's time, one worker's crawl."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import polite
from polite.ports import Transport
from polite.robots.fetching.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport

OpenedGate = AbstractAsyncContextManager[polite.Gate]

A, B = "https://a.test", "https://b.test"
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")


def scripted_gate(
    script: Mapping[str, Any] | Transport | None = None, *, agent: str = "TestBot/1.0", **options: Any
) -> OpenedGate:
    """Open a gate on the loop's clock, whose http and https servers follow `script`.

    Args:
        script: The responses for each URL, or a transport. By default every robots.txt is a 404.
        agent: The crawler's user agent.
        options: Other options of `polite.open_gate`; they replace the clock and the transports too.
    """
    transport = ScriptedTransport(script) if script is None or isinstance(script, Mapping) else script
    defaults = {"clock": LoopClock(), "transports": {"http": transport, "https": transport}}
    return polite.open_gate(agent, **{**defaults, **options})


def now() -> float:
    """Return the running loop's time in seconds."""
    return asyncio.get_running_loop().time()


async def fetch_all(frontier: polite.Frontier, fetched: list[tuple[float, str]] | None = None) -> list[str]:
    """Fetch with one worker until the iteration ends; return the URLs, and append (time, URL) to `fetched`."""
    fetched = [] if fetched is None else fetched
    async for permit in frontier:
        async with permit:
            fetched.append((now(), permit.url))
            permit.report(status=200)
    return [url for _, url in fetched]


async def expect_no_other_tasks() -> None:
    """Require that no asyncio task but the test's own is left."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
