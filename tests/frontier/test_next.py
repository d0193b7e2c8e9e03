"""`next`, which tells that nothing is left; `put_nowait` and `until_waiting`, for a host that has a loop of its own."""

import asyncio

import pytest

import polite
from polite.frontier.frontier import FrontierClosed
from polite.task import Admission
from tests.frontier.support import Opened, fetched_by_next
from tests.support import RULES, A, B, now


async def test_next_returns_none_when_nothing_is_left_though_the_frontier_is_open(opened: Opened) -> None:
    async with opened() as (frontier, _):
        assert await frontier.next() is None

        await frontier.put(f"{A}/1")
        permit = await frontier.next()
        async with permit:
            waiting = asyncio.create_task(frontier.next())
            await asyncio.sleep(30)
            early = waiting.done()

        assert await waiting is None
        await frontier.put(f"{A}/2")
        assert [task.url for task in await fetched_by_next(frontier)] == [f"{A}/2"]

    assert not early


async def test_next_waits_while_a_task_may_be_retried(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(f"{A}/1")
        permit = await frontier.next()
        assert permit is not None
        other = asyncio.create_task(frontier.next())
        await asyncio.sleep(5)
        async with permit:
            permit.retry(after=50)
        again = await other

        assert (again.url, again.task.tries) == (f"{A}/1", 1)
        assert now() >= 55
        async with again:
            pass


async def test_next_raises_what_stopped_the_frontier(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put(f"{A}/1", not_before=2_000_000_000.0)
        asking = asyncio.create_task(frontier.next())
        await asyncio.sleep(1)
        await gate.close()

        with pytest.raises(polite.GateClosed):
            await asking
        with pytest.raises(polite.GateClosed):
            await frontier.next()
        with pytest.raises(polite.GateClosed):
            await frontier.until_waiting(5)


async def test_put_nowait_returns_a_future_of_the_admission(opened: Opened) -> None:
    async with opened({f"{A}/robots.txt": RULES}) as (frontier, gate):
        await gate.check(A)
        futures = [frontier.put_nowait(f"{A}/{path}", depth=3) for path in ("1", "1", "private")]

        assert await asyncio.gather(*futures) == [Admission.WAITING, Admission.DUPLICATE, Admission.REFUSED]
        permit = await frontier.next()
        assert permit.task.depth == 3


async def test_put_nowait_raises_at_once(opened: Opened) -> None:
    async with opened(max_waiting=1) as (frontier, _):
        with pytest.raises(polite.InvalidURL):
            frontier.put_nowait("http://")
        with pytest.raises(polite.InvalidOption, match="depth"):
            frontier.put_nowait(A, depth=float("nan"))  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            frontier.put_nowait(A, wait=True)  # type: ignore[call-arg]
        frontier.put_nowait(A)
        with pytest.raises(polite.Overloaded, match="max_waiting=1"):
            frontier.put_nowait(B)
        frontier.close()
        with pytest.raises(FrontierClosed):
            frontier.put_nowait(B)


async def test_until_waiting_returns_when_few_enough_tasks_wait(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/{page}" for page in range(5)])
        waited = asyncio.create_task(frontier.until_waiting(2))
        frontier.close()
        left = []
        async for permit in frontier:
            async with permit:
                await asyncio.sleep(1)
                left.append((frontier.waiting, waited.done()))

    assert [done for waiting, done in left] == [waiting <= 2 for waiting, _ in left]
    assert {waiting for waiting, _ in left} == {0, 1, 2, 3, 4}
