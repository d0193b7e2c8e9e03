"""A frontier under test: its workers, its ledger, and its tasks that wait."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from polite.errors import Overloaded, StoreFailed
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.robots.decision import Disallowed
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulationLoop
from tests.simulation.plan import FrontierPlan, origin_of
from tests.simulation.progress import Waiter
from tests.simulation.scene import Scene
from tests.simulation.sites import PageFailed
from tests.simulation.trace import Trace
from tests.simulation.visits import GaveUp

# When a worker that was told that nothing is left asks again, at first and at most (seconds).
_ASKS_FIRST_S, _ASKS_LAST_S = 1.0, 1_000.0
REFUSALS = (Disallowed, Overloaded, StoreFailed)
# Errors that a crawler's own code, or a refusal, may raise while a permit is used.
EXPECTED = (GaveUp, PageFailed, *REFUSALS)


def check_liveness(frontier: Frontier, trace: Trace, name: str) -> None:
    """Find origin queues that have tasks, and neither a wait under way nor a worker's absence to wait for: they wait for ever.

    Call it when the loop has nothing to do until a later time. Nothing else of the simulation looks inside a frontier.
    """
    dispatcher = frontier.dispatcher
    queues = () if dispatcher.progress.stopped else [*dispatcher.queues.values()]
    for queue in queues:
        match queue.state.name:
            case "READY" | "DROPPING" | "WITHDRAWN":
                waits = not dispatcher.progress.workers.idle
            case "WAITING_SLOT":
                waits = any(each.state.name == "FETCHING_RULES" for each in queues)
            case _:
                waits = queue.wait is not None
        if queue.waiting and not waits:
            seen = f"{name}: {queue.origin} is {queue.state.name} with {queue.waiting} tasks"
            trace.record("a queue with tasks has a wait or is ready", seen)


class RunningFrontier:
    """A frontier, and workers that iterate over it.

    Args:
        number: its position in the plan.

    Attributes:
        closing: set before it is closed. No further task is put.
    """

    def __init__(self, frontier: Frontier, number: int, scene: Scene, loop: SimulationLoop) -> None:
        self.frontier = frontier
        self.number = number
        self.plan: FrontierPlan = scene.plan.frontiers[number]
        self.ledger: Ledger = scene.ledgers[number]
        self.closing: bool = False
        self._scene = scene
        self._loop = loop
        self._workers: list[asyncio.Task[None]] = []
        self._started = 0
        self._idle: list[float] = []  # since when each idle worker waits for a permit
        self._paused = False

    # Workers.

    def add_worker(self) -> None:
        """Start a worker. Every third asks with `next`, and comes back if nothing is left."""
        self._started += 1
        self._workers.append(self._loop.create_task(self._work(asks=not self._started % 3)))

    def cancel_worker(self, number: int) -> None:
        """Cancel a worker, and start another one."""
        workers = [each for each in self._workers if not each.done()]
        if workers:
            self.add_worker()
            worker = workers[number % len(workers)]
            worker.cancel()
            # A reference to a cancelled task would keep its permit alive.
            self._workers.remove(worker)

    def cancel_workers(self) -> None:
        """Cancel all workers."""
        for worker in self._workers:
            worker.cancel()

    async def _work(self, *, asks: bool) -> None:
        asks_after = _ASKS_FIRST_S
        while True:
            since = self._loop.time()
            self._idle.append(since)
            try:
                permit = await (self.frontier.next() if asks else anext(self.frontier))
            except StopAsyncIteration:
                return
            finally:
                if self._idle:
                    self._idle.pop()
            if permit is None:
                await asyncio.sleep(asks_after)
                asks_after = min(2 * asks_after, _ASKS_LAST_S)
                asks = not self.closing
                continue
            asks_after = _ASKS_FIRST_S
            with suppress(*EXPECTED):
                await self._scene.visitor.use(permit, self.ledger)
            del permit

    async def pause(self, seconds: float) -> None:
        """Pause the frontier for a while."""
        self._paused = True
        self.frontier.pause()
        await asyncio.sleep(seconds)
        self.frontier.resume()
        self._paused = False
        self._idle = [self._loop.time() for _ in self._idle]

    def waiters(self) -> Iterator[Waiter]:
        """Yield the tasks for which an idle worker waits."""
        draining = self.closing and self.plan.ending == "drain"
        if not self._idle or self._paused or draining:
            return
        since = max(self._idle)
        for entry in self.ledger.waiting():
            yield Waiter(
                origin_of(entry.url),
                max(since, entry.put_at, entry.due_at),
                f"{self.ledger.name}'s {entry.url}",
            )

    # The end.

    async def close(self) -> None:
        """Close the frontier as planned, and check that no task is lost and no further task is admitted."""
        self.closing = True
        match self.plan.ending:
            case "join":
                await self.frontier.join()
                self.ledger.expect_all_ended()
                self.frontier.close()
            case "close":
                self.frontier.close()
            case _:
                left = await self.frontier.drain()
                if not self.plan.kept:
                    self.ledger.expect_returned(left)
        for ended in await asyncio.gather(*self._workers, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        if self.plan.ending == "close":
            self.ledger.expect_all_ended()
        with suppress(FrontierClosed):
            await self.frontier.put(f"{self._scene.plan.sites[0].origin}/a/late?f={self.number}")
            self._scene.trace.fail("a closed frontier admits no task", self.ledger.name)
