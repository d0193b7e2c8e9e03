"""A world: the lives of the crawler's process, one after the other, and what outlives them."""

import asyncio
import gc
import logging
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import NamedTuple

from polite.errors import StoreFailed
from polite.gate.permit import Permit
from polite.stores.memory import MemoryStore
from tests.simulation.faults import FullDisk
from tests.simulation.judge import Judge
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulatedClock, SimulationLoop
from tests.simulation.machine import Machine
from tests.simulation.parts import Parts
from tests.simulation.plan import Plan, Step, origin_of
from tests.simulation.progress import Progress
from tests.simulation.sites import Sites
from tests.simulation.steps import StepRunner
from tests.simulation.trace import Report, SimulationFailed, Trace, Violation
from tests.simulation.visits import Visitor

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


# A world must end within this time after its first step (seconds).
_MAX_S = 400 * 86_400.0


class Life:
    """One run of the crawler's process, in a loop of its own. Violations stop the loop.

    Args:
        number: 1 for the first life.
    """

    def __init__(self, parts: Parts, loop: SimulationLoop, clock: SimulatedClock, number: int) -> None:
        self._parts = parts
        self._loop = loop
        self._machine = Machine(parts, loop, clock, number)
        self._steps = StepRunner(parts, loop, self._machine)

    async def run(self, steps: tuple[Step, ...]) -> None:
        """Open the machine, take the steps, and close the machine. Raise the errors of polite that nothing explains."""
        watch = self._loop.create_task(self._watch())
        try:
            async with AsyncExitStack() as stack:
                await self._machine.open(stack)
                await self._steps.run(steps)
                self._parts.trace.note("ending")
                await self._machine.close_frontiers()
                self._machine.expect_counters()
        finally:
            watch.cancel()

    async def _watch(self) -> None:
        """Check progress at intervals, which grow while there are no events."""
        progress = self._parts.progress
        interval, events, begun = 30.0, -1, self._loop.time()
        while True:
            await asyncio.sleep(interval)
            progress.check(self._machine.waiters())
            interval = 30.0 if progress.events != events else min(interval * 2, 20_000.0)
            events = progress.events
            if self._loop.time() - begun > _MAX_S:
                self._parts.trace.fail("a crawl ends", f"it did not end within {_MAX_S:g} s")


_EPOCH = 1_700_000_000.0
# Faults whose errors polite must log.
_LOGGED = frozenset({"listener", "listener-cancelled", "throttle", "throttle-nonsense", "store"})


