"""A `TaskPermit` carries its task, sends it back up to `max_tries`, and its misuse is an error, not a deadlock."""

import asyncio

import pytest

import polite
from polite.errors import PermitMisused
from polite.events import Dropped, Event, Retried
from tests.frontier.support import Opened, one_process
from tests.support import A, now


async def test_a_permit_carries_its_task(opened: Opened) -> None:
    payload = {"from": [f"{A}/", None], "weight": 0.5}

    async with opened() as (frontier, _):
        await frontier.put(f"{A}/x#part", priority=2.5, depth=3, deadline=9.0, payload=payload)
        permit = await anext(frontier)

    task = permit.task
    assert (permit.url, task.url, task.origin) == (f"{A}/x", f"{A}/x", polite.Origin.of(A))
    assert (task.number, task.priority, task.depth, task.deadline, task.tries) == (1, 2.5, 3, 9.0, 0)
    assert task.payload == payload


async def test_retry_is_for_inside_the_block(opened: Opened) -> None:
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


@one_process
async def test_a_permit_that_is_dropped_unentered_gives_turn_and_task_back_after_the_delay(opened, caplog):
    async with opened() as (frontier, _):
        await frontier.put(A)
        permit = await anext(frontier)
        given = now()
        del permit
        permit = await anext(frontier)

    # Its worker may have sent a request without entering it.
    assert (permit.task.tries, now()) == (0, given + 1.0)
    assert "use `async with permit`" in caplog.text


async def test_a_permit_that_is_entered_and_forgotten_gives_its_task_back_when_its_turn_is_taken(opened):
    async with opened(pacing=polite.PacingPolicy(max_hold=30.0)) as (frontier, _):
        await frontier.put(A)
        await (await anext(frontier)).enter()
        async with asyncio.timeout(60), await anext(frontier) as permit:
            assert permit.task.tries == 1


async def test_a_permit_left_without_being_entered_is_misused_and_counts_nothing(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        permit = await anext(frontier)
        for _each in range(2):
            with pytest.raises(polite.PermitMisused, match="left without being entered"):
                permit.leave()
        assert (frontier.waiting, frontier.in_flight, frontier.done) == (1, 1, 0)


@pytest.mark.parametrize("entered_by", ["block", "enter"])
async def test_a_permit_left_twice_ends_its_task_once(opened: Opened, entered_by: str) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        permit = await anext(frontier)
        if entered_by == "enter":
            await permit.enter()
            permit.leave()
        else:
            async with permit:
                permit.leave()
        permit.leave(OSError())

        assert (frontier.waiting, frontier.in_flight, frontier.done) == (1, 0, 1)


@pytest.mark.parametrize("state", ["given", "entered", "in a block"])
async def test_a_task_of_which_nothing_was_sent_waits_again_untried_and_without_a_delay(opened, state: str):
    async with opened() as (frontier, _):
        await frontier.put(A)
        permit = await anext(frontier)
        given = now()
        if state == "in a block":
            async with permit:
                permit.unsent()
        else:
            if state == "entered":
                await permit.enter()
            permit.unsent()
        permit.unsent()
        with pytest.raises(polite.PermitMisused, match="after its end"):
            await permit.enter()
        permit.leave()
        async with asyncio.timeout(100), await anext(frontier) as again:
            again.report(status=200)

        # A shared store takes a moment for each step.
        assert now() == pytest.approx(given, abs=0.5)
        assert (again.task.tries, frontier.done) == (0, 1)


@pytest.mark.parametrize("state", ["given", "entered"])
async def test_a_task_that_needs_no_request_any_more_is_done_and_delays_nothing(opened: Opened, state: str):
    async with opened() as (frontier, _):
        await frontier.put_many([A, f"{A}/b"])
        permit = await anext(frontier)
        given = now()
        if state == "entered":
            await permit.enter()
        permit.unsent(requeue=False)
        permit.unsent(requeue=False)
        async with asyncio.timeout(100), await anext(frontier) as other:
            other.report(status=200)
        frontier.close()
        await frontier.join()

        # A shared store takes a moment for each step.
        assert now() == pytest.approx(given, abs=0.5)
        assert permit.task is not other.task
        assert (frontier.done, frontier.waiting, frontier.in_flight) == (2, 0, 0)


@one_process
async def test_a_task_that_needs_no_request_now_is_done_though_its_permit_waits_anew(opened: Opened) -> None:
    async with opened(pacing=polite.PacingPolicy(max_hold=30.0, min_delay=10.0)) as (frontier, gate):
        await frontier.put(A)
        permit = await anext(frontier)
        await asyncio.sleep(31)
        async with gate.permit(f"{A}/other"):
            pass
        entering = asyncio.create_task(permit.enter())
        await asyncio.sleep(1)
        permit.unsent(requeue=False)
        with pytest.raises(PermitMisused):
            await entering

        assert (frontier.done, frontier.waiting, frontier.in_flight) == (1, 0, 0)


async def test_a_permit_asked_for_inside_a_frontiers_permit_of_its_origin_is_an_error_and_no_hang(opened):
    async with opened() as (frontier, gate):
        await frontier.put(A)
        async with await anext(frontier) as permit:
            with pytest.raises(PermitMisused, match="leave that block first"):
                async with gate.permit(f"{A}/other"):
                    pass
            permit.report(status=200)


@one_process
async def test_a_task_is_retried_after_a_time_with_its_tries_counted_until_the_limit(opened: Opened) -> None:
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

    assert (tries, times) == ([(0, "mine"), (1, "mine"), (2, "mine")], [1.0, 11.0, 21.0])
    assert answers == [True, True, False]
    assert [each for each in events if isinstance(each, Retried)] == [Retried(f"{A}/", n, 10) for n in (1, 2)]
    assert events[-1] == Dropped(f"{A}/", "max_tries=3", 3)
    assert (frontier.done, frontier.dropped) == (0, 1)


async def test_a_block_left_by_an_exception_requeues_its_task(opened: Opened) -> None:
    async with opened(max_tries=2) as (frontier, _):
        await frontier.put(A)
        for tries in range(2):
            permit = await anext(frontier)
            with pytest.raises(ZeroDivisionError):
                async with permit:
                    assert permit.task.tries == tries
                    raise ZeroDivisionError
        await frontier.join()

    assert (frontier.done, frontier.dropped) == (0, 1)


async def test_a_retry_is_accepted_however_full_the_frontier_is(opened: Opened) -> None:
    async with opened(max_waiting=1) as (frontier, _):
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
