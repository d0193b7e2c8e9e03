"""What all URLs wait for, and which origins wait longest: found in one look of a few milliseconds.

A look visits the origin queues of the frontier, the oldest first, permits that wait for a turn, and circuits. It ends after three
milliseconds: what is left then is counted as `unseen`. So an answer costs the same with ten origins and with a million.
"""

import asyncio
import math
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from heapq import nlargest
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from polite.errors import InvalidURL, PoliteError, redact_url
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.origin_queue import OriginQueue, QueueState
from polite.gate.explanation import Explanation, explained
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.pacers.shared import SharedPacer
from polite.pacing.effective_policy import OpeningHours
from polite.pacing.pacer import Call
from polite.pacing.turn import Outlook, Turn
from polite.robots.reason import Reason
from polite.status.recorder import clipped

Row = dict[str, Any]

# Of each reason, so many origins are remembered. Also the limit on circuits.
_OF_A_REASON = 25
# How long a look may take, and how long it is as good as a new one (seconds).
_LOOK_S, _FRESH_S = 0.003, 0.5
# What was seen in a look before counts for the next one if that comes so soon (seconds).
_REMEMBERED_S = 15.0
# Origins that are visited between two looks at the clock.
_AT_A_TIME = 64
# Turns that are looked at to find those of permits, the oldest first; and circuits.
_MOST_PERMITS, _MOST_CIRCUITS = 2_000, 5_000
# Permits that are listed, those that have been held longest.
_OLDEST_HELD = 20
# How long a store may take to say whether it knows a URL (seconds).
_PATIENCE_S = 2.0


class WaitReason(Enum):
    """Why a URL waits. The value is the text for people."""

    UNREACHABLE = "robots.txt was out of reach; it is requested again later"
    ERROR = "the next try, after an error that says nothing about robots.txt"
    CIRCUIT = "the circuit is open, after failures in a row"
    BACK_OFF = "a back-off, after a refusal such as 429 or 503"
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
    UNSEEN = "something that was not looked at: the oldest origins come first"


