"""Cancelled requests for turns: no turn is lost, and no other request is affected."""

import asyncio

from polite.pacing.pacer import LocalPacer
from tests.pacers.conftest import A, CountingClock, settle_down, taken


async def test_cancelling_a_waiter_right_after_its_grant_passes_the_turn_on() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    first, second = (asyncio.create_task(pacer.acquire((A,))) for _ in range(2))
    await settle_down()

    # The timer resolves the future; the task has not run yet when it is cancelled.
    clock.advance(5.0)
    first.cancel()
    await settle_down()
    await clock.advance_and_run(0.0)

    assert first.cancelled()
    assert second.result().granted_at == 5.0


async def test_cancelling_a_waiter_in_the_step_of_its_grant_passes_the_turn_on() -> None:
    clock = CountingClock()
    pacer = LocalPacer(clock)
    await taken(pacer, 5.0)
    first, second = (asyncio.create_task(pacer.acquire((A,))) for _ in range(2))
    await settle_down()

    # Cancelled first; its task has not run yet when the timer gives it the turn.
    first.cancel()
    clock.advance(5.0)
    await settle_down()
    await clock.advance_and_run(0.0)

    assert first.cancelled()
    assert second.result().granted_at == 5.0


async def test_a_waiter_cancelled_before_closing_stays_cancelled() -> None:
    pacer = LocalPacer(CountingClock())
    await pacer.acquire((A,))
    task = asyncio.create_task(pacer.acquire((A,)))
    await settle_down()

    task.cancel()
    await pacer.close()
    await settle_down()

    assert task.cancelled()
