"""Schedulers, scopes, listeners and pacers that fail are named or asked again: no task is lost, and nothing waits for ever."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite import schedulers
from polite.events import Event, Granted, OriginPostponed
from polite.robots.exchange import Ask, Reply
from polite.task import Task
from polite.testing import ScriptedTransport
from tests.frontier.support import Drained, Opened, memory_only, one_process, turns_of
from tests.support import A, Abort, B, fetch_all

pytestmark = pytest.mark.virtual_time


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
            case "an exception":
                raise ZeroDivisionError("no idea")
        return super().next()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("nothing", "returned None, which is no task"),
        ("the same twice", "a task that does not wait"),
        ("a foreign origin", "a task that does not wait"),
        ("an exception", "next raised ZeroDivisionError"),
        ("raises in add", "add raised KeyError"),
        ("raises in ready", r"ready\(https://a.test\) raised KeyError"),
    ],
)
async def test_a_faulty_scheduler_is_named_and_no_task_is_lost(
    opened: Opened, drained: Drained, wrong: str, message: str
) -> None:
    urls = [f"{A}/{n}" for n in range(6)]
    fetched: list[tuple[float, str]] = []

    async with opened(scheduler=Wrong(wrong)) as (frontier, gate):
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


async def test_a_task_of_an_origin_whose_turn_has_not_come_is_no_answer(
    opened: Opened, drained: Drained
) -> None:
    class Hasty(schedulers.Fifo):
        def next(self) -> Task:
            super().next()
            return self._tasks[polite.Origin.of(B).text][0][2]

    rules = Reply(200, b"User-agent: *\nCrawl-delay: 60")
    async with opened({f"{B}/robots.txt": rules}, scheduler=Hasty()) as (frontier, _):
        await frontier.put_many([A, B])

        with pytest.raises(RuntimeError, match=r"a task of https://b.test, whose turn has not come"):
            await anext(frontier)

        assert [task.url for task in await drained(frontier)] == [f"{A}/", f"{B}/"]


@one_process
async def test_a_scheduler_that_fails_while_a_task_is_put_raises_from_put(
    opened: Opened, drained: Drained
) -> None:
    async with opened(scheduler=Wrong("raises in add")) as (frontier, gate):
        await gate.check(A)

        with pytest.raises(RuntimeError, match="add raised"):
            await frontier.put(f"{A}/3")

        assert [task.url for task in await drained(frontier)] == [f"{A}/3"]


@memory_only
@pytest.mark.parametrize("rules", [b"Visit-time: 0000-2359", b"Disallow: /private"])
async def test_a_scheduler_that_fails_as_a_chosen_task_is_requeued_leaves_no_turn_behind(
    opened: Opened, rules: bytes
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
        async with opened(script, scheduler=Once()) as (frontier, gate):
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
                worker.result().unsent()
            await asyncio.sleep(20)

            async with asyncio.timeout(1_000), gate.permit(f"{A}/x"):
                pass
            await frontier.drain()


def no_scope_of_a_page(target: polite.Target) -> tuple[object, ...]:
    if target.path == "/1":
        raise ZeroDivisionError("no scope")
    return (target.origin,)


@pytest.mark.parametrize("pacing", [{"concurrency": 2}, {"scopes": no_scope_of_a_page}])
async def test_a_scheduler_that_fails_when_a_delay_ends_or_an_origin_is_dropped_is_reported(
    opened: Opened, drained: Drained, pacing: dict[str, Any]
) -> None:
    class Deaf(schedulers.Fifo):
        def ready(self, origin: polite.Origin) -> None:
            raise KeyError("broken")

    policy = polite.PacingPolicy(**pacing)
    async with opened(pacing=policy, scheduler=Deaf(), max_robots_tries=1) as (frontier, _):
        await frontier.put(f"{A}/1")

        async with asyncio.timeout(100_000):
            with pytest.raises(RuntimeError, match="ready"):
                await frontier.join()

        assert len(await drained(frontier)) == 1


async def test_tasks_whose_scopes_always_fail_are_dropped_after_the_limit_of_tries(opened: Opened) -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.path == "/robots.txt":
            return (target.origin,)
        raise ZeroDivisionError("no scope")

    options: dict[str, Any] = {"max_robots_tries": 4}
    async with opened(pacing=polite.PacingPolicy(scopes=scopes), **options) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        frontier.close()

        async with asyncio.timeout(10_000):
            assert [permit async for permit in frontier] == []
        assert frontier.dropped == 2


class CountingTransport(ScriptedTransport):
    """Counts the requests that are in flight at one time."""

    def __init__(self) -> None:
        super().__init__({})
        self.open = self.most = self.requests = 0

    async def get(self, ask: Ask) -> Reply:
        self.open += 1
        self.requests += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(5)
            return Reply(200, b"User-agent: *\nDisallow: /x\n")
        finally:
            self.open -= 1


async def test_rules_that_expire_while_queues_wait_are_fetched_within_the_limit(opened: Opened) -> None:
    transport = CountingTransport()
    rules = polite.RobotsPolicy(default_ttl=60, min_ttl=60, refresh_ahead=0)
    origins = [f"https://h{number}.test" for number in range(6)]
    options: dict[str, Any] = {"max_robots_fetches": 1}
    async with opened(transports={"https": transport}, robots=rules, **options) as (frontier, gate):

        async def hold(origin: str) -> None:
            async with gate.permit(f"{origin}/other"):
                await asyncio.sleep(300)

        for origin in origins:
            await gate.check(origin)
        transport.most = 0
        await frontier.put_many([f"{origin}/{page}" for origin in origins for page in range(2)])
        frontier.close()
        others = [asyncio.ensure_future(hold(origin)) for origin in origins]

        async for permit in frontier:
            async with permit:
                pass
        await asyncio.gather(*others)

        assert frontier.done == 12
        assert transport.requests > len(origins)
        assert transport.most == 1


async def test_a_task_that_was_granted_is_not_left_too_when_the_listener_aborts(
    opened: Opened, drained: Drained
) -> None:
    def abort(event: Event) -> None:
        if isinstance(event, Granted) and event.url.endswith("/1"):
            raise Abort

    async with opened(listener=abort) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        fetched = []
        try:
            async for permit in frontier:
                async with permit:
                    fetched.append(permit.url)
        except (Abort, RuntimeError):
            pass

        left = [task.url for task in frontier._dispatcher.left]
        assert fetched.count(f"{A}/1") + left.count(f"{A}/1") <= 1


async def test_scopes_that_abort_within_a_put_stop_the_frontier_and_leave_no_task_waiting(
    opened: Opened,
) -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.origin == polite.Origin.of(A) and target.path != "/robots.txt":
            raise Abort
        return (target.origin,)

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (frontier, gate):
        await gate.check(A)
        for url in (f"{A}/1", f"{A}/2", f"{B}/1"):
            try:
                await frontier.put(url)
            except (Abort, RuntimeError):
                break

        async with asyncio.timeout(100):
            with pytest.raises((Abort, RuntimeError)):
                await frontier.join()


async def test_a_pacer_that_closes_by_itself_ends_the_frontier(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many([f"{A}/{n}" for n in range(3)])
        async with await anext(frontier):
            pass
        await turns_of(gate).pacer.close()

        with pytest.raises(polite.GateClosed):
            await anext(frontier)


async def test_scopes_that_cannot_be_worked_out_end_the_frontier_with_their_error(
    opened: Opened, drained: Drained, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(pacing=polite.PacingPolicy(scopes=no_scope_of_a_page)) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])

        with pytest.raises(ZeroDivisionError, match="no scope"):
            await anext(frontier)

        assert len(await drained(frontier)) == 2
    assert "the frontier failed" in caplog.text


@pytest.mark.parametrize("known", [True, False])
async def test_an_overloaded_gate_is_asked_again(opened: Opened, known: bool) -> None:
    """`known`: the rules are known, and only turns are requested."""
    events: list[Event] = []
    pacing = polite.PacingPolicy(max_waiting=1)
    urls = [f"https://host{n}.test/{page}" for n in range(4) for page in range(2)]

    async with opened(pacing=pacing, listener=events.append) as (frontier, gate):
        if known:
            for url in urls:
                await gate.check(url)
        await frontier.put_many(urls)
        frontier.close()
        fetched = await fetch_all(frontier)

    assert sorted(fetched) == urls
    assert any("max_waiting" in event.because for event in events if isinstance(event, OriginPostponed))