# States in which nothing says how long the queue waits.
_BY_STATE = {
    QueueState.WAITING_SLOT: WaitReason.FETCH_SLOT,
    QueueState.FETCHING_RULES: WaitReason.FETCHING_ROBOTS,
    QueueState.READY: WaitReason.WORKER,
    QueueState.DROPPING: WaitReason.DROPPING,
    QueueState.WITHDRAWN: WaitReason.HOME,
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
    """How many wait for one reason, and those that wait longest: their length, queue or turn, and wait."""

    origins: int = 0
    urls: int = 0
    permits: int = 0
    longest: list[tuple[float, OriginQueue | Turn, Wait]] = field(default_factory=list)


@dataclass(slots=True)
class Look:
    """What one look found.

    Attributes:
        at: Monotonic seconds.
        took_s: How long the loop was used for it.
        visited: Origin queues and permits that were visited.
        left_out: Origin queues that were not.
        circuits: Rows of the open circuits that opened most often since they were closed. `open_circuits` counts all.
    """

    at: float
    took_s: float = 0.0
    visited: int = 0
    left_out: int = 0
    totals: dict[WaitReason, Total] = field(default_factory=lambda: {each: Total() for each in WaitReason})
    circuits: list[Row] = field(default_factory=list)
    open_circuits: int = 0


# Why a queue waits, since when, and until when, as far as is known.
_Reason: TypeAlias = tuple[WaitReason, float | None, float | None]


class Survey:
    """Looks at what waits, when it is asked for.

    Args:
        dispatcher: That of the frontier, if there is one.
    """

    def __init__(self, services: Services, dispatcher: Dispatcher | None) -> None:
        self._services = services
        self._clock = services.clock
        self._turns = services.turns
        self._dispatcher = dispatcher
        self._last = Look(-math.inf)
        # Of the queues of the last look: what they waited for, and since when.
        self._seen: dict[OriginQueue, tuple[WaitReason, float]] = {}

    def look(self) -> Look:
        """Return what waits now, or did a moment ago."""
        now, began = self._clock.monotonic(), perf_counter()
        if now - self._last.at < _FRESH_S:
            return self._last
        if now - self._last.at > _REMEMBERED_S:
            self._seen.clear()
        look = Look(now)
        if self._dispatcher is not None:
            self._visit_queues(look, self._dispatcher, began + _LOOK_S)
        self._visit_permits(look)
        self._visit_circuits(look)
        for total in look.totals.values():
            total.longest = nlargest(_OF_A_REASON, total.longest, key=lambda entry: entry[0])
        look.took_s = perf_counter() - began
        self._last = look
        return look

    def _visit_queues(self, look: Look, dispatcher: Dispatcher, end: float) -> None:
        seen: dict[OriginQueue, tuple[WaitReason, float]] = {}
        queues, now = dispatcher.queues.values(), look.at
        look.left_out = len(queues)
        for queue in queues:
            wait = self._wait_of(queue, now)
            seen[queue] = wait.reason, wait.since
            total = look.totals[wait.reason]
            total.origins += 1
            total.urls += queue.waiting
            total.longest.append((max(now, wait.until or now) - wait.since, queue, wait))
            look.visited += 1
            look.left_out -= 1
            if look.visited % _AT_A_TIME == 0 and perf_counter() >= end:
                break
        self._seen = seen
        look.totals[WaitReason.NOT_BEFORE].urls += dispatcher.later
        surveyed = sum(total.urls for total in look.totals.values())
        rest = WaitReason.UNSEEN if look.left_out else WaitReason.STORED
        look.totals[rest].urls = max(0, dispatcher.progress.waiting.taken - surveyed)
        look.totals[rest].origins = look.left_out

    def _visit_permits(self, look: Look) -> None:
        """Permits, and fetches of robots.txt that wait for a turn. A frontier's queues were visited before."""
        pacer = self._turns.pacer
        left, turns = self._services.waiting.now(self._services.counters.granted), 0
        if left > 0:
            for turn in pacer.waiting(_MOST_PERMITS):
                turns += 1
                if turn.granted_at is None and not pacer.calls_back(turn) and left > 0:
                    left -= 1
                    wait = self._wait_of_turn(turn, look.at)
                    total = look.totals[wait.reason]
                    total.permits += 1
                    total.longest.append(((wait.until or look.at) - wait.since, turn, wait))
                    look.visited += 1
        if isinstance(pacer, SharedPacer):
            taking = min(pacer.takers, max(0, left))
            look.totals[WaitReason.HOME].permits += taking
            left -= taking
        # The others wait for rules.
        rest = WaitReason.UNSEEN if turns == _MOST_PERMITS else WaitReason.FETCHING_ROBOTS
        look.totals[rest].permits += max(0, left)

    def _visit_circuits(self, look: Look) -> None:
        rows = islice(self._turns.policies.circuits.rows.items(), _MOST_CIRCUITS)
        found = [(scope, row, row.opened_at) for scope, row in rows if row.opened_at is not None]
        look.open_circuits = len(found)
        for scope, row, opened_at in nlargest(_OF_A_REASON, found, key=lambda each: each[1].openings):
            outlook = self._turns.pacer.outlook((scope,))
            since_s, until_s = max(0.0, look.at - opened_at), max(0.0, outlook.ready_at - look.at)
            counts = {
                "failures": row.failures,
                "openings": row.openings,
                "since_s": since_s,
                "until_s": until_s,
            }
            scope_text, because = clipped(str(scope)), clipped(outlook.because or "")
            look.circuits.append({"scope": scope_text, **counts, "because": because})

    # Why one queue or turn waits.

    def _wait_of(self, queue: OriginQueue, now: float) -> Wait:
        reason, since, until = self._reason_of_queue(queue, now)
        if since is None:
            # Nothing says when it began, but the look before.
            before, seen_at = self._seen.get(queue, (None, now))
            since = seen_at if before is reason else now
        return Wait(reason, since, until)

    def _reason_of_queue(self, queue: OriginQueue, now: float) -> _Reason:
        """Return why the queue waits, since when, and until when, as far as is known."""
        state, wait = queue.state, queue.wait
        if state is QueueState.WAITING_TURN and isinstance(wait, Call):
            return self._wait_of_turn(wait.turn, now)
        if state is QueueState.POSTPONED:
            if queue.error is not None:
                return WaitReason.ERROR, None, queue.wakes_at
            if not queue.failures:
                return self._by_outlook(queue, now, queue.wakes_at)
            known = self._services.origins.known.peek(queue.origin)
            wall = None if known is None else known.latest.unreachable_since
            since = None if wall is None else now - max(0.0, self._clock.wall() - wall)
            return WaitReason.UNREACHABLE, since, queue.wakes_at
        if state is QueueState.WAITING_TURN:
            return self._by_outlook(queue, now, None)
        return _BY_STATE.get(state, WaitReason.TURN), None, None

    def _wait_of_turn(self, turn: Turn, now: float) -> Wait:
        scope = turn.path[turn.stage]
        until = scope.ready_at if scope.ready_at > now else None
        reason = self._reason_of_scope(scope.key, is_narrowest=scope is turn.scope_states[0])
        if until is None and reason in (WaitReason.BACK_OFF, WaitReason.DELAY):
            reason = WaitReason.IN_FLIGHT if scope.open >= scope.limit else WaitReason.TURN
        return Wait(reason, scope.since if scope.since > -math.inf else now, until)

    def _reason_of_scope(self, scope: Hashable, *, is_narrowest: bool) -> WaitReason:
        if self._turns.policies.circuits.is_open(scope):
            return WaitReason.CIRCUIT
        if isinstance(scope, OpeningHours):
            return WaitReason.HOURS
        if not is_narrowest:
            return WaitReason.SHARED_SCOPE
        return WaitReason.BACK_OFF if self._turns.policies.memories.strikes(scope) else WaitReason.DELAY

    def _by_outlook(self, queue: OriginQueue, now: float, wakes_at: float | None) -> _Reason:
        """Return why a queue waits whose turn in the pacer is not known, or that has none."""
        turns, outlook = self._turns, self._outlook(queue)
        until, scope = max(wakes_at or now, outlook.ready_at), outlook.scope
        if scope is None and turns.shared and not turns.owns(queue.requested):
            return WaitReason.HOME, None, None
        if scope is None or until <= now:
            return (WaitReason.TURN if wakes_at is None else WaitReason.DELAY), None, wakes_at
        reason = self._reason_of_scope(scope, is_narrowest=isinstance(scope, Origin))
        return reason, outlook.since, until

    def _outlook(self, queue: OriginQueue) -> Outlook:
        """Return when the queue's turn could come; at once if its scopes cannot be worked out: a user's function may raise."""
        with suppress(Exception):
            return self._turns.outlook(queue.requested, queue.pace)
        return Outlook(self._clock.monotonic(), None, 0, 0, None)

    # Rows for people and scripts: dicts of JSON values. A row costs some microseconds.

    def reasons(self) -> list[Row]:
        """Return how many wait for each reason, the most URLs first."""
        rows: list[Row] = [
            {**_shown(reason), "origins": total.origins, "urls": total.urls, "permits": total.permits}
            for reason, total in self.look().totals.items()
            if total.urls or total.permits
        ]
        return sorted(rows, key=lambda row: -(row["urls"] + row["permits"]))

    def longest(self, *, limit: int, reason: str | None = None, containing: str = "") -> list[Row]:
        """Return the origins that wait longest, the longest first.

        Args:
            reason: Only those that wait for this reason.
            containing: Only those whose origin has this in it. An origin or a URL is looked up, however long it waits.
        """
        totals = self.look().totals
        chosen = [each for each in WaitReason if reason is None or each.name.lower() == reason]
        entries = (entry for each in chosen for entry in totals[each].longest)
        found = sorted(entries, key=lambda entry: -entry[0])
        waiting = [(each, wait) for _, each, wait in found if containing in _name_of(each)]
        looked_up = self._looked_up(containing) if "://" in containing else None
        if looked_up is not None and looked_up[1].reason in chosen:
            waiting.insert(0, looked_up)
        rows: dict[str, Row] = {}
        for each, wait in waiting:
            if len(rows) >= limit:
                break
            name = _name_of(each)
            if name not in rows:
                rows[name] = self._row(each, wait)
        return list(rows.values())

    def _looked_up(self, url: str) -> tuple[OriginQueue, Wait] | None:
        try:
            origin = Origin.of(url)
        except InvalidURL:
            return None
        queue = None if self._dispatcher is None else self._dispatcher.queues.get(origin.text)
        return None if queue is None else (queue, self._wait_of(queue, self._clock.monotonic()))

    def _row(self, waiting: OriginQueue | Turn, wait: Wait) -> Row:
        now = self._services.clock.monotonic()
        return {
            "origin": clipped(_name_of(waiting)),
            **_shown(wait.reason),
            "since_s": max(0.0, now - wait.since),
            "until_s": None if wait.until is None else wait.until - now,
            "urls": 0,
            "permits": 0,
            "url": None,
            "rule": None,
            "failures": 0,
            **(self._of_queue(waiting, wait) if isinstance(waiting, OriginQueue) else self._of_turn(waiting)),
        }

    def _of_turn(self, turn: Turn) -> Row:
        scope = turn.path[turn.stage]
        return {
            "permits": scope.waiting,
            "scope": clipped(str(scope.key)),
            "because": scope.because and clipped(scope.because),
            "ahead": max(0, scope.waiting - 1),
            "in_flight": scope.open,
        }

    def _of_queue(self, queue: OriginQueue, wait: Wait) -> Row:
        target, outlook = queue.requested, self._outlook(queue)
        known = self._services.origins.known.peek(queue.origin)
        because = str(queue.drop_reason or "") or queue.error or outlook.because
        if wait.reason is WaitReason.UNREACHABLE and known is not None:
            # Its delay may be over long before the file is requested again.
            access = known.latest.access
            status = "" if access.status is None else f" (status {access.status})"
            because = f"robots.txt: {access.reason.value}{status}"
        rule: Row | None = None
        # Only if it is quick to find out.
        if known is not None and len(target.path) <= known.rules.quick_length:
            found = known.rules.decide(target.path)
            line = None if found.rule is None else found.rule.line
            rule = {"allowed": found.allowed, "text": clipped(str(found)), "line": line}
        return {
            "urls": queue.waiting,
            "url": redact_url(target.url),
            "scope": None if outlook.scope is None else clipped(str(outlook.scope)),
            "because": because and clipped(because),
            "ahead": max(0, outlook.waiting - 1),
            "in_flight": outlook.open,
            "rule": rule,
            "failures": queue.failures,
        }

    def held(self) -> list[Row]:
        """Return the permits that have been held longest."""
        now = self._clock.monotonic()
        return [
            {
                "url": redact_url(holder.url),
                "held_s": 0.0 if turn.granted_at is None else max(0.0, now - turn.granted_at),
            }
            for turn, holder in islice(self._services.held_turns.items(), _OLDEST_HELD)
        ]

    # One URL.

    async def explain(self, target: Target) -> Row:
        """Return why a URL waits, or does not come. No robots.txt is fetched for it, and no turn taken."""
        known = self._services.origins.known.peek(target.origin)
        explanation = None if known is None else await explained(self._services, target, known)
        looked_up = self._looked_up(target.url)
        queue = None if looked_up is None else self._row(*looked_up)
        task = await self._task(target)
        return {
            "url": redact_url(target.url),
            "origin": target.origin.text,
            "allowed": None if explanation is None else explanation.decision.allowed,
            "explanation": None if explanation is None else str(explanation),
            "queue": queue,
            "task": task,
            "verdict": _verdict(task, queue, explanation),
        }

    async def _task(self, target: Target) -> str:
        """Return how far the URL is: "in flight", "put", "never put", "unknown", or "no frontier"."""
        if any(holder.url == target.url for holder in self._services.held_turns.values()):
            return "in flight"
        if self._dispatcher is None:
            return "no frontier"
        try:
            seen = self._dispatcher.store.seen(target, None, again=False)
            if not isinstance(seen, bool):
                # Not cancelled if it takes long: the store is to answer it still.
                asked = asyncio.ensure_future(seen)
                done, _ = await asyncio.wait([asked], timeout=_PATIENCE_S)
                if not done:
                    return "unknown"
                seen = asked.result()
        except PoliteError:
            return "unknown"
        return "put" if seen else "never put"


def _shown(reason: WaitReason) -> Row:
    return {"reason": reason.name.lower(), "text": reason.value}


def _name_of(waiting: OriginQueue | Turn) -> str:
    return waiting.origin.text if isinstance(waiting, OriginQueue) else str(waiting.narrowest)


def _verdict(task: str, queue: Row | None, explanation: Explanation | None) -> str:
    """Return the answer in one sentence."""
    decision = None if explanation is None else explanation.decision
    if task == "in flight":
        return "It is in flight: a worker has its permit."
    if decision is not None and decision.reason is not Reason.UNREACHABLE and not decision.allowed:
        return f"It does not come: it is {decision}."
    if task == "never put":
        return "It does not come: it was never put into this frontier, or that was forgotten."
    if queue is not None:
        return f"Unless it has ended, it waits with its origin: for {queue['text']}."
    if decision is not None and not decision.allowed:
        return "It may not be fetched for now: robots.txt of its origin is out of reach."
    if task == "put":
        return "It has ended, or waits in the store: nothing of its origin waits in memory."
    if decision is None:
        return "Nothing is known of its origin: its robots.txt was not fetched in this run."
    return "It may be fetched when its turn comes."
