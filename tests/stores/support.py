"""What tests of the store in a file share: snapshots of one site, and the ways in which a file can be broken."""

import asyncio
import sqlite3
from contextlib import closing

from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import renewed
from polite.stores.sqlite import SqliteStore

SITE, OTHER = Origin.of("https://site.test"), Origin.of("https://other.test")
POLICY = RobotsPolicy()
FIRST = renewed(None, Found(b"User-agent: *", 200, SITE.robots_url), POLICY, 1.0)
SECOND = renewed(FIRST, Unreachable(Reason.TIMEOUT, SITE.robots_url), POLICY, 2.0)
THIRD = renewed(SECOND, Found(b"Disallow: /", 200, SITE.robots_url), POLICY, 3.0)
HOUR = SavedBackOff(10.0, 3_610.0, "status 429, Retry-After 3600 s")


def large(octets):
    return renewed(None, Found(b"#" + bytes(octets), 200, SITE.robots_url), POLICY, 1.0)


def raw(path, statement, *values):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


async def filled(path):
    store = SqliteStore(path)
    await asyncio.gather(*(store.save(Origin.of(f"https://h{n}.test"), large(500)) for n in range(50)))
    await store.close()


# Each fault returns the file's path and the word by which the error is known.
def missing_folder(path):
    return path.parent / "none" / "crawl.sqlite", "does the folder exist"


def folder(path):
    path.mkdir()
    return path, "cannot be opened"


def not_a_database(path):
    path.write_bytes(b"User-agent: *\nDisallow: /\n" * 100)
    return path, "corrupt.*renamed"


def torn(path):
    octets = bytearray(path.read_bytes())
    octets[4096:8192] = b"\xff" * 4096
    path.write_bytes(octets)
    return path, "corrupt.*renamed"


def read_only(path):
    """Make SQLite take the file for a read-only one, by a greater write version; root may write any other file."""
    octets = bytearray(path.read_bytes())
    octets[18] = 3
    path.write_bytes(octets)
    return path, "read-only"


FAULTS = [missing_folder, folder, not_a_database, torn, read_only]


def removed(path):
    path.unlink()
    return "removed"
