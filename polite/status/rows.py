"""Rows for people and scripts about origins that wait, circuits, and permits held: dicts of JSON values."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from polite.errors import InvalidURL, redact_url
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.parts import Parts
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.robots.fetching.result import FetchResult
from polite.status.recorder import clipped
from polite.status.survey import Survey, Wait, Walk
from polite.status.wait_reason import WaitReason

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
