"""Outage: since when a shared store does not respond, and who is told."""

import logging
from datetime import UTC, datetime

from polite.errors import StoreFailed
from polite.events import StoreAway, StoreBack
from polite.log import fields
from polite.ports import Clock, Listener

log: logging.Logger = logging.getLogger("polite")


class Outage:
    """One StoreAway event for an outage that lasts, and one StoreBack when it is over."""

    def __init__(self, store: str, clock: Clock, tell: Listener) -> None:
        self._store = store
        self._clock = clock
        self._tell = tell
        self._since: float | None = None
        self._told = False

    def began(self, since: float) -> float:
        """Note that there was no reply since then (monotonic). Return for how long there has been none."""
        if self._since is None:
            self._since = since
        return self._clock.monotonic() - self._since

    def lasts(self, because: str) -> None:
        """Tell it, once."""
        if not self._told:
            self._told = True
            extra = fields("store_away", store=self._store)
            log.warning(
                "%s does not respond: %s; the run goes on when it does", self._store, because, extra=extra
            )
            self._tell(StoreAway(self._store, because))

    def ended(self) -> None:
        """Note that the store responds."""
        if self._since is None:
            return
        away_s = self._clock.monotonic() - self._since
        self._since = None
        if self._told:
            self._told = False
            extra = fields("store_back", store=self._store)
            log.warning("%s responds again, after %.0f s", self._store, away_s, extra=extra)
            self._tell(StoreBack(self._store, away_s))

    def error(self, seconds: float, because: str) -> StoreFailed:
        """Return the error of a call that has waited for too long."""
        since = datetime.fromtimestamp(self._clock.wall() - seconds, UTC).isoformat(
            sep=" ", timespec="seconds"
        )
        return StoreFailed(
            f"{self._store} has not responded since {since} ({seconds:.0f} s); the last error: {because}",
            may_pass=True,
        )
