"""The file of a robots store: saves and loads snapshots, back-offs and validators in batches, in one thread."""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import compress, groupby, islice
from operator import is_not
from pathlib import Path
from typing import Any, TypeVar

from polite.log import fields
from polite.ports import SavedBackOff
from polite.recrawl import Validators
from polite.robots.snapshot import Snapshot, merged
from polite.stores import rows
from polite.stores.database import Database, WrongFile

# "poli": marks a file as polite's, whatever its name.
APPLICATION_ID = 0x706F6C69

# Step n upgrades a file from version n to version n + 1. An empty file has version 0.
# `saved` is a counter that rises with each save, and with some reads: the least recently used rows come first.
STEPS = (
    """
    CREATE TABLE robots (
        saved INTEGER PRIMARY KEY,
        origin TEXT NOT NULL UNIQUE,
        outcome TEXT NOT NULL, reason TEXT NOT NULL, url TEXT NOT NULL, status INTEGER, detail TEXT,
        hops INTEGER, elapsed_s REAL, max_age_s REAL, retry_after_s REAL, capped INTEGER, octets INTEGER, body BLOB,
        fetched_at REAL NOT NULL, expires_at REAL NOT NULL, unreachable_since REAL, failures INTEGER NOT NULL,
        good_at REAL,
        good_outcome TEXT, good_reason TEXT, good_url TEXT, good_status INTEGER, good_detail TEXT,
        good_hops INTEGER, good_elapsed_s REAL, good_max_age_s REAL, good_retry_after_s REAL, good_capped INTEGER,
        good_octets INTEGER, good_body BLOB
    )
    """,
    """
    CREATE TABLE back_offs (
        origin TEXT PRIMARY KEY, since REAL NOT NULL, until REAL NOT NULL, because TEXT NOT NULL
    ) WITHOUT ROWID;
    ALTER TABLE robots ADD COLUMN more TEXT;
    ALTER TABLE robots ADD COLUMN good_more TEXT
    """,
    # A row of an earlier version has no checksum until it is saved again.
    """
    ALTER TABLE robots ADD COLUMN good_until REAL;
    ALTER TABLE robots ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE back_offs ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0
    """,
    # ETag and Last-Modified of pages; `saved` as above.
    """
    CREATE TABLE validators (
        saved INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, etag TEXT, last_modified TEXT, checksum INTEGER NOT NULL
    )
    """,
)
VERSION = len(STEPS)
# "polq": marks the queue file of a frontier (polite.frontier.sqlite.schema, which is above this file).
_QUEUE_ID = 0x706F6C71
# The first version in which each row has a checksum. A file that was created earlier contains the table `unsummed`.
FIRST_CHECKSUMS = 3
_MARK_WITHOUT_CHECKSUMS = "CREATE TABLE unsummed (since_version INTEGER)"
_WITHOUT_CHECKSUMS = "SELECT count(*) FROM sqlite_master WHERE name = 'unsummed'"

# One statement, so that it reads one state: another process may be creating the file.
_MARKS = """
    SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
           (SELECT count(*) FROM sqlite_master)
"""


def version_of(connection: sqlite3.Connection) -> int:
    """Return the file's version, 0 for an empty file.

    Raises:
        WrongFile: It belongs to another program or to a newer polite.
    """
    version, application, tables = connection.execute(_MARKS).fetchone()
    if application == _QUEUE_ID:
        raise WrongFile(
            "is the queue of a crawl: robots.txt results are in a file of their own "
            "(polite fetch --resume FILE keeps them in FILE.robots)"
        )
    if application != APPLICATION_ID and (application or version or tables):
        raise WrongFile("is the database of another program: name another file")
    if version > VERSION:
        raise WrongFile(
            f"was written by a newer polite (schema {version}, this one knows {VERSION}): "
            "use the newer polite, or name another file"
        )
    return int(version)


