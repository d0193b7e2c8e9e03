"""A worker that serves jobs in batches in a thread of the loop's executor: jobs that arrive during one batch make the next."""

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

log = logging.getLogger("polite")

Job = TypeVar("Job")
_Asked = tuple[Job, "Future[Any] | None"]
_Delivery = tuple[AbstractEventLoop, "list[tuple[Future[Any], object]]"]

# Jobs of a batch: so many at most wait longer for the others than for themselves.
_BATCH = 1_000
# Jobs that may wait; what comes beyond is refused, for the thread is stuck.
_MOST = 100_000


class _Queue(Generic[Job]):
    """The jobs that one event loop has asked for, and whether a batch of them is under way."""

    __slots__ = ("busy", "jobs", "stirred")

    def __init__(self) -> None:
        self.jobs: deque[_Asked[Job]] = deque()
        self.stirred = False
        self.busy: Future[Any] | None = None


class Worker(Generic[Job]):
    """`serve` gets jobs in the order in which they came, and gives an answer for each, which may be an exception.

    All work goes through `loop.run_in_executor`, with an executor of one thread: several event loops may ask, and `serve` is
    still called by one thread, once at a time. `ended` is called there when all is done.
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

    def ask(self, job: Job) -> "Future[Any]":
        """Request the job; the answer comes to the running loop. Raises Overloaded."""
        loop = asyncio.get_running_loop()
        future: Future[Any] = loop.create_future()
        self._put(loop, job, future)
        return future

    def tell(self, job: Job) -> None:
        """Request the job without waiting for an answer. Raises Overloaded."""
        self._put(asyncio.get_running_loop(), job, None)

    def end(self) -> None:
        """Serve what was asked for, then end. Nothing may be asked for any more."""
        loop = asyncio.get_running_loop()
        self._end = loop.create_future()
        ending = loop.run_in_executor(self._executor, self._serve_all)
        # Its thread ends by itself then, also if nothing waits for that, and the loop stands still.
        self._executor.shutdown(wait=False)
        ending.add_done_callback(partial(self._finished, loop))

    async def gone(self) -> None:
        """Wait until it has ended."""
        if self._end is not None:
            await asyncio.wait([self._end])
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)

    def _put(self, loop: AbstractEventLoop, job: Job, future: "Future[Any] | None") -> None:
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue()
        if len(queue.jobs) >= _MOST:
            raise Overloaded(f"{self._name}: {_MOST} jobs wait already: the disk does not keep up")
        queue.jobs.append((job, future))
        if queue.busy is None and not queue.stirred:
            # At the end of this step: what else is asked for in it goes along.
            queue.stirred = True
            loop.call_soon(self._flush, loop, queue)

    def _flush(self, loop: AbstractEventLoop, queue: _Queue[Job]) -> None:
        queue.stirred = False
        if queue.busy is not None or self._end is not None:
            return
        batch = _taken(queue.jobs, _BATCH)
        if not batch:
            # Nothing is kept for a loop that has nothing to ask: it may never come back.
            self._queues.pop(loop, None)
            return
        try:
            work = partial(self._answers, [job for job, _ in batch])
            queue.busy = loop.run_in_executor(self._executor, work)
        except RuntimeError as error:
            # Another loop has closed the store this moment.
            _settle(_answered(batch, [StoreFailed(f"{self._name}: closed meanwhile ({error})")] * len(batch)))
            return
        queue.busy.add_done_callback(partial(self._served, loop, queue, batch))

    def _served(
        self,
        loop: AbstractEventLoop,
        queue: _Queue[Job],
        batch: Sequence[_Asked[Job]],
        served: "Future[Sequence[object]]",
    ) -> None:
        queue.busy = None
        if served.cancelled():
            answers: Sequence[object] = [StoreFailed(f"{self._name}: cancelled")] * len(batch)
        else:
            error = served.exception()
            answers = served.result() if error is None else [_exception(error)] * len(batch)
        _settle(_answered(batch, answers))
        if self._end is None:
            self._flush(loop, queue)

    def _finished(self, loop: AbstractEventLoop, ending: "Future[list[_Delivery]]") -> None:
        error = None if ending.cancelled() else ending.exception()
        if error is not None:
            log.error("%s failed", self._name, exc_info=error)
        for asker, answered in [] if error is not None or ending.cancelled() else ending.result():
            if asker is loop:
                _settle(answered)
                continue
            # A loop that was closed meanwhile has nobody who waits.
            with suppress(RuntimeError):
                asker.call_soon_threadsafe(_settle, answered)
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def _serve_all(self) -> "list[_Delivery]":
        """In the thread: what is left, batch by batch; then the end."""
        delivered = []
        for loop, queue in list(self._queues.items()):
            while batch := _taken(queue.jobs, _BATCH):
                answers = self._answers([job for job, _ in batch])
                delivered.append((loop, _answered(batch, answers)))
        self._ended()
        return delivered

    def _answers(self, jobs: Sequence[Job]) -> Sequence[object]:
        try:
            return self._serve(jobs)
        except Exception as error:
            # A defect of ours; those who wait must hear of it, and the thread must go on.
            log.exception("%s failed", self._name)
            return [error] * len(jobs)


def _taken(jobs: "deque[_Asked[Job]]", most: int) -> list[_Asked[Job]]:
    """The oldest, removed from the queue; its loop and the thread may both take."""
    taken: list[_Asked[Job]] = []
    with suppress(IndexError):
        while len(taken) < most:
            taken.append(jobs.popleft())
    return taken


def _answered(batch: Sequence[_Asked[Job]], answers: Sequence[object]) -> list[tuple["Future[Any]", object]]:
    return [
        (future, answer) for (_, future), answer in zip(batch, answers, strict=True) if future is not None
    ]


def _exception(error: BaseException) -> Exception:
    """What ends a thread must not end the task that waits for it."""
    return error if isinstance(error, Exception) else RuntimeError(repr(error))


def _settle(answered: Sequence[tuple["Future[Any]", object]]) -> None:
    for future, answer in answered:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
