"""The clocks and the loop that tests of crawlers use."""

import asyncio
import socket

import pytest

from polite.testing import LoopClock, ManualClock, VirtualTimeLoop


def test_time_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(monotonic=5.0, wall=100.0)

    clock.advance(2.5)

    assert (clock.monotonic(), clock.wall()) == (7.5, 102.5)


def test_timers_call_back_in_order_and_see_the_time_they_asked_for() -> None:
    clock = ManualClock(monotonic=0.0)
    seen: list[float] = []
    for when in (3.0, 1.0, 2.0, 9.0):
        clock.call_at(when, lambda: seen.append(clock.monotonic()))

    clock.advance(5.0)

    assert seen == [1.0, 2.0, 3.0]


def test_a_timer_set_by_a_timer_is_not_lost() -> None:
    clock = ManualClock(monotonic=0.0)
    seen: list[float] = []
    clock.call_at(1.0, lambda: clock.call_at(2.0, lambda: seen.append(clock.monotonic())))

    clock.advance(3.0)

    assert seen == [2.0]


def test_a_cancelled_timer_stays_silent() -> None:
    clock = ManualClock()
    timer = clock.call_at(clock.monotonic() + 1, lambda: pytest.fail("called"))

    timer.cancel()
    clock.advance(2.0)


def test_the_wall_clock_can_be_set_alone() -> None:
    clock = ManualClock(monotonic=1.0, wall=1.0)

    clock.set_wall(50.0)

    assert (clock.monotonic(), clock.wall()) == (1.0, 50.0)


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_time_passes_forwards_only(seconds: float) -> None:
    with pytest.raises(ValueError, match="cannot pass"):
        ManualClock().advance(seconds)


def test_a_year_of_sleep_takes_no_time() -> None:
    async def sleep() -> float:
        await asyncio.sleep(365 * 86_400)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(sleep()) == pytest.approx(365 * 86_400)


def test_sockets_of_this_machine_work_in_virtual_time() -> None:
    async def talk() -> tuple[bytes, float]:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0, family=socket.AF_INET)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        async with asyncio.timeout(1_000):
            answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
        server.close()
        return answer, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        answer, elapsed = runner.run(talk())

    assert answer == b"hello\n"
    assert elapsed < 1_000


@pytest.mark.virtual_time
async def test_the_loops_clock_follows_the_loop() -> None:
    clock = LoopClock(epoch=1_000.0)
    fired: list[float] = []
    clock.call_at(clock.monotonic() + 7, lambda: fired.append(clock.monotonic()))

    await asyncio.sleep(10)
    moved = clock.wall()
    clock.set_wall(5.0)

    assert fired == [7.0]
    assert moved == 1_010.0
    assert clock.wall() == 5.0
