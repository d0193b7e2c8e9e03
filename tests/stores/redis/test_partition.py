"""One batch after the other to one partition, in virtual time, over a connection that delays and loses messages."""

import asyncio
import itertools
import math
import random

import pytest

from polite.errors import GateClosed, StoreEmptied, StoreFailed
from polite.stores.redis.changes import Changes, Leave, Load, Lookup, Out, Requeued
from polite.stores.redis.crawl_settings import CrawlSettings
from polite.stores.redis.home import Home
from polite.stores.redis.partition import Partition
from polite.stores.redis.step_reply import StepReply
from polite.testing import LoopClock, VirtualTimeLoop
from tests.stores.redis.scripted_link import Fault, Request, ScriptedLink, digests, ended, put

pytestmark = pytest.mark.virtual_time
SETTINGS = CrawlSettings(lease_s=6.0, keyed=False, max_tries=3, max_done=1_000)
# The lease but for its margin: 0.2 s and 1 %.
HELD_S = 6.0 - 0.26


class Owner:
    """Records what a partition calls."""

    def __init__(self, *, alone: bool = False) -> None:
        self.alone = alone
        self.closed = False
        self.lost: list[Home] = []
        self.failures: list[Exception] = []
        self.errors: list[str] = []
        self.replies: list[StepReply] = []
        self.partition: Partition | None = None

    def room(self, partition: Partition) -> int:
        return 5

    def may_take(self, name: str) -> bool:
        return True

    def lose(self, homes: list[Home]) -> None:
        for home in homes:
            home.over = True
            self.lost.append(home)
            assert self.partition is not None
            del self.partition.homes[home.name]

    def replied(self, partition: Partition, reply: StepReply) -> float:
        self.replies.append(reply)
        return math.inf

    def unreached(self, partition: Partition, since: float, error: str) -> None:
        self.errors.append(error)

    def fail(self, error: Exception) -> None:
        self.failures.append(error)
        assert self.partition is not None
        self.partition.stop(error)


def on(link: ScriptedLink, owner: Owner | None = None, clock: LoopClock | None = None) -> Partition:
    owner = owner or Owner()
    owner.partition = Partition(link, clock or LoopClock(), "polite:{news:0}:", SETTINGS, owner)
    return owner.partition


def hold(partition: Partition, name: str, fence: int = 1) -> Home:
    home = partition.homes[name] = Home(name, fence, partition.tenure, LoopClock())
    return home


async def submit(partition: Partition, *, lazy: bool = False, **lists: list[object]) -> StepReply:
    return await partition.submit(Changes(**lists), lazy=lazy)  # type: ignore[arg-type]


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


async def test_lazy_changes_are_collected_for_150_ms() -> None:
    link = ScriptedLink()
    partition = on(link)

    await submit(partition, lazy=True, ended=[ended(1)])

    assert [when for when, _ in link.requests] == [pytest.approx(0.15)]


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


async def test_a_batch_goes_at_least_each_beat() -> None:
    link = ScriptedLink()
    partition = on(link)

    partition.stir(0.0)
    await asyncio.sleep(3.5)

    assert [when for when, _ in link.requests] == [pytest.approx(beat, abs=0.01) for beat in (0, 1, 2, 3)]


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


async def test_the_rest_of_lazy_changes_goes_at_once_too() -> None:
    link = ScriptedLink()
    partition = on(link)

    ends = partition.submit(Changes(ended=[ended(n) for n in range(225)]), lazy=True)
    partition.stir(0.03)
    await ends

    assert [len(request["ended"]) for request in link.sent] == [120, 105]
    assert link.requests[-1][0] < 0.05


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


