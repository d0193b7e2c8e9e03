"""Rows of a queue file and their checksums: damage is found before a row is used."""

import sqlite3
from collections.abc import Sequence
from marshal import dumps
from typing import Any
from zlib import crc32

from polite.frontier.durable.batch import Put, Row
from polite.stores.database import Damaged


class DamagedRows(Damaged):
    """Rows of one table do not match their checksums. The rest of the file may be sound.

    Attributes:
        numbers: The rows' numbers.
    """

    def __init__(self, table: str, numbers: Sequence[int]) -> None:
        super().__init__(f"row {numbers[0]} of {table} does not match its checksum")
        self.numbers = numbers


# Version 2 of marshal writes each value with its type and without references to other values. Python has had it since 2.5. It
# takes a fifth of the time of `repr`.
_VERSION = 2


def checksum(values: object, start: int = 0) -> int:
    """Return the CRC-32 of a value or of a tuple of values. It detects each flipped bit.

    An int and an equal float have different checksums. Pass the values as the columns will hold them (`as_number`, `as_real`).

    Args:
        values: None, int, float, str or bytes, or a tuple of these.
        start: The checksum of the values before these.
    """
    return crc32(dumps(values, _VERSION), start)  # type: ignore[arg-type]


def as_number(value: float) -> float:
    """Return a number as a NUMERIC column returns it: an int, if it is a whole number of 64 bits."""
    if type(value) is float and value.is_integer() and -(2.0**63) < value < 2.0**63:
        return int(value)
    return value


def as_real(value: float | None) -> float | None:
    """Return a number as a REAL column returns it: a float, and 0.0 for -0.0."""
    return None if value is None else float(value) + 0.0


# The columns of a Row, in its order.
TASK = "number, path, priority, depth, deadline, not_before, tries, payload, identity"
# The columns that the checksum of an origin's row covers, and the checksum.
ORIGIN = "text, failures, crawl_delay, sum"


def new_row(number: int, put: Put) -> Row:
    """Return the Row of a task that is put, with each value as its column gives it back."""
    return (
        number,
        put.path,
        # Nearly every task has integers, and no times.
        put.priority if type(put.priority) is int else as_number(put.priority),
        put.depth if type(put.depth) is int else as_number(put.depth),
        None if put.deadline is None else as_real(put.deadline),
        None if put.not_before is None else as_real(put.not_before),
        0,
        put.payload,
        put.identity,
    )


def covered(row: tuple[object, ...]) -> tuple[object, ...]:
    """Return the columns of a Row that its checksum covers: files before version 3 have no identities."""
    return row if row[-1] is not None else row[:-1]


def row_sum(origin: object, row: tuple[object, ...]) -> int:
    """Return the checksum of a Row. It covers the text of its origin too, and with it the whole URL."""
    return checksum(covered(row), checksum(origin))


def task_sum(origin: object, *row: object) -> int:
    """Return the checksum of a Row whose columns are given one by one."""
    return row_sum(origin, row)


def origin_sum(text: object, failures: object, crawl_delay: object) -> int:
    """Return the checksum of an origin's row. When it becomes active is not covered: damage there costs time only."""
    return checksum((text, failures, crawl_delay))


def sound_task(origin: str, found: tuple[Any, ...]) -> Row:
    """Return the Row of what was found in the columns `TASK, sum`. Raises DamagedRows."""
    row = found[:-1]
    if row_sum(origin, row) != found[-1]:
        raise DamagedRows("tasks", row[:1])
    return row


def sound_tasks(origin: str, found: Sequence[tuple[Any, ...]]) -> list[Row]:
    """Return the Rows of several tasks of an origin. Raises DamagedRows."""
    start = checksum(origin)
    rows = [each[:-1] for each in found]
    damaged = [
        each[0] for row, each in zip(rows, found, strict=True) if checksum(covered(row), start) != each[-1]
    ]
    if damaged:
        raise DamagedRows("tasks", damaged)
    return rows


def origin_text(connection: sqlite3.Connection, origin: int) -> str:
    """Return an origin's text. A task's checksum covers it. Raises Damaged."""
    found = connection.execute("SELECT text FROM origins WHERE id = ?", (origin,)).fetchone()
    if found is None:
        raise Damaged(f"row {origin} of origins is gone, and was requested")
    return found[0]  # type: ignore[no-any-return]


def change_origin(connection: sqlite3.Connection, origin: int, **changed: float | None) -> None:
    """Write an origin's `failures` or `crawl_delay`. Raises Damaged."""
    found = connection.execute(f"SELECT {ORIGIN} FROM origins WHERE id = ?", (origin,)).fetchone()  # noqa: S608 - the words are ours
    text, failures, crawl_delay = sound_origin(origin, found)
    values = changed.get("failures", failures), as_real(changed.get("crawl_delay", crawl_delay))
    connection.execute(
        "UPDATE origins SET failures = ?, crawl_delay = ?, sum = ? WHERE id = ?",
        (*values, origin_sum(text, *values), origin),
    )


def sound_origin(origin: int, found: tuple[Any, ...] | None) -> tuple[str, int, float | None]:
    """Return the text, failures and crawl delay of what was found in the columns ORIGIN. Raises Damaged."""
    if found is None or checksum(found[:-1]) != found[-1]:
        raise Damaged(f"row {origin} of origins does not match its checksum")
    return found[:-1]
