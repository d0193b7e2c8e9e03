"""Old files are brought up to date, newer ones and those of others are left alone."""

import sqlite3
from contextlib import closing

import pytest

from polite.errors import StoreFailed
from polite.origin import Origin
from polite.stores.robots_database import APPLICATION_ID, STEPS, VERSION
from polite.stores.sqlite import SqliteStore

SITE = Origin.of("https://site.test")


def connected(path):
    return closing(sqlite3.connect(path, isolation_level=None))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crawl.sqlite"


@pytest.fixture
def of_version_1(path):
    """As the first polite that kept anything would have left it."""
    with connected(path) as connection:
        connection.execute(STEPS[0])
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute(
            "INSERT INTO robots (origin, outcome, reason, url, status, hops, elapsed_s, capped, octets, body, fetched_at, "
            "expires_at, failures, good_at, good_outcome) "
            "VALUES (?, 'found', 'OK', 'https://site.test/robots.txt', 200, 0, 0.5, 0, 6, 'Allow:', 5, 9, 0, 5, 'same')",
            (str(SITE),),
        )
        connection.execute("UPDATE robots SET body = CAST(body AS BLOB)")
    return path


async def test_a_file_of_version_1_becomes_one_of_today_and_loses_nothing(of_version_1):
    store = SqliteStore(of_version_1)

    snapshot = await store.load(SITE)
    await store.save(SITE, snapshot)
    again = await store.load(SITE)
    await store.close()

    assert (snapshot.access.body, snapshot.expires_at, snapshot.good) == (b"Allow:", 9.0, snapshot.access)
    assert again == snapshot
    with connected(of_version_1) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)


async def test_a_migration_that_fails_half_way_leaves_the_old_file(of_version_1, monkeypatch):
    broken = (STEPS[0], STEPS[1] + "; this is no SQL")
    monkeypatch.setattr("polite.stores.robots_database.STEPS", broken)
    store = SqliteStore(of_version_1)

    with pytest.raises(StoreFailed, match="syntax error"):
        await store.open()
    await store.close()

    with connected(of_version_1) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        assert tables == [("robots",)]
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


async def test_a_file_of_a_newer_polite_is_left_alone(path):
    store = SqliteStore(path)
    await store.open()
    await store.close()
    with connected(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")

    with pytest.raises(StoreFailed, match=f"newer polite .schema {VERSION + 1}, this one knows {VERSION}"):
        await store.open()
    await store.close()

    with connected(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)


@pytest.mark.parametrize(
    "mark", ["CREATE TABLE mine (a)", "PRAGMA user_version = 3", "PRAGMA application_id = 77"]
)
async def test_the_database_of_another_program_is_left_alone(path, mark):
    with connected(path) as connection:
        connection.execute(mark)
    before = path.read_bytes()
    store = SqliteStore(path)

    with pytest.raises(StoreFailed, match="another program"):
        await store.open()
    await store.close()

    assert path.read_bytes() == before
