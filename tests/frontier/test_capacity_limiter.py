"""A FIFO capacity limiter: in order, and no slot is lost, whichever waiter is cancelled and whenever."""

import asyncio

import pytest

from polite.frontier.capacity_limiter import CapacityLimiter


async def step() -> None:
    await asyncio.sleep(0)


async def test_who_finds_room_enters_at_once() -> None:
    room = CapacityLimiter(1)

    await room.enter()

    assert (room.taken, room.full) == (1, True)


async def test_who_finds_none_waits_in_line() -> None:
    room, order = CapacityLimiter(1), []
    await room.enter()

    async def enter(name: str) -> None:
        await room.enter()
        order.append(name)

    tasks = [asyncio.create_task(enter(name)) for name in "ab"]
    await step()
    room.leave()
    room.leave()
    await asyncio.gather(*tasks)

    assert order == ["a", "b"]
    assert room.taken == 1


async def test_nobody_overtakes_those_in_line() -> None:
    room = CapacityLimiter(1)
    await room.enter()
    waiting = asyncio.create_task(room.enter())
    await step()
    room.leave()

    assert room.full
    await waiting


@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_a_place_is_passed_on_by_one_who_is_cancelled(cancelled_first: bool) -> None:
    room = CapacityLimiter(1)
    await room.enter()
    first, second = [asyncio.create_task(room.enter()) for _ in range(2)]
    await step()
    for act in (first.cancel, room.leave) if cancelled_first else (room.leave, first.cancel):
        act()
    await asyncio.wait([first, second])

    assert first.cancelled()
    assert not second.cancelled()
    assert room.taken == 1


async def test_a_place_that_nobody_wants_any_more_is_free() -> None:
    room = CapacityLimiter(1)
    await room.enter()
    waiting = asyncio.create_task(room.enter())
    await step()
    room.leave()
    waiting.cancel()
    await asyncio.wait([waiting])

    assert (room.taken, room.full) == (0, False)


async def test_who_pressed_in_makes_others_wait_longer() -> None:
    room = CapacityLimiter(1)
    await room.enter()
    room.press_in()
    waiting = asyncio.create_task(room.enter())
    await step()
    room.leave()
    await step()
    assert not waiting.done()
    room.leave()
    await waiting

    assert room.taken == 1


@pytest.mark.parametrize("cancel", ["before", "after", "never"])
async def test_shutting_sends_everyone_home(cancel: str) -> None:
    room = CapacityLimiter(1)
    await room.enter()
    waiting = asyncio.create_task(room.enter())
    await step()
    if cancel == "before":
        waiting.cancel()
    room.shut(KeyError("shut"))
    if cancel == "after":
        waiting.cancel()
    (result,) = await asyncio.gather(waiting, return_exceptions=True)

    assert type(result) is (KeyError if cancel == "never" else asyncio.CancelledError)
    assert room.taken == 1
