"""Reads what waits in a queue file, for the command line. Takes no lock, and changes nothing."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from polite.errors import StoreFailed
from polite.frontier.durable.backend import Note
from polite.frontier.sqlite.schema import check, note_counts, read_note
from polite.stores.database import QUEUE_ID, WrongFile

# All tasks, each with its time if it is delayed.
_ALL = """(
    SELECT origin, number, path, tries, depth, payload, NULL AS later FROM tasks UNION ALL
    SELECT origin, number, path, tries, depth, payload, later FROM delayed
) AS waiting JOIN origins ON origins.id = waiting.origin"""
_OUT = "number IN (SELECT number FROM out)"
# The words in these are ours.
_PAYLOADS = f"SELECT text, path, payload FROM {_ALL} WHERE payload IS NOT NULL"  # noqa: S608
_WAITING_BY_ORIGIN = (
    f"SELECT text, count(*) AS count, crawl_delay FROM {_ALL} GROUP BY origin ORDER BY count DESC LIMIT ?"  # noqa: S608
)
_ORIGINS = f"SELECT text, count(*), sum({_OUT}), count(later), min(later), crawl_delay, failures FROM {_ALL}"  # noqa: S608
_BY_ORIGIN = f"{_ORIGINS} GROUP BY origin ORDER BY count(*) DESC, text LIMIT ?"
_ONE_ORIGIN = f"{_ORIGINS} WHERE text = ? GROUP BY origin"
_TASKS = (
    f"SELECT number, path, {_OUT}, later, tries, depth FROM {_ALL} WHERE text = ? ORDER BY number LIMIT ?"  # noqa: S608
)
_TOTALS = "SELECT waiting, done, refused, dropped, remembered FROM frontier"
_WAITING_NOTES = f"SELECT kind, count(*) FROM {_ALL} JOIN notes ON notes.name = text || path GROUP BY kind"  # noqa: S608
_ALL_ORIGINS = "SELECT count(*) FROM origins"
_LOCKED = "a crawl has it open; its own progress shows what waits"
# Seconds. A frontier keeps its file locked until it ends.
_BUSY_TIMEOUT_S = 0.5

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class QueueTotals:
    """The counts of a whole file.

    Attributes:
        known: how many URLs ended and are remembered; one that was put again is counted once.
        notes: the number of notes of each kind that a program keeps beside the tasks, without those about tasks that wait.
    """

    waiting: int
    done: int
    refused: int
    dropped: int
    known: int
    origins: int
    notes: dict[str, int]


@dataclass(frozen=True, slots=True)
class QueuedOrigin:
    """An origin with tasks.

    Attributes:
        waiting: all its tasks.
        in_flight: those that a worker had when the file was last written.
        delayed: those that become ready later.
        ready_at: when the first of the delayed ones becomes ready (Unix time), or None.
        crawl_delay: the Crawl-delay that was last known (seconds), or None.
        failures: how often in a row its robots.txt was unreachable, or no turn could be had.
    """

    origin: str
    waiting: int
    in_flight: int
    delayed: int
    ready_at: float | None
    crawl_delay: float | None
    failures: int


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """A task: its path, state, and Unix time when it becomes ready, or None."""

    number: int
    path: str
    state: str
    ready_at: float | None
    tries: int
    depth: int


def waiting_by_origin(path: Path, limit: int) -> list[tuple[str, int, float | None]]:
    """Return the origins with the most waiting tasks: text, number of tasks, Crawl-delay.

    Empty if the file does not exist or has no tables yet, or if it cannot be read now: a frontier that opens it tells why.

    Raises:
        StoreFailed: The file is not a queue file.
    """
    if not path.is_file():
        return []
    try:
        with closing(_connect(path)) as connection:
            check(connection)
            return connection.execute(_WAITING_BY_ORIGIN, (limit,)).fetchall()
    except WrongFile as error:
        raise StoreFailed(f"{path} {error}") from error
    except sqlite3.Error as error:
        if _is_no_database(error):
            raise StoreFailed(f"{path} is not a queue file ({error}): name another file") from error
        return []


def waiting_payloads(path: Path) -> Iterator[tuple[str, object]]:
    """Yield the URL and the payload of each waiting task that has one. A file that cannot be read now has none."""
    with suppress(sqlite3.Error, ValueError, RecursionError), closing(_connect(path)) as connection:
        for origin, task, payload in connection.execute(_PAYLOADS):
            yield f"{origin}{task}", json.loads(payload)


def kept_note(path: Path, name: str) -> Note | None:
    """Return a note of a queue file, or None.

    None also if the file does not exist or cannot be read: a frontier that opens it tells why.

    Raises:
        StoreFailed: A crawl has the file open (`may_pass`).
    """
    if not is_queue(path):
        return None
    try:
        with closing(_connect(path)) as connection:
            return read_note(connection, name)
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise StoreFailed(f"{path}: a crawl has it open", may_pass=True) from error
        return None


def is_queue(path: Path) -> bool:
    """Whether the file is a frontier's queue. False for one that does not exist or cannot be read."""
    if not path.is_file():
        return False
    with suppress(sqlite3.Error), closing(_connect(path)) as connection:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        return bool(mark == QUEUE_ID)
    # SQLite cannot read it, perhaps since a crawl keeps it locked. The mark is in the header (fileformat2, 1.3.13).
    with suppress(OSError), path.open("rb") as file:
        return file.read(72)[68:] == QUEUE_ID.to_bytes(4, "big")
    return False


