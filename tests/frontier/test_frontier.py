"""The frontier as a crawler meets it: tasks in, permits out, in order and in turn; in virtual time, without a network."""

import asyncio
import gc
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import polite
from polite import schedulers
from polite.errors import InvalidOption, PermitMisused
from polite.events import Dropped, Event, Granted, OriginPostponed, Refused, Retried, RobotsFetched
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.origin import _spellings
from polite.robots.fetching.exchange import Failed, Reply
from polite.task import Admission, Task
from polite.testing import LoopClock, ScriptedTransport

pytestmark = pytest.mark.virtual_time

A, B = "https://a.test", "https://b.test"
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")


# What a file does in another way: tests/frontier/durable/test_store.py has that.
memory_only = pytest.mark.parametrize("_kept", ["in memory"], indirect=True)

STORE: list[str | None] = [None]


@pytest.fixture(autouse=True, params=["in memory", "in a file"])
def _kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Each test is run with a frontier in memory, and with one in a file."""
    STORE[0] = None if request.param == "in memory" else str(tmp_path / "queue.sqlite")
    yield
    STORE[0] = None


@asynccontextmanager
async def opened(
    script: Any = None, *, frontier: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[Frontier, polite.Gate]]:
    transport = script if hasattr(script, "get") and hasattr(script, "close") else ScriptedTransport(script)
    options.setdefault("clock", LoopClock())
    spoken = {"http": transport, "https": transport}
    async with (
        polite.open_gate("TestBot/1.0", transports=spoken, **options) as gate,
        polite.open_frontier(gate, store=STORE[0], **(frontier or {})) as queue,
    ):
        yield queue, gate


def now() -> float:
    return asyncio.get_running_loop().time()


async def drained(frontier: Frontier) -> list[Any]:
    """What waits after the end: given back, or in the file."""
    left: list[Any] = await frontier.drain()
    if STORE[0] is None:
        return left
    assert left == []
    rows = await kept_in(
        frontier, "SELECT text || path, tries, payload, number FROM tasks JOIN origins ON id = origin"
    )
    return [SimpleNamespace(url=row[0], tries=row[1], payload=row[2] and json.loads(row[2])) for row in rows]


async def kept_in(frontier: Frontier, query: str) -> list[Any]:
    """What the frontier's file holds when all that was said is written."""
    batches: Any = frontier._stock._batches
    while batches._busy is not None or batches.batch:
        if batches._busy is None:
            batches._flush()
        if batches._busy is not None:
            await asyncio.wait([batches._busy])
    return await batches.run(lambda: batches._file._database._connection.execute(query).fetchall())


async def fetch_all(frontier: Frontier, fetched: list[tuple[float, str]] | None = None) -> list[str]:
    """What one worker fetches until the iteration ends."""
    fetched = [] if fetched is None else fetched
    async for permit in frontier:
        async with permit:
            fetched.append((now(), permit.url))
            permit.report(status=200)
    return [url for _, url in fetched]


async def expect_a_healthy_frontier(frontier: Frontier, urls: set[str], fetched: list[str]) -> None:
    """After whatever happened: what is left comes, nothing is lost, and nobody is left over."""
    frontier.close()
    async with asyncio.timeout(100_000):
        fetched += await fetch_all(frontier)
        await frontier.join()
    assert set(fetched) == urls
    assert (frontier.waiting, frontier.out) == (0, 0)
    await nobody_is_left()


async def nobody_is_left() -> None:
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


# What is put comes out, in its turn.


