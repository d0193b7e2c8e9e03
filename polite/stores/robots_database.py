"""The file of a robots store: saves and loads snapshots, back-offs and validators, and evicts what exceeds its limit."""

import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from polite.errors import StoreFailed
from polite.log import fields, log
from polite.ports import SavedBackOff
from polite.recrawl import Validators
from polite.robots.snapshot import Snapshot, merged
from polite.stores import codec
from polite.stores.database import ROBOTS_ID, Database, WrongFile, schema_of

# Step n upgrades a file from version n to version n + 1. An empty file has version 0.
# `saved` is a counter that rises with each save: the rows that were saved longest ago come first.
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
    """
    ALTER TABLE robots ADD COLUMN good_until REAL
    """,
    # ETag and Last-Modified of pages; `saved` as above.
    """
    CREATE TABLE validators (
        saved INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, etag TEXT, last_modified TEXT
    )
    """,
    # Versions 3 and 4 had checksums. The columns of the other tables have a default, and stay: to drop one rewrites a table.
    """
    CREATE TABLE copied (
        saved INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, etag TEXT, last_modified TEXT
    );
    INSERT INTO copied SELECT saved, url, etag, last_modified FROM validators;
    DROP TABLE validators;
    ALTER TABLE copied RENAME TO validators;
    DROP TABLE IF EXISTS unsummed
    """,
    "ALTER TABLE back_offs ADD COLUMN memory BLOB",
)
VERSION = len(STEPS)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the file's version, 0 for an empty file.

    Raises:
        WrongFile: It is no robots store, or belongs to a newer polite.
    """
    version = schema_of(connection, ROBOTS_ID)
    if version > VERSION:
        raise WrongFile(
            f"was written by a newer polite (schema {version}, this one knows {VERSION}): "
            "use the newer polite, or name another file"
        )
    return version


# What is kept, and a read returns: the snapshot or the back-off of an origin, or the validators of a URL.
Kept = Snapshot | SavedBackOff | Validators
Kind = type[Snapshot] | type[SavedBackOff] | type[Validators]


def _load(table: str, columns: Sequence[str]) -> str:
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {columns[0]} = ?"  # noqa: S608 - the words are ours


def _save(table: str, columns: Sequence[str]) -> str:
    return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608


_READS: dict[Kind, tuple[str, Callable[[Sequence[Any]], Kept]]] = {
    Snapshot: (_load("robots", codec.COLUMNS), codec.snapshot),
    SavedBackOff: (_load("back_offs", codec.BACK_OFF_COLUMNS), codec.back_off),
    Validators: (_load("validators", codec.VALIDATORS_COLUMNS), codec.validators),
}
_SAVE_SNAPSHOT = _save("robots", codec.COLUMNS)
# As SavedBackOff.left_s: a back-off that a fast clock dated lasts no longer than its length, and hides no longer one.
_SAVE_BACK_OFF = """
    INSERT INTO back_offs (origin, since, until, because, memory) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (origin) DO UPDATE SET memory = excluded.memory,
    (since, until, because) = (SELECT excluded.since, excluded.until, excluded.because
        WHERE excluded.until - excluded.since > min(until - excluded.since, until - since)
        UNION ALL SELECT since, until, because LIMIT 1)
