"""A frontier in a file over a restart: tasks, tries, counts and delays are kept."""

import asyncio

import pytest

import polite
from polite.events import Dropped, Event, OriginPostponed
from polite.frontier.durable.backend import PAYLOAD_LIMIT
from polite.robots.exchange import Reply
from polite.task import Admission
from polite.testing import LoopClock, ScriptedTransport
from tests.frontier.durable.support import each_left, fetch, opened, urls_of
from tests.support import RULES, A, B, now

pytestmark = pytest.mark.virtual_time


async def test_what_was_put_waits_in_the_next_run_as_it_was_put(path):
    payload = {"from": [1, None, "x"], "é": 0.5}
    async with opened(path) as first:
        await first.put(f"{A}/1", priority=2.5, depth=3, deadline=4e9, not_before=5.0, payload=payload)
        await first.put(f"{A}/2")

    async with opened(path) as second:
        waiting = second.waiting
        second.close()
        task, other = [permit.task async for permit in each_left(second)]

    assert waiting == 2
    assert (task.url, task.number, task.priority, task.depth) == (f"{A}/1", 1, 2.5, 3)
    assert (task.deadline, task.not_before, task.payload, task.tries) == (4e9, 5.0, payload, 0)
    assert (other.number, other.payload) == (2, None)
    assert type(task.depth) is int


async def test_what_is_done_refused_or_dropped_stays_so_and_is_counted(path):
    urls = [f"{A}/1", f"{A}/private", f"{A}/dropped"]
    async with opened(path, {f"{A}/robots.txt": RULES}, max_tries=1) as first:
        await first.put_many(urls)
        await fetch(first, 1)
        async with await anext(first) as permit:
            permit.retry()

    async with opened(path) as second:
        counts = (second.done, second.refused, second.dropped, second.waiting)
        admissions = await second.put_many(urls)
        again = await second.put(urls[0], again=True)
        await second.put_many(urls)
        second.close()
        fetched = await urls_of(second)

    assert counts == (1, 1, 1, 0)
    assert admissions == [Admission.DUPLICATE] * 3
    assert again is Admission.WAITING
    assert fetched == [f"{A}/1"]


async def test_a_task_that_was_in_flight_is_requeued_once_and_the_try_counts(path):
    async with opened(path) as first:
        await first.put_many([f"{A}/out", f"{A}/next"])
        permit = await anext(first)
        await permit.__aenter__()

    async with opened(path) as second:
        second.close()
        tasks = [(permit.task.url, permit.task.tries) async for permit in each_left(second)]

    assert tasks == [(f"{A}/out", 1), (f"{A}/next", 0)]


async def test_a_task_that_was_in_flight_too_often_is_dropped_with_an_event(path):
    events: list[Event] = []
    async with opened(path) as frontier:
        await frontier.put(f"{A}/deadly")
    for _ in range(2):
        async with opened(path, max_tries=2, listener=events.append) as frontier:
            await (await anext(frontier)).__aenter__()
    async with opened(path, max_tries=2, listener=events.append) as frontier:
        counts = (frontier.waiting, frontier.dropped)
        admission = await frontier.put(f"{A}/deadly")

    assert [event for event in events if isinstance(event, Dropped)] == [
        Dropped(f"{A}/deadly", "max_tries=2", 2)
    ]
    assert counts == (0, 1)
    assert admission is Admission.DUPLICATE


async def test_keys_are_kept(path):
    async with opened(path) as first:
        await first.put(f"{A}/done", key="done")
        await fetch(first, 1)
        await first.put(f"{A}/1", key="k", payload=1)
        await first.put(f"{A}/1", unique=False)
        permit = await anext(first)
        await permit.__aenter__()

    async with opened(path) as second:
        admissions = [await second.put(f"{A}/2", key=key) for key in ("done", "k", "new")]
        admissions.append(await second.put(f"{A}/1", unique=False))
        second.close()
        tasks = [permit.task async for permit in each_left(second)]

    assert admissions == [Admission.DUPLICATE, Admission.DUPLICATE, Admission.WAITING, Admission.WAITING]
    assert [(task.url, task.key, task.unique, task.tries) for task in tasks] == [
        (f"{A}/1", "k", True, 1),
        (f"{A}/1", None, False, 0),
        (f"{A}/2", "new", True, 0),
        (f"{A}/1", None, False, 0),
    ]


