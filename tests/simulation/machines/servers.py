"""The web servers of a world: they respond, and judge by when requests arrive, whichever machine sent them."""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from docs.examples.demo.judge import Scope
from polite.robots.exchange import Ask, Failed, Reply
from tests.simulation.machines.plan import OriginPlan
from tests.simulation.robots_log import EPSILON_S

if TYPE_CHECKING:
    from tests.simulation.machines.scene import MachinesScene

# Responses with a 503 from one origin: each makes a world longer.
_MOST_TROUBLES = 2


@dataclass(slots=True, eq=False)
class Arrival:
    """A request as the server sees it. Times are world seconds.

    Attributes:
        machine: its sender, as the trace names it.
        gap_s: the least time until the next request arrives.
    """

    at: float
    machine: str
    what: str
    gap_s: float


class _Origin(Scope):
    """One origin.

    Attributes:
        arrival: the last request that counts.
        fetched: when robots.txt was requested, each time.
        known: robots.txt had a response that every owner knows or can load.
        forgotten: a failover lost it. Only the process that has requested it knows it still.
        troubles: how many pages got a 503.
    """

    def __init__(self, plan: OriginPlan) -> None:
        super().__init__()
        self.plan = plan
        self.arrival: Arrival | None = None
        self.fetched: list[float] = []
        self.known = False
        self.forgotten = False
        self.troubles = 0


