"""What all URLs wait for, and which origins wait longest: found by walks in short slices, while the page is read.

A walk visits each origin queue of the frontier, each permit that waits for a turn, and each circuit. After two milliseconds
it lets other tasks of the event loop run, for twenty times as long. So it takes a twentieth of the loop at most, and the wait
for it is bounded, however many origins there are. Answers are made of the last walk that ended.
"""

import asyncio
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappush, heapreplace
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

from polite.frontier.origin_queue import OriginQueue
from polite.frontier.origin_queues import QueueRing
from polite.frontier.parts import Parts
from polite.frontier.queue_states import QueueState
from polite.gate.services import Services
from polite.origin import Origin
from polite.pacers.shared import SharedPacer
from polite.pacing.effective_policy import OpeningHours
from polite.pacing.pacer import Call, LocalPacer
from polite.pacing.turn import ScopeState, Turn
from polite.ports import Timer
from polite.status.recorder import FailureLog

T = TypeVar("T")


class Longest(Generic[T]):
    """Keeps the `limit` items with the greatest length; of equal ones, those that were offered first."""

    __slots__ = ("_heap", "_limit", "_offered", "least")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[float, int, T]] = []
        self._offered = 0
        # What an item must exceed to be kept.
        self.least: float = float("-inf")

    def offer(self, length: float, item: T) -> None:
        """Keep the item if it is among the longest."""
        if length <= self.least:
            return
        self._offered -= 1
        if len(self._heap) < self._limit:
            heappush(self._heap, (length, self._offered, item))
        else:
            heapreplace(self._heap, (length, self._offered, item))
        if len(self._heap) == self._limit:
            self.least = self._heap[0][0]

    def longest_first(self) -> list[tuple[float, T]]:
        """Return lengths and items, the longest first."""
        return [(length, item) for length, _, item in sorted(self._heap, key=lambda e: (-e[0], -e[1]))]


class WaitReason(Enum):
    """Why a URL waits. The value is the text for people."""

    # Hot path: the hash of Enum is a Python call.
    __hash__: Callable[..., int] = object.__hash__

    UNREACHABLE = "robots.txt was out of reach; it is requested again later"
    CIRCUIT = "the circuit is open, after failures in a row"
    BACK_OFF = "a back-off, after 429 or 503"
    HOURS = "the site's hours (Visit-time)"
    DELAY = "the delay between two requests"
    SHARED_SCOPE = "a turn of a scope shared with other origins"
    IN_FLIGHT = "the end of the request in flight"
    HOME = "another process holds the home"
    TURN = "its turn"
    FETCHING_ROBOTS = "robots.txt, which is being fetched"
    FETCH_SLOT = "a slot to fetch robots.txt (max_robots_fetches)"
    WORKER = "an idle worker"
    DECIDING = "a decision by its rules"
    DROPPING = "the end: its tasks are dropped"
    NOT_BEFORE = "its own time (not_before, retry)"
    STORED = "its origin to become active: it is in the store"


# Of each reason, so many origins are remembered. Also the limit on circuits.
_OF_A_REASON = 25
# Of each reason whose waits have no beginning, so many origins are followed.
_FOLLOWED = 200
# Seconds of a slice, and between two slices; seconds between two walks.
_SLICE_S, _REST_S, _EVERY_S = 0.002, 0.04, 1.0
# Turns that are looked at to find those of permits: the oldest.
_MOST_PERMITS = 20_000
# Origins that are visited between two looks at the clock.
_AT_A_TIME = 128

# Hot path: an enum's member costs a descriptor call each time it is named.
_WAITING_TURN, _CHOSEN = QueueState.WAITING_TURN, QueueState.CHOSEN
_DELAY, _BACK_OFF, _CIRCUIT = WaitReason.DELAY, WaitReason.BACK_OFF, WaitReason.CIRCUIT
_IN_FLIGHT, _TURN, _SHARED_SCOPE = WaitReason.IN_FLIGHT, WaitReason.TURN, WaitReason.SHARED_SCOPE
_HOURS, _HOME, _UNREACHABLE = WaitReason.HOURS, WaitReason.HOME, WaitReason.UNREACHABLE

