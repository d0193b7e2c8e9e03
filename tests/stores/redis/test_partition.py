"""One batch after the other to one partition, in virtual time, over a connection that delays and loses messages."""

import asyncio
import random

import pytest

from polite.errors import StoreFailed
from polite.stores.redis.changes import Changes, Load, Lookup, Out, Requeued
from polite.stores.redis.home import Home
from polite.testing import LoopClock
from tests.stores.redis.partitions import HELD_S, on, submit
from tests.stores.redis.scripted_link import Fault, Request, ScriptedLink, digests, ended, put

pytestmark = pytest.mark.virtual_time


# Batches


async def test_urgent_changes_are_collected_for_30_ms() -> None:
    link = ScriptedLink()
    partition = on(link)

    first = partition.submit(Changes(puts=[put(1)]))
    await asyncio.sleep(0.02)
    second = partition.submit(Changes(puts=[put(2)]))
    await asyncio.gather(first, second)

    assert [(when, digests(request["puts"])) for when, request in link.requests] == [
        (pytest.approx(0.03), [1, 2])
    ]


async def test_lazy_changes_go_with_the_next_urgent_batch() -> None:
    link = ScriptedLink()
    partition = on(link)

    partition.submit(Changes(ended=[ended(1)]), lazy=True)
    await submit(partition, puts=[put(2)])

    assert [(digests(r["ended"]), digests(r["puts"])) for r in link.sent] == [([1], [2])]


async def test_one_batch_is_under_way_and_the_rest_makes_the_next() -> None:
    link = ScriptedLink(delay_s=0.5)
    partition = on(link)

    sent = []
    for number in range(20):
        sent.append(partition.submit(Changes(puts=[put(number)])))
        await asyncio.sleep(0.05)
    await asyncio.gather(*sent)

    assert link.most_under_way == 1
    assert [digests(request["puts"]) for request in link.sent] == [
        [0],
        list(range(1, 11)),
        list(range(11, 20)),
    ]


async def test_a_wish_during_a_call_is_not_forgotten() -> None:
    link = ScriptedLink(delay_s=0.5)
    partition = on(link)

    partition.stir(0.0)
    await asyncio.sleep(0.1)
    partition.stir(0.03)
    await asyncio.sleep(0.6)

    assert [when for when, _ in link.requests] == [0.0, pytest.approx(0.5)]


async def test_what_fits_goes_and_the_rest_follows_at_once() -> None:
    link = ScriptedLink()
    partition = on(link)

    reply = await submit(
        partition, puts=[put(n) for n in range(225)], ended=[ended(n) for n in range(225, 450)]
    )

    sizes = [(len(r.get("puts", [])), len(r.get("ended", []))) for r in link.sent]
    assert sizes == [(119, 0), (106, 13), (0, 120), (0, 92)]
    assert link.requests[-1][0] < 0.05
    assert reply.puts == [*range(1, 120), *range(1, 107)]


async def test_each_caller_gets_its_own_part_of_the_reply() -> None:
    def answer(request: Request) -> Request:
        rows = [[["d", n, 0, f"row of {load[2]}"]] for n, load in enumerate(request["loads"])]
        return {"puts": [0, 8], "met": [True, False, True], "loads": rows}

    partition = on(ScriptedLink(answer))
    looked = [Lookup("example.com", "https://example.com", f"digest-{n}", again=False) for n in range(3)]

    partition.changes.met += looked[:1]
    partition.changes.puts.append(put(1))
    first = partition.send()
    partition.changes.met += looked[1:]
    partition.changes.puts.append(put(2))
    partition.changes.loads.append(Load("example.com", 1, "https://b.example.com", 10))
    second = partition.send()
    third = partition.submit(Changes(loads=[Load("example.com", 1, "https://c.example.com", 10)]))

    assert ((await first).puts, (await first).met, (await first).loads) == ([None], [True], [])
    assert ((await second).puts, (await second).met) == ([8], [False, True])
    assert [[row.text for row in rows] for rows in (await second).loads] == [["row of https://b.example.com"]]
    assert [[row.text for row in rows] for rows in (await third).loads] == [["row of https://c.example.com"]]


