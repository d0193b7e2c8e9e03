"""One run of a plan: the lives of the process, one after the other, and what outlives them."""

import asyncio
import gc
import logging
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from polite.errors import StoreFailed
from polite.events import Event
from polite.gate.permit import Permit
from polite.ports import Scheduler
from polite.stores.memory import MemoryStore
from polite.testing.simulation.judge import Judge
from polite.testing.simulation.ledger import Ledger
from polite.testing.simulation.life import Life, Parts
from polite.testing.simulation.loop import SimulatedClock, SimulationLoop
from polite.testing.simulation.plan import Plan
from polite.testing.simulation.progress import Progress
from polite.testing.simulation.saboteurs import FullDisk
from polite.testing.simulation.sites import Sites
from polite.testing.simulation.trace import Trace, Violation
from polite.testing.simulation.visits import Visit, Visitor, origin_of

_EPOCH = 1_700_000_000.0
# What a process that was killed may still need to end its tasks (virtual seconds), so that nothing of it is left.
_CLEARING_S = 1_000_000.0
# Looking through all objects takes longer than most worlds.
_EVERY = 50
# Saboteurs whose errors polite logs, as it must.
_LOUD = frozenset({"listener", "listener-cancelled", "throttle", "throttle-nonsense", "store"})


class SimulationFailed(AssertionError):
    """A world in which an invariant does not hold.

    Attributes:
        seed: draws the same world again.
        invariant: the name of what does not hold.
        plan: the world, made as small as it could be.
        trace: what happened, one line for each event.
    """

    def __init__(self, seed: int, violation: Violation, plan: Plan, trace: list[str]) -> None:
        super().__init__(
            f"seed {seed}: {violation} (Simulation({seed}, ...).run(shrink=True) makes the world smaller)"
        )
        self.seed = seed
        self.invariant = violation.invariant
        self.plan = plan
        self.trace = trace


@dataclass(frozen=True, slots=True)
class Report:
    """What a world came to. `seconds`: how long it lasted, virtually. `lives`: processes, one more than were killed."""

    seed: int
    pages: int
    robots: int
    seconds: float
    lives: int


@dataclass(frozen=True, slots=True)
class Options:
    """What a user tests in place of what is drawn; see Simulation."""

    scheduler: Callable[[], Scheduler] | None = None
    throttle: Callable[[], Any] | None = None
    least_gap: float | None = None
    listener: Callable[[Event], None] | None = None
    visit: Visit | None = None
    tell: Callable[[str], None] | None = None


