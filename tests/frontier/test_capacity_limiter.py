"""A FIFO capacity limiter: in order, and no slot is lost, whichever waiter is cancelled and whenever."""

import asyncio

import pytest

from polite.frontier.progress import CapacityLimiter


async def step() -> None:
    await asyncio.sleep(0)


async def test_a_free_slot_is_given_at_once() -> None:
    limiter = CapacityLimiter(1)

    await limiter.acquire()

    assert (limiter.taken, limiter.full) == (1, True)


async def test_waiters_are_served_in_order() -> None:
    limiter, order = CapacityLimiter(1), []
    await limiter.acquire()

    async def enter(name: str) -> None:
        await limiter.acquire()
        order.append(name)

    tasks = [asyncio.create_task(enter(name)) for name in "ab"]
    await step()
    limiter.release()
    limiter.release()
    await asyncio.gather(*tasks)

    assert order == ["a", "b"]
    assert limiter.taken == 1


async def test_a_new_request_does_not_overtake_waiters() -> None:
    limiter = CapacityLimiter(1)
    await limiter.acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await step()
    limiter.release()

    assert limiter.full
    await waiting


@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_a_slot_granted_to_a_cancelled_waiter_goes_to_the_next(cancelled_first: bool) -> None:
    limiter = CapacityLimiter(1)
    await limiter.acquire()
    first, second = [asyncio.create_task(limiter.acquire()) for _ in range(2)]
    await step()
    for act in (first.cancel, limiter.release) if cancelled_first else (limiter.release, first.cancel):
        act()
    await asyncio.wait([first, second])

    assert first.cancelled()
    assert not second.cancelled()
    assert limiter.taken == 1


async def test_a_slot_of_a_cancelled_waiter_is_free() -> None:
    limiter = CapacityLimiter(1)
    await limiter.acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await step()
    limiter.release()
    waiting.cancel()
    await asyncio.wait([waiting])

    assert (limiter.taken, limiter.full) == (0, False)


async def test_a_task_added_beyond_the_limit_makes_others_wait_longer() -> None:
    limiter = CapacityLimiter(1)
    await limiter.acquire()
    limiter.add()
    waiting = asyncio.create_task(limiter.acquire())
    await step()
    limiter.release()
    await step()
    assert not waiting.done()
    limiter.release()
    await waiting

    assert limiter.taken == 1


@pytest.mark.parametrize("cancel", ["before", "after", "never"])
async def test_shutting_sends_everyone_home(cancel: str) -> None:
    limiter = CapacityLimiter(1)
    await limiter.acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await step()
    if cancel == "before":
        waiting.cancel()
    limiter.fail_waiters(KeyError("shut"))
    if cancel == "after":
        waiting.cancel()
    (result,) = await asyncio.gather(waiting, return_exceptions=True)

    assert type(result) is (KeyError if cancel == "never" else asyncio.CancelledError)
    assert limiter.taken == 1
