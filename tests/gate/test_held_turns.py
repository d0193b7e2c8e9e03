"""One timer watches the turns that are held, whatever happens while it takes one back."""

import asyncio
from typing import Any

import pytest

import polite
from polite.events import Event, Reclaimed
from polite.ports import Timer
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time


class CountingClock(LoopClock):
    """Knows the timers of turns that are held."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[Any] = []

    def call_at(self, when: float, call: Any) -> Timer:
        timer = super().call_at(when, call)
        if "HeldTurns" in call.__qualname__:
            self.timers.append(timer)
        return timer

    def set_ahead(self) -> int:
        """How many are neither cancelled nor over."""
        now = asyncio.get_running_loop().time()
        return sum(not timer.cancelled() and timer.when() > now for timer in self.timers)


async def test_a_listener_that_changes_the_limit_while_a_turn_is_taken_back_leaves_one_timer() -> None:
    limits = iter(range(11, 1_000))

    def listener(event: Event) -> None:
        if isinstance(event, Reclaimed):
            gate.pacing = polite.PacingPolicy(max_hold=float(next(limits)))

    async def held(number: int) -> None:
        await asyncio.sleep(number)
        async with gate.permit(f"https://host{number}.test/"):
            await asyncio.sleep(1_000)

    clock = CountingClock()
    transport = ScriptedTransport({f"https://host{n}.test/robots.txt": Reply(404) for n in range(20)})
    async with scripted_gate(
        transport, clock=clock, listener=listener, pacing=polite.PacingPolicy(max_hold=10.0)
    ) as gate:
        holders = [asyncio.create_task(held(number)) for number in range(20)]
        await asyncio.sleep(17.5)
        assert gate.counters.reclaimed > 2
        assert clock.set_ahead() == 1

        await gate.close()
        assert clock.set_ahead() == 0
        for holder in holders:
            holder.cancel()
        await asyncio.gather(*holders, return_exceptions=True)