async def test_t5_tasks_are_given_out_only_where_the_rules_allow_it_and_refusals_are_told() -> None:
    events: list[Event] = []

    async with opened({f"{A}/robots.txt": RULES}, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/private/2", f"{B}/private/3"])
        frontier.close()
        fetched = await fetch_all(frontier)

    assert sorted(fetched) == [f"{A}/1", f"{B}/private/3"]
    assert [event for event in events if isinstance(event, Refused)] == [Refused(f"{A}/private/2", "RULE", 2)]
    assert (frontier.done, frontier.refused, frontier.dropped) == (2, 1, 0)


async def test_t5_an_origins_tasks_keep_its_delay_and_other_origins_do_not_wait_for_it() -> None:
    fetched: list[tuple[float, str]] = []

    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/{n}" for n in range(3)] + [f"{B}/{n}" for n in range(2)])
        frontier.close()
        await asyncio.gather(*(fetch_all(frontier, fetched) for _ in range(4)))

    assert [at for at, url in fetched if url.startswith(A)] == [1.0, 2.0, 3.0]
    assert [at for at, url in fetched if url.startswith(B)] == [1.0, 2.0]


async def test_t5_a_scheduler_decides_the_order_and_never_the_time() -> None:
    fetched: list[tuple[float, str]] = []

    async with opened(frontier={"scheduler": schedulers.Priority()}) as (frontier, _):
        for priority in range(3):
            await frontier.put(f"{A}/{priority}", priority=priority)
        frontier.close()
        await fetch_all(frontier, fetched)

    assert fetched == [(1.0, f"{A}/2"), (2.0, f"{A}/1"), (3.0, f"{A}/0")]


async def test_the_choice_is_made_when_the_turn_is_there_not_before() -> None:
    async with opened(frontier={"scheduler": schedulers.Priority()}) as (frontier, _):
        await frontier.put(f"{A}/early")
        worker = asyncio.create_task(anext(frontier))
        await asyncio.sleep(0.9)
        await frontier.put(f"{A}/late", priority=9)
        permit = await worker

    assert permit.task.url == f"{A}/late"


async def test_a_task_chosen_in_vain_is_chosen_anew_when_the_turn_is_there() -> None:
    async with opened(frontier={"scheduler": schedulers.Priority()}) as (frontier, gate):
        await frontier.put(f"{A}/early")
        await asyncio.sleep(5)
        async with gate.permit(A):
            worker = asyncio.create_task(anext(frontier))
            await asyncio.sleep(1)
            await frontier.put(f"{A}/late", priority=9)

        assert (await worker).url == f"{A}/late"


async def test_one_worker_gets_the_best_of_all_origins_whose_turn_has_come() -> None:
    async with opened(frontier={"scheduler": schedulers.Priority()}) as (frontier, _):
        for number in range(20):
            await frontier.put(f"https://host{number}.test/", priority=number * 7 % 20)
        await asyncio.sleep(5)
        frontier.close()
        order = []
        async for permit in frontier:
            async with permit:
                order.append(permit.task.priority)

    assert order == sorted(range(20), reverse=True)


async def test_a_permit_carries_its_task() -> None:
    payload = {"from": [f"{A}/", None], "weight": 0.5}

    async with opened() as (frontier, _):
        await frontier.put(f"{A}/x#part", priority=2.5, depth=3, deadline=9.0, payload=payload)
        permit = await anext(frontier)

    task = permit.task
    assert (permit.url, task.url, task.origin) == (f"{A}/x", f"{A}/x", polite.Origin.of(A))
    assert (task.number, task.priority, task.depth, task.deadline, task.tries) == (1, 2.5, 3, 9.0, 0)
    assert task.payload == payload


async def test_workers_that_are_too_few_are_never_idle() -> None:
    async with opened(frontier={"scheduler": schedulers.RoundRobin()}) as (frontier, _):
        await frontier.put_many(f"https://host{n % 100}.test/{n}" for n in range(400))
        frontier.close()

        async def worker() -> None:
            async for permit in frontier:
                async with permit:
                    await asyncio.sleep(0.1)
                    permit.report(status=200)

        await asyncio.gather(*(worker() for _ in range(5)))

    # One second for robots.txt and its rest, then 400 pages of 0.1 s on 5 workers.
    assert now() == pytest.approx(1.0 + 400 * 0.1 / 5)


async def test_an_origin_of_a_million_tasks_has_one_request_in_the_pacer() -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many(f"{A}/{n}" for n in range(100))
        await frontier.put_many(f"{B}/{n}" for n in range(100))
        await asyncio.sleep(0.5)

        waiting = [gate._turns.outlook(polite.Target.of(url)).waiting for url in (A, B)]

    assert waiting == [1, 1]


@pytest.mark.parametrize("workers", [1, 2, 8])
async def test_concurrency_above_one_gives_several_turns_of_an_origin_with_the_delay_between_grants(
    workers: int,
) -> None:
    fetched: list[float] = []
    pacing = polite.PacingPolicy(concurrency=3)

    async with opened(pacing=pacing) as (frontier, _):
        await frontier.put_many(f"{A}/{n}" for n in range(12))
        frontier.close()

        async def worker() -> None:
            async for permit in frontier:
                async with permit:
                    fetched.append(now())
                    permit.report(status=200)
                    await asyncio.sleep(2.5)

        await asyncio.gather(*(worker() for _ in range(workers)))

    gaps = [later - earlier for earlier, later in pairwise(fetched)]
    assert len(fetched) == 12
    assert min(gaps) >= 1.0 - 1e-9
    # With one worker each page takes its 2.5 s; with more, the delay or the three places are the bound.
    assert max(gaps) <= {1: 2.5, 2: 2.5, 8: 1.5}[workers] + 1e-6


async def test_an_origin_that_rests_by_an_unused_grant_is_not_starved() -> None:
    order: list[str] = []

    async with opened(
        pacing=polite.PacingPolicy(concurrency=2), frontier={"scheduler": schedulers.Priority()}
    ) as (frontier, _):
        await frontier.put_many((f"{A}/{n}" for n in range(3)), priority=1)
        await frontier.put_many(f"https://host{n}.test/" for n in range(100))
        frontier.close()
        async for permit in frontier:
            async with permit:
                order.append(permit.url)
                await asyncio.sleep(0.3)
                permit.report(status=200)

    assert max(order.index(f"{A}/{n}") for n in range(3)) < 15


async def test_scopes_that_differ_from_url_to_url_are_obeyed() -> None:
    def by_folder(target: polite.Target) -> tuple[object, ...]:
        return (target.origin, target.path.split("/")[1])

    fetched: list[tuple[float, str]] = []

    async with opened(pacing=polite.PacingPolicy(scopes=by_folder)) as (frontier, _):
        await frontier.put_many([f"{A}/x/1", f"{A}/y/1", f"{B}/x/2", f"{B}/y/2", f"{A}/x/3", f"{B}/x/3"])
        frontier.close()
        await asyncio.gather(*(fetch_all(frontier, fetched) for _ in range(3)))

    assert len({url for _, url in fetched}) == 6
    for part in (A, B, "/x/", "/y/"):
        times = [at for at, url in fetched if part in url]
        assert all(later - earlier >= 1.0 - 1e-9 for earlier, later in pairwise(times)), part


async def test_an_origin_in_its_turn_blocks_nobody_while_no_worker_comes() -> None:
    """With one scope for all, a turn kept for a worker would keep everybody else from theirs."""
    pacing = polite.PacingPolicy(scopes=lambda _: ("all",))

    async with opened(pacing=pacing) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{B}/1"])
        await asyncio.sleep(10)
        async with asyncio.timeout(10), gate.permit("https://c.test/"):
            pass
        frontier.close()

        assert sorted(await fetch_all(frontier)) == [f"{A}/1", f"{B}/1"]


async def test_who_takes_turns_at_the_gate_itself_and_the_frontier_share_the_delay() -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        frontier.close()
        fetched: list[tuple[float, str]] = []
        worker = asyncio.create_task(fetch_all(frontier, fetched))
        async with gate.permit(f"{A}/mine"):
            mine = now()
        await worker

    times = sorted([mine, *(at for at, _ in fetched)])
    assert times == [1.0, 2.0, 3.0]


async def test_a_retry_after_is_obeyed_by_the_frontiers_next_task() -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        times = []
        for _ in range(2):
            async with await anext(frontier) as permit:
                times.append(now())
                permit.report(status=429, headers={"Retry-After": "60"})

    assert times == [1.0, 61.0]


# Putting.


async def test_a_url_is_put_once_however_it_is_spelt() -> None:
    async with opened() as (frontier, _):
        first = await frontier.put(f"{A}/a/../b?q#x")
        second = await frontier.put("HTTPS://user@A.test:443/b?q")

    assert (first, second) == (Admission.WAITING, Admission.DUPLICATE)
    assert (bool(first), bool(second)) == (True, False)


async def test_a_url_that_was_done_is_put_again_only_when_asked() -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        async with await anext(frontier):
            assert await frontier.put(A, again=True) is Admission.DUPLICATE

        assert await frontier.put(A) is Admission.DUPLICATE
        assert await frontier.put(A, again=True) is Admission.WAITING


async def test_what_was_done_longest_ago_is_forgotten_first() -> None:
    async with opened(frontier={"max_done": 2}) as (frontier, _):
        for path in "123":
            await frontier.put(f"{A}/{path}")
            async with await anext(frontier):
                pass

        assert await frontier.put_many([f"{A}/3", f"{A}/2", f"{A}/1"]) == [
            Admission.DUPLICATE,
            Admission.DUPLICATE,
            Admission.WAITING,
        ]


async def test_a_refusal_that_is_known_is_the_answer_of_put() -> None:
    async with opened({f"{A}/robots.txt": RULES}) as (frontier, gate):
        await gate.check(A)

        assert await frontier.put(f"{A}/private") is Admission.REFUSED
        assert frontier.waiting == 0
        await frontier.join()


async def test_put_many_says_what_came_of_each_and_an_invalid_url_hinders_nobody() -> None:
    events: list[Event] = []

    async with opened(listener=events.append) as (frontier, _):
        admissions = await frontier.put_many([A, "http://u:secret@", f"{A}/"], depth=1)

    assert admissions == [Admission.WAITING, Admission.INVALID, Admission.DUPLICATE]
    (told,) = [event for event in events if isinstance(event, Dropped)]
    assert "secret" not in str(told)
    assert told.tries == 0


async def test_put_many_lets_others_run() -> None:
    async with opened() as (frontier, _):
        steps = 0

        async def count() -> None:
            nonlocal steps
            # Not for ever: the thread of a file would wait for the interpreter at each of its own steps.
            for _ in range(4):
                steps += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await frontier.put_many(f"{A}/{n}" for n in range(2_000))
        counting.cancel()

    assert steps == 4


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("priority", float("nan")),
        ("depth", "1"),
        ("deadline", float("inf")),
        ("not_before", True),
    ],
)
async def test_an_option_that_orders_nothing_is_refused(option: str, value: Any) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(polite.InvalidOption, match=option):
            await frontier.put(A, **{option: value})

        assert frontier.waiting == 0


@pytest.mark.parametrize(
    "option", ["max_waiting", "max_done", "max_tries", "max_robots_tries", "max_robots_fetches"]
)
@pytest.mark.parametrize("value", [0, 1.5, True])
async def test_a_limit_that_is_no_whole_number_is_refused(option: str, value: Any) -> None:
    async with opened() as (_, gate):
        with pytest.raises(polite.InvalidOption, match=f"Frontier.{option}"):
            Frontier(gate, **{option: value})


