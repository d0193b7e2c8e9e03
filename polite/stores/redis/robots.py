"""Keeps robots.txt results and long back-offs on a Redis or Valkey server, for all processes that crawl together."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from polite.errors import StoreFailed
from polite.log import fields, log
from polite.origin import Origin
from polite.ports import Clock, SavedBackOff, later
from polite.robots.snapshot import Snapshot, merged
from polite.stores import codec
from polite.stores.redis.link import Patience, RedisLink, Script
from polite.stores.redis.step import PATIENCE_S

_SCRIPT = Script("robots")
# After its end a result still says since when a server fails (RFC 9309, 2.3.1.4), and has the last good copy.
_KEPT_AFTER_S = 30 * 86_400.0
# What a throttle remembers is kept for so long.
_MEMORY_S = 7 * 86_400.0
# Beyond this the result is kept for ever.
_LONGEST_S = 100 * 365 * 86_400.0
# How often a write is tried against others that write the same origin, and which are few: its owners.
_MAX_ATTEMPTS = 100
_MAX_PENDING = 10_000
# Back-offs read together with snapshots: how many, and for how long they answer `held` (seconds).
_MAX_READ, _READ_FOR_S = 1_000, 1.0
_CLOSE_S = 5.0


# A value that is written, and for how many seconds it is kept; and what makes it of the value before.
_New = tuple[bytes, float]
_Renewing = Callable[[bytes | None], _New]
_NOTHING: _New = (b"", 0.0)


class _Reply(NamedTuple):
    done: bool
    kept: bytes | None
    held: bytes | None


class RedisStore:
    """A RobotsStore and BackOffStore on a shared server. Dates are kept in the server's time.

    While the server is away, calls wait for `patience_s` and then raise StoreFailed. No memory takes its place: each process would
    fetch the same robots.txt, and would not know the others' back-offs.

    Args:
        link: The connection, which `close` leaves open.
        clock: Dates what this process saves and reads.
        patience_s: Seconds to wait while the server is away.
    """

    def __init__(self, link: RedisLink, clock: Clock, *, patience_s: float = PATIENCE_S) -> None:
        self._link = link
        self._clock = clock
        self._patience = Patience(link.name, clock, patience_s)
        # The server's (Unix), and when it was read (lasting).
        self._server_time: tuple[float, float] | None = None
        self._read: OrderedDict[Origin, tuple[float, bytes | None]] = OrderedDict()
        self._pending: dict[Origin, SavedBackOff] = {}
        self._writing: asyncio.Task[None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<RedisStore at {self._link.name}>"

    async def load(self, origin: Origin) -> Snapshot | None:
        """Return the origin's latest snapshot, or None. Raises StoreFailed."""
        reply = await self._run(origin, "load")
        self._read[origin] = self._clock.monotonic(), reply.held
        if len(self._read) > _MAX_READ:
            self._read.popitem(last=False)
        return self._snapshot(origin, reply.kept)

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep the snapshot, merged with the one that this or another process saved before (see `RobotsStore`).

        Raises:
            StoreFailed: The server cannot be used.
        """
        self._closed = False
        kept = None if self._server_time is not None else (await self._run(origin, "load")).kept

        def joined(kept: bytes | None) -> tuple[bytes, float]:
            both = merged(self._snapshot(origin, kept), snapshot, self._clock.wall())
            left_s = both.expires_at - self._clock.wall() + _KEPT_AFTER_S
            return codec.encoded(codec.row(str(origin), both.shifted(self._ahead_s))), left_s

        await self._replace(origin, "save", kept, joined)
        await self._write_back_offs()

    def hold(self, origin: Origin, back_off: SavedBackOff) -> None:
        """Keep a back-off, unless a kept one ends later. It is durable once a later `save`, or `close`, returns."""
        self._pending[origin] = later(back_off, self._pending.get(origin))
        if len(self._pending) > _MAX_PENDING:
            first = min(self._pending, key=lambda each: self._pending[each].until)
            del self._pending[first]
        if self._closed:
            text = "a back-off of %s came after %r was closed: it is saved if the store is used again"
            log.warning(
                text, origin, self, extra=fields("back_off_late", origin=origin, store=self._link.name)
            )
        elif self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write_in_background())

    async def held(self, origin: Origin) -> SavedBackOff | None:
        """Return the origin's back-off, over or not, or None. Raises StoreFailed."""
        at, value = self._read.pop(origin, (0.0, None))
        if not at or self._clock.monotonic() - at > _READ_FOR_S:
            value = (await self._run(origin, "load")).held
        found, pending = self._back_off(origin, value), self._pending.get(origin)
        return found if pending is None else later(pending, found)

    async def close(self) -> None:
        """Write the back-offs that wait, for 5 s at most. May be called twice."""
        self._closed = True
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel()
            await asyncio.wait([writing])
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._write_back_offs()
        except StoreFailed as error:
            log.warning("%s not saved: %s", self._waiting, error, extra=self._unsaved(error))
        except TimeoutError:
            text, extra = "%s not saved within %g s at %s", self._unsaved(None)
            log.warning(text, self._waiting, _CLOSE_S, self._link.name, extra=extra)

    async def _write_in_background(self) -> None:
        try:
            await self._write_back_offs()
        except StoreFailed as error:
            # They stay, and go with the next save.
            log.warning("%s not saved yet: %s", self._waiting, error, extra=self._unsaved(error))

    def _unsaved(self, error: BaseException | None) -> dict[str, object]:
        return fields("back_offs_unsaved", store=self._link.name, error=error, count=len(self._pending))

    @property
    def _waiting(self) -> str:
        return "1 back-off was" if len(self._pending) == 1 else f"{len(self._pending)} back-offs were"

    async def _write_back_offs(self) -> None:
        """Write all that wait. One stays until it is written, so that a cancellation loses none."""
        while self._pending:
            origin, back_off = next(iter(self._pending.items()))
            await self._write_back_off(origin, back_off)
            if self._pending.get(origin) is back_off:
                del self._pending[origin]

    async def _write_back_off(self, origin: Origin, back_off: SavedBackOff) -> None:
        def last(held: bytes | None) -> tuple[bytes, float]:
            last = later(back_off, self._back_off(origin, held))
            moved = replace(last, since=last.since + self._ahead_s, until=last.until + self._ahead_s)
            row = codec.back_off_row(str(origin), moved)
            left_s = last.left_s(self._clock.wall()) + 1.0
            return codec.encoded(row), max(left_s, _MEMORY_S) if last.memory else left_s

        await self._replace(origin, "hold", (await self._run(origin, "load")).held, last)

    async def _replace(self, origin: Origin, action: str, before: bytes | None, new: _Renewing) -> None:
        """Write what `new` makes of the value before, and for how many seconds it is kept, until no other write comes between."""
        for _ in range(_MAX_ATTEMPTS):
            reply = await self._run(origin, action, before, new(before))
            if reply.done:
                return
            before = reply.kept if action == "save" else reply.held
        raise StoreFailed(f"{self._link.name}: {origin} is written by too many processes at one time")

    async def _run(
        self, origin: Origin, action: str, before: bytes | None = None, new: _New = _NOTHING
    ) -> _Reply:
        value, keep_s = new
        key = f"polite:{{r:{origin}}}"
        keep_ms = str(int(max(keep_s, 1.0) * 1_000)) if keep_s < _LONGEST_S else ""
        sent = self._clock.lasting()
        done, seconds, microseconds, kept, held = await self._patience.wait_for(
            lambda: self._link.run(_SCRIPT, [key, f"{key}:b"], action, _sum(before), value, keep_ms)
        )
        # Of a call that was repeated the time is of no use: when it was read is unknown by the whole wait.
        if self._server_time is None or self._clock.lasting() - sent < 1.0:
            self._server_time = int(seconds) + int(microseconds) / 1e6, self._clock.lasting()
        return _Reply(done == 1, kept, held)

    @property
    def _ahead_s(self) -> float:
        """How far the server's clock is ahead of this process's. Whole seconds: dates then come back as they were saved."""
        if self._server_time is None:
            return 0.0
        server, at = self._server_time
        return float(round(server + self._clock.lasting() - at - self._clock.wall()))

    def _snapshot(self, origin: Origin, value: bytes | None) -> Snapshot | None:
        try:
            row = None if value is None else codec.decoded(str(origin), value, codec.COLUMNS)
            return None if row is None else codec.snapshot(row).shifted(-self._ahead_s)
        except codec.Unreadable as error:
            log.warning("%r: %s; it is fetched again", self, error, extra=self._damaged(origin, error))
            return None

    def _back_off(self, origin: Origin, value: bytes | None) -> SavedBackOff | None:
        try:
            row = None if value is None else codec.decoded(str(origin), value, codec.BACK_OFF_COLUMNS)
            found = None if row is None else codec.back_off(row)
        except codec.Unreadable as error:
            log.warning("%r: %s", self, error, extra=self._damaged(origin, error))
            return None
        return found and replace(found, since=found.since - self._ahead_s, until=found.until - self._ahead_s)

    def _damaged(self, origin: Origin, error: BaseException) -> dict[str, object]:
        return fields("row_damaged", origin=origin, store=self._link.name, error=error)


def _sum(value: bytes | None) -> str:
    return "" if value is None else hashlib.sha1(value, usedforsecurity=False).hexdigest()
