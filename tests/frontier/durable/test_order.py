"""The order of a scheduler holds for the tasks in a file as for those in memory."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest

import polite
from polite import schedulers
from polite.frontier.sqlite.schema import SQL_KEYS
from polite.frontier.task_store import draft_of
from tests.frontier.durable.support import fetch, opened, urls_of
from tests.support import A

pytestmark = pytest.mark.virtual_time


def with_order(order: Any) -> schedulers.Fifo:
    scheduler = schedulers.Fifo()
    scheduler.order = order
    return scheduler


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


async def test_the_best_origin_and_the_one_that_has_waited_longest_become_active_in_turns(path: Path) -> None:
    async with opened(path, scheduler=schedulers.Priority(), max_active_origins=1) as frontier:
        for number in range(6):
            await frontier.put(f"https://h{number}.test/", priority=number)
        frontier.close()

        assert [url[9] for url in await urls_of(frontier)] == ["0", "5", "1", "4", "2", "3"]


@pytest.mark.parametrize("order", get_args(schedulers.FileOrder))
def test_the_key_in_sql_is_the_key_in_python(order: schedulers.FileOrder) -> None:
    draw = random.Random(1)
    drafts = [
        draft_of(draw.uniform(-9, 9), draw.randrange(9), None, draw.choice([None, draw.random()]))
        for _ in range(20)
    ]
    query = f"SELECT {SQL_KEYS[order] or 0} FROM (SELECT ? AS priority, ? AS depth, ? AS deadline)"  # noqa: S608 - the words are ours

    with closing(sqlite3.connect(":memory:")) as database:
        found = [
            database.execute(query, (draft.priority, draft.depth, draft.deadline)).fetchone()[0]
            for draft in drafts
        ]

    assert found == [schedulers.ORDERS[order](draft) for draft in drafts]
    assert set(SQL_KEYS) == set(schedulers.ORDERS) == set(get_args(schedulers.FileOrder))


async def test_an_order_that_no_file_knows_is_refused(path: Path) -> None:
    with pytest.raises(polite.InvalidOption, match=r"Fifo\.order='alphabet'"):
        async with opened(path, scheduler=with_order("alphabet")):
            pass


async def test_a_scheduler_that_names_no_order_gets_tasks_as_they_were_put(path: Path) -> None:
    class Own:
        def __init__(self) -> None:
            inner = schedulers.Fifo()
            self.add, self.ready, self.next = inner.add, inner.ready, inner.next

    async with opened(path, scheduler=Own()) as frontier:
        await frontier.put_many(f"{A}/{n}" for n in range(50))

        assert await urls_of(frontier, 50) == [f"{A}/{n}" for n in range(50)]
