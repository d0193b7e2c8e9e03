"""A sweep looks at all holders once a round, some in each step, and at none while no slot is needed."""

import asyncio

import pytest

from polite.frontier.sweep import Sweep
from polite.testing import LoopClock

pytestmark = pytest.mark.virtual_time


async def test_each_holder_is_looked_at_once_a_round() -> None:
    seen: list[int] = []
    sweep: Sweep[int] = Sweep(LoopClock(), lambda: range(120), seen.append, needed=lambda: True)

    sweep.resume()
    await asyncio.sleep(29)
    sweep.resume()
    assert sorted(seen) == list(range(120))
    await asyncio.sleep(2)
    sweep.stop()

    assert sorted(seen) == sorted(2 * list(range(120)))


async def test_it_stops_when_nothing_waits_and_continues_where_it_was() -> None:
    seen: list[int] = []
    sweep: Sweep[int] = Sweep(LoopClock(), lambda: range(120), seen.append, needed=lambda: len(seen) != 50)

    sweep.resume()
    await asyncio.sleep(100)
    assert len(seen) == 50
    seen.append(-1)
    sweep.resume()
    await asyncio.sleep(1)
    sweep.stop()

    assert sorted(seen) == [-1, *range(120)]


async def test_nothing_is_looked_at_after_the_end() -> None:
    seen: list[int] = []
    sweep: Sweep[int] = Sweep(LoopClock(), lambda: range(120), seen.append, needed=lambda: True)

    sweep.resume()
    sweep.stop()
    await asyncio.sleep(100)

    assert not seen
