"""step.lua, steps 4, 5, 10, 12 and 13: tasks that end, are put or wait again, their rows, and homes picked from the line."""

import json
from dataclasses import replace

import pytest

from polite.stores.redis.changes import Ended, Leave, Load, Lookup, Postpone, PutEntry, Requeued
from tests.many.stepping import BEAT, LEASE, SECOND, Crawl, Process, digest, ended, paths, put

HOST, PLAIN = "https://a.example", "http://a.example"
A, B, C = (f"{HOST}/{each}" for each in "abc")


def requeued(url: str, tries: int, ready_in: int | None = None) -> Requeued:
    return Requeued("a.example", HOST, digest(url), tries, ready_in)


def lookup(url: str, *, again: bool = False) -> Lookup:
    return Lookup("a.example", HOST, digest(url), again)


def test_tasks_are_picked_in_the_order_of_puts(one: Process, other: Process) -> None:
    assert one.put(B, A, C).puts == [1, 2, 3]
    assert other.pick() == {HOST: ["/b", "/a", "/c"]}


def test_a_url_that_waits_is_a_duplicate_from_any_process_and_even_again(crawl: Crawl) -> None:
    crawl.process("one").put(A)
    other = crawl.process("other")
    first, second, third = other.put(A, B, B).puts
    assert (first, third) == (None, None)
    assert second is not None
    assert other.put(A, again=True).puts == [None]
    assert other.step().waiting == 2


@pytest.mark.parametrize("end", ["done", "refused", "dropped"])
def test_a_task_that_ended_is_counted_by_its_end_and_put_or_requeued_again(end: str, one: Process) -> None:
    one.put(A, B)

    reply = one.step(ended=[ended(A, end)])

    assert (reply.waiting, getattr(reply, end)) == (1, 1)
    assert sum((reply.done, reply.refused, reply.dropped)) == 1
    assert one.put(A).puts == [None]
    assert one.step(requeued=[requeued(A, 1)]).waiting == 1
    assert one.put(A, again=True).puts != [None]
    assert one.pick() == {HOST: ["/b", "/a"]}


def test_met_tells_whether_a_put_would_be_a_duplicate(one: Process) -> None:
    one.put(A, B)
    one.step(ended=[ended(A)])
    asked = [lookup(url, again=again) for url in (A, B, C) for again in (False, True)]
    assert one.step(met=asked).met == [True, False, True, True, False, False]


def test_a_task_with_a_time_is_given_out_when_it_has_come(crawl: Crawl, one: Process) -> None:
    one.put(A, ready_in=5 * SECOND)
    assert one.pick() == {}
    reply = one.step()
    assert reply.waiting == 1
    assert 4 * SECOND < (reply.next_in or 0) <= 5 * SECOND
    crawl.age(5 * SECOND)
    assert one.pick() == {HOST: ["/a"]}


def test_a_task_with_a_time_is_news_to_the_owner_of_its_home(crawl: Crawl, one: Process) -> None:
    one.put(A)
    one.pick()
    one.put(B, ready_in=5 * SECOND)
    assert one.step().news == []

    crawl.age(5 * SECOND)

    [(home, origin, rows)] = one.step().news
    assert (home, origin, paths(rows)) == ("a.example", HOST, ["/a", "/b"])
    assert one.step().news == []


def test_a_tried_task_waits_until_its_time_and_keeps_its_number_and_tries(crawl: Crawl, one: Process) -> None:
    one.put(A, B)
    one.pick()

    one.step(requeued=[requeued(A, 2, 5 * SECOND)])
    [rows] = one.step(loads=[Load("a.example", one.fences["a.example"], HOST, 9)]).loads
    assert paths(rows) == ["/b"]
    crawl.age(5 * SECOND)
    [(_, _, rows)] = one.step().news

    assert [(row.number, row.tries, path) for row, path in zip(rows, paths(rows), strict=True)] == [
        (1, 2, "/a"),
        (2, 0, "/b"),
    ]


