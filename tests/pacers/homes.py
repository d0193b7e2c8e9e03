"""Homes of several processes in one world, without a server: who holds which, leases that end, takes that take time."""

import asyncio
import random

from polite.errors import GateClosed
from polite.pacers.homes import Home, Lease, TakenHome
from polite.pacers.shared import SharedPacer
from polite.ports import Clock


class _Row:
    def __init__(self) -> None:
        self.owner: FakeHomes | None = None
        self.since: float | None = None
        self.free_at, self.clean = 0.0, True
        self.state: str | None = None


class FakeStore:
    """The rows of all homes.

    Args:
        lease_s: How long an owner that ended without a word keeps its homes.
        seed: Decides how long a step takes.
        slow_s: The longest step.
    """

    def __init__(self, clock: Clock, *, lease_s: float = 15.0, seed: int = 0, slow_s: float = 0.05) -> None:
        self.clock, self.lease_s = clock, lease_s
        self.rows: dict[str, _Row] = {}
        self.fences = 0
        self.processes: list[FakeHomes] = []
        self.random, self.slow_s, self.takes = random.Random(seed), slow_s, 0

    def process(self) -> "FakeHomes":
        return FakeHomes(self)

    def row(self, name: str) -> _Row:
        return self.rows.setdefault(name, _Row())

    async def step(self) -> None:
        await asyncio.sleep(self.random.random() * self.slow_s)


class FakeHomes:
    """The homes of one process (homes.Homes).

    Attributes:
        polled_s: Seconds between two looks at a home that another process has.
        quantum_s: How long a wanted home is kept while requests wait here.
    """

    tenant: SharedPacer
    polled_s = 0.2
    quantum_s = 5.0

    def __init__(self, store: FakeStore) -> None:
        self.store, self.clock = store, store.clock
        self.lease = Lease(self.clock)
        self.lease.until = float("inf")
        self.homes: dict[str, Home] = {}
        self.rested: list[tuple[str, float]] = []
        self.closed = False
        self.counted: int | None = None
        store.processes.append(self)

    @property
    def live(self) -> int:
        return len(self.store.processes) if self.counted is None else self.counted

    def held(self, name: str) -> Home | None:
        home = self.homes.get(name)
        return home if home is not None and home.usable else None

    async def take(self, name: str) -> Home:
        while True:
            await self.store.step()
            if self.closed:
                raise GateClosed("closed")
            if (home := self.held(name)) is not None:
                return home
            row = self.store.row(name)
            if row.owner is None:
                return self._own(name, row)
            row.owner.recall(name)
            await asyncio.sleep(self.polled_s)

    def entered(self, home: Home) -> None:
        home.open += 1

    def left(self, home: Home) -> None:
        home.open -= 1
        assert home.open >= 0
        self._leave_if_closing(home)

    def rests(self, home: Home, seconds: float) -> None:
        self.rested.append((home.name, seconds))
        row = self.store.row(home.name)
        row.free_at = max(row.free_at, self.clock.monotonic() + seconds)

    # What happens to a process.

    def recall(self, name: str) -> None:
        home = self.homes.get(name)
        if home is None or home.closing:
            return
        kept_s = self.quantum_s if self.tenant.waits(name) else 0.0
        if self.clock.monotonic() - home.since >= kept_s:
            home.closing = True
            self._leave_if_closing(home)

    def leave_all(self) -> None:
        for home in list(self.homes.values()):
            home.closing = True
            self._leave_if_closing(home)

    def lose_all(self) -> None:
        """The process is taken for dead from now, and its homes go to others when its lease is over."""
        lost, self.homes = self.homes, {}
        for home in lost.values():
            home.over = True
        ends = self.clock.monotonic() + self.store.lease_s

        def end() -> None:
            for name in lost:
                row = self.store.row(name)
                row.owner, row.since, row.clean = None, ends, False

        self.clock.call_at(ends, end)

    def _own(self, name: str, row: _Row) -> Home:
        now = self.clock.monotonic()
        self.store.fences += 1
        self.store.takes += 1
        row.owner = self
        home = self.homes[name] = Home(name, self.store.fences, self.lease, now)
        age_s = None if row.since is None else now - row.since
        self.tenant.take_over(home, TakenHome(max(0.0, row.free_at - now), age_s, row.clean, row.state))
        return home

    def _leave_if_closing(self, home: Home) -> None:
        if not home.closing or home.open or home.over:
            return
        rest_s, state = self.tenant.hand_over(home.name)
        assert state is None or len(state.encode()) <= 1_000
        now, row = self.clock.monotonic(), self.store.row(home.name)
        row.owner, row.since, row.free_at, row.clean, row.state = None, now, now + rest_s, True, state
        home.over = True
        del self.homes[home.name]
