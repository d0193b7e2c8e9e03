"""A thread that works in batches: what comes while one is done makes the next, and its answers go back together."""

import asyncio
import logging
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from polite.errors import Overloaded

log = logging.getLogger("polite")

Job = TypeVar("Job")
_Asked = tuple[Job, "Future[Any] | None"]

# Jobs of a batch: so many at most wait longer for the others than for themselves.
_BATCH = 1_000
# Jobs that may wait; what comes beyond is refused, for the thread is stuck.
_MOST = 100_000


class Worker(Generic[Job]):
    """`serve` gets jobs in the order in which they came, and gives an answer for each, which may be an exception.

    `ended` is called in the thread when all is done. May be used from several event loops.
    """

    def __init__(
        self, name: str, serve: Callable[[Sequence[Job]], Sequence[object]], ended: Callable[[], None]
    ) -> None:
        self._name = name
        self._serve = serve
        self._ended = ended
        self._queue: SimpleQueue[_Asked[Job] | None] = SimpleQueue()
        # A crawler that forgets to close us may end all the same: what was acknowledged is kept.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self, job: Job) -> "Future[Any]":
        """Have it done; the answer comes to the running loop. Raises Overloaded."""
        self._require_room()
        future: Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.put((job, future))
        return future

    def tell(self, job: Job) -> None:
        """Have it done; nobody waits for an answer. Raises Overloaded."""
        self._require_room()
        self._queue.put((job, None))

    def end(self) -> None:
        """Do what was asked for, and end; nothing may be asked for any more."""
        self._queue.put(None)

    async def gone(self) -> None:
        """Wait until it has ended."""
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _require_room(self) -> None:
        if self._queue.qsize() >= _MOST:
            raise Overloaded(f"{self._name}: {_MOST} jobs wait already: the disk does not keep up")

    def _run(self) -> None:
        going_on = True
        while going_on:
            batch, going_on = self._next_batch()
            if batch:
                _deliver(batch, self._answers([job for job, _ in batch]))
        self._ended()

    def _next_batch(self) -> tuple[list[_Asked[Job]], bool]:
        """What has come meanwhile, one at least; and whether more may come."""
        batch: list[_Asked[Job]] = []
        try:
            while len(batch) < _BATCH:
                asked = self._queue.get(block=not batch)
                if asked is None:
                    return batch, False
                batch.append(asked)
        except Empty:
            pass
        return batch, True

    def _answers(self, jobs: Sequence[Job]) -> Sequence[object]:
        try:
            return self._serve(jobs)
        except Exception as error:
            # A defect of ours; those who wait must hear of it, and the thread must go on.
            log.exception("%s failed", self._name)
            return [error] * len(jobs)


def _deliver(batch: Sequence[_Asked[Job]], answers: Sequence[object]) -> None:
    """One call for each loop, however many wait there."""
    loops: dict[AbstractEventLoop, list[tuple[Future[Any], object]]] = {}
    for (_, future), answer in zip(batch, answers, strict=True):
        if future is not None:
            loops.setdefault(future.get_loop(), []).append((future, answer))
    for loop, answered in loops.items():
        # A loop that was closed meanwhile has nobody who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, answered)


def _settle(answered: Sequence[tuple["Future[Any]", object]]) -> None:
    for future, answer in answered:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
