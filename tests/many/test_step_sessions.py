"""step.lua, steps 1 to 3, 6, 7 and 14: another crawl or server, late batches, and sessions that are renewed, lost, or ended."""

import json
from dataclasses import replace

import pytest

from polite.stores.redis.changes import Back, Leave, Mine, Out, Requeued
from tests.many.stepping import BEAT, LEASE, SECOND, Crawl, Process, digest, ended, paths, put, split

HOST = "https://a.example"
A, B = f"{HOST}/a", f"{HOST}/b"


def test_a_crawl_that_its_caller_knows_and_the_store_does_not_was_emptied(crawl: Crawl, one: Process) -> None:
    one.step()
    crawl.client.flushall()
    assert one.step(puts=[put(A)], check=False).err == "emptied"
    assert crawl.client.dbsize() == 0


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


def test_a_put_told_again_counts_if_any_server_lost_it_and_not_if_it_has_ended(crawl: Crawl, one: Process):
    assert one.put(A, f"{A}2").puts == [1, 2]
    one.step(ended=[ended(A)])
    # The next server does not know the put with number 3, and the one after it knows greater numbers.
    crawl.another_server()
    (fourth,) = one.put(f"{A}4").puts
    assert fourth is not None
    assert fourth > 1_000_002
    crawl.another_server()

    again = [replace(put(url, again=True), number=number) for number, url in ((1, A), (3, f"{A}3"))]
    assert one.step(puts=[*again, replace(put(f"{A}2", again=True), number=2)]).puts == [None, 3, None]


def test_a_batch_that_is_sent_twice_is_done_once_and_one_that_is_late_not_at_all(crawl: Crawl, one: Process):
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


def test_no_session_ended_for_a_lease_after_nobody_called(crawl: Crawl, one: Process, other: Process) -> None:
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


def holder(crawl: Crawl, *urls: str, name: str = "dead") -> Process:
    process = crawl.process(name)
    process.put(*urls)
    process.pick()
    return process


def out(process: Process, url: str) -> Out:
    return Out("a.example", process.fences["a.example"], HOST, digest(url))


def test_a_session_whose_end_has_passed_is_renewed_if_nobody_ended_it(crawl: Crawl) -> None:
    one = holder(crawl, A)
    crawl.expire(one)
    assert not one.step().lost
    assert crawl.process("other").step(room=9).picked == []


def test_a_session_that_others_ended_is_lost_and_only_what_needs_none_is_done(crawl: Crawl) -> None:
    one, other = holder(crawl, A, B), crawl.process("other")
    crawl.expire(one)
    other.pick()

    reply = one.step(
        ended=[ended(A)],
        puts=[put("https://b.example/")],
        leaves=[Leave("a.example", one.fences["a.example"], 0, None)],
        takes=["c.example"],
        room=9,
    )

    assert reply.lost
    assert (reply.waiting, reply.done, len(reply.puts)) == (2, 1, 1)
    assert (reply.taken, reply.picked) == ([], [])
    assert crawl.client.sismember(crawl.key("held:other"), "a.example")


def test_homes_of_a_dead_session_go_to_others_with_the_age_of_its_lease(crawl: Crawl) -> None:
    dead, other = holder(crawl, A, B), crawl.process("other")
    crawl.expire(dead, ago=3 * SECOND)
    [(taken, [(origin, rows)])] = other.step(room=9).picked
    assert (taken.home, taken.clean, origin, paths(rows)) == ("a.example", False, HOST, ["/a", "/b"])
    assert taken.fence > dead.fences["a.example"]
    assert taken.age is not None
    assert 3 * SECOND <= taken.age < 4 * SECOND


