"""One result per origin, one fetch however many wait, on loops with eager tasks too, and nothing forgotten that must not be."""

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest

from polite.errors import Overloaded
from polite.gate.fetcher import Downloads, RobotsFetcher
from polite.gate.rules import OriginManager
from polite.gate.single_flight import FlightLost, SingleFlight
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
from tests.project.loops import eager_on_uvloop
from tests.support import RULES, Abort

DAY = 86_400.0
SITE = Origin.of("https://site.test/")
STRICTER = Reply(200, b"User-agent: *\nDisallow: /\n")


@asynccontextmanager
async def managing(*answers, clock=None, store=None, **policy):
    transport = ScriptedTransport({SITE.robots_url: answers or (RULES,)})
    clock, events = clock or LoopClock(), []
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


@pytest.fixture(
    params=[
        "later",
        pytest.param("at once", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="not eager")),
    ]
)
async def loop(request) -> asyncio.AbstractEventLoop:
    """When a task takes its first step: in a later step of the loop, or within create_task."""
    loop = asyncio.get_running_loop()
    on_uvloop = not isinstance(loop, asyncio.BaseEventLoop)
    if request.param == "at once" and on_uvloop and not eager_on_uvloop():
        pytest.skip(
            "uvloop 0.23 (its #748) passes eager_start, which the factory of this Python (3.13.0) refuses"
        )
    loop.set_task_factory(asyncio.eager_task_factory if request.param == "at once" else None)
    return loop


class Hangar:
    def __init__(self) -> None:
        self.flights: dict[str, SingleFlight[str]] = {}
        self.landed = 0

    def start(self, work):
        flight = self.flights["one"] = SingleFlight(work, name="one", on_end=self.land)
        return flight

    def land(self) -> None:
        self.landed += 1
        self.flights.pop("one")


async def test_a_flight_cancelled_before_its_work_began_lands_once_and_is_lost(loop) -> None:
    async def work() -> str:
        raise AssertionError("it never begins")

    hangar = Hangar()
    flight = hangar.start(work)
    joining = asyncio.ensure_future(flight.join())
    flight._task.cancel()

    with pytest.raises(FlightLost):
        await joining
    await flight.ended()
    await asyncio.sleep(0)
    assert (hangar.flights, hangar.landed) == ({}, 1)


async def test_the_last_cancelled_waiter_cancels_the_work(loop) -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    hangar, ended = Hangar(), asyncio.Event()
    flight = hangar.start(work)
    joining = [asyncio.ensure_future(flight.join()) for _ in range(2)]
    await asyncio.sleep(0.01)
    joining[0].cancel()
    await asyncio.sleep(0)
    leaving_before = flight.leaving
    joining[1].cancel()
    await flight.ended()

    assert (leaving_before, flight.leaving, ended.is_set(), hangar.landed) == (False, True, True, 1)


@pytest.mark.parametrize("error", [Abort("stop"), OSError("no disk")])
async def test_an_error_reaches_all_that_joined(loop, error: BaseException) -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        raise error

    hangar = Hangar()
    flight = hangar.start(work)
    joining = [asyncio.ensure_future(flight.join()) for _ in range(3)]

    ended = await asyncio.wait_for(asyncio.gather(*joining, return_exceptions=True), 5.0)
    await flight.ended()

    assert ended == [error] * 3
    assert (hangar.flights, hangar.landed) == ({}, 1)


async def test_work_that_is_to_go_on_is_not_cancelled_by_the_last_waiter_that_leaves() -> None:
    ended: list[str] = []

    async def work() -> None:
        await asyncio.sleep(1)
        ended.append("work")

    flight = SingleFlight(work, name="f", on_end=lambda: ended.append("flight"))
    waiter = asyncio.create_task(flight.join())
    await asyncio.sleep(0.5)
    flight.go_on()
    waiter.cancel()
    await asyncio.sleep(0)
    assert not flight.leaving
    await flight.ended()

    assert ended == ["work", "flight"]
