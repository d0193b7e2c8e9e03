"""Rows of a frontier's file with their checksums: a row that was damaged is noticed before anything of it is used."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from polite.stores.checksum import checksum
from polite.stores.connection import Damaged
from polite.stores.queue_batch import Row

# The columns of a Row, in its order.
TASK = "number, path, priority, depth, deadline, not_before, tries, payload"


def task_sum(origin: object, *row: object) -> int:
    """Return the checksum of a task's row. It covers the text of its origin too, and with it the whole URL."""
    return checksum((origin, *row))


def origin_sum(text: object, failures: object, crawl_delay: object) -> int:
    """Return the checksum of an origin's row. Its place in line is not covered: damage there costs time only."""
    return checksum((text, failures, crawl_delay))


def sound_task(origin: object, found: Sequence[Any]) -> Row:
    """Return the Row of what was found in the columns `TASK, sum`. Raises Damaged."""
    *row, expected = found
    if task_sum(origin, *row) != expected:
        raise Damaged(f"row {row[0]} of tasks does not match its checksum")
    return tuple(row)


def origin_text(connection: sqlite3.Connection, origin: int) -> str:
    """Return an origin's text. A task's checksum covers it. Raises Damaged."""
    found = connection.execute("SELECT text FROM origins WHERE id = ?", (origin,)).fetchone()
    if found is None:
        raise Damaged(f"row {origin} of origins is gone, and was asked for")
    return found[0]  # type: ignore[no-any-return]


def change_origin(connection: sqlite3.Connection, origin: int, **changed: float | None) -> None:
    """Write an origin's `failures` or `crawl_delay`. Raises Damaged."""
    text, failures, crawl_delay = sound_origin(connection, origin)
    values = changed.get("failures", failures), changed.get("crawl_delay", crawl_delay)
    connection.execute(
        "UPDATE origins SET failures = ?, crawl_delay = ?, sum = ? WHERE id = ?",
        (*values, origin_sum(text, *values), origin),
    )


def sound_origin(connection: sqlite3.Connection, origin: int) -> tuple[str, int, float | None]:
    """Return an origin's text, failures and crawl delay. Raises Damaged."""
    found = connection.execute(
        "SELECT text, failures, crawl_delay, sum FROM origins WHERE id = ?", (origin,)
    ).fetchone()
    if found is None or origin_sum(*found[:-1]) != found[-1]:
        raise Damaged(f"row {origin} of origins does not match its checksum")
    return found[:-1]  # type: ignore[no-any-return]
