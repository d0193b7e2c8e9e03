"""`on_end`: the owner of a task learns once what became of it, and nothing of tasks that are kept or handed back."""

import asyncio
import logging

import pytest

import polite
from polite.events import Dropped, Event, Granted, Refused, Retried
from polite.frontier.frontier import Frontier
from polite.robots.exchange import Failed
from polite.task import Admission
from tests.support import RULES, A, B, end_next, fetch_all, fetch_rest, scripted_gate


class Ends:
    def __init__(self) -> None:
        self.told: list[tuple[polite.Task, polite.TaskOutcome]] = []

    def __call__(self, task: polite.Task, outcome: polite.TaskOutcome) -> None:
        self.told.append((task, outcome))

    @property
    def brief(self) -> list[tuple[str, str]]:
        return [(task.url, outcome.end.value) for task, outcome in self.told]


@pytest.fixture
def ends() -> Ends:
    return Ends()


async def test_a_task_that_is_done_is_told_once_before_join_returns(opened, ends):
    async with opened(on_end=ends) as (frontier, _):
        await frontier.put(f"{A}/1", payload=7)
        async with await anext(frontier):
            assert ends.told == []
        await frontier.join()
        ((task, outcome),) = ends.told

    assert (task.url, task.payload) == (f"{A}/1", 7)
    assert outcome == polite.TaskOutcome(polite.End.DONE, None, "done")


async def test_join_waits_for_what_on_end_puts(opened):
    def put_another(task: polite.Task, _: polite.TaskOutcome) -> None:
        if task.url == f"{A}/1":
            frontier.put_nowait(f"{A}/2")

    async with opened(on_end=put_another) as (frontier, _):
        await frontier.put(f"{A}/1")
        joined = asyncio.create_task(frontier.join())
        await end_next(frontier)
        async with asyncio.timeout(60):
            async with await anext(frontier) as permit:
                assert permit.url == f"{A}/2"
                assert not joined.done()
            await joined


async def test_a_url_that_put_itself_refuses_is_told_with_the_decision(opened, ends):
    async with opened({f"{A}/robots.txt": RULES}, on_end=ends) as (frontier, gate):
        await gate.check(A)
        assert await frontier.put(f"{A}/private/1") is Admission.REFUSED
        await asyncio.sleep(0)
        ((task, outcome),) = ends.told

    assert task.url == f"{A}/private/1"
    assert outcome.end is polite.End.REFUSED
    assert str(outcome.decision.rule) == "Disallow: /private (line 2)"
    assert outcome.because == "disallowed by Disallow: /private (line 2)"


async def test_a_task_without_tries_left_is_told_once_though_it_was_tried_often(opened, ends):
    async with opened(on_end=ends, max_tries=2) as (frontier, _):
        await frontier.put(f"{A}/1")
        frontier.close()
        async for permit in frontier:
            async with permit:
                permit.retry()
        await frontier.join()

    assert ends.brief == [(f"{A}/1", "dropped")]
    assert ends.told[0][1] == polite.TaskOutcome(polite.End.DROPPED, None, "max_tries=2")


async def test_tasks_of_an_origin_without_rules_are_told_each(opened, ends):
    script = {f"{A}/robots.txt": Failed(polite.Reason.TIMEOUT)}

    async with opened(script, on_end=ends, max_robots_tries=2) as (frontier, _):
        await frontier.put_many([f"{A}/{n}" for n in range(50)])
        await frontier.put(f"{B}/1")
        await fetch_rest(frontier)

    dropped = [(task.url, end.because) for task, end in ends.told if end.end is polite.End.DROPPED]
    assert sorted(dropped) == sorted((f"{A}/{n}", "TIMEOUT") for n in range(50))
    assert len(ends.told) == 51


async def test_what_it_raises_is_logged_and_the_crawl_goes_on(opened, caplog):
    def fail(task: polite.Task, outcome: polite.TaskOutcome) -> None:
        raise ValueError("mine")

    async with opened(on_end=fail) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        assert await fetch_rest(frontier) == [f"{A}/1", f"{A}/2"]

    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [r.getMessage() for r in failures] == [f"on_end failed for {A}/1", f"on_end failed for {A}/2"]


async def test_it_may_put_more_and_close(opened):
    links = iter([f"{A}/2", f"{A}/3"])
    frontier: Frontier

    def follow(task: polite.Task, outcome: polite.TaskOutcome) -> None:
        if (link := next(links, None)) is None:
            frontier.close()
        else:
            frontier.put_nowait(link)

    async with opened(on_end=follow) as (opened_frontier, _):
        frontier = opened_frontier
        await frontier.put(f"{A}/1")
        async with asyncio.timeout(100):
            fetched = await fetch_all(frontier)

    assert fetched == [f"{A}/1", f"{A}/2", f"{A}/3"]


async def test_events_carry_the_task_and_do_not_show_it(opened):
    events: list[Event] = []

    async with opened({f"{A}/robots.txt": RULES}, listener=events.append, max_tries=2) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/private"], payload="mine")
        frontier.close()
        async for permit in frontier:
            async with permit:
                permit.retry()

    about = [event for event in events if isinstance(event, Granted | Refused | Retried | Dropped)]
    assert [type(event) for event in about] == [Refused, Granted, Retried, Granted, Dropped]
    assert {event.task and event.task.payload for event in about} == {"mine"}
    assert not any("task" in repr(event) for event in about)


async def _later(task: polite.Task, outcome: polite.TaskOutcome) -> None: ...


@pytest.mark.parametrize("value", [1, "print", _later])
async def test_what_is_no_plain_function_is_refused(value):
    async with scripted_gate() as gate:
        with pytest.raises(polite.InvalidOption, match="on_end=.*plain function"):
            Frontier(gate, on_end=value)