def test_a_keyed_crawl_gives_tasks_by_key_and_equal_keys_in_the_order_of_puts(crawl: Crawl, one: Process):
    crawl.keyed = True
    keys = {"m": 2.5, "b": -1.0, "z": 2.5, "a": 2.5, "n": 1e15 + 1, "o": 1e15}
    one.step(puts=[put(f"{HOST}/{path}", key=key) for path, key in keys.items()])
    assert one.pick() == {HOST: ["/b", "/m", "/z", "/a", "/o", "/n"]}
    assert one.step(ended=[ended(f"{HOST}/{path}") for path in keys]).waiting == 0


def test_what_a_process_puts_again_after_its_frontier_has_keys_still(crawl: Crawl) -> None:
    crawl.keyed = True
    closed, one = crawl.process("closed", gate_alone=True), crawl.process("one")
    closed.put(A, key=1.0)
    assert one.pick() == {HOST: ["/a"]}


def test_beyond_the_limit_the_origin_without_tasks_for_longest_is_forgotten(crawl: Crawl) -> None:
    one = crawl.process("one", max_done=3)
    first, second, busy = ("https://first.example/", "https://second.example/", "https://busy.example/")
    one.put(first, second, busy, f"{busy}2")
    one.step(ended=[ended(busy)])
    one.step(ended=[ended(first)])
    one.step(ended=[ended(second)])

    one.step(ended=[ended(f"{first}2")])
    one.step(ended=[ended(f"{first}3")])

    # `first` had no tasks for longest; then it was met again.
    assert one.put(first).puts != [None]
    assert one.put(busy, second).puts == [None, None]


def test_urls_of_a_single_origin_with_tasks_stay_within_the_limit(crawl: Crawl) -> None:
    one = crawl.process("one", max_done=3)
    one.put(*(f"{HOST}/{number}" for number in range(10)))
    one.step(ended=[ended(f"{HOST}/{number}") for number in range(9)])
    assert crawl.client.scard(crawl.key(f"d:{HOST}")) == 3


# Tasks that are not unique: their digests begin with an asterisk.


def loose(number: int) -> PutEntry:
    return replace(put(A), digest=f"*{number}", row=json.dumps(["/a", 0, 0, *[None] * 4, f"*{number}"]))


def test_a_put_that_is_repeated_after_its_task_has_ended_comes_once(one: Process, other: Process) -> None:
    one.step(puts=[loose(1)])
    other.step(ended=[Ended("a.example", HOST, "*1", "done")])
    assert one.step(puts=[loose(1)]).puts == [None]
    assert one.step().waiting == 0


def test_it_is_forgotten_after_four_leases_and_takes_no_room_of_finished_urls(crawl: Crawl) -> None:
    one = crawl.process("one", max_done=1)
    one.step(puts=[put(B), loose(1), loose(2)])
    one.step(ended=[ended(B), Ended("a.example", HOST, "*1", "done")])
    assert crawl.client.zcard(crawl.key("once")) == 1
    assert one.put(B).puts == [None]

    crawl.client.zadd(crawl.key("once"), {"*1": crawl.client.zscore(crawl.key("once"), "*1") - 4 * LEASE})
    one.step(ended=[Ended("a.example", HOST, "*2", "done")])

    assert crawl.client.zrange(crawl.key("once"), 0, -1) == ["*2"]
    assert one.step(puts=[loose(1)]).puts != [None]


def origins_of_news(process: Process) -> set[str]:
    return {origin for _, origin, _ in process.step().news}


def many_origins(count: int) -> list[str]:
    return [f"http://a.example:{8000 + number}/" for number in range(count)]


def test_homes_are_picked_in_the_order_of_waiting(one: Process) -> None:
    for name in ("c", "a", "b"):
        one.put(f"https://{name}.example/")
    assert [taken.home for taken, _ in one.step(room=2).picked] == ["c.example", "a.example"]


def test_a_pick_is_bounded_by_room_and_by_50(one: Process) -> None:
    one.put(*(f"https://{number}.example/" for number in range(60)))
    assert len(one.step(room=3).picked) == 3
    reply = one.step(room=100)
    assert (len(reply.picked), reply.inline) == (50, 7)