def migrate(connection: sqlite3.Connection) -> None:
    """Upgrade the file in one transaction. If several processes call it, one of them upgrades.

    Raises:
        WrongFile: The file belongs to another program or to a newer polite.
        sqlite3.Error: A step failed.
    """
    if version_of(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = version_of(connection)
        for step in STEPS[before:]:
            for statement in step.split(";"):
                connection.execute(statement)
        if 0 < before < FIRST_CHECKSUMS:
            connection.execute(_MARK_WITHOUT_CHECKSUMS)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


def has_checksums(connection: sqlite3.Connection) -> bool:
    """Return whether each row has a checksum, because no earlier version created the file."""
    return int(connection.execute(_WITHOUT_CHECKSUMS).fetchone()[0]) == 0


# Eviction frees a twentieth of a limit, so that it does not run at each save.
_SLACK = 20
# Rows that are deleted between two checks of the size.
_AT_ONCE = 100
_VALIDATORS_AT_ONCE = 2_000
# The fewest saves between two counts, if the limit allows it: a count reads the whole index.
_COUNT_EVERY = 1_000
# A back-off is deleted 40 days after its end, since a clock may be a month ahead once; after a day if the file is full.
_GRACE_S = 40 * 86_400.0
_LEAST_GRACE_S = 86_400.0

# The least recently used rows are deleted first. The row of a server that failed is kept while its back-off runs.
_FORGET = """
    DELETE FROM robots WHERE saved IN
    (SELECT saved FROM robots WHERE NOT (failures > 0 AND expires_at > ?) ORDER BY saved LIMIT ?)
"""
_FORGET_EVICTED = """
    DELETE FROM validators WHERE saved IN (SELECT saved FROM validators ORDER BY saved LIMIT ?)
"""
_MOVE = "UPDATE robots SET saved = (SELECT max(saved) FROM robots) + 1 WHERE origin = ? AND saved <= ?"


class Evictor:
    """Keeps a file within its limits, least recently used first. Running back-offs may exceed the limits.

    Its methods run inside the transaction that saves. If several processes share a file, each may evict a twentieth late.

    Args:
        max_origins: The most snapshots.
        max_bytes: The largest size of the file (octets).
        max_urls: The most pages whose validators are kept.
    """

    def __init__(self, max_origins: int, max_bytes: int, max_urls: int) -> None:
        self._max_origins = max_origins
        self._max_urls = max_urls
        self._pages_left = 0  # until the next count of validators
        self._max_bytes = max_bytes
        self._saves_left = 0  # until the next count

    def mark_used(self, connection: sqlite3.Connection, used: Sequence[str]) -> None:
        """Note that rows were read. Only the older half is moved, since moving a row writes it again."""
        if used:
            oldest, latest = (
                connection.execute(f"SELECT {end}(saved) FROM robots").fetchone()[0] or 0  # noqa: S608 - min or max
                for end in ("min", "max")
            )
            connection.executemany(_MOVE, ((name, (oldest + latest) // 2) for name in used))

    def evict(self, connection: sqlite3.Connection, saved: int, now: float) -> None:
        """Delete what is over, and what exceeds the limits, after `saved` more saves. `now` is in wall seconds."""
        self._saves_left -= saved
        if self._saves_left < 0:
            self._count(connection, now)
        if self._used(connection) > self._max_bytes:
            # Without its validators a page is fetched whole. That costs less than decisions without robots.txt.
            self._shrink(connection, _FORGET_EVICTED, (_VALIDATORS_AT_ONCE,))
            _expire(connection, now - _LEAST_GRACE_S)
            self._shrink(connection, _FORGET, (now, _AT_ONCE))

    def evict_validators(self, connection: sqlite3.Connection, saved: int) -> None:
        """Delete the validators that exceed the limits, after those of `saved` more pages."""
        self._pages_left -= saved
        if self._pages_left < 0:
            known = int(connection.execute("SELECT count(*) FROM validators").fetchone()[0])
            if known > self._max_urls:
                too_many = known - self._max_urls + self._max_urls // _SLACK
                known -= connection.execute(_FORGET_EVICTED, (too_many,)).rowcount
            often = max(_COUNT_EVERY, self._max_urls // _SLACK)
            self._pages_left = max(0, min(self._max_urls - known, often))
        if self._used(connection) > self._max_bytes:
            self._shrink(connection, _FORGET_EVICTED, (_VALIDATORS_AT_ONCE,))

    def _shrink(self, connection: sqlite3.Connection, statement: str, values: Sequence[float]) -> None:
        """Delete rows, some at once, until the file has space again or no row is left."""
        enough = self._max_bytes - self._max_bytes // _SLACK
        while self._used(connection) > enough and connection.execute(statement, values).rowcount:
            pass

    def _count(self, connection: sqlite3.Connection, now: float) -> None:
        _expire(connection, now - _GRACE_S)
        known = int(connection.execute("SELECT count(*) FROM robots").fetchone()[0])
        if known > self._max_origins:
            too_many = known - self._max_origins + self._max_origins // _SLACK
            known -= connection.execute(_FORGET, (now, too_many)).rowcount
        often = max(_COUNT_EVERY, self._max_origins // _SLACK)
        self._saves_left = max(0, min(self._max_origins - known, often))

    def _used(self, connection: sqlite3.Connection) -> int:
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


def _expire(connection: sqlite3.Connection, before: float) -> None:
    """Delete back-offs that ended before a time."""
    connection.execute("DELETE FROM back_offs WHERE until <= ?", (before,))


log: logging.Logger = logging.getLogger("polite")

T = TypeVar("T")

_NOTHING = (None,) * len(rows.COLUMNS)
_LOAD_BRIEF, _LOAD = (
    f"SELECT {', '.join(columns)} FROM robots WHERE origin = ?"  # noqa: S608 - its columns' names are ours
    for columns in (rows.BRIEF, rows.COLUMNS)
)
# The rows that the file has of the origins to be saved; all origins are one parameter, as JSON.
_KEPT = "SELECT origin, fetched_at FROM robots WHERE origin IN (SELECT value FROM json_each(?))"
# As SavedBackOff.left_s: a back-off that a fast clock dated lasts no longer than its length, and hides no longer one.
_SAVE_BACK_OFF = """
    INSERT INTO back_offs (origin, since, until, because, checksum) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (origin) DO UPDATE
    SET since = excluded.since, until = excluded.until, because = excluded.because, checksum = excluded.checksum
    WHERE excluded.until - excluded.since > min(until - excluded.since, until - since)
"""
_LOAD_BACK_OFF = f"SELECT {', '.join(rows.BACK_OFF_COLUMNS)} FROM back_offs WHERE origin = ?"  # noqa: S608 - ours too
_LOAD_VALIDATORS, _SAVE_VALIDATORS, _FORGET_VALIDATORS = (
    f"SELECT {', '.join(rows.VALIDATORS_COLUMNS)} FROM validators WHERE url = ?",  # noqa: S608 - ours too
    f"INSERT OR REPLACE INTO validators ({', '.join(rows.VALIDATORS_COLUMNS)}) VALUES (?, ?, ?, ?)",  # noqa: S608
    "DELETE FROM validators WHERE url = ?",
)
# Pages whose validators are written between two evictions.
_PAGES_AT_ONCE = 100
# What a file may be asked for.
Kind = type[Snapshot] | type[SavedBackOff] | type[Validators]
# Running back-offs are never evicted. The file may grow to this multiple of `max_bytes` for them.
_HARD_LIMIT = 2
# Pages of the log between two checkpoints. Only a checkpoint waits for the disk.
_LOG_PAGES = 4_000
# A damaged file may lead SQLite in a circle, so its virtual machine's steps are limited. The longest statement, an eviction,
# takes some 10 million.
_STEPS_PER_CHECK = 1_000_000
_MAX_CHECKS = 500


class RobotsDatabase:
    """The snapshots, back-offs and validators in a file. One thread uses it.

    Each method raises StoreFailed if the file cannot be used. A corrupt file is renamed, never deleted.

    Args:
        path: The file.
        mode: "rwc" creates the file if it is missing. "rw" changes and "ro" only reads an existing file, and leaves a corrupt
            one where it is.
        busy_timeout: Seconds to wait while another process keeps the file locked.
        evictor: Deletes rows that exceed the limits; None if this object does not write.
        max_bytes: The limit of the file's size (octets).
        wall: Returns wall seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        mode: str = "rwc",
        busy_timeout: float = 5.0,
        evictor: Evictor | None = None,
        max_bytes: int = 1 << 30,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._mode = mode
        self._evictor = evictor
        self._max_bytes = max_bytes
        self._wall = wall
        self._has_checksums = True
        self._checks = 0
        self._database = Database(
            path,
            self._prepare,
            mode=mode,
            set_aside=mode == "rwc",
            busy_timeout=busy_timeout,
            full="the disk is full, or what may not be forgotten fills twice SqliteStore(max_bytes=...)",
            locked=f"another process kept it locked for longer than the busy timeout of {busy_timeout:g} s",
            wall=wall,
        )

    def write(
        self,
        snapshots: Mapping[str, Snapshot],
        back_offs: Mapping[str, SavedBackOff],
        used: Sequence[str] = (),
    ) -> None:
        """Save all in one transaction, merged with what other processes saved (`merged`).

        Once this returns, the writes outlive the process.

        Args:
            snapshots: Snapshots by origin.
            back_offs: Back-offs by origin.
            used: Origins that were read since the last write.
        """
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if self._evictor is not None:
                self._evictor.mark_used(connection, used)
            snapshots = {**snapshots, **self._merged(connection, snapshots)}
            _save(connection, (rows.row(*each) for each in snapshots.items()))
            connection.executemany(_SAVE_BACK_OFF, (rows.back_off_row(*each) for each in back_offs.items()))
            if self._evictor is not None:
                self._evictor.evict(connection, len(snapshots), self._wall())
            connection.execute("COMMIT")
            self._database.require_in_place()

    def write_validators(self, pages: Mapping[str, Validators]) -> None:
        """Save the validators by URL in one transaction. Pages without any are forgotten."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            # A large batch could fill the file before its first eviction.
            items = iter(pages.items())
            while some := list(islice(items, _PAGES_AT_ONCE)):
                gone = ((url,) for url, found in some if not found)
                connection.executemany(_FORGET_VALIDATORS, gone)
                known = (rows.validators_row(url, found) for url, found in some if found)
                connection.executemany(_SAVE_VALIDATORS, known)
                if self._evictor is not None:
                    self._evictor.evict_validators(connection, len(some))
            connection.execute("COMMIT")
            self._database.require_in_place()

    def load(self, origin: str) -> Snapshot | None:
        """Return the origin's snapshot, or None. A damaged row counts as none, so that robots.txt is fetched again."""
        with self._connected() as connection:
            return self._read(connection, origin)

    def held(self, origin: str) -> SavedBackOff | None:
        """Return the origin's back-off, over or not, or None. A damaged row counts as none."""
        with self._connected() as connection:
            return self._read_back_off(connection, origin)

    def damaged(self, origin: str) -> bool:
        """Return whether the origin has a row that does not match its checksum."""
        with self._connected() as connection:
            row = connection.execute("SELECT 1 FROM robots WHERE origin = ?", (origin,)).fetchone()
            return row is not None and self._has_checksums and self._read(connection, origin) is None

    def load_batch(
        self, reads: Sequence[tuple[str, Kind]]
    ) -> list[Snapshot | SavedBackOff | Validators | None]:
        """Return for each name what the file has of that kind: by origin as `load` or `held`, or a URL's validators."""
        with self._connected() as connection:
            found = [self._read_kind(connection, name, kind) for name, kind in reads]
            self._database.require_in_place()
        return found

    def _read_kind(
        self, connection: sqlite3.Connection, name: str, kind: Kind
    ) -> Snapshot | SavedBackOff | Validators | None:
        if kind is Snapshot:
            return self._read(connection, name)
        if kind is SavedBackOff:
            return self._read_back_off(connection, name)
        return self._row(_validators_values, connection, name, rows.validators)

    def _read(self, connection: sqlite3.Connection, origin: str) -> Snapshot | None:
        return self._row(_values, connection, origin, rows.snapshot)

    def _read_back_off(self, connection: sqlite3.Connection, origin: str) -> SavedBackOff | None:
        return self._row(_back_off_values, connection, origin, rows.back_off)

    def _row(
        self,
        find: Callable[[sqlite3.Connection, str], Sequence[Any] | None],
        connection: sqlite3.Connection,
        origin: str,
        read: Callable[..., T],
    ) -> T | None:
        try:
            values = find(connection, origin)
            if values is None or values[0] == origin:
                return None if values is None else read(values, has_checksums=self._has_checksums)
            reason: object = f"the index leads from {origin!r} to the row of {values[0]!r}"
        except rows.Unreadable as error:
            reason = error
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            reason = error  # raised by the module sqlite3: a text that is not UTF-8
        log.warning("%s: %s", self.path, reason, extra=fields("row_damaged", origin=origin, store=self.path))
        return None

    def _merged(
        self, connection: sqlite3.Connection, snapshots: Mapping[str, Snapshot]
    ) -> dict[str, Snapshot]:
        """Return the snapshots that need merging. A later response replaces the row, without reading it."""
        now = self._wall()
        merging = {}
        for origin, fetched_at in connection.execute(_KEPT, (json.dumps(list(snapshots)),)).fetchall():
            new = snapshots[origin]
            if new.failures or not fetched_at <= new.fetched_at:
                merging[origin] = merged(self._read(connection, origin), new, now)
        return merging

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """The connection, with a limit on the steps that SQLite may take."""
        self._checks = 0
        with self._database.connected() as connection:
            yield connection

    def _too_long(self) -> bool:
        self._checks += 1
        return self._checks > _MAX_CHECKS

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query, with columns by name."""
        with self._connected() as connection, closing(connection.cursor()) as cursor:
            cursor.row_factory = sqlite3.Row
            yield from cursor.execute(statement, values)

    def change(self, statements: Iterable[tuple[str, Sequence[Any]]]) -> list[int]:
        """Execute statements in one transaction. Return how many rows each changed."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            changed = [connection.execute(statement, values).rowcount for statement, values in statements]
            connection.execute("COMMIT")
        return changed

    def close(self) -> None:
        """Close the connection. The next call opens it again."""
        if self._mode != "ro":
            self._checks = 0
            self._database.checkpoint()
        self._database.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.set_progress_handler(self._too_long, _STEPS_PER_CHECK)
        version = version_of(connection)
        if self._mode == "ro":
            if not version:
                raise WrongFile("is empty: no store has written it")
            self._has_checksums = version >= FIRST_CHECKSUMS and has_checksums(connection)
            return
        self._database.write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {_HARD_LIMIT * self._max_bytes // page_size}")
        connection.execute(f"PRAGMA journal_size_limit = {self._max_bytes // 4}")
        migrate(connection)
        self._has_checksums = has_checksums(connection)


def _values(connection: sqlite3.Connection, origin: str) -> Sequence[Any] | None:
    """Return the origin's row for rows.snapshot. Reading an empty column takes as long as any other, so try BRIEF first."""
    found: Sequence[Any] | None = connection.execute(_LOAD_BRIEF, (origin,)).fetchone()
    if found is None or rows.is_whole(found):
        return found
    return connection.execute(_LOAD, (origin,)).fetchone()  # type: ignore[no-any-return]


def _back_off_values(connection: sqlite3.Connection, origin: str) -> Sequence[Any] | None:
    return connection.execute(_LOAD_BACK_OFF, (origin,)).fetchone()  # type: ignore[no-any-return]


def _validators_values(connection: sqlite3.Connection, url: str) -> Sequence[Any] | None:
    return connection.execute(_LOAD_VALIDATORS, (url,)).fetchone()  # type: ignore[no-any-return]


def _save(connection: sqlite3.Connection, saved: Iterable[rows.Row]) -> None:
    """Write rows without their empty columns: the module sqlite3 takes longer for None than for any value."""
    for filled, alike in groupby(saved, _filled):
        connection.executemany(_save_statement(filled), (tuple(compress(row, filled)) for row in alike))


def _filled(row: rows.Row) -> tuple[bool, ...]:
    """Return for each column whether the row has a value."""
    return tuple(map(is_not, row, _NOTHING))


@lru_cache(maxsize=100)
def _save_statement(filled: tuple[bool, ...]) -> str:
    columns = tuple(compress(rows.COLUMNS, filled))
    return f"INSERT OR REPLACE INTO robots ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - the words are ours
