"""What users test with: the clocks and the loop in virtual time."""

import asyncio
import math
import socket
import time

import pytest

import polite.testing
from polite.testing import LoopClock, ManualClock, VirtualTimeLoop


def test_time_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(monotonic=5.0, wall=100.0)

    before = (clock.monotonic(), clock.wall())
    clock.advance(2.5)

    assert before == (5.0, 100.0)
    assert (clock.monotonic(), clock.wall()) == (7.5, 102.5)


def test_timers_are_called_in_order_and_see_their_own_time() -> None:
    clock = ManualClock(monotonic=0.0)
    seen: list[tuple[str, float]] = []
    for name, when in (("late", 9.0), ("soon", 1.0), ("also soon", 1.0), ("past", -1.0), ("beyond", 10.1)):
        clock.call_at(when, lambda name=name: seen.append((name, clock.monotonic())))

    clock.advance(10.0)

    assert seen == [("past", 0.0), ("soon", 1.0), ("also soon", 1.0), ("late", 9.0)]
    assert clock.monotonic() == 10.0


def test_a_timer_set_by_a_timer_is_called_in_the_same_advance() -> None:
    clock = ManualClock(monotonic=0.0)
    seen: list[float] = []
    clock.call_at(1.0, lambda: clock.call_at(2.0, lambda: seen.append(clock.monotonic())))

    clock.advance(5.0)

    assert seen == [2.0]


def test_a_cancelled_timer_is_not_called() -> None:
    clock = ManualClock(monotonic=0.0)
    timer = clock.call_at(1.0, lambda: pytest.fail("it was cancelled"))

    timer.cancel()
    timer.cancel()
    clock.advance(5.0)

    assert clock.monotonic() == 5.0


def test_the_wall_clock_may_be_set_alone() -> None:
    clock = ManualClock(monotonic=0.0)

    clock.set_wall(50.0)
    clock.advance(1.0)

    assert (clock.monotonic(), clock.wall()) == (1.0, 51.0)


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
async def test_time_passes_by_finite_amounts_and_forwards(seconds: float) -> None:
    clock = ManualClock()

    with pytest.raises(ValueError, match="cannot pass"):
        clock.advance(seconds)
    with pytest.raises(ValueError, match="cannot pass"):
        await clock.advance_and_run(seconds)


async def test_tasks_run_between_the_timers() -> None:
    clock = ManualClock(monotonic=0.0)
    seen: list[float] = []

    async def sleep_thrice() -> None:
        for _ in range(3):
            woken = asyncio.Event()
            clock.call_at(clock.monotonic() + 2.0, woken.set)
            await woken.wait()
            seen.append(clock.monotonic())

    task = asyncio.create_task(sleep_thrice())
    await clock.advance_and_run(7.0)

    assert seen == [2.0, 4.0, 6.0]
    assert task.done()
    assert clock.monotonic() == 7.0


def test_an_hour_of_virtual_time_takes_no_time() -> None:
    async def nap() -> tuple[float, float]:
        clock = LoopClock(epoch=1_000.0)
        await asyncio.sleep(3_600.0)
        return clock.monotonic(), clock.wall()

    start = time.monotonic()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        monotonic, wall = runner.run(nap())

    assert monotonic == pytest.approx(3_600.0)
    assert wall == pytest.approx(4_600.0)
    assert time.monotonic() - start < 60.0


@pytest.mark.virtual_time
async def test_a_wait_longer_than_a_selector_may_wait_works() -> None:
    clock = LoopClock()
    start = clock.monotonic()

    await asyncio.sleep(40 * 86_400.0)

    assert clock.monotonic() - start == pytest.approx(40 * 86_400.0)


@pytest.mark.virtual_time
async def test_timers_of_the_loop_clock_are_called_at_their_time() -> None:
    clock, seen = LoopClock(), []
    start = clock.monotonic()

    clock.call_at(start + 5.0, lambda: seen.append(clock.monotonic() - start))
    clock.call_at(start + 1.0, lambda: seen.append(clock.monotonic() - start))
    clock.call_at(start + 2.0, lambda: pytest.fail("it was cancelled")).cancel()
    await asyncio.sleep(10.0)

    assert seen == pytest.approx([1.0, 5.0])


@pytest.mark.virtual_time
async def test_the_loop_clocks_wall_may_be_set_alone() -> None:
    clock = LoopClock()

    clock.set_wall(50.0)
    await asyncio.sleep(5.0)

    assert clock.wall() == pytest.approx(55.0)


@pytest.mark.virtual_time
async def test_sockets_of_this_machine_are_served_while_time_is_virtual() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60.0)
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        async with asyncio.timeout(3_600.0):
            answer = await reader.readline()
        writer.close()
        await writer.wait_closed()

    assert answer == b"hello\n"


@pytest.mark.virtual_time
async def test_time_does_not_jump_while_a_socket_has_something_to_say() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        other.setblocking(False)
        async with asyncio.timeout(10.0):
            for _ in range(100):
                # The reader waits before anything is sent: so it is the selector that must notice.
                reading = asyncio.create_task(loop.sock_recv(other, 1))
                await asyncio.sleep(0)
                await loop.sock_sendall(one, b"x")
                await reading

    assert loop.time() == start


@pytest.mark.virtual_time
async def test_without_a_timer_the_loop_waits_for_threads() -> None:
    assert await asyncio.to_thread(lambda: "done") == "done"


def test_what_is_public_is_there() -> None:
    assert all(hasattr(polite.testing, name) for name in polite.testing.__all__)


def test_a_year_away_from_zero_a_timer_is_still_due() -> None:
    async def sleep() -> float:
        await asyncio.sleep(365 * 86_400)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(sleep()) == pytest.approx(365 * 86_400)