class World:
    """One run of a plan: the lives of the process, one after the other, and what outlives them."""

    def __init__(self, plan: Plan, options: Options) -> None:
        self.plan = plan
        self._time = 0.0
        self._wall = _EPOCH
        self._loop: SimulationLoop | None = None
        self._clock: SimulatedClock | None = None
        self.trace = Trace(self.now, options.tell)
        self.trace.stop = self._stop
        self.judge = Judge(plan, self.trace, self.now, self.wall, least_gap=options.least_gap)
        self.progress = Progress(plan, self.trace, self.now)
        shared = Path("/dev/shm")  # noqa: S108 - a folder of our own in it; no disk is needed
        self.folder = Path(
            tempfile.mkdtemp(prefix="polite-simulation-", dir=shared if shared.is_dir() else None)
        )
        self.logged: list[str] = []
        self._options = options
        self._chance = Random(f"{plan.seed} lives")
        full_at = self._chance.uniform(0, plan.span)
        self._disk = FullDisk(full_at, full_at + plan.span / 10, self.now, self._full)
        self._full_since: float | None = None
        self._parts = self._made()

    def _made(self) -> Parts:
        plan, options = self.plan, self._options
        sites = Sites(plan, self.judge, self.progress, self.trace, self.now)
        visitor = Visitor(plan, sites, self.judge, self.progress, self.trace, self.now, visit=options.visit)
        ledgers = [
            Ledger(f"frontier {number}", each, self.trace, self.now, self.wall)
            for number, each in enumerate(plan.frontiers)
        ]
        return Parts(
            plan,
            self.trace,
            self.judge,
            self.progress,
            sites,
            visitor,
            ledgers,
            self.folder,
            MemoryStore(),
            options.scheduler,
            options.throttle,
            options.listener,
        )

    def now(self) -> float:
        """World time: seconds since it began."""
        return self._time if self._loop is None else self._loop.time()

    def wall(self) -> float:
        """The crawler's Unix time."""
        return self._wall + self.now() if self._clock is None else self._clock.wall()

    def run(self) -> Report:
        """All lives. Raises SimulationFailed."""
        random.seed(self.plan.seed)
        descriptors, permits = _descriptors(), self._permits()
        kills = list(self.plan.kills)
        lives = 0
        going_on = True
        while going_on:
            lives += 1
            going_on = self._live(lives, kills.pop(0) if kills else None)
            if self.trace.violation is not None:
                raise SimulationFailed(self.plan.seed, self.trace.violation, self.plan, self.trace.lines)
        self._expect_given_back(descriptors, permits)
        return Report(self.plan.seed, self.judge.pages, self.judge.fetches, self._time, lives)

    def _permits(self) -> int:
        """How many permits are alive in this process; looked at in some worlds only."""
        if self.plan.seed % _EVERY:
            return 0
        gc.collect()
        return sum(isinstance(each, Permit) for each in gc.get_objects())

    def _expect_given_back(self, descriptors: int, permits: int) -> None:
        """Nothing of the world is held any more."""
        if _descriptors() > descriptors:
            self._fail("no descriptor is left", f"{descriptors} were open before, {_descriptors()} are after")
        elif (left := self._permits() - permits) > 0:
            self._fail("no finished permit is left", f"{left} are alive")
        if self.trace.violation is not None:
            raise SimulationFailed(self.plan.seed, self.trace.violation, self.plan, self.trace.lines)

    def clear(self) -> None:
        """Remove the world's files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # One life.

    def _live(self, number: int, killed_at: float | None) -> bool:
        """Whether another life follows."""
        self._loop = loop = SimulationLoop(
            start=self._time, chance=Random(f"{self.plan.seed} threads {number}"), delays=self.plan.thread_s
        )
        if "store" in self.plan.saboteurs:
            loop.refuse = self._disk
        zero = self._chance.uniform(-self._time, 1e6)
        self._clock = SimulatedClock(loop, zero=zero, wall=self._wall)
        self._parts.sites.ended = False
        self._parts.visitor.granted = self._parts.visitor.told = 0
        loop.set_exception_handler(
            lambda _, context: self.logged.append(f"{context['message']}: {context.get('exception')!r}")
        )
        steps = tuple(step for step in self.plan.steps if step.at >= self._time)
        task = loop.create_task(Life(self._parts, loop, self._clock, number).live(steps))
        task.add_done_callback(lambda _: loop.stop())
        kill = None if killed_at is None else loop.call_at(max(killed_at, self._time), loop.stop)
        try:
            asyncio.set_event_loop(loop)
            loop.run_forever()
            if self.trace.violation is not None:
                return False
            if not task.done():
                return self._killed(loop, number)
            if kill is not None:
                kill.cancel()
            return self._ended(loop, task, number)
        finally:
            self._bury(loop)

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()

    def _full(self) -> None:
        if self._full_since is None:
            self._full_since = self.now()
        self.progress.excuse(self.plan.span / 10 + 5_000)

    def _killed(self, loop: SimulationLoop, number: int) -> bool:
        """The files stay as they are at this moment; the process's tasks do nothing any more that counts."""
        self.trace.note("KILLED")
        # What ended while the disk was full was not written either.
        unwritten = loop.time() if self._full_since is None else self._full_since
        self._full_since = None
        self._next_life(number, since=unwritten - self.plan.slack_s)
        return True

    def _next_life(self, number: int, since: float) -> None:
        for file in self.folder.glob(f"*-{number}.sqlite*"):
            name, _, rest = file.name.partition(f"-{number}.sqlite")
            shutil.copyfile(file, self.folder / f"{name}-{number + 1}.sqlite{rest}")
        self._parts.sites.ended = True
        self.judge.restarted(kept=self.plan.store != "none", rest=self._remembered())
        for ledger in self._parts.ledgers:
            ledger.killed(since)
        down = self._chance.choice([0.0, 1.0, 100.0])
        self._time = self.now() + down
        if self._clock is not None:
            self._wall = self._clock.step_wall(0.0)
        self.progress.restarted(down)

    def _remembered(self) -> set[str]:
        """Origins that wait their delay in the next life: a frontier's file has them, and only frontiers ask for them."""
        if any(step.kind in {"permit", "check", "explain", "pump"} for step in self.plan.steps):
            return set()
        if not all(each.kept for each in self.plan.frontiers):
            return set()
        kept = [
            ledger for ledger, plan in zip(self._parts.ledgers, self.plan.frontiers, strict=True) if plan.kept
        ]
        return {origin_of(each.url) for ledger in kept for each in ledger.entries.values() if each.certain}

    def _ended(self, loop: SimulationLoop, task: "asyncio.Task[None]", number: int) -> bool:
        error: BaseException | None = asyncio.CancelledError() if task.cancelled() else task.exception()
        if isinstance(error, StoreFailed) and self._full_since is not None:
            self.trace.note("ENDED", str(error))
            self._next_life(number, since=self._full_since - self.plan.slack_s)
            self._full_since = None
            return True
        if error is not None:
            self.trace.note("error", *_causes(error))
            self._fail("no error without a cause", repr(error))
            return False
        self._expect_nothing_left(loop)
        self._time = loop.time()
        return False

    def _fail(self, invariant: str, seen: str) -> None:
        try:
            self.trace.fail(invariant, seen)
        except Violation:
            return

    def _expect_nothing_left(self, loop: SimulationLoop) -> None:
        # What was cancelled last ends in the next steps.
        for _ in range(5):
            loop.call_soon(loop.stop)
            loop.run_forever()
        # A thread cannot be cancelled: what was parsed for a waiter that went away ends by itself.
        while loop.shared_jobs:
            loop.call_later(1.0, loop.stop)
            loop.run_forever()
        if left := asyncio.all_tasks(loop):
            self._fail("no task is left", ", ".join(sorted(repr(each) for each in left))[:2_000])
        elif timers := [each for each in loop.timers if not each.cancelled()]:
            self._fail("no timer is left", repr(timers)[:2_000])
        elif loop.jobs:
            self._fail("no thread is left at work", f"{loop.jobs} jobs")
        elif self.logged and not self.plan.saboteurs & _LOUD:
            self._fail("nothing fails unheard", "; ".join(self.logged)[:2_000])

    def _bury(self, loop: SimulationLoop) -> None:
        """End what is left of the process, so that worlds do not add up. Cancelled, it must end."""
        self._parts.sites.ended = True
        loop.set_exception_handler(lambda _, context: None)
        asyncio.set_event_loop(None)
        end = loop.time() + _CLEARING_S
        for _ in range(20):
            left = asyncio.all_tasks(loop)
            if not left or loop.time() > end:
                break
            for each in left:
                each.cancel()
            waiting = loop.create_task(asyncio.wait(left, timeout=1_000.0))
            waiting.add_done_callback(lambda _: loop.stop())
            loop.run_forever()
        # Threads do what they were given all the same: one that a task waited for no more gives its file back.
        while (loop.jobs or loop.shared_jobs) and loop.time() < end + _CLEARING_S:
            loop.call_later(1.0, loop.stop)
            loop.run_forever()
        self._loop = None
        self._clock = None
        loop.close()


def _descriptors() -> int:
    """How many this process has open; 0 where that cannot be told."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted, thousands of times
    except OSError:
        return 0


def _causes(error: BaseException) -> Iterator[str]:
    yield "".join(traceback.format_exception(error))[-3_000:]


@contextmanager
def quiet(logged: list[str]) -> Iterator[None]:
    """polite's own log goes to the world, not to the terminal."""

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                logged.append(record.getMessage() + (f": {record.exc_info[1]!r}" if record.exc_info else ""))

    logger = logging.getLogger("polite")
    handler, propagate = Kept(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