class World:
    """One run of a plan.

    Attributes:
        folder: the folder of its files.
        logged: errors in polite's log and in the loop's exception handler.
    """

    def __init__(self, plan: Plan, tell: Callable[[str], None] | None) -> None:
        self.plan = plan
        self._time = 0.0
        self._wall = _EPOCH
        self._loop: SimulationLoop | None = None
        self._clock: SimulatedClock | None = None
        self.trace: Trace = Trace(self.now, tell)
        self.trace.stop = self._stop
        self.judge: Judge = Judge(plan, self.trace, self.now, self.wall)
        self.progress: Progress = Progress(plan, self.trace, self.now)
        shared = Path("/dev/shm")
        self.folder: Path = Path(
            tempfile.mkdtemp(prefix="polite-simulation-", dir=shared if shared.is_dir() else None)
        )
        self.logged: list[str] = []
        self._chance = Random(f"{plan.seed} lives")
        full_at = self._chance.uniform(0, plan.span)
        self._disk = FullDisk(full_at, full_at + plan.span / 10, self.now, self._disk_is_full)
        self._full_since: float | None = None
        self._parts = self._new_parts()

    def _new_parts(self) -> Parts:
        plan = self.plan
        sites = Sites(plan, self.judge, self.progress, self.trace, self.now)
        visitor = Visitor(plan, sites, self.judge, self.progress, self.trace, self.now)
        ledgers = [
            Ledger(f"frontier {number}", each, self.trace, self.now, self.wall)
            for number, each in enumerate(plan.frontiers)
        ]
        return Parts(
            plan=plan,
            trace=self.trace,
            judge=self.judge,
            progress=self.progress,
            sites=sites,
            visitor=visitor,
            ledgers=ledgers,
            folder=self.folder,
            memory=MemoryStore(),
        )

    def now(self) -> float:
        """Return the seconds since the world began."""
        return self._time if self._loop is None else self._loop.time()

    def wall(self) -> float:
        """Return the crawler's Unix time."""
        return self._wall + self.now() if self._clock is None else self._clock.wall()

    def run(self) -> Report:
        """Run all lives.

        Raises:
            SimulationFailed: an invariant does not hold.
        """
        seed = self.plan.seed
        random.seed(seed)
        before = Resources.counted(seed)
        kills = list(self.plan.kills)
        lives = 0
        another = True
        with self._disk.in_use() if "store" in self.plan.faults else nullcontext():
            while another:
                lives += 1
                another = self._run_life(lives, kills.pop(0) if kills else None)
                self._raise_violation()
        self._expect_nothing(before.added(Resources.counted(seed)))
        self._raise_violation()
        return Report(seed, self.judge.pages, self.judge.fetches, self._time, lives)

    def _raise_violation(self) -> None:
        if self.trace.violation is not None:
            raise SimulationFailed(self.plan.seed, self.trace.violation, self.plan, self.trace.lines)

    def clear(self) -> None:
        """Remove the world's files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # Lives.

    def _run_life(self, number: int, killed_at: float | None) -> bool:
        """Run a life, and return whether another one follows."""
        loop, clock = self._new_loop(number)
        steps = tuple(step for step in self.plan.steps if step.at >= self._time)
        task = loop.create_task(Life(self._parts, loop, clock, number).run(steps))
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
            self._parts.sites.ended = True
            loop.discard()
            self._loop = None
            self._clock = None

    def _new_loop(self, life: int) -> tuple[SimulationLoop, SimulatedClock]:
        loop = SimulationLoop(
            start=self._time, chance=Random(f"{self.plan.seed} threads {life}"), delays=self.plan.thread_s
        )
        loop.set_exception_handler(
            lambda _, context: self.logged.append(f"{context['message']}: {context.get('exception')!r}")
        )
        zero = self._chance.uniform(-self._time, 1e6)
        self._loop, self._clock = loop, SimulatedClock(loop, zero=zero, wall=self._wall)
        self._parts.sites.ended = False
        self._parts.visitor.received = self._parts.visitor.granted = 0
        return loop, self._clock

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()

    def _disk_is_full(self) -> None:
        if self._full_since is None:
            self._full_since = self.now()
        self.progress.suspend(self.plan.span / 10 + 5_000)

    def _killed(self, loop: SimulationLoop, number: int) -> bool:
        """Keep the files as they are. From now on the process's tasks have no effect that counts."""
        self.trace.note("KILLED")
        # A task that ended while the disk was full was not written either.
        unwritten = loop.time() if self._full_since is None else self._full_since
        self._full_since = None
        self._prepare_next_life(number, since=unwritten - self.plan.slack_s)
        return True

    def _ended(self, loop: SimulationLoop, task: "asyncio.Task[None]", number: int) -> bool:
        error: BaseException | None = asyncio.CancelledError() if task.cancelled() else task.exception()
        if isinstance(error, StoreFailed) and self._full_since is not None:
            self.trace.note("ENDED", str(error))
            self._prepare_next_life(number, since=self._full_since - self.plan.slack_s)
            self._full_since = None
            return True
        if error is not None:
            self.trace.note("error", "".join(traceback.format_exception(error))[-3_000:])
            self._expect_nothing(Leftover("no error without a cause", repr(error)))
            return False
        self._expect_nothing(left_in(loop) or self._logged_error())
        self._time = loop.time()
        return False

    def _logged_error(self) -> Leftover | None:
        if self.logged and not self.plan.faults & _LOGGED:
            return Leftover("each failure is reported to its caller", "; ".join(self.logged)[:2_000])
        return None

    def _expect_nothing(self, left: Leftover | None) -> None:
        """Record a violation if something is left."""
        if left is not None:
            try:
                self.trace.fail(left.invariant, left.seen)
            except Violation:
                return

    def _prepare_next_life(self, number: int, since: float) -> None:
        """Copy the files for the next life. Writes after `since` may be missing in them."""
        for file in self.folder.glob(f"*-{number}.sqlite*"):
            name, _, suffix = file.name.partition(f"-{number}.sqlite")
            shutil.copyfile(file, self.folder / f"{name}-{number + 1}.sqlite{suffix}")
        self._parts.sites.ended = True
        self.judge.restarted(kept=self.plan.store != "none", delayed=self._delayed_origins())
        for ledger in self._parts.ledgers:
            ledger.killed(since)
        down = self._chance.choice([0.0, 1.0, 100.0])
        self._time = self.now() + down
        if self._clock is not None:
            self._wall = self._clock.step_wall(0.0)
        self.progress.restarted(down)

    def _delayed_origins(self) -> set[str]:
        """Return the origins whose delay the next life keeps: those in the files of frontiers, if only frontiers use them."""
        if any(step.kind in {"permit", "check", "explain", "hold"} for step in self.plan.steps):
            return set()
        if not all(each.kept for each in self.plan.frontiers):
            return set()
        ledgers = self._parts.ledgers
        return {origin_of(each.url) for ledger in ledgers for each in ledger.entries.values() if each.certain}
