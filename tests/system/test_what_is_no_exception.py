"""A transport, a store or a listener raises what is no Exception, or turns cannot be closed: every caller gets it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import polite
from polite.robots.exchange import Ask, Reply
from polite.stores.memory import MemoryStore
from polite.testing import ScriptedTransport
from tests.support import Abort, scripted_gate

pytestmark = pytest.mark.virtual_time

SITE = "https://a.test"


class Broken(ScriptedTransport):
    """Serves rules for an hour, and raises from the `first` request on."""

    def __init__(self, first: int, error: BaseException) -> None:
        super().__init__({})
        self.first, self.error, self.asked = first, error, 0

    async def get(self, ask: Ask) -> Reply:
        await asyncio.sleep(1)
        self.asked += 1
        if self.asked >= self.first:
            raise self.error
        return Reply(200, b"User-agent: *\nDisallow: /secret\n", cache_control="max-age=3600")


class BrokenStore(MemoryStore):
    async def save(self, *_: Any) -> None:
        raise Abort("store")


@asynccontextmanager
async def opened(first: int = 1000, **options: Any) -> AsyncIterator[tuple[polite.Gate, Broken]]:
    site = Broken(first, Abort("transport"))
    async with scripted_gate(site, **options) as gate:
        yield gate, site


def abort(event: object) -> None:
    raise Abort("listener")


@pytest.mark.parametrize(
    ("first", "options"),
    [(1, {}), (1000, {"listener": abort}), (1000, {"store": BrokenStore()})],
    ids=["transport", "listener", "store"],
)
async def test_each_request_for_the_rules_gets_the_error(first: int, options: dict[str, Any]) -> None:
    async with opened(first, **options) as (gate, _), asyncio.timeout(1_000):
        asking = [
            asyncio.ensure_future(gate.check(SITE)),
            asyncio.ensure_future(gate.explain(SITE)),
            asyncio.ensure_future(gate.permit(SITE).__aenter__()),
        ]
        ended = await asyncio.gather(*asking, return_exceptions=True)

    assert [type(each) for each in ended] == [Abort] * 3


async def test_a_frontier_fails_with_it() -> None:
    async with opened(1) as (gate, _), asyncio.timeout(1_000):
        with pytest.raises(RuntimeError, match=r"Abort\('transport'\)"):
            async with polite.open_frontier(gate) as frontier:
                await frontier.put(SITE)
                await anext(frontier)


async def test_a_frontier_fails_with_what_its_listener_raises() -> None:
    def listen(event: object) -> None:
        if isinstance(event, polite.events.Dropped | polite.events.Refused):
            raise Abort("listener")

    async with opened(listener=listen) as (gate, _), asyncio.timeout(1_000):
        with pytest.raises(RuntimeError, match=r"Abort\('listener'\)"):
            async with polite.open_frontier(gate) as frontier:
                await frontier.put(f"{SITE}/secret")
                await anext(frontier)


@pytest.mark.parametrize(("max_tries", "kind"), [(1, polite.events.Dropped), (3, polite.events.Retried)])
async def test_a_task_outlives_what_a_listener_raises_when_its_block_is_left(
    max_tries: int, kind: Any
) -> None:
    def listen(event: object) -> None:
        if isinstance(event, kind):
            raise Abort("listener")

    async with opened(listener=listen) as (gate, _), asyncio.timeout(1_000):
        frontier = polite.Frontier(gate, max_tries=max_tries)
        await frontier.put(f"{SITE}/1")
        with pytest.raises(Abort):
            async with await anext(frontier) as permit:
                permit.retry()
        if kind is polite.events.Retried:
            async with await anext(frontier):
                pass
        await frontier.join()

        assert (frontier.waiting, frontier.done + frontier.dropped) == (0, 1)


async def test_a_turn_goes_back_when_a_listener_raises_before_its_block_begins() -> None:
    def listen(event: object) -> None:
        if isinstance(event, polite.events.BudgetSpent):
            raise Abort("listener")

    pacing = polite.PacingPolicy(max_pages=1, min_delay=1.0)
    async with opened(listener=listen, pacing=pacing) as (gate, _), asyncio.timeout(1_000):
        with pytest.raises(Abort):
            await gate.permit(f"{SITE}/1").__aenter__()
        assert (
            gate.services.turns.pacer.outlook(
                gate.services.turns.scopes_of(polite.origin.Target.of(SITE))
            ).open
            == 0
        )


async def test_rules_asked_for_ahead_of_time_in_vain_are_not_asked_for_at_each_question() -> None:
    async with opened(2) as (gate, site), asyncio.timeout(10_000):
        await gate.check(SITE)
        await asyncio.sleep(3_300)
        for _ in range(20):
            assert await gate.check(SITE)
            await asyncio.sleep(5)

    assert site.asked == 2


@pytest.mark.pure("replaces a method of Turns")
async def test_turns_that_cannot_be_closed_leave_no_fetch_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing() -> None:
        raise OSError("not now")

    transport = ScriptedTransport()
    transport.hold()
    async with scripted_gate(transport) as gate:
        asking = asyncio.create_task(gate.check(SITE))
        await asyncio.sleep(1)
        with monkeypatch.context() as patch:
            patch.setattr(gate.services.turns.pacer, "close", failing)
            with pytest.raises(OSError, match="not now"):
                await gate.close()

        with pytest.raises(polite.GateClosed):
            await asking
        assert len(asyncio.all_tasks()) == 1
