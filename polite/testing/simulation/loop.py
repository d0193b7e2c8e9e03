"""The event loop of a simulated process: virtual time, and threads whose work takes virtual time too."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from random import Random
from typing import Any, TypeVar, TypeVarTuple, Unpack

from polite.testing.loop import VirtualTimeLoop

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")


# More than the loop's resolution, and what floats lose between two zeros of time.
_ROUNDING_S = 2e-7


class _Job:
    """Work for a thread, and the future that its caller awaits."""

    __slots__ = ("future", "work")

    def __init__(self, work: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        self.work = work
        self.future = future


class SimulationLoop(VirtualTimeLoop):
    """A VirtualTimeLoop without threads: what `run_in_executor` gets is done in the loop, and answered after a delay.

    The delay is drawn from `delays` (seconds). Half of the jobs run when they are handed over, half when their delay is over:
    a real thread may do its work at either moment. Jobs of one executor run one after the other, as in a pool of one
    thread; those of the default executor run side by side. `refuse`, where it is set, is asked for the error that work
    for an executor of its own fails with: a disk that is full.

    Args:
        start: the loop's time at its beginning (virtual seconds).
        chance: where delays are drawn from.
        delays: seconds, drawn with equal chance.
    """

    def __init__(self, *, start: float, chance: Random, delays: tuple[float, ...]) -> None:
        super().__init__()
        self._jumping.now = start
        self._chance = chance
        self._delays = delays
        self._queues: dict[Executor, deque[_Job]] = {}
        self.refuse: Callable[[Callable[[], Any]], Exception | None] = lambda work: None
        self.jobs = 0  # handed over to an executor of its own, and not answered yet
        self.shared_jobs = 0  # to the default one

    @property
    def timers(self) -> list[asyncio.TimerHandle]:
        """The timers that wait, cancelled ones too."""
        return list(self._scheduled)  # type: ignore[attr-defined]

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Args]], _T], *args: *_Args
    ) -> "asyncio.Future[_T]":
        """As any loop's; no thread is used."""
        if executor is not None and getattr(executor, "_shutdown", False):
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: asyncio.Future[_T] = self.create_future()
        job = _Job(partial(func, *args), future)
        if executor is None:
            self.shared_jobs += 1
            self._begin(job, None)
            return future
        self.jobs += 1
        line = self._queues.setdefault(executor, deque())
        line.append(job)
        if len(line) == 1:
            self._begin(job, executor)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own signature
        """There is none."""

    def _begin(self, job: _Job, executor: Executor | None) -> None:
        delay = self._chance.choice(self._delays)
        if job.future.cancelled():
            # A pool never starts a job that was cancelled while it waited.
            self.call_soon(self._answer, job, executor, None, None)
        elif self._chance.random() < 0.5:
            self.call_later(delay, self._answer, job, executor, *self._done(job, executor))
        else:
            self.call_later(delay, lambda: self._answer(job, executor, *self._done(job, executor)))

    def _done(self, job: _Job, executor: Executor | None) -> tuple[Any, BaseException | None]:
        try:
            refusal = None if executor is None else self.refuse(job.work)
            return (job.work(), None) if refusal is None else (None, refusal)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it is the caller's
            return None, error

    def _answer(
        self, job: _Job, executor: Executor | None, result: object, error: BaseException | None
    ) -> None:
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
            line = self._queues[executor]
            line.popleft()
            if line:
                self._begin(line[0], executor)
            else:
                del self._queues[executor]


class SimulatedClock:
    """The clocks of a simulated process: a monotonic one with a zero of its own, and a wall clock that can be set.

    Args:
        zero: monotonic seconds at the loop's time 0.
        wall: Unix time at the loop's time 0.
    """

    def __init__(self, loop: SimulationLoop, *, zero: float, wall: float) -> None:
        self._loop = loop
        self._zero = zero
        self._wall = wall

    def monotonic(self) -> float:
        """Seconds since `-zero`."""
        return self._loop.time() + self._zero

    def wall(self) -> float:
        """Unix time in seconds."""
        return self._loop.time() + self._wall

    def lasting(self) -> float:
        """Seconds since `-zero`: no simulated machine is suspended."""
        return self.monotonic()

    def step_wall(self, seconds: float) -> float:
        """Set the wall clock forward, or back. Returns what it is off by now, at the loop's time 0."""
        self._wall += seconds
        return self._wall

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back at monotonic time `when`."""
        # Never early, by rounding: no time would pass until the next call, nor ever.
        return self._loop.call_at(when - self._zero + _ROUNDING_S, callback)
