"""GivenUpOrigins: origins whose robots.txt could not be fetched, too often in a row."""

import asyncio
from collections.abc import Callable

from polite.errors import PoliteError, redact_url
from polite.gate.gate import Gate
from polite.integrations.scrapy.head import Head
from polite.robots.reason import Reason

# So many are remembered, the latest. The next request of another waits for robots.txt again.
_MAX_ORIGINS = 10_000


class RobotsGivenUp(PoliteError):
    """The robots.txt of a request's origin could not be fetched, too often in a row."""


class GivenUpOrigins:
    """Decides about further requests of such origins without waiting for a back-off.

    The frontier drops all of an origin's tasks when its robots.txt is given up, but it has the head of the queue only. Each further
    head would wait for as many tries again, with back-offs that grow: a site that is down would keep the crawl open for days.

    Args:
        readmit: Called with a head whose robots.txt is there again.
        refuse: Called with a head, and why it is refused.
    """

    def __init__(self, readmit: Callable[[Head], None], refuse: Callable[[Head, PoliteError], None]) -> None:
        self._readmit = readmit
        self._refuse = refuse
        self._buckets: dict[str, None] = {}
        self._checks: set[asyncio.Task[None]] = set()

    def __contains__(self, bucket: str) -> bool:
        return bucket in self._buckets

    def add(self, bucket: str) -> None:
        """The robots.txt of a bucket's origin was given up."""
        while len(self._buckets) >= _MAX_ORIGINS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[bucket] = None

    def check(self, gate: Gate, head: Head) -> None:
        """Readmit the head if the gate has its robots.txt by now, and refuse it otherwise."""
        checking = asyncio.ensure_future(self._check(gate, head))
        self._checks.add(checking)
        checking.add_done_callback(self._checks.discard)

    async def stop(self) -> None:
        """Decide nothing more."""
        checks = set(self._checks)
        for checking in checks:
            checking.cancel()
        if checks:
            await asyncio.wait(checks)

    async def _check(self, gate: Gate, head: Head) -> None:
        url = head.request.url
        error: PoliteError | None = None
        try:
            # Within a back-off, this says at once what is known. After it, robots.txt is fetched once more.
            decision = await gate.check(url)
            if decision.reason is Reason.UNREACHABLE:
                error = RobotsGivenUp(f"{redact_url(url)}: {decision}", url=url)
            else:
                self._buckets.pop(head.bucket, None)
        except Exception as failed:  # noqa: BLE001 - a head that nothing becomes of would keep the crawl open
            error = (
                failed
                if isinstance(failed, PoliteError)
                else RobotsGivenUp(f"{redact_url(url)}: {failed!r}", url=url)
            )
        if head.taken:
            return
        if error is None:
            self._readmit(head)
        else:
            self._refuse(head, error)
