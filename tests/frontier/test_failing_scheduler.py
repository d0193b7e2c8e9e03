"""A scheduler that raises or returns a wrong task is named in the error, and no task is lost."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite import schedulers
from polite.robots.exchange import Reply
from polite.task import Task
from tests.frontier.support import Drained, Opened, memory_only, one_process
from tests.support import A, B, fetch_all

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


async def test_a_task_of_an_origin_whose_turn_has_not_come_is_no_answer(
    opened: Opened, drained: Drained
) -> None:
    class Hasty(schedulers.Fifo):
        def next(self) -> Task:
            super().next()
            return self._tasks[polite.Origin.of(B).text][0][2]

    rules = Reply(200, b"User-agent: *\nCrawl-delay: 60")
    async with opened({f"{B}/robots.txt": rules}, frontier={"scheduler": Hasty()}) as (frontier, _):
        await frontier.put_many([A, B])

        with pytest.raises(RuntimeError, match=r"a task of https://b.test, whose turn has not come"):
            await anext(frontier)

        assert [task.url for task in await drained(frontier)] == [f"{A}/", f"{B}/"]


@one_process
async def test_a_scheduler_that_fails_while_a_task_is_put_raises_from_put(
    opened: Opened, drained: Drained
) -> None:
    async with opened(frontier={"scheduler": Wrong("raises in add")}) as (frontier, gate):
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
                worker.result().unsent()
            await asyncio.sleep(20)

            async with asyncio.timeout(1_000), gate.permit(f"{A}/x"):
                pass
            await frontier.drain()


async def test_a_scheduler_that_fails_when_a_delay_ends_is_reported(opened: Opened, drained: Drained) -> None:
    class Deaf(schedulers.Fifo):
        def ready(self, origin: polite.Origin) -> None:
            raise KeyError("broken")

    pacing = polite.PacingPolicy(concurrency=2)
    async with opened(pacing=pacing, frontier={"scheduler": Deaf()}) as (frontier, _):
        await frontier.put(A)

        with pytest.raises(RuntimeError, match="ready"):
            await frontier.join()

        assert len(await drained(frontier)) == 1


async def test_a_scheduler_that_fails_when_an_origin_is_dropped_is_reported(
    opened: Opened, caplog: pytest.LogCaptureFixture
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
    assert "no turn could be requested" in caplog.text
