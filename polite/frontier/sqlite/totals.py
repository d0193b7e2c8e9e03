"""The totals of a queue file: the last numbers that were given, and how many tasks wait and ended."""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from operator import attrgetter

from polite.frontier.durable.batch import EndedTask
from polite.frontier.sqlite.rows import checksum
from polite.stores.database import Damaged


@dataclass(slots=True)
class State:
    """The one row of totals.

    Attributes:
        number: The last task's number.
        sequence: How many URLs were done.
        remembered: How many of them are remembered.
        time: The time of the last batch that changed something (Unix time that never goes back).
    """

    number: int = 0
    sequence: int = 0
    remembered: int = 0
    waiting: int = 0
    done: int = 0
    refused: int = 0
    dropped: int = 0
    time: float = 0.0

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> "State":
        """Read the totals. Raises Damaged."""
        rows = connection.execute(f"SELECT {_COLUMNS}, sum FROM frontier").fetchall()  # noqa: S608 - the words are ours
        if len(rows) != 1 or checksum(rows[0][:-1]) != rows[0][-1]:
            raise Damaged("the counts do not match their checksum")
        return cls(*rows[0][:-1])

    @classmethod
    def unsummed(cls, connection: sqlite3.Connection) -> "State":
        """Read the totals of a file of version 1, which has no checksums."""
        return cls(*connection.execute(f"SELECT {_COLUMNS} FROM frontier").fetchone())  # noqa: S608 - the words are ours

    def write(self, connection: sqlite3.Connection) -> None:
        values = _values(self)
        connection.execute(_WRITE, (*values, checksum(values)))

    def count(self, ended: Iterable[EndedTask]) -> None:
        """Count tasks by how they ended."""
        ends = Counter(each.end for each in ended)
        self.done += ends["done"]
        self.refused += ends["refused"]
        self.dropped += ends["dropped"]

    def copy(self) -> "State":
        return State(*_values(self))


_values = attrgetter(*(field.name for field in fields(State)))
_COLUMNS = ", ".join(field.name for field in fields(State))
_WRITE = f"UPDATE frontier SET ({_COLUMNS}, sum) = ({'?, ' * len(fields(State))}?)"  # noqa: S608 - the words are ours
