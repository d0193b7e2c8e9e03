"""A StopIteration that a user's clock raises is an error in both forms: compiled coroutines would take it for a result."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import polite
from polite.testing import LoopClock
from tests.gate.support import PAGE, opened, visit

pytestmark = pytest.mark.virtual_time


class EndingClock(LoopClock):
    """A clock of which one method has nothing more to say."""

    ended: str | None = None

    def wall(self) -> float:
        self._look("wall")
        return super().wall()

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        self._look("call_at")
        return super().call_at(when, callback)

    def _look(self, name: str) -> None:
        if name == self.ended:
            raise StopIteration


@pytest.mark.parametrize("ended", ["wall", "call_at"])
async def test_a_clock_that_raises_stop_iteration_grants_no_permit(ended: str) -> None:
    clock, entered = EndingClock(), []
    async with opened(clock=clock) as (gate, _):
        await visit(gate)
        clock.ended = ended
        with pytest.raises(RuntimeError, match="coroutine raised StopIteration"):
            async with gate.permit(PAGE):
                entered.append(PAGE)
        clock.ended = None

        assert entered == []
        await visit(gate)
        assert gate.waiting == 0


async def test_the_error_of_a_closed_gate_has_its_cause() -> None:
    async with opened() as (gate, _):
        await visit(gate)
        waiting: asyncio.Task[Any] = asyncio.create_task(gate.permit(PAGE).enter())
        await asyncio.sleep(0.1)

    with pytest.raises(polite.GateClosed, match="no decision for") as caught:
        await waiting
    assert isinstance(caught.value.__cause__, polite.GateClosed)
