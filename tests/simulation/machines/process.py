"""A process of a machine: its gate and frontier on the shared server, its steps and its workers; and what all processes share."""

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from random import Random
from typing import Any

from polite import schedulers
from polite.compose.frontier import open_frontier
from polite.compose.gate import open_gate
from polite.errors import Overloaded, StoreEmptied, StoreFailed, TurnLost
from polite.events import Dropped, Event, Granted, Refused
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.frontier.in_flight import TaskPermit
from polite.frontier.progress import TaskOutcome
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.pacing.policy import PacingPolicy
from polite.ports import Scheduler
from polite.robots.decision import Disallowed, RobotsUnreachable
from polite.robots.policy import RobotsPolicy
from polite.schedulers import FileOrder
from polite.task import Task
from tests.simulation.ledger import drawn_draft
from tests.simulation.loop import SimulatedClock
from tests.simulation.machine import AGENT, check_liveness
from tests.simulation.machines.plan import MachinesPlan, Step
from tests.simulation.machines.servers import Disturbances, Servers, ServersOf, Tasks
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer, own_server
from tests.simulation.machines.wire import Conductor, MachineLoop, ServerState, Wire
from tests.simulation.trace import Trace

_SERVER_EPOCH = 1_700_000_123.0


class MachinesScene:
    def __init__(self, plan: MachinesPlan, tell: Callable[[str], None] | None) -> None:
        self.plan = plan
        self.conductor: Conductor = Conductor()
        self.now: Callable[[], float] = self.conductor.time
        self.trace: Trace = Trace(self.now, tell)
        self.trace.stop = self.conductor.stop
        self.disturbances: Disturbances = Disturbances(self)
        self.servers: Servers = Servers(self)
        self.tasks: Tasks = Tasks(self)
        self.server: VirtualServer = VirtualServer(own_server(), lambda: _SERVER_EPOCH + self.now())
        self.state: ServerState = ServerState()

    @property
    def events(self) -> int:
        """How much has happened: it grows while the crawl goes on."""
        return self.servers.events + self.tasks.events


CRAWL = "world"
_EPOCH = 1_700_000_000.0
_SCHEDULERS: dict[FileOrder, Callable[[], Scheduler]] = {
    "fifo": schedulers.Fifo,
    "priority": schedulers.Priority,
    "depth": schedulers.BreadthFirst,
    "deadline": schedulers.Deadline,
}
# How long a process waits before it opens its gate again, while the server is away (seconds).
_OPEN_AGAIN_S = 1.0
# A process that learns that the crawl is over learns what was so at most so long ago (seconds).
_SETTLES_S = 10.0


