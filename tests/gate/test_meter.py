"""A meter receives the times of each permit as numbers, and costs nothing where there is none."""

import asyncio
import logging
from typing import Any

import pytest

import polite
from tests.gate.support import PAGE, opened, visit

pytestmark = pytest.mark.virtual_time


class Noting:
    """A meter that keeps what it received."""

    def __init__(self) -> None:
        self.grants: list[tuple[float, str | None]] = []
        self.ends: list[tuple[int | None, float]] = []

    def granted(self, waited_s: float, task: polite.Task | None) -> None:
        self.grants.append((waited_s, None if task is None else task.url))

    def left(self, status: int | None, held_s: float) -> None:
        self.ends.append((status, held_s))


class Failing:
    """A meter that fails."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def granted(self, waited_s: float, task: polite.Task | None) -> None:
        raise self.error

    def left(self, status: int | None, held_s: float) -> None:
        raise self.error


async def hold(gate: polite.Gate, seconds: float, status: int | None) -> None:
    async with gate.permit(PAGE) as permit:
        if status is not None:
            permit.report(status=status)
        await asyncio.sleep(seconds)


async def test_a_meter_receives_how_long_permits_waited_and_were_held() -> None:
    meter = Noting()
    async with opened() as (gate, _):
        gate.measure(meter)
        await hold(gate, 0.25, 200)
        await hold(gate, 3, None)

    # One delay after robots.txt, and one after the first page.
    assert meter.grants == [(1.0, None), (0.75, None)]
    assert meter.ends == [(200, 0.25), (None, 3.0)]


async def test_a_meter_receives_how_long_a_task_was_queued() -> None:
    meter = Noting()
    async with opened() as (gate, _):
        gate.measure(meter)
        frontier = polite.Frontier(gate)
        await frontier.put(PAGE)
        await asyncio.sleep(5)
        async with await frontier.__anext__() as permit:
            permit.report(status=503)

    assert meter.grants == [(5.0, PAGE)]
    assert meter.ends == [(503, 0.0)]


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("error", [ZeroDivisionError(), asyncio.CancelledError()])
async def test_what_a_meter_raises_is_logged_and_hinders_nothing(
    error: BaseException, others: int, caplog: pytest.LogCaptureFixture
) -> None:
    meter = Noting()
    async with opened() as (gate, _):
        gate.measure(Failing(error))
        for _ in range(others):
            gate.measure(meter)
        await visit(gate)
        await visit(gate)
        assert gate.inside == 0

    failures = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert len(failures) == 4
    assert len(meter.grants) == 2 * others


@pytest.mark.parametrize("meter", [None, 3, print, [].append])
async def test_what_lacks_a_method_is_no_meter(meter: Any) -> None:
    async with opened() as (gate, _):
        with pytest.raises(polite.InvalidOption, match="meter must be a Meter"):
            gate.measure(meter)


async def test_queued_counts_the_tasks_of_all_frontiers_that_were_not_stopped() -> None:
    async with opened() as (gate, _):
        first, second = polite.Frontier(gate), polite.Frontier(gate)
        await first.put_many([PAGE, f"{PAGE}/2"])
        await second.put(PAGE)

        assert gate.queued == 3
        second.stop()
        assert gate.queued == 2
        del first
        assert gate.queued in (0, 2)  # it may be collected
