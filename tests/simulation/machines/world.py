"""A world of several machines: their processes, begun, stopped, cut off and killed as planned, and what must hold over all."""

import asyncio
import random
import traceback
from collections.abc import Callable
from random import Random

from polite.stores.redis.opening import SCHEMA, crawl_key
from tests.simulation.machines.plan import Fault, MachinesPlan
from tests.simulation.machines.process import CRAWL, MachinesScene, Process
from tests.simulation.machines.servers import LeaseWatch
from tests.simulation.machines.wire import MOST_ROUNDS_PER_S, CallWatch, MachineLoop, Wire
from tests.simulation.trace import Report, Trace, Violation
from tests.simulation.world import captured_log, left_in

# Without any event for so long, something hangs: longer than any delay, lease and fault of a world (seconds).
_SILENCE_S = 400.0
_LOOK_S = 50.0


class MachinesWorld:
    def __init__(self, plan: MachinesPlan, tell: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self.logged: list[str] = []
        self.scene: MachinesScene = MachinesScene(plan, tell)
        self.trace: Trace = self.scene.trace
        self._conductor = self.scene.conductor
        self._disturbances = self.scene.disturbances
        self._servers = self.scene.servers
        self._tasks = self.scene.tasks
        self._server, self._state = self.scene.server, self.scene.state
        self._processes: dict[int, tuple[Process, LeaseWatch]] = {}
        self._lives = [0] * plan.machines
        self._kept = False
        self._events, self._events_at = -1, 0.0

    def run(self) -> Report:
        random.seed(self.plan.seed)
        self._divide()
        for machine in range(self.plan.machines):
            self._begin(machine)
        for fault in self.plan.faults:
            self._plan_fault(fault)
        self._conductor.at(_LOOK_S, self._look)
        with captured_log(self.logged):
            try:
                if not self._conductor.run():
                    self._expect_time_passes()
                self._expect_the_end()
            finally:
                for process, _ in list(self._processes.values()):
                    process.kill()
                    process.loop.discard()
        self.trace.raise_violation(self.plan)
        pages, fetches = self._servers.pages, self._servers.fetches
        return Report(self.plan.seed, pages, fetches, self._conductor.now, sum(self._lives))

    def _divide(self) -> None:
        """Give the crawl its partitions. On one server the first process would choose a single one, and the others follow."""
        if self.plan.partitions > 1:
            terms = "schema", SCHEMA, "partitions", self.plan.partitions
            self._server.execute("HSET", crawl_key(CRAWL), *terms)

    # Processes.

    def _begin(self, machine: int) -> None:
        plan, conductor = self.plan, self._conductor
        self._lives[machine] += 1
        life = self._lives[machine]
        chance = Random(f"{plan.seed} {machine} {life}")
        loop = MachineLoop(start=conductor.now, chance=chance)
        loop.set_exception_handler(
            lambda _, context: self.logged.append(f"{context['message']}: {context.get('exception')!r}")
        )
        wire = Wire(self.scene, loop, chance)
        process = Process(self.scene, machine, life, loop, wire)
        watch = LeaseWatch(process.name, self.scene)
        wire.reached = watch.reached
        wire.sending = CallWatch(process.name, self.scene).sent
        self.trace.note("begins", process.name)
        steps = tuple(each for each in plan.steps if each.machine == machine and each.at >= conductor.now)
        task = loop.create_task(process.run(steps))
        task.add_done_callback(
            lambda _: conductor.at(conductor.now, lambda: self._ended(machine, process, task))
        )
        self._processes[machine] = process, watch
        conductor.loops.append(loop)

    def _ended(self, machine: int, process: Process, task: "asyncio.Task[None]") -> None:
        if process.dead:
            return
        self.trace.note("ended", process.name)
        if self.plan.frontiers[machine]:
            # What it put lately, and a failover loses, it cannot put again.
            self._tasks.dead.add(process.number)
        _, watch = self._processes.pop(machine)
        watch.over = True
        self._conductor.loops.remove(process.loop)
        error: BaseException | None = asyncio.CancelledError() if task.cancelled() else task.exception()
        process.loop.go()
        left = left_in(process.loop) if error is None and not process.failed else None
        process.kill()
        process.loop.discard()
        if isinstance(error, Violation):
            return
        if error is not None:
            self.trace.note("error", "".join(traceback.format_exception(error))[-3_000:])
            self.trace.record("no error without a cause", f"{process.name}: {error!r}")
        if left is not None:
            self.trace.record(left.invariant, f"{process.name}: {left.seen}")

    # Faults.

    def _plan_fault(self, fault: Fault) -> None:
        if fault.kind == "failover":
            self._conductor.at(fault.at - fault.for_s, self._keep)
        self._conductor.at(fault.at, lambda: self._happens(fault))

    def _keep(self) -> None:
        self._kept = self._server.keep() == self.plan.partitions

    def _happens(self, fault: Fault) -> None:
        until = self._conductor.now + fault.for_s
        self.trace.note("FAULT", fault.kind, f"m{fault.machine}", f"{fault.for_s:g} s")
        match fault.kind:
            case "pause":
                self._state.paused_until = max(self._state.paused_until, until)
            case "down":
                self._state.down_until = max(self._state.down_until, until)
            case "restart":
                self._server.restart()
            case "failover" if not self._kept:
                # It would be empty, or lack a partition.
                self._server.restart()
            case "failover":
                self._tasks.forgot = True
                self._disturbances.add("failover")
                saved = self._server.robots_saved()
                self._server.fail_over()
                self._servers.forgot(saved - self._server.robots_saved())
            case "empty":
                self._disturbances.add("empty")
                self._tasks.emptied_at = self._conductor.now
                self._server.empty()
                self._divide()
            case _ if fault.machine in self._processes:
                self._befalls(fault, *self._processes[fault.machine], until)
            case _:
                pass

    def _befalls(self, fault: Fault, process: Process, watch: LeaseWatch, until: float) -> None:
        conductor = self._conductor
        match fault.kind:
            case "cut":
                process.wire.cut_until = until
            case "stop":
                process.loop.frozen = True
                conductor.at(until, lambda: self._thaw(process))
            case _:
                watch.over = True
                self._disturbances.vanish("killed", process.name)
                self._tasks.dead.add(process.number)
                process.kill()
                del self._processes[fault.machine]
                conductor.loops.remove(process.loop)
                process.loop.discard()
                conductor.unborn += 1
                conductor.at(until, lambda: self._reborn(fault.machine))

    def _reborn(self, machine: int) -> None:
        self._conductor.unborn -= 1
        self._begin(machine)

    def _thaw(self, process: Process) -> None:
        self.trace.note("goes on", process.name)
        process.loop.frozen = False

    # What must hold.

    def _look(self) -> None:
        events = self.scene.events
        if events != self._events:
            self._events, self._events_at = events, self._conductor.now
        elif self._conductor.now - self._events_at > _SILENCE_S:
            waits = [url for process, _ in self._processes.values() for url in process.waits]
            self.trace.record(
                "each task and request goes in time",
                f"nothing happens since {self._events_at:.3f}; {[each.url for each in self._tasks.left()][:5]} wait, and at the "
                f"gate {waits[:5]}; {', '.join(process.name for process, _ in self._processes.values())} have not ended",
            )
        if self._processes or self._conductor.unborn:
            self._conductor.at(self._conductor.now + _LOOK_S, self._look)

    def _expect_time_passes(self) -> None:
        if self._conductor.spins:
            self.trace.record(
                "time passes",
                f"the machines' loops took more than {MOST_ROUNDS_PER_S} rounds in the second after {self._conductor.second}, "
                f"and it is {self._conductor.now:.6f}",
            )

    def _expect_the_end(self) -> None:
        if self.trace.violation is not None:
            return
        if self._processes:
            self.trace.record(
                "a crawl ends", f"{', '.join(each.name for each, _ in self._processes.values())} did not"
            )
        # What is put when no process waits for the crawl's end any more stays on the server.
        left = self._tasks.left(put_before=self._tasks.worked_until)
        if left and not self.plan.empties and not self._tasks.may_be_lost(left):
            self.trace.record("no acknowledged task is lost", f"all processes ended, and {left[0]} has not")
        if self._tasks.exact and (untold := self._tasks.untold()):
            self.trace.record("on_end is called once for each task that ended", f"not for {untold[0]}")
        if self.logged and not self.plan.empties:
            self.trace.record("no error is logged", self.logged[0])
