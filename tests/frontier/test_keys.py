"""`key` and `unique`: duplicates by a key of the caller, or none at all, with each store."""

import asyncio
from typing import Any

import pytest

import polite
from polite.task import Admission
from tests.frontier.support import Opened, one_process
from tests.support import RULES, A, B, fetch_all

pytestmark = pytest.mark.virtual_time

WAITING, DUPLICATE = Admission.WAITING, Admission.DUPLICATE
HTTP = "http://a.test"


async def fetched_tasks(frontier: polite.Frontier) -> list[polite.Task]:
    """Fetch all, and return the tasks."""
    tasks = []
    while (permit := await frontier.next()) is not None:
        async with permit:
            tasks.append(permit.task)
    return tasks


async def test_two_keys_are_two_tasks_and_one_key_is_one(opened: Opened) -> None:
    async with opened() as (frontier, _):
        admissions = [
            await frontier.put(f"{A}/form", key="POST a=1"),
            await frontier.put(f"{A}/form", key="POST a=2"),
            await frontier.put(f"{A}/other", key="POST a=1"),
        ]
        tasks = await fetched_tasks(frontier)

        assert admissions == [WAITING, WAITING, DUPLICATE]
        assert [(task.url, task.key, task.unique) for task in tasks] == [
            (f"{A}/form", "POST a=1", True),
            (f"{A}/form", "POST a=2", True),
        ]
        assert await frontier.put(f"{A}/form", key="POST a=2") is DUPLICATE
        assert await frontier.put(f"{A}/form", key="POST a=2", again=True) is WAITING
        assert frontier.done == 2


async def test_a_url_and_a_key_are_no_duplicates_of_each_other(opened: Opened) -> None:
    async with opened() as (frontier, _):
        url = f"{A}/a"
        puts = [await frontier.put(url), await frontier.put(url, key=url), await frontier.put(url, key="/a")]

        assert puts == [WAITING] * 3
        assert [task.key for task in await fetched_tasks(frontier)] == [None, url, "/a"]


async def test_a_key_is_compared_within_its_origin(opened: Opened) -> None:
    async with opened() as (frontier, _):
        puts = [await frontier.put(f"{origin}/", key="k") for origin in (A, B, HTTP, A)]

        assert puts == [WAITING, WAITING, WAITING, DUPLICATE]


async def test_a_task_that_is_not_unique_is_never_a_duplicate(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(f"{A}/1")
        puts = [await frontier.put(f"{A}/1", unique=False, payload=number) for number in range(3)]
        puts += await frontier.put_many([f"{A}/1"] * 2, unique=False)
        puts.append(await frontier.put_nowait(f"{A}/1", unique=False))
        tasks = await fetched_tasks(frontier)

        assert puts == [WAITING] * 6
        assert [(task.unique, task.key) for task in tasks] == [(True, None), *[(False, None)] * 6]
        assert frontier.done == 7
        assert await frontier.put(f"{A}/1") is DUPLICATE


async def test_what_was_not_unique_is_not_remembered(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(f"{A}/1", unique=False)
        await fetched_tasks(frontier)

        assert await frontier.put(f"{A}/1") is WAITING
        assert await frontier.put(f"{A}/1", unique=False) is WAITING


@one_process
async def test_what_was_not_unique_takes_no_place_of_urls_that_are_remembered(opened: Opened) -> None:
    async with opened(frontier={"max_done": 1}) as (frontier, _):
        await frontier.put(f"{A}/1")
        await fetched_tasks(frontier)
        for _ in range(3):
            await frontier.put(f"{A}/2", unique=False)
            await fetched_tasks(frontier)

        assert await frontier.put(f"{A}/1") is DUPLICATE


async def test_a_task_that_is_not_unique_waits_for_capacity_and_no_lookup(opened: Opened) -> None:
    async with opened(frontier={"max_waiting": 1}) as (frontier, _):
        await frontier.put(f"{A}/1", key="k")
        assert await frontier.put(f"{A}/1", key="k", wait=False) is DUPLICATE
        with pytest.raises(polite.Overloaded):
            await frontier.put(f"{A}/1", unique=False, wait=False)
        with pytest.raises(polite.Overloaded):
            await frontier.put(f"{A}/1", key="other", wait=False)


async def test_each_way_back_keeps_key_and_tries(opened: Opened) -> None:
    async with opened(frontier={"max_tries": 5}) as (frontier, _):
        await frontier.put(f"{A}/1", key="k")
        await frontier.put(f"{A}/1", unique=False)
        await frontier.put(f"{A}/1")
        seen = []
        for _ in range(6):
            async with await anext(frontier) as permit:
                seen.append((permit.task.key, permit.task.unique, permit.task.tries))
                permit.retry(after=50.0)
        for _ in range(3):
            unused = await anext(frontier)
            del unused
            await asyncio.sleep(1)
        last = [(task.key, task.unique, task.tries) for task in await fetched_tasks(frontier)]

    kinds = [(None, False), (None, True), ("k", True)]
    assert sorted(map(repr, seen)) == sorted(repr((*kind, tries)) for kind in kinds for tries in (0, 1))
    assert sorted(map(repr, last)) == sorted(repr((*kind, 2)) for kind in kinds)


async def test_each_ends_once_with_on_end(opened: Opened) -> None:
    ended: list[tuple[str | None, bool, str]] = []

    def on_end(task: polite.Task, outcome: polite.TaskOutcome) -> None:
        ended.append((task.key, task.unique, outcome.end.value))

    async with opened({f"{A}/robots.txt": RULES}, frontier={"on_end": on_end}) as (frontier, _):
        for path in ("/1", "/private"):
            await frontier.put(A + path)
            await frontier.put(A + path, key=f"k{path}")
            await frontier.put(A + path, unique=False)
            await frontier.put(A + path, unique=False)
        frontier.close()
        assert await fetch_all(frontier) == [f"{A}/1"] * 4

    assert sorted(map(repr, ended)) == sorted(
        repr((key, unique, end))
        for path, end in (("/1", "done"), ("/private", "refused"))
        for key, unique in ((None, True), (f"k{path}", True), (None, False), (None, False))
    )


async def test_delayed_tasks_keep_their_keys(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        at = gate.services.clock.wall() + 100
        await frontier.put(f"{A}/1", key="k", not_before=at)
        await frontier.put(f"{A}/1", unique=False, not_before=at)
        assert await frontier.put(f"{A}/1", key="k") is DUPLICATE

        tasks = await fetched_tasks(frontier)

    assert sorted((task.key or "", task.unique) for task in tasks) == [("", False), ("k", True)]


@pytest.mark.parametrize("key", ["", 1, b"k", "\ud800", "x" * 16_385])
async def test_a_key_that_cannot_be_kept_is_refused(opened: Opened, key: Any) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(polite.InvalidOption, match="key="):
            await frontier.put(A, key=key)
        assert frontier.waiting == 0


async def test_a_key_of_a_task_that_is_not_unique_is_refused(opened: Opened) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(polite.InvalidOption, match="needs no key"):
            await frontier.put(A, key="k", unique=False)
        with pytest.raises(polite.InvalidOption, match="unique must be True or False"):
            frontier.put_nowait(A, unique=None)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="key"):
            await frontier.put_many([A], key="k")  # type: ignore[call-arg]


async def test_the_longest_key_is_kept(opened: Opened) -> None:
    key = "é\n\0*=" + "x" * 16_378

    async with opened() as (frontier, _):
        await frontier.put(A, key=key)

        assert [task.key for task in await fetched_tasks(frontier)] == [key]
