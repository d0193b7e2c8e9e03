"""Places in memory for the origins of a frontier's file: who comes in, with which tasks, and who leaves."""

import sqlite3

from polite.stores.queue_batch import Leave, Picked, Row
from polite.stores.queue_schema import Order

_ROW = "number, path, priority, depth, deadline, not_before, tries, payload"


class Places:
    """Every method may raise sqlite3.Error. `window`: tasks of an origin that come into memory with it."""

    def __init__(self, order: Order, window: int) -> None:
        self._order = order
        self._window = window
        key = order.key or "0"
        # The words in these are ours.
        self._heads = f"SELECT {_ROW} FROM tasks WHERE origin = ? AND place = 0 ORDER BY {order.by} LIMIT ?"  # noqa: S608
        self._head = f"SELECT {key} FROM tasks WHERE origin = ? AND place = 0 ORDER BY {order.by} LIMIT 1"  # noqa: S608

    def load(self, connection: sqlite3.Connection, origin: int, count: int) -> list[Row]:
        """The first tasks of an origin that may go."""
        return connection.execute(self._heads, (origin, count)).fetchall()

    def leave(self, connection: sqlite3.Connection, leave: Leave, now: float) -> None:
        """The origin stands in line again, if it has something to do."""
        head = connection.execute(self._head, (leave.origin_id,)).fetchone()
        since, best = (None, None) if head is None else (now, head[0])
        if leave.until is not None and since is not None:
            since, best = leave.until, None
        connection.execute(
            "UPDATE origins SET active = 0, since = ?, best = ?, failures = ? WHERE id = ?",
            (since, best, leave.failures, leave.origin_id),
        )

    def pick(self, connection: sqlite3.Connection, count: int, now: float) -> tuple[list[Picked], bool]:
        """Those that waited longest; where the order looks at more, half of the places are for those with the best tasks."""
        if not count:
            return [], True
        chosen: dict[int, tuple[str, int, float | None]] = {}
        longest = count if self._order.key is None else (count + 1) // 2
        columns = "SELECT id, text, failures, crawl_delay FROM origins"
        waited = connection.execute(
            f"{columns} WHERE since <= ? ORDER BY since LIMIT ?",
            (now, longest),
        ).fetchall()
        for origin, *rest in waited:
            chosen[origin] = (*rest,)
        if self._order.key is not None:
            best = f"{columns} WHERE best IS NOT NULL ORDER BY best LIMIT ?"
            for origin, *rest in connection.execute(best, (count,)).fetchall():
                if len(chosen) < count:
                    chosen.setdefault(origin, (*rest,))
        picked = []
        for origin, (text, failures, crawl_delay) in chosen.items():
            rows = self.load(connection, origin, self._window)
            active = 1 if rows else 0
            connection.execute(
                "UPDATE origins SET since = NULL, best = NULL, active = ? WHERE id = ?", (active, origin)
            )
            if rows:
                picked.append(Picked(origin, text, failures, crawl_delay, rows))
        return picked, len(waited) == longest

    def next_at(self, connection: sqlite3.Connection, now: float) -> float | None:
        """When the next origin or task may come (Unix time)."""
        times = [
            connection.execute(
                "SELECT since FROM origins WHERE since > ? ORDER BY since LIMIT 1", (now,)
            ).fetchone(),
            connection.execute("SELECT later FROM tasks WHERE place = 2 ORDER BY later LIMIT 1").fetchone(),
        ]
        return min((float(time[0]) for time in times if time is not None), default=None)
