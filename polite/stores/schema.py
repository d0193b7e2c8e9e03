"""The tables of a robots store's file, and the steps that upgrade an older file."""

import sqlite3

from polite.stores.database import WrongFile

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
