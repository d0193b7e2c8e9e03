"""The line of a frontier's file: origins with something to do that wait for a place in memory."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any


class WaitingOrigins:
    """Origins that got something to do: those that are not in memory stand in line now, each with its best task's key."""

    def __init__(self) -> None:
        self._best: dict[int, float] = {}

    def add(self, origin: int, key: float) -> None:
        best = self._best.get(origin)
        if best is None or key < best:
            self._best[origin] = key

    def join(self, rows: Iterable[Sequence[Any]]) -> None:
        for origin, key in list(rows):
            self.add(origin, key)

    def write(self, connection: sqlite3.Connection, now: float) -> None:
        """Who was put off stays so; who stands in line keeps the place."""
        connection.executemany(
            """
            UPDATE origins SET since = ifnull(since, ?),
                best = CASE WHEN since > ? THEN NULL ELSE min(ifnull(best, ?), ?) END
            WHERE id = ? AND active = 0
            """,
            # Python 3.14 takes no tuple for numbered placeholders (?1).
            [(now, now, key, key, origin) for origin, key in self._best.items()],
        )