async def test_a_retry_and_a_time_outlive_the_run(path):
    clock = LoopClock()
    async with opened(path, clock=clock) as first:
        await first.put(f"{A}/late", not_before=clock.wall() + 500)
        await first.put(f"{A}/retried")
        async with await anext(first) as permit:
            permit.retry(after=100)
    async with opened(path, clock=clock) as second:
        second.close()
        fetched = [(now(), permit.url, permit.task.tries) async for permit in each_left(second)]

    assert fetched == [(102.0, f"{A}/retried", 1), (500.0, f"{A}/late", 0)]


@pytest.mark.parametrize("named", [1, 2])
@pytest.mark.parametrize(("robots", "gap"), [(b"", 1.0), (b"User-agent: *\nCrawl-delay: 60", 60.0)])
async def test_the_first_request_of_a_run_keeps_the_gap_to_the_last_one_before(path, robots, gap, named):
    pacing = polite.PacingPolicy(scopes=lambda target: named * (target.origin,))
    script = {f"{A}/robots.txt": Reply(200, robots)}
    async with opened(path, script, pacing=pacing) as first:
        await first.put_many([f"{A}/1", f"{A}/2"])
        await fetch(first, 1)
    began, transport = now(), ScriptedTransport(script)
    async with opened(path, transport, pacing=pacing):
        while not transport.asked:
            await asyncio.sleep(0.01)

    assert now() - began >= gap - 0.02


@pytest.mark.parametrize("delay", [1.0, 60.0])
async def test_a_run_begins_when_the_delays_of_all_scopes_are_over(path, delay):
    def scopes(target: polite.Target) -> tuple[object, str]:
        return (target.origin, "all")

    scopes.limit = {"all": polite.ScopeLimit(delay)}.get  # type: ignore[attr-defined]
    pacing = polite.PacingPolicy(scopes=scopes)
    async with opened(path, pacing=pacing) as first:
        await first.put(f"{A}/1")
        await fetch(first, 1)
    began = now()
    async with opened(path, pacing=pacing) as second:
        await second.put(f"{B}/1")
        await anext(second)

    # The delay after the last request, and that after robots.txt.
    assert now() - began >= 2 * delay - 1e-6


async def test_failures_are_counted_over_a_restart(path):
    events: list[Event] = []
    script = {f"{A}/robots.txt": Reply(500)}
    for run in (1, 2):
        async with opened(path, script, max_robots_tries=3, listener=events.append) as frontier:
            await frontier.put(f"{A}/1")
            while sum(isinstance(event, OriginPostponed) for event in events) < run:
                await asyncio.sleep(1)

    async with opened(path, script, max_robots_tries=3, listener=events.append) as frontier:
        async with asyncio.timeout(100_000):
            await frontier.join()

    assert sum(isinstance(event, OriginPostponed) for event in events) == 2
    assert sum(isinstance(event, Dropped) for event in events) == 1


async def test_of_urls_that_are_done_so_many_are_remembered_in_the_file(path):
    async with opened(path, max_done=10) as first:
        await first.put_many(f"{A}/{n}" for n in range(15))
        await fetch(first, 15)
    async with opened(path, max_done=10) as second:
        admissions = await second.put_many(f"{A}/{n}" for n in range(15))
    assert admissions == [Admission.WAITING] * 5 + [Admission.DUPLICATE] * 10


# Numbers and payloads: what a file can hold is read as it was put, what it cannot hold is refused.


def nested(depth):
    value = 1
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        *(
            (odd, f"payload of type {type(odd).__name__}")
            for odd in (object(), {1, 2}, (1, 2), {1: "a"}, b"a")
        ),
        (float("nan"), "payload of type float"),
        ("x" * (PAYLOAD_LIMIT - 1), "octets of JSON"),
        (nested(101), "nested deeper than the limit of 100"),
        (nested(100_000), "recursion|Stack overflow"),  # the second from Python 3.14 on
    ],
)
async def test_a_payload_that_a_file_cannot_hold_as_it_was_put_is_refused(path, payload, why):
    async with opened(path) as frontier:
        with pytest.raises(polite.InvalidOption, match=why) as told:
            await frontier.put(A, payload=payload)
        assert (told.value.url, frontier.waiting) == (f"{A}/", 0)
        await frontier.join()


@pytest.mark.parametrize(
    "payload", [nested(100), "x" * 100_000, [[]] * 200, "[" * 1_000, -0.0, 2**63, 10**400, 1.7e308]
)
async def test_a_payload_within_the_limits_is_read_as_it_was_put(path, payload):
    async with opened(path) as first:
        await first.put(A, payload=payload)
    async with opened(path) as second:
        assert (await anext(second)).task.payload == payload