async def test_a_task_is_not_given_out_before_its_time() -> None:
    async with opened() as (frontier, gate):
        wall = gate._clock.wall()
        await frontier.put(f"{A}/late", not_before=wall + 100)
        await frontier.put(f"{A}/later", not_before=wall + 200)
        await frontier.put(f"{A}/past", not_before=wall - 100)
        frontier.close()
        fetched: list[tuple[float, str]] = []
        await fetch_all(frontier, fetched)

    assert fetched == [(1.0, f"{A}/past"), (100.0, f"{A}/late"), (200.0, f"{A}/later")]


async def test_an_earlier_time_put_later_comes_first() -> None:
    async with opened() as (frontier, gate):
        wall = gate._clock.wall()
        await frontier.put(f"{A}/b", not_before=wall + 200)
        await frontier.put(f"{A}/a", not_before=wall + 100)

        assert (await anext(frontier)).url == f"{A}/a"
        assert now() == 101.0


# Back-pressure.


async def test_put_waits_for_room_in_the_order_of_asking() -> None:
    async with opened(frontier={"max_waiting": 2}) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        putters = [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in (3, 4)]
        done = []
        for _ in range(2):
            async with await anext(frontier):
                await asyncio.sleep(0)
            done.append([putter.done() for putter in putters])

    assert done == [[True, False], [True, True]]
    assert frontier.waiting == 2


async def test_put_raises_overloaded_when_asked_not_to_wait() -> None:
    async with opened(frontier={"max_waiting": 1}) as (frontier, _):
        await frontier.put(f"{A}/1")

        with pytest.raises(polite.Overloaded, match="max_waiting=1") as refusal:
            await frontier.put(f"{A}/2", wait=False)

        assert refusal.value.url == f"{A}/2"
        assert await frontier.put(f"{A}/1", wait=False) is Admission.DUPLICATE


async def test_a_putter_that_is_cancelled_passes_its_place_on() -> None:
    putters: list[asyncio.Task[Any]] = []

    def cancel_first(event: Event) -> None:
        if isinstance(event, Granted) and event.url == f"{A}/1":
            putters[0].cancel()

    async with opened(frontier={"max_waiting": 1}, listener=cancel_first) as (frontier, _):
        await frontier.put(f"{A}/1")
        putters += [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in (2, 3)]
        async with await anext(frontier):
            assert await putters[1] is Admission.WAITING

        assert await fetch_all_and_close(frontier) == [f"{A}/3"]
        assert putters[0].cancelled()
        await frontier.join()


async def test_a_putter_that_is_cancelled_while_it_waits_leaves_no_trace() -> None:
    async with opened(frontier={"max_waiting": 1}) as (frontier, _):
        await frontier.put(f"{A}/1")
        putter = asyncio.create_task(frontier.put(f"{A}/2"))
        await asyncio.sleep(0)
        putter.cancel()
        await asyncio.wait([putter])

        assert await fetch_all_and_close(frontier) == [f"{A}/1"]
        assert frontier.waiting == 0


async def fetch_all_and_close(frontier: Frontier) -> list[str]:
    frontier.close()
    return await fetch_all(frontier)


async def test_a_place_that_falls_to_a_cancelled_putter_is_free_again_for_join() -> None:
    putters: list[asyncio.Task[Any]] = []

    async with opened(frontier={"max_waiting": 1}, listener=lambda _: [p.cancel() for p in putters]) as (
        frontier,
        _,
    ):
        await frontier.put(f"{A}/1")
        await asyncio.sleep(0.5)
        putters += [asyncio.create_task(frontier.put(f"{A}/2"))]
        async with await anext(frontier):
            pass
        async with asyncio.timeout(10):
            await frontier.join()

    assert frontier.waiting == 0
    assert putters[0].cancelled()


async def test_a_place_that_comes_to_a_cancelled_putter_last_of_all_ends_the_wait_for_all() -> None:
    putters: list[asyncio.Task[Any]] = []

    def cancel(event: Event) -> None:
        if isinstance(event, Refused) and event.url.endswith("/2"):
            putters[0].cancel()

    async with opened({f"{A}/robots.txt": RULES}, frontier={"max_waiting": 2}, listener=cancel) as (
        frontier,
        _,
    ):
        await frontier.put_many([f"{A}/private/1", f"{A}/private/2"])
        putters.append(asyncio.create_task(frontier.put(f"{A}/3")))
        async with asyncio.timeout(10):
            await frontier.join()

    assert putters[0].cancelled()
    assert (frontier.refused, frontier.waiting) == (2, 0)


async def test_of_two_who_wait_to_put_the_same_url_one_puts_it() -> None:
    async with opened(frontier={"max_waiting": 1}) as (frontier, _):
        await frontier.put(f"{A}/1")
        putters = [asyncio.create_task(frontier.put(f"{A}/2")) for _ in range(2)]
        await asyncio.sleep(0)
        for _ in range(2):
            async with await anext(frontier):
                pass

        assert await asyncio.gather(*putters) == [Admission.WAITING, Admission.DUPLICATE]
        await frontier.join()


async def test_closing_sends_home_those_who_wait_for_room() -> None:
    async with opened(frontier={"max_waiting": 1}) as (frontier, _):
        await frontier.put(f"{A}/1")
        putters = [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in (2, 3)]
        await asyncio.sleep(0)
        putters[1].cancel()
        frontier.close()
        results = await asyncio.gather(*putters, return_exceptions=True)

        assert [type(result) for result in results] == [FrontierClosed, asyncio.CancelledError]
        assert await fetch_all(frontier) == [f"{A}/1"]


async def test_a_place_that_comes_in_the_step_of_closing_is_not_taken() -> None:
    frontiers: list[Frontier] = []

    def close(event: Event) -> None:
        if isinstance(event, Granted):
            frontiers[0].close()

    async with opened(frontier={"max_waiting": 1}, listener=close) as (frontier, _):
        frontiers.append(frontier)
        await frontier.put(f"{A}/1")
        putter = asyncio.create_task(frontier.put(f"{A}/2"))
        fetched = await fetch_all(frontier)
        with pytest.raises(FrontierClosed):
            await putter

    assert fetched == [f"{A}/1"]
    assert frontier.waiting == 0


# Retries.


async def test_a_task_comes_back_after_a_time_with_its_tries_counted_until_the_limit() -> None:
    events: list[Event] = []
    tries, times, answers = [], [], []

    async with opened(listener=events.append) as (frontier, _):
        await frontier.put(A, payload="mine")
        frontier.close()
        async for permit in frontier:
            async with permit:
                tries.append((permit.task.tries, permit.task.payload))
                times.append(now())
                permit.report(status=500)
                answers.append(permit.retry(after=10))

    assert tries == [(0, "mine"), (1, "mine"), (2, "mine")]
    assert times == [1.0, 11.0, 21.0]
    assert answers == [True, True, False]
    assert [event for event in events if isinstance(event, Retried)] == [
        Retried(f"{A}/", n, 10) for n in (1, 2)
    ]
    assert events[-1] == Dropped(f"{A}/", "max_tries=3", 3)
    assert (frontier.done, frontier.dropped) == (0, 1)


async def test_a_task_that_comes_back_at_once_waits_for_its_origins_turn() -> None:
    times = []

    async with opened(frontier={"max_tries": 2}) as (frontier, _):
        await frontier.put(A)
        frontier.close()
        async for permit in frontier:
            async with permit:
                times.append(now())
                permit.retry()

    assert times == [1.0, 2.0]


