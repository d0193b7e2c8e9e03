"""Tasks leave the frontier in the scheduler's order, one turn of their origin each, and no origin delays another."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite import schedulers
from polite.events import Event, Refused
from tests.frontier.support import Opened, memory_only, one_process, turns_of
from tests.support import RULES, A, B, fetch_all, fetch_rest, now


async def test_t5_tasks_are_given_out_only_where_rules_allow_it_and_refusals_told(opened: Opened) -> None:
    events: list[Event] = []
    async with opened({f"{A}/robots.txt": RULES}, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/private/2", f"{B}/private/3"])
        fetched = await fetch_rest(frontier)
    assert sorted(fetched) == [f"{A}/1", f"{B}/private/3"]
    assert [event for event in events if isinstance(event, Refused)] == [Refused(f"{A}/private/2", "RULE", 2)]
    assert (frontier.done, frontier.refused, frontier.dropped) == (2, 1, 0)


@one_process
async def test_t5_an_origins_tasks_keep_its_delay_and_others_do_not_wait_for_it(opened: Opened) -> None:
    fetched: list[tuple[float, str]] = []
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/{n}" for n in range(3)] + [f"{B}/{n}" for n in range(2)])
        frontier.close()
        await asyncio.gather(*(fetch_all(frontier, fetched) for _ in range(4)))
    assert [at for at, url in fetched if url.startswith(A)] == [1.0, 2.0, 3.0]
    assert [at for at, url in fetched if url.startswith(B)] == [1.0, 2.0]


@one_process
async def test_t5_a_scheduler_decides_the_order_and_never_the_time(opened: Opened) -> None:
    fetched: list[tuple[float, str]] = []
    async with opened(scheduler=schedulers.Priority()) as (frontier, _):
        for priority in range(3):
            await frontier.put(f"{A}/{priority}", priority=priority)
        await fetch_rest(frontier, fetched)
    assert fetched == [(1.0, f"{A}/2"), (2.0, f"{A}/1"), (3.0, f"{A}/0")]


async def test_a_task_chosen_in_vain_is_chosen_anew_when_the_turn_is_there(opened: Opened) -> None:
    async with opened(scheduler=schedulers.Priority()) as (frontier, gate):
        await frontier.put(f"{A}/early")
        await asyncio.sleep(5)
        async with gate.permit(A):
            worker = asyncio.create_task(anext(frontier))
            await asyncio.sleep(1)
            await frontier.put(f"{A}/late", priority=9)

        assert (await worker).url == f"{A}/late"


async def test_one_worker_gets_the_best_of_all_origins_whose_turn_has_come(opened: Opened) -> None:
    async with opened(scheduler=schedulers.Priority()) as (frontier, _):
        for number in range(20):
            await frontier.put(f"https://host{number}.test/", priority=number * 7 % 20)
        await asyncio.sleep(5)
        frontier.close()
        order = []
        async for permit in frontier:
            async with permit:
                order.append(permit.task.priority)

    assert order == sorted(range(20), reverse=True)


@one_process
async def test_workers_that_are_too_few_are_never_idle(opened: Opened) -> None:
    async with opened(scheduler=schedulers.RoundRobin()) as (frontier, _):
        await frontier.put_many(f"https://host{n % 100}.test/{n}" for n in range(400))
        frontier.close()
        await asyncio.gather(*(fetch_all(frontier, takes_s=0.1) for _ in range(5)))
    # One second for robots.txt and its rest, then 400 pages of 0.1 s on 5 workers.
    assert now() == pytest.approx(1.0 + 400 * 0.1 / 5)


async def test_an_origin_of_a_million_tasks_has_one_request_in_the_pacer(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many(f"{A}/{n}" for n in range(100))
        await frontier.put_many(f"{B}/{n}" for n in range(100))
        await asyncio.sleep(0.5)
        waiting = [turns_of(gate).outlook(polite.Target.of(url)).waiting for url in (A, B)]
    assert waiting == [1, 1]


@pytest.mark.parametrize("workers", [1, 2, 8])
async def test_concurrency_above_one_gives_several_turns_of_an_origin_with_the_delay_between_grants(
    opened: Opened, workers: int
) -> None:
    fetched: list[float] = []
    async with opened(pacing=polite.PacingPolicy(concurrency=3)) as (frontier, _):
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


async def test_an_origin_delayed_by_an_unused_grant_is_not_starved(opened: Opened) -> None:
    opening = opened(pacing=polite.PacingPolicy(concurrency=2), scheduler=schedulers.Priority())
    async with opening as (frontier, _):
        await frontier.put_many((f"{A}/{n}" for n in range(3)), priority=1)
        await frontier.put_many(f"https://host{n}.test/" for n in range(100))
        order = await fetch_rest(frontier, takes_s=0.3)
    assert max(order.index(f"{A}/{n}") for n in range(3)) < 15


async def test_scopes_that_differ_from_url_to_url_are_obeyed(opened: Opened) -> None:
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


@memory_only
async def test_at_most_500_tasks_are_given_out_in_one_step_of_the_loop(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many(f"https://h{number}.test/" for number in range(700))
        await asyncio.sleep(10)
        workers, given = [asyncio.ensure_future(anext(frontier)) for _ in range(700)], [0]
        while given[-1] < 700:
            await asyncio.sleep(0)
            given.append(frontier.in_flight)
        assert max(later - earlier for earlier, later in pairwise(given)) == 500
        await asyncio.gather(*workers)


async def test_an_origin_with_its_turn_blocks_no_other_while_no_worker_is_idle(opened: Opened) -> None:
    """With one scope for all, a turn kept for a worker would keep everybody else from theirs."""
    async with opened(pacing=polite.PacingPolicy(scopes=lambda _: ("all",))) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{B}/1"])
        await asyncio.sleep(10)
        async with asyncio.timeout(10), gate.permit("https://c.test/"):
            pass
        assert sorted(await fetch_rest(frontier)) == [f"{A}/1", f"{B}/1"]