class Process:
    """One process, from its start to its end or until it is killed.

    Args:
        machine: the number of its machine.
        life: how many processes the machine has had.

    Attributes:
        name: as the trace names it.
        failed: the server lost its data, or was away when the process ended.
        waits: URLs for which a permit is awaited at the gate.
    """

    def __init__(self, scene: MachinesScene, machine: int, life: int, loop: MachineLoop, wire: Wire) -> None:
        self.name: str = f"m{machine}.{life}"
        self.number: int = machine * 1_000 + life
        self.waits: list[str] = []
        self.loop = loop
        self.wire = wire
        self._scene = scene
        self._plan = scene.plan
        self._machine = machine
        self._servers = ServersOf(scene.servers, self.name)
        self._chance = Random(f"{scene.plan.seed} {self.name}")
        wall = _EPOCH + scene.plan.wall_s[machine]
        self._clock = SimulatedClock(loop, zero=self._chance.uniform(0, 1e6), wall=wall)
        self._frontier: Frontier | None = None
        self._idle: set[asyncio.Task[None]] = set()
        self._leaving = self._ending = False
        self.failed: bool = False

    @property
    def dead(self) -> bool:
        """Whether it was killed: what its tasks still do has no effect."""
        return self.wire.dead

    @property
    def _may_fail(self) -> bool:
        return bool(self._plan.wire.lost) or any(
            each.kind in {"pause", "down", "cut"} for each in self._plan.faults
        )

    def kill(self) -> None:
        """Drop everything, and close nothing."""
        self.wire.dead = self._servers.dead = True

    async def run(self, steps: tuple[Step, ...]) -> None:
        """Open the gate and the frontier, take the steps, and end in an orderly way."""
        while True:
            try:
                async with AsyncExitStack() as stack:
                    await self._crawl(stack, steps)
                    return
            except StoreEmptied:
                if not self._plan.empties:
                    raise
                self._scene.trace.note("store emptied", self.name)
                self.failed = True
                return
            except StoreFailed as error:
                if self._ending and self._may_fail:
                    # What it had to write at its end is lost with it, as if it had been killed.
                    self._scene.tasks.dead.add(self.number)
                    self._scene.disturbances.vanish("the server was away at the end of", self.name)
                    self.failed = True
                    return
                if self._frontier is not None:
                    raise
                self._scene.trace.note("not opened", self.name, error)
                # What it joined is left again: it begins with the first reply after the next attempt.
                self.wire.began_at = math.inf
            await asyncio.sleep(_OPEN_AGAIN_S)

    async def _crawl(self, stack: AsyncExitStack, steps: tuple[Step, ...]) -> None:
        client = VirtualClient(self._scene.server, self.wire)
        # Either its gate joins the crawl, or its frontier does, which shares the gate's turns then.
        by_frontier = bool(self._plan.frontiers[self._machine]) and self._chance.random() < 0.5
        gate = await stack.enter_async_context(self._gate(None if by_frontier else client))
        workers: list[asyncio.Task[None]] = []
        if self._plan.frontiers[self._machine]:
            frontier = await stack.enter_async_context(
                open_frontier(
                    gate,
                    store=client,
                    crawl=CRAWL,
                    lease=self._plan.lease_s,
                    scheduler=_SCHEDULERS[self._plan.order](),
                    max_tries=self._plan.max_tries,
                    on_end=self._ended,
                )
            )
            self._frontier = frontier
            count = self._plan.frontiers[self._machine]
            workers = [self.loop.create_task(self._work(frontier)) for _ in range(count)]
        self._scene.trace.note("opened", self.name)
        self.loop.on_wait = self._expect_liveness
        try:
            await self._take_all(gate, steps)
            await self._end(workers)
            self._ending = self._servers.closing = True
        finally:
            self.loop.on_wait = lambda: None
            for worker in workers:
                worker.cancel()

    def _gate(self, client: VirtualClient | None) -> AbstractAsyncContextManager[Gate]:
        shared: dict[str, Any] = {"store": client, "crawl": CRAWL, "lease": self._plan.lease_s}
        return open_gate(
            AGENT,
            robots=RobotsPolicy(retry_min=2.0, retry_max=10.0, busy_retry_max=10.0),
            pacing=PacingPolicy(min_delay=self._plan.min_delay, backoff=2.0, max_backoff=20.0),
            listener=self._listen,
            clock=self._clock,
            transports=dict.fromkeys(("http", "https"), self._servers),
            **({} if client is None else shared),
        )

    def _listen(self, event: Event, /) -> None:
        if self.dead:
            return
        self._scene.trace.note(type(event).__name__.lower(), self.name, event)
        match event:
            case Refused(url=url):
                self._scene.tasks.ended(url, "refused")
            case Granted(url=url, task=task) if task is not None:
                self._scene.tasks.granted(url)
            case Dropped(url=url):
                self._scene.tasks.ended(url, "dropped")
            case _:
                pass

    def _ended(self, task: Task, outcome: TaskOutcome) -> None:
        if not self.dead:
            self._scene.tasks.told(task, outcome, self.name)

    def _expect_liveness(self) -> None:
        if self._frontier is not None and not self.dead:
            check_liveness(self._frontier, self._scene.trace, self.name)

    # The end.

    async def _end(self, workers: list[asyncio.Task[None]]) -> None:
        frontier = self._frontier
        if frontier is None:
            return
        if self._machine in self._plan.leaves:
            self._leaving = True
            for worker in list(self._idle):
                worker.cancel()
        else:
            await frontier.join()
            self._scene.trace.note("joined", self.name)
            self._expect_counts(frontier)
            frontier.close()
        for ended in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        if not self._leaving:
            self._scene.tasks.worked_until = self._scene.now()

    def _expect_counts(self, frontier: Frontier) -> None:
        """The crawl is over, as this process sees it: then no task is left, and its counts are those of all."""
        tasks, trace = self._scene.tasks, self._scene.trace
        if self.wire.began_at > tasks.emptied_at:
            # It knows nothing of what was lost.
            return
        # It may have learned that before the last puts.
        settled = self._scene.conductor.now - _SETTLES_S
        left = tasks.left(put_before=settled)
        if left and not tasks.may_be_lost(left):
            trace.fail(
                "no acknowledged task is lost",
                f"{self.name} says that all is done, and {left[0]} has not ended",
            )
        if tasks.put_at > settled:
            return
        ended = frontier.done + frontier.refused + frontier.dropped
        if frontier.waiting or (tasks.exact and ended != tasks.count()):
            trace.fail(
                "counters add up",
                f"{self.name}: {frontier.waiting} wait, {frontier.done} done, {frontier.refused} refused, "
                f"{frontier.dropped} dropped; {tasks.count()} have ended",
            )

    # Steps.

    async def _take_all(self, gate: Gate, steps: tuple[Step, ...]) -> None:
        taken = []
        for step in steps:
            if step.at > self.loop.time():
                await asyncio.sleep(step.at - self.loop.time())
            taken.append(self.loop.create_task(self._take(gate, step)))
        for ended in await asyncio.gather(*taken, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended

    async def _take(self, gate: Gate, step: Step) -> None:
        if step.kind == "put":
            await self._put(step)
            return
        url = f"{step.urls[0]}?gate"
        self.waits.append(url)
        try:
            await (gate.check(url) if step.kind == "check" else self._send(gate.permit(url), url))
        except (Disallowed, RobotsUnreachable, Overloaded, TurnLost) as error:
            self._scene.trace.note("no page", self.name, url, repr(error))
        except StoreEmptied:
            raise
        except StoreFailed as error:
            # After a minute a permit tells, instead of waiting on.
            self._scene.trace.note("store failed", self.name, url, error)
            if not self._may_fail:
                raise
        finally:
            self.waits.remove(url)

    async def _put(self, step: Step) -> None:
        if self._frontier is None:
            return
        if step.at_once:
            await asyncio.gather(*(self._put_one(self._frontier, url, step) for url in step.urls))
            return
        for url in step.urls:
            await self._put_one(self._frontier, url, step)

    async def _put_one(self, frontier: Frontier, url: str, step: Step) -> None:
        wall, wait_s, once = self._clock.wall(), step.not_before_s, self._plan.puts(url) == 1
        chance = Random(f"{self._plan.seed} {self.name} {url}")
        draft = drawn_draft(chance, url, wall, wait_s, keyed=True, once=once)._replace(
            priority=step.rank, depth=step.rank, deadline=wall + step.rank if step.rank else None
        )
        self._scene.tasks.put_began(url, draft, wait_s or 0.0)
        try:
            admission = await frontier.put(url, **draft._asdict())
        except FrontierClosed:
            return
        self._scene.tasks.put_returned(url, admission.value, self.number)

    # Permits.

    async def _work(self, frontier: Frontier) -> None:
        task = asyncio.current_task()
        while task is not None and not self._leaving:
            self._idle.add(task)
            try:
                permit = await anext(frontier)
            except StopAsyncIteration:
                return
            finally:
                self._idle.discard(task)
            await self._visit(permit)
            del permit

    async def _visit(self, permit: TaskPermit) -> None:
        url, tasks = permit.url, self._scene.tasks
        if self.dead:
            return
        tasks.given(permit.task, self.name)
        if self._chance.random() < 0.03:
            self._scene.trace.note("not used", self.name, url)
            tasks.again(url)
            return
        try:
            await self._send(permit, url)
        except TurnLost:
            self._scene.trace.note("turn lost", self.name, url)
            if not self.dead:
                tasks.again(url)
        except (Disallowed, RobotsUnreachable, Overloaded) as error:
            self._scene.trace.note("no page", self.name, url, repr(error))

    async def _send(self, permit: Permit, url: str) -> None:
        """Send a page's request in the permit's block: at once after the turn was checked, or after a slow connection."""
        async with permit:
            permit.require()
            late = False
            if self._plan.connect_s and self._chance.random() < 0.3:
                await asyncio.sleep(self._chance.uniform(0, self._plan.connect_s))
                late = not permit.valid
            if self.dead:
                return
            status, retry_after = await self._scene.servers.page(url, self.name, late=late)
            permit.report(
                status=status, headers={} if retry_after is None else {"Retry-After": f"{retry_after:.0f}"}
            )
            if not isinstance(permit, TaskPermit):
                return
            if status == 503 or self._chance.random() < 0.05:
                self._scene.trace.note("retry", self.name, url)
                if permit.retry():
                    self._scene.tasks.again(url)
            else:
                self._scene.tasks.ended(url, "done")