async def test_a_block_left_by_an_exception_sends_its_task_back() -> None:
    async with opened(frontier={"max_tries": 2}) as (frontier, _):
        await frontier.put(A)
        for tries in range(2):
            permit = await anext(frontier)
            with pytest.raises(ZeroDivisionError):
                async with permit:
                    assert permit.task.tries == tries
                    raise ZeroDivisionError
        await frontier.join()

    assert (frontier.done, frontier.dropped) == (0, 1)


async def test_a_retry_finds_room_however_full_the_frontier_is() -> None:
    async with opened(frontier={"max_waiting": 1}) as (frontier, _):
        await frontier.put(f"{A}/1")
        permit = await anext(frontier)
        await frontier.put(f"{A}/2")
        async with permit:
            permit.retry()

        assert frontier.waiting == 2
        putter = asyncio.create_task(frontier.put(f"{A}/3"))
        async with await anext(frontier):
            await asyncio.sleep(0)
            assert not putter.done()
        async with await anext(frontier):
            await asyncio.sleep(0)
            assert putter.done()


async def test_retry_is_for_inside_the_block() -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        permit = await anext(frontier)
        with pytest.raises(polite.PermitMisused, match="outside"):
            permit.retry()
        with pytest.raises(polite.PermitMisused, match="outside"):
            permit.report(status=200)
        async with permit:
            with pytest.raises(polite.InvalidOption, match="after"):
                permit.retry(after=-1)
        with pytest.raises(polite.PermitMisused, match="outside"):
            permit.retry()
        with pytest.raises(polite.PermitMisused, match="twice"):
            await permit.__aenter__()

    assert frontier.done == 1


# robots.txt out of reach.


async def test_tasks_wait_for_a_robots_txt_that_is_out_of_reach() -> None:
    events: list[Event] = []
    script = {f"{A}/robots.txt": [Reply(500), Failed(polite.Reason.TIMEOUT), RULES]}

    async with opened(script, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/private"])
        frontier.close()
        fetched = await fetch_all(frontier)

    assert fetched == [f"{A}/1", f"{A}/2"]
    put_off = [event for event in events if isinstance(event, OriginPostponed)]
    assert [(event.origin, event.tasks) for event in put_off] == [(A, 3), (A, 3)]
    assert put_off[0].for_s >= 5.0
    assert (frontier.done, frontier.refused) == (2, 1)


async def test_the_tasks_of_an_origin_out_of_reach_are_dropped_in_the_end_and_may_be_put_again() -> None:
    events: list[Event] = []
    script = {f"{A}/robots.txt": [Reply(500), Reply(500), RULES]}

    async with opened(script, listener=events.append, frontier={"max_robots_tries": 2}) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        await frontier.join()
        await frontier.put(f"{A}/1", again=True)
        permit = await anext(frontier)

    dropped = [event for event in events if isinstance(event, Dropped)]
    assert [(event.url, event.tries) for event in dropped] == [(f"{A}/1", 0), (f"{A}/2", 0)]
    assert frontier.dropped == 2
    assert permit.url == f"{A}/1"


@pytest.mark.parametrize("reason", [each for each in polite.Reason if not each.may_pass])
async def test_what_cannot_pass_by_waiting_is_not_tried_again(reason: polite.Reason) -> None:
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


async def test_what_an_earlier_run_met_is_tried_again_with_the_options_of_this_one(tmp_path: Path) -> None:
    store = str(tmp_path / "robots.sqlite")
    refused = ScriptedTransport({f"{A}/robots.txt": [Failed(polite.Reason.ADDRESS_REFUSED)]})
    async with opened(refused, store=store) as (_, gate):
        await gate.check(f"{A}/1")
    await asyncio.sleep(1)

    async with opened({f"{A}/robots.txt": RULES}, store=store) as (frontier, _):
        await frontier.put(f"{A}/1")
        frontier.close()
        fetched = await fetch_all(frontier)

    assert fetched == [f"{A}/1"]
    assert frontier.dropped == 0


async def test_an_origin_that_falls_out_of_reach_has_its_allowed_tasks_dropped_too() -> None:
    policy = polite.RobotsPolicy(default_ttl=300, keep_stale=False)
    script = {f"{A}/robots.txt": [RULES, Reply(500)]}

    async with opened(script, robots=policy, frontier={"max_robots_tries": 2}) as (frontier, gate):
        await frontier.put_many([f"{A}/{n}" for n in range(3)])
        async with await anext(frontier):
            pass
        frontier.pause()
        await asyncio.sleep(1_000)
        frontier.resume()
        frontier.close()
        fetched = await fetch_all(frontier)
        await gate.check(A)

    assert fetched == []
    assert (frontier.done, frontier.dropped) == (1, 2)


async def test_tasks_that_were_given_up_are_saved_by_rules_that_come_before_they_are_dropped() -> None:
    policy = polite.RobotsPolicy(default_ttl=300, keep_stale=False)
    script = {f"{A}/robots.txt": [RULES, Reply(500), RULES]}
    frontiers: list[Frontier] = []

    def pause_when_out_of_reach(event: Event) -> None:
        if isinstance(event, RobotsFetched) and event.outcome == "unreachable":
            frontiers[0].pause()

    async with opened(
        script, robots=policy, listener=pause_when_out_of_reach, frontier={"max_robots_tries": 1}
    ) as (frontier, gate):
        frontiers.append(frontier)
        await frontier.put_many([f"{A}/0", f"{A}/1"])
        async with await anext(frontier):
            pass
        await asyncio.sleep(1_000)
        worker = asyncio.create_task(fetch_all(frontier))
        await asyncio.sleep(100)
        await gate.check(A)
        await frontier.put(f"{A}/2")
        frontier.close()
        frontier.resume()

        assert await worker == [f"{A}/1", f"{A}/2"]


async def test_an_origin_asked_again_too_early_has_not_failed_twice() -> None:
    clock = LoopClock()

    async with opened(
        {f"{A}/robots.txt": [Reply(500), RULES]}, clock=clock, frontier={"max_robots_tries": 2}
    ) as (frontier, _):
        await frontier.put(A)
        await asyncio.sleep(4)
        clock.set_wall(clock.wall() - 3)

        assert (await anext(frontier)).url == f"{A}/"


async def test_rules_that_the_gate_forgot_are_good_for_the_tasks_that_wait() -> None:
    transport = ScriptedTransport()

    async with opened(transport, robots=polite.RobotsPolicy(max_origins=1)) as (frontier, _):
        await frontier.put_many(f"{origin}/{n}" for n in range(3) for origin in (A, B))
        frontier.close()
        fetched = await fetch_all(frontier)

    assert len(fetched) == 6
    assert sorted(transport.asked) == [f"{A}/robots.txt", f"{B}/robots.txt"]


async def test_rules_that_change_while_tasks_wait_are_obeyed() -> None:
    events: list[Event] = []
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), RULES]}

    async with opened(script, robots=policy, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/private/2", f"{A}/private/3", f"{A}/4", f"{A}/private/5"])
        async with await anext(frontier):
            pass
        await asyncio.sleep(1_000)
        frontier.close()
        fetched = await fetch_all(frontier)

    assert fetched == [f"{A}/4"]
    assert frontier.refused == 3
    assert sum(isinstance(event, Refused) for event in events) == 3


async def test_an_origin_whose_last_tasks_are_refused_in_its_turn_gives_the_turn_back() -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    transport = ScriptedTransport(
        {f"{A}/robots.txt": [Reply(404), Reply(200, b"User-agent: *\nDisallow: /\nAllow: /$")]}
    )

    async with opened(transport, robots=policy) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/3"])
        async with await anext(frontier):
            await asyncio.sleep(1_000)
        frontier.close()

        assert await fetch_all(frontier) == []
        async with asyncio.timeout(2), gate.permit(A):
            pass
    assert frontier.refused == 2


async def test_an_origin_that_refuses_all_takes_no_turn() -> None:
    async with opened({f"{A}/robots.txt": RULES}) as (frontier, _):
        await frontier.put_many([f"{A}/private/1", f"{A}/private/2"])
        await frontier.join()

    assert (frontier.refused, now()) == (2, 0.0)


async def test_a_chosen_task_is_refused_by_rules_that_came_while_its_origin_was_ready() -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), RULES]}

    async with opened(script, robots=policy) as (frontier, gate):
        await frontier.put_many([f"{A}/private/1", f"{A}/2"])
        await asyncio.sleep(1_000)
        await gate.check(A)
        frontier.close()

        assert await fetch_all(frontier) == [f"{A}/2"]
        assert frontier.refused == 1


