"""step.lua, steps 1 to 3: whether it is the crawl the caller knows, another server, late batches, and a store that was away."""

from dataclasses import replace

import pytest

from polite.stores.redis.changes import Leave, Mine
from tests.many.stepping import BEAT, LEASE, SECOND, Crawl, Process, ended, put

A = "https://a.example/a"


def test_a_crawl_that_its_caller_knows_and_the_store_does_not_was_emptied(crawl: Crawl, one: Process) -> None:
    one.step()
    crawl.client.flushall()

    reply = one.step(puts=[put(A)], check=False)

    assert reply.err == "emptied"
    assert crawl.client.dbsize() == 0


def test_a_crawl_that_began_after_the_callers_is_another(crawl: Crawl, one: Process) -> None:
    one.step()
    crawl.client.flushall()
    crawl.process("other").put(A)

    reply = one.step(puts=[put(f"{A}2")])

    assert reply.err == "other crawl"
    assert crawl.process("other2").step().waiting == 1


def test_a_gate_alone_goes_on_with_its_homes_after_the_store_was_emptied(crawl: Crawl) -> None:
    gate = crawl.process("gate", gate_alone=True)
    gate.take("a.example")
    before = gate.step()
    crawl.client.flushall()

    reply = gate.step(check=False)
    again = gate.step(mine=[Mine("a.example", gate.fences["a.example"])])

    assert reply.err is None
    assert reply.born == "born-gate"
    assert reply.epoch != before.epoch
    assert LEASE - SECOND < reply.quiet <= LEASE
    assert again.gone == []


def test_nobody_takes_a_home_until_gates_could_say_what_they_hold(crawl: Crawl) -> None:
    gate, new = crawl.process("gate", gate_alone=True), crawl.process("new", gate_alone=True)
    gate.take("a.example")
    crawl.client.flushall()
    gate.step(check=False)

    assert new.take("a.example") is None
    assert new.take("b.example") is None
    gate.step(mine=[Mine("a.example", gate.fences["a.example"])])
    crawl.age(LEASE)
    assert new.take("b.example") is not None
    assert new.take("a.example") is None


def test_a_late_leave_frees_no_home_that_was_taken_after_the_store_was_emptied(crawl: Crawl) -> None:
    gate, new = crawl.process("gate", gate_alone=True), crawl.process("new", gate_alone=True)
    for home in ("a.example", "b.example"):
        gate.take(home)
    crawl.client.flushall()
    gate.step(check=False)
    crawl.age(LEASE)
    new.take("b.example")

    gate.step(leaves=[Leave("b.example", gate.fences["b.example"], 0, None)])

    assert new.fences["b.example"] > gate.fences["b.example"]
    assert gate.take("b.example") is None


def test_a_gate_that_knows_the_emptied_crawl_makes_a_younger_one_quiet(crawl: Crawl) -> None:
    gate, new = crawl.process("gate", gate_alone=True), crawl.process("new", gate_alone=True)
    gate.take("a.example")
    crawl.client.flushall()
    new.step()

    reply = gate.step(check=False)

    assert (reply.err, reply.born) == (None, "born-new")
    assert reply.quiet > 0
    assert reply.epoch != 0
    assert new.take("a.example") is None


def test_another_server_begins_an_epoch_and_is_quiet_for_a_lease(crawl: Crawl, one: Process) -> None:
    one.put(A)
    crawl.another_server()

    reply = one.step(room=9)

    assert reply.epoch == 1
    assert reply.quiet == reply.next_in == LEASE
    assert reply.picked == []
    assert one.step().epoch == 1
    crawl.age(LEASE)
    assert one.step(room=9).picked != []


def test_a_put_told_again_counts_if_any_server_lost_it_and_not_if_it_has_ended(
    crawl: Crawl, one: Process
) -> None:
    assert one.put(A, f"{A}2").puts == [1, 2]
    one.step(ended=[ended(A)])
    # The next server does not know the put with number 3, and the one after it knows greater numbers.
    crawl.another_server()
    (fourth,) = one.put(f"{A}4").puts
    assert fourth is not None
    assert fourth > 1_000_002
    crawl.another_server()

    again = [replace(put(url, again=True), number=number) for number, url in ((1, A), (3, f"{A}3"))]
    waits = replace(put(f"{A}2", again=True), number=2)

    assert one.step(puts=[*again, waits]).puts == [None, 3, None]


def test_a_batch_that_is_sent_twice_is_done_once_and_one_that_is_late_not_at_all(
    crawl: Crawl, one: Process
) -> None:
    one.put(A)
    late = one.request(puts=[put(f"{A}2")])
    one.pick()
    leave = one.request(leaves=[Leave("a.example", one.fences["a.example"], 0, None)])

    one.send(leave)
    one.pick()

    assert [one.send(late).err, one.send(leave).err] == ["old", "old"]
    batch = one.request()
    assert [one.send(batch).err, one.send(batch).err] == [None, "old"]
    assert one.step().waiting == 1
    assert crawl.client.sismember(crawl.key("held:one"), "a.example")


def test_no_session_is_ended_for_a_lease_after_nobody_called(
    crawl: Crawl, one: Process, other: Process
) -> None:
    one.put(A)
    one.pick()
    other.step()
    crawl.age(LEASE + SECOND)

    assert other.step(room=9).picked == []
    assert not one.step().lost
    crawl.age(2 * BEAT)
    assert other.step().live == 2


@pytest.mark.parametrize(("first", "beats"), [(LEASE + SECOND, 2), (0, 3)])
def test_neither_an_outage_nor_silences_one_after_another_keep_a_session_that_stays_away(
    crawl: Crawl, first: int, beats: int, one: Process, other: Process
) -> None:
    one.put(A)
    one.pick()
    crawl.age(first)
    other.step()
    for _ in range(9):
        crawl.age(beats * BEAT)
        reply = other.step(room=9)

    assert reply.live == 1
    assert one.step().lost


def test_a_short_silence_gives_no_grace(crawl: Crawl, one: Process, other: Process) -> None:
    one.put(A)
    one.pick()
    other.step()
    crawl.expire(one)
    crawl.age(2 * BEAT)

    assert len(other.step(room=9).picked) == 1
