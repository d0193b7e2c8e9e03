"""One batch after the other to one partition, in virtual time, over a connection that delays and loses messages."""

import asyncio

import pytest

from polite.stores.redis.changes import Changes, Load, Out, Requeued
from polite.testing import LoopClock
from tests.stores.redis.support import (
    HELD_S,
    HOST,
    ORIGIN,
    SETTINGS,
    Fault,
    Owner,
    ScriptedLink,
    digests,
    ended,
    hold,
    on,
    put,
    submit,
)

pytestmark = pytest.mark.virtual_time


async def test_urgent_changes_are_collected_for_30_ms_and_lazy_ones_go_with_them() -> None:
    link = ScriptedLink()
    partition = on(link)

    partition.submit(Changes(ended=[ended(1)]), lazy=True)
    first = partition.submit(Changes(puts=[put(1)]))
    await asyncio.sleep(0.02)
    await asyncio.gather(first, partition.submit(Changes(puts=[put(2)])))

    [(when, request)] = link.requests
    assert (when, digests(request["puts"]), digests(request["ended"])) == (pytest.approx(0.03), [1, 2], [1])


async def test_one_batch_is_under_way_and_the_rest_makes_the_next() -> None:
    link = ScriptedLink(delay_s=0.5)
    partition = on(link)

    sent = []
    for number in range(20):
        sent.append(partition.submit(Changes(puts=[put(number)])))
        await asyncio.sleep(0.05)
    await asyncio.gather(*sent)

    assert link.most_under_way == 1
    assert [digests(r["puts"]) for r in link.sent] == [[0], list(range(1, 11)), list(range(11, 20))]


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

    puts, partition = [put(n) for n in range(225)], on(link)
    changes = Changes(puts=list(puts), ended=[ended(n) for n in range(225, 450)])
    sent = partition.submit(changes, lazy=True)
    partition.stir(0.0)
    await sent

    sizes = [(len(r.get("puts", [])), len(r.get("ended", []))) for r in link.sent]
    assert sizes == [(119, 0), (106, 13), (0, 120), (0, 92)]
    assert link.requests[-1][0] < 0.05
    assert [each.answer for each in puts] == [*range(1, 120), *range(1, 107)]


async def test_of_a_task_the_latest_word_counts() -> None:
    link = ScriptedLink()
    partition = on(link)

    partition.submit(Changes(outs=[Out(HOST, 1, ORIGIN, f"digest-{n}") for n in (1, 2, 3)]))
    partition.submit(Changes(requeued=[Requeued(HOST, ORIGIN, f"digest-{n}", 1, None) for n in (1, 2, 3)]))
    partition.submit(Changes(outs=[Out(HOST, 1, ORIGIN, "digest-1")]))
    await submit(partition, ended=[ended(2)])

    [request] = link.sent
    assert [each[3] for each in request["outs"]] == ["digest-1"]
    assert digests(request["requeued"]) == [1, 3]


async def test_homes_are_held_from_when_a_batch_with_a_reply_was_sent_also_in_a_sleep() -> None:
    link, clock = ScriptedLink(), LoopClock()
    link.faults.append(Fault(before_s=0.5, after_s=1.0))
    partition = on(link, clock=clock)

    await submit(partition)
    assert partition.lease.until == pytest.approx(0.03 + HELD_S)
    link.faults.extend(Fault(reply_lost=True) for _ in range(5))
    partition.stir(0.0)
    await asyncio.sleep(0.5)
    assert partition.lease.until == pytest.approx(0.03 + HELD_S)

    clock.suspend(HELD_S)
    assert not partition.lease.good


async def test_changes_without_a_reply_go_again_with_a_new_seq_and_what_is_held() -> None:
    link = ScriptedLink(lambda request: {"gone": ["a.com"] if request.get("mine") else []})
    link.faults.extend([Fault(), Fault(request_lost=True), Fault(reply_lost=True)])
    owner = Owner()
    partition = on(link, owner)
    await submit(partition)
    kept, gone = hold(partition, HOST, fence=9), hold(partition, "a.com", fence=8)

    await submit(partition, puts=[put(1)])

    held = [[HOST, 9], ["a.com", 8]]
    assert [r["seq"] for r in link.sent] == [1, 2, 3, 4]
    assert [digests(r["puts"]) for r in link.sent[1:]] == [[1], [1], [1]]
    assert [r.get("mine") for r in link.sent] == [None, None, held, held]
    assert (owner.lost, kept.good) == ([gone], True)


