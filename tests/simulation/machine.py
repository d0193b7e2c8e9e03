"""A machine of the crawl: a gate, its frontiers and its clock, opened and closed as the plan says."""

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from polite import schedulers
from polite.compose.frontier import open_frontier
from polite.compose.gate import open_gate
from polite.events import Dropped, Event, Granted, OriginPostponed, Reclaimed, Refused, Skipped
from polite.gate.gate import Gate
from polite.ports import RobotsStore
from polite.robots.policy import FetchPolicy
from tests.simulation.faults import FaultyListener, FaultyThrottle
from tests.simulation.loop import SimulatedClock, SimulationLoop
from tests.simulation.plan import FrontierPlan, origin_of
from tests.simulation.progress import Waiter
from tests.simulation.running_frontier import RunningFrontier, check_liveness
from tests.simulation.scene import Scene

AGENT = "SimulatedBot/1.0 (+https://example.com/bot)"


class Machine:
    """A gate with its frontiers and its clock.

    Args:
        life: the number of its life, which names its files.

    Attributes:
        loop: the loop of its process.
        frontiers: the frontiers that are open, in the plan's order.
    """

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
        """Open the gate and the frontiers. `stack` closes them."""
        plan, scene = self._plan, self._scene
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
        """Check the frontiers when the loop goes on to a later time."""
        for each in self.frontiers:
            check_liveness(each.frontier, self._scene.trace, each.ledger.name)

    async def close_frontiers(self) -> None:
        for frontier in self.frontiers:
            await frontier.close()

    @contextmanager
    def waiting(self, url: str) -> Iterator[None]:
        """Within the block, a request waits at the URL's origin for the gate."""
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