"""
_SAVE_VALIDATORS = _save("validators", codec.VALIDATORS_COLUMNS)
_FORGET_VALIDATORS = "DELETE FROM validators WHERE url = ?"
_FETCHED_AT = "SELECT fetched_at FROM robots WHERE origin = ?"

# What goes first while the file is full, some rows at a time. Without its validators a page is fetched whole, which costs less
# than decisions without robots.txt. A back-off goes a day after its end, since a clock may be ahead for an hour. The row of a
# server that failed is kept while its back-off runs. Of the others, those that were saved longest ago go first: what is in use is
# saved each day.
_EVICT = (
    "DELETE FROM validators WHERE saved IN (SELECT saved FROM validators ORDER BY saved LIMIT 2000)",
    "DELETE FROM back_offs WHERE until <= :now - 86400.0",
    """
    DELETE FROM robots WHERE saved IN
    (SELECT saved FROM robots WHERE NOT (failures > 0 AND expires_at > :now) ORDER BY saved LIMIT 10)
    """,
)
_OCTETS = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
# Eviction frees a twentieth of the limit, so that it does not run at each save.
_SLACK = 20
# Validators that are written between two checks of the size: many could fill the file before its first eviction.
_PAGES_AT_ONCE = 1_000
# Running back-offs may take as much again as max_bytes; then saving fails.
_HARD_LIMIT = 2
# Pages that go from the log into the file at one time: fewer write the same pages more often.
_LOG_PAGES = 4_000


@dataclass(eq=False)
class RobotsDatabase:
    """The file of a robots store. One thread at a time uses it.

    Args:
        path: The file.
        mode: "rwc" creates the file if it is missing. "rw" changes and "ro" only reads an existing file.
        busy_timeout: Seconds to wait while another process keeps the file locked.
        max_bytes: The limit of the file's size (octets).
        wall: Returns wall seconds.
    """

    path: Path
    _: KW_ONLY
    mode: str = "rwc"
    busy_timeout: float = 5.0
    max_bytes: int = 1 << 30
    wall: Callable[[], float] = time.time
    database: Database = field(init=False)

    def __post_init__(self) -> None:
        self.database = Database(
            self.path,
            self._prepare,
            mode=self.mode,
            set_aside=self.mode == "rwc",
            busy_timeout=self.busy_timeout,
            full="the disk is full, or what may not be forgotten fills twice SqliteStore(max_bytes=...)",
            locked=f"it was kept locked for longer than the busy timeout of {self.busy_timeout:g} s",
            wall=self.wall,
        )

    def write(
        self,
        snapshots: Mapping[str, Snapshot],
        back_offs: Mapping[str, SavedBackOff],
        pages: Mapping[str, Validators],
    ) -> None:
        """Save all in one transaction, merged with what other processes saved (`merged`).

        Once this returns, the writes outlive the process.

        Args:
            snapshots: Snapshots by origin.
            back_offs: Back-offs by origin.
            pages: Validators by URL. Pages without any are forgotten.
        """
        now = self.wall()
        with self.database.connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            changed = []
            for origin, snapshot in snapshots.items():
                kept, found = connection.execute(_FETCHED_AT, (origin,)).fetchone(), None
                # A later response replaces the row, without reading it.
                if kept is not None and (snapshot.failures or not kept[0] <= snapshot.fetched_at):
                    found = self._read(connection, origin, Snapshot)
                both = merged(found if isinstance(found, Snapshot) else None, snapshot, now)
                changed.append(codec.row(origin, both))
            connection.executemany(_SAVE_SNAPSHOT, changed)
            connection.executemany(_SAVE_BACK_OFF, (codec.back_off_row(*each) for each in back_offs.items()))
            for number, (url, validators) in enumerate(pages.items()):
                if validators:
                    connection.execute(_SAVE_VALIDATORS, (url, validators.etag, validators.last_modified))
                else:
                    connection.execute(_FORGET_VALIDATORS, (url,))
                if number % _PAGES_AT_ONCE == _PAGES_AT_ONCE - 1:
                    self._evict(connection, now)
            self._evict(connection, now)
            connection.execute("COMMIT")
            self.database.require_in_place()

    def read(self, reads: Sequence[tuple[str, Kind]]) -> list[Kept | None]:
        """Return what the file has of each name. A row that cannot be read counts as none: robots.txt is fetched again."""
        with self.database.connected() as connection:
            found = [self._read(connection, *each) for each in reads]
            self.database.require_in_place()
        return found

    def _read(self, connection: sqlite3.Connection, name: str, kind: Kind) -> Kept | None:
        statement, convert = _READS[kind]
        try:
            values = connection.execute(statement, (name,)).fetchone()
            return None if values is None else convert(values)
        except codec.Unreadable as error:
            reason: Exception = error
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            reason = error  # raised by the module sqlite3: a text that is not UTF-8
        log.warning("%s: %s", self.path, reason, extra=fields("row_damaged", origin=name, store=self.path))
        return None

    def _evict(self, connection: sqlite3.Connection, now: float) -> None:
        """Delete rows while the file exceeds its limit. Running back-offs may exceed it."""
        if self._octets(connection) <= self.max_bytes:
            return
        enough = self.max_bytes - self.max_bytes // _SLACK
        for statement in _EVICT:
            while self._octets(connection) > enough and connection.execute(statement, {"now": now}).rowcount:
                pass

    def _octets(self, connection: sqlite3.Connection) -> int:
        return int(connection.execute(_OCTETS).fetchone()[0])

    def close(self) -> None:
        """Close the connection. The next call opens it again."""
        if self.mode != "ro":
            self.database.checkpoint()
        self.database.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self.mode == "ro":
            if not version_of(connection):
                raise WrongFile("is empty: no store has written it")
            return
        version_of(connection)
        self.database.write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {_HARD_LIMIT * self.max_bytes // page_size}")
        connection.execute(f"PRAGMA journal_size_limit = {self.max_bytes // 4}")
        if version_of(connection) < VERSION:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have upgraded it meanwhile.
            for statement in ";".join(STEPS[version_of(connection) :]).split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {ROBOTS_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")


# Without the bodies, which take most of the file.
_LISTED = """
    SELECT origin, outcome, reason, url, status, detail, hops, elapsed_s, octets, capped, fetched_at, expires_at,
           unreachable_since, failures, good_at, until AS back_off_until, because AS back_off_because
    FROM robots LEFT JOIN back_offs USING (origin)
