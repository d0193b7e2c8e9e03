"""The network between machines and their server, which loses and delays messages; and the Conductor, which has the time of all."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from redis.exceptions import ConnectionError as BrokenConnection

from tests.simulation.loop import SimulationLoop

# Steps within one world, and rounds of event loops within one virtual second and one moment: far more than any needs.
_MAX_STEPS = 200_000
MOST_ROUNDS_PER_S = 20_000
_MOST_ROUNDS = 5_000


class MachineLoop(SimulationLoop):
    def __init__(self, *, start: float, chance: Random) -> None:
        super().__init__(start=start, chance=chance, delays=(0.0, 0.001, 0.02))
        self.frozen = False
        self._rounds = 0
        vars(self._jumping)["select"] = self._count_round

    @property
    def due_at(self) -> float:
        """When its next callback is due (world seconds): -inf for at once, inf for never."""
        if self.frozen:
            return math.inf
        if self._ready:  # type: ignore[attr-defined]
            return -math.inf
        scheduled = self._scheduled  # type: ignore[attr-defined]
        return float(scheduled[0].when()) if scheduled else math.inf

    def run_at(self, now: float) -> int:
        """Run the callbacks that are due at `now`, and those that these schedule for the same moment. Return the rounds it took."""
        self._jumping.now, self._rounds = now, 0
        self.run_forever()
        return self._rounds

    def go(self) -> None:
        vars(self._jumping).pop("select", None)

    def discard(self) -> None:
        self.go()
        super().discard()

    def _count_round(self, timeout: float | None) -> list[Any]:
        self._rounds += 1
        if timeout != 0 or self._rounds >= _MOST_ROUNDS:
            self.stop()
        return []


class Conductor:
    """Runs what is due first: an event of the world outside, or a step of a machine's loop.

    Attributes:
        now: the world's time (seconds).
        stopped: by a violation.
        unborn: how many loops are still to come.
        second: the whole second of `now` to which `spins` refers.
        spins: too many rounds of loops were taken in that second.
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.stopped = False
        self.unborn = 0
        self.second: int = 0
        self.spins: bool = False
        self._rounds = 0  # in this second
        self.loops: list[MachineLoop] = []
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def at(self, when: float, event: Callable[[], object]) -> None:
        heappush(self._events, (max(when, self.now), next(self._numbers), event))

    def time(self) -> float:
        return self.now

    def stop(self) -> None:
        self.stopped = True

    def run(self) -> bool:
        """Run until no loop is left. Return whether that came to pass: False if nothing is due any more, or it takes for ever."""
        for _ in range(_MAX_STEPS):
            if self.stopped or not (self.loops or self.unborn):
                return True
            loop, due_at = None, math.inf
            for each in self.loops:
                if each.due_at < due_at:
                    loop, due_at = each, each.due_at
            if self._events and self._events[0][0] <= max(due_at, self.now):
                at, _, event = heappop(self._events)
                self.now = max(self.now, at)
                event()
            elif loop is None:
                return False
            else:
                self.now = max(self.now, due_at)
                self._count(loop.run_at(self.now))
                if self.spins:
                    return False
        return False

    def _count(self, rounds: int) -> None:
        second = int(self.now)
        if second != self.second:
            self.second, self._rounds = second, 0
        self._rounds += rounds
        self.spins = self._rounds > MOST_ROUNDS_PER_S


_WINDOW_S = 10.0
# For each partition: commands in a window without any event. Wanted homes are asked for five times a second, and an outage or a
# beat of a short lease has batches of its own; no healthy crawl was seen to send more than 9 a second.
_IDLE = 150
# And for each put, request and end of a task, in whichever process: it goes in a batch, and so do what it leads to.
_FOR_AN_EVENT = 3


class CallWatch:
    def __init__(self, name: str, scene) -> None:
        self._name = name
        self._scene = scene
        self._begin()

    def sent(self) -> None:
        if self._scene.now() - self._since >= _WINDOW_S:
            self._begin()
        self._calls += 1
        happened = self._scene.events - self._before
        if self._calls > self._scene.plan.partitions * (_IDLE + _FOR_AN_EVENT * happened):
            self._scene.trace.record(
                "no process spins",
                f"{self._name} has sent {self._calls} commands since {self._since:.3f}, in which {happened} events happened",
            )

    def _begin(self) -> None:
        self._since, self._calls, self._before = self._scene.now(), 0, self._scene.events


