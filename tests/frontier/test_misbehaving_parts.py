"""Schedulers, scopes, listeners and pacers that fail are named or asked again: no task is lost, and nothing waits for ever."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite import schedulers
from polite.events import Event, OriginPostponed
from polite.robots.exchange import Reply
from polite.task import Task
from tests.support import A, B, fetch_all, fetch_rest, scripted_gate


class Wrong(schedulers.Fifo):
    """Answers rightly twice, then as it is told."""

    def __init__(self, wrong: str, error: type[BaseException]) -> None:
        super().__init__()
        self.wrong, self.error = wrong, error
        self.chosen: list[Task] = []
        self.calls = 0

    def add(self, task: Task) -> None:
        if self.wrong == "raises in add" and task.url.endswith("3"):
            raise self.error
        super().add(task)

    def ready(self, origin: polite.Origin) -> None:
        if self.wrong == "raises in ready" and self.calls == 2:
            raise self.error
        super().ready(origin)

    def next(self):
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
            case "raises in next":
                raise self.error
        return super().next()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("nothing", "returned None, which is no task"),
        ("the same twice", "a task that does not wait"),
        ("a foreign origin", "a task that does not wait"),
        ("raises in next", "next raised {}"),
        ("raises in add", "add raised {}"),
        ("raises in ready", r"ready\(https://a.test\) raised {}"),
    ],
)
@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError])
async def test_a_faulty_scheduler_is_named_and_no_task_is_lost(opened, drained, wrong, message, error):
    message = message.format(error.__name__)
    urls = [f"{A}/{n}" for n in range(6)]
    fetched: list[tuple[float, str]] = []

    async with opened(scheduler=Wrong(wrong, error)) as (frontier, gate):
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
        assert all(later - earlier > 0.999999 for (earlier, _), (later, _) in pairwise(fetched))
        async with asyncio.timeout(2), gate.permit(A):
            pass


async def test_a_task_of_an_origin_whose_turn_is_to_come_is_no_answer(opened, drained):
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


def no_scope_of_a_page(target: polite.Target) -> tuple[object, ...]:
    if target.path == "/1":
        raise ZeroDivisionError("no scope")
    return (target.origin,)


@pytest.mark.parametrize("pacing", [{"concurrency": 2}, {"scopes": no_scope_of_a_page}])
async def test_a_scheduler_that_fails_when_a_delay_ends_or_an_origin_is_dropped_is_reported(
    opened, drained, pacing
):
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


async def test_tasks_whose_scopes_always_fail_are_dropped_after_the_limit_of_tries(opened):
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.path == "/robots.txt":
            return (target.origin,)
        raise ZeroDivisionError("no scope")

    options = {"max_robots_tries": 4}
    async with opened(pacing=polite.PacingPolicy(scopes=scopes), **options) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        frontier.close()

        async with asyncio.timeout(10_000):
            assert [permit async for permit in frontier] == []
        assert frontier.dropped == 2


async def test_a_listener_that_stops_the_frontier_when_an_origin_is_postponed_leaves_no_timer() -> None:
    frontiers: list[polite.Frontier] = []

    def stop(event: Event) -> None:
        if isinstance(event, OriginPostponed):
            frontiers[0].stop()

    async with scripted_gate({f"{A}/robots.txt": Reply(503, retry_after="600")}, listener=stop) as gate:
        frontiers.append(polite.Frontier(gate))
        await frontiers[0].put(A)
        await asyncio.sleep(100)
        timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        assert not [each for each in timers if "TimerQueue" in repr(each) and not each.cancelled()]


async def test_scopes_that_cannot_be_worked_out_end_the_frontier_with_their_error(opened, drained, caplog):
    async with opened(pacing=polite.PacingPolicy(scopes=no_scope_of_a_page)) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        with pytest.raises(polite.InvalidOption, match=f"no_scope_of_a_page.*{A}/1.*no scope"):
            await anext(frontier)
        assert len(await drained(frontier)) == 2
    assert "the frontier failed" in caplog.text


@pytest.mark.parametrize("known", [True, False])
async def test_an_overloaded_gate_is_asked_again(opened, known):
    """`known`: the rules are known, and only turns are requested."""
    events: list[Event] = []
    pacing = polite.PacingPolicy(max_waiting=1)
    urls = [f"https://host{n}.test/{page}" for n in range(4) for page in range(2)]

    async with opened(pacing=pacing, listener=events.append) as (frontier, gate):
        if known:
            for url in urls:
                await gate.check(url)
        await frontier.put_many(urls)
        fetched = await fetch_rest(frontier)

    assert sorted(fetched) == urls
    assert any("max_waiting" in event.because for event in events if isinstance(event, OriginPostponed))
