"""Rows for people and scripts about origins that wait, circuits, and permits held: dicts of JSON values."""

import asyncio
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from polite.compose.shared import Membership, memberships
from polite.errors import InvalidURL, PoliteError, StoreFailed, redact_url
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.parts import Parts
from polite.gate.explanation import Explanation, explained
from polite.gate.gate import Gate
from polite.gate.services import Services
from polite.gate.single_flight import start_later
from polite.gate.tally import clipped
from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.ports import Clock
from polite.robots.reason import Reason
from polite.robots.result import FetchResult
from polite.status.recorder import Recorder
from polite.status.survey import Survey, Wait, WaitReason, Walk

# Seconds between two questions to the server, and the limit on one.
_EVERY_S, _SHARED_PATIENCE_S = 5.0, 3.0
# Sessions, held homes and homes in line that are listed of each partition; of all partitions together.
_LISTED, _SHOWN = 20, 50


class SharedCrawl:
    """Asks the server of the gate's crawl, if it has one.

    Attributes:
        last: What the server said last; None before. An error is told as `{"error": ...}`.
    """

    def __init__(self, gate: Gate, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock
        self.last: dict[str, Any] | None = None
        self._asked_at = -math.inf
        self._asking: asyncio.Task[None] | None = None

    def want(self) -> None:
        """Ask again, unless that was done a moment ago. Returns at once."""
        found, now = memberships.get(self._gate), self._clock.monotonic()
        if found is None or self._asking is not None or now - self._asked_at < _EVERY_S:
            return
        self._asked_at = now
        self._asking = start_later(lambda: self._ask(found))
        self._asking.add_done_callback(self._asked)

    async def stop(self) -> None:
        """Ask no more."""
        self._asked_at = math.inf
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def _asked(self, task: "asyncio.Task[None]") -> None:
        self._asking = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self.last = {"error": f"{type(error).__name__}: {error}"}

    async def _ask(self, found: Membership) -> None:
        # Imported here: a crawl on one machine needs no package for it.
        from polite.stores.redis.inspector import SharedInspector
        from polite.stores.redis.patience import Patience

        inspector = SharedInspector(
            found.store, Patience(found.store.link.name, self._clock, _SHARED_PATIENCE_S)
        )
        try:
            partitions = await inspector.partitions(found.crawl, _LISTED)
        except StoreFailed as error:
            self.last = {"crawl": found.crawl, "store": found.store.link.name, "error": str(error)}
            return
        sessions: dict[str, dict[str, Any]] = {}
        for partition in partitions:
            for name, ends_s, homes, closed in partition.sessions:
                session = sessions.setdefault(
                    name, {"name": name, "ends_s": ends_s, "homes": 0, "closed": closed}
                )
                session["homes"] += homes
                session["ends_s"] = min(session["ends_s"], ends_s)
        self.last = {
            "crawl": found.crawl,
            "store": found.store.link.name,
            "lease_s": found.lease_s,
            "sessions": sorted(sessions.values(), key=lambda each: each["name"])[:_SHOWN],
            "held": [
                {"home": home, "session": name, "delayed_s": rest_s}
                for partition in partitions
                for home, name, rest_s in partition.held
            ][:_SHOWN],
            "line": [
                {"home": home, "in_s": in_s} for partition in partitions for home, in_s in partition.line
            ][:_SHOWN],
            "counts": {
                name: sum(partition.counts[index] for partition in partitions)
                for index, name in ((1, "held"), (2, "line"), (3, "later"))
            },
            "quiet_s": max((partition.quiet_s for partition in partitions), default=0.0),
        }


Row = dict[str, Any]

# Permits that are listed, those that have been held longest.
_OLDEST_HELD = 20


class Rows:
    """Makes rows of what a walk found. A row costs some microseconds, and an answer has a limited number of rows."""

    def __init__(self, services: Services, parts: Parts | None, survey: Survey) -> None:
        self._services = services
        self._parts = parts
        self._survey = survey

    def reasons(self, walk: Walk) -> list[Row]:
        """Return how many wait for each reason, the most URLs first."""
        rows = [
            {
                "reason": reason.name.lower(),
                "text": reason.value,
                "origins": total.origins,
                "urls": total.urls,
                "permits": total.permits,
            }
            for reason, total in walk.totals.items()
            if total.urls or total.permits
        ]
        return sorted(rows, key=lambda row: -(row["urls"] + row["permits"]))

    def longest(
        self, walk: Walk, *, limit: int, reason: str | None = None, containing: str = ""
    ) -> list[Row]:
        """Return the origins that wait longest, the longest first.

        Args:
            reason: Only those that wait for this reason.
            containing: Only those whose origin has this in it. An origin or a URL is looked up, however long it waits.
        """
        chosen = [each for each in WaitReason if reason is None or each.name.lower() == reason]
        found = sorted(
            (entry for each in chosen for entry in walk.longest[each].longest_first()),
            key=lambda entry: -entry[0],
        )
        rows: list[Row] = []
        named: set[str] = set()
        for row in self._made(containing, reason, [entry for _, entry in found]):
            if len(rows) >= limit:
                break
            if row["origin"] not in named:
                named.add(row["origin"])
                rows.append(row)
        return rows

    def _made(
        self, containing: str, reason: str | None, found: list[tuple[OriginQueue | Turn, Wait]]
    ) -> Iterator[Row]:
        looked_up = self._looked_up(containing)
        if looked_up is not None:
            queue, wait = looked_up
            if reason is None or wait.reason.name.lower() == reason:
                yield self._row(queue, wait)
        for waiting, wait in found:
            if containing in _name_of(waiting):
                yield self._row(waiting, wait)

    def _looked_up(self, text: str) -> tuple[OriginQueue, Wait] | None:
        if self._parts is None or "://" not in text:
            return None
        try:
            queue = self._parts.dispatcher.queue_of(Origin.of(text))
        except InvalidURL:
            return None
        return None if queue is None else (queue, self._survey.wait_of(queue))

    def of_queue(self, queue: OriginQueue) -> Row:
        """Return the row of an origin's queue as it is now."""
        return self._row(queue, self._survey.wait_of(queue))

    def _row(self, waiting: OriginQueue | Turn, wait: Wait) -> Row:
        now = self._services.clock.monotonic()
        return {
            "origin": clipped(_name_of(waiting)),
            "reason": wait.reason.name.lower(),
            "text": wait.reason.value,
            "since_s": max(0.0, now - wait.since),
            "until_s": None if wait.until is None else wait.until - now,
            **(self._of_queue(waiting, wait) if isinstance(waiting, OriginQueue) else self._of_turn(waiting)),
        }

    def _of_turn(self, turn: Turn) -> Row:
        scope = turn.path[turn.stage]
        return {
            "urls": 0,
            "permits": scope.waiting,
            "url": None,
            "scope": clipped(str(scope.key)),
            "because": clipped(scope.because),
            "ahead": max(0, scope.waiting - 1),
            "in_flight": scope.open,
            "rule": None,
            "failures": 0,
        }

    def _of_queue(self, queue: OriginQueue, wait: Wait) -> Row:
        turns, target = self._services.turns, queue.requested or queue.sample
        known = self._services.origins.last_known(queue.origin)
        outlook = turns.outlook(target, None if known is None else known.pace)
        because = outlook.because
        if wait.reason is WaitReason.UNREACHABLE and known is not None:
            # Its delay may be over long before the file is requested again.
            because = _why_unreachable(known.latest.access)
        return {
            "urls": queue.waiting,
            "permits": 0,
            "url": redact_url(target.url),
            "scope": None if outlook.scope is None else clipped(str(outlook.scope)),
            "because": clipped(queue.drop_reason or because),
            "ahead": max(0, outlook.waiting - 1),
            "in_flight": outlook.open,
            "rule": self._rule(target),
            "failures": queue.failures,
        }

    def _rule(self, target: Target) -> Row | None:
        """Return the rule of robots.txt that decides about a URL, if that is quick to find out."""
        known = self._services.origins.last_known(target.origin)
        if known is None or len(target.path) > known.rules.quick_length:
            return None
        decision = known.rules.decide(target.path)
        rule = decision.rule
        return {
            "allowed": decision.allowed,
            "text": clipped(str(decision)),
            "line": None if rule is None else rule.line,
        }

    def circuits(self, walk: Walk) -> list[Row]:
        """Return the open circuits that opened most often."""
        now, pacer = self._services.clock.monotonic(), self._services.turns.pacer
        rows = []
        for _, circuit in walk.circuits.longest_first():
            outlook = pacer.outlook((circuit.scope,))
            rows.append(
                {
                    "scope": clipped(str(circuit.scope)),
                    "failures": circuit.failures,
                    "openings": circuit.openings,
                    "since_s": max(0.0, now - circuit.opened_at),
                    "until_s": max(0.0, outlook.ready_at - now),
                    "because": clipped(outlook.because),
                }
            )
        return rows

    def held(self) -> list[Row]:
        """Return the permits that have been held longest."""
        now = self._services.clock.monotonic()
        return [
            {
                "url": redact_url(holder.url),
                "held_s": 0.0 if turn.granted_at is None else max(0.0, now - turn.granted_at),
            }
            for turn, holder in islice(self._services.held_turns.items(), _OLDEST_HELD)
        ]


def _why_unreachable(access: FetchResult) -> str:
    status = "" if access.status is None else f" (status {access.status})"
    return f"robots.txt: {access.reason.value}{status}"


def _name_of(waiting: OriginQueue | Turn) -> str:
    return waiting.origin.text if isinstance(waiting, OriginQueue) else str(waiting.narrowest)


# Events of the URL and its origin.
_EVENTS = 10
# How long a store may take to say whether it knows the URL (seconds).
_PATIENCE_S = 2.0


class UrlReports:
    """Reports about URLs. It has no effect on the crawl: no robots.txt is fetched, and no turn taken."""

    def __init__(self, services: Services, parts: Parts | None, rows: Rows, recorder: Recorder) -> None:
        self._services = services
        self._parts = parts
        self._rows = rows
        self._recorder = recorder

    async def of(self, url: str) -> dict[str, Any]:
        """Return the report. Raises InvalidURL."""
        target = Target.of(url)
        known = self._services.origins.last_known(target.origin)
        explanation = None if known is None else await explained(self._services, target, known)
        report: dict[str, Any] = {
            "url": redact_url(target.url),
            "origin": target.origin.text,
            "allowed": None if explanation is None else explanation.decision.allowed,
            "explanation": None if explanation is None else str(explanation),
            "queue": self._queue(target),
            "task": await self._task(target),
            "events": [
                each._asdict() for each in self._recorder.noted_of(target.url, target.origin.text)[:_EVENTS]
            ],
        }
        report["verdict"] = _verdict(report["task"], report["queue"], explanation)
        return report

    def _queue(self, target: Target) -> dict[str, Any] | None:
        queue = None if self._parts is None else self._parts.dispatcher.queue_of(target.origin)
        return None if queue is None else self._rows.of_queue(queue)

    async def _task(self, target: Target) -> str:
        """Return how far the URL is: "in flight", "put", "unknown", or "no frontier"."""
        parts = self._parts
        if any(holder.url == target.url for holder in self._services.held_turns.values()):
            return "in flight"
        if parts is None:
            return "no frontier"
        try:
            return await self._seen(parts, target)
        except PoliteError:
            return "unknown"

    async def _seen(self, parts: Parts, target: Target) -> str:
        seen = parts.store.seen(target, None, again=False)
        if not isinstance(seen, bool):
            # Not cancelled if it takes long: the store is to answer it still.
            asked = asyncio.ensure_future(seen)
            done, _ = await asyncio.wait([asked], timeout=_PATIENCE_S)
            if not done:
                return "unknown"
            seen = asked.result()
        return "put" if seen else "never put"


def _verdict(task: str, queue: dict[str, Any] | None, explanation: Explanation | None) -> str:
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
