"""Why one URL waits, or does not come: what its rules, its origin's queue and the latest events say. Nothing is fetched for it."""

import asyncio
from typing import Any

from polite.errors import PoliteError, redact_url
from polite.frontier.parts import Parts
from polite.gate.explanation import Explanation, explained
from polite.gate.services import Services
from polite.origin import Target
from polite.robots.reason import Reason
from polite.status.recorder import Recorder
from polite.status.rows import Rows

# Events of the URL and its origin.
_EVENTS = 10
# How long a store may take to say whether it knows the URL (seconds).
_PATIENCE_S = 2.0


class UrlReports:
    """Reports about URLs. It has no effect on the crawl: no robots.txt is fetched, and no turn taken."""

    def __init__(self, services: Services, parts: Parts | None, rows: Rows, recorder: Recorder) -> None:
        self._services = services
        self._parts = parts
        self._rows = rows
        self._recorder = recorder

    async def of(self, url: str) -> dict[str, Any]:
        """Return the report. Raises InvalidURL."""
        target = Target.of(url)
        known = self._services.origins.last_known(target.origin)
        explanation = None if known is None else await explained(self._services, target, known)
        report: dict[str, Any] = {
            "url": redact_url(target.url),
            "origin": target.origin.text,
            "allowed": None if explanation is None else explanation.decision.allowed,
            "explanation": None if explanation is None else str(explanation),
            "queue": self._queue(target),
            "task": await self._task(target),
            "events": [
                each._asdict() for each in self._recorder.noted_of(target.url, target.origin.text)[:_EVENTS]
            ],
        }
        report["verdict"] = _verdict(report["task"], report["queue"], explanation)
        return report

    def _queue(self, target: Target) -> dict[str, Any] | None:
        queue = None if self._parts is None else self._parts.dispatcher.queue_of(target.origin)
        return None if queue is None else self._rows.of_queue(queue)

    async def _task(self, target: Target) -> str:
        """Return how far the URL is: "in flight", "put", "unknown", or "no frontier"."""
        parts = self._parts
        if any(holder.url == target.url for holder in self._services.held_turns.values()):
            return "in flight"
        if parts is None:
            return "no frontier"
        try:
            return await self._seen(parts, target)
        except PoliteError:
            return "unknown"

    async def _seen(self, parts: Parts, target: Target) -> str:
        seen = parts.store.seen(target, None, again=False)
        if not isinstance(seen, bool):
            # Not cancelled if it takes long: the store is to answer it still.
            asked = asyncio.ensure_future(seen)
            done, _ = await asyncio.wait([asked], timeout=_PATIENCE_S)
            if not done:
                return "unknown"
            seen = asked.result()
        return "put" if seen else "never put"


def _verdict(task: str, queue: dict[str, Any] | None, explanation: Explanation | None) -> str:
    """Return the answer in one sentence."""
    decision = None if explanation is None else explanation.decision
    if task == "in flight":
        return "It is in flight: a worker has its permit."
    if decision is not None and decision.reason is not Reason.UNREACHABLE and not decision.allowed:
        return f"It does not come: it is {decision}."
    if task == "never put":
        return "It does not come: it was never put into this frontier, or that was forgotten."
    if queue is not None:
        return f"Unless it has ended, it waits with its origin: for {queue['text']}."
    if decision is not None and not decision.allowed:
        return "It may not be fetched for now: robots.txt of its origin is out of reach."
    if task == "put":
        return "It has ended, or waits in the store: nothing of its origin waits in memory."
    if decision is None:
        return "Nothing is known of its origin: its robots.txt was not fetched in this run."
    return "It may be fetched when its turn comes."