Execute = Callable[[], Any]
# How long after its sender gave it up a command may still be executed (seconds).
_LATE_S = (3.0, 5.0, 20.0)


class ServerState:
    """Whether the server answers now. Times are world seconds."""

    def __init__(self) -> None:
        self.paused_until: float = -math.inf
        self.down_until: float = -math.inf


class Wire:
    """One process's connections to the server.

    Attributes:
        cut_until: no message passes before (world seconds).
        dead: the process was killed: nothing leaves it, and nothing reaches it.
        began_at: when the first reply to a batch arrived (world seconds).
        sending: called when a command is sent.
        reached: called when the reply to a batch of the session arrives, with the partition and the time when the batch was sent.
    """

    def __init__(self, scene, loop: MachineLoop, chance: Random) -> None:
        self._plan = scene.plan.wire
        self._conductor = scene.conductor
        self._loop = loop
        self._server = scene.state
        self._chance = chance
        self._trace = scene.trace
        self.cut_until: float = -math.inf
        self.dead = False
        self.began_at: float = math.inf
        self.sending: Callable[[], None] = lambda: None
        self.reached: Callable[[str, float], None] = lambda partition, sent: None

    async def __call__(self, execute: Execute, key: str) -> Any:
        if self.dead:
            raise BrokenConnection("the process was killed")
        self.sending()
        command = _Command(execute, key, self._conductor.now, self._loop.create_future())
        self._send(command)
        return await command.arrival

    def _send(self, command: "_Command") -> None:
        plan, chance, now = self._plan, self._chance, self._conductor.now
        there = now + chance.choice(plan.delays)
        fate = chance.random()
        if now < self.cut_until or fate < plan.lost:
            self._trace.note("lost command")
            return
        fate -= plan.lost
        if fate < plan.refused or now < self._server.down_until:
            self._conductor.at(there, lambda: self._break(command))
            return
        fate -= plan.refused
        if fate < plan.late:
            self._trace.note("late command")
            self._conductor.at(now + chance.choice(_LATE_S), lambda: self._execute(command, heard=False))
            if chance.random() < 0.5:
                return
        elif fate < plan.late + plan.answer_lost:
            self._trace.note("lost reply")
            self._conductor.at(there, lambda: self._execute(command, heard=False))
            if chance.random() < 0.5:
                self._conductor.at(there, lambda: self._break(command))
            return
        self._conductor.at(there, lambda: self._execute(command))

    def _execute(self, command: "_Command", *, heard: bool = True) -> None:
        """Execute a command that reached the server. What reaches a paused one is executed when it goes on."""
        now = self._conductor.now
        if now < self._server.paused_until:
            self._conductor.at(self._server.paused_until, lambda: self._execute(command, heard=heard))
            return
        if now < self._server.down_until:
            return
        reply, error = None, None
        try:
            reply = command.execute()
        except Exception as refusal:
            error = refusal
        if heard and now >= self.cut_until:
            back = now + self._chance.choice(self._plan.delays)
            self._conductor.at(back, lambda: self._answer(command, reply, error))

    def _break(self, command: "_Command") -> None:
        self._answer(command, None, BrokenConnection("simulated"))

    def _answer(self, command: "_Command", reply: Any, error: Exception | None) -> None:
        if not self.dead:
            self._loop.call_soon(self._arrived, command, reply, error)

    def _arrived(self, command: "_Command", reply: Any, error: Exception | None) -> None:
        if command.arrival.done():
            return
        if error is not None:
            command.arrival.set_exception(error)
            return
        if _renews(reply):
            self.began_at = min(self.began_at, self._conductor.now)
            self.reached(command.key, command.sent)
        command.arrival.set_result(reply)


@dataclass(frozen=True, slots=True)
class _Command:
    execute: Execute
    key: str
    sent: float
    arrival: "asyncio.Future[Any]"


def _renews(reply: object) -> bool:
    """Return whether this is the reply to a batch that renewed the lease. Reading or saving robots.txt renews none."""
    return isinstance(reply, bytes) and reply.startswith(b"{") and b'"next_in"' in reply