async def test_a_lost_session_loses_its_homes_and_what_was_written_counts() -> None:
    link = ScriptedLink(lambda request: {"lost": True, "puts": [7]} if "puts" in request else {})
    owner = Owner()
    partition = on(link, owner)
    await submit(partition)
    home = hold(partition)

    load = Load(HOST, 1, ORIGIN, 5)
    reply = await submit(partition, puts=[put(1)], loads=[load])
    assert not home.good
    assert not partition.lease.good
    await asyncio.sleep(0.01)

    assert (reply.puts, load.answer, owner.lost) == ([7], [], [home])
    assert [(r["first"], r["seq"]) for r in link.sent] == [(True, 1), (False, 2), (True, 1)]
    assert link.sent[0]["session"] == link.sent[1]["session"] != link.sent[2]["session"]


@pytest.mark.parametrize("away_s", [1.0, 20.0])
async def test_homes_are_kept_over_another_server_only_while_the_lease_lasts(away_s: float) -> None:
    # Later, others may have taken them from the last server, and this one does not know of it.
    link, owner = ScriptedLink(quiet=10_000_000), Owner()
    partition = on(link, owner)
    await submit(partition)
    home = hold(partition, fence=3)

    link.down = True
    await asyncio.sleep(away_s)
    link.says["run"], link.down = "second", False
    await submit(partition)
    await asyncio.sleep(1.0)

    assert owner.lost == ([] if away_s < SETTINGS.lease_s else [home])
    assert partition.lease.good


async def told_anew(link, partition):
    """Let the next reply be another server's. Return what is sent to it."""
    del link.requests[:]
    link.says["epoch"] = 2
    await submit(partition)
    await asyncio.sleep(0.05)
    return link.sent


async def test_on_another_server_homes_are_held_until_quiet_ends_or_it_knows_them_all() -> None:
    link = ScriptedLink(lambda _: {"quiet": 1_000_000 if link.says else 0})
    partition = on(link)
    await submit(partition)
    for number in range(400):
        hold(partition, f"{number}.example")
    until = partition.lease.until

    link.says["epoch"] = 2
    link.faults.extend([Fault(), Fault(after_s=2.0), Fault(after_s=2.0)])
    await submit(partition)
    assert partition.lease.until == until
    await asyncio.sleep(3.0)
    assert partition.lease.until == until, "one part of two is told"
    await asyncio.sleep(3.0)
    assert partition.lease.until > until


async def test_another_server_is_told_what_is_held_and_what_was_written_in_two_leases() -> None:
    link = ScriptedLink()
    partition = on(link)
    await submit(partition, puts=[put(0)])
    await asyncio.sleep(13.0)
    await submit(partition, puts=[put(1), put(2, again=True), put(3, ready_in=9_000_000)])
    await submit(partition, ended=[ended(2), ended(4)])
    hold(partition, fence=3)
    await asyncio.sleep(1.0)

    _, told = await told_anew(link, partition)
    await asyncio.sleep(1.5)

    assert told["mine"] == [[HOST, 3]]
    assert (digests(told["puts"]), digests(told["ended"])) == ([1, 3], [2, 4])
    assert told["puts"][1][6] == pytest.approx(8_000_000, abs=200_000)
    assert "mine" not in link.sent[2]


async def test_a_duplicate_of_a_repeated_batch_may_be_its_own() -> None:
    link = ScriptedLink(lambda request: {"puts": [0 for _ in request.get("puts", [])]})
    partition = on(link)
    link.faults.append(Fault(reply_lost=True))
    await submit(partition, puts=[put(1)])
    assert digests((await told_anew(link, partition))[1]["puts"]) == [1]
