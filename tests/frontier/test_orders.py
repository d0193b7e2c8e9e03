"""What an operator holds, forbids and drops of a frontier's tasks."""

import asyncio
import random
from collections import Counter
from contextlib import suppress

import pytest

import polite
from polite.events import Dropped, Event, Refused
from polite.orders import Order
from tests.frontier.support import Opened, memory_only, one_process
from tests.support import A, B, TimedTransport, fetch_all, now, scripted_gate

WHY = {"because": "the owner called", "by": "ann@ops"}


async def crawl(frontier):
    frontier.close()
    async with asyncio.timeout(1_000_000):
        return await fetch_all(frontier)


async def test_a_held_origin_gets_no_request_and_its_tasks_go_on_after_the_release(opened: Opened) -> None:
    transport = TimedTransport({})
    async with opened(transport) as (frontier, gate):
        await gate.hold(A, **WHY)
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{B}/1"])
        crawling = asyncio.create_task(crawl(frontier))
        await asyncio.sleep(10_000)

        assert frontier.waiting == 2
        assert not [url for url in transport.asked if url.startswith(A)]
        released_at = now()
        await gate.release(A)
        assert sorted(await crawling) == [f"{A}/1", f"{A}/2", f"{B}/1"]
        assert now() - released_at < 10


async def test_tasks_that_wait_for_their_turn_are_held_and_the_hold_ends_by_itself(opened: Opened) -> None:
    async with opened(pacing=polite.PacingPolicy(min_delay=10)) as (frontier, gate):
        fetched: list[tuple[float, str]] = []
        await frontier.put_many([f"{A}/{n}" for n in range(4)])
        crawling = asyncio.create_task(fetch_all(frontier, fetched))
        while len(fetched) < 2:
            await asyncio.sleep(1)
        frontier.close()
        held_at = now()
        await gate.hold("*.test", for_=500, **WHY)
        await crawling
        late = [at for at, _ in fetched if at > held_at]
        assert len(late) == 2
        assert late[0] >= held_at + 499.9


