"""What ^C means to a run."""

import asyncio
import signal
import threading

from polite.cli.fetch.interrupt import interrupts


async def test_the_second_is_another_than_the_first():
    async with interrupts() as interrupt:
        signal.raise_signal(signal.SIGINT)
        await interrupt.first.wait()
        assert not interrupt.second.is_set()

        signal.raise_signal(signal.SIGINT)
        await interrupt.second.wait()


async def test_afterwards_it_means_what_it_meant_before():
    before = signal.getsignal(signal.SIGINT)

    async with interrupts():
        assert signal.getsignal(signal.SIGINT) is not before

    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_there_are_none():
    ran = []

    async def run():
        async with interrupts() as interrupt:
            ran.append(interrupt.first.is_set())

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()

    assert ran == [False]
