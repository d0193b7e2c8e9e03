"""A crawl on a shared store, as its server tells it: sessions, homes, and what waits. Asked every few seconds, if wanted."""

import asyncio
import math
from typing import Any

from polite.compose.shared import Membership, memberships
from polite.errors import StoreFailed
from polite.gate.background import start_later
from polite.gate.gate import Gate
from polite.ports import Clock

# Seconds between two questions to the server, and the limit on one.
_EVERY_S, _PATIENCE_S = 5.0, 3.0
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
        if found is None or self._asking is not None or now - self._asked_at < _EVERY_S:
            return
        self._asked_at = now
        self._asking = start_later(lambda: self._ask(found))
        self._asking.add_done_callback(self._asked)

    async def stop(self) -> None:
        """Ask no more."""
        self._asked_at = math.inf
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def _asked(self, task: "asyncio.Task[None]") -> None:
        self._asking = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self.last = {"error": f"{type(error).__name__}: {error}"}

    async def _ask(self, found: Membership) -> None:
        # Imported here: a crawl on one machine needs no package for it.
        from polite.stores.redis.inspector import SharedInspector
        from polite.stores.redis.patience import Patience

        inspector = SharedInspector(found.store, Patience(found.store.link.name, self._clock, _PATIENCE_S))
        try:
            partitions = await inspector.partitions(found.crawl, _LISTED)
        except StoreFailed as error:
            self.last = {"crawl": found.crawl, "store": found.store.link.name, "error": str(error)}
            return
        sessions: dict[str, dict[str, Any]] = {}
        for partition in partitions:
            for name, ends_s, homes, closed in partition.sessions:
                session = sessions.setdefault(
                    name, {"name": name, "ends_s": ends_s, "homes": 0, "closed": closed}
                )
                session["homes"] += homes
                session["ends_s"] = min(session["ends_s"], ends_s)
        self.last = {
            "crawl": found.crawl,
            "store": found.store.link.name,
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
