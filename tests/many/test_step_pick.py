"""step.lua, steps 10, 12 and 13: origins that rest, rows for homes that are held, and homes from the line."""

import pytest

from polite.stores.redis.changes import Leave, Load, Mine, Postpone
from tests.many.stepping import BEAT, SECOND, Crawl, Process, paths

HOST, PLAIN = "https://a.example", "http://a.example"


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


def test_a_session_with_too_few_starves_and_others_see_it_for_a_moment(
    crawl: Crawl, one: Process, other: Process
) -> None:
    one.put(*(f"https://{number}.example/" for number in range(2)))
    assert not one.step(room=9).starving

    other.step(room=9)

    reply = one.step()
    assert (reply.starving, reply.fair) == (True, 1)
    crawl.age(2 * SECOND)
    assert not one.step().starving


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


def test_a_picked_home_comes_with_32_rows_of_an_origin_and_others_are_loaded_in_order(
    one: Process, other: Process
) -> None:
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


def test_news_whose_reply_was_lost_come_again(one: Process, other: Process) -> None:
    one.put(f"{HOST}/a")
    one.pick()
    mine = [Mine("a.example", one.fences["a.example"])]
    other.put(f"{HOST}/b")
    one.step()

    assert [paths(rows) for _, _, rows in one.step(mine=mine).news] == [["/a", "/b"]]
    assert one.step().news == []
    assert one.step(mine=mine).news == []


def test_a_call_answers_100_news_and_then_the_others(one: Process, other: Process) -> None:
    one.put("https://a.example/")
    one.pick()
    other.put(*many_origins(120))

    replies = [one.step() for _ in range(3)]

    assert [len(reply.news) for reply in replies] == [100, 20, 0]
    assert [reply.next_in for reply in replies] == [0, None, None]


def test_a_postponed_origin_is_news_when_its_time_has_come(crawl: Crawl, one: Process) -> None:
    one.put(f"{HOST}/a", f"{PLAIN}/b")
    one.pick()

    one.step(postpones=[Postpone("a.example", one.fences["a.example"], PLAIN, 5 * SECOND)])

    reply = one.step()
    assert reply.news == []
    assert 4 * SECOND < (reply.next_in or 0) <= 5 * SECOND
    crawl.age(5 * SECOND)
    assert origins_of_news(one) == {PLAIN}


@pytest.mark.parametrize("origin", [HOST, PLAIN])
def test_a_home_whose_origins_all_wait_is_in_line_from_the_first_ones_time(
    crawl: Crawl, origin: str, one: Process, other: Process
) -> None:
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