@memory_only
async def test_tasks_of_an_origin_share_it() -> None:
    async with opened() as (frontier, _):
        await frontier.put(f"{A}/1")
        _spellings.clear()
        await frontier.put(f"{A}/2")
        first, second = await drained(frontier)

    assert first.origin is second.origin


class FailingStore:
    """A store that cannot be read until `mended`."""

    mended = False

    async def load(self, origin: polite.Origin) -> None:
        if not self.mended:
            raise OSError("disk on fire")

    async def save(self, origin: polite.Origin, snapshot: object) -> None: ...

    async def close(self) -> None: ...


async def test_a_store_that_fails_puts_the_origin_off_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store, events = FailingStore(), []

    async with opened(store=store, listener=events.append) as (frontier, _):
        await frontier.put(A)
        await asyncio.sleep(20)
        store.mended = True
        await anext(frontier)

    assert [event.for_s for event in events if isinstance(event, OriginPostponed)] == [5.0, 10.0, 20.0]
    assert "disk on fire" in caplog.text


async def test_a_store_that_fails_for_ever_drops_what_waits_for_it(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(store=FailingStore()) as (frontier, _):
        await frontier.put(A)
        await frontier.join()

    assert frontier.dropped == 1
    assert now() < 3 * 3_600
    assert "disk on fire" in caplog.text


async def test_an_overloaded_gate_is_asked_again() -> None:
    events: list[Event] = []
    pacing = polite.PacingPolicy(max_waiting=1)

    async with opened(pacing=pacing, listener=events.append) as (frontier, _):
        await frontier.put_many(f"https://host{n}.test/" for n in range(4))
        frontier.close()
        fetched = await fetch_all(frontier)

    assert len(fetched) == 4
    assert any("max_waiting" in event.because for event in events if isinstance(event, OriginPostponed))


async def test_an_overloaded_gate_is_asked_again_where_the_rules_are_known(caplog: Any) -> None:
    events: list[Event] = []
    pacing = polite.PacingPolicy(max_waiting=1)
    urls = [f"https://host{n}.test/{page}" for n in range(4) for page in range(2)]

    async with opened(pacing=pacing, listener=events.append) as (frontier, gate):
        for url in urls:
            await gate.check(url)
        await frontier.put_many(urls)
        frontier.close()
        fetched = await fetch_all(frontier)

    assert sorted(fetched) == urls
    assert any("max_waiting" in event.because for event in events if isinstance(event, OriginPostponed))


async def test_a_pacer_that_knows_no_short_way_is_waited_for() -> None:
    fetched: list[tuple[float, str]] = []

    async with opened() as (frontier, gate):
        gate._turns._acquire_now = gate._turns._acquire_later = None
        await frontier.put_many([f"{A}/{n}" for n in range(3)] + [f"{B}/{n}" for n in range(3)])
        await asyncio.sleep(5)
        frontier.close()
        await fetch_all(frontier, fetched)

    assert [at for at, url in fetched if url.startswith(A)] == [5.0, 6.0, 7.0]
    assert len(fetched) == 6


async def test_a_pacer_that_closes_by_itself_ends_the_frontier() -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many([f"{A}/{n}" for n in range(3)])
        async with await anext(frontier):
            pass
        await gate._turns._pacer.close()

        with pytest.raises(polite.GateClosed):
            await anext(frontier)


async def test_rules_that_are_replaced_while_a_turn_is_waited_for_are_asked_again() -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), RULES]}

    async with opened(script, robots=policy) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/private/2", f"{A}/3"])
        async with await anext(frontier):
            # The next turn is asked for by the old rules, and comes when they are too old.
            await asyncio.sleep(1_000)
        frontier.close()

        assert await fetch_all(frontier) == [f"{A}/3"]
        assert frontier.refused == 1


async def test_only_so_many_origins_are_asked_for_robots_txt_at_one_time() -> None:
    transport = ScriptedTransport()
    transport.hold()

    async with opened(transport, frontier={"max_robots_fetches": 3}) as (frontier, _):
        await frontier.put_many(f"https://host{n}.test/" for n in range(10))
        await asyncio.sleep(1)
        asked = len(transport.asked)
        transport.let_go()
        frontier.close()
        fetched = await fetch_all(frontier)

    assert asked == 3
    assert len(fetched) == 10


@pytest.mark.parametrize("opening", [1, 3])
async def test_origins_whose_rules_become_known_while_they_wait_for_a_slot_end_no_chain(opening: int) -> None:
    transport = ScriptedTransport()
    transport.hold()
    urls = [f"https://host{number}.test/" for number in range(60)]
    async with opened(transport, frontier={"max_robots_fetches": opening}) as (frontier, gate):
        await frontier.put_many(urls)
        frontier.close()
        known = [asyncio.create_task(gate.check(url)) for url in urls[10:50]]
        await asyncio.sleep(5)
        transport.let_go()
        await asyncio.gather(*known)
        async with asyncio.timeout(1_000):
            given = [permit.url async for permit in frontier if await left(permit)]

    assert sorted(given) == sorted(urls)


async def left(permit: polite.TaskPermit) -> bool:
    async with permit:
        return True


@memory_only
async def test_many_tasks_that_waited_for_the_rules_are_checked_a_few_at_a_time() -> None:
    transport = ScriptedTransport({f"{A}/robots.txt": RULES})
    transport.hold()
    steps, at = 0, set()

    async def count() -> None:
        nonlocal steps
        while frontier.refused < 600:
            steps += 1
            await asyncio.sleep(0)

    async with opened(transport, listener=lambda _: at.add(steps)) as (frontier, _):
        await frontier.put_many(f"{A}/{'private/' * (n % 2)}{n}" for n in range(1_200))
        at.clear()
        counting = asyncio.create_task(count())
        transport.let_go()
        await anext(frontier)
        await counting

    assert len(at) >= 3
    assert (frontier.refused, frontier.waiting) == (600, 599)


# Pause, close, join, drain.


async def test_a_paused_frontier_gives_nothing_out_until_it_goes_on() -> None:
    async with opened() as (frontier, _):
        frontier.pause()
        await frontier.put(A)
        worker = asyncio.create_task(anext(frontier))
        await asyncio.sleep(100)
        paused = worker.done()
        frontier.resume()
        await worker

    assert not paused
    assert now() == 100.0


