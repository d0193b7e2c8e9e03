"""The event loop and clocks of a simulated process: virtual time, in which jobs in threads take time too."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from random import Random
from typing import Any, NamedTuple, TypeVar

from polite.testing.loop import VirtualTimeLoop

_T = TypeVar("_T")

# More than the loop's resolution plus the float error between the zeros of two clocks.
_ROUNDING_S = 2e-7
# How long the tasks of a killed process may take to end (virtual seconds).
_CLEARING_S = 1_000_000.0
# So many steps at one time come to no end.
_MOST_STEPS = 50_000


class _Job(NamedTuple):
    work: Callable[[], Any]
    future: "asyncio.Future[Any]"


class SimulationLoop(VirtualTimeLoop):
    """A VirtualTimeLoop without threads: it runs the jobs of `run_in_executor` itself, and returns results after a delay.

    Each job draws its delay from `delays`. Half of the jobs run at once, half at the end of their delay, because a real
    thread may run at either moment. Jobs of one executor run one after the other, as in a pool of one thread. Jobs of the
    default executor run concurrently.

    Args:
        start: the loop's first time (virtual seconds).
        chance: the source of random values.
        delays: seconds, drawn with equal probability.

    Attributes:
        on_wait: called when nothing is left to do until a later time.
        on_spin: called when there is something to do at once, again and again; then time goes on.
        jobs: unfinished jobs of explicit executors.
        shared_jobs: unfinished jobs of the default executor.
    """

    def __init__(self, *, start: float, chance: Random, delays: tuple[float, ...]) -> None:
        super().__init__()
        self._jumping.now = start
        self._chance = chance
        self._delays = delays
        self._queues: dict[Executor, deque[_Job]] = {}
        self._select = self._jumping.select
        self._jumping.select = self._wait  # type: ignore[method-assign]
        self.on_wait: Callable[[], object] = lambda: None
        self.on_spin: Callable[[], object] = lambda: None
        self._stepped_at = start
        self._steps = 0
        self.jobs: int = 0
        self.shared_jobs: int = 0

    @property
    def timers(self) -> list[asyncio.TimerHandle]:
        return list(self._scheduled)  # type: ignore[attr-defined]

    def run_in_executor(self, executor, func, *args):
        if executor is not None and getattr(executor, "_shutdown", False):
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: asyncio.Future[_T] = self.create_future()
        job = _Job(partial(func, *args), future)
        if executor is None:
            self.shared_jobs += 1
            self._begin(job, None)
            return future
        self.jobs += 1
        queue = self._queues.setdefault(executor, deque())
        queue.append(job)
        if len(queue) == 1:
            self._begin(job, executor)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there is no default executor."""

    def discard(self) -> None:
        """Cancel all tasks, wait for jobs, and close the loop, so that nothing of a finished process is left."""
        self.set_exception_handler(lambda _, context: None)
        asyncio.set_event_loop(None)
        end = self.time() + _CLEARING_S
        for _ in range(20):
            left = asyncio.all_tasks(self)
            if not left or self.time() > end:
                break
            for each in left:
                each.cancel()
            waiting = self.create_task(asyncio.wait(left, timeout=1_000.0))
            waiting.add_done_callback(lambda _: self.stop())
            self.run_forever()
        # A thread runs its job although no task waits for it any more: a job may close a file.
        while (self.jobs or self.shared_jobs) and self.time() < end + _CLEARING_S:
            self.call_later(1.0, self.stop)
            self.run_forever()
        self.close()

    def _begin(self, job: _Job, executor: Executor | None) -> None:
        delay = self._chance.choice(self._delays)
        if executor is None and self._ends_busy_pool(job.work):
            # `shutdown` waits for the jobs of its pool.
            self.call_later(max(delay, 0.001), self._begin, job, None)
        elif job.future.cancelled():
            # A pool never starts a job that was cancelled in its queue.
            self.call_soon(self._finish, job, executor, None, None)
        elif self._chance.random() < 0.5:
            self.call_later(delay, self._finish, job, executor, *self._run(job))
        else:
            self.call_later(delay, lambda: self._finish(job, executor, *self._run(job)))

    def _wait(self, timeout: float | None = None) -> list[Any]:
        if timeout != 0:
            self.on_wait()
        self._steps = self._steps + 1 if self._stepped_at == self.time() else 0
        self._stepped_at = self.time()
        if self._steps > _MOST_STEPS:
            self.on_spin()
            self._jumping.now += 1.0
        return self._select(timeout)

    def _ends_busy_pool(self, work: Callable[[], Any]) -> bool:
        pool = getattr(getattr(work, "func", None), "__self__", None)
        return isinstance(pool, Executor) and pool in self._queues

    def _run(self, job: _Job) -> tuple[Any, BaseException | None]:
        try:
            return job.work(), None
        except (Exception, asyncio.CancelledError) as error:
            return None, error

    def _finish(self, job, executor, result, error):
        if executor is None:
            self.shared_jobs -= 1
        else:
            self.jobs -= 1
        if not job.future.done():
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)
        if executor is not None:
            queue = self._queues[executor]
            queue.popleft()
            if queue:
                self._begin(queue[0], executor)
            else:
                del self._queues[executor]


class SimulatedClock:
    def __init__(self, loop: asyncio.AbstractEventLoop, *, zero: float, wall: float) -> None:
        self._loop = loop
        self._zero = zero
        self._wall = wall

    def monotonic(self) -> float:
        return self._loop.time() + self._zero

    def wall(self) -> float:
        return self._loop.time() + self._wall

    def lasting(self) -> float:
        """Seconds since `-zero`: no simulated machine is suspended."""
        return self.monotonic()

    def step_wall(self, seconds: float) -> float:
        """Set the wall clock forward or back, and return its Unix time at the loop's time 0."""
        self._wall += seconds
        return self._wall

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        # Rounding must not make a timer early: its callback would set it again for the same time, for ever.
        return self._loop.call_at(when - self._zero + _ROUNDING_S, callback)
