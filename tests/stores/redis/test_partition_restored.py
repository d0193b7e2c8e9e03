"""A partition whose session was lost, or whose server is not the same any more."""

import asyncio

import pytest

from polite.stores.redis.changes import Leave, Load
from polite.testing import LoopClock
from tests.stores.redis.partitions import SETTINGS, Owner, hold, on, submit
from tests.stores.redis.scripted_link import Fault, Request, ScriptedLink, digests, ended, put

pytestmark = pytest.mark.virtual_time


async def test_a_lost_session_loses_its_homes_and_what_was_written_counts() -> None:
    def answer(request: Request) -> Request:
        return {"lost": True, "puts": [7]} if "puts" in request else {}

    link, owner = ScriptedLink(answer), Owner()
    partition = on(link, owner)
    await submit(partition)
    home = hold(partition, "example.com")

    reply = await submit(partition, puts=[put(1)], loads=[Load("example.com", 1, "https://example.com", 5)])
    assert not home.good
    assert not partition.tenure.good
    await asyncio.sleep(0.01)

    assert reply.puts == [7]
    assert reply.loads == [[]]
    assert owner.lost == [home]
    assert [r["first"] for r in link.sent] == [True, False, True]
    assert link.sent[0]["session"] == link.sent[1]["session"] != link.sent[2]["session"]
    assert link.sent[2]["seq"] == 1


@pytest.mark.parametrize("away_s", [1.0, 20.0])
async def test_homes_are_kept_over_another_server_only_while_the_lease_lasts(away_s: float) -> None:
    # Later, others may have taken them from the last server, and this one does not know of it.
    run = "first"
    link, owner = ScriptedLink(lambda request: {"run": run, "quiet": 10_000_000}), Owner()
    partition = on(link, owner)
    await submit(partition)
    home = hold(partition, "example.com", fence=3)

    link.down = True
    await asyncio.sleep(away_s)
    run, link.down = "second", False
    await submit(partition)
    await asyncio.sleep(1.0)

    kept = away_s < SETTINGS.lease_s
    assert owner.lost == ([] if kept else [home])
    assert partition.tenure.good


async def test_many_homes_are_told_in_parts_and_nothing_else_before_the_last() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch, "quiet": 10_000_000})
    partition = on(link)
    await submit(partition, puts=[put(1)])
    for number in range(700):
        hold(partition, f"{number}.example")

    epoch = 2
    del link.requests[:]
    await submit(partition)
    await submit(partition, ended=[ended(1)])

    parts = [request for request in link.sent if "mine" in request]
    assert [(len(r["mine"]), r["mine_begins"], r["mine_ends"]) for r in parts] == [
        (300, True, False),
        (300, False, False),
        (100, False, True),
    ]
    assert len({home for r in parts for home, _ in r["mine"]}) == 700
    # Nobody told the server of these puts again, and of the end, before it knew who holds what.
    assert [("puts" in r, "ended" in r, r["room"]) for r in parts[:2]] == [(False, False, 0)] * 2
    assert digests(parts[2]["puts"]) == [1]


async def test_what_leaves_with_a_batch_without_a_reply_is_held_until_the_last_part() -> None:
    link = ScriptedLink()
    partition = on(link)
    await submit(partition)
    for number in range(400):
        hold(partition, f"{number}.example")
    link.faults.extend([Fault(reply_lost=True)])

    await submit(partition, leaves=[Leave("left.example", 7, 0, None)])

    parts = [request for request in link.sent if "mine" in request]
    assert parts[0]["mine"][0] == ["left.example", 7]
    assert ["leaves" in request for request in parts] == [False, True]


