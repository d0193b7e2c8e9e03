"""What a crawler does with a permit, drawn for each: fetch, report, hold it, retry, fail, pass it to another task, or drop it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, TypeVar

from polite.errors import Overloaded, StoreFailed
from polite.frontier.in_flight import TaskPermit
from polite.gate.permit import Permit
from polite.robots.decision import RobotsUnreachable
from tests.simulation.faults import odd_headers
from tests.simulation.judge import Request
from tests.simulation.ledger import Ledger
from tests.simulation.plan import origin_of
from tests.simulation.sites import PageFailed

if TYPE_CHECKING:
    from tests.simulation.scene import Scene

_T = TypeVar("_T")


class GaveUp(Exception):
    """The crawler's own error in a permit's block."""


class Visitor:
    """Uses permits as crawlers do, and records its actions with judge, progress and ledger.

    Attributes:
        received: permits that were received in this life.
        granted: `Granted` events in this life.
        turns: time of each URL's last `Granted` event (world seconds).
    """

    def __init__(self, scene: "Scene") -> None:
        self._plan = scene.plan
        self._sites = scene.sites
        self._judge = scene.judge
        self._progress = scene.progress
        self._trace = scene.trace
        self._now = scene.now
        self.received: int = 0
        self.granted = 0
        self.turns: dict[str, float] = {}
        self._visits = 0

    async def use(self, permit: Permit, ledger: Ledger | None) -> None:
        """Enter the permit, fetch its page, leave it. `ledger` is its frontier's, if it has one."""
        self._visits += 1
        chance = Random(f"{self._plan.seed} visit {self._visits}")
        granted_at = self.turns.pop(permit.url, self._now())
        moved = False
        try:
            if ledger is not None and isinstance(permit, TaskPermit):
                self.received += 1
                ledger.given(permit.task)
                self._progress.granted(origin_of(permit.url))
                if chance.random() < 0.03:
                    self._trace.note("not used", permit.url)
                    self._unused(permit, ledger)
                    return
                if chance.random() < 0.1:
                    await asyncio.sleep(chance.choice([0.0, 0.01, 1.0, 20.0]))
            moved = chance.random() < 0.1
            enter = partial(self._enter, permit, ledger)
            await (_in_new_task(enter) if moved else enter())
        except asyncio.CancelledError:
            # It was held, or its rules had expired and it waited for another turn.
            if ledger is not None and not self._sites.ended:
                self._unused(permit, ledger)
            raise
        if ledger is None:
            granted_at = self.turns.pop(permit.url, self._now())
            self.received += 1
            self._progress.granted(origin_of(permit.url))
        await self._inside(permit, ledger, chance, granted_at, moved=moved)

    async def _enter(self, permit: Permit, ledger: Ledger | None) -> None:
        try:
            await permit.__aenter__()
        except (RobotsUnreachable, Overloaded, StoreFailed):
            # Entered late: rules, or another turn, could not be had. The task waits again.
            if ledger is not None and not self._sites.ended:
                self._unused(permit, ledger)
            raise

    def _unused(self, permit: Permit, ledger: Ledger) -> None:
        ledger.requeued(permit.url, unused=True)
        self._progress.released(origin_of(permit.url))

    async def _inside(
        self, permit: Permit, ledger: Ledger | None, chance: Random, granted_at: float, *, moved: bool
    ) -> None:
        """Do what a crawler does in the block, and leave it."""
        visit: _Visit | None = None
        error: BaseException | None = None
        try:
            visit = _Visit(permit, self._judge.permit_entered(permit.url, granted_at))
            self._trace.note("granted", permit.url)
            await self._behave(visit, chance)
        except BaseException as caught:
            error = caught
            raise
        finally:
            # Record the end first: leaving the block may grant the next turn in the same step.
            if visit is not None and not self._sites.ended:
                self._left(visit, ledger, error)
            leave = partial(permit.__aexit__, None if error is None else type(error), error, None)
            try:
                await (
                    _in_new_task(leave)
                    if moved and not isinstance(error, asyncio.CancelledError)
                    else leave()
                )
            finally:
                # Its traceback refers to this frame. The cycle would keep the task's next permit alive.
                error = None

    async def _behave(self, visit: "_Visit", chance: Random) -> None:
        await self._hold(chance)
        url = visit.permit.url
        try:
            page = await self._sites.fetch(url)
        except PageFailed:
            visit.failed = True
            if chance.random() < 0.5:
                raise
            self._retry(visit, chance)
            return
        if chance.random() < 0.9:
            odd = "headers" in self._plan.faults
            visit.permit.report(
                status=page.status, headers=odd_headers(chance, page.headers) if odd else page.headers
            )
            self._reported(visit.request, url, page.status)
        await self._hold(chance)
        if chance.random() < 0.15:
            self._retry(visit, chance)
        if chance.random() < 0.04:
            raise GaveUp(url)

    async def _hold(self, chance: Random) -> None:
        if chance.random() < 0.1:
            await asyncio.sleep(chance.choice([0.0, 0.1, 1.0, min(20.0, self._plan.span / 10)]))

    def _reported(self, request: Request, url: str, status: int) -> None:
        """Record a report. The server's own response counts, not what the crawler made of it."""
        page = self._sites.fetched.get(url)
        retry_after = None if page is None or page.retry_after is None else float(page.retry_after)
        self._judge.reported(request, status, retry_after)
        failed = status >= 500 or status == 429
        self._progress.responded(request.origin, failed=failed, retry_after=retry_after)
        self._trace.note("reported", url, status, f"(server sent {page})")

    def _retry(self, visit: "_Visit", chance: Random) -> None:
        after = chance.choice([0.0, 0.0, 1.0, 3.0, 30.0])
        if isinstance(visit.permit, TaskPermit):
            visit.after = after
            again = visit.permit.retry(after=after)
            self._trace.note(
                "retry", visit.permit.url, f"after {after:g} s", "granted" if again else "refused"
            )

    def _left(self, visit: "_Visit", ledger: Ledger | None, error: BaseException | None) -> None:
        request, url = visit.request, visit.permit.url
        self._judge.permit_left(request)
        if request.reported is None:
            self._progress.responded(request.origin, failed=visit.failed or isinstance(error, Exception))
        self._progress.released(request.origin)
        self._trace.note("left", url, "" if error is None else type(error).__name__)
        if ledger is None:
            return
        if error is not None or visit.after is not None:
            ledger.requeued(url, after=visit.after or 0.0)
        else:
            ledger.ended(url, "done")


class _Visit:
    """A permit in its block.

    Attributes:
        after: delay of a retry, if one was requested (seconds).
        failed: the connection broke.
    """

    def __init__(self, permit: Permit, request: Request) -> None:
        self.permit = permit
        self.request = request
        self.after: float | None = None
        self.failed = False


async def _in_new_task(work: Callable[[], Awaitable[_T]]) -> _T:
    """Do it in a new task, since users pass permits from task to task."""

    async def run() -> _T:
        return await work()

    return await asyncio.create_task(run())
