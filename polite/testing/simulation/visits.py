"""What a crawler does with a permit: fetch, report, hold, retry, fail, hand it to another task, or forget it; drawn for each."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TypeVar

from polite.frontier.permit import TaskPermit
from polite.gate.permit import Permit
from polite.pacing.reported_outcome import Headers
from polite.testing.simulation.judge import Judge, Request
from polite.testing.simulation.ledger import Ledger
from polite.testing.simulation.plan import Plan
from polite.testing.simulation.progress import Progress
from polite.testing.simulation.saboteurs import odd_headers
from polite.testing.simulation.sites import PageFailed, Sites
from polite.testing.simulation.trace import Trace

_T = TypeVar("_T")


class GaveUp(Exception):
    """The crawler's own error inside a permit's block."""


class Observed:
    """A permit inside its block, whose report and retry the judge hears of too.

    Attributes:
        url: what to fetch.
        task: what was put, where a frontier gave the permit out; else None.
    """

    def __init__(self, permit: Permit, request: Request, visitor: "Visitor") -> None:
        self.url = permit.url
        self.task = permit.task if isinstance(permit, TaskPermit) else None
        self._permit = permit
        self.request = request
        self.reported = False
        self._visitor = visitor
        self.after: float | None = None  # seconds that a retry waits, where one was asked for
        self.failed = False

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        """See Permit.report."""
        self._permit.report(status=status, headers=headers)
        self.reported = True
        self._visitor.reported(self.request, self.url, status, by="the server said")

    def retry(self, *, after: float = 0.0) -> bool:
        """See TaskPermit.retry; False where no frontier gave the permit out."""
        if not isinstance(self._permit, TaskPermit):
            return False
        again = self._permit.retry(after=after)
        self.after = after
        self._visitor.asked_again(self.url, after, again=again)
        return again


# What a user's crawler does inside a permit's block: fetch what the permit is for, report, and perhaps retry.
Visit = Callable[[Observed, Sites], Awaitable[None]]


class Visitor:
    """Uses permits as crawlers do, and tells judge, progress and ledger what it does.

    Args:
        visit: a user's own crawler, in place of the drawn behaviour; or None.
    """

    def __init__(
        self,
        plan: Plan,
        sites: Sites,
        judge: Judge,
        progress: Progress,
        trace: Trace,
        now: Callable[[], float],
        *,
        visit: Visit | None = None,
    ) -> None:
        self._plan = plan
        self._sites = sites
        self._judge = judge
        self._progress = progress
        self._trace = trace
        self._now = now
        self._visit = visit
        self.granted = 0  # permits received
        self.told = 0  # and those that the gate told of
        self.turns: dict[str, float] = {}  # by URL, when the gate said that its turn had come
        self._visits = 0

    async def use(self, permit: Permit, ledger: Ledger | None, *, span: float) -> None:
        """Enter the permit, fetch its page, leave it. `ledger`: of the frontier that gave it out."""
        self._visits += 1
        chance = Random(f"{self._plan.seed} visit {self._visits}")
        given_at = self.turns.pop(permit.url, self._now())
        if ledger is not None:
            self.granted += 1
            ledger.given(permit.url)
            self._progress.granted(origin_of(permit.url))
            if chance.random() < 0.03:
                self._trace.note("not used", permit.url)
                ledger.back(permit.url, unused=True)
                self._progress.left(origin_of(permit.url))
                return
            try:
                if chance.random() < 0.1:
                    await asyncio.sleep(chance.choice([0.0, 0.01, 1.0, 20.0]))
            except asyncio.CancelledError:
                if not self._sites.ended:
                    ledger.back(permit.url, unused=True)
                    self._progress.left(origin_of(permit.url))
                raise
        await self._inside(permit, ledger, chance, given_at, span)

    async def _inside(
        self, permit: Permit, ledger: Ledger | None, chance: Random, given_at: float, span: float
    ) -> None:
        handed = chance.random() < 0.1
        origin = origin_of(permit.url)
        try:
            await (_elsewhere(permit.__aenter__) if handed else permit.__aenter__())
        except asyncio.CancelledError:
            # It waits there for another turn where the first was too old; cancelled, it was not used.
            if ledger is not None and not self._sites.ended:
                ledger.back(permit.url, unused=True)
                self._progress.left(origin)
            raise
        observed: Observed | None = None
        request: Request | None = None
        error: BaseException | None = None
        try:
            if ledger is None:
                given_at = self.turns.pop(permit.url, self._now())
                self.granted += 1
                self._progress.granted(origin)
            request = self._judge.granted(origin, folder_of(permit.url), permit.url, given_at)
            self._trace.note("granted", permit.url)
            observed = Observed(permit, request, self)
            if self._visit is not None and ledger is not None:
                await self._visited(observed, self._visit)
            else:
                await self._behave(observed, chance, span)
        except BaseException as caught:
            error = caught
            raise
        finally:
            # The books first: when the block is left, the next may come in the same step.
            if request is not None and observed is not None and not self._sites.ended:
                self._left(observed, request, ledger, error)
            handed = handed and not isinstance(error, asyncio.CancelledError)
            try:
                await _leave(permit, error, handed=handed)
            finally:
                # Its traceback leads back here: whatever this task is given next would live as long as that circle.
                error = None

    async def _visited(self, permit: Observed, visit: Visit) -> None:
        """A user's own crawler. What its server said counts, also where it reports nothing."""
        try:
            await visit(permit, self._sites)
        except PageFailed:
            permit.failed = True
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the fault of what is tested
            self._trace.fail("the crawler under test does not fail", f"{error!r} at {permit.url}")
        page = self._sites.answered.get(permit.url)
        if page is not None and not permit.reported:
            self.reported(
                permit.request, permit.url, page.status, by="left without a report; the server said"
            )

    async def _behave(self, permit: Observed, chance: Random, span: float) -> None:
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
            odd = "headers" in self._plan.saboteurs
            permit.report(
                status=page.status, headers=odd_headers(chance, page.headers) if odd else page.headers
            )
        await _hold(chance, span)
        if chance.random() < 0.15:
            permit.retry(after=_after(chance))
        if chance.random() < 0.04:
            raise GaveUp(permit.url)

    def reported(self, request: Request, url: str, status: int, *, by: str) -> None:
        """The crawler reported: what the server sent counts, whatever came of it on the way."""
        page = self._sites.answered.get(url)
        retry_after = None if page is None or page.retry_after is None else float(page.retry_after)
        self._judge.reported(request, status, retry_after)
        failed = status >= 500 or status == 429
        self._progress.answered(request.origin, failed=failed, retry_after=retry_after)
        self._trace.note(
            "reported",
            url,
            status,
            f"({by} {None if page is None else page.status}, {page and page.headers})",
        )

    def asked_again(self, url: str, after: float, *, again: bool) -> None:
        """The crawler asked for a retry."""
        self._trace.note("retry", url, f"after {after:g} s", "granted" if again else "refused")

    def _left(
        self, permit: Observed, request: Request, ledger: Ledger | None, error: BaseException | None
    ) -> None:
        self._judge.left(request)
        if request.reported is None:
            self._progress.answered(request.origin, failed=permit.failed or isinstance(error, Exception))
        self._progress.left(request.origin)
        self._trace.note("left", permit.url, "" if error is None else type(error).__name__)
        if ledger is None:
            return
        if error is not None or permit.after is not None:
            ledger.back(permit.url, after=permit.after or 0.0)
        else:
            ledger.ended(permit.url, "done")


def _after(chance: Random) -> float:
    return chance.choice([0.0, 0.0, 1.0, 3.0, 30.0])


async def _hold(chance: Random, span: float) -> None:
    if chance.random() < 0.1:
        await asyncio.sleep(chance.choice([0.0, 0.1, 1.0, min(20.0, span / 10)]))


async def _leave(permit: Permit, error: BaseException | None, *, handed: bool) -> None:
    leave = partial(permit.__aexit__, None if error is None else type(error), error, None)
    await (_elsewhere(leave) if handed else leave())


async def _elsewhere(work: Callable[[], Awaitable[_T]]) -> _T:
    """In a task of its own: permits are handed from task to task."""

    async def run() -> _T:
        return await work()

    return await asyncio.create_task(run())


def origin_of(url: str) -> str:
    """scheme://host of a URL that the world made."""
    scheme, _, host, *_ = url.split("/")
    return f"{scheme}//{host}"


def folder_of(url: str) -> str:
    """The first folder of its path."""
    return url.split("/")[3]
