"""Monitor: looks at a gate and its frontier once a second, and makes what the page and the API show."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from polite.errors import GateClosed
from polite.frontier.frontier import Frontier
from polite.frontier.parts import Parts
from polite.gate.gate import Gate
from polite.gate.tally import clipped
from polite.ports import Timer
from polite.status.recorder import Facts, FailureLog, Recorder, Second, Timeline, notices
from polite.status.rows import Rows, SharedCrawl, UrlReports
from polite.status.survey import Survey, WaitReason, Walk
from polite.version import __version__

State = dict[str, Any]

_TICK_S = 1.0
# For so long after an answer (seconds) what it needs is kept up to date.
_WANTED_S = 15.0
# Rows of an answer.
LONGEST, EVENTS = 50, 40
# Seconds of which a rate is made, and of which the worst lateness is remembered.
_RATE_S, _MINUTE_S = 10, 60


class Monitor:
    """Owns what the status page knows. After `stop` it stands still.

    Attributes:
        told: Called once a second, with the seconds that are new.
        urls: Says why a URL waits, or does not come.
    """

    def __init__(self, gate: Gate, frontier: Frontier | None) -> None:
        self._gate = gate
        self._services = gate.services
        self._clock = gate.services.clock
        self._frontier = frontier
        self.told: Callable[[list[Second]], None] = lambda _: None
        parts: Parts | None = None if frontier is None else frontier.parts
        self._parts = parts
        self._recorder = Recorder(self._clock.wall)
        self._survey = Survey(self._services, parts)
        self._rows = Rows(self._services, parts, self._survey)
        self._shared = SharedCrawl(gate, self._clock)
        self.urls: UrlReports = UrlReports(self._services, parts, self._rows, self._recorder)
        now = self._clock.monotonic()
        self._began, self._granted_at = now, now
        self._timeline = Timeline(now)
        self._counted = gate.counters
        self._late: deque[float] = deque(maxlen=_MINUTE_S)
        self._response_s: float | None = None
        self._timer: Timer | None = None
        self._next_at = now + _TICK_S
        self._failures = FailureLog()
        self._end_listening = gate.listen(self._recorder)
        self._set_timer()

    async def stop(self) -> None:
        """Listen and look no more. May be called twice."""
        self._end_listening()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._survey.stop()
        await self._shared.stop()

    # Once a second.

    def _set_timer(self) -> None:
        self._timer = self._clock.call_at(self._next_at, self._tick)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        self._late.append(max(0.0, now - self._next_at))
        self._next_at += _TICK_S
        if self._next_at <= now:
            self._next_at = now + _TICK_S
        self._set_timer()
        try:
            self.told(self._look(now))
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - logged; the crawl goes on
            self._failures.note()

    def _look(self, now: float) -> list[Second]:
        counters, before = self._gate.counters, self._counted
        self._counted = counters
        if counters.granted > before.granted:
            self._granted_at = now
        self._response_s = self._recorder.take_response_time()
        second = self._recorder.take_second(
            robots=max(0, counters.robots - before.robots),
            granted=counters.granted - before.granted,
            in_flight=self._gate.inside,
            waiting=self._waiting,
        )
        return self._timeline.add(now, second)

    # What is shown.

    def want(self) -> None:
        """Keep what `state` shows up to date for some seconds: a browser or a script reads it."""
        self._survey.want(_WANTED_S)
        self._shared.want()

    def watched(self) -> State:
        """Return the state, and keep it up to date for the next answer."""
        self.want()
        return self.state()

    def whole(self) -> State:
        """Return the state and the timeline: all that a browser needs to begin with."""
        return {**self.watched(), "timeline": list(self._timeline.seconds)}

    def state(self) -> State:
        """Return all but the timeline. Its size and its cost are bounded, whatever waits."""
        walk = self._survey.last or Walk()
        requests, robots = self._timeline.rate(_RATE_S)
        recorder = self._recorder
        return {
            "now": self._clock.wall(),
            "version": __version__,
            "agent": clipped(self._gate.agent.header),
            "uptime_s": self._clock.monotonic() - self._began,
            "notices": [notice._asdict() for notice in notices(self._facts(walk))],
            "rates": {"requests": requests, "robots": robots, "response_s": self._response_s},
            "gate": {
                **asdict(self._gate.counters),
                "waiting": self._gate.waiting,
                "inside": self._gate.inside,
                "memory": self._gate.memory_used,
            },
            "frontier": self._of_frontier(),
            "responses": {
                str(status or "none"): count for status, count in sorted(recorder.responses.items())
            },
            "robots": [
                {"outcome": outcome, "reason": reason, "count": count}
                for (outcome, reason), count in recorder.tally.robots_fetches.most_common()
            ],
            "refused": dict(recorder.tally.refused.most_common()),
            "dropped": dict(recorder.tally.dropped.most_common()),
            "waiting": self._rows.reasons(walk),
            "origins": self._rows.longest(walk, limit=LONGEST),
            "open_circuits": walk.open_circuits,
            "circuits": self._rows.circuits(walk),
            "held": self._rows.held(),
            "events": [each._asdict() for each in recorder.noted(EVENTS, without="Refused")],
            "survey": self._of_walk(walk),
            "loop_late_s": max(self._late, default=0.0),
            "shared": self._shared.last,
        }

    def timeline(self) -> State:
        """Return the last ten minutes."""
        return {"fields": Second._fields, "seconds": list(self._timeline.seconds)}

    def origins(self, *, reason: str | None, containing: str, limit: int) -> State:
        """Return the origins that wait longest: those of a reason, and those whose name contains a text."""
        walk = self._survey.last or Walk()
        return {
            "origins": self._rows.longest(walk, limit=limit, reason=reason, containing=containing),
            "survey": self._of_walk(walk),
        }

    def events(self, limit: int) -> list[State]:
        """Return the newest events that an operator may need, the newest first."""
        return [each._asdict() for each in self._recorder.noted(limit)]

    @property
    def shared(self) -> State | None:
        """What the server of a shared crawl said last."""
        return self._shared.last

    def _of_walk(self, walk: Walk) -> State:
        age_s = None if walk.ended_at is None else self._clock.monotonic() - walk.ended_at
        return {
            "age_s": age_s,
            "took_s": walk.took_s,
            "longest_slice_s": walk.longest_slice_s,
            "visited": walk.visited,
        }

    def _of_frontier(self) -> State | None:
        frontier = self._frontier
        if frontier is None:
            return None
        progress, workers = frontier.parts.progress, frontier.parts.workers
        return {
            "waiting": frontier.waiting,
            "in_flight": frontier.in_flight,
            "done": frontier.done,
            "refused": frontier.refused,
            "dropped": frontier.dropped,
            "damaged": frontier.damaged,
            "idle_workers": workers.idle,
            "paused": workers.paused,
            "closed": progress.closed,
            "over": progress.over,
        }

    @property
    def _waiting(self) -> int:
        return self._gate.waiting + (0 if self._frontier is None else self._frontier.waiting)

    def _facts(self, walk: Walk) -> Facts:
        now, parts = self._clock.monotonic(), self._parts
        failure = None if parts is None else parts.progress.failure
        if isinstance(failure, GateClosed):
            failure = None  # The gate says so itself.
        away = self._recorder.store_away
        return Facts(
            closed=self._services.shutdown.begun,
            failure=None if failure is None else clipped(f"{type(failure).__name__}: {failure}"),
            ended=parts is not None and parts.progress.over,
            paused=parts is not None and parts.workers.paused,
            store_away_s=None if away is None else max(0.0, self._clock.wall() - away[0]),
            waiting=self._waiting,
            silent_s=now - self._granted_at,
            minute=self._timeline.last(_MINUTE_S),
            open_circuits=walk.open_circuits,
            unreachable=walk.totals[WaitReason.UNREACHABLE].origins,
            wait_for_worker=0 if parts is None else walk.totals[WaitReason.WORKER].origins,
            late_s=max(self._late, default=0.0),
        )
