"""Eviction: which rows of a robots store's file are deleted when it reaches a limit."""

import sqlite3
from collections.abc import Sequence

# Eviction frees a twentieth of a limit, so that it does not run at each save.
_SLACK = 20
# Rows that are deleted between two checks of the size.
_AT_ONCE = 100
_VALIDATORS_AT_ONCE = 2_000
# The fewest saves between two counts, if the limit allows it: a count reads the whole index.
_COUNT_EVERY = 1_000
# A back-off is deleted 40 days after its end, since a clock may be a month ahead once; after a day if the file is full.
_GRACE_S = 40 * 86_400.0
_LEAST_GRACE_S = 86_400.0

# The least recently used rows are deleted first. The row of a server that failed is kept while its back-off runs.
_FORGET = """
    DELETE FROM robots WHERE saved IN
    (SELECT saved FROM robots WHERE NOT (failures > 0 AND expires_at > ?) ORDER BY saved LIMIT ?)
"""
_FORGET_VALIDATORS = """
    DELETE FROM validators WHERE saved IN (SELECT saved FROM validators ORDER BY saved LIMIT ?)
"""
_MOVE = "UPDATE robots SET saved = (SELECT max(saved) FROM robots) + 1 WHERE origin = ? AND saved <= ?"


class Evictor:
    """Keeps a file within its limits, least recently used first. Running back-offs may exceed the limits.

    Its methods run inside the transaction that saves. If several processes share a file, each may evict a twentieth late.

    Args:
        max_origins: The most snapshots.
        max_bytes: The largest size of the file (octets).
        max_urls: The most pages whose validators are kept.
    """

    def __init__(self, max_origins: int, max_bytes: int, max_urls: int) -> None:
        self._max_origins = max_origins
        self._max_urls = max_urls
        self._pages_left = 0  # until the next count of validators
        self._max_bytes = max_bytes
        self._saves_left = 0  # until the next count

    def mark_used(self, connection: sqlite3.Connection, used: Sequence[str]) -> None:
        """Note that rows were read. Only the older half is moved, since moving a row writes it again."""
        if used:
            oldest, latest = (
                connection.execute(f"SELECT {end}(saved) FROM robots").fetchone()[0] or 0  # noqa: S608 - min or max
                for end in ("min", "max")
            )
            connection.executemany(_MOVE, ((name, (oldest + latest) // 2) for name in used))

    def evict(self, connection: sqlite3.Connection, saved: int, now: float) -> None:
        """Delete what is over, and what exceeds the limits, after `saved` more saves. `now` is in wall seconds."""
        self._saves_left -= saved
        if self._saves_left < 0:
            self._count(connection, now)
        if self._used(connection) > self._max_bytes:
            # Without its validators a page is fetched whole. That costs less than decisions without robots.txt.
            self._shrink(connection, _FORGET_VALIDATORS, (_VALIDATORS_AT_ONCE,))
            _expire(connection, now - _LEAST_GRACE_S)
            self._shrink(connection, _FORGET, (now, _AT_ONCE))

    def evict_validators(self, connection: sqlite3.Connection, saved: int) -> None:
        """Delete the validators that exceed the limits, after those of `saved` more pages."""
        self._pages_left -= saved
        if self._pages_left < 0:
            known = int(connection.execute("SELECT count(*) FROM validators").fetchone()[0])
            if known > self._max_urls:
                too_many = known - self._max_urls + self._max_urls // _SLACK
                known -= connection.execute(_FORGET_VALIDATORS, (too_many,)).rowcount
            often = max(_COUNT_EVERY, self._max_urls // _SLACK)
            self._pages_left = max(0, min(self._max_urls - known, often))
        if self._used(connection) > self._max_bytes:
            self._shrink(connection, _FORGET_VALIDATORS, (_VALIDATORS_AT_ONCE,))

    def _shrink(self, connection: sqlite3.Connection, statement: str, values: Sequence[float]) -> None:
        """Delete rows, some at once, until the file has space again or no row is left."""
        enough = self._max_bytes - self._max_bytes // _SLACK
        while self._used(connection) > enough and connection.execute(statement, values).rowcount:
            pass

    def _count(self, connection: sqlite3.Connection, now: float) -> None:
        _expire(connection, now - _GRACE_S)
        known = int(connection.execute("SELECT count(*) FROM robots").fetchone()[0])
        if known > self._max_origins:
            too_many = known - self._max_origins + self._max_origins // _SLACK
            known -= connection.execute(_FORGET, (now, too_many)).rowcount
        often = max(_COUNT_EVERY, self._max_origins // _SLACK)
        self._saves_left = max(0, min(self._max_origins - known, often))

    def _used(self, connection: sqlite3.Connection) -> int:
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


def _expire(connection: sqlite3.Connection, before: float) -> None:
    """Delete back-offs that ended before a time."""
    connection.execute("DELETE FROM back_offs WHERE until <= ?", (before,))
