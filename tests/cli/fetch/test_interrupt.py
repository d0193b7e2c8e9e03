"""How a run handles ^C and SIGTERM."""

import asyncio
import signal
import threading

import pytest

from polite.cli.fetch.run import interrupts
from polite.cli.terminal import Exit


async def test_the_second_is_another_than_the_first():
    async with interrupts() as interrupt:
        signal.raise_signal(signal.SIGINT)
        await interrupt.first.wait()
        assert not interrupt.second.is_set()

        signal.raise_signal(signal.SIGINT)
        await interrupt.second.wait()


async def test_a_third_cancels_the_run_itself():
    with pytest.raises(asyncio.CancelledError):
        async with interrupts():
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("numbers", "status"),
    [
        ([], None),
        ([signal.SIGINT], Exit.INTERRUPTED),
        ([signal.SIGTERM], Exit.TERMINATED),
        ([signal.SIGTERM, signal.SIGINT], Exit.TERMINATED),
        ([signal.SIGINT, signal.SIGTERM], Exit.INTERRUPTED),
    ],
)
async def test_the_first_signal_decides_the_exit_status(numbers, status):
    async with interrupts() as interrupt:
        for number in numbers:
            signal.raise_signal(number)
            await asyncio.sleep(0.01)

        assert interrupt.status is status
        assert interrupt.first.is_set() is bool(numbers)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_afterwards_it_means_what_it_meant_before(number):
    before = signal.getsignal(number)

    async with interrupts():
        assert signal.getsignal(number) is not before

    assert signal.getsignal(number) is before


def test_outside_the_main_thread_there_are_none():
    ran = []

    async def run():
        async with interrupts() as interrupt:
            ran.append(interrupt.first.is_set())

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()

    assert ran == [False]
