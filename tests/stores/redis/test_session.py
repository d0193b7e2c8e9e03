"""The homes of a process: how they come, which of them a frontier gets, which leave, and how a session ends; in virtual time."""

import asyncio
import json

import pytest

from polite.errors import GateClosed, StoreEmptied, StoreFailed
from polite.events import StoreAway, StoreBack
from polite.frontier.durable.backend import Batch, Deactivation, News
from polite.frontier.redis.backend import RedisBackend
from polite.pacers.homes import Home, Lease
from polite.stores.redis.step import TaskRow
from tests.stores.redis.support import Process, picks

pytestmark = pytest.mark.virtual_time


async def test_a_wait_fails_after_60_s_without_the_store() -> None:
    process = Process()
    process.link.down = True
    with pytest.raises(StoreFailed, match="has not responded since .* connection refused"):
        await process.homes.take("a.com")
    assert 60.0 <= process.clock.monotonic() < 63.0


async def test_a_home_whose_lease_is_over_is_waited_for() -> None:
    process = Process()
    home = await process.homes.take("a.com")
    process.link.down = True
    await asyncio.sleep(6.0)
    assert not home.good

    waiting = asyncio.create_task(process.homes.take("a.com"))
    await asyncio.sleep(1.0)
    assert not waiting.done()
    process.link.down = False

    assert await waiting is home
    assert home.good


async def test_the_home_of_a_gate_stays_until_it_is_idle_for_30_s_to_a_minute_and_nobody_waits() -> None:
    process = Process()
    process.pacer.rest_s = 1.5
    await process.homes.take("waited.com")
    process.pacer.waiting.add("waited.com")
    home = await process.homes.take("a.com")
    process.homes.entered(home)
    await asyncio.sleep(100.0)
    assert process.homes.held("a.com") is home

    process.homes.left(home)
    await asyncio.sleep(29.0)
    assert process.homes.held("a.com") is home
    await asyncio.sleep(35.0)

    assert process.homes.held("a.com") is None
    assert process.left == [["a.com", home.fence, 1_500_000, "state of a.com"]]
    assert process.homes.held("waited.com") is not None


async def test_beyond_10_000_homes_the_one_used_longest_ago_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.stores.redis.homes._MOST_HELD", 2)
    process = Process()
    first = await process.homes.take("a.com")
    second = await process.homes.take("b.com")
    process.homes.entered(first)
    process.homes.left(first)

    third = await process.homes.take("c.com")
    await asyncio.sleep(0.1)

    assert [home.good for home in (first, second, third)] == [True, False, True]


@pytest.mark.parametrize("demand", ["waits", "turn"])
async def test_with_demand_it_leaves_after_5_s_but_never_with_a_turn_open(demand: str) -> None:
    process = Process()
    home = await process.homes.take("a.com")
    if demand == "turn":
        process.homes.entered(home)
    else:
        process.pacer.waiting.add("a.com")

    process.link.says["recalls"] = ["a.com"]
    await asyncio.sleep(4.5)
    assert process.homes.held("a.com") is home
    await asyncio.sleep(1.0)
    assert process.homes.held("a.com") is None

    if demand == "turn":
        await asyncio.sleep(20.0)
        assert process.left == []
        assert home.good
        process.homes.left(home)
        await asyncio.sleep(0.1)
    assert process.left_names == ["a.com"]
    assert not home.good


async def test_a_recalled_home_is_not_taken_again_for_a_beat() -> None:
    process = Process()
    await process.homes.take("a.com")
    process.link.says["recalls"] = ["a.com"]
    await asyncio.sleep(1.1)
    left_at = process.clock.monotonic()
    process.link.says.clear()

    await process.homes.take("a.com")

    assert 0.8 < process.clock.monotonic() - left_at < 1.3


@pytest.mark.parametrize("away", [{0, 1, 2}, {1}])
async def test_one_event_tells_that_the_store_is_away_and_one_that_all_of_it_is_back(away: set[int]) -> None:
    process = Process(partitions=3)
    process.session.begin()
    await asyncio.sleep(0.5)

    process.link.down_for |= {f"polite:{{news:{number}}}:" for number in away}
    await asyncio.sleep(1.4)
    assert process.events == []
    await asyncio.sleep(20.0)
    assert process.events == [StoreAway("redis://example.com:6379/0", "connection refused")]
    process.link.down_for.clear()
    await asyncio.sleep(2.0)

    _, back = process.events
    assert isinstance(back, StoreBack)
    assert back.away_s == pytest.approx(21.2, abs=1.2)


@pytest.mark.parametrize(("room", "shares"), [(10, [2, 2, 2, 2]), (3, [1, 1, 1, 0])])
async def test_partitions_share_the_room(room: int, shares: list[int]) -> None:
    process = Process(lambda r: {}, partitions=4)
    process.crawl(room=room)
    await asyncio.sleep(0.0005)
    assert [r["room"] for r in process.link.sent] == shares


async def test_a_released_home_leaves_with_its_rest_unless_the_gate_needs_it() -> None:
    process = Process(picks("a.com", "b.com"))
    frontier = process.crawl()
    await asyncio.sleep(0.1)
    process.pacer.waiting.add("b.com")

    frontier.done("a.com", rest_s=7.0)
    frontier.done("b.com")
    await asyncio.sleep(0.1)

    [leave] = process.left
    assert (leave[0], leave[2]) == ("a.com", 7_000_000)
    home = process.homes.held("b.com")
    assert home is not None

    process.pacer.waiting.clear()
    process.homes.entered(home)
    process.homes.left(home)
    await asyncio.sleep(0.1)
    assert process.left_names == ["a.com", "b.com"]


async def test_a_withdrawn_home_leaves_when_its_turn_ended_and_the_frontier_released_it() -> None:
    process = Process(picks("a.com"))
    frontier = process.crawl()
    frontier.releases_at_once = False
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    process.homes.entered(home)
    frontier.kept.add("a.com")

    process.link.says |= {"starving": True, "fair": 0}
    await asyncio.sleep(10.0)
    assert frontier.withdrawn_homes == [], "its robots.txt is being fetched"
    frontier.kept.clear()
    await asyncio.sleep(2.0)
    assert frontier.withdrawn_homes == ["a.com"]
    assert process.homes.held("a.com") is None
    process.homes.left(home)
    await asyncio.sleep(1.0)
    assert process.left == []
    process.homes.release(home)
    await asyncio.sleep(0.1)

    assert (process.left_names, frontier.withdrawn_homes) == (["a.com"], ["a.com"])


ROW = ["digest", 1, 0, '["/", 0, 0, null, null, null, null]']


def shared_frontier(process: Process) -> tuple[RedisBackend, list[News]]:
    told: list[News] = []
    backend = RedisBackend(
        process.session,
        process.clock,
        lambda target: target.origin.host,
        None,
        busy=lambda: True,
        is_fetching=lambda _: False,
    )
    backend.open(3, told.append, lambda: 10)
    return backend, told


async def test_a_home_that_is_picked_and_lost_in_one_step_of_the_loop_is_told_as_lost_alone() -> None:
    process = Process(lambda _: {})
    backend, told = shared_frontier(process)
    home = Home("a.com", 1, Lease(process.clock), 0.0)

    backend.picked(home, [("https://a.com", [TaskRow(*ROW)])])  # type: ignore[arg-type]
    home.over = True
    backend.withdrawn(home)
    await asyncio.sleep(0.001)

    assert ([each.withdrawn for each in told], [each.activated for each in told]) == ([[1]], [[]])


async def test_failures_of_an_origins_rules_go_with_its_home() -> None:
    note = '{"note":"{\\"https://a.com\\": 2}","state":null}'
    home = ["a.com", 1, -1, True, 0, note, [["https://a.com", [ROW]]]]
    process = Process(lambda request: {"picked": [home] if request["first"] else []})
    backend, told = shared_frontier(process)
    await asyncio.sleep(0.1)
    [activated] = [each for news in told for each in news.activated]

    await backend.apply(Batch(deactivated=[Deactivation(activated.origin_id, failures=3)]))
    await asyncio.sleep(0.1)

    assert activated.failures == 2
    [(_, _, _, state)] = process.left
    assert json.loads(json.loads(state)["note"]) == {"https://a.com": 3}


async def test_a_lost_session_withdraws_all_homes_and_begins_anew() -> None:
    process = Process()
    frontier = process.crawl()
    home = frontier.homes["a.com"] = await process.homes.take("a.com")
    home.used = True

    process.link.says["lost"] = True
    await asyncio.sleep(1.05)
    process.link.says.clear()

    assert frontier.withdrawn_homes == ["a.com"]
    assert not home.good
    assert process.pacer.handed == []
    assert process.homes.held("a.com") is None


async def test_an_emptied_store_fails_a_frontier_and_all_that_waits() -> None:
    process = Process(picks("a.com"))
    frontier = process.crawl(room=1)
    await asyncio.sleep(0.1)
    home = frontier.homes["a.com"]
    waiting = asyncio.create_task(process.homes.take("b.com"))
    await asyncio.sleep(0.0)

    process.link.says["err"] = "emptied"

    with pytest.raises(StoreEmptied):
        await waiting
    with pytest.raises(StoreEmptied):
        await process.homes.take("c.com")
    assert not home.good
    assert [type(failure) for failure in frontier.failures] == [StoreEmptied]
    assert frontier.withdrawn_homes == ["a.com"]
    await process.session.close()


async def test_closing_leaves_homes_without_a_turn_and_names_no_other() -> None:
    process = Process()
    process.pacer.rest_s = 2.0
    await process.homes.take("a.com")
    home = await process.homes.take("b.com")
    process.homes.entered(home)

    await process.session.close()

    last = process.link.sent[-1]
    assert last["bye"]
    assert [(leave[0], leave[2]) for leave in last["leaves"]] == [("a.com", 2_000_000)]
    assert not home.good
    process.homes.left(home)
    assert process.pacer.handed == ["a.com"]


async def test_while_the_store_is_away_closing_fails_what_waits_at_once_and_ends_after_5_s() -> None:
    process = Process(partitions=4)
    process.session.begin()
    await process.homes.take("a.com")
    process.link.down = True
    waiting = asyncio.create_task(process.homes.take("b.com"))
    await asyncio.sleep(3.0)

    started = process.clock.monotonic()
    closing = asyncio.create_task(process.session.close())
    await asyncio.sleep(0.01)
    assert isinstance(waiting.exception(), GateClosed)
    await closing
    await process.session.close()

    assert process.clock.monotonic() - started == pytest.approx(5.0)
