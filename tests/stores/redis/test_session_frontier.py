"""The homes of a process with a frontier: which it picks, shares and gives away."""

import asyncio

import pytest

from polite.errors import StoreEmptied
from tests.stores.redis.scripted_link import Request
from tests.stores.redis.sessions import Process, fresh, gives

pytestmark = pytest.mark.virtual_time
BEAT_S = 1.0


@pytest.mark.parametrize(("room", "shares"), [(10, [2, 2, 2, 2]), (3, [1, 1, 1, 0])])
async def test_partitions_share_the_room(room: int, shares: list[int]) -> None:
    process = Process(lambda r: {}, partitions=4)

    process.crawl(room=room)
    await asyncio.sleep(0.0005)

    assert [r["room"] for r in process.link.sent] == shares


async def test_homes_of_the_last_partition_are_picked_though_all_ask_at_one_moment() -> None:
    line: list[str] = []
    seen: list[str] = []

    def answer(request: Request) -> Request:
        # Each partition has a session of its own, and the homes are in the last one.
        if request["session"] not in seen:
            seen.append(request["session"])
        if seen.index(request["session"]) != 3:
            return {"inline": 0, "held": 0}
        picked = [[*fresh(line.pop()), []] for _ in range(min(request["room"], len(line)))]
        return {"picked": picked, "inline": len(line), "held": 0, "fair": 12}

    process = Process(answer, partitions=4)
    names = [f"{number}.com" for number in range(100)]
    line += [name for name in names if process.session.partition(name).index == 3][:12]
    frontier = process.crawl(room=3)
    picked: set[str] = set()
    while len(picked) < 12 and asyncio.get_running_loop().time() < 10:
        for name in list(frontier.homes):
            picked.add(name)
            frontier.done(name)
        await asyncio.sleep(0.3)

    assert len(picked) == 12
    assert len(process.link.sent) < 200


async def test_a_released_home_leaves_with_its_rest_unless_the_gate_needs_it() -> None:
    process = Process(
        lambda r: {"picked": [[*fresh(name), []] for name in ("a.com", "b.com")] if r["first"] else []}
    )
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    process.pacer.waiting.add("b.com")

    frontier.done("a.com", rest_s=7.0)
    frontier.done("b.com")
    await asyncio.sleep(0.1)

    [leave] = [leave for request in process.link.sent for leave in request.get("leaves", [])]
    assert (leave[0], leave[2]) == ("a.com", 7_000_000)
    home = process.session.held("b.com")
    assert home is not None

    process.pacer.waiting.clear()
    process.session.entered(home)
    process.session.left(home)
    await asyncio.sleep(0.1)
    assert process.all_leaves() == ["a.com", "b.com"]


async def test_a_withdrawn_home_leaves_when_its_turn_ended_and_the_frontier_released_it() -> None:
    starving = False
    process = Process(
        lambda r: {"picked": [[*fresh("a.com"), []]] if r["first"] else [], "starving": starving, "fair": 0}
    )
    frontier = process.crawl()
    frontier.releases_at_once = False
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    process.session.entered(home)

    starving = True
    await asyncio.sleep(2.0)
    assert frontier.withdrawn_homes == ["a.com"]
    assert process.session.held("a.com") is None
    process.session.left(home)
    await asyncio.sleep(1.0)
    assert process.all_leaves() == []
    process.session.release(home)
    await asyncio.sleep(0.1)

    assert process.all_leaves() == ["a.com"]
    assert frontier.withdrawn_homes == ["a.com"]


async def test_a_home_whose_robots_txt_is_being_fetched_is_given_away_when_it_is_there() -> None:
    starving = False
    process = Process(
        lambda r: {"picked": [[*fresh("a.com"), []]]} if r["first"] else {"starving": starving, "fair": 0}
    )
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    frontier.kept.add("a.com")

    starving = True
    await asyncio.sleep(10.0)
    assert frontier.withdrawn_homes == []
    frontier.kept.clear()
    await asyncio.sleep(3.0)

    assert frontier.withdrawn_homes == ["a.com"]


async def test_news_make_a_home_of_the_gate_one_of_the_frontier() -> None:
    news: list[object] = []
    process = Process(lambda r: gives(r) | {"news": news})
    frontier = process.crawl()
    home = await process.session.take("a.com")

    news.append(["a.com", "https://a.com", [["d", 1, 0, "[]"]]])
    await asyncio.sleep(1.1)

    assert home.used
    assert frontier.told[0] == ("a.com", "https://a.com")


async def test_a_lost_session_withdraws_all_homes_and_begins_anew() -> None:
    lost = False
    process = Process(lambda r: {"lost": True} if lost else gives(r))
    frontier = process.crawl()
    home = await process.session.take("a.com")
    home.used = True
    frontier.homes["a.com"] = home

    lost = True
    await asyncio.sleep(1.05)
    lost = False
    await asyncio.sleep(0.1)

    assert frontier.withdrawn_homes == ["a.com"]
    assert not home.good
    assert process.pacer.handed == []
    assert process.session.held("a.com") is None


async def test_an_emptied_store_fails_a_frontier_and_all_that_waits() -> None:
    emptied = False
    process = Process(lambda r: {"err": "emptied"} if emptied else {"picked": [[*fresh("a.com"), []]]})
    frontier = process.crawl(room=1)
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    waiting = asyncio.create_task(process.session.take("b.com"))
    await asyncio.sleep(0.0)

    emptied = True

    with pytest.raises(StoreEmptied):
        await waiting
    with pytest.raises(StoreEmptied):
        await process.session.take("c.com")
    assert not home.good
    assert [type(failure) for failure in frontier.failures] == [StoreEmptied]
    assert frontier.withdrawn_homes == ["a.com"]
    await process.session.close()
