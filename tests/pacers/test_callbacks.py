"""Turns without a waiting task: acquire_now and acquire_later."""

import asyncio

import pytest

from polite.errors import GateClosed
from polite.pacing.pacer import LocalPacer
from polite.testing import ManualClock
from tests.pacers.conftest import A


async def test_acquire_now_returns_a_free_turn_or_none() -> None:
    clock = ManualClock()
    pacer = LocalPacer(clock, max_waiting=1)

    turn = pacer.acquire_now([A])
    assert turn is not None
    assert not turn.waited
    assert pacer.acquire_now([A]) is None
    assert pacer.outlook([A]).waiting == 0
    waiting = asyncio.create_task(pacer.acquire([A]))
    await asyncio.sleep(0)
    assert pacer.acquire_now([A]) is None

    pacer.give_back(turn)
    await clock.advance_and_run(1.0)
    assert waiting.done()


async def test_acquire_later_calls_back_in_a_later_step_once_a_turn_is_free() -> None:
    clock = ManualClock()
    pacer, calls = LocalPacer(clock), []

    for name in "12":
        pacer.acquire_later([A], lambda turn, error, name=name: calls.append((name, turn, error)))
    assert calls == []
    await asyncio.sleep(0)
    assert [name for name, _, _ in calls] == ["1"]
    pacer.settle(calls[0][1], 5.0)
    pacer.release(calls[0][1])
    await clock.advance_and_run(4.9)
    assert len(calls) == 1
    await clock.advance_and_run(0.2)

    assert [(name, error) for name, _, error in calls] == [("1", None), ("2", None)]
    assert [turn.waited for _, turn, _ in calls] == [False, True]


@pytest.mark.parametrize("steps", [0, 1])
async def test_a_cancelled_callback_gives_its_turn_back(steps: int) -> None:
    clock = ManualClock()
    pacer, calls = LocalPacer(clock), []
    first = pacer.acquire_now([A])
    assert first is not None

    call = pacer.acquire_later([A], lambda *_: calls.append(1))
    if steps:
        pacer.give_back(first)
        clock.advance(1.0)
    call.cancel()
    call.cancel()
    if not steps:
        pacer.give_back(first)
    await clock.advance_and_run(10.0)

    assert calls == []
    assert pacer.acquire_now([A]) is not None


async def test_closing_calls_back_with_an_error() -> None:
    pacer, errors = LocalPacer(ManualClock()), []
    assert pacer.acquire_now([A]) is not None
    call = pacer.acquire_later([A], lambda _, error: errors.append(type(error)))
    cancelled = pacer.acquire_later([A], lambda _, error: errors.append("cancelled"))
    cancelled.cancel()

    await pacer.close()
    await asyncio.sleep(0)

    assert errors == [GateClosed]
    assert call.done()
    for ask in (lambda: pacer.acquire_now([A]), lambda: pacer.acquire_later([A], lambda *_: None)):
        with pytest.raises(GateClosed):
            ask()
