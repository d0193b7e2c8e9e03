"""What a crawler does with a permit, drawn for each: fetch, report, hold it, retry, fail, pass it to another task, or drop it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, TypeVar

from polite.frontier.permit import TaskPermit
from polite.gate.permit import Permit
from polite.http.header_fields import Headers
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


class ObservedPermit:
    """A permit in its block. Its report and retry reach the judge too.

    Attributes:
        url: the page to fetch.
        after: delay of a retry, if one was requested (seconds).
        failed: the connection broke.
    """

    def __init__(self, permit: Permit, request: Request, visitor: "Visitor") -> None:
        self.url: str = permit.url
        self._permit = permit
        self.request = request
        self._visitor = visitor
        self.after: float | None = None
        self.failed = False

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        """See Permit.report."""
        self._permit.report(status=status, headers=headers)
        self._visitor.reported(self.request, self.url, status)

    def retry(self, *, after: float = 0.0) -> bool:
        """See TaskPermit.retry. Return False if the permit is the gate's own."""
        if not isinstance(self._permit, TaskPermit):
            return False
        again = self._permit.retry(after=after)
        self.after = after
        self._visitor.retried(self.url, after, again=again)
        return again


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

    async def use(self, permit: Permit, ledger: Ledger | None, *, span: float) -> None:
        """Enter the permit, fetch its page, leave it. `ledger` is its frontier's, if it has one."""
        self._visits += 1
        chance = Random(f"{self._plan.seed} visit {self._visits}")
        granted_at = self.turns.pop(permit.url, self._now())
        if ledger is not None and isinstance(permit, TaskPermit):
            self.received += 1
            ledger.given(permit.task)
            self._progress.granted(origin_of(permit.url))
            if chance.random() < 0.03:
                self._trace.note("not used", permit.url)
                ledger.requeued(permit.url, unused=True)
                self._progress.released(origin_of(permit.url))
                return
            try:
                if chance.random() < 0.1:
                    await asyncio.sleep(chance.choice([0.0, 0.01, 1.0, 20.0]))
            except asyncio.CancelledError:
                if not self._sites.ended:
                    ledger.requeued(permit.url, unused=True)
                    self._progress.released(origin_of(permit.url))
                raise
        await self._inside(permit, ledger, chance, granted_at, span)

    async def _inside(
        self, permit: Permit, ledger: Ledger | None, chance: Random, granted_at: float, span: float
    ) -> None:
        moved = chance.random() < 0.1
        origin = origin_of(permit.url)
        try:
            await (_in_new_task(permit.__aenter__) if moved else permit.__aenter__())
        except asyncio.CancelledError:
            # If its rules had expired, it waited for another turn, and was not used.
            if ledger is not None and not self._sites.ended:
                ledger.requeued(permit.url, unused=True)
                self._progress.released(origin)
            raise
        observed: ObservedPermit | None = None
        request: Request | None = None
        error: BaseException | None = None
        try:
            if ledger is None:
                granted_at = self.turns.pop(permit.url, self._now())
                self.received += 1
                self._progress.granted(origin)
            request = self._judge.permit_entered(permit.url, granted_at)
            self._trace.note("granted", permit.url)
            observed = ObservedPermit(permit, request, self)
            await self._behave(observed, chance, span)
        except BaseException as caught:
            error = caught
            raise
        finally:
            # Record the end first: leaving the block may grant the next turn in the same step.
            if request is not None and observed is not None and not self._sites.ended:
                self._left(observed, request, ledger, error)
            moved = moved and not isinstance(error, asyncio.CancelledError)
            try:
                await _leave(permit, error, moved=moved)
            finally:
                # Its traceback refers to this frame. The cycle would keep the task's next permit alive.
                error = None

    async def _behave(self, permit: ObservedPermit, chance: Random, span: float) -> None:
        await _hold(chance, span)
        try:
            page = await self._sites.fetch(permit.url)
        except PageFailed:
            permit.failed = True
            if chance.random() < 0.5:
                raise
            permit.retry(after=_after(chance))
            return
        if chance.random() < 0.9:
            odd = "headers" in self._plan.faults
            permit.report(
                status=page.status, headers=odd_headers(chance, page.headers) if odd else page.headers
            )
        await _hold(chance, span)
        if chance.random() < 0.15:
            permit.retry(after=_after(chance))
        if chance.random() < 0.04:
            raise GaveUp(permit.url)

    def reported(self, request: Request, url: str, status: int) -> None:
        """Record a report. The server's own response counts, not what the crawler made of it."""
        page = self._sites.fetched.get(url)
        retry_after = None if page is None or page.retry_after is None else float(page.retry_after)
        self._judge.reported(request, status, retry_after)
        failed = status >= 500 or status == 429
        self._progress.responded(request.origin, failed=failed, retry_after=retry_after)
        self._trace.note(
            "reported",
            url,
            status,
            f"(server sent {None if page is None else page.status}, {page and page.headers})",
        )

    def retried(self, url: str, after: float, *, again: bool) -> None:
        """Record a request for a retry."""
        self._trace.note("retry", url, f"after {after:g} s", "granted" if again else "refused")

    def _left(
        self, permit: ObservedPermit, request: Request, ledger: Ledger | None, error: BaseException | None
    ) -> None:
        self._judge.permit_left(request)
        if request.reported is None:
            self._progress.responded(request.origin, failed=permit.failed or isinstance(error, Exception))
        self._progress.released(request.origin)
        self._trace.note("left", permit.url, "" if error is None else type(error).__name__)
        if ledger is None:
            return
        if error is not None or permit.after is not None:
            ledger.requeued(permit.url, after=permit.after or 0.0)
        else:
            ledger.ended(permit.url, "done")


def _after(chance: Random) -> float:
    return chance.choice([0.0, 0.0, 1.0, 3.0, 30.0])


async def _hold(chance: Random, span: float) -> None:
    if chance.random() < 0.1:
        await asyncio.sleep(chance.choice([0.0, 0.1, 1.0, min(20.0, span / 10)]))


async def _leave(permit: Permit, error: BaseException | None, *, moved: bool) -> None:
    leave = partial(permit.__aexit__, None if error is None else type(error), error, None)
    await (_in_new_task(leave) if moved else leave())


async def _in_new_task(work: Callable[[], Awaitable[_T]]) -> _T:
    """Do it in a new task, since users pass permits from task to task."""

    async def run() -> _T:
        return await work()

    return await asyncio.create_task(run())