async def test_the_beginning_of_urls_is_held_while_the_rest_of_the_origin_goes_on(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await gate.hold(f"{A}/search", **WHY)
        await frontier.put_many([f"{A}/search/1", f"{A}/1", f"{A}/search/2", f"{A}/2"])
        crawling = asyncio.create_task(crawl(frontier))
        await asyncio.sleep(1_000)
        assert (frontier.waiting, frontier.done) == (2, 2)
        await gate.release(f"{A}/search")
        assert sorted((await crawling)[2:]) == [f"{A}/search/1", f"{A}/search/2"]


@pytest.mark.parametrize("pattern", [A, "*.a.test", f"{A}/"])
async def test_forbidden_tasks_are_refused(opened: Opened, pattern: str) -> None:
    events: list[Event] = []
    ended: list[tuple[str, str]] = []
    options = {"on_end": lambda task, outcome: ended.append((task.url, outcome.because))}
    async with opened(TimedTransport({}), listener=events.append, **options) as (frontier, gate):
        await frontier.put_many([f"{A}/{n}" for n in range(40)] + [f"{B}/1"])
        crawling = asyncio.create_task(crawl(frontier))
        while frontier.done < 3:
            await asyncio.sleep(1)
        forbidden_at = now()
        await gate.forbid(pattern, **WHY)
        await crawling

        refused = [each for each in events if isinstance(each, Refused)]
        assert now() - forbidden_at < 60
        assert {each.reason for each in refused} == {"OPERATOR"}
        assert len(refused) == frontier.refused == 41 - frontier.done > 30
        assert ("disallowed: forbidden by ann@ops: the owner called") in {because for _, because in ended}


async def test_only_the_beginning_of_urls_is_forbidden(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many([f"{A}/x/1", f"{A}/1", f"{A}/x/2"])
        await gate.forbid(f"{A}/x", **WHY)
        await frontier.put(f"{A}/x/3")
        assert await crawl(frontier) == [f"{A}/1"]
        assert frontier.refused == 3


@one_process
@pytest.mark.parametrize("pattern", [A, "*.a.test", f"{A}/x"])
async def test_tasks_are_dropped_with_their_fate_told_and_later_ones_stay(opened, pattern):
    events: list[Event] = []
    ended: list[str] = []
    options = {"on_end": lambda task, outcome: ended.append(f"{task.url} {outcome.because}")}
    async with opened(listener=events.append, **options) as (frontier, _):
        await frontier.put_many([f"{A}/x{n}" for n in range(100)] + [f"{B}/1"])
        await frontier.put(f"{A}/x-later", not_before=1_700_000_000.0 + 5_000)
        crawling = asyncio.create_task(fetch_all(frontier))
        while not frontier.done:
            await asyncio.sleep(0.1)
        assert await frontier.drop(pattern, **WHY) > 95
        await frontier.put(f"{A}/x-new")
        dropped_at = now()
        frontier.close()
        fetched = await crawling

        dropped = [each for each in events if isinstance(each, Dropped)]
        assert f"{A}/x-new" in fetched
        assert frontier.dropped == len(dropped) == 103 - len(fetched) > 95
        assert {each.because for each in dropped} == {"dropped by ann@ops: the owner called"}
        assert f"{A}/x99 dropped by ann@ops: the owner called" in ended
        assert now() - dropped_at < 10


async def test_an_order_to_drop_of_another_process_is_carried_out(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many([f"{A}/{n}" for n in range(10)])
        operator = gate.services.turns.operator
        await operator.give(operator.order("drop", "*.test", for_=3_600, **WHY))
        assert await crawl(frontier) == []
        assert frontier.dropped == 10


@memory_only
async def test_a_shared_drop_ends_with_its_time(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        operator = gate.services.turns.operator
        await operator.give(operator.order("drop", "*.test", for_=100, **WHY))
        await asyncio.sleep(101)
        await frontier.put(f"{A}/1")
        assert await crawl(frontier) == [f"{A}/1"]


@pytest.mark.parametrize("seed", range(4))
async def test_in_a_crawl_full_of_orders_no_held_url_is_given_and_each_task_ends_once(opened, seed):
    """Orders come and go at random; at the end all is released, and all that is left is fetched."""
    chance = random.Random(seed)
    hosts = [f"https://h{number}.{name}.test" for number in range(3) for name in "ab"]
    patterns = [*hosts, "*.a.test", "*.b.test", *(f"{host}/x" for host in hosts)]
    standing: dict[str, tuple[str, float]] = {}
    ends: Counter[str] = Counter()
    put: set[str] = set()
    options = {
        "pacing": polite.PacingPolicy(
            min_delay=chance.choice([0.1, 3.0]), concurrency=chance.choice([1, 1, 3])
        ),
        "on_end": lambda task, _: ends.update([task.url]),
        "max_active_origins": chance.choice([2, 100]),
        "max_robots_fetches": chance.choice([1, 100]),
    }

    def stands(url: str) -> bool:
        origin = polite.Origin.of(url)
        orders = [Order(kind="hold", pattern=each, because="x", by="y", at=0.0) for each in standing]
        return any(each.covers(origin, polite.Target.of(url).path) for each in orders)

    async def work(frontier):
        async for permit in frontier:
            # It may be forbidden between its grant and here.
            with suppress(polite.Disallowed):
                async with permit:
                    assert not stands(permit.url), f"{permit.url} under {standing} at {now()}"
                    await asyncio.sleep(chance.choice([0.0, 0.5]))
                    permit.report(status=200)
                    if chance.random() < 0.1:
                        permit.retry(after=chance.choice([0.0, 5.0]))

    async def order(frontier, gate):
        pattern = chance.choice(patterns)
        match chance.choice(["hold", "hold", "forbid", "drop", "release", "release", "put"]):
            case "put":
                urls = [f"{chance.choice(hosts)}/{chance.choice('xy')}{len(put) + n}" for n in range(20)]
                await frontier.put_many(urls)
                put.update(urls)
            case "drop" if chance.random() < 0.3:
                await frontier.drop(pattern, **WHY)
            case "forbid" if chance.random() < 0.3:
                standing[pattern] = ("forbid", now())
                await gate.forbid(pattern, **WHY)
            case "hold":
                standing[pattern] = ("hold", now())
                await gate.hold(pattern, **WHY)
            case "release" if standing:
                gone = chance.choice(list(standing))
                del standing[gone]
                await gate.release(gone)

    async with opened(TimedTransport({}, delay_s=0.1), **options) as (frontier, gate):
        workers = [asyncio.create_task(work(frontier)) for _ in range(3)]
        for _ in range(60):
            await order(frontier, gate)
            await asyncio.sleep(chance.choice([0.0, 0.0, 0.3, 7.0, 200.0]))
        standing.clear()
        # Those that a shared frontier gives to drop, too.
        for pattern in {each.pattern for each in gate.orders}:
            await gate.release(pattern)
        frontier.close()
        async with asyncio.timeout(100_000):
            await asyncio.gather(*workers)
            await frontier.join()

        assert set(ends.values()) == {1}
        assert set(ends) == put
        assert (frontier.waiting, frontier.in_flight) == (0, 0)
        assert frontier.done + frontier.refused + frontier.dropped == len(put)


async def test_what_waits_for_a_time_and_the_start_of_urls_are_dropped_for_good(tmp_path):
    path, ends = str(tmp_path / "queue.sqlite"), dict[str, str]()
    options = {"store": path, "on_end": lambda task, how: ends.update({task.url: how.end.value})}
    urls = {f"{A}/1", f"{B}/cal", f"{B}/later", *(f"{A}/cal/{number}" for number in range(9))}
    async with scripted_gate() as gate, polite.open_frontier(gate, **options) as frontier:
        await frontier.put_many(sorted(urls - {f"{B}/later"}))
        await frontier.put(f"{B}/later", not_before=1_700_000_000.0 + 5_000)
        await gate.hold(f"{A}/cal/5", **WHY)
        crawling = asyncio.create_task(fetch_all(frontier))
        await asyncio.sleep(2.5)
        crawling.cancel()
        count = await frontier.drop(f"{A}/cal/", **WHY) + await frontier.drop(f"{B}/l", **WHY)
    dropped = {url for url, how in ends.items() if how == "dropped"}
    assert dropped == {
        url
        for url in urls - {url for url, how in ends.items() if how == "done"}
        if "/cal/" in url or "/l" in url
    }
    assert count == len(dropped) >= 7
    left = urls - ends.keys()
    async with scripted_gate() as gate, polite.open_frontier(gate, **options) as frontier:
        assert set(await crawl(frontier)) == left
    assert ends.keys() == urls


@memory_only
async def test_a_frontier_that_opens_obeys_a_drop_that_stands(opened: Opened) -> None:
    async with opened() as (_, gate):
        operator = gate.services.turns.operator
        await operator.give(operator.order("drop", A, for_=100, **WHY))
        later = polite.Frontier(gate)
        await later.put_many([f"{A}/1", f"{B}/1"])
        assert await crawl(later) == [f"{B}/1"]
        assert later.dropped == 1


@one_process
@pytest.mark.parametrize("state", ["held before", "rules unknown", "a long delay"])
async def test_what_forbids_all_of_an_origin_refuses_its_tasks_at_once(opened: Opened, state: str) -> None:
    transport = TimedTransport({}, delay_s=50.0 if state == "rules unknown" else 0.0)
    async with opened(transport, pacing=polite.PacingPolicy(min_delay=3_600)) as (frontier, gate):
        if state == "held before":
            await gate.hold(A, **WHY)
        await frontier.put_many(f"{A}/{number}" for number in range(20))
        crawling = asyncio.create_task(fetch_all(frontier))
        await asyncio.sleep(5_000 if state == "held before" else 10)
        await gate.forbid(A, **WHY)
        await asyncio.sleep(10)
        frontier.close()
        await crawling
        assert frontier.done + frontier.refused == 20
        assert frontier.refused >= 18
        assert now() < 8_000


async def test_a_drop_that_is_given_up_is_carried_out_and_concerns_nothing_later(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many([f"{A}/%73ecret/1", f"{A}/secret/2", f"{A}/3"])
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await frontier.drop(f"{A}/secret", **WHY)
        await asyncio.sleep(5)
        for pattern in {order.pattern for order in gate.orders}:
            await gate.release(pattern)
        await frontier.put(f"{A}/secret/4")
        assert sorted(await crawl(frontier)) == [f"{A}/3", f"{A}/secret/4"]
        assert frontier.dropped == 2