class Servers:
    """All origins. Gaps and fetches are counted over all machines.

    Attributes:
        pages: how many pages were requested.
        fetches: how many robots.txt were.
        events: how many requests there were: it grows while the crawl goes on.
    """

    def __init__(self, scene: "MachinesScene") -> None:
        self._plan = scene.plan
        self._disturbances = scene.disturbances
        self._trace = scene.trace
        self._now = scene.now
        self._origins = {each.name: _Origin(each) for each in self._plan.origins}
        self._chance = Random(f"{self._plan.seed} servers")
        self.pages: int = 0
        self.fetches: int = 0
        self.events: int = 0

    # Requests.

    async def robots(self, origin: str, machine: str) -> Reply | Failed:
        state, now = self._origins[origin], self._now()
        self._require_due(state, machine)
        self.fetches += 1
        self._trace.note("robots requested", origin, machine)
        arrival = self._arrived(state, machine, "robots.txt", self._plan.min_delay)
        state.fetched.append(now)
        status = self._robots_status(state.plan, now)
        try:
            await asyncio.sleep(state.plan.latency_s)
        except BaseException:
            self._left(state, arrival, 0.0)
            raise
        self._left(state, arrival, self._plan.min_delay)
        self._trace.note("robots response", origin, status, machine)
        if status == 200:
            state.known, state.forgotten = True, False
        return Reply(status, _robots_txt(state.plan) if status == 200 else b"")

    def abandoned(self, origin: str) -> None:
        """The process that requested robots.txt last ended by itself, before the response came: another one requests it again."""
        self._trace.note("robots abandoned", origin)
        self._origins[origin].fetched.pop()

    def forgot(self, origins: set[str]) -> None:
        for name in origins:
            self._trace.note("robots lost", name)
            self._origins[name].forgotten = True

    async def page(self, url: str, machine: str, *, late: bool) -> tuple[int, float | None]:
        origin, folder, _ = split(url)
        state = self._origins[origin]
        self.pages += 1
        self._trace.note("late page" if late else "page", url, machine)
        if state.plan.disallowed and folder == "c" and state.known and state.plan.robots != "error":
            self._trace.fail("no page that robots.txt disallows", f"{url} is requested by {machine}")
        if not state.fetched:
            self._trace.fail("no page before robots.txt", f"{url} is requested by {machine}")
        if late:
            await asyncio.sleep(state.plan.latency_s)
            return 200, None
        # An owner may know an older, empty file, if it failed at first.
        crawl_delay = (
            (state.plan.crawl_delay or 0.0)
            if state.plan.robots == "found" and not self._plan.empties
            else 0.0
        )
        arrival = self._arrived(state, machine, url, max(self._plan.min_delay, crawl_delay))
        status, retry_after = self._page_status(state)
        try:
            await asyncio.sleep(state.plan.latency_s)
        except BaseException:
            self._left(state, arrival, 0.0)
            raise
        self._left(state, arrival, max(arrival.gap_s, retry_after or 0.0))
        return status, retry_after

    # Judging.

    def _arrived(self, state: _Origin, machine: str, what: str, gap_s: float) -> Arrival:
        now, last = self._now(), state.arrival
        self.events += 1
        required_s = 0.0 if last is None else self._required_s(state, last, machine)
        if last is not None and now < last.at + required_s - EPSILON_S:
            self._trace.fail(
                "each gap is kept",
                f"{state.plan.name} gets {what} of {machine} {now - last.at:.3f} s after {last.what} of {last.machine}: "
                f"{required_s:g} s are required",
            )
        if (early_s := state.early_s(now, EPSILON_S)) and self._calm(state):
            self._trace.fail(
                "each gap is kept",
                f"{state.plan.name} gets {what} of {machine} {early_s:.3f} s early: {state.because}",
            )
        if state.in_flight and self._calm(state):
            self._trace.fail(
                "one request of an origin at a time",
                f"{state.plan.name} gets {what} of {machine}, and {state.in_flight[0].what} of "
                f"{state.in_flight[0].machine} is in flight",
            )
        state.arrival = arrival = Arrival(now, machine, what, gap_s)
        state.in_flight.append(arrival)
        return arrival

    def _required_s(self, state: _Origin, last: Arrival, machine: str) -> float:
        """Return the gap after the last request. A new owner cannot know a Crawl-delay that a failover lost with its old owner."""
        unknown = (
            state.forgotten
            and machine != last.machine
            and self._disturbances.vanished_since(last.at, last.machine)
        )
        return self._plan.min_delay if unknown else last.gap_s

    def _left(self, state: _Origin, arrival: Arrival, delay_s: float) -> None:
        """A response was sent, or its request was cancelled."""
        state.in_flight.remove(arrival)
        self.events += 1
        because = f"{delay_s:g} s after {arrival.what} of {arrival.machine} at {self._now():.3f}"
        state.delay(self._now(), delay_s, because)

    def _calm(self, state: _Origin) -> bool:
        """Whether no machine can have lost the origin's home since its last request."""
        last = state.arrival
        return last is None or self._disturbances.calm_since(last.at - 3 * self._plan.lease_s)

    def _require_due(self, state: _Origin, machine: str) -> None:
        """No result of a world expires within it: another fetch needs a reason."""
        if not state.fetched or state.plan.robots == "error":
            return
        excuses = self._disturbances.since(state.fetched[0] - 3 * self._plan.lease_s)
        if len(state.fetched) > excuses:
            self._trace.fail(
                "one robots.txt fetch for all machines",
                f"{state.plan.name} gets another one of {machine}, after {len(state.fetched)} at {state.fetched} "
                f"and {excuses} disturbances",
            )

    # Responding.

    def _robots_status(self, plan: OriginPlan, now: float) -> int:
        if plan.robots == "missing":
            return 404
        return 500 if plan.robots == "error" and now < self._plan.span / 2 else 200

    def _page_status(self, state: _Origin) -> tuple[int, float | None]:
        if state.troubles >= _MOST_TROUBLES or self._chance.random() >= state.plan.trouble:
            return 200, None
        state.troubles += 1
        return 503, self._chance.choice([None, None, 1.0, 1.0, 12.0])


def split(url: str) -> tuple[str, str, str]:
    """Return a URL's origin, folder and page."""
    scheme, _, host, folder, page = url.split("/")
    return f"{scheme}//{host}", folder, page


def _robots_txt(plan: OriginPlan) -> bytes:
    lines = ["User-agent: *", "Disallow: /c/" if plan.disallowed else "Disallow:"]
    if plan.crawl_delay is not None:
        lines.append(f"Crawl-delay: {plan.crawl_delay:g}")
    return "\n".join(lines).encode()


class ServersOf:
    """The servers as one process's Transport for robots.txt.

    Attributes:
        dead: the process was killed: its requests reach no server.
        closing: the process ends by itself, and cancels what it does not need any more.
    """

    def __init__(self, servers: Servers, machine: str) -> None:
        self._servers = servers
        self.machine = machine
        self.dead = self.closing = False

    async def get(self, ask: Ask) -> Reply | Failed:
        if self.dead:
            raise ConnectionError("the process was killed")
        origin = str(ask.target.origin)
        try:
            return await self._servers.robots(origin, self.machine)
        except asyncio.CancelledError:
            if self.closing and not self.dead:
                self._servers.abandoned(origin)
            raise

    async def close(self) -> None:
        """See ports.Transport."""