async def test_of_a_task_the_latest_word_counts() -> None:
    link = ScriptedLink()
    partition = on(link)
    task = ("example.com", "https://example.com")
    out = Out("example.com", 1, "https://example.com", "digest-1")

    partition.submit(Changes(outs=[out._replace(digest=f"digest-{n}") for n in (1, 2, 3)]))
    partition.submit(Changes(requeued=[Requeued(*task, f"digest-{n}", 1, None) for n in (1, 2, 3)]))
    partition.submit(Changes(outs=[out]))
    await submit(partition, ended=[ended(2)])

    [request] = link.sent
    assert [each[3] for each in request["outs"]] == ["digest-1"]
    assert digests(request["requeued"]) == [1, 3]


# The deadline


async def test_homes_are_held_from_when_the_batch_was_sent() -> None:
    link = ScriptedLink()
    link.faults.append(Fault(before_s=0.5, after_s=1.0))
    clock = LoopClock()
    partition = on(link, clock=clock)

    await submit(partition)

    assert partition.tenure.until == pytest.approx(0.03 + HELD_S)


async def test_a_suspended_machine_holds_nothing_after_the_lease() -> None:
    clock = LoopClock()
    partition = on(ScriptedLink(), clock=clock)
    await submit(partition)
    home = Home("example.com", 1, partition.tenure, clock)
    assert home.good

    clock.suspend(HELD_S)

    assert not home.good


async def test_a_batch_without_a_reply_lengthens_nothing() -> None:
    link = ScriptedLink()
    partition = on(link)
    await submit(partition)
    until = partition.tenure.until

    link.faults.extend(Fault(reply_lost=True) for _ in range(5))
    partition.stir(0.0)
    await asyncio.sleep(0.5)

    assert partition.tenure.until == until


# The end


async def test_a_goodbye_to_another_server_is_not_the_last_word() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch})
    partition = on(link)
    await submit(partition, puts=[put(1)])

    epoch = 2
    await partition.end()

    assert [(r["bye"], digests(r.get("puts", []))) for r in link.sent] == [
        (False, [1]),
        (True, []),
        (True, [1]),
    ]


async def test_the_end_waits_5_s_for_a_server_that_is_away() -> None:
    link = ScriptedLink()
    partition = on(link)
    await submit(partition)
    link.down = True
    sent = partition.submit(Changes(puts=[put(1)]))

    started = LoopClock().monotonic()
    await partition.end()

    assert LoopClock().monotonic() - started == pytest.approx(5.0)
    with pytest.raises(StoreFailed, match="did not respond"):
        await sent


@pytest.mark.parametrize("seed", range(30))
async def test_over_any_weather_nothing_is_lost_and_nothing_is_applied_before_what_came_first(
    seed: int,
) -> None:
    weather = random.Random(seed)
    stored: list[int] = []
    ends: list[int] = []

    def answer(request: Request) -> Request:
        stored.extend(n for n in digests(request.get("puts", [])) if n not in stored)
        ends.extend(n for n in digests(request.get("ended", [])) if n not in ends)
        assert all(n in stored for n in range(max(ends, default=0)))
        return {}

    link = ScriptedLink(answer)
    partition = on(link)
    sent = []
    for number in range(100):
        if weather.random() < 0.3:
            late, lost = weather.expovariate(4.0), weather.random()
            link.faults.append(Fault(late, late, request_lost=lost < 0.3, reply_lost=lost > 0.7))
        sent.append(partition.submit(Changes(puts=[put(number)])))
        partition.submit(Changes(ended=[ended(number)]), lazy=True)
        await asyncio.sleep(weather.expovariate(20.0))
    await asyncio.gather(*sent)
    await partition.end()

    assert stored == ends == list(range(100))
    assert link.most_under_way == 1