def test_a_page_that_kills_its_processes_is_given_up(crawl: Crawl) -> None:
    for number in range(3):
        dead = holder(crawl, A, name=f"dead-{number}")
        dead.step(outs=[out(dead, A)])
        crawl.expire(dead)
        reply = crawl.process(f"other-{number}").step(bye=True)

    [(origin, row)] = reply.given_up
    assert (origin, json.loads(row.text)[0], row.tries) == (*split(A), 3)
    assert (reply.waiting, reply.dropped) == (0, 1)
    assert crawl.process("last").put(A).puts == [None]
    assert crawl.process("last2").pick() == {}


@pytest.mark.parametrize("then", ["back", "requeued", "ended", "left"])
def test_what_was_no_more_out_is_not_tried(crawl: Crawl, then: str) -> None:
    dead, other = holder(crawl, A, B), crawl.process("other")
    fence = dead.fences["a.example"]
    dead.step(outs=[out(dead, A)])
    if then == "back":
        dead.step(backs=[Back("a.example", fence, HOST, digest(A))])
    elif then == "requeued":
        dead.step(requeued=[Requeued("a.example", HOST, digest(A), 0, None)])
    elif then == "ended":
        dead.step(ended=[ended(A)])
        dead.put(A, again=True)
    else:
        dead.step(leaves=[Leave("a.example", fence, 0, None)])
        assert not crawl.client.exists(crawl.key("o:a.example"))
        dead.pick()
    crawl.expire(dead)

    [(_, [(_, rows)])] = other.step(room=9).picked

    assert {row.tries for row in rows} == {0}


def test_a_session_that_others_have_begun_to_end_is_lost(crawl: Crawl) -> None:
    """Some of its homes may be theirs by now."""
    late, other = crawl.process("late"), crawl.process("other")
    homes = [f"{number}.example" for number in range(200)]
    for start in range(0, 200, 100):
        late.step(check=False, takes=homes[start : start + 100])
    other.step(check=False)
    crawl.expire(late)
    assert other.step(check=False).next_in == 0

    taken = other.step(check=False, takes=homes).taken
    reply = late.step(check=False)

    assert 0 < len(taken) < 200
    assert reply.lost
    while other.step(check=False).next_in == 0:
        pass
    assert [key for key in crawl.client.scan_iter() if "late" in key] == []
    assert list(crawl.client.hgetall(crawl.key("seq"))) == ["other"]


def test_the_end_of_a_session_leaves_none_of_its_keys(crawl: Crawl) -> None:
    dead, other = crawl.process("dead", gate_alone=True, closed=True), crawl.process("other")
    dead.step(takes=["a.example"])
    other.put(A)
    other.step(takes=["a.example"])
    crawl.expire(dead)
    other.step()

    assert [key for key in crawl.client.scan_iter() if "dead" in key] == []
    for name in ("s", "seq"):
        assert list(crawl.client.hgetall(crawl.key(name))) == ["other"]
    assert crawl.client.exists(crawl.key("closed"), crawl.key("alone")) == 0


def test_goodbye_with_all_homes_left_ends_the_session_at_once(crawl: Crawl) -> None:
    one, other = holder(crawl, A, name="one"), crawl.process("other")
    other.step()
    one.step(leaves=[Leave("a.example", one.fences["a.example"], 0, None)], bye=True)
    assert other.step().live == 1
    assert other.pick() == {HOST: ["/a"]}


def test_goodbye_with_a_home_held_leaves_it_until_the_lease_is_over(crawl: Crawl) -> None:
    one, other = holder(crawl, A, name="one"), crawl.process("other")
    ends = crawl.client.hget(crawl.key("s"), "one")

    one.step(bye=True)

    assert crawl.client.hget(crawl.key("s"), "one") == ends
    assert other.step(room=9).picked == []
    crawl.expire(one)
    [(taken, _)] = other.step(room=9).picked
    assert not taken.clean


def test_all_are_closed_when_each_live_session_is(crawl: Crawl, one: Process, other: Process) -> None:
    assert not one.step().all_closed
    assert one.step(closed=True).all_closed
    assert not other.step().all_closed
    assert not one.step(closed=True).all_closed
    crawl.expire(other)
    assert one.step(closed=True).all_closed
