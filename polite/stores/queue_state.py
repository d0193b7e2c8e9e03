"""The state of a frontier's file: the last numbers that were given, and how many tasks came to which end."""

import sqlite3
from dataclasses import dataclass


@dataclass(slots=True)
class State:
    """The counts of a file."""

    number: int = 0
    sequence: int = 0
    remembered: int = 0
    waiting: int = 0
    done: int = 0
    refused: int = 0
    dropped: int = 0

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> "State":
        row = connection.execute(
            "SELECT number, sequence, remembered, waiting, done, refused, dropped FROM frontier"
        ).fetchone()
        return cls(*row)

    def write(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "UPDATE frontier SET number = ?, sequence = ?, remembered = ?, waiting = ?, done = ?, refused = ?, dropped = ?",
            (
                self.number,
                self.sequence,
                self.remembered,
                self.waiting,
                self.done,
                self.refused,
                self.dropped,
            ),
        )

    def count(self, ended: dict[str, int]) -> None:
        self.done += ended.get("done", 0)
        self.refused += ended.get("refused", 0)
        self.dropped += ended.get("dropped", 0)

    def copy(self) -> "State":
        return State(
            self.number,
            self.sequence,
            self.remembered,
            self.waiting,
            self.done,
            self.refused,
            self.dropped,
        )
