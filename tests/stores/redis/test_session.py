"""The homes of a process: how they come and which of them leave, in virtual time."""

import asyncio

import pytest

from polite.errors import StoreFailed
from polite.events import StoreAway, StoreBack
from polite.pacing.homes import TakenHome
from tests.stores.redis.sessions import Process, gives

pytestmark = pytest.mark.virtual_time
BEAT_S = 1.0


# Taking


async def test_a_home_is_taken_and_its_pacer_learns_what_is_known_first() -> None:
    process = Process(
        lambda r: {"taken": [["a.com", 4, 2_000_000, False, 500_000, "{}"]] if "takes" in r else []}
    )

    home = await process.session.take("a.com")

    assert process.pacer.taken == [TakenHome("a.com", 0.5, 2.0, False, "{}")]
    assert (home.name, home.fence, home.good) == ("a.com", 4, True)
    assert process.session.held("a.com") is home
    assert await process.session.take("a.com") is home


async def test_homes_are_asked_for_together_and_again_each_200_ms() -> None:
    process = Process(lambda r: {})

    tasks = [asyncio.create_task(process.session.take(name)) for name in ("a.com", "b.com", "a.com")]
    await asyncio.sleep(0.5)

    assert [r["takes"] for r in process.link.sent] == [["a.com", "b.com"]] * 3
    assert [when for when, _ in process.link.requests] == [
        pytest.approx(t, abs=0.01) for t in (0.03, 0.23, 0.43)
    ]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    process = Process(lambda r: {})
    waiting = [asyncio.create_task(process.session.take("a.com")) for _ in range(2)]
    await asyncio.sleep(0.1)

    waiting[0].cancel()
    await asyncio.sleep(0.2)
    assert process.link.sent[-1]["takes"] == ["a.com"]
    waiting[1].cancel()
    await asyncio.sleep(0.5)

    assert "takes" not in process.link.sent[-1]
    assert len(process.link.sent) <= 4


async def test_a_wait_fails_after_60_s_without_the_store() -> None:
    process = Process(gives)
    process.link.down = True

    with pytest.raises(
        StoreFailed, match=r"redis://example\.com:6379/0 has not responded since .* connection refused"
    ):
        await process.session.take("a.com")

    assert 60.0 <= process.clock.monotonic() < 63.0


async def test_a_home_whose_lease_is_over_is_waited_for() -> None:
    process = Process(gives)
    home = await process.session.take("a.com")
    process.link.down = True
    await asyncio.sleep(6.0)
    assert not home.good

    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(1.0)
    assert not waiting.done()
    process.link.down = False

    assert await waiting is home
    assert home.good


# Leaving


async def test_the_home_of_a_gate_stays_until_it_is_idle_for_30_s_to_a_minute() -> None:
    process = Process(gives)
    process.pacer.rest_s = 1.5
    home = await process.session.take("a.com")
    process.session.entered(home)
    await asyncio.sleep(100.0)
    assert process.session.held("a.com") is home

    process.session.left(home)
    await asyncio.sleep(29.0)
    assert process.session.held("a.com") is home
    await asyncio.sleep(35.0)

    assert process.session.held("a.com") is None
    [leave] = [leave for r in process.link.sent for leave in r.get("leaves", [])]
    assert leave == ["a.com", home.fence, 1_500_000, "state of a.com"]


async def test_a_home_that_is_waited_for_does_not_keep_others_that_are_idle() -> None:
    process = Process(gives)
    await process.session.take("a.com")
    process.pacer.waiting.add("a.com")
    await asyncio.sleep(10.0)
    await process.session.take("b.com")

    await asyncio.sleep(35.0)

    assert process.session.held("a.com") is not None
    assert process.session.held("b.com") is None


async def test_beyond_10_000_homes_the_one_used_longest_ago_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.stores.redis.held_homes._MOST_HELD", 2)
    process = Process(gives)
    first = await process.session.take("a.com")
    second = await process.session.take("b.com")
    process.session.entered(first)
    process.session.left(first)

    third = await process.session.take("c.com")
    await asyncio.sleep(0.1)

    assert [home.good for home in (first, second, third)] == [True, False, True]


@pytest.mark.parametrize("demand", ["waits", "turn"])
async def test_with_demand_it_leaves_after_5_s_but_never_with_a_turn_open(demand: str) -> None:
    recalls: list[str] = []
    process = Process(lambda r: gives(r) | {"recalls": recalls})
    home = await process.session.take("a.com")
    if demand == "turn":
        process.session.entered(home)
    else:
        process.pacer.waiting.add("a.com")

    recalls.append("a.com")
    await asyncio.sleep(4.5)
    assert process.session.held("a.com") is home
    await asyncio.sleep(1.0)
    assert process.session.held("a.com") is None

    if demand == "turn":
        await asyncio.sleep(20.0)
        assert process.all_leaves() == []
        assert home.good
        process.session.left(home)
        await asyncio.sleep(0.1)
    assert process.all_leaves() == ["a.com"]
    assert not home.good


async def test_a_recalled_home_is_not_taken_again_for_a_beat() -> None:
    recalls = ["a.com"]
    process = Process(lambda r: gives(r) | {"recalls": recalls if not r["first"] else []})
    await process.session.take("a.com")
    await asyncio.sleep(1.1)
    left_at = process.clock.monotonic()
    recalls.clear()

    await process.session.take("a.com")

    assert 0.8 < process.clock.monotonic() - left_at < 1.3


# Events


async def test_one_event_tells_that_the_store_is_away_and_one_that_it_is_back() -> None:
    process = Process(gives, partitions=3)
    process.session.begin()
    await asyncio.sleep(0.5)

    process.link.down = True
    await asyncio.sleep(1.4)
    assert process.events == []
    await asyncio.sleep(20.0)
    process.link.down = False
    await asyncio.sleep(2.0)

    away, back = process.events
    assert away == StoreAway("redis://example.com:6379/0", "connection refused")
    assert isinstance(back, StoreBack)
    assert back.away_s == pytest.approx(21.2, abs=1.2)


async def test_the_store_is_back_when_all_partitions_are() -> None:
    process = Process(gives, partitions=2)
    process.session.begin()
    await asyncio.sleep(0.5)

    process.link.down_for.add("polite:{news:1}:")
    await asyncio.sleep(20.0)
    assert [type(event) for event in process.events] == [StoreAway]
    process.link.down_for.clear()
    await asyncio.sleep(2.0)

    assert [type(event) for event in process.events] == [StoreAway, StoreBack]


# Many processes
