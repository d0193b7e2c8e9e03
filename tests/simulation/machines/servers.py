"""The web servers of a world, and the tasks: both judge what happens, whichever machine does it."""

import asyncio
import math
from dataclasses import dataclass, field
from random import Random

from polite.frontier.progress import End, TaskOutcome
from polite.judge.verdict import Scope
from polite.robots.exchange import Ask, Failed, Reply
from polite.task import Task
from tests.simulation.judge import EPSILON_S
from tests.simulation.ledger import Draft, require_as_put
from tests.simulation.machines.plan import OriginPlan


class Disturbances:
    """The times at which a process was killed or lost its lease, or the server forgot something (world seconds).

    A fault that takes less than the lease is none: nothing may come of it.
    """

    def __init__(self, scene) -> None:
        self._trace = scene.trace
        self._now = scene.now
        self._times: list[float] = []
        self._vanished: dict[str, float] = {}
        self._last = -math.inf

    def add(self, what: str) -> None:
        self._trace.note("disturbed", what)
        self._times.append(self._now())

    def vanish(self, what: str, process: str) -> None:
        """A process was killed now, or its lease ends: its homes go without a word to their next owners."""
        self.add(f"{what} {process}")
        self._vanished[process] = self._now()

    def vanished_since(self, when: float, process: str) -> bool:
        """Whether others may have got the process's homes since a time without a word of it."""
        return self._vanished.get(process, -math.inf) >= when

    def over(self) -> None:
        self._last = self._now()

    def calm_since(self, when: float) -> bool:
        """Whether no process can have lost a home since a time."""
        return self._last < when and not self.since(when)

    def since(self, when: float) -> int:
        return sum(each >= when for each in self._times)


class LeaseWatch:
    """Adds a disturbance when a process has had no reply of a partition for longer than its lease, which others may have seen end.

    Attributes:
        over: the process has ended, or was killed.
    """

    def __init__(self, name: str, scene) -> None:
        self._name = name
        # The process's own deadline, before the server's.
        self._lasts_s = scene.plan.lease_s * 0.99 - 0.2
        self._disturbances = scene.disturbances
        self._conductor = scene.conductor
        self._sent: dict[str, float] = {}  # by partition: when the last batch that had a reply was sent
        self._armed: set[str] = set()
        self.over = False

    def reached(self, partition: str, sent: float) -> None:
        """The reply to a batch for a partition, which was sent then, has arrived."""
        before = self._sent.get(partition)
        if before is not None and partition not in self._armed:
            self._disturbances.over()
        self._sent[partition] = sent if before is None else max(before, sent)
        if partition not in self._armed:
            self._armed.add(partition)
            self._conductor.at(self._sent[partition] + self._lasts_s, lambda: self._look(partition))

    def _look(self, partition: str) -> None:
        if self.over:
            return
        ends = self._sent[partition] + self._lasts_s
        if ends > self._conductor.now:
            self._conductor.at(ends, lambda: self._look(partition))
        else:
            self._armed.discard(partition)
            self._disturbances.vanish("lease of", self._name)


@dataclass(slots=True)
class Entry:
    """One URL. Times are world seconds.

    Attributes:
        drafts: what its puts said.
        put_by: the processes whose put returned.
        put_at: when the first of them did.
        ready_at: from when it may be given out.
        given: when it was given to a worker, each time, and in which process.
        granted: how often it had its turn; then the server may know of it before a worker gets it, or never does.
        reasons: how often it may be given out, without disturbances.
        ended: "done", "refused" or "dropped"; None before its end.
        told: the processes that `on_end` told its end.
    """

    url: str
    drafts: list[Draft] = field(default_factory=list)
    put_by: list[int] = field(default_factory=list)
    put_at: float = 0.0
    ready_at: float = math.inf
    given: list[tuple[float, str]] = field(default_factory=list)
    granted: int = 0
    reasons: int = 1
    ended: str | None = None
    told: list[str] = field(default_factory=list)


