"""A machine of the crawl: a gate, its frontiers and its clock, opened and closed as the plan says."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

from polite import schedulers
from polite.compose.frontier import open_frontier
from polite.compose.gate import open_gate
from polite.events import Dropped, Event, Granted, OriginPostponed, Reclaimed, Refused, Skipped
from polite.gate.gate import Gate
from polite.pacing.throttle import Throttle
from polite.ports import RobotsStore
from polite.robots.policy import FetchPolicy
from tests.simulation.faults import FaultyListener, FaultyThrottle
from tests.simulation.loop import SimulatedClock, SimulationLoop
from tests.simulation.plan import origin_of
from tests.simulation.progress import Waiter
from tests.simulation.running_frontier import RunningFrontier
from tests.simulation.scene import Scene
from tests.simulation.trace import Violation


class GateEvents:
    """A listener for the gate's events."""

    def __init__(self, scene: Scene, loop: SimulationLoop) -> None:
        self._scene = scene
        self._trace = scene.trace
        self.loop = loop

    def __call__(self, event: Event, /) -> None:
        """See ports.Listener."""
        if self._scene.sites.ended:
            return
        match event:
            case Refused(url=url):
                self._refused(url, event.reason)
            case Dropped(url=url):
                self._trace.note("dropped", url, event.because)
                self._task_ended(url, "dropped")
                self._scene.progress.refused(origin_of(url))
            case Granted(url=url):
                self._scene.visitor.turns[url] = self.loop.time()
                self._scene.visitor.granted += 1
                self._scene.judge.turn_granted(url)
                self._trace.note("turn", url, f"after {event.waited_s:.3f} s")
            case Skipped(url=url):
                self._scene.judge.turn_unused(url)
                self._trace.note("skipped", url, event.because)
            case Reclaimed(url=url):
                self._trace.note("reclaimed", url)
                self._scene.judge.turn_reclaimed(url)
            case OriginPostponed():
                self._trace.note("postponed", event.origin, f"{event.for_s:.3f} s", event.because)
                self._scene.progress.refused(event.origin)
            case _:
                self._trace.note(type(event).__name__.lower(), event)

    def _refused(self, url: str, reason: str) -> None:
        self._trace.note("refused", url, reason)
        self._task_ended(url, "refused")
        self._scene.progress.refused(origin_of(url))
        self._scene.judge.refused(url, reason)

    def _task_ended(self, url: str, how: str) -> None:
        if (ledger := self._scene.ledger_of(url)) is not None:
            ledger.ended(url, how)


_AGENT = "SimulatedBot/1.0 (+https://example.com/bot)"


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
        self._scene = scene
        self.loop = loop
        self._life = life
        self._waiters: dict[object, Waiter] = {}

    async def open(self, stack: AsyncExitStack) -> None:
        """Open the gate and the frontiers. `stack` closes them."""
        throttle = self._throttle()
        self.gate = await stack.enter_async_context(self._opened_gate(throttle))
        if isinstance(throttle, FaultyThrottle):
            throttle.begun = True
        self.gate.pacing = self._scene.judge.pacing
        for number in range(len(self._scene.plan.frontiers)):
            await self._open_frontier(stack, number)

    def _throttle(self) -> Throttle | None:
        plan, scene = self._scene.plan, self._scene
        faults = {each for each in plan.faults if each.startswith("throttle")}
        return FaultyThrottle(lambda: scene.judge.pacing, Random(plan.seed), faults) if faults else None

    def _opened_gate(self, throttle: Throttle | None) -> AbstractAsyncContextManager[Gate]:
        plan, scene = self._scene.plan, self._scene
        return open_gate(
            _AGENT,
            robots=plan.robots,
            pacing=plan.pacing,
            fetching=FetchPolicy(connections=plan.connections),
            store=self._store(),
            throttle=throttle,
            listener=self._listener(),
            clock=self.clock,
            transports=dict.fromkeys(("http", "https", "ftp"), scene.sites),
        )

    def _store(self) -> RobotsStore | Path | None:
        match self._scene.plan.store:
            case "memory":
                return self._scene.memory
            case "file":
                return self._scene.file("robots", self._life)
            case _:
                return None

    def _listener(self) -> Callable[[Event], None]:
        plan, listener = self._scene.plan, GateEvents(self._scene, self.loop)
        if plan.faults & {"listener", "listener-cancelled"}:
            return FaultyListener(
                listener, Random(plan.seed + 1), cancels="listener-cancelled" in plan.faults
            )
        return listener

    async def _open_frontier(self, stack: AsyncExitStack, number: int) -> None:
        plan = self._scene.plan.frontiers[number]
        make_scheduler = getattr(schedulers, plan.scheduler)
        frontier = await stack.enter_async_context(
            open_frontier(
                self.gate,
                store=self._scene.file(f"queue{number}", self._life) if plan.kept else None,
                scheduler=make_scheduler(),
                max_waiting=plan.max_waiting,
                max_tries=plan.max_tries,
                max_robots_tries=plan.max_robots_tries,
                max_robots_fetches=plan.max_robots_fetches,
                max_active_origins=plan.max_active_origins,
                on_end=self._scene.ledgers[number].told,
            )
        )
        running = RunningFrontier(frontier, number, self._scene, self.loop)
        self.frontiers.append(running)
        for _ in range(plan.workers):
            running.add_worker()
        stack.callback(running.cancel_workers)

    def expect_liveness(self) -> None:
        """Check the frontiers when the loop goes on to a later time."""
        with suppress(Violation):
            for frontier in self.frontiers:
                frontier.expect_liveness()

    async def close_frontiers(self) -> None:
        """Close the frontiers as planned."""
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
        """Yield the requests and tasks that wait now."""
        yield from self._waiters.values()
        for frontier in self.frontiers:
            yield from frontier.waiters()

    def expect_counters(self) -> None:
        """Fail if the gate's counters, its events and the permits received do not add up."""
        granted, events, received = (
            self.gate.counters.granted,
            self._scene.visitor.granted,
            self._scene.visitor.received,
        )
        # A permit that a cancelled worker did not receive counts as granted.
        if granted != events or granted < received:
            self._scene.trace.fail(
                "counters add up", f"{granted} granted by the gate, {events} events, {received} received"
            )
