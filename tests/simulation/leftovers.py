"""Leftovers: tasks, timers, threads, descriptors and permits that must be gone at the end of a world."""

import asyncio
import gc
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from polite.gate.permit import Permit
from tests.simulation.loop import SimulationLoop

# A walk over all objects takes longer than most worlds, so few worlds do it.
_COUNTED_SEEDS = 50


class Leftover(NamedTuple):
    """Something that is left at the end, as an invariant and an observation."""

    invariant: str
    seen: str


class Resources(NamedTuple):
    """Open descriptors and permits of this process."""

    descriptors: int
    permits: int

    @classmethod
    def counted(cls, seed: int) -> "Resources":
        """Return their numbers now. Permits are counted for some seeds only."""
        return cls(_descriptors(), 0 if seed % _COUNTED_SEEDS else _permits())

    def added(self, now: "Resources") -> Leftover | None:
        """Return what `now` has in addition."""
        if now.descriptors > self.descriptors:
            seen = f"{self.descriptors} were open before, {now.descriptors} are after"
            return Leftover("no descriptor is left", seen)
        if now.permits > self.permits:
            return Leftover("no finished permit is left", f"{now.permits - self.permits} are alive")
        return None


def left_in(loop: SimulationLoop) -> Leftover | None:
    """Run the loop's last callbacks, and return what is still left in it."""
    # Tasks that were cancelled last end in the next steps.
    for _ in range(5):
        loop.call_soon(loop.stop)
        loop.run_forever()
    # A thread cannot be cancelled: it ends its job after its waiter was cancelled.
    while loop.shared_jobs:
        loop.call_later(1.0, loop.stop)
        loop.run_forever()
    if tasks := asyncio.all_tasks(loop):
        return Leftover("no task is left", ", ".join(sorted(repr(each) for each in tasks))[:2_000])
    if timers := [each for each in loop.timers if not each.cancelled()]:
        return Leftover("no timer is left", repr(timers)[:2_000])
    if loop.jobs:
        return Leftover("no thread is left", f"{loop.jobs} jobs")
    return None


@contextmanager
def captured_log(messages: list[str]) -> Iterator[None]:
    """Append errors in polite's log to `messages`, instead of showing them."""

    class Capture(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                error = f": {record.exc_info[1]!r}" if record.exc_info else ""
                messages.append(record.getMessage() + error)

    logger = logging.getLogger("polite")
    handler, propagate = Capture(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _descriptors() -> int:
    """Return the number of open descriptors; 0 on systems that do not tell."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted, thousands of times
    except OSError:
        return 0


def _permits() -> int:
    gc.collect()
    return sum(isinstance(each, Permit) for each in gc.get_objects())
