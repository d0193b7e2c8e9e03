"""The end of a crawl, and of a session."""

import asyncio
from collections.abc import Callable
from itertools import count

import pytest

from polite.errors import GateClosed
from polite.stores.redis.session import Remaining
from tests.stores.redis.scripted_link import Request
from tests.stores.redis.sessions import Process, gives

pytestmark = pytest.mark.virtual_time
BEAT_S = 1.0


# The end of a crawl


def counts(**totals: int) -> Callable[[Request], Request]:
    return lambda request: {"waiting": 0, "quiet": 0, "nputs": 7, "all_closed": True} | totals


async def test_a_crawl_is_over_when_nothing_waits_in_two_readings() -> None:
    process = Process(counts(), partitions=3)

    assert await process.session.over() == Remaining(empty=True, all_closed=True)
    assert len(process.link.sent) == 6


@pytest.mark.parametrize("totals", [{"waiting": 1}, {"quiet": 1}])
async def test_it_is_not_over_while_something_waits_or_is_not_known(totals: dict[str, int]) -> None:
    assert not (await Process(counts(**totals)).session.over()).empty


async def test_it_is_not_over_when_something_was_put_between_the_readings() -> None:
    puts = count()
    process = Process(lambda r: {"nputs": next(puts)})

    assert not (await process.session.over()).empty


async def test_a_lost_session_has_not_read_that_it_is_over() -> None:
    process = Process(lambda r: counts()(r) | {"lost": not r["first"]})
    process.session.begin()
    await asyncio.sleep(0.1)

    assert not (await process.session.over()).empty


# Closing


async def test_closing_leaves_homes_without_a_turn_and_names_no_other() -> None:
    process = Process(gives)
    process.pacer.rest_s = 2.0
    await process.session.take("a.com")
    home = await process.session.take("b.com")
    process.session.entered(home)

    await process.session.close()

    last = process.link.sent[-1]
    assert last["bye"]
    assert [(leave[0], leave[2]) for leave in last["leaves"]] == [("a.com", 2_000_000)]
    assert not home.good
    process.session.left(home)
    assert process.pacer.handed == ["a.com"]


async def test_closing_fails_them_at_once_though_the_store_is_away() -> None:
    process = Process(gives)
    process.link.down = True
    waiting = asyncio.create_task(process.session.take("a.com"))
    await asyncio.sleep(0.1)

    closing = asyncio.create_task(process.session.close())
    await asyncio.sleep(0.01)

    assert isinstance(waiting.exception(), GateClosed)
    await closing


async def test_closing_ends_after_5_s_though_the_store_is_away() -> None:
    process = Process(gives, partitions=4)
    process.session.begin()
    await process.session.take("a.com")
    process.link.down = True
    await asyncio.sleep(3.0)

    started = process.clock.monotonic()
    await process.session.close()
    await process.session.close()

    assert process.clock.monotonic() - started == pytest.approx(5.0)


async def test_closing_is_finished_before_a_cancellation_is_raised() -> None:
    process = Process(gives)
    await process.session.take("a.com")
    process.link.delay_s = 1.0

    closing = asyncio.create_task(process.session.close())
    await asyncio.sleep(0.5)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert process.link.sent[-1]["bye"]
    assert process.clock.monotonic() > 1.0