"""
_BACK_OFF_ONLY = """
    SELECT origin, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, until, because
    FROM back_offs WHERE origin NOT IN (SELECT origin FROM robots)
"""
_ALL = f"{_LISTED} UNION ALL {_BACK_OFF_ONLY} ORDER BY origin"
_ONE = f"SELECT * FROM ({_LISTED} UNION ALL {_BACK_OFF_ONLY}) WHERE origin = ?"  # noqa: S608 - the parts are ours
_BODY = """
    SELECT ifnull(body, good_body) AS body, CASE WHEN body IS NULL THEN good_octets ELSE octets END AS octets
    FROM robots WHERE origin = ?
"""
# By default neither a back-off that still runs nor the row of a failed server whose back-off runs is deleted; nor, for a week, one
# that has a learned pace.
_FORGET = (
    """
    DELETE FROM robots WHERE (:name IS NULL OR origin = :name) AND (NOT :expired OR expires_at <= :now)
    AND (:back_offs OR NOT (failures > 0 AND expires_at > :now))
    """,
    """
    DELETE FROM back_offs WHERE (:name IS NULL OR origin = :name)
    AND (:back_offs AND NOT :expired OR until <= :now - iif(length(memory) > 0, 604800.0, 0.0))
    """,
)
# SQLite's file format, 1.3.1.
_MAGIC = b"SQLite format 3\0"


class StoreInspector:
    """Opens the file of a store that exists.

    Args:
        path: The file.
        to_change: Open it for writing.

    Raises:
        StoreFailed: The file does not exist or is no store, or (from each method) cannot be used.
    """

    def __init__(self, path: str, *, to_change: bool = False) -> None:
        if not Path(path).is_file():
            missing = "it is a folder, not a file" if Path(path).is_dir() else "there is no such file"
            raise StoreFailed(f"{path}: {missing}")
        # A file that cannot be read is left to SQLite, which explains it.
        with suppress(OSError), Path(path).open("rb") as file:
            if file.read(len(_MAGIC)) not in (_MAGIC, b""):
                raise StoreFailed(f"{path} is not a store: it is no SQLite file; name another file")
        self._database = RobotsDatabase(Path(path), mode="rw" if to_change else "ro").database

    def origins(self) -> Iterator[dict[str, Any]]:
        """Yield the columns of each origin, in the order of names. A value that is not known is None."""
        return self._rows(_ALL)

    def origin(self, name: str) -> dict[str, Any] | None:
        """Return the columns of an origin and `body`, the latest copy of its robots.txt; None if it is not known."""
        found = next(self._rows(_ONE, name), None)
        if found is None:
            return None
        stored = next(self._rows(_BODY, name), {"body": None, "octets": None})
        try:
            return {**found, "body": codec.inflated(**stored)}
        except (TypeError, ValueError, zlib.error) as error:
            raise StoreFailed(f"{self._database.path}: the copy of {name} cannot be read: {error}") from error

    def forget(self, name: str | None, now: float, *, expired: bool, back_offs: bool) -> tuple[int, int]:
        """Delete one origin or all. Return how many robots.txt results and how many back-offs were deleted.

        Args:
            name: The origin; None for all.
            now: Wall seconds.
            expired: Delete only what is over.
            back_offs: Delete back-offs that still run, too.
        """
        given = {"name": name, "now": now, "expired": expired, "back_offs": back_offs}
        with self._database.connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            results, ended = (connection.execute(each, given).rowcount for each in _FORGET)
            connection.execute("COMMIT")
        return results, ended

    def close(self) -> None:
        """Close the file."""
        self._database.checkpoint()
        self._database.close()

    def _rows(self, statement: str, *values: str) -> Iterator[dict[str, Any]]:
        with self._database.connected() as connection, closing(connection.cursor()) as cursor:
            cursor.row_factory = sqlite3.Row
            yield from map(dict, cursor.execute(statement, values))
