"""Monitor: looks at a gate and its frontier once a second, and makes what the page and the API show."""

import asyncio
import math
from collections import deque
from dataclasses import asdict
from typing import Any, NamedTuple

from polite.compose.shared import Membership, memberships
from polite.errors import GateClosed, StoreFailed
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.frontier import Frontier
from polite.gate.gate import Gate
from polite.gate.single_flight import start_later
from polite.origin import Target
from polite.ports import Clock, Timer
from polite.status.orders import act, read, standing
from polite.status.recorder import Recorder, Second, Timeline, clipped, counted
from polite.status.survey import Survey, WaitReason
from polite.version import __version__

State = dict[str, Any]

_TICK_S = 1.0
# Rows of an answer; events about one URL.
LONGEST, EVENTS, _EVENTS_OF_A_URL = 50, 40, 10
# Seconds of which a rate is made, and of which the worst lateness is remembered.
_RATE_S, _MINUTE_S = 10, 60


# Nothing was granted for so long (seconds), although URLs wait: that is said.
_SILENT_S = 60.0
# A share of failed or slowed responses in the last minute that is said, if there were so many responses.
_SHARE, _ENOUGH = 0.2, 10
# The event loop was late by so much (seconds).
_LATE_S = 0.5


class Notice(NamedTuple):
    """One sentence. `level` is "bad", "warn" or "info"."""

    level: str
    text: str


def notices(  # noqa: C901 - one condition after the other
    *,
    closed: bool,
    failure: str | None,
    ended: bool,
    paused: bool,
    store_away_s: float | None,
    waiting: int,
    silent_s: float,
    minute: list[Second],
    open_circuits: int,
    unreachable: int,
    wait_for_worker: int,
    late_s: float,
) -> list[Notice]:
    """Return what is not as it should be, the gravest first; otherwise that all is well.

    Args:
        closed: Whether the gate is closed.
        failure: What stopped the frontier; None if nothing did.
        ended: Whether the frontier has ended: nothing is left.
        paused: Whether `Frontier.pause` was called.
        store_away_s: For how long the shared store has not responded; None if it does.
        waiting: URLs and permits that wait.
        silent_s: Seconds since a permit was granted last.
        minute: The last 60 seconds.
        open_circuits: Circuits that are open, as far as is known.
        unreachable: Origins that wait since their robots.txt was out of reach.
        wait_for_worker: Origins that wait for an idle worker.
        late_s: By how much the event loop was late at most in the last minute.
    """
    found: list[Notice] = []

    def tell(level: str, text: str) -> None:
        found.append(Notice(level, text))

    failed = sum(each.failed for each in minute)
    slowed = sum(each.slowed for each in minute)
    every = failed + slowed + sum(each.well + each.not_well for each in minute)
    many = _SHARE * every if every >= _ENOUGH else math.inf
    if failure is not None:
        tell("bad", f"The frontier has failed: {failure}")
    if store_away_s is not None:
        tell("bad", f"The shared store has not responded for {store_away_s:.0f} s.")
    if waiting > 0 and silent_s >= _SILENT_S and not (closed or paused):
        urls = counted(waiting, "URL waits", "URLs wait")
        tell("bad", f"No permit was granted for {silent_s:.0f} s, and {urls}.")
    if failed >= many:
        tell("bad", f"{failed} of {every} requests failed in the last minute (5xx, or no response).")
    if slowed >= many:
        tell("bad", f"{slowed} of {every} responses in the last minute were 429 or 503.")
    if closed and failure is None:
        tell("warn", "The gate is closed: no more turns are granted.")
    if paused and not closed:
        tell("warn", "The frontier is paused: nothing is given out until resume().")
    if open_circuits > 0:
        tell("warn", f"{counted(open_circuits, 'circuit is', 'circuits are')} open.")
    if unreachable > 0:
        whose = counted(unreachable, "origin is out of reach; its", "origins is out of reach; their")
        tell("warn", f"robots.txt of {whose} URLs wait.")
    if 0 < slowed < many:
        were = counted(slowed, "response in the last minute was", "responses in the last minute were")
        tell("warn", f"{were} 429 or 503.")
    if late_s >= _LATE_S:
        tell("warn", f"The event loop was late by {late_s:.1f} s in the last minute: something blocks it.")
    if ended and not closed and failure is None:
        tell("info", "The crawl has ended: nothing is left.")
    if wait_for_worker > 0:
        wait = counted(wait_for_worker, "origin waits", "origins wait")
        tell("info", f"{wait} for an idle worker: more would make the crawl faster.")
    return found or [Notice("info", "All is well.")]