async def test_no_end_goes_before_an_earlier_put_and_no_home_leaves_before_an_end() -> None:
    link = ScriptedLink()
    partition = on(link)
    random_ = random.Random(7)
    number, order = 0, []
    for _ in range(60):
        kind = random_.choice(["puts", "ended", "leaves"])
        entries: list[object] = []
        for _ in range(random_.randrange(1, 90)):
            number += 1
            entries.append(
                {"puts": put, "ended": ended, "leaves": lambda n: Leave(f"digest-{n}", n, 0, None)}[kind](
                    number
                )
            )
            order.append((kind, number))
        last = partition.submit(Changes(**{kind: entries}), lazy=random_.random() < 0.5)  # type: ignore[arg-type]
    await last

    batch_of = {}
    for index, request in enumerate(link.sent):
        for kind in ("puts", "ended"):
            batch_of |= {(kind, n): index for n in digests(request.get(kind, []))}
        batch_of |= {("leaves", leave[1]): index for leave in request.get("leaves", [])}
    assert len(link.sent) > 3
    assert [batch_of[entry] for entry in order] == sorted(batch_of[entry] for entry in order)


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


# Outages


async def test_changes_without_a_reply_go_again_with_a_new_seq_and_what_is_held() -> None:
    link = ScriptedLink()
    link.faults.extend([Fault(), Fault(request_lost=True), Fault(reply_lost=True)])
    partition = on(link)
    await submit(partition)
    hold(partition, "example.com", fence=9)

    await submit(partition, puts=[put(1)])

    assert [r["seq"] for r in link.sent] == [1, 2, 3, 4]
    assert [digests(r["puts"]) for r in link.sent[1:]] == [[1], [1], [1]]
    assert [r.get("mine") for r in link.sent] == [None, None, [["example.com", 9]], [["example.com", 9]]]


async def test_mine_is_sent_though_nothing_is_held() -> None:
    link = ScriptedLink()
    link.faults.append(Fault(reply_lost=True))

    await submit(on(link), puts=[put(1)])

    assert [r.get("mine") for r in link.sent] == [None, []]


async def test_attempts_are_50_ms_to_1_s_apart() -> None:
    link = ScriptedLink()
    link.down = True
    partition = on(link)

    partition.stir(0.0)
    await asyncio.sleep(4.5)

    times = [when for when, _ in link.requests]
    gaps = [later - earlier - 0.01 for earlier, later in itertools.pairwise(times)]
    assert gaps == [pytest.approx(gap, abs=0.002) for gap in (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0)]


async def test_new_changes_do_not_hasten_the_next_attempt() -> None:
    link = ScriptedLink()
    link.down = True
    partition = on(link)

    for number in range(45):
        partition.submit(Changes(puts=[put(number)]))
        await asyncio.sleep(0.1)

    assert len(link.requests) == 8


async def test_a_batch_that_the_server_calls_old_goes_again() -> None:
    link = ScriptedLink(lambda request: {"err": "old"} if request["seq"] < 3 else {})

    reply = await submit(on(link), puts=[put(1)])

    assert reply.puts == [1]
    assert len(link.sent) == 3


async def test_a_call_that_was_cancelled_from_outside_goes_again() -> None:
    link = ScriptedLink(delay_s=1.0)
    partition = on(link)
    sent = partition.submit(Changes(puts=[put(1)]))
    await asyncio.sleep(0.5)

    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()

    assert (await sent).puts == [1]
    assert len(link.sent) == 2


def test_a_loop_that_ends_still_gets_the_reply() -> None:
    link = ScriptedLink(delay_s=1.0)
    puts: list[int | None] = []

    async def crawl() -> None:
        sent = on(link).submit(Changes(puts=[put(1)]))
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.wait([sent])
            puts.extend(sent.result().puts)

    async def main() -> None:
        crawling = asyncio.create_task(crawl())
        await asyncio.sleep(0.5)
        assert not crawling.done()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())

    assert puts == [1]


async def test_a_failure_that_no_waiting_helps_fails_what_waits() -> None:
    class Refusing(ScriptedLink):
        async def step(self, prefix: str, request: str) -> str:
            raise StoreFailed("NOAUTH: name a password")

    owner = Owner()
    partition = on(Refusing(), owner)

    with pytest.raises(StoreFailed, match="NOAUTH"):
        await submit(partition, puts=[put(1)])
    with pytest.raises(StoreFailed, match="NOAUTH"):
        await submit(partition, puts=[put(2)])
    assert len(owner.failures) == 1


