"""Group commit: a worker thread runs jobs in batches. Jobs that arrive during a batch form the next one."""

import asyncio
import logging
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from polite.errors import Overloaded, StoreFailed
from polite.log import fields

log: logging.Logger = logging.getLogger("polite")

Job = TypeVar("Job")
_Pending = tuple[Job, "Future[Any] | None"]
_Delivery = tuple[AbstractEventLoop, "list[tuple[Future[Any], object]]"]

# The most jobs of a batch. A larger batch would delay its first job for the sake of the others.
_MAX_BATCH = 1_000
# The most jobs that may wait. If more arrive, the thread is stuck, and they are refused.
_MAX_WAITING = 100_000


class _Queue(Generic[Job]):
    """The waiting jobs of one event loop, and its batch that is running, if any."""

    __slots__ = ("jobs", "running", "scheduled")

    def __init__(self) -> None:
        self.jobs: deque[_Pending[Job]] = deque()
        self.scheduled = False
        self.running: Future[Any] | None = None


class BatchWorker(Generic[Job]):
    """A thread that runs jobs in batches, in the order of their submission.

    All work goes through `loop.run_in_executor`, with an executor of one thread. Several event loops may submit jobs; one thread
    still runs them, one batch at a time.

    Args:
        name: The thread's name, also for error messages.
        serve: Runs a batch in the thread. It returns a result for each job; a result that is an exception is raised to the job's
            submitter.
        ended: Called in the thread after the last batch.
    """

    def __init__(
        self, name: str, serve: Callable[[Sequence[Job]], Sequence[object]], ended: Callable[[], None]
    ) -> None:
        self._name = name
        self._serve = serve
        self._ended = ended
        self._executor = ThreadPoolExecutor(1, name)
        self._queues: dict[AbstractEventLoop, _Queue[Job]] = {}
        self._end: Future[None] | None = None

    def submit(self, job: Job) -> "Future[Any]":
        """Queue a job. Return a future of the running loop for its result.

        Raises:
            Overloaded: Too many jobs wait.
        """
        loop = asyncio.get_running_loop()
        future: Future[Any] = loop.create_future()
        self._put(loop, job, future)
        return future

    def post(self, job: Job) -> None:
        """Queue a job whose result is not needed.

        Raises:
            Overloaded: Too many jobs wait.
        """
        self._put(asyncio.get_running_loop(), job, None)

    def shut_down(self) -> None:
        """Run the queued jobs, then end the thread. No job may be queued any more."""
        loop = asyncio.get_running_loop()
        self._end = loop.create_future()
        ending = loop.run_in_executor(self._executor, self._serve_all)
        # The thread then ends by itself, even if `wait_closed` is never called and the loop has stopped.
        self._executor.shutdown(wait=False)
        ending.add_done_callback(partial(self._finished, loop))

    async def wait_closed(self) -> None:
        """Wait until the thread has ended."""
        # Another loop, which may have stopped, waits for what it has queued itself.
        if self._end is not None and self._end.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([self._end])
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)

    def _put(self, loop: AbstractEventLoop, job: Job, future: "Future[Any] | None") -> None:
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue()
        if len(queue.jobs) >= _MAX_WAITING:
            raise Overloaded(f"{self._name}: {_MAX_WAITING} jobs wait already: the disk does not keep up")
        queue.jobs.append((job, future))
        if queue.running is None and not queue.scheduled:
            # At the end of this step of the loop: other jobs of the step join the batch.
            queue.scheduled = True
            loop.call_soon(self._flush, loop, queue)

    def _flush(self, loop: AbstractEventLoop, queue: _Queue[Job]) -> None:
        queue.scheduled = False
        if queue.running is not None or self._end is not None:
            return
        batch = _taken(queue.jobs, _MAX_BATCH)
        if not batch:
            # A loop without jobs may have ended; its queue would be a leak.
            self._queues.pop(loop, None)
            return
        try:
            work = partial(self._results, [job for job, _ in batch])
            queue.running = loop.run_in_executor(self._executor, work)
        except RuntimeError as error:
            # The store was closed from another event loop at this moment.
            _settle(_paired(batch, [StoreFailed(f"{self._name}: closed meanwhile ({error})")] * len(batch)))
            return
        queue.running.add_done_callback(partial(self._served, loop, queue, batch))

    def _served(
        self,
        loop: AbstractEventLoop,
        queue: _Queue[Job],
        batch: Sequence[_Pending[Job]],
        served: "Future[Sequence[object]]",
    ) -> None:
        queue.running = None
        if served.cancelled():
            results: Sequence[object] = [StoreFailed(f"{self._name}: cancelled")] * len(batch)
        else:
            error = served.exception()
            results = served.result() if error is None else [_exception(error)] * len(batch)
        _settle(_paired(batch, results))
        if self._end is None:
            self._flush(loop, queue)

    def _finished(self, loop: AbstractEventLoop, ending: "Future[list[_Delivery]]") -> None:
        error = None if ending.cancelled() else ending.exception()
        if error is not None:
            log.error("%s failed", self._name, exc_info=error, extra=fields("worker_failed", error=error))
        for submitter, paired in [] if error is not None or ending.cancelled() else ending.result():
            if submitter is loop:
                _settle(paired)
                continue
            # On a loop that was closed meanwhile, no task waits.
            with suppress(RuntimeError):
                submitter.call_soon_threadsafe(_settle, paired)
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def _serve_all(self) -> "list[_Delivery]":
        """Run the queued jobs of all loops, batch by batch, then end. Runs in the thread."""
        delivered = []
        for loop, queue in list(self._queues.items()):
            while batch := _taken(queue.jobs, _MAX_BATCH):
                results = self._results([job for job, _ in batch])
                delivered.append((loop, _paired(batch, results)))
        self._ended()
        return delivered

    def _results(self, jobs: Sequence[Job]) -> Sequence[object]:
        try:
            return self._serve(jobs)
        except Exception as error:
            # A defect of ours. The submitters must get it, and the thread must go on.
            log.exception("%s failed", self._name, extra=fields("worker_failed", error=error))
            return [error] * len(jobs)


def _taken(jobs: "deque[_Pending[Job]]", limit: int) -> list[_Pending[Job]]:
    """Remove and return the oldest jobs. The loop and the thread may call it at the same time."""
    taken: list[_Pending[Job]] = []
    with suppress(IndexError):
        while len(taken) < limit:
            taken.append(jobs.popleft())
    return taken


def _paired(batch: Sequence[_Pending[Job]], results: Sequence[object]) -> list[tuple["Future[Any]", object]]:
    return [
        (future, result) for (_, future), result in zip(batch, results, strict=True) if future is not None
    ]


def _exception(error: BaseException) -> Exception:
    """Convert a BaseException: one that ends a thread must not end the task that waits for a job."""
    return error if isinstance(error, Exception) else RuntimeError(repr(error))


def _settle(paired: Sequence[tuple["Future[Any]", object]]) -> None:
    for future, result in paired:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
