"""The network between machines and their server: messages are delayed, lost, or executed late; the server may be away."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from redis.exceptions import ConnectionError as BrokenConnection

from tests.simulation.machines.conductor import MachineLoop

if TYPE_CHECKING:
    from tests.simulation.machines.scene import MachinesScene

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

    def __init__(self, scene: "MachinesScene", loop: MachineLoop, chance: Random) -> None:
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
        """Send a command, and return its reply."""
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
    """A command on its way.

    Attributes:
        execute: executes it on the server.
        key: the first key of its script, which names a partition for a batch; or empty.
        sent: when it was sent (world seconds).
        arrival: receives the reply.
    """

    execute: Execute
    key: str
    sent: float
    arrival: "asyncio.Future[Any]"


def _renews(reply: object) -> bool:
    """Return whether this is the reply to a batch that renewed the lease. Reading or saving robots.txt renews none."""
    return isinstance(reply, bytes) and reply.startswith(b"{") and b'"next_in"' in reply