class QueueInspector:
    """Reads the queue file of a crawl that does not run.

    Raises:
        StoreFailed: From each method: the file cannot be read, or a crawl has it open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def totals(self) -> QueueTotals:
        """Return the counts of the whole file."""

        def read(connection: sqlite3.Connection) -> QueueTotals:
            waiting, done, refused, dropped, known = connection.execute(_TOTALS).fetchone() or (0,) * 5
            kept = Counter(note_counts(connection))
            if kept:
                kept -= Counter(dict(connection.execute(_WAITING_NOTES).fetchall()))
            (origins,) = connection.execute(_ALL_ORIGINS).fetchone()
            return QueueTotals(waiting, done, refused, dropped, known, origins, dict(kept))

        return self._read(read)

    def origins(self, limit: int) -> list[QueuedOrigin]:
        """Return the origins with the most tasks."""
        return self._read(lambda file: [QueuedOrigin(*row) for row in file.execute(_BY_ORIGIN, (limit,))])

    def origin(self, name: str) -> QueuedOrigin | None:
        """Return one origin, or None if it has no task."""
        return self._read(
            lambda file: next((QueuedOrigin(*row) for row in file.execute(_ONE_ORIGIN, (name,))), None)
        )

    def tasks(self, name: str, limit: int) -> list[QueuedTask]:
        """Return the first tasks of an origin, as they were put."""
        return self._read(lambda file: list(_tasks(file, name, limit)))

    def _read(self, reading: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            with closing(_connect(self._path)) as connection:
                check(connection)
                return reading(connection)
        except WrongFile as error:
            raise StoreFailed(f"{self._path} {error}") from error
        except (sqlite3.Error, ValueError, TypeError) as error:
            code = getattr(error, "sqlite_errorcode", -1) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreFailed(f"{self._path}: {_LOCKED}") from error
            raise StoreFailed(f"{self._path} cannot be read as a queue ({error})") from error


def _tasks(connection: sqlite3.Connection, name: str, limit: int) -> Iterator[QueuedTask]:
    for number, path, out, later, tries, depth in connection.execute(_TASKS, (name, limit)):
        state = "in flight" if out else "ready" if later is None else "delayed"
        yield QueuedTask(number, path, state, later, tries, depth)


def _connect(path: Path) -> sqlite3.Connection:
    """Open an existing file. Not read-only: SQLite must write beside a file whose log a killed crawl left."""
    where = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(where, uri=True, timeout=_BUSY_TIMEOUT_S)


def _is_no_database(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB
