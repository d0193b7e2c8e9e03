"""What users test with: the clocks and the loop in virtual time."""

import asyncio
import math
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from polite.testing import Deadlock, LoopClock, ManualClock, VirtualTimeLoop
from polite.testing import loop as threads


def test_timers_are_called_in_order_and_see_their_own_time_and_tasks_run_between_them() -> None:
    clock = ManualClock(monotonic=0.0)
    seen: list[tuple[str, float]] = []
    for name, when in (("late", 9.0), ("soon", 1.0), ("also soon", 1.0), ("past", -1.0), ("beyond", 10.1)):
        clock.call_at(when, lambda name=name: seen.append((name, clock.monotonic())))

    cancelled = clock.call_at(2.0, lambda: pytest.fail("it was cancelled"))
    cancelled.cancel()
    cancelled.cancel()
    clock.call_at(3.0, lambda: clock.call_at(4.0, lambda: seen.append(("set by a timer", clock.monotonic()))))
    clock.set_wall(50.0)
    clock.advance(10.0)

    assert seen == [("past", 0.0), ("soon", 1.0), ("also soon", 1.0), ("set by a timer", 4.0), ("late", 9.0)]
    assert (clock.monotonic(), clock.wall()) == (10.0, 60.0)
    assert asyncio.run(_sleep_thrice(clock)) == [12.0, 14.0, 16.0]
    assert clock.monotonic() == 17.0


async def _sleep_thrice(clock: ManualClock) -> list[float]:
    """Return when a task woke that sleeps three times while time passes."""
    seen: list[float] = []

    async def sleep() -> None:
        for _ in range(3):
            woken = asyncio.Event()
            clock.call_at(clock.monotonic() + 2.0, woken.set)
            await woken.wait()
            seen.append(clock.monotonic())

    task = asyncio.create_task(sleep())
    await clock.advance_and_run(7.0)
    assert task.done()
    return seen


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
async def test_time_passes_by_finite_amounts_and_forwards(seconds: float) -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match="seconds must be"):
        clock.advance(seconds)
    with pytest.raises(ValueError, match="seconds must be"):
        await clock.advance_and_run(seconds)


def test_a_suspended_machine_has_a_lasting_clock_that_goes_on() -> None:
    clock = ManualClock(monotonic=10.0, wall=1_000.0)
    called: list[float] = []
    clock.call_at(15.0, lambda: called.append(clock.lasting()))
    clock.suspend(60.0)
    assert (clock.monotonic(), clock.wall(), clock.lasting(), called) == (10.0, 1_060.0, 70.0, [])
    clock.advance(5.0)
    assert (clock.lasting(), called) == (75.0, [75.0])


@pytest.mark.virtual_time
async def test_the_loop_clock_can_be_suspended_too() -> None:
    clock = LoopClock(epoch=1_000.0)

    clock.suspend(60.0)
    await asyncio.sleep(1.0)

    assert (clock.monotonic(), clock.wall(), clock.lasting()) == (1.0, 1_061.0, 61.0)
    clock.set_wall(50.0)
    clock.call_at(3.0, lambda: pytest.fail("it was cancelled")).cancel()
    clock.call_at(4.0, lambda: clock.set_wall(150.0))
    # A year away from zero, a timer is still due.
    await asyncio.sleep(365 * 86_400)
    assert clock.wall() == pytest.approx(150.0 + 365 * 86_400 - 3.0)


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


@pytest.fixture
def runner():
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        yield runner


def test_a_loop_that_nothing_can_wake_raises_a_deadlock(runner) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.sleep(5.0)
        try:
            await asyncio.create_task(wait(), name="a worker")
        finally:
            await asyncio.sleep(1.0)
            cleaned.append(asyncio.get_running_loop().time())

    cleaned: list[float] = []
    with pytest.raises(
        Deadlock, match=r"after 5 virtual seconds.* a worker \(.*wait, line \d+ of .*test_testing.py"
    ):
        runner.run(main())


def test_time_stands_still_while_a_thread_works_and_an_idle_one_hides_no_deadlock(runner) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(60.0, int)
        with ThreadPoolExecutor(2) as pool:
            await loop.run_in_executor(pool, int)
            await asyncio.to_thread(time.sleep, 0.1)
            assert loop.time() == 0.0
            await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        runner.run(main())


def test_names_that_were_resolved_before_do_not_hide_a_deadlock(runner) -> None:
    pycares = pytest.importorskip("pycares")
    pycares.Channel().close()
    # In its own thread: until it is done with that.
    while not pycares._shutdown_manager._queue.empty():
        threading.Event().wait(0.01)
    with pytest.raises(Deadlock):
        runner.run(asyncio.Event().wait())


def test_a_thread_may_wake_a_loop_without_timers_even_as_it_ends(runner) -> None:
    async def main() -> str:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        threading.Thread(target=lambda: (time.sleep(0.3), loop.call_soon_threadsafe(woken.set))).start()
        await woken.wait()
        return "woken"

    assert runner.run(main()) == "woken"


def test_a_socket_that_is_listened_to_may_wake_a_loop_without_timers(runner) -> None:
    async def main() -> bytes:
        one, other = socket.socketpair()
        with one, other:
            other.setblocking(False)
            threading.Thread(target=lambda: (time.sleep(0.1), one.send(b"x"))).start()
            return await asyncio.get_running_loop().sock_recv(other, 1)

    assert runner.run(main()) == b"x"


@pytest.mark.parametrize("descriptor", ["a pipe", "none"])
def test_a_registered_descriptor_and_nothing_else_prevents_a_deadlock(runner, descriptor: str) -> None:
    """No thread is there to write: the test writes from a signal's handler, which no loop can foresee."""
    reading, writing = os.pipe()
    before = signal.signal(signal.SIGALRM, lambda *_: os.write(writing, b"x"))
    signal.setitimer(signal.ITIMER_REAL, 0.2)

    async def main() -> None:
        readable = asyncio.Event()
        if descriptor == "a pipe":
            asyncio.get_running_loop().add_reader(reading, readable.set)
        try:
            await readable.wait()
        finally:
            asyncio.get_running_loop().remove_reader(reading)

    try:
        if descriptor == "a pipe":
            runner.run(main())
        else:
            with pytest.raises(Deadlock):
                runner.run(main())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        os.close(reading)
        os.close(writing)


def test_a_loop_with_a_signal_handler_waits_for_the_signal(runner) -> None:
    async def main() -> str:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGALRM, woken.set)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        await woken.wait()
        loop.remove_signal_handler(signal.SIGALRM)
        return "woken"

    assert runner.run(main()) == "woken"
    with pytest.raises(Deadlock):
        runner.run(asyncio.Event().wait())


def test_a_thread_of_a_c_library_may_wake_the_loop_unless_it_is_older(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(threads, "_NATIVE_THREADS", tmp_path)
    (tmp_path / str(threading.get_native_id())).mkdir()
    (tmp_path / "1").mkdir()
    older = threads.Threads()

    before = older.may_wake_the_loop()
    (tmp_path / "2").mkdir()

    assert not before
    assert older.may_wake_the_loop()
