"""Which origins of a queue file become active, with which tasks, and which are deactivated."""

import sqlite3

from polite.frontier.durable.batch import Activation, Deactivation, Row
from polite.frontier.sqlite.rows import ORIGIN, TASK, change_origin, origin_text, sound_origin, sound_tasks
from polite.frontier.sqlite.schema import Order
from polite.frontier.sqlite.spent_budgets import SpentBudgets
from polite.stores.database import Damaged

_WAITED = f"SELECT id, {ORIGIN} FROM origins WHERE since <= ? ORDER BY since LIMIT ?"  # noqa: S608 - the words are ours
_BEST = f"SELECT id, {ORIGIN} FROM origins WHERE best IS NOT NULL ORDER BY best LIMIT ?"  # noqa: S608 - and these
_NEXT_WAITED = "SELECT id FROM origins WHERE since <= ? ORDER BY since LIMIT 1"
_NEXT_BEST = "SELECT id FROM origins WHERE best IS NOT NULL ORDER BY best LIMIT 1"
_OUTLOOK = """
    SELECT (SELECT id FROM origins WHERE since <= :now ORDER BY since LIMIT 1),
           (SELECT id FROM origins WHERE best IS NOT NULL ORDER BY best LIMIT 1),
           (SELECT since FROM origins WHERE since > :now ORDER BY since LIMIT 1),
           (SELECT later FROM tasks WHERE place = 2 ORDER BY later LIMIT 1)
"""
_DEACTIVATE = "UPDATE origins SET active = 0, since = ?, best = ? WHERE id = ?"

# Each uses an index, and the first nearly always finds a row.
_LEFT = (
    "SELECT 1 FROM origins WHERE active = 1 LIMIT 1",
    "SELECT 1 FROM origins WHERE since IS NOT NULL LIMIT 1",
    "SELECT 1 FROM tasks WHERE place = 1 LIMIT 1",
    "SELECT 1 FROM tasks WHERE place = 2 LIMIT 1",
)


class Activations:
    """Every method may raise sqlite3.Error and Damaged. `tasks_per_origin`: how many tasks an origin becomes active with.

    Attributes:
        budgets: What was spent of the budgets of origins.
    """

    def __init__(self, order: Order, tasks_per_origin: int) -> None:
        self._order = order
        self.budgets: SpentBudgets = SpentBudgets()
        self._tasks_per_origin = tasks_per_origin
        key = order.key or "0"
        # The words in these are ours.
        self._heads = (
            f"SELECT {TASK}, sum FROM tasks WHERE origin = ? AND place = 0 ORDER BY {order.by} LIMIT ?"  # noqa: S608
        )
        head = f"SELECT {key} FROM tasks WHERE origin = origins.id AND place = 0 ORDER BY {order.by} LIMIT 1"  # noqa: S608
        self._head = f"SELECT failures, ({head}) FROM origins WHERE id = ?"  # noqa: S608
        best = "NULL" if order.key is None else f"({head})"
        self.deactivate_all: str = f"UPDATE origins SET active = 0, since = 0, best = {best} WHERE active = 1"  # noqa: S608

    def load(self, connection: sqlite3.Connection, origin: int, count: int) -> list[Row]:
        """Return the first ready tasks of an origin."""
        return self._load(connection, origin, origin_text(connection, origin), count)

    def _load(self, connection: sqlite3.Connection, origin: int, text: str, count: int) -> list[Row]:
        return sound_tasks(text, connection.execute(self._heads, (origin, count)).fetchall())

    def deactivate(self, connection: sqlite3.Connection, change: Deactivation, now: float) -> None:
        """Let the origin wait to become active again, if it has ready tasks."""
        found = connection.execute(self._head, (change.origin_id,)).fetchone()
        if found is None:
            raise Damaged(f"row {change.origin_id} of origins is gone, and was in memory")
        failures, best = found
        since = None if best is None else now
        if change.until is not None and since is not None:
            since, best = change.until, None
        connection.execute(_DEACTIVATE, (since, best, change.origin_id))
        # Failures that were damaged, and are right by chance, are noticed when the origin comes in again.
        if failures != change.failures:
            change_origin(connection, change.origin_id, failures=change.failures)

    def activate(self, connection: sqlite3.Connection, count: int, now: float) -> list[Activation]:
        """Activate those that waited longest; if tasks have keys, half of them are those with the least keys."""
        if not count:
            return []
        longest = count if self._order.key is None else (count + 1) // 2
        waited = connection.execute(_WAITED, (now, longest)).fetchall()
        chosen = {found[0]: found[1:] for found in waited}
        if self._order.key is not None:
            for found in connection.execute(_BEST, (count,)).fetchall():
                if len(chosen) >= count:
                    break
                chosen.setdefault(found[0], found[1:])
        activated = []
        for origin, found in chosen.items():
            text, failures, crawl_delay = sound_origin(origin, found)
            rows = self._load(connection, origin, text, self._tasks_per_origin)
            active = 1 if rows else 0
            connection.execute(
                "UPDATE origins SET since = NULL, best = NULL, active = ? WHERE id = ?", (active, origin)
            )
            if rows:
                spent = self.budgets.read(connection, origin, text)
                activated.append(Activation(origin, text, failures, crawl_delay, rows, spent))
        if chosen and self._next(connection, now) in chosen:
            # An index with an entry that its table does not have would return it for ever.
            raise Damaged("an index of origins does not match its table")
        return activated

    def outlook(self, connection: sqlite3.Connection, now: float) -> tuple[bool, float | None]:
        """Return whether `activate` would find an origin, and when the next origin or task becomes ready (Unix time)."""
        waited, best, since, later = connection.execute(_OUTLOOK, {"now": now}).fetchone()
        origins_waiting = waited is not None or (best is not None and self._order.key is not None)
        times = [float(time) for time in (since, later) if time is not None]
        return origins_waiting, min(times, default=None)

    def none_left(self, connection: sqlite3.Connection) -> bool:
        """Return whether no origin has ready tasks, and no task is in flight or delayed."""
        return all(connection.execute(query).fetchone() is None for query in _LEFT)

    def _next(self, connection: sqlite3.Connection, now: float) -> int | None:
        found = connection.execute(_NEXT_WAITED, (now,)).fetchone()
        if found is None and self._order.key is not None:
            found = connection.execute(_NEXT_BEST).fetchone()
        return None if found is None else int(found[0])
