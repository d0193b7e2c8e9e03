"""Room in a robots store's file: what goes when there is not enough, and what never does."""

import sqlite3
from collections.abc import Sequence

# So much of a bound is freed at one time, so that it is not looked for at each save.
_SLACK = 20
# Rows that go between two looks at the size.
_AT_ONCE = 100
# Between two counts at least so many saves pass, where the bound allows it: a count reads the whole index.
_COUNT_EVERY = 1_000
# A back-off is forgotten so long after its end, a clock that is a month ahead for once notwithstanding; sooner for want of room.
_GRACE_S = 40 * 86_400.0
_LEAST_GRACE_S = 86_400.0

# What was used longest ago, saved or read, goes first. A server that failed and may not be asked again yet is not forgotten.
_FORGET = """
    DELETE FROM robots WHERE saved IN
    (SELECT saved FROM robots WHERE NOT (failures > 0 AND expires_at > ?) ORDER BY saved LIMIT ?)
"""


_MOVE = "UPDATE robots SET saved = (SELECT max(saved) FROM robots) + 1 WHERE origin = ? AND saved <= ?"


class Room:
    """At most `max_origins` snapshots, in `max_bytes` octets of the file; back-offs still running go beyond, if they must.

    To be asked within the transaction that saves. Where several processes share a file, each may be a twentieth late.
    """

    def __init__(self, max_origins: int, max_bytes: int) -> None:
        self._max_origins = max_origins
        self._max_bytes = max_bytes
        self._left = 0  # saves until the next count

    def spare(self, connection: sqlite3.Connection, used: Sequence[str]) -> None:
        """What was read goes later. Only the older half is moved, since to move a row is to write it again."""
        if used:
            oldest, latest = (
                connection.execute(f"SELECT {end}(saved) FROM robots").fetchone()[0] or 0  # noqa: S608 - min or max
                for end in ("min", "max")
            )
            connection.executemany(_MOVE, ((name, (oldest + latest) // 2) for name in used))

    def make(self, connection: sqlite3.Connection, saved: int, now: float) -> None:
        """After so many saves: forget what is over, and what there is no room for. `now` is in wall seconds."""
        self._left -= saved
        if self._left < 0:
            self._count(connection, now)
        spare = self._max_bytes // _SLACK
        if self._used(connection) > self._max_bytes:
            _expire(connection, now - _LEAST_GRACE_S)
            while self._used(connection) > self._max_bytes - spare:
                if not connection.execute(_FORGET, (now, _AT_ONCE)).rowcount:
                    break

    def _count(self, connection: sqlite3.Connection, now: float) -> None:
        _expire(connection, now - _GRACE_S)
        known = int(connection.execute("SELECT count(*) FROM robots").fetchone()[0])
        if known > self._max_origins:
            too_many = known - self._max_origins + self._max_origins // _SLACK
            known -= connection.execute(_FORGET, (now, too_many)).rowcount
        often = max(_COUNT_EVERY, self._max_origins // _SLACK)
        self._left = max(0, min(self._max_origins - known, often))

    def _used(self, connection: sqlite3.Connection) -> int:
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


def _expire(connection: sqlite3.Connection, before: float) -> None:
    """Back-offs that have been over for long, and not only by a clock that was set to the wrong hour."""
    connection.execute("DELETE FROM back_offs WHERE until <= ?", (before,))
