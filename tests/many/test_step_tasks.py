"""step.lua, steps 4 and 5: tasks that end, puts, what was met, and tasks that wait again."""

import json
from dataclasses import replace

import pytest

from polite.stores.redis.changes import Ended, Leave, Load, Lookup, PutEntry, Requeued
from tests.many.stepping import LEASE, SECOND, Crawl, Process, digest, ended, paths, put

HOST = "https://a.example"
A, B, C = (f"{HOST}/{each}" for each in "abc")


def requeued(url: str, tries: int, ready_in: int | None = None) -> Requeued:
    return Requeued("a.example", HOST, digest(url), tries, ready_in)


def lookup(url: str, *, again: bool = False) -> Lookup:
    return Lookup("a.example", HOST, digest(url), again)


def test_tasks_are_picked_in_the_order_of_puts(one: Process, other: Process) -> None:
    numbers = one.put(B, A, C).puts

    assert numbers == [1, 2, 3]
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
def test_a_task_that_ended_is_counted_by_its_end_and_put_or_requeued_only_again(
    end: str, one: Process
) -> None:
    one.put(A, B)

    reply = one.step(ended=[ended(A, end)])

    assert (reply.waiting, getattr(reply, end)) == (1, 1)
    assert sum((reply.done, reply.refused, reply.dropped)) == 1
    assert one.put(A).puts == [None]
    assert one.step(requeued=[requeued(A, 1)]).waiting == 1
    assert one.put(A, again=True).puts != [None]
    assert one.pick() == {HOST: ["/b", "/a"]}


def test_the_end_of_an_unknown_url_makes_it_met_and_counts_nothing(one: Process) -> None:
    reply = one.step(ended=[ended(A)])

    assert (reply.waiting, reply.done, reply.refused, reply.dropped) == (0, 0, 0, 0)
    assert one.put(A).puts == [None]


def test_met_tells_whether_a_put_would_be_a_duplicate(one: Process) -> None:
    one.put(A, B)
    one.step(ended=[ended(A)])

    asked = [
        lookup(A),
        lookup(A, again=True),
        lookup(B),
        lookup(B, again=True),
        lookup(C),
        lookup(C, again=True),
    ]

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
    fence = one.fences["a.example"]
    [rows] = one.step(loads=[Load("a.example", fence, HOST, 9)]).loads
    assert paths(rows) == ["/b"]
    crawl.age(5 * SECOND)
    [(_, _, rows)] = one.step().news

    assert [(row.number, row.tries, path) for row, path in zip(rows, paths(rows), strict=True)] == [
        (1, 2, "/a"),
        (2, 0, "/b"),
    ]


def test_a_tried_task_without_a_time_keeps_its_place_and_its_most_tries(one: Process, other: Process) -> None:
    one.put(A, B)
    one.pick()

    one.step(requeued=[requeued(A, 2)])
    one.step(requeued=[requeued(A, 1)])
    one.step(leaves=[Leave("a.example", one.fences["a.example"], 0, None)])

    [(_, [(_, rows)])] = other.step(room=1).picked
    assert [(row.tries, path) for row, path in zip(rows, paths(rows), strict=True)] == [(2, "/a"), (0, "/b")]


def test_a_keyed_crawl_gives_tasks_by_key_and_equal_keys_in_the_order_of_puts(
    crawl: Crawl, one: Process
) -> None:
    crawl.keyed = True
    keys = {"m": 2.5, "b": -1.0, "z": 2.5, "a": 2.5, "n": 1e15 + 1, "o": 1e15}

    one.step(puts=[put(f"{HOST}/{path}", key=key) for path, key in keys.items()])

    assert one.pick() == {HOST: ["/b", "/m", "/z", "/a", "/o", "/n"]}
    assert one.step(ended=[ended(f"{HOST}/{path}") for path in keys]).waiting == 0


def test_a_gate_without_a_frontier_moves_a_keyed_task_whose_time_has_come(crawl: Crawl) -> None:
    crawl.keyed = True
    one, gate = crawl.process("one"), crawl.process("gate", gate_alone=True, keyed=False)
    one.step(puts=[put(A, key=2.0), put(B, key=1.0, ready_in=SECOND)])
    crawl.age(SECOND)

    gate.step()

    assert one.pick() == {HOST: ["/b", "/a"]}


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
    return replace(
        put(A), digest=f"*{number}", row=json.dumps(["/a", 0, 0, None, None, None, None, f"*{number}"])
    )


def test_tasks_that_are_not_unique_wait_beside_each_other(crawl: Crawl) -> None:
    reply = crawl.process("one").step(puts=[put(A), loose(1), loose(2)])

    assert reply.puts == [1, 2, 3]
    assert crawl.process("other").pick() == {HOST: ["/a", "/a", "/a"]}


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