async def test_the_iteration_ends_when_all_is_done_what_is_out_included() -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        frontier.close()
        permit = await anext(frontier)
        others = [asyncio.create_task(anext(frontier, None)) for _ in range(3)]
        await asyncio.sleep(10)
        early = [other.done() for other in others]
        async with permit:
            pass
        assert await asyncio.gather(*others) == [None] * 3

    assert not any(early)
    assert [permit async for permit in frontier] == []


async def test_a_frontier_closed_empty_ends_at_once() -> None:
    async with opened() as (frontier, _):
        worker = asyncio.create_task(fetch_all(frontier))
        await asyncio.sleep(0)
        frontier.close()
        frontier.close()

        assert await worker == []


async def test_a_closed_frontier_takes_no_more() -> None:
    async with opened() as (frontier, _):
        frontier.close()

        with pytest.raises(FrontierClosed, match=r"a\.test") as refusal:
            await frontier.put(A)

    assert refusal.value.url == f"{A}/"


async def test_join_waits_for_what_waits_and_what_is_out() -> None:
    async with opened() as (frontier, _):
        await frontier.join()
        await frontier.put(A)
        joining = asyncio.create_task(frontier.join())
        async with await anext(frontier):
            await asyncio.sleep(5)
            assert not joining.done()
        await joining

    assert now() == 6.0


async def test_drain_waits_for_what_is_out_and_gives_back_what_waits_as_it_was_put() -> None:
    async with opened({f"{B}/robots.txt": Reply(500)}) as (frontier, gate):
        await frontier.put(f"{A}/1")
        permit = await anext(frontier)
        await frontier.put(f"{A}/2", payload="two")
        await frontier.put(f"{A}/3", not_before=gate._clock.wall() + 1_000)
        await frontier.put(f"{B}/4")
        await asyncio.sleep(3)
        draining, worker = asyncio.create_task(drained(frontier)), asyncio.create_task(fetch_all(frontier))
        await asyncio.sleep(10)
        assert not draining.done()
        async with permit:
            permit.retry(after=5)
        left = await draining

        assert [task.url for task in left] == [f"{A}/1", f"{A}/2", f"{A}/3", f"{B}/4"]
        assert [task.tries for task in left] == [1, 0, 0, 0]
        assert left[1].payload == "two"
        assert await worker == []
        assert await drained(frontier) == left
        await frontier.join()
        with pytest.raises(FrontierClosed):
            await frontier.put(f"{A}/5")


async def test_after_a_drain_the_gate_serves_others_and_nothing_is_left_running() -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many(f"https://host{n}.test/" for n in range(5))
        await asyncio.sleep(0.5)
        left = await drained(frontier)
        await nobody_is_left()
        async with gate.permit("https://host0.test/"):
            pass

    assert len(left) == 5


async def test_after_a_drain_no_timer_is_left() -> None:
    async with opened() as (frontier, gate):
        await frontier.put(A, not_before=gate._clock.wall() + 1_000)
        await drained(frontier)

        assert [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()] == []


async def test_closing_the_gate_ends_the_frontier_with_gate_closed_and_loses_nothing() -> None:
    async with opened(frontier={"max_waiting": 2}) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2"], not_before=gate._clock.wall() + 1_000)
        waiting = [
            asyncio.create_task(coroutine)
            for coroutine in (frontier.put(f"{A}/3"), frontier.join(), frontier.__anext__())
        ]
        await asyncio.sleep(5)
        await gate.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)

        assert [type(result) for result in results] == [polite.GateClosed] * 3
        assert "2 tasks" in str(results[2])
        with pytest.raises(polite.GateClosed):
            await frontier.put(f"{A}/4")
        assert [task.url for task in await drained(frontier)] == [f"{A}/1", f"{A}/2"]


async def test_a_frontier_at_a_closed_gate_is_closed() -> None:
    async with opened() as (_, gate):
        await gate.close()
        frontier = Frontier(gate)

        with pytest.raises(polite.GateClosed):
            await anext(frontier)


async def test_a_frontier_that_nobody_holds_is_forgotten_by_its_gate() -> None:
    async with opened() as (frontier, gate):
        Frontier(gate)
        gc.collect()

        assert list(gate._guests) == [frontier]


# Workers that are cancelled lose nothing.


async def test_a_permit_that_is_dropped_unentered_gives_turn_and_task_back() -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        permit = await anext(frontier)
        del permit
        async with asyncio.timeout(1):
            permit = await anext(frontier)

    assert (permit.task.tries, now()) == (0, 1.0)


async def test_a_permit_that_outlives_its_loop_is_dropped_silently() -> None:
    async def given() -> Any:
        async with opened() as (frontier, _):
            await frontier.put(A)
            return await anext(frontier)

    from polite.testing import VirtualTimeLoop

    def elsewhere() -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            permit = runner.run(given())
        del permit
        gc.collect()

    await asyncio.to_thread(elsewhere)


async def test_what_was_about_to_be_given_to_a_cancelled_worker_goes_to_the_next() -> None:
    workers: list[asyncio.Task[Any]] = []

    def cancel_first(event: Event) -> None:
        if isinstance(event, Granted):
            workers[0].cancel()

    async with opened(listener=cancel_first) as (frontier, _):
        await frontier.put(A)
        workers += [asyncio.create_task(anext(frontier)) for _ in range(2)]
        permit = await workers[1]

    assert workers[0].cancelled()
    assert (permit.task.tries, now()) == (0, 1.0)


async def test_a_frontier_drained_by_its_listener_holds_nothing() -> None:
    draining: list[asyncio.Task[Any]] = []

    def drain(event: Event) -> None:
        if isinstance(event, Granted):
            draining.append(asyncio.create_task(drained(frontier)))
            frontier._desk.stop(FrontierClosed("drained"))

    async with opened(listener=drain) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{B}/1", f"{B}/2"])
        fetched = await asyncio.gather(*(fetch_all(frontier) for _ in range(3)))
        left = await draining[0]
        await nobody_is_left()
        for url in (A, B):
            async with asyncio.timeout(3), gate.permit(url):
                pass

    assert sorted([*(task.url for task in left), *(url for urls in fetched for url in urls)]) == [
        f"{A}/1",
        f"{A}/2",
        f"{B}/1",
        f"{B}/2",
    ]


async def test_a_worker_cancelled_in_the_step_of_the_choice_is_passed_over() -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([A, B])
        await asyncio.sleep(5)
        workers = [asyncio.create_task(anext(frontier)) for _ in range(3)]
        await asyncio.sleep(0)
        workers[0].cancel()
        permits = await asyncio.gather(*workers[1:])

    assert {permit.task.url for permit in permits} == {f"{A}/", f"{B}/"}


@pytest.mark.parametrize("steps", range(30))
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_cancelling_all_workers_after_any_number_of_steps_loses_nothing(
    steps: int, concurrency: int
) -> None:
    urls = {f"https://host{n % 3}.test/{n}" for n in range(9)}
    fetched: list[str] = []

    async def worker(frontier: Frontier) -> None:
        async for permit in frontier:
            async with permit:
                await asyncio.sleep(0)
                permit.report(status=200)
                fetched.append(permit.url)

    async with opened(pacing=polite.PacingPolicy(concurrency=concurrency), frontier={"max_tries": 99}) as (
        frontier,
        _,
    ):
        for wait in (0.0, 1.0, 2.0):
            putting = asyncio.create_task(frontier.put_many(urls))
            workers = [asyncio.create_task(worker(frontier)) for _ in range(4)]
            await asyncio.sleep(wait)
            for _ in range(steps):
                await asyncio.sleep(0)
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await putting
        await expect_a_healthy_frontier(frontier, urls, fetched)


