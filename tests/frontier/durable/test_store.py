"""A frontier in a file, where it is more than one in memory: over restarts and kills, in bounded memory, when the disk fails."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import polite
from polite import schedulers
from polite.events import Dropped, Event, OriginPostponed, Refused
from polite.frontier.durable import store as reserve
from polite.frontier.durable import task_row
from polite.frontier.durable.active_origin import MOST
from polite.frontier.durable.batch import Batch, Put
from polite.frontier.frontier import Frontier
from polite.frontier.sqlite.database import QueueFile
from polite.frontier.sqlite.schema import VERSION
from polite.robots.fetching.exchange import Reply
from polite.task import Admission
from polite.testing import LoopClock, ScriptedTransport

pytestmark = pytest.mark.virtual_time

A, B = "https://a.test", "https://b.test"
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.sqlite"


@asynccontextmanager
async def opened(
    path: Path | str,
    script: Any = None,
    *,
    pacing: Any = None,
    listener: Any = None,
    robots: Any = None,
    clock: Any = None,
    **options: Any,
) -> AsyncIterator[Frontier]:
    spoken = {"https": ScriptedTransport(script)}
    async with (
        polite.open_gate(
            "TestBot/1.0",
            transports=spoken,
            clock=clock or LoopClock(),
            pacing=pacing,
            listener=listener,
            robots=robots,
        ) as gate,
        polite.open_frontier(gate, store=path, **options) as frontier,
    ):
        yield frontier


def now() -> float:
    return asyncio.get_running_loop().time()


def stock(frontier: Frontier) -> Any:
    return frontier._stock


async def fetch(frontier: Frontier, most: int | None = None) -> list[tuple[float, str]]:
    """What one worker fetches, and when."""
    fetched: list[tuple[float, str]] = []
    while most is None or len(fetched) < most:
        permit = await anext(frontier, None)
        if permit is None:
            break
        async with permit:
            fetched.append((now(), permit.url))
            permit.report(status=200)
    return fetched


async def urls_of(frontier: Frontier, most: int | None = None) -> list[str]:
    return [url for _, url in await fetch(frontier, most)]


# Over a restart.


async def test_what_was_put_waits_in_the_next_run_as_it_was_put(path: Path) -> None:
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


async def test_numbers_go_on_where_they_were(path: Path) -> None:
    async with opened(path) as first:
        await first.put_many([f"{A}/1", f"{A}/1", f"{A}/2"])
        await fetch(first, 2)
    async with opened(path) as second:
        await second.put(f"{A}/3")
        permit = await anext(second)

    assert permit.task.number == 3


async def test_what_is_done_refused_or_dropped_stays_so_and_is_counted(path: Path) -> None:
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


async def test_a_task_that_was_out_comes_back_once_and_the_try_counts(path: Path) -> None:
    async with opened(path) as first:
        await first.put_many([f"{A}/out", f"{A}/next"])
        permit = await anext(first)
        await permit.__aenter__()

    async with opened(path) as second:
        second.close()
        tasks = [(permit.task.url, permit.task.tries) async for permit in each_left(second)]

    assert tasks == [(f"{A}/out", 1), (f"{A}/next", 0)]


async def each_left(frontier: Frontier) -> AsyncIterator[polite.TaskPermit]:
    async for permit in frontier:
        async with permit:
            yield permit


async def test_a_task_that_was_out_too_often_is_dropped_with_an_event(path: Path) -> None:
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


async def test_a_permit_that_was_never_entered_costs_no_try(path: Path) -> None:
    async with opened(path) as first:
        await first.put(A)
        permit = await anext(first)
        del permit
        await asyncio.sleep(1)
    async with opened(path) as second:
        permit = await anext(second)

    assert permit.task.tries == 0


async def test_a_retry_and_a_time_outlive_the_run(path: Path) -> None:
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


async def test_what_comes_back_at_once_waits_in_the_next_run_too(path: Path) -> None:
    async with opened(path) as first:
        await first.put(A)
        async with await anext(first) as permit:
            permit.retry()
    async with opened(path) as second:
        permit = await anext(second)

    assert permit.task.tries == 1


@pytest.mark.parametrize(("robots", "gap"), [(b"", 1.0), (b"User-agent: *\nCrawl-delay: 60", 60.0)])
async def test_the_first_request_of_a_run_keeps_the_gap_to_the_last_one_before(
    path: Path, robots: bytes, gap: float
) -> None:
    script = {f"{A}/robots.txt": Reply(200, robots)}
    async with opened(path, script) as first:
        await first.put_many([f"{A}/1", f"{A}/2"])
        await fetch(first, 1)
    began = now()
    async with opened(path, script) as second:
        transport = second._gate._origins._fetcher._transports["https"]
        while not transport.asked:  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)

    assert now() - began >= gap - 0.02


async def test_a_run_begins_when_all_scopes_have_rested(path: Path) -> None:
    pacing = polite.PacingPolicy(scopes=lambda target: (target.origin, "all"))
    async with opened(path, pacing=pacing) as first:
        await first.put(f"{A}/1")
        await fetch(first, 1)
    began = now()
    async with opened(path, pacing=pacing) as second:
        await second.put(f"{B}/1")
        await anext(second)

    # A second for whoever asked last, and one after robots.txt.
    assert now() - began >= 2.0 - 1e-6


async def test_the_order_may_be_another_in_the_next_run(path: Path) -> None:
    async with opened(path, scheduler=schedulers.Deadline()) as first:
        for number in range(100):
            await first.put(f"{A}/{number}", priority=number * 37 % 100, depth=number * 11 % 100)
    async with opened(path, scheduler=schedulers.Priority()) as second:
        best = await urls_of(second, 3)
    async with opened(path, scheduler=schedulers.BreadthFirst()) as third:
        nearest = await urls_of(third, 3)

    assert best == [f"{A}/{n}" for n in sorted(range(100), key=lambda n: -(n * 37 % 100))[:3]]
    assert nearest == [f"{A}/{n}" for n in sorted(range(100), key=lambda n: n * 11 % 100)[:3]]


async def test_the_file_is_free_when_the_block_is_left(path: Path) -> None:
    async with opened(path):
        pass
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        (check,) = connection.execute("PRAGMA integrity_check").fetchone()

    assert check == "ok"


# In bounded memory.


async def test_only_the_first_tasks_of_an_origin_are_in_memory(path: Path) -> None:
    async with opened(path) as frontier:
        await frontier.put_many(f"{A}/{n}" for n in range(600))
        await frontier.put_many(f"{B}/{n}" for n in range(5))
        frontier.pause()
        await asyncio.sleep(10)
        window = stock(frontier)._windows._by_origin[polite.Origin.of(A)]
        in_memory = len(window.here)
        frontier.resume()
        frontier.close()
        fetched = await urls_of(frontier)

    assert in_memory <= MOST
    assert [url for url in fetched if url.startswith(A)] == [f"{A}/{n}" for n in range(600)]
    assert len(fetched) == 605


@pytest.mark.parametrize(
    ("scheduler", "options"),
    [
        (schedulers.Priority, [{"priority": -n} for n in range(400)]),
        (schedulers.BreadthFirst, [{"depth": n} for n in range(400)]),
        (schedulers.Deadline, [{"deadline": 1e9 + n} for n in range(399)] + [{}]),
        (schedulers.Fifo, None),
    ],
)
async def test_an_origins_tasks_come_in_the_schedulers_order_however_many_they_are(
    path: Path, scheduler: Any, options: Any
) -> None:
    count = 400
    order = [number * 171 % count for number in range(count)]
    async with opened(path, scheduler=scheduler()) as first:
        for number in order:
            await first.put(f"{A}/{number}", **(options[number] if options else {}))
    async with opened(path, scheduler=scheduler()) as second:
        second.close()
        fetched = await urls_of(second)

    expected = range(count) if options else order
    assert fetched == [f"{A}/{number}" for number in expected]


async def test_what_is_put_late_and_matters_most_goes_first(path: Path) -> None:
    async with opened(path, scheduler=schedulers.Priority()) as first:
        await first.put_many((f"{A}/{n}" for n in range(200)), priority=1)
    async with opened(path, scheduler=schedulers.Priority()) as second:
        await fetch(second, 3)
        await second.put(f"{A}/best", priority=2)
        await second.put(f"{A}/last", priority=0)
        second.close()
        fetched = await urls_of(second)

    assert fetched[0] == f"{A}/best"
    assert fetched[-1] == f"{A}/last"


async def test_a_flood_of_better_tasks_leaves_memory_bounded_and_loses_nothing(path: Path) -> None:
    async with opened(path, scheduler=schedulers.Priority()) as frontier:
        await frontier.put(f"{A}/first")
        await asyncio.sleep(5)
        for number in range(600):
            await frontier.put(f"{A}/{number}", priority=number)
        in_memory = len(stock(frontier)._windows._by_origin[polite.Origin.of(A)].here)
        frontier.close()
        fetched = await urls_of(frontier)

    assert in_memory == MOST
    assert sorted(fetched) == sorted([f"{A}/first", *(f"{A}/{n}" for n in range(600))])


async def test_only_so_many_origins_are_in_memory_and_all_have_their_turn(path: Path) -> None:
    most = 0
    async with opened(path, max_active_origins=3) as frontier:
        await frontier.put_many(f"https://big{n % 3}.test/{n}" for n in range(450))
        await frontier.put_many(f"https://host{n % 20}.test/{n}" for n in range(60))
        frontier.close()
        fetched = []
        async for permit in frontier:
            async with permit:
                most = max(most, len(stock(frontier)._windows._by_origin))
                fetched.append(permit.url)
                permit.report(status=200)

    assert most == 3
    assert len(fetched) == 510
    # The big ones, put first, gave their places up after a window: they are what comes last.
    assert all("big" in url for url in fetched[-200:])


async def test_what_ended_while_a_load_was_under_way_does_not_come_again(path: Path) -> None:
    async with opened(path) as frontier:
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/3"])
        async with await anext(frontier) as permit:
            await asyncio.sleep(1)
        window = stock(frontier)._windows._by_origin[polite.Origin.of(A)]
        # As a query found it a moment before the block was left.
        stock(frontier)._windows._loaded(window, [(permit.task.number, "/1", 0, 0, None, None, 0, None)], 1)
        frontier.close()

        assert await urls_of(frontier) == [f"{A}/2", f"{A}/3"]


async def test_the_file_has_an_index_for_the_order_of_this_run(path: Path) -> None:
    for scheduler in (schedulers.Fifo(), schedulers.Priority(), schedulers.Deadline(), schedulers.Fifo()):
        async with opened(path, scheduler=scheduler) as frontier:
            file = stock(frontier)._file
            plan = await stock(frontier)._batches.run(
                lambda file=file: file._database._connection.execute(
                    f"EXPLAIN QUERY PLAN {file._places._heads}", (1, 1)
                ).fetchall()
            )

        assert [row[3] for row in plan] == ["SEARCH tasks USING INDEX heads (origin=?)"]


def test_a_batch_that_fails_leaves_the_counts_as_they_were(path: Path) -> None:
    file = QueueFile(path, order="fifo", window=4, max_done=10)
    file.open(3)
    put = Put(A, "/1", 0, 0, None, None, None, again=False, later=None)

    with pytest.raises(TypeError):
        file.apply(Batch(now=1.0, puts=[put], met=[None]))  # type: ignore[list-item]
    answers = file.apply(Batch(now=1.0, puts=[put]))
    file.close()

    assert answers.puts == [1]


async def test_the_origin_with_the_best_task_comes_in_before_those_that_waited_longer(path: Path) -> None:
    async with opened(path, scheduler=schedulers.Priority()) as first:
        for number in range(40):
            await first.put(f"https://host{number}.test/", priority=number)
    async with opened(path, scheduler=schedulers.Priority(), max_active_origins=2) as second:
        fetched = await urls_of(second, 2)

    assert set(fetched) == {"https://host0.test/", "https://host39.test/"}


async def test_an_origin_that_cannot_be_asked_gives_its_place_to_another(path: Path) -> None:
    events: list[Event] = []
    script = {f"{A}/robots.txt": [Reply(500), Reply(500), RULES]}
    async with opened(path, script, max_active_origins=1, listener=events.append) as frontier:
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{B}/1"])
        frontier.close()
        fetched = await fetch(frontier)

    put_off = [event for event in events if isinstance(event, OriginPostponed)]
    assert [url for _, url in fetched] == [f"{B}/1", f"{A}/1", f"{A}/2"]
    assert len(put_off) == 2
    assert fetched[0][0] < put_off[0].for_s
    assert fetched[1][0] >= put_off[0].for_s + put_off[1].for_s


async def test_failures_are_counted_over_a_restart(path: Path) -> None:
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


async def test_all_tasks_of_an_origin_out_of_reach_are_dropped_those_in_the_file_too(path: Path) -> None:
    events: list[Event] = []
    script = {f"{A}/robots.txt": Reply(500)}
    async with opened(path, script, max_robots_tries=2, listener=events.append) as frontier:
        await frontier.put_many(f"{A}/{n}" for n in range(1_300))
        async with asyncio.timeout(100_000):
            await frontier.join()

    assert sum(isinstance(event, Dropped) for event in events) == 1_300
    assert (frontier.dropped, frontier.waiting) == (1_300, 0)


async def test_refusals_are_told_one_by_one_when_tasks_come_into_memory(path: Path) -> None:
    events: list[Event] = []
    async with opened(path, {f"{A}/robots.txt": RULES}, listener=events.append) as frontier:
        await frontier.put_many(f"{A}/private/{n}" for n in range(100))
        await frontier.put(f"{A}/public")
        frontier.close()
        fetched = await urls_of(frontier)

    refused = [event for event in events if isinstance(event, Refused)]
    assert fetched == [f"{A}/public"]
    assert {event.url for event in refused} == {f"{A}/private/{n}" for n in range(100)}
    assert {event.line for event in refused} == {2}
    assert frontier.refused == 100


async def test_many_tasks_whose_time_comes_at_once_all_come(path: Path) -> None:
    clock = LoopClock()
    async with opened(path, clock=clock) as frontier:
        await frontier.put_many(
            (f"https://host{n % 500}.test/{n}" for n in range(3_000)), not_before=clock.wall() + 50
        )
        await frontier.put(f"{A}/now")
        frontier.close()

        async def worker() -> list[tuple[float, str]]:
            return await fetch(frontier)

        fetched = [each for some in await asyncio.gather(*(worker() for _ in range(600))) for each in some]

    assert len(fetched) == 3_001
    assert min(at for at, url in fetched if "host" in url) >= 50.0
    # Two gaps of a second after robots.txt's, and so on: as fast as may be.
    assert max(at for at, _ in fetched) == pytest.approx(50.0 + 6.0)


async def test_a_time_beyond_the_longest_timer_comes(path: Path) -> None:
    clock = LoopClock()
    async with opened(path, clock=clock) as frontier:
        await frontier.put(A, not_before=clock.wall() + 3 * reserve._LONGEST_S)
        await anext(frontier)

    assert now() == pytest.approx(3 * reserve._LONGEST_S + 1.0, abs=0.01)


async def test_every_gap_holds_with_few_places_in_memory(path: Path) -> None:
    hits: dict[str, list[float]] = {}
    async with opened(path, max_active_origins=7, scheduler=schedulers.RoundRobin()) as frontier:
        await frontier.put_many(f"https://host{n % 30}.test/{n}" for n in range(1_500))
        frontier.close()

        async def worker() -> None:
            async for permit in frontier:
                async with permit:
                    hits.setdefault(permit.task.origin.host, []).append(now())
                    await asyncio.sleep(0.05)
                    permit.report(status=200)

        await asyncio.gather(*(worker() for _ in range(10)))

    assert sum(map(len, hits.values())) == 1_500
    assert all(later - earlier >= 1.0 for times in hits.values() for earlier, later in pairwise(times))


# Cancelled, and out of room.


async def test_a_put_that_is_cancelled_while_it_is_written_is_in_or_not_and_is_counted_once(
    path: Path,
) -> None:
    async with opened(path) as frontier:
        putting = asyncio.create_task(frontier.put(f"{A}/1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        putting.cancel()
        await asyncio.wait([putting])
        frontier.close()
        fetched = await urls_of(frontier)
        await frontier.join()

    assert putting.cancelled()
    assert fetched == [f"{A}/1"]


async def test_a_worker_cancelled_while_its_task_is_written_down_as_out_loses_nothing(path: Path) -> None:
    async with opened(path) as frontier:
        await frontier.put(f"{A}/1")
        worker = asyncio.create_task(anext(frontier))
        while not frontier.out:
            await asyncio.sleep(0 if now() >= 1.0 else 0.01)
        worker.cancel()
        await asyncio.wait([worker])
        permit = await anext(frontier)

    assert worker.cancelled()
    assert (permit.url, permit.task.tries) == (f"{A}/1", 0)


async def test_a_url_met_before_needs_no_room(path: Path) -> None:
    async with opened(path, max_waiting=1) as frontier:
        await frontier.put(f"{A}/1")

        assert await frontier.put(f"{A}/1", wait=False) is Admission.DUPLICATE
        with pytest.raises(polite.Overloaded, match="max_waiting=1"):
            await frontier.put(f"{A}/2", wait=False)
        with pytest.raises(polite.Overloaded):
            await frontier.put_many([f"{A}/1", f"{A}/2"], wait=False)


@pytest.mark.parametrize("payload", [object(), {1, 2}, (1, 2), {1: "a"}, float("nan"), b"octets"])
async def test_a_payload_that_would_not_come_back_as_it_was_is_refused_by_its_type(
    path: Path, payload: Any
) -> None:
    async with opened(path) as frontier:
        with pytest.raises(
            polite.InvalidOption, match=f"payload of type {type(payload).__name__}"
        ) as refusal:
            await frontier.put(A, payload=payload)

        assert refusal.value.url == f"{A}/"
        assert frontier.waiting == 0
        await frontier.join()


# Numbers and payloads that a file cannot hold.


@pytest.mark.parametrize("scheduler", [schedulers.Priority, schedulers.BreadthFirst, schedulers.Deadline])
@pytest.mark.parametrize("name", ["priority", "depth", "not_before", "deadline"])
@pytest.mark.parametrize(
    "value",
    [-(2**63), 2**63, 2**63 - 1, 1 - 2**63, 2**53 + 1, 10**400, 1.8e308, -1.7e308, 1.7e308, 5e-324, -0.0],
)
async def test_a_number_is_refused_when_it_is_put_or_comes_back_as_it_was(
    path: Path, scheduler: Any, name: str, value: float
) -> None:
    try:
        async with opened(path, scheduler=scheduler()) as first:
            await first.put(f"{A}/odd", **{name: value})
            refused = False
    except polite.InvalidOption:
        refused = True
    async with opened(path, scheduler=scheduler(), pacing=polite.PacingPolicy(min_delay=0.0)) as second:
        await second.put(f"{A}/other")
        rows = await stock(second)._batches.run(
            lambda: (
                stock(second)
                ._file._database._connection.execute("SELECT * FROM tasks WHERE path = '/odd'")
                .fetchall()
            )
        )
        permit = await anext(second)

    assert permit.url in (f"{A}/odd", f"{A}/other")
    assert refused == (not rows)
    assert refused or value in rows[0]


async def test_a_number_that_a_file_cannot_hold_leaves_the_frontier_as_it_was(path: Path) -> None:
    async with opened(path, scheduler=schedulers.Priority()) as frontier:
        with pytest.raises(polite.InvalidOption, match=r"priority=-9223372036854775808: an integer from"):
            await frontier.put(f"{A}/1", priority=-(2**63))
        await frontier.put(f"{A}/2")
        frontier.close()

        assert await urls_of(frontier) == [f"{A}/2"]


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ("x" * (task_row.PAYLOAD_LIMIT - 1), "octets of JSON"),
        (nested(101), "nested deeper than the limit of 100"),
        (nested(100_000), "recursion"),
    ],
)
async def test_a_payload_too_large_or_too_deep_is_refused(path: Path, payload: Any, why: str) -> None:
    async with opened(path) as frontier:
        with pytest.raises(polite.InvalidOption, match=why):
            await frontier.put(A, payload=payload)

        assert frontier.waiting == 0


@pytest.mark.parametrize(
    "payload", [nested(100), "x" * 100_000, [[]] * 200, "[" * 1_000, -0.0, 2**63, 10**400, 1.7e308]
)
async def test_a_payload_within_the_limits_comes_back(path: Path, payload: Any) -> None:
    async with opened(path) as first:
        await first.put(A, payload=payload)
    async with opened(path) as second:
        assert (await anext(second)).task.payload == payload


# The file fails, or is no file of ours.


async def test_a_file_serves_one_frontier_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.frontier.sqlite.database.BUSY_TIMEOUT_S", 0.01)
    async with opened(path) as first:
        with pytest.raises(polite.StoreFailed, match=r"queue\.sqlite: another frontier"):
            async with opened(path):
                pass
        await first.put(A)


async def test_the_file_of_a_gate_is_none_for_a_frontier(path: Path) -> None:
    async with polite.open_gate("TestBot/1.0", store=path):
        pass

    with pytest.raises(polite.StoreFailed, match=r"keeps robots\.txt for a gate.*open_frontier"):
        async with opened(path):
            pass


async def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")

    with pytest.raises(polite.StoreFailed, match="another program"):
        async with opened(path):
            pass


async def test_a_file_of_a_newer_polite_is_left_alone(path: Path) -> None:
    async with opened(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")

    with pytest.raises(polite.StoreFailed, match="newer polite"):
        async with opened(path):
            pass


async def test_a_corrupt_file_is_named_and_stays_where_it_is(path: Path) -> None:
    path.write_bytes(b"nonsense " * 1_000)

    with pytest.raises(polite.StoreFailed, match="is corrupt .*: it was left as it is"):
        async with opened(path):
            pass

    assert path.read_bytes().startswith(b"nonsense")


async def test_a_folder_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(polite.StoreFailed, match="is there such a folder"):
        async with opened(path / "deeper" / "queue.sqlite"):
            pass


def fill_the_disk(frontier: Frontier) -> None:
    connection = stock(frontier)._file._database._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_full_disk_fails_loudly_for_all_and_loses_nothing_acknowledged(path: Path) -> None:
    acknowledged: list[str] = []
    async with opened(path) as frontier:
        await frontier.put(f"{A}/0", not_before=5e9)
        worker = asyncio.create_task(frontier.join())
        await stock(frontier)._batches.run(lambda: fill_the_disk(frontier))
        with pytest.raises(polite.StoreFailed, match=r"queue\.sqlite: the disk is full"):
            for number in range(100_000):
                await frontier.put(f"{B}/{number}" + "x" * 500, not_before=5e9)
                acknowledged.append(f"{B}/{number}" + "x" * 500)
        for waiting in (worker, anext(frontier), frontier.put(f"{A}/more"), frontier.put_many([A])):
            with pytest.raises(polite.StoreFailed):
                await waiting
        await frontier.drain()

    async with opened(path) as frontier:
        assert frontier.waiting == len(acknowledged) + 1
        assert set(await frontier.put_many(acknowledged)) == {Admission.DUPLICATE}


async def test_a_worker_whose_permit_could_not_be_written_down_gets_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        error = sqlite3.DatabaseError("malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    async with opened(path) as frontier:
        await frontier.put(f"{A}/1")
        await asyncio.sleep(5)
        monkeypatch.setattr(stock(frontier)._file, "_applied", broken)
        with pytest.raises(polite.StoreFailed, match="is corrupt .malformed.: it was left as it is"):
            await anext(frontier)

        assert frontier.out == 0


async def test_a_defect_is_heard_of_by_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as frontier:
        monkeypatch.setattr(stock(frontier)._file, "_call", lambda *_: 1 / 0)
        putting = [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in range(3)]
        results = await asyncio.gather(*putting, frontier.join(), return_exceptions=True)

    assert {type(result) for result in results} == {ZeroDivisionError}


async def test_a_defect_in_what_is_done_with_the_answers_is_heard_of_by_all(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(path) as frontier:
        monkeypatch.setattr(stock(frontier), "_admitted", lambda *_: 1 / 0)
        results = await asyncio.gather(frontier.put(A), frontier.join(), return_exceptions=True)

    assert {type(result) for result in results} == {ZeroDivisionError}
    assert "the frontier failed" in caplog.text


async def test_an_origin_that_is_not_in_memory_cannot_be_put_off(path: Path) -> None:
    async with opened(path) as frontier:
        assert not stock(frontier).put_off(polite.Origin.of(A), 5.0, 1)


async def test_more_origins_than_are_remembered_are_told_apart(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polite.frontier.sqlite.database._KNOWN_ORIGINS", 3)
    urls = [f"https://host{n % 10}.test/{n % 20}" for n in range(40)]
    async with opened(path) as frontier:
        admissions = await frontier.put_many(urls)

    assert admissions == [Admission.WAITING] * 20 + [Admission.DUPLICATE] * 20


async def test_a_gate_that_closes_leaves_nobody_waiting_and_what_was_done_is_written(path: Path) -> None:
    async with opened(path) as first:
        await first.put(f"{A}/done")
        async with await anext(first) as permit:
            putting = [asyncio.create_task(first.put(f"{A}/{n}")) for n in range(3)]
            await asyncio.sleep(0)
            await first._gate.close()
            late = await asyncio.gather(*putting, return_exceptions=True)
            permit.report(status=200)

    async with opened(path) as second:
        admissions = await second.put_many([f"{A}/done", f"{A}/0"])

    assert {type(each) for each in late} == {polite.GateClosed}
    assert (second.done, admissions[0]) == (1, Admission.DUPLICATE)


@pytest.mark.parametrize("store", ["", ":memory:", "redis://localhost", "a\0b", 7, b"queue.sqlite"])
async def test_what_is_no_file_is_refused(store: Any) -> None:
    with pytest.raises(polite.InvalidOption, match="store="):
        async with opened(store):
            pass


async def test_an_order_that_no_file_knows_is_refused(path: Path) -> None:
    with pytest.raises(polite.InvalidOption, match=r"Fifo\.order='alphabet'"):
        async with opened(path, scheduler=with_order("alphabet")):
            pass


def with_order(order: Any) -> schedulers.Fifo:
    scheduler = schedulers.Fifo()
    scheduler.order = order
    return scheduler


async def test_a_scheduler_that_names_no_order_gets_tasks_as_they_were_put(path: Path) -> None:
    class Own:
        def __init__(self) -> None:
            inner = schedulers.Fifo()
            self.add, self.ready, self.next = inner.add, inner.ready, inner.next

    async with opened(path, scheduler=Own()) as frontier:
        await frontier.put_many(f"{A}/{n}" for n in range(50))

        assert await urls_of(frontier, 50) == [f"{A}/{n}" for n in range(50)]


async def test_of_urls_that_are_done_so_many_are_remembered_in_the_file(path: Path) -> None:
    async with opened(path, max_done=10) as first:
        await first.put_many(f"{A}/{n}" for n in range(15))
        await fetch(first, 15)
    async with opened(path, max_done=10) as second:
        admissions = await second.put_many(f"{A}/{n}" for n in range(15))

    assert admissions == [Admission.WAITING] * 5 + [Admission.DUPLICATE] * 10