# States in which nothing says how long the queue waits.
_BY_STATE = {
    QueueState.WAITING_SLOT: WaitReason.FETCH_SLOT,
    QueueState.FETCHING_RULES: WaitReason.FETCHING_ROBOTS,
    QueueState.READY: WaitReason.WORKER,
    QueueState.DROPPING: WaitReason.DROPPING,
    QueueState.WITHDRAWN: _HOME,
    QueueState.NEW: WaitReason.DECIDING,
    QueueState.SEEKING: WaitReason.DECIDING,
    QueueState.DECIDING: WaitReason.DECIDING,
}


class Wait(NamedTuple):
    """How long an origin waits, and for what. Times are monotonic seconds.

    Attributes:
        since: When it began, as far as is known.
        until: When it ends at the earliest, if that is known.
    """

    reason: WaitReason
    since: float
    until: float | None


@dataclass(slots=True)
class Total:
    """How many wait for one reason."""

    origins: int = 0
    urls: int = 0
    permits: int = 0


class OpenCircuit(NamedTuple):
    """A circuit that is open. `opened_at` is monotonic seconds."""

    scope: Hashable
    failures: int
    openings: int
    opened_at: float


@dataclass(slots=True)
class Walk:
    """What one walk found.

    Attributes:
        ended_at: Monotonic seconds; None while it goes on.
        took_s: How long the loop was used for it, all slices together.
        longest_slice_s: The longest slice.
        visited: Origin queues and permits.
        totals: How many wait, by reason.
        longest: The origins that wait longest, by reason: queues of the frontier, and turns of permits.
        circuits: Open circuits, those that opened most often since they were closed. `open_circuits` counts all.
    """

    ended_at: float | None = None
    took_s: float = 0.0
    longest_slice_s: float = 0.0
    visited: int = 0
    totals: dict[WaitReason, Total] = field(default_factory=lambda: {each: Total() for each in WaitReason})
    longest: dict[WaitReason, Longest[tuple[OriginQueue | Turn, Wait]]] = field(
        default_factory=lambda: {each: Longest(_OF_A_REASON) for each in WaitReason}
    )
    circuits: Longest[OpenCircuit] = field(default_factory=lambda: Longest(_OF_A_REASON))
    open_circuits: int = 0


