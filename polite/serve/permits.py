"""The permits of all clients: those that wait for their turn, those that are out, and their ends.

A permit is bound to no task, so one client may hold many. It is dropped, and its turn given back, if its client asks for it no
more while it waits, or was granted it and never took it. A permit that was taken is out until its report or its deadline.
"""

import asyncio
import math
import secrets
from dataclasses import dataclass
from typing import Any

from polite.errors import PoliteError
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.ports import Timer
from polite.serve.api import ApiError

# A permit for which no request waits is dropped after this (seconds).
QUIET_S = 10.0
# A report that comes so long after the deadline still lengthens the delay (seconds).
_LATE_S = 60.0
_SWEEP_S = 1.0
# Ended permits of which it is still known that they were there.
_MOST_ENDED = 10_000


@dataclass(slots=True, eq=False)
class Held:
    """One permit of a client.

    Attributes:
        id: Its name, which cannot be guessed.
        client: Whose it is.
        permit: The gate's permit.
        headers: What the client wants to send.
        conditional: Whether the client wants a conditional request.
        error: Why it was not granted.
        deadline_s: Monotonic seconds when its turn is taken back; infinite while it waits.
        deadline: The same in Unix time.
        polls: Requests that wait for it now.
        quiet_at: Monotonic seconds since when none does.
        taken: Whether the client was told that it is granted.
        reported: Whether a response was reported.
        task: Waits for the turn.
    """

    id: str
    client: str
    permit: Permit
    headers: dict[str, Any]
    conditional: bool
    quiet_at: float
    error: PoliteError | None = None
    deadline_s: float = math.inf
    deadline: float = 0.0
    polls: int = 0
    taken: bool = False
    reported: bool = False
    task: "asyncio.Task[None] | None" = None


class Permits:
    """Owns the permits of all clients.

    Attributes:
        closing: Whether no more are granted.

    Args:
        gate: Grants them.
        most: How many may wait or be out at one time.
        most_each: How many of one client.
    """

    def __init__(self, gate: Gate, most: int, most_each: int) -> None:
        self._gate = gate
        self._clock = gate.services.clock
        self._most = most
        self._most_each = most_each
        self._held: dict[str, Held] = {}
        self._counts: dict[str, int] = {}
        self._ended: dict[str, str] = {}
        self._timer: Timer | None = None
        self.closing: bool = False
        self._emptied: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._held)

    def reserve(self, client: str) -> None:
        """Count something of a client that waits or is out. Raises ApiError if there is too much."""
        self._require_open()
        mine, total = self._counts.get(client, 0), sum(self._counts.values())
        if mine >= self._most_each or total >= self._most:
            most = self._most_each if mine >= self._most_each else self._most
            text = f"too many permits wait or are out: the limit is {most} (polite serve: --max-permits); report some"
            raise ApiError(429, text, retry_after_s=1.0)
        self._counts[client] = mine + 1

    def _require_open(self) -> None:
        if self.closing:
            raise ApiError(503, "the server is stopping: it grants no more permits", retry_after_s=5.0)

    def release(self, client: str) -> None:
        """Undo `reserve`."""
        left = self._counts[client] - 1
        if left:
            self._counts[client] = left
        else:
            del self._counts[client]

    def begin(self, client: str, url: str, headers: dict[str, Any], *, conditional: bool) -> Held:
        """Begin to wait for the turn of a URL. Raises ApiError, InvalidURL."""
        permit = self._gate.permit(url)
        self.reserve(client)
        held = Held(secrets.token_urlsafe(18), client, permit, headers, conditional, self._clock.monotonic())
        self._held[held.id] = held
        held.task = asyncio.get_running_loop().create_task(self._acquire(held))
        if self._timer is None:
            self._set_timer()
        return held

    async def _acquire(self, held: Held) -> None:
        try:
            await held.permit.enter()
        except PoliteError as error:
            held.error = error
            return
        max_hold_s = self._gate.pacing.max_hold
        held.deadline_s = self._clock.monotonic() + max_hold_s
        held.deadline = self._clock.wall() + max_hold_s

    async def wait(self, held: Held, seconds: float) -> bool:
        """Wait for the end of its wait, for so many seconds. Return whether it has ended; the permit is granted then.

        Raises:
            ApiError: The server stops.
            PoliteError: As entering a permit.
        """
        task = held.task
        assert task is not None  # noqa: S101
        held.polls += 1
        try:
            if not task.done():
                # A turn that is free is had in one step of the task.
                await asyncio.sleep(0)
                if not task.done():
                    await asyncio.wait((task,), timeout=seconds)
        finally:
            held.polls -= 1
            held.quiet_at = self._clock.monotonic()
        if not task.done():
            return False
        if task.cancelled():
            # It was given back meanwhile, or the server stops.
            self._require_open()
            self.find(held.client, held.id)
        if held.error is not None:
            self.drop(held)
            raise held.error
        task.result()
        return True

    def find(self, client: str, held_id: str) -> Held:
        """Return a permit of a client. Raises ApiError for one that has ended, or is another's."""
        held = self._held.get(held_id)
        if held is not None and held.client == client:
            return held
        if self._ended.get(held_id) == client:
            raise ApiError(410, "this permit has ended: it was reported, given back, or no more asked for")
        raise ApiError(404, "there is no such permit")

    def drop(self, held: Held, *, sent: bool = False) -> None:
        """End a permit: give its turn back, unless a response was reported, or may have been sent. May be called twice."""
        if self._held.pop(held.id, None) is None:
            return
        self.release(held.client)
        if len(self._ended) >= _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[held.id] = held.client
        if held.task is not None:
            held.task.cancel()
        if held.reported or sent:
            held.permit.leave()
        else:
            held.permit.unsent()
        if self._emptied is not None and not self._held and not self._emptied.done():
            self._emptied.set_result(None)

    def _set_timer(self) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + _SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for held in list(self._held.values()):
            if held.taken:
                if now >= held.deadline_s + _LATE_S:
                    self.drop(held, sent=True)
            elif not held.polls and now >= held.quiet_at + QUIET_S:
                self.drop(held)
        if self._held:
            self._set_timer()

    async def close(self, grace_s: float) -> None:
        """Grant no more, wait for reports of permits that are out, for so many seconds, and end the others. May be called twice."""
        self.closing = True
        for held in [each for each in self._held.values() if not each.taken]:
            self.drop(held)
        if self._held and grace_s > 0:
            self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._emptied,), timeout=grace_s)
        for held in list(self._held.values()):
            self.drop(held, sent=True)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