def test_each_session_picks_its_share_and_the_last_ones_are_not_left(one: Process, other: Process) -> None:
    other.step()
    one.put(*(f"https://{number}.example/" for number in range(7)))
    assert [len(one.step(room=9).picked), len(other.step(room=9).picked)] == [4, 3]
    reply = other.step(room=9)
    assert (reply.fair, reply.inline, reply.starving) == (4, 0, False)


@pytest.mark.slow("real time")
def test_a_session_without_room_and_homes_has_no_share_until_it_has_room(crawl: Crawl) -> None:
    producer, one, two = crawl.process("producer"), crawl.process("one"), crawl.process("two")
    producer.put(*(f"https://{number}.example/" for number in range(6)))
    one.step(room=0)
    two.step(room=1)
    assert one.step(room=1).fair == 2

    crawl.age(2 * BEAT)
    producer.step(room=0)

    reply = one.step(room=9)
    assert (len(reply.picked), reply.fair, reply.live) == (2, 3, 3)
    assert producer.step(room=1).fair == 2


def test_a_picked_home_comes_with_32_rows_of_an_origin_and_others_are_loaded_in_order(one, other):
    one.put(*(f"{HOST}/{number:02}" for number in range(40)))

    [(taken, [(_, rows)])] = one.step(room=1).picked

    def loaded(process: Process, fence: int, *origins: str) -> list[list[str]]:
        loads = process.step(loads=[Load("a.example", fence, origin, 3) for origin in origins]).loads
        return [paths(rows) for rows in loads]

    assert paths(rows) == [f"/{number:02}" for number in range(32)]
    assert loaded(one, taken.fence, PLAIN, HOST) == [[], ["/00", "/01", "/02"]]
    assert loaded(one, taken.fence - 1, HOST) == loaded(other, taken.fence, HOST) == [[]]


def test_the_origins_of_a_home_come_8_at_a_time(one: Process) -> None:
    one.put(*many_origins(30))
    [(_, first)] = one.step(room=1).picked
    seen = [{origin for origin, _ in first}, *(origins_of_news(one) for _ in range(3))]
    assert [len(each) for each in seen] == [8, 8, 8, 6]
    assert set().union(*seen) == {url.rstrip("/") for url in many_origins(30)}
    assert one.step().news == []


def test_a_put_by_another_is_news_to_the_owner_and_its_own_is_not(one: Process, other: Process) -> None:
    one.put(f"{HOST}/a")
    one.pick()
    assert one.put(f"{HOST}/b").news == []
    other.put(f"{HOST}/c", f"{PLAIN}/d")
    news = {origin: paths(rows) for _, origin, rows in one.step().news}
    assert news == {HOST: ["/a", "/b", "/c"], PLAIN: ["/d"]}


def test_a_call_answers_100_news_and_then_the_others(one: Process, other: Process) -> None:
    one.put("https://a.example/")
    one.pick()
    other.put(*many_origins(120))
    replies = [one.step() for _ in range(3)]
    assert [len(reply.news) for reply in replies] == [100, 20, 0]
    assert [reply.next_in for reply in replies] == [0, None, None]


@pytest.mark.parametrize("origin", [HOST, PLAIN])
def test_a_home_whose_origins_all_wait_is_in_line_from_the_first_ones_time(crawl, origin: str, one, other):
    one.put(f"{origin}/a")
    one.pick()
    fence = one.fences["a.example"]
    one.step(postpones=[Postpone("a.example", fence, origin, 5 * SECOND)])
    one.step(leaves=[Leave("a.example", fence, 0, None)])

    reply = other.step(room=9)
    assert (reply.picked, reply.inline) == ([], 0)
    # A home that rests may be picked a second before, for its new owner knows until when. Of an origin it does not.
    crawl.age(4_500_000)
    assert other.step(room=9).picked == []
    crawl.age(500_000)
    assert other.pick() == {origin: ["/a"]}


def test_what_waits_for_its_time_comes_75_at_a_time(crawl: Crawl, one: Process) -> None:
    one.put(*(f"https://{number}.example/" for number in range(150)), ready_in=SECOND)
    crawl.age(SECOND)
    replies = [one.step() for _ in range(3)]
    assert [reply.inline for reply in replies] == [75, 150, 150]
    assert [reply.next_in for reply in replies] == [0, None, None]