class Survey:
    """Walks over what waits while it is wanted.

    Args:
        parts: The frontier's parts, if there is one.

    Attributes:
        last: What the last walk found; None before the first.
    """

    def __init__(self, services: Services, parts: Parts | None) -> None:
        self._services = services
        self._clock = services.clock
        self._turns = services.turns
        self._parts = parts
        # Made now, and kept: to fill a ring with a million queues takes some milliseconds.
        self._ring = None if parts is None else parts.dispatcher.ring()
        self.last: Walk | None = None
        self._wanted_until = -math.inf
        self._steps: Iterator[None] | None = None
        self._walk = Walk()
        self._timer: Timer | None = None
        self._seen: dict[WaitReason, dict[OriginQueue, float]] = {}
        self._failures = FailureLog()
        self._stopped = False

    def want(self, for_s: float) -> None:
        """Walk for so many seconds from now. If the last walk is old, a first slice is done at once."""
        if self._stopped:
            return
        now = self._clock.monotonic()
        self._wanted_until = max(self._wanted_until, now + for_s)
        if self._timer is None:
            self._guarded_step()

    def stop(self) -> None:
        """Walk no more."""
        self._stopped = True
        self._steps = None
        if self._parts is not None and self._ring is not None:
            self._parts.dispatcher.drop_ring(self._ring)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wait_of(self, queue: OriginQueue) -> Wait:
        """Return why a queue waits now."""
        now = self._clock.monotonic()
        reason, since, until = self._wait_of(queue, now)
        return Wait(reason, self._seen.get(reason, {}).get(queue, now) if since is None else since, until)

    # Slices.

    def _step(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        if self._steps is None:
            if now > self._wanted_until:
                self._seen.clear()
                return
            self._walk = Walk()
            self._steps = self._visit(self._walk)
        ended = self._slice(self._steps)
        if ended:
            self._walk.ended_at = self._clock.monotonic()
            self.last, self._steps = self._walk, None
        self._timer = self._clock.call_at(now + (_EVERY_S if ended else _REST_S), self._guarded_step)

    def _guarded_step(self) -> None:
        try:
            self._step()
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - logged; begun again
            self._failures.note()
            self._steps = None
            if not self._stopped:
                self._timer = self._clock.call_at(self._clock.monotonic() + _EVERY_S, self._guarded_step)

    def _slice(self, steps: Iterator[None]) -> bool:
        """Go on for the time of one slice. Whether the walk has ended."""
        began = perf_counter()
        walk = self._walk
        while True:
            ended = next(steps, _END) is _END
            took_s = perf_counter() - began
            if ended or took_s >= _SLICE_S:
                break
        walk.took_s += took_s
        walk.longest_slice_s = max(walk.longest_slice_s, took_s)
        return ended

    # What a walk visits.

    def _visit(self, walk: Walk) -> Iterator[None]:
        if self._parts is not None and self._ring is not None:
            yield from self._visit_queues(walk, self._parts, self._ring)
        yield from self._visit_permits(walk)
        yield from self._visit_circuits(walk)

    def _visit_queues(self, walk: Walk, parts: Parts, ring: QueueRing) -> Iterator[None]:
        seen_now: dict[WaitReason, dict[OriginQueue, float]] = {}
        left = len(ring)
        while left > 0:
            now = self._clock.monotonic()
            # Queues that are removed meanwhile may leave the ring otherwise.
            for _ in range(min(_AT_A_TIME, left, len(ring))):
                queue = ring.visit()
                if queue is not None:
                    self._count_queue(walk, queue, now, seen_now)
            left -= _AT_A_TIME
            yield
        self._seen = seen_now
        _add(walk, WaitReason.NOT_BEFORE, parts.dispatcher.later)
        surveyed = sum(total.urls for total in walk.totals.values())
        _add(walk, WaitReason.STORED, parts.progress.waiting.taken - surveyed)

    def _count_queue(
        self, walk: Walk, queue: OriginQueue, now: float, seen_now: dict[WaitReason, dict[OriginQueue, float]]
    ) -> None:
        # Hot path: called for each origin, so no more than needed.
        reason, since, until = self._wait_of(queue, now)
        if since is None:
            since = self._since(queue, reason, now, seen_now)
        total = walk.totals[reason]
        total.origins += 1
        total.urls += queue.waiting
        walk.visited += 1
        length = (now if until is None or until < now else until) - since
        longest = walk.longest[reason]
        if length > longest.least:
            longest.offer(length, (queue, Wait(reason, since, until)))

    def _since(
        self,
        queue: OriginQueue,
        reason: WaitReason,
        now: float,
        seen_now: dict[WaitReason, dict[OriginQueue, float]],
    ) -> float:
        """Return when a walk first saw the queue waiting so. Of each reason, the queues that were seen first are followed."""
        since = self._seen.get(reason, {}).get(queue, now)
        followed = seen_now.setdefault(reason, {})
        if len(followed) < (_FOLLOWED if since == now else 2 * _FOLLOWED):
            followed[queue] = since
        return since

    def _wait_of(self, queue: OriginQueue, now: float) -> tuple[WaitReason, float | None, float | None]:
        """Return why the queue waits, since when, and until when, as far as is known."""
        state, seeker = queue.state, queue.seeker
        if state is _WAITING_TURN and isinstance(seeker, Call):
            return self._wait_of_turn(seeker.turn, now)
        if state is QueueState.POSTPONED:
            if queue.failures:
                return _UNREACHABLE, self._unreachable_since(queue.origin, now), queue.wakes_at
            return self._by_outlook(queue, now, queue.wakes_at)
        if state is _WAITING_TURN or state is _CHOSEN:
            return self._by_outlook(queue, now, None)
        return _BY_STATE.get(state, _TURN), None, None

    def _unreachable_since(self, origin: Origin, now: float) -> float | None:
        known = self._services.origins.last_known(origin)
        since = None if known is None else known.latest.unreachable_since
        return None if since is None else now - max(0.0, self._clock.wall() - since)

    def _wait_of_turn(self, turn: Turn, now: float) -> tuple[WaitReason, float, float | None]:
        scope = turn.path[turn.stage]
        ready_at = scope.ready_at
        until = ready_at if ready_at > now else None
        since = scope.since if scope.since > -math.inf else now
        return self._reason_of(turn, scope, until), since, until

    def _reason_of(self, turn: Turn, scope: ScopeState, until: float | None) -> WaitReason:
        circuits = self._turns.policies.circuits
        if circuits.rows and circuits.is_open(scope.key):
            return _CIRCUIT
        if scope.key.__class__ is OpeningHours:
            return _HOURS
        if scope is not turn.scope_states[0]:
            return _SHARED_SCOPE
        if until is not None:
            return _BACK_OFF if scope.strikes else _DELAY
        return _IN_FLIGHT if scope.open >= scope.limit else _TURN

    def _by_outlook(
        self, queue: OriginQueue, now: float, wakes_at: float | None
    ) -> tuple[WaitReason, float | None, float | None]:
        """Return why a queue waits whose turn in the pacer is not known, or that has none."""
        turns, target = self._turns, queue.requested or queue.sample
        known = queue.grounds
        # Hot path: nearly always the origin alone decides.
        if wakes_at is None and (known is None or known.pace is None) and isinstance(turns.pacer, LocalPacer):
            scope = turns.pacer.state_of(turns.scopes_of(target)[0])
            if scope is not None and scope.ready_at > now and not turns.policies.circuits.rows:
                return _BACK_OFF if scope.strikes else _DELAY, scope.since, scope.ready_at
        outlook = turns.outlook(target, None if known is None else known.pace)
        until = max(wakes_at or now, outlook.ready_at)
        if outlook.scope is None and turns.shared and not turns.owns(target):
            return _HOME, None, None
        if outlook.scope is None or until <= now:
            return (_TURN, None, None) if wakes_at is None else (_DELAY, None, wakes_at)
        if turns.policies.circuits.is_open(outlook.scope):
            return _CIRCUIT, outlook.since, until
        if isinstance(outlook.scope, OpeningHours):
            return _HOURS, outlook.since, until
        if not isinstance(outlook.scope, Origin):
            return _SHARED_SCOPE, outlook.since, until
        return (
            _BACK_OFF if turns.pacer.strikes(outlook.scope) else _DELAY,
            outlook.since,
            until,
        )

    def _visit_permits(self, walk: Walk) -> Iterator[None]:
        """Permits, and fetches of robots.txt that wait for a turn. A frontier's queues were visited before."""
        pacer = self._turns.pacer
        waiting = self._services.waiting.now(self._services.counters.granted)
        if waiting <= 0:
            return
        counted = 0
        if isinstance(pacer, LocalPacer):
            for number, turn in enumerate(pacer.waiting(_MOST_PERMITS)):
                if number % _AT_A_TIME == 0:
                    yield
                if turn.granted_at is None and not pacer.calls_back(turn) and counted < waiting:
                    counted += 1
                    self._count_permit(walk, turn)
        if isinstance(pacer, SharedPacer):
            taking = min(pacer.takers, waiting - counted)
            walk.totals[_HOME].permits += taking
            counted += taking
        # The others wait for rules.
        walk.totals[WaitReason.FETCHING_ROBOTS].permits += max(0, waiting - counted)

    def _count_permit(self, walk: Walk, turn: Turn) -> None:
        now = self._clock.monotonic()
        reason, since, until = self._wait_of_turn(turn, now)
        walk.visited += 1
        walk.totals[reason].permits += 1
        length = (until or now) - since
        if length > walk.longest[reason].least:
            walk.longest[reason].offer(length, (turn, Wait(reason, since, until)))

    def _visit_circuits(self, walk: Walk) -> Iterator[None]:
        rows = self._turns.policies.circuits.rows
        for number, (scope, row) in enumerate(list(rows.items())):
            if number % _AT_A_TIME == 0:
                yield
            if row.opened_at is not None:
                walk.open_circuits += 1
                circuit = OpenCircuit(scope, row.failures, row.openings, row.opened_at)
                walk.circuits.offer(float(row.openings), circuit)


# What `next` returns when a walk has ended.
_END: Callable[[], None] = lambda: None  # noqa: E731


def _add(walk: Walk, reason: WaitReason, urls: int) -> None:
    walk.totals[reason].urls += max(0, urls)
