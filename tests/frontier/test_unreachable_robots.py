"""An origin whose robots.txt cannot be fetched is postponed, tried again, and at last given up, in steps and not by mistake."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest

import polite
from polite.events import Dropped, Event, OriginPostponed, RobotsFetched
from polite.frontier import dispatcher
from polite.robots.exchange import Failed, Reply
from polite.robots.reason import Reason
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from polite.testing import LoopClock, ScriptedTransport
from tests.support import RULES, A, B, end_next, fetch_all, fetch_rest, now, scripted_gate


class FailingStore:
    """A store that cannot be read until `mended`."""

    mended = False

    async def load(self, origin: polite.Origin) -> None:
        if not self.mended:
            raise OSError("disk on fire")

    async def save(self, origin: polite.Origin, snapshot: object) -> None: ...

    async def close(self) -> None: ...


async def test_tasks_wait_for_a_robots_txt_that_is_out_of_reach(opened):
    events: list[Event] = []
    script = {f"{A}/robots.txt": [Reply(500), Failed(polite.Reason.TIMEOUT), RULES]}

    async with opened(script, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/private"])
        fetched = await fetch_rest(frontier)

    assert fetched == [f"{A}/1", f"{A}/2"]
    put_off = [event for event in events if isinstance(event, OriginPostponed)]
    assert [(event.origin, event.tasks) for event in put_off] == [(A, 3), (A, 3)]
    assert put_off[0].for_s >= 5.0
    assert (frontier.done, frontier.refused) == (2, 1)


async def test_the_tasks_of_an_origin_out_of_reach_are_dropped_in_the_end_and_may_be_put_again(opened):
    events: list[Event] = []
    script = {f"{A}/robots.txt": [Reply(500), Reply(500), RULES]}

    async with opened(script, listener=events.append, max_robots_tries=2) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        await frontier.join()
        await frontier.put(f"{A}/1", again=True)
        permit = await anext(frontier)

    dropped = [event for event in events if isinstance(event, Dropped)]
    assert [(event.url, event.tries) for event in dropped] == [(f"{A}/1", 0), (f"{A}/2", 0)]
    assert (frontier.dropped, permit.url) == (2, f"{A}/1")


@pytest.mark.parametrize("reason", [each for each in polite.Reason if not each.may_pass])
async def test_what_cannot_pass_by_waiting_is_not_tried_again(opened, reason):
    events: list[Event] = []
    robots = f"{A}/robots.txt"
    transport = ScriptedTransport({robots: [Failed(reason)]})

    async with opened(transport, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        await frontier.join()
        took_s = now()

    assert took_s < 1
    assert transport.asked == [robots]
    assert [event.because for event in events if isinstance(event, Dropped)] == [reason.name] * 2
    assert not [event for event in events if isinstance(event, OriginPostponed)]


async def test_a_failure_of_an_earlier_run_is_retried_with_the_options_of_this_one(opened, tmp_path):
    store = str(tmp_path / "robots.sqlite")
    refused = ScriptedTransport({f"{A}/robots.txt": [Failed(polite.Reason.ADDRESS_REFUSED)]})
    async with opened(refused, store=store) as (_, gate):
        await gate.check(f"{A}/1")
    await asyncio.sleep(1)

    async with opened({f"{A}/robots.txt": RULES}, store=store) as (frontier, _):
        await frontier.put(f"{A}/1")
        fetched = await fetch_rest(frontier)

    assert (fetched, frontier.dropped) == ([f"{A}/1"], 0)


async def test_an_origin_that_falls_out_of_reach_has_its_allowed_tasks_dropped_too(opened):
    policy = polite.RobotsPolicy(default_ttl=300, keep_stale=False)
    script = {f"{A}/robots.txt": [RULES, Reply(500)]}

    async with opened(script, robots=policy, max_robots_tries=2) as (frontier, gate):
        await frontier.put_many([f"{A}/{n}" for n in range(3)])
        await end_next(frontier)
        frontier.pause()
        await asyncio.sleep(1_000)
        frontier.resume()
        fetched = await fetch_rest(frontier)
        await gate.check(A)

    assert fetched == []
    assert (frontier.done, frontier.dropped) == (1, 2)


async def test_tasks_that_were_given_up_are_saved_by_rules_that_come_before_they_are_dropped(opened):
    policy = polite.RobotsPolicy(default_ttl=300, keep_stale=False)
    script, frontiers = {f"{A}/robots.txt": [RULES, Reply(500), RULES]}, []

    def pause_when_out_of_reach(event: Event) -> None:
        if isinstance(event, RobotsFetched) and event.outcome == "unreachable":
            frontiers[0].pause()

    opening = opened(script, robots=policy, listener=pause_when_out_of_reach, max_robots_tries=1)
    async with opening as (frontier, gate):
        frontiers.append(frontier)
        await frontier.put_many([f"{A}/0", f"{A}/1"])
        await end_next(frontier)
        await asyncio.sleep(1_000)
        worker = asyncio.create_task(fetch_all(frontier))
        await asyncio.sleep(100)
        await gate.check(A)
        await frontier.put(f"{A}/2")
        frontier.close()
        frontier.resume()

        assert await worker == [f"{A}/1", f"{A}/2"]


async def test_an_origin_asked_again_too_early_has_not_failed_twice(opened):
    clock = LoopClock()
    opening = opened({f"{A}/robots.txt": [Reply(500), RULES]}, clock=clock, max_robots_tries=2)
    async with opening as (frontier, _):
        await frontier.put(A)
        await asyncio.sleep(4)
        clock.set_wall(clock.wall() - 3)
        assert (await anext(frontier)).url == f"{A}/"


async def test_a_store_that_fails_puts_the_origin_off_and_is_logged(opened, caplog):
    store, events = FailingStore(), []

    async with opened(store=store, listener=events.append) as (frontier, _):
        await frontier.put(A)
        await asyncio.sleep(20)
        store.mended = True
        await anext(frontier)

    assert [event.for_s for event in events if isinstance(event, OriginPostponed)] == [5.0, 10.0, 20.0]
    assert "disk on fire" in caplog.text


async def test_only_so_many_origins_are_asked_for_robots_txt_at_one_time(opened):
    transport = ScriptedTransport()
    transport.hold()

    async with opened(transport, max_robots_fetches=3) as (frontier, _):
        await frontier.put_many(f"https://host{n}.test/" for n in range(10))
        await asyncio.sleep(1)
        asked = len(transport.asked)
        transport.let_go()
        fetched = await fetch_rest(frontier)

    assert (asked, len(fetched)) == (3, 10)


@pytest.mark.parametrize("may_pass", [True, False])
async def test_tasks_are_not_dropped_while_a_shared_store_is_away(opened, may_pass):
    class Away(FailingStore):
        async def load(self, origin: polite.Origin) -> None:
            if now() < 600.0:
                raise polite.StoreFailed("not reached", may_pass=may_pass)

    async with opened({f"{A}/robots.txt": RULES}, store=Away(), max_robots_tries=2) as (frontier, _):
        await frontier.put(f"{A}/1")
        fetched = await fetch_rest(frontier)

    assert fetched == ([f"{A}/1"] if may_pass else [])
    assert not may_pass or now() < 660.0


@pytest.mark.parametrize(
    ("reason", "max_outage", "shortest", "longest"),
    [
        (polite.Reason.CONNECTION_REFUSED, 600.0, 600, 1_300),
        (polite.Reason.CONNECTION_REFUSED, 0.0, 5, 10),
        # No restart of a site brings its name into being.
        (polite.Reason.DNS_NXDOMAIN, 600.0, 5, 10),
    ],
)
async def test_an_outage_is_waited_for_though_no_try_is_left(opened, reason, max_outage, shortest, longest):
    options = {"max_robots_tries": 2, "max_outage": max_outage}
    robots = polite.RobotsPolicy(nxdomain_retry=0)
    async with opened({f"{A}/robots.txt": [Failed(reason)]}, robots=robots, **options) as (frontier, _):
        await frontier.put(f"{A}/1")
        await frontier.join()
    assert frontier.dropped == 1
    assert shortest <= now() <= longest


async def test_an_origin_that_gives_no_turn_for_long_leaves_its_fetch_slot_to_others(opened):
    policy = polite.RobotsPolicy(default_ttl=300)

    async with opened(robots=policy, max_robots_fetches=1) as (frontier, gate):
        async with gate.permit(f"{A}/own") as permit:
            await asyncio.sleep(1_000)
            await frontier.put(f"{A}/1")
            await asyncio.sleep(1)
            await frontier.put(f"{B}/1")
            await asyncio.sleep(1)
            permit.report(status=429, headers={"Retry-After": "36000"})

        async with asyncio.timeout(100):
            assert (await anext(frontier)).url == f"{B}/1"


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
        self.then = None

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
    steps, reached = Steps(), asyncio.Event()
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
    steps, reached = Steps(), asyncio.Event()

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
