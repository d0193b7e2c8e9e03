"""A machine of the crawl: a gate, its frontiers with their workers, and its clock; and the scene that all lives share."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from polite import schedulers
from polite.compose.frontier import open_frontier
from polite.compose.gate import open_gate
from polite.errors import Overloaded, StoreFailed
from polite.events import Dropped, Event, Granted, OriginPostponed, Reclaimed, Refused, Skipped
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.gate.fetcher import RobotsFetcher
from polite.gate.gate import Gate
from polite.ports import RobotsStore
from polite.robots.decision import Disallowed
from polite.robots.policy import FetchPolicy
from polite.stores.memory import MemoryStore
from tests.simulation.faults import FaultyListener, FaultyThrottle
from tests.simulation.judge import Judge
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulatedClock, SimulationLoop
from tests.simulation.plan import FrontierPlan, Plan, origin_of
from tests.simulation.progress import Progress, Waiter
from tests.simulation.sites import GaveUp, PageFailed, Sites, Visitor
from tests.simulation.trace import Trace

_EPOCH = 1_700_000_000.0


class Scene:
    """The parts of a world. Each gets the scene, and finds the others in it.

    Args:
        folder: where files are kept.
        tell: called with each line of the trace at once, if given.

    Attributes:
        loop: the loop of the life that runs; None between two.
        clock: that life's clocks.
        paused_at: world seconds, between two lives.
        wall_zero: Unix time at world time 0, as the clock was set last.
        ledgers: one per frontier, in the plan's order.
        memory: the robots.txt store, if the plan has one in memory.
    """

    def __init__(self, plan: Plan, folder: Path, tell: Callable[[str], None] | None) -> None:
        self.plan = plan
        self.folder = folder
        self.loop: SimulationLoop | None = None
        self.clock: SimulatedClock | None = None
        self.paused_at: float = 0.0
        self.wall_zero: float = _EPOCH
        self.memory: RobotsStore = MemoryStore()
        self.trace: Trace = Trace(self.now, tell)
        self.trace.stop = self._stop
        self.judge: Judge = Judge(self)
        self.progress: Progress = Progress(self)
        self.sites: Sites = Sites(self)
        self.visitor: Visitor = Visitor(self)
        self.ledgers: list[Ledger] = [Ledger(self, number) for number in range(len(plan.frontiers))]

    def now(self) -> float:
        return self.paused_at if self.loop is None else self.loop.time()

    def wall(self) -> float:
        return self.wall_zero + self.now() if self.clock is None else self.clock.wall()

    def _stop(self) -> None:
        if self.loop is not None:
            self.loop.stop()

    def ledger_of(self, url: str) -> Ledger | None:
        number = url.rpartition("?f=")[2]
        return self.ledgers[int(number)] if number.isdigit() else None

    def file(self, name: str, life: int) -> Path:
        return self.folder / f"{name}-{life}.sqlite"


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
        self._paused = True
        self.frontier.pause()
        await asyncio.sleep(seconds)
        self.frontier.resume()
        self._paused = False
        self._idle = [self._loop.time() for _ in self._idle]

    def waiters(self) -> Iterator[Waiter]:
        draining = self.closing and self.plan.ending == "drain"
        if not self._idle or self._paused or draining:
            return
        since = max(self._idle)
        for entry in self.ledger.waiting():
            yield Waiter(
                origin_of(entry.url),
                max(since, entry.put_at, entry.due_at, entry.latest_at),
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


AGENT = "SimulatedBot/1.0 (+https://example.com/bot)"


class Machine:
    gate: Gate

    def __init__(self, scene: Scene, loop: SimulationLoop, clock: SimulatedClock, life: int) -> None:
        self.clock = clock
        self.frontiers: list[RunningFrontier] = []
        self.loop = loop
        self._scene = scene
        self._plan = scene.plan
        self._life = life
        self._waiters: dict[object, Waiter] = {}

    async def open(self, stack: AsyncExitStack) -> None:
        plan, scene = self._plan, self._scene
        stack.enter_context(self._tell_turns(scene.judge))
        faults = {each for each in plan.faults if each.startswith("throttle")}
        throttle = FaultyThrottle(lambda: scene.judge.pacing, Random(plan.seed), faults) if faults else None
        opened = open_gate(
            AGENT,
            robots=plan.robots,
            pacing=plan.pacing,
            fetching=FetchPolicy(connections=plan.connections),
            store=self._store(),
            throttle=throttle,
            listener=self._listener(),
            clock=self.clock,
            transports=dict.fromkeys(("http", "https", "ftp"), scene.sites),
        )
        self.gate = await stack.enter_async_context(opened)
        if throttle is not None:
            throttle.begun = True
        self.gate.pacing = scene.judge.pacing
        for number, each in enumerate(plan.frontiers):
            await self._open_frontier(stack, number, each)

    def _tell_turns(self, judge: Judge) -> AbstractContextManager[object]:
        """Tell the judge when a request for robots.txt gets its turn: no event does."""
        take = RobotsFetcher._turn

        async def told(fetcher, fetch, target):
            turn = await take(fetcher, fetch, target)
            judge.robots_turn_granted(str(fetch.origin))
            return turn

        return mock.patch.object(RobotsFetcher, "_turn", told)

    def _store(self) -> RobotsStore | Path | None:
        stores: dict[str, RobotsStore | Path] = {
            "memory": self._scene.memory, "file": self._scene.file("robots", self._life)
        }  # fmt: skip
        return stores.get(self._plan.store)

    def _listener(self) -> Callable[[Event], None]:
        faults = self._plan.faults & {"listener", "listener-cancelled"}
        if not faults:
            return self._listen
        chance = Random(self._plan.seed + 1)
        return FaultyListener(self._listen, chance, cancels="listener-cancelled" in faults)

    async def _open_frontier(self, stack: AsyncExitStack, number: int, plan: FrontierPlan) -> None:
        options: dict[str, Any] = {
            name: getattr(plan, name)
            for name in ("max_waiting", "max_tries", "max_robots_tries", "max_robots_fetches", "max_active_origins")
        }  # fmt: skip
        frontier = await stack.enter_async_context(
            open_frontier(
                self.gate,
                store=self._scene.file(f"queue{number}", self._life) if plan.kept else None,
                scheduler=getattr(schedulers, plan.scheduler)(),
                on_end=self._scene.ledgers[number].told,
                **options,
            )
        )
        running = RunningFrontier(frontier, number, self._scene, self.loop)
        self.frontiers.append(running)
        for _ in range(plan.workers):
            running.add_worker()
        stack.callback(running.cancel_workers)

    def _listen(self, event: Event, /) -> None:
        scene = self._scene
        if scene.sites.ended:
            return
        match event:
            case Refused(url=url):
                scene.trace.note("refused", url, event.reason)
                # A task whose permit is entered late, when robots.txt cannot be fetched, waits again.
                if event.task is not None or event.reason != "UNREACHABLE":
                    self._task_ended(url, "refused")
                scene.judge.refused(url, event.reason)
            case Dropped(url=url):
                scene.trace.note("dropped", url, event.because)
                self._task_ended(url, "dropped", event.because)
            case Granted(url=url):
                scene.visitor.turns[url] = self.loop.time()
                scene.visitor.granted += 1
                scene.judge.turn_granted(url)
                scene.trace.note("turn", url, f"after {event.waited_s:.3f} s")
            case Skipped(url=url):
                scene.judge.turn_unused(url)
                scene.trace.note("skipped", url, event.because)
            case Reclaimed(url=url):
                scene.trace.note("reclaimed", url)
                scene.judge.turn_reclaimed(url)
            case OriginPostponed():
                scene.trace.note("postponed", event.origin, f"{event.for_s:.3f} s", event.because)
                scene.progress.refused(event.origin)
            case _:
                scene.trace.note(type(event).__name__.lower(), event)

    def _task_ended(self, url: str, how: str, because: str = "") -> None:
        if (ledger := self._scene.ledger_of(url)) is not None:
            ledger.ended(url, how, because)
        self._scene.progress.refused(origin_of(url))

    def expect_liveness(self) -> None:
        for each in self.frontiers:
            check_liveness(each.frontier, self._scene.trace, each.ledger.name)

    async def close_frontiers(self) -> None:
        for frontier in self.frontiers:
            await frontier.close()

    @contextmanager
    def waiting(self, url: str) -> Iterator[None]:
        key = object()
        self._waiters[key] = Waiter(origin_of(url), self.loop.time(), f"a permit for {url}")
        try:
            yield
        finally:
            del self._waiters[key]

    def waiters(self) -> Iterator[Waiter]:
        yield from self._waiters.values()
        for frontier in self.frontiers:
            yield from frontier.waiters()

    def expect_counters(self) -> None:
        """Fail if the gate's counters, its events and the permits received do not add up."""
        granted, visitor = self.gate.counters.granted, self._scene.visitor
        # A permit that a cancelled worker did not receive counts as granted.
        if granted != visitor.granted or granted < visitor.received:
            self._scene.trace.fail(
                "counters add up",
                f"{granted} granted by the gate, {visitor.granted} events, {visitor.received} received",
            )
