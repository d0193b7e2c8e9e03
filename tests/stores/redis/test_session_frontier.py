"""The homes of a process with a frontier: which it picks, shares and gives away."""

import asyncio

import pytest

from polite.errors import StoreEmptied
from tests.stores.redis.homes_server import HomesServer
from tests.stores.redis.scripted_link import Request
from tests.stores.redis.sessions import Process, fresh, gives

pytestmark = pytest.mark.virtual_time
BEAT_S = 1.0


async def test_a_frontier_picks_homes_for_which_it_has_room() -> None:
    server = HomesServer(line=["a.com", "b.com", "c.com"])
    process = Process(server.answer)

    frontier = process.crawl(room=2)
    await asyncio.sleep(0.1)

    assert set(frontier.homes) == {"a.com", "b.com"}
    assert process.link.sent[0]["room"] == 2
    assert all(home.used for home in frontier.homes.values())


async def test_partitions_share_the_room() -> None:
    process = Process(lambda r: {}, partitions=4)

    process.crawl(room=10)
    await asyncio.sleep(0.0005)

    assert [r["room"] for r in process.link.sent] == [2, 2, 2, 2]


async def test_homes_of_the_last_partition_are_picked_though_all_ask_at_one_moment() -> None:
    servers = [HomesServer() for _ in range(4)]
    # Each partition has a session of its own.
    seen: list[str] = []

    def answer(request: Request) -> Request:
        if request["session"] not in seen:
            seen.append(request["session"])
        server = servers[seen.index(request["session"])]
        reply = server.answer(request)
        return reply | {"inline": len(server.line), "held": len(server.held_by(request["session"]))}

    process = Process(answer, partitions=4)
    names = [f"{number}.com" for number in range(100)]
    servers[3].line = [name for name in names if process.session.partition(name).index == 3][:12]
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
    server = HomesServer(line=["a.com", "b.com"])
    process = Process(server.answer)
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    process.pacer.waiting.add("b.com")

    frontier.done("a.com", rest_s=7.0)
    frontier.done("b.com")
    await asyncio.sleep(0.1)

    assert process.all_leaves() == ["a.com"]
    assert server.homes["a.com"].free_at == pytest.approx(7.1, abs=0.1)
    home = process.session.held("b.com")
    assert home is not None

    process.pacer.waiting.clear()
    process.session.entered(home)
    process.session.left(home)
    await asyncio.sleep(0.1)
    assert process.all_leaves() == ["a.com", "b.com"]


async def test_above_its_fair_share_a_process_sheds_homes_for_one_that_starves() -> None:
    server = HomesServer(line=[f"{n}.com" for n in range(6)])
    server.tasks = set(server.line)
    rich, poor = Process(server.answer), Process(server.answer)
    holder = rich.crawl()
    await asyncio.sleep(0.1)
    for name in ("0.com", "3.com"):
        rich.session.entered(holder.homes[name])
    rich.session.left(holder.homes["3.com"])

    other = poor.crawl()
    await asyncio.sleep(3.0)

    assert len(other.homes) == len(holder.homes) == 3
    assert "3.com" in other.homes, "it had served, and no turn is open"
    assert "0.com" in holder.homes, "a turn is open"


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


async def test_a_closing_home_gets_no_news() -> None:
    later: Request = {}
    process = Process(lambda r: {"picked": [[*fresh("a.com"), []]]} if r["first"] else later)
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    process.session.entered(home)

    later |= {"starving": True, "fair": 0}
    await asyncio.sleep(1.5)
    later["news"] = [["a.com", "https://a.com", [["d", 1, 0, "[]"]]]]
    await asyncio.sleep(1.5)

    assert home.closing
    assert frontier.told == []


async def test_a_home_that_is_given_anew_is_another() -> None:
    process = Process(lambda r: {"picked": [[*fresh("a.com", r["seq"]), []]]} if r["seq"] < 3 else {})
    frontier = process.crawl()
    await asyncio.sleep(0.01)
    older = frontier.homes["a.com"]
    await asyncio.sleep(0.1)

    assert not older.good
    assert frontier.withdrawn_homes == ["a.com"]
    assert frontier.homes["a.com"].good


async def test_a_home_of_the_gate_with_a_turn_open_is_not_shed() -> None:
    starving = False
    process = Process(lambda r: gives(r) | {"starving": starving, "fair": 0})
    home = await process.session.take("a.com")
    process.session.entered(home)

    starving = True
    await asyncio.sleep(3.0)

    assert process.session.held("a.com") is home


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
