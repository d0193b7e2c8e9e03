"""A thread takes its time over a long URL, and the rules it decides by are replaced, forgotten or too old when it is done."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import pytest

import polite
from polite.robots.exchange import Ask, Reply
from polite.testing import ScriptedTransport
from tests.support import OpenedGate, scripted_gate

pytestmark = pytest.mark.virtual_time

SITE, OTHER = "https://a.test", "https://other.test"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
HOSTILE = "".join(f"Disallow: /*{'*'.join(each)}*0\n" for each in product(LETTERS, LETTERS, "abcdef"))
LONG = f"{SITE}/{200 * LETTERS[::-1]}"
NOTHING = "Disallow: /\n"


class Site(ScriptedTransport):
    """Serves `rules`, good for `max_age` seconds, and counts how often it is asked for them."""

    def __init__(self, rules: str, max_age: int) -> None:
        super().__init__({})
        self.rules, self.max_age, self.asked = rules, max_age, 0

    async def get(self, ask: Ask) -> Reply:
        if not ask.target.url.startswith(SITE):
            return Reply(404)
        self.asked += 1
        return Reply(200, f"User-agent: *\n{self.rules}".encode(), cache_control=f"max-age={self.max_age}")


def opened(site: Site, **robots: Any) -> OpenedGate:
    return scripted_gate(site, robots=polite.RobotsPolicy(**robots))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """From now each job of a thread takes so many seconds."""
    seconds = 0.0

    def run(_: object, job: Callable[[], object]) -> "Awaitable[object]":
        async def later() -> object:
            await asyncio.sleep(seconds)
            return job()

        return asyncio.ensure_future(later())

    def switch(to: float) -> None:
        nonlocal seconds
        seconds = to
        monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", run)

    return switch


async def fetched(gate: polite.Gate) -> bool:
    """Whether the gate lets the long URL be fetched."""
    try:
        async with gate.permit(LONG) as permit:
            permit.report(status=200)
    except polite.Disallowed:
        return False
    return True


async def checked(gate: polite.Gate) -> bool:
    return (await gate.check(LONG)).allowed


@pytest.mark.parametrize("evicted", [False, True])
@pytest.mark.parametrize("question", [fetched, checked])
async def test_rules_replaced_while_a_thread_decides_are_asked_again(
    question: Callable[[polite.Gate], Awaitable[bool]], evicted: bool, slow: Callable[[float], None]
) -> None:
    site = Site(HOSTILE, max_age=1000)
    async with opened(site, max_origins=1) as gate, asyncio.timeout(100_000):
        await gate.check(SITE)
        await asyncio.sleep(910)
        site.rules = NOTHING
        slow(120)

        asking = asyncio.ensure_future(question(gate))
        await asyncio.sleep(1)
        await gate.check(SITE)  # asks for them ahead of time
        await asyncio.sleep(5)
        assert not await gate.check(SITE)
        if evicted:
            await gate.check(OTHER)

        assert not await asking


@pytest.mark.parametrize("question", [fetched, checked])
async def test_rules_that_always_expire_before_a_thread_has_decided_are_asked_for_a_few_times_only(
    question: Callable[[polite.Gate], Awaitable[bool]], slow: Callable[[float], None]
) -> None:
    site = Site(HOSTILE, max_age=0)
    async with opened(site, min_ttl=0.0) as gate, asyncio.timeout(100_000):
        slow(600)

        assert await question(gate)
        assert site.asked <= 3


async def test_a_frontier_refuses_nothing_by_rules_that_were_replaced_while_a_thread_decided(
    slow: Callable[[float], None],
) -> None:
    site = Site(HOSTILE + NOTHING, max_age=1000)
    async with opened(site, max_origins=1) as gate, polite.open_frontier(gate) as frontier:
        async with asyncio.timeout(100_000):
            await gate.check(SITE)
            await asyncio.sleep(880)
            site.rules = HOSTILE
            slow(3_600)

            await frontier.put_many([LONG, f"{LONG}x"])
            async with await anext(frontier) as first:
                first.report(status=200)
            async with await anext(frontier) as second:
                second.report(status=200)

        assert {first.url, second.url} == {LONG, f"{LONG}x"}
        assert frontier.refused == 0