@pytest.mark.parametrize("steps", range(0, 40, 2))
async def test_draining_after_any_number_of_steps_gives_back_all_that_was_not_fetched(steps: int) -> None:
    urls = {f"https://host{n % 3}.test/{n}" for n in range(9)}

    async with opened() as (frontier, gate):
        await frontier.put_many(urls)
        fetched: list[tuple[float, str]] = []
        workers = [asyncio.create_task(fetch_all(frontier, fetched)) for _ in range(2)]
        await asyncio.sleep(steps % 3)
        for _ in range(steps):
            await asyncio.sleep(0)
        left = [task.url for task in await drained(frontier)]
        await asyncio.gather(*workers)

        assert sorted([*left, *(url for _, url in fetched)]) == sorted(urls)
        async with asyncio.timeout(10), gate.permit("https://host0.test/"):
            pass


@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("opening", [1, 9])
async def test_cancelling_every_task_there_is_after_any_number_of_steps_puts_origins_off_and_loses_nothing(
    steps: int, opening: int
) -> None:
    urls = {f"https://host{n % 3}.test/{n}" for n in range(9)}
    events: list[Event] = []

    async with opened(listener=events.append, frontier={"max_robots_fetches": opening}) as (frontier, _):
        await frontier.put_many(urls)
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await expect_a_healthy_frontier(frontier, urls, [])

    assert steps or "cancelled from outside" in {e.because for e in events if isinstance(e, OriginPostponed)}


# Many.


@pytest.mark.parametrize("scheduler", [schedulers.Fifo, schedulers.Priority, schedulers.RoundRobin])
@pytest.mark.parametrize("workers", [20, 1_500])
async def test_every_gap_holds_whatever_the_scheduler_and_the_number_of_workers(
    scheduler: Any, workers: int
) -> None:
    hits: dict[str, list[float]] = defaultdict(list)

    async with opened(frontier={"scheduler": scheduler()}) as (frontier, _):
        for number in range(3_000):
            await frontier.put(f"https://host{number % 300}.test/{number}", priority=number * 31 % 97)
        frontier.close()

        async def worker() -> None:
            async for permit in frontier:
                async with permit:
                    hits[permit.task.origin.host].append(now())
                    await asyncio.sleep(0.05)
                    permit.report(status=200)

        await asyncio.gather(*(worker() for _ in range(workers)))

    assert sum(map(len, hits.values())) == 3_000
    assert all(later - earlier >= 1.0 for times in hits.values() for earlier, later in pairwise(times))
    if workers > 1_000:
        # As fast as politeness lets anybody be: ten pages, each with its time, and a rest between them.
        assert now() == pytest.approx(1.0 + 9 * 1.05 + 0.05)


@memory_only
async def test_a_hundred_thousand_tasks_over_a_thousand_origins_all_come_in_the_shortest_time() -> None:
    async with opened(frontier={"scheduler": schedulers.BreadthFirst()}) as (frontier, _):
        putting = asyncio.create_task(
            frontier.put_many(f"https://host{n % 1_000}.test/{n}" for n in range(100_000))
        )

        async def worker() -> None:
            async for permit in frontier:
                async with permit:
                    permit.report(status=200)

        workers = [asyncio.create_task(worker()) for _ in range(100)]
        await putting
        frontier.close()
        await asyncio.gather(*workers)

    assert frontier.done == 100_000
    assert now() == pytest.approx(100.0)


@pytest.mark.parametrize("comes_back_by", ["retry", "being dropped"])
async def test_a_listener_that_closes_the_frontier_when_nothing_is_left_loses_no_task_that_comes_back(
    comes_back_by: str,
) -> None:
    seen: list[tuple[str, int]] = []
    opening: list[Frontier] = []

    def listen(event: Event) -> None:
        for frontier in opening:
            seen.append((type(event).__name__, frontier.waiting + frontier.out))
            if not frontier.waiting and not frontier.out:
                frontier.close()

    async with opened(listener=listen) as (frontier, _):
        await frontier.put(f"{A}/1")
        opening.append(frontier)
        permit = await anext(frontier)
        if comes_back_by == "retry":
            async with permit:
                permit.retry()
        else:
            permit.unused()
        frontier.close()
        async with asyncio.timeout(1_000):
            assert await fetch_all(frontier) == [f"{A}/1"]

    assert dict(seen)["Retried" if comes_back_by == "retry" else "Skipped"] == 1


@pytest.mark.parametrize("times", [0, 1])
async def test_a_permit_left_without_being_entered_or_twice_is_misused_and_counts_nothing(times: int) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        permit = await anext(frontier)
        for _each in range(times):
            async with permit:
                pass

        with pytest.raises(polite.PermitMisused, match="left without being entered, or twice"):
            await permit.__aexit__(None, None, None)

        assert (frontier.waiting, frontier.out, frontier.done) == (1, 1 - times, times)


async def test_put_many_refuses_an_option_that_put_does_not_have() -> None:
    async with opened() as (frontier, _):
        with pytest.raises(TypeError, match="put_many: prioritiy: no such option"):
            await frontier.put_many([f"{A}/1"], prioritiy=5)  # type: ignore[call-arg]

        assert frontier.waiting == 0


async def test_put_many_cut_short_by_its_urls_counts_those_before_as_they_are() -> None:
    def urls() -> Any:
        yield f"{A}/1"
        yield f"{A}/2"
        yield f"{A}/1"
        raise ZeroDivisionError("the crawler's own")

    async with opened() as (frontier, _):
        for _each in range(2):
            with pytest.raises(ZeroDivisionError):
                await frontier.put_many(urls())

            assert frontier.waiting == 2


@memory_only
async def test_tasks_that_are_all_refused_in_their_turn_let_others_run() -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), Reply(200, b"User-agent: *\nDisallow: /")]}
    refused: list[int] = []

    async with opened(script, robots=policy) as (frontier, gate):
        await frontier.put_many(f"{A}/{n}" for n in range(3_000))
        async with await anext(frontier):
            pass
        await asyncio.sleep(1_000)
        await gate.check(A)
        await asyncio.sleep(10)
        frontier.close()
        worker = asyncio.create_task(fetch_all(frontier))
        for _step in range(1_000):
            await asyncio.sleep(0)
            refused.append(frontier.refused)
        assert await worker == []

    assert max(later - earlier for earlier, later in pairwise(refused)) <= 600
    assert refused[-1] == 2_999


# Schedulers that answer wrongly.


