"""One fetch that many wait for, on loops that take a task's first step later and on loops that take it at once."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import pytest

from polite.gate.single_flight import FlightLost, SingleFlight
from tests.project.loops import eager_on_uvloop
from tests.support import Abort


@pytest.fixture(
    params=[
        "later",
        pytest.param("at once", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="not eager")),
    ]
)
async def loop(request) -> asyncio.AbstractEventLoop:
    """When a task takes its first step: in a later step of the loop, or within create_task."""
    loop = asyncio.get_running_loop()
    on_uvloop = not isinstance(loop, asyncio.BaseEventLoop)
    if request.param == "at once" and on_uvloop and not eager_on_uvloop():
        pytest.skip(
            "uvloop 0.23 (its #748) passes eager_start, which the factory of this Python (3.13.0) refuses"
        )
    loop.set_task_factory(asyncio.eager_task_factory if request.param == "at once" else None)
    return loop


class Hangar:
    def __init__(self) -> None:
        self.flights: dict[str, SingleFlight[str]] = {}
        self.landed = 0

    def start(self, work: Callable[[], Awaitable[str]]) -> SingleFlight[str]:
        flight = self.flights["one"] = SingleFlight(work, name="one", on_end=self.land)
        return flight

    def land(self) -> None:
        self.landed += 1
        self.flights.pop("one")


async def test_a_flight_cancelled_before_its_work_began_lands_once_and_is_lost(loop) -> None:
    async def work() -> str:
        raise AssertionError("it never begins")

    hangar = Hangar()
    flight = hangar.start(work)
    joining = asyncio.ensure_future(flight.join())
    flight._task.cancel()

    with pytest.raises(FlightLost):
        await joining
    await flight.ended()
    await asyncio.sleep(0)
    assert (hangar.flights, hangar.landed) == ({}, 1)


async def test_the_last_cancelled_waiter_cancels_the_work(loop) -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    hangar, ended = Hangar(), asyncio.Event()
    flight = hangar.start(work)
    joining = [asyncio.ensure_future(flight.join()) for _ in range(2)]
    await asyncio.sleep(0.01)
    joining[0].cancel()
    await asyncio.sleep(0)
    leaving_before = flight.leaving
    joining[1].cancel()
    await flight.ended()

    assert (leaving_before, flight.leaving, ended.is_set(), hangar.landed) == (False, True, True, 1)


@pytest.mark.parametrize("error", [Abort("stop"), OSError("no disk")])
async def test_an_error_reaches_all_that_joined(loop, error: BaseException) -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        raise error

    hangar = Hangar()
    flight = hangar.start(work)
    joining = [asyncio.ensure_future(flight.join()) for _ in range(3)]

    ended = await asyncio.wait_for(asyncio.gather(*joining, return_exceptions=True), 5.0)
    await flight.ended()

    assert ended == [error] * 3
    assert (hangar.flights, hangar.landed) == ({}, 1)


async def test_work_that_is_to_go_on_is_not_cancelled_by_the_last_waiter_that_leaves() -> None:
    ended: list[str] = []

    async def work() -> None:
        await asyncio.sleep(1)
        ended.append("work")

    flight = SingleFlight(work, name="f", on_end=lambda: ended.append("flight"))
    waiter = asyncio.create_task(flight.join())
    await asyncio.sleep(0.5)
    flight.go_on()
    waiter.cancel()
    await asyncio.sleep(0)
    assert not flight.leaving
    await flight.ended()

    assert ended == ["work", "flight"]