async def test_a_reply_that_is_none_of_the_script_is_a_failure() -> None:
    class Garbage(ScriptedLink):
        async def step(self, prefix: str, request: str) -> str:
            return '["hello"]'

    with pytest.raises(StoreFailed, match=r"example\.com"):
        await submit(on(Garbage()))


# Sessions that were lost, and servers that are not the same


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


async def test_a_server_that_has_lost_the_last_epoch_is_told_what_is_held() -> None:
    run = "first"
    link = ScriptedLink(lambda request: {"epoch": 1, "run": run})
    partition = on(link)
    await submit(partition)
    hold(partition, "example.com", fence=3)

    run = "second"
    del link.requests[:]
    await submit(partition)
    await asyncio.sleep(0.01)

    assert link.sent[1]["mine"] == [["example.com", 3]]


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


async def test_a_part_without_a_reply_begins_all_again() -> None:
    run = "first"
    link = ScriptedLink(lambda request: {"run": run})
    partition = on(link)
    await submit(partition)
    for number in range(400):
        hold(partition, f"{number}.example")
    run = "second"
    await submit(partition)
    del link.requests[:]

    link.faults.extend([Fault(), Fault(reply_lost=True)])
    sent = partition.submit(Changes(puts=[put(1)]))
    await sent

    told = [(len(r["mine"]), r["mine_begins"], "puts" in r) for r in link.sent if "mine" in r]
    assert told == [(300, True, False), (100, False, True), (300, True, False), (100, False, True)]


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


async def test_a_duplicate_is_told_again_only_by_the_process_that_put_it() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch, "puts": [7, 0][: len(request.get("puts", []))]})
    partition = on(link)
    await submit(partition, puts=[put(1), put(2)])

    epoch = 2
    del link.requests[:]
    await submit(partition)
    await asyncio.sleep(0.01)

    assert digests(link.sent[1]["puts"]) == [1]


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


async def test_a_put_that_came_after_the_end_of_its_url_is_told_again() -> None:
    epoch = 1
    link = ScriptedLink(lambda request: {"epoch": epoch})
    partition = on(link)
    await submit(partition, ended=[ended(1)])
    await submit(partition, puts=[put(1, again=True), put(2, again=True)])

    epoch = 2
    link.faults.append(Fault(after_s=0.1))
    partition.stir(0.0)
    await asyncio.sleep(0.05)
    partition.submit(Changes(ended=[ended(2)]), lazy=True)
    await asyncio.sleep(0.2)

    told = link.sent[3]
    assert (digests(told["puts"]), digests(told["ended"])) == ([1], [1, 2])


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


@pytest.mark.parametrize("err", ["emptied", "other crawl"])
async def test_a_frontier_fails_when_its_crawl_is_gone(err: str) -> None:
    link, owner = ScriptedLink(lambda request: {"err": err} if "born" in request else {}), Owner()
    partition = on(link, owner)
    await submit(partition)

    with pytest.raises(StoreEmptied, match=r"redis://example\.com"):
        await submit(partition, puts=[put(1)])
    assert [type(failure) for failure in owner.failures] == [StoreEmptied]
    assert partition.tenure.until == -math.inf


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


# The end


async def test_the_last_batch_says_goodbye() -> None:
    link = ScriptedLink()
    partition = on(link)
    sent = partition.submit(Changes(puts=[put(n) for n in range(250)]))

    await partition.end()

    assert [r["bye"] for r in link.sent] == [False, False, True]
    assert len((await sent).puts) == 250
    with pytest.raises(GateClosed):
        await submit(partition)


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


async def test_a_partition_that_sent_nothing_says_nothing() -> None:
    link = ScriptedLink()

    await on(link).end()

    assert link.sent == []


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


async def test_the_end_waits_as_long_as_the_server_responds() -> None:
    link = ScriptedLink(delay_s=2.0)
    partition = on(link)
    sent = partition.submit(Changes(puts=[put(n) for n in range(1_000)]))

    await partition.end()

    assert len((await sent).puts) == 1_000


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
