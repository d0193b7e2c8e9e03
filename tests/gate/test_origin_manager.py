"""The origin manager: one result per origin, one fetch however many wait, and nothing forgotten that must not be."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from polite.errors import Overloaded
from polite.events import Event
from polite.gate.fetcher import Downloads, RobotsFetcher
from polite.gate.rules import OriginManager
from polite.gate.turns import Turns
from polite.origin import Origin
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.pacer import LocalPacer
from polite.pacing.policy import PacingPolicy
from polite.robots.agent import UserAgent
from polite.robots.exchange import Failed, Reply
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.stores.memory import MemoryStore
from polite.testing import LoopClock, ScriptedTransport
from tests.support import RULES

DAY = 86_400.0
SITE = Origin.of("https://site.test/")
STRICTER = Reply(200, b"User-agent: *\nDisallow: /\n")


@asynccontextmanager
async def managing(*answers, clock=None, store=None, **policy):
    transport = ScriptedTransport({SITE.robots_url: answers or (RULES,)})
    clock = clock or LoopClock()
    events: list[Event] = []
    turns = Turns(LocalPacer(clock), EffectivePolicies(PacingPolicy()), clock, events.append)
    robots = RobotsPolicy(**policy)
    fetcher = RobotsFetcher(Downloads({"https": transport}, FetchPolicy()), turns, clock, robots)
    parts = (UserAgent("TestBot/1.0"), fetcher, turns, clock, robots, events.append)
    manager = OriginManager(*parts, store=store, jitter=lambda: 0.0)
    yield manager, transport
    await turns.pacer.close()
    await manager.close()


async def test_t2_ten_thousand_waiters_half_of_them_cancelled_cause_one_fetch() -> None:
    async with managing() as (manager, transport):
        transport.hold()
        waiters = [asyncio.create_task(manager.learn(SITE)) for _ in range(10_000)]
        await asyncio.sleep(0.1)
        for waiter in waiters[::2]:
            waiter.cancel()
        await asyncio.sleep(0.1)
        transport.let_go()
        results = await asyncio.gather(*waiters, return_exceptions=True)

    assert transport.asked == [SITE.robots_url]
    assert sum(isinstance(result, asyncio.CancelledError) for result in results) == 5_000
    assert len({id(result) for result in results[1::2]}) == 1
    assert not results[1].rules.allows("/private")  # type: ignore[union-attr]


@pytest.mark.parametrize("failure", [Reply(500), Failed(Reason.TIMEOUT), ZeroDivisionError("boom")])
async def test_k3_a_failed_refresh_keeps_the_stale_copy(failure: Reply | Failed | Exception) -> None:
    async with managing(RULES, failure) as (manager, _):
        await manager.learn(SITE)
        await asyncio.sleep(DAY)
        stale = await manager.learn(SITE)

    assert stale.rules.allows("/page")
    assert not stale.rules.allows("/private")
    assert stale.snapshot.failures == 1


@pytest.mark.parametrize("asks_again_after", [0.95 * DAY, 1.05 * DAY])
async def test_k4_what_another_crawler_was_told_since_is_not_asked_for_again(asks_again_after: float) -> None:
    store, clock = MemoryStore(), LoopClock()

    async with (
        managing(RULES, store=store, clock=clock) as (first, asked_first),
        managing(RULES, STRICTER, store=store, clock=clock) as (second, asked_second),
    ):
        await second.learn(SITE)
        asked_second.answer(SITE.robots_url, STRICTER)
        await first.learn(SITE)
        await asyncio.sleep(asks_again_after)
        await second.learn(SITE)
        await asyncio.sleep(5)
        await first.learn(SITE)
        await asyncio.sleep(5)
        standing = await first.learn(SITE)

    assert not standing.rules.allows("/")
    assert (len(asked_first.asked), len(asked_second.asked)) == (0, 2)


def other(number: int) -> Origin:
    return Origin.of(f"https://host{number}.test/")


async def test_no_back_off_is_forgotten_and_more_than_the_limit_are_refused_until_some_are_over() -> None:
    async with managing(Reply(500, retry_after="3600"), max_origins=5) as (manager, transport):
        await manager.learn(SITE)
        for number in range(10):
            await manager.learn(other(number))
        assert (await manager.learn(SITE)).snapshot.failures == 1
        assert transport.asked.count(SITE.robots_url) == 1

        for number in range(10, 20):
            transport.answer(other(number).robots_url, Reply(500, retry_after="100"))
        with pytest.raises(Overloaded, match="max_origins=5"):
            for number in range(10, 20):
                await manager.learn(other(number))
        assert len(manager.known) <= 11
        await asyncio.sleep(3_700)
        await manager.learn(other(50))

        assert len(manager.known) <= 6