async def test_on_another_server_homes_are_held_until_quiet_ends_or_it_knows_them_all() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch, "quiet": 1_000_000 if epoch == 2 else 0})
    clock = LoopClock()
    partition = on(link, clock=clock)
    await submit(partition)
    for number in range(400):
        hold(partition, f"{number}.example")
    until = partition.tenure.until

    epoch = 2
    link.faults.extend([Fault(), Fault(after_s=2.0), Fault(after_s=2.0)])
    await submit(partition)
    assert partition.tenure.until == until
    await asyncio.sleep(3.0)
    assert partition.tenure.until == until, "one part of two is told"
    await asyncio.sleep(3.0)
    assert partition.tenure.until > until


async def test_another_server_is_told_what_is_held_and_what_was_written_lately() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch})
    partition = on(link)
    await submit(partition, puts=[put(1), put(2, again=True), put(3, ready_in=9_000_000)])
    await submit(partition, ended=[ended(2), ended(4)])
    hold(partition, "example.com", fence=3)
    await asyncio.sleep(1.0)

    epoch = 2
    del link.requests[:]
    await submit(partition)
    await asyncio.sleep(0.01)

    told = link.sent[1]
    assert told["mine"] == [["example.com", 3]]
    assert digests(told["puts"]) == [1, 3]
    assert digests(told["ended"]) == [2, 4]
    assert told["puts"][1][6] == pytest.approx(8_000_000, abs=200_000)
    assert "mine" not in (await _next(link))


async def _next(link: ScriptedLink) -> Request:
    count = len(link.sent)
    await asyncio.sleep(1.5)
    return link.sent[count]


async def test_a_duplicate_of_a_repeated_batch_may_be_its_own() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch, "puts": [0 for _ in request.get("puts", [])]})
    partition = on(link)
    link.faults.append(Fault(reply_lost=True))
    await submit(partition, puts=[put(1)])

    epoch = 2
    del link.requests[:]
    await submit(partition)
    await asyncio.sleep(0.01)

    assert digests(link.sent[1]["puts"]) == [1]


async def test_rows_of_ended_tasks_are_left_out_until_another_server_knows_of_the_ends() -> None:
    epoch = 1
    rows = [
        ["example.com", "https://example.com", [[f"digest-{number}", number, 0, "[]"] for number in (1, 2)]]
    ]
    link, owner = ScriptedLink(lambda request: {"epoch": epoch, "news": rows if epoch == 2 else []}), Owner()
    partition = on(link, owner)
    await submit(partition, ended=[ended(1)])

    epoch = 2
    await submit(partition)
    await asyncio.sleep(0.01)

    seen = [[row.digest for _, _, found in reply.news for row in found] for reply in owner.replies]
    assert seen == [[], ["digest-2"], ["digest-1", "digest-2"]]


async def test_writes_older_than_two_leases_are_not_told_again() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch})
    partition = on(link)
    await submit(partition, puts=[put(1)])
    await asyncio.sleep(13.0)
    await submit(partition, puts=[put(2)])

    epoch = 2
    del link.requests[:]
    await submit(partition)
    await asyncio.sleep(0.01)

    assert digests(link.sent[1]["puts"]) == [2]


async def test_homes_that_another_process_has_are_lost() -> None:
    link, owner = ScriptedLink(lambda request: {"gone": ["a.com"]} if request.get("mine") else {}), Owner()
    partition = on(link, owner)
    await submit(partition)
    gone, kept = hold(partition, "a.com"), hold(partition, "b.com")

    link.faults.append(Fault(reply_lost=True))
    await submit(partition)

    assert owner.lost == [gone]
    assert kept.good


async def test_a_gate_alone_goes_on_in_a_new_crawl() -> None:
    link = ScriptedLink(
        lambda request: {"err": "other crawl"} if request.get("born") == "old" else {"born": "old"}
    )
    owner = Owner(alone=True)
    partition = on(link, owner)
    await submit(partition)
    home = hold(partition, "example.com")

    await submit(partition)

    assert owner.lost == [home]
    assert [("born" in r, r["first"]) for r in link.sent] == [(False, True), (True, False), (False, True)]