class Tasks:
    """All tasks of the crawl, whichever machine has them.

    Attributes:
        dead: processes that were killed, or have ended.
        forgot: a failover may have lost the writes of a process that is dead.
        put_at: when the last put returned.
        emptied_at, worked_until: when the server lost all data, and the last process that waits for the end had no more to do.
    """

    def __init__(self, scene) -> None:
        self._entries: dict[str, Entry] = {}
        self._disturbances = scene.disturbances
        self._trace = scene.trace
        self._now = scene.now
        self._max_tries = scene.plan.max_tries
        self.dead: set[int] = set()
        self.forgot = False
        self.events: int = 0
        self.put_at: float = 0.0
        self.emptied_at: float = math.inf
        self.worked_until: float = -math.inf

    @property
    def exact(self) -> bool:
        """Whether each end was counted once."""
        return not self._disturbances.since(0.0)

    def put_began(self, url: str, draft: Draft, wait_s: float) -> None:
        """A put was called. The task may be queued from now on, and given out after so long."""
        entry = self._entries.setdefault(url, Entry(url))
        entry.drafts.append(draft)
        # A second put of a URL is a duplicate, or comes first: which, only the server knows.
        entry.ready_at = min(entry.ready_at, self._now() + wait_s)

    def put_returned(self, url: str, admission: str, process: int) -> None:
        self._trace.note("put", url, admission)
        entry = self._entries[url]
        entry.put_at = entry.put_at or self._now()
        entry.put_by.append(process)
        self.put_at = self._now()
        self.events += 1

    def given(self, task: Task, process: str) -> None:
        url = task.url
        self._trace.note("given", process, url)
        self.events += 1
        entry = self._entries.get(url)
        if entry is None:
            self._trace.fail("only tasks that were put are given out", url)
        require_as_put(self._trace, task, entry.drafts)
        if self._now() < entry.ready_at - EPSILON_S:
            self._trace.fail(
                "no task is given out before its time",
                f"{url} is given out {entry.ready_at - self._now():.3f} s before {entry.ready_at:.3f}",
            )
        entry.given.append((self._now(), process))
        excuses = self._disturbances.since(entry.given[0][0])
        if len(entry.given) > entry.reasons + excuses:
            self._trace.fail(
                "no task is given out twice without a reason",
                f"{url} was given out {entry.given}, for {entry.reasons} reasons and {excuses} disturbances; "
                f"it {'has not ended' if entry.ended is None else 'is ' + entry.ended}",
            )

    def granted(self, url: str) -> None:
        if (entry := self._entries.get(url)) is not None:
            entry.granted += 1

    def again(self, url: str) -> None:
        """The task is to be given out again: it is retried, or its permit was not used."""
        self._entries[url].reasons += 1

    def ended(self, url: str, how: str) -> None:
        """The task was done, refused or dropped."""
        entry = self._entries.get(url)
        if entry is not None:
            self.events += 1
            entry.ended = how

    def told(self, task: Task, outcome: TaskOutcome, process: str) -> None:
        """A process was told of the task's end: once, though what its put refuses another process may refuse, too."""
        entry = self._entries[task.url]
        entry.told.append(process)
        excuses = self._disturbances.since(0.0)
        times = entry.told.count(process) if outcome.end is End.REFUSED else len(entry.told)
        if times > 1 + excuses:
            self._trace.fail(
                "on_end is called once for each task that ended",
                f"{task.url} was told to {entry.told} in spite of {excuses} disturbances, now {outcome.end.value}",
            )

    def untold(self) -> list[Entry]:
        """Return the tasks whose end no process was told."""
        return [each for each in self._entries.values() if each.ended is not None and not each.told]

    def left(self, *, put_before: float = math.inf) -> list[Entry]:
        """Return the tasks that were acknowledged, before a time, and did not end."""
        return [
            each
            for each in self._entries.values()
            if each.put_by and each.put_at < put_before and each.ended is None
        ]

    def may_be_lost(self, left: list[Entry]) -> bool:
        """Whether each of these may have ended or been forgotten unseen.

        A page that ended too many sessions is dropped, and who tells it may be killed, too. A failover may lose what it told, and
        it cannot tell it again.
        """
        return all(
            max(len(each.given), each.granted) >= self._max_tries
            or (self.forgot and any(put in self.dead for put in each.put_by))
            for each in left
        )

    def count(self) -> int:
        return sum(each.ended is not None for each in self._entries.values())


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

    def __init__(self, scene) -> None:
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
