"""An origin whose rules cannot be had is given up in steps: others run in between, and nothing is lost or dropped by mistake."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager

import polite
from polite.events import Dropped, Event
from polite.frontier import dispatcher
from polite.robots.exchange import Failed, Reply
from polite.robots.reason import Reason
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from polite.testing import ScriptedTransport
from tests.support import fetch_rest, scripted_gate

SITE = "https://site.test"
ROBOTS = f"{SITE}/robots.txt"
MANY = 3 * dispatcher._AT_A_TIME + 7
GONE = Failed(Reason.DNS_NXDOMAIN)


class Steps:
    """Counts the steps of the loop, and calls back once, when so many tasks were dropped."""

    def __init__(self) -> None:
        self.number = 0
        self.dropped: Counter[int] = Counter()
        self.urls: list[str] = []
        self.then: Callable[[], None] | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Dropped):
            self.dropped[self.number] += 1
            self.urls.append(event.url)
            if self.then is not None:
                then, self.then = self.then, None
                asyncio.get_running_loop().call_soon(then)

    async def count(self) -> None:
        while True:
            self.number += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def given_up(steps, transport=None, *, tries=1):
    """A frontier in which many tasks wait for one robots.txt that will not come."""
    transport = transport or ScriptedTransport({ROBOTS: GONE})
    transport.hold()
    async with (
        scripted_gate(transport, listener=steps, pacing=polite.PacingPolicy(min_delay=0.0)) as gate,
        polite.open_frontier(gate, max_robots_tries=tries) as frontier,
    ):
        await frontier.put_many([f"{SITE}/{number}" for number in range(MANY)])
        transport.let_go()
        yield frontier, gate, transport


async def test_no_step_drops_more_than_a_few_hundred() -> None:
    steps = Steps()

    async with given_up(steps) as (frontier, _, _):
        counting = asyncio.create_task(steps.count())
        await frontier.join()
        counting.cancel()

    assert frontier.dropped == len(set(steps.urls)) == MANY
    assert max(steps.dropped.values()) <= dispatcher._AT_A_TIME
    assert len(steps.dropped) >= 4


async def test_what_is_put_in_between_is_not_dropped_with_them_and_asks_anew() -> None:
    steps = Steps()
    reached = asyncio.Event()
    broken = Failed(Reason.BODY_CORRUPT)
    transport = ScriptedTransport({ROBOTS: [broken, broken, Reply(200, b"")]})

    async with given_up(steps, transport, tries=2) as (frontier, _, _):
        steps.then = reached.set
        await reached.wait()
        assert len(steps.urls) < MANY
        admitted = await frontier.put(f"{SITE}/late")
        fetched = await fetch_rest(frontier)

    assert admitted is polite.Admission.WAITING
    assert fetched == [f"{SITE}/late"]
    assert (frontier.dropped, frontier.refused) == (MANY, 0)


async def test_rules_that_arrive_meanwhile_save_the_remaining_tasks() -> None:
    steps = Steps()
    reached = asyncio.Event()

    opening = given_up(steps, ScriptedTransport({ROBOTS: Failed(Reason.BODY_CORRUPT)}))
    async with opening as (frontier, gate, _):
        steps.then = reached.set
        await reached.wait()
        await learn_that_all_is_allowed(gate)
        await frontier.put(f"{SITE}/late")
        fetched = await fetch_rest(frontier)

    assert 0 < frontier.dropped < MANY
    assert sorted(fetched + steps.urls) == sorted(f"{SITE}/{each}" for each in (*range(MANY), "late"))


async def learn_that_all_is_allowed(gate: polite.Gate) -> None:
    """As a refresh that another request asked for would, at this very moment."""
    origins, origin = gate.services.origins, polite.Origin.of(SITE)
    answer = Found(b"", 200, ROBOTS, 0)
    snapshot = renewed(None, answer, origins.policy, gate.services.clock.wall(), jitter=0.0)
    origins._put(origin, await origins._rules_of(origin, snapshot))
