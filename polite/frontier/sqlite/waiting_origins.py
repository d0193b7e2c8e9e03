"""Origins of a queue file that wait to become active."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any


class WaitingOrigins:
    """Collects the origins that a batch gives ready tasks, each with the least key of these."""

    def __init__(self) -> None:
        self._best: dict[int, float] = {}

    def add(self, origin: int, key: float) -> None:
        best = self._best.get(origin)
        if best is None or key < best:
            self._best[origin] = key

    def add_all(self, rows: Iterable[Sequence[Any]]) -> None:
        for origin, key in list(rows):
            self.add(origin, key)

    def write(self, connection: sqlite3.Connection, now: float) -> None:
        """Let those wait that are not active. A postponed origin stays postponed; one that waits already keeps its position."""
        connection.executemany(
            """
            UPDATE origins SET since = ifnull(since, ?),
                best = CASE WHEN since > ? THEN NULL ELSE min(ifnull(best, ?), ?) END
            WHERE id = ? AND active = 0
            """,
            # Python 3.14 takes no tuple for numbered placeholders (?1).
            [(now, now, key, key, origin) for origin, key in self._best.items()],
        )