class Monitor:
    """Owns what the status page knows. After `stop` it stands still.

    Attributes:
        survey: What waits, and why.
    """

    def __init__(self, gate: Gate, frontier: Frontier | None) -> None:
        self._gate = gate
        self._clock = gate.services.clock
        self._frontier = frontier
        self._dispatcher: Dispatcher | None = None if frontier is None else frontier.dispatcher
        self._recorder = Recorder(self._clock.wall)
        self.survey: Survey = Survey(gate.services, self._dispatcher)
        self._shared = SharedCrawl(gate, self._clock)
        now = self._clock.monotonic()
        self._began, self._granted_at = now, now
        self._timeline = Timeline(now)
        self._counted = gate.counters
        self._late: deque[float] = deque(maxlen=_MINUTE_S)
        self._response_s: float | None = None
        self._next_at = now + _TICK_S
        self._end_listening = gate.listen(self._recorder)
        self._timer: Timer | None = self._clock.call_at(self._next_at, self._tick)

    async def stop(self) -> None:
        """Listen and look no more. May be called twice."""
        self._end_listening()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._shared.stop()

    def _tick(self) -> None:
        now = self._clock.monotonic()
        self._late.append(max(0.0, now - self._next_at))
        self._next_at = _TICK_S + (now if self._next_at + _TICK_S <= now else self._next_at)
        self._timer = self._clock.call_at(self._next_at, self._tick)
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
        self._timeline.add(now, second)

    def state(self, after: int | None = None) -> State:
        """Return all of the page. Its size and its cost are bounded, whatever waits.

        Args:
            after: The timeline has the seconds after this one; None leaves the timeline out.
        """
        self._shared.want()
        look, recorder, dispatcher = self.survey.look(), self._recorder, self._dispatcher
        requests, robots = self._timeline.rate(_RATE_S)
        failure = None if dispatcher is None else dispatcher.progress.failure
        if isinstance(failure, GateClosed):
            failure = None  # The gate says so itself.
        away, late_s = recorder.store_away, max(self._late, default=0.0)
        found = notices(
            closed=self._gate.services.shutdown.begun,
            failure=None if failure is None else clipped(f"{type(failure).__name__}: {failure}"),
            ended=dispatcher is not None and dispatcher.progress.over,
            paused=dispatcher is not None and dispatcher.progress.workers.paused,
            store_away_s=None if away is None else max(0.0, self._clock.wall() - away[0]),
            waiting=self._waiting,
            silent_s=self._clock.monotonic() - self._granted_at,
            minute=self._timeline.last(_MINUTE_S),
            open_circuits=look.open_circuits,
            unreachable=look.totals[WaitReason.UNREACHABLE].origins,
            wait_for_worker=look.totals[WaitReason.WORKER].origins,
            late_s=late_s,
        )
        return {
            "now": self._clock.wall(),
            "version": __version__,
            "agent": clipped(self._gate.agent.header),
            "uptime_s": self._clock.monotonic() - self._began,
            "notices": [notice._asdict() for notice in found],
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
                for (outcome, reason), count in recorder.robots.most_common()
            ],
            "refused": dict(recorder.refused.most_common()),
            "dropped": dict(recorder.dropped.most_common()),
            "waiting": self.survey.reasons(),
            "origins": self.survey.longest(limit=LONGEST),
            "open_circuits": look.open_circuits,
            "circuits": look.circuits,
            "held": self.survey.held(),
            "orders": standing(self._gate)[:LONGEST],
            "events": [each._asdict() for each in recorder.noted(EVENTS, without="Refused")],
            "survey": {"visited": look.visited, "left_out": look.left_out, "took_s": look.took_s},
            "loop_late_s": late_s,
            "shared": self._shared.last,
            "second": self._timeline.count,
            **({} if after is None else {"timeline": self._timeline.last(self._timeline.count - after)}),
        }

    def timeline(self) -> State:
        """Return the last ten minutes."""
        return {"fields": Second._fields, "seconds": list(self._timeline.seconds)}

    async def order(self, body: bytes, by: str) -> State:
        """Give an operator's order. Raises InvalidOption, Overloaded, StoreFailed."""
        return await act(self._gate, self._frontier, read(body), by)

    def events(self, limit: int) -> list[State]:
        """Return the newest events that an operator may need, the newest first."""
        return [each._asdict() for each in self._recorder.noted(limit)]

    def shared(self) -> State | None:
        """Return what the server of a shared crawl said last."""
        self._shared.want()
        return self._shared.last

    async def explain(self, url: str) -> State:
        """Return why a URL waits, or does not come, and its latest events. Raises InvalidURL."""
        target = Target.of(url)
        events = self._recorder.noted_of(target.url, target.origin.text)[:_EVENTS_OF_A_URL]
        return {**await self.survey.explain(target), "events": [each._asdict() for each in events]}

    def _of_frontier(self) -> State | None:
        frontier = self._frontier
        if frontier is None:
            return None
        progress, workers = frontier.dispatcher.progress, frontier.dispatcher.progress.workers
        names = ("waiting", "in_flight", "done", "refused", "dropped")
        return {
            **{name: getattr(frontier, name) for name in names},
            "idle_workers": workers.idle,
            "paused": workers.paused,
            "closed": progress.closed,
            "over": progress.over,
        }

    @property
    def _waiting(self) -> int:
        return self._gate.waiting + (0 if self._frontier is None else self._frontier.waiting)


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
        if found is None or now - self._asked_at < _EVERY_S:
            return
        self._asked_at = now
        self._asking = start_later(lambda: self._ask(found))

    async def stop(self) -> None:
        """Ask no more."""
        self._asked_at = math.inf
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _ask(self, found: Membership) -> None:
        # Imported here: a crawl on one machine needs no package for it.
        from polite.stores.redis.inspect import SharedInspector
        from polite.stores.redis.link import Patience

        name = found.store.link.name
        inspector = SharedInspector(found.store, Patience(name, self._clock, _SHARED_PATIENCE_S))
        crawl = {"crawl": found.crawl, "store": name}
        try:
            partitions = await inspector.partitions(found.crawl, _LISTED)
        except StoreFailed as error:
            self.last = {**crawl, "error": str(error)}
            return
        except Exception as error:  # noqa: BLE001 - shown; the crawl goes on
            self.last = {"error": f"{type(error).__name__}: {error}"}
            return
        sessions: dict[str, dict[str, Any]] = {}
        for partition in partitions:
            for name, ends_s, homes, closed in partition.sessions:
                new = {"name": name, "ends_s": ends_s, "homes": 0, "closed": closed}
                session = sessions.setdefault(name, new)
                session["homes"] += homes
                session["ends_s"] = min(session["ends_s"], ends_s)
        self.last = {
            **crawl,
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