class Wrong(schedulers.Fifo):
    """Answers rightly twice, then as it is told."""

    def __init__(self, wrong: str) -> None:
        super().__init__()
        self.wrong = wrong
        self.chosen: list[Task] = []
        self.calls = 0

    def add(self, task: Task) -> None:
        if self.wrong == "raises in add" and task.url.endswith("3"):
            raise KeyError("broken")
        super().add(task)

    def ready(self, origin: polite.Origin) -> None:
        if self.wrong == "raises in ready" and self.calls == 2:
            raise KeyError("broken")
        super().ready(origin)

    def next(self) -> Any:
        self.calls += 1
        if self.calls < 3:
            self.chosen.append(super().next())
            return self.chosen[-1]
        match self.wrong:
            case "nothing":
                return None
            case "the same twice":
                return self.chosen[0]
            case "a foreign origin":
                return Task(target=polite.Target.of("https://foreign.test/"), number=7)
            case "an origin whose turn has not come":
                return next(task for task in super()._tasks[polite.Origin.of(B)])[2]
            case "an exception":
                raise ZeroDivisionError("no idea")
        return super().next()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("nothing", "answered None, which is no task"),
        ("the same twice", "a task that does not wait"),
        ("a foreign origin", "a task that does not wait"),
        ("an exception", "next raised ZeroDivisionError"),
        ("raises in add", "add raised KeyError"),
        ("raises in ready", r"ready\(https://a.test\) raised KeyError"),
    ],
)
async def test_a_scheduler_that_answers_wrongly_is_named_and_nothing_is_lost(
    wrong: str, message: str
) -> None:
    urls = [f"{A}/{n}" for n in range(6)]
    fetched: list[tuple[float, str]] = []

    async with opened(frontier={"scheduler": Wrong(wrong)}) as (frontier, gate):
        await frontier.put_many(urls)
        workers = [asyncio.create_task(fetch_all(frontier, fetched)) for _ in range(3)]
        results = await asyncio.gather(*workers, frontier.join(), return_exceptions=True)

        assert {type(result).__name__ for result in results} == {"SchedulerFailed"}
        with pytest.raises(RuntimeError, match=f"the scheduler Wrong failed: .*{message}"):
            await anext(frontier)
        with pytest.raises(RuntimeError, match=message):
            await frontier.put(f"{A}/9")
        left = [task.url for task in await drained(frontier)]
        assert sorted([*left, *(url for _, url in fetched)]) == urls
        assert all(later - earlier >= 1.0 for (earlier, _), (later, _) in pairwise(fetched))
        async with asyncio.timeout(2), gate.permit(A):
            pass


async def test_a_task_of_an_origin_whose_turn_has_not_come_is_no_answer() -> None:
    class Hasty(schedulers.Fifo):
        def next(self) -> Task:
            super().next()
            return self._tasks[polite.Origin.of(B)][0][2]

    rules = Reply(200, b"User-agent: *\nCrawl-delay: 60")
    async with opened({f"{B}/robots.txt": rules}, frontier={"scheduler": Hasty()}) as (frontier, _):
        await frontier.put_many([A, B])

        with pytest.raises(RuntimeError, match=r"a task of https://b.test, whose turn has not come"):
            await anext(frontier)

        assert [task.url for task in await drained(frontier)] == [f"{A}/", f"{B}/"]


async def test_a_scheduler_that_fails_while_a_task_is_put_says_so_to_who_puts_it() -> None:
    async with opened(frontier={"scheduler": Wrong("raises in add")}) as (frontier, gate):
        await gate.check(A)

        with pytest.raises(RuntimeError, match="add raised"):
            await frontier.put(f"{A}/3")

        assert [task.url for task in await drained(frontier)] == [f"{A}/3"]


@memory_only
@pytest.mark.parametrize("rules", [b"Visit-time: 0000-2359", b"Disallow: /private"])
async def test_a_scheduler_that_fails_as_a_chosen_task_comes_back_to_it_leaves_no_turn_behind(
    rules: bytes,
) -> None:
    class Once(schedulers.Fifo):
        """Adds no task twice."""

        def __init__(self) -> None:
            super().__init__()
            self.added: set[int] = set()

        def add(self, task: Task) -> None:
            if task.number in self.added:
                raise KeyError("added twice")
            self.added.add(task.number)
            super().add(task)

    for steps in range(8):
        script = {f"{A}/robots.txt": Reply(200, b"User-agent: *\n" + rules)}
        async with opened(script, frontier={"scheduler": Once()}) as (frontier, gate):
            await frontier.put_many([f"{A}/{n}" for n in range(3)], again=True)
            async with await anext(frontier):
                pass
            await asyncio.sleep(6)
            worker = asyncio.create_task(anext(frontier))  # type: ignore[arg-type]
            for _ in range(steps):
                await asyncio.sleep(0)
            worker.cancel()
            await asyncio.wait([worker])
            if not worker.cancelled() and worker.exception() is None:
                worker.result().unused()
            await asyncio.sleep(20)

            async with asyncio.timeout(1_000), gate.permit(f"{A}/x"):
                pass
            await frontier.drain()


async def test_a_scheduler_that_fails_when_an_origin_has_rested_is_heard_of() -> None:
    class Deaf(schedulers.Fifo):
        def ready(self, origin: polite.Origin) -> None:
            raise KeyError("broken")

    pacing = polite.PacingPolicy(concurrency=2)
    async with opened(pacing=pacing, frontier={"scheduler": Deaf()}) as (frontier, _):
        await frontier.put(A)

        with pytest.raises(RuntimeError, match="ready"):
            await frontier.join()

        assert len(await drained(frontier)) == 1


async def test_a_scheduler_that_fails_when_an_origin_is_given_up_is_heard_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Deaf(schedulers.Fifo):
        def ready(self, origin: polite.Origin) -> None:
            raise KeyError("broken")

    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.path == "/1":
            raise ZeroDivisionError("no scope")
        return (target.origin,)

    options: dict[str, Any] = {"scheduler": Deaf(), "max_robots_tries": 1}
    async with opened(pacing=polite.PacingPolicy(scopes=scopes), frontier=options) as (frontier, _):
        await frontier.put(f"{A}/1")

        async with asyncio.timeout(100_000):
            with pytest.raises(RuntimeError, match="ready"):
                await frontier.join()
    assert "no turn could be asked for" in caplog.text


async def test_scopes_that_cannot_be_worked_out_end_the_frontier_with_their_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.path == "/1":
            raise ZeroDivisionError("no scope")
        return (target.origin,)

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])

        with pytest.raises(ZeroDivisionError, match="no scope"):
            await anext(frontier)

        assert len(await drained(frontier)) == 2
    assert "the frontier failed" in caplog.text


async def test_a_listener_is_told_how_long_a_task_waited() -> None:
    events: list[Event] = []

    async with opened(listener=events.append) as (frontier, _):
        await frontier.put(A)
        await anext(frontier)

    assert [event for event in events if isinstance(event, Granted)] == [Granted(f"{A}/", 1.0)]


@pytest.mark.parametrize("name", ["priority", "depth", "not_before", "deadline"])
async def test_a_number_that_no_file_can_hold_is_refused_and_hinders_no_other(name: str) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(InvalidOption, match=rf"{name}=.*2\*\*63"):
            await frontier.put(A, **{name: 2**70})  # type: ignore[arg-type]

        await frontier.put(A, priority=2**63 - 1)
        assert len(await drained(frontier)) == 1


async def test_a_permit_asked_for_inside_a_frontiers_permit_of_its_origin_is_an_error_and_no_hang() -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        async with await anext(frontier) as permit:
            with pytest.raises(PermitMisused, match="leave that block first"):
                async with frontier._gate.permit(f"{A}/other"):
                    pass
            permit.report(status=200)


@pytest.mark.parametrize("what", ["join", "drain"])
async def test_who_waits_for_the_end_inside_a_permit_is_told_that_it_would_wait_for_itself(what: str) -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        async with await anext(frontier):
            with pytest.raises(PermitMisused, match=f"{what} inside the permit"):
                await getattr(frontier, what)()
        await frontier.join()


async def test_one_url_is_no_sequence_of_urls() -> None:
    async with opened() as (frontier, _):
        with pytest.raises(InvalidOption, match="put takes one"):
            await frontier.put_many(A)


@pytest.mark.parametrize("scheduler", [5, schedulers.Fifo])
async def test_what_is_no_scheduler_is_refused_at_once(scheduler: object) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(InvalidOption, match="scheduler="):
            Frontier(frontier._gate, scheduler=scheduler)  # type: ignore[arg-type]
