"""The operator's orders in an SQLite file of their own, beside a robots store: few rows, seldom changed, looked at often."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from typing import TypeVar

from polite.errors import InvalidOption, StoreFailed
from polite.log import fields, log
from polite.options import number
from polite.orders import KINDS, Order, pattern_of

T = TypeVar("T")
_TABLE = """
    CREATE TABLE IF NOT EXISTS orders (
        kind TEXT NOT NULL, pattern TEXT NOT NULL, because TEXT NOT NULL, by TEXT NOT NULL, at REAL NOT NULL, until REAL,
        PRIMARY KEY (kind, pattern)
    )
"""
# How long another process may keep the file locked. A file that changed so short a time ago may change again unseen (seconds).
_LOCKED_S, _LOOK_LOCKED_S, _RECENT_S = 5.0, 0.05, 2.0
# So long after their end, orders are forgotten.
KEPT_S = 86_400.0


class FileOrders:
    """An OrderStore in a file. It is made with the first order.

    Args:
        beside: The robots store: the file is named `robots.sqlite.orders`.
    """

    at_once = True

    def __init__(self, beside: Path) -> None:
        self.path: Path = Path(f"{beside}.orders")
        self._seen: tuple[int, int, int] | None = None

    def look(self) -> list[Order] | None:
        """Return the orders, if the file may have changed. Raises StoreFailed."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            before, self._seen = self._seen, None
            return None if before is None else []
        except OSError as error:
            raise StoreFailed(f"{self.path}: orders cannot be read: {error}") from error
        state = found.st_mtime_ns, found.st_size, found.st_ino
        if state == self._seen and time.time() - found.st_mtime > _RECENT_S:
            return None
        # The loop waits for it. What is locked is looked at again a second later.
        orders = self._do(_read, _LOOK_LOCKED_S)
        self._seen = state
        return orders

    async def load(self) -> list[Order]:
        """Return the orders. Raises StoreFailed."""
        return await asyncio.to_thread(self.look) or []

    async def keep(self, order: Order) -> None:
        """Keep an order. Raises StoreFailed."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM orders WHERE until < ?", (order.at - KEPT_S,))
            connection.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?, ?)", astuple(order))

        await asyncio.to_thread(self._do, work)

    async def forget(self, order: Order) -> None:
        """Forget an order. Raises StoreFailed."""

        def work(connection: sqlite3.Connection) -> None:
            named = order.kind, order.pattern
            connection.execute("DELETE FROM orders WHERE kind = ? AND pattern = ?", named)

        await asyncio.to_thread(self._do, work)

    def _do(self, work: Callable[[sqlite3.Connection], T], locked_s: float = _LOCKED_S) -> T:
        try:
            with closing(sqlite3.connect(self.path, timeout=locked_s)) as connection, connection:
                connection.execute(_TABLE)
                return work(connection)
        except (sqlite3.Error, OSError) as error:
            raise StoreFailed(f"{self.path}: orders cannot be read or kept: {error}") from error


def _read(connection: sqlite3.Connection) -> list[Order]:
    query = "SELECT kind, pattern, because, by, at, until FROM orders ORDER BY at LIMIT 10000"
    rows = connection.execute(query).fetchall()
    return [order for row in rows if (order := order_of(*row)) is not None]


def order_of(
    kind: object, pattern: object, because: object, by: object, at: object, until: object
) -> Order | None:
    """Return an order as it was kept; None for what is none, which is logged: a newer polite may have other kinds."""
    try:
        return Order(
            kind=next(each for each in KINDS if each == kind),
            pattern=pattern_of(pattern),
            because=because,  # type: ignore[arg-type]
            by=by,  # type: ignore[arg-type]
            at=number("at", at, least=0.0),
            until=None if until is None else number("until", until, least=0.0),
        )
    except (InvalidOption, StopIteration) as error:
        log.warning("an order cannot be read: %r", error, extra=fields("order_unreadable", error=error))
        return None
