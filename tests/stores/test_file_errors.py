"""A file that is missing, corrupt, locked, full or read-only: the error is clear, and nothing acknowledged is lost."""

import asyncio
import random
import re
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from polite.errors import StoreFailed
from polite.origin import Origin, Target
from polite.ports import SavedBackOff
from polite.recrawl import Validators
from polite.robots.result import Found
from polite.robots.snapshot import Snapshot, renewed
from polite.stores import database, robots_database
from polite.stores import sqlite as module
from polite.stores.robots_database import RobotsDatabase
from polite.stores.sqlite import PendingWrites, SqliteStore
from tests.stores.support import (
    FAULTS,
    FIRST,
    HOUR,
    OTHER,
    POLICY,
    SECOND,
    SITE,
    THIRD,
    filled,
    large,
    not_a_database,
    raw,
    read_only,
    removed,
    torn,
)

ROOT = Path(__file__).resolve().parents[2]


def replaced(path):
    for suffix in ("", "-wal", "-shm"):
        old = Path(f"{path}{suffix}")
        if old.exists():
            old.rename(f"{path}.old{suffix}")
    asyncio.run(_new_file(path))
    return "replaced"


async def _new_file(path):
    store = SqliteStore(path)
    await store.save(OTHER, FIRST)
    await store.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_file_that_cannot_be_used_is_a_clear_error_and_a_corrupt_one_is_set_aside_whole(path, fault):
    if fault in (torn, read_only):
        await filled(path)
    where, word = fault(path)
    octets = path.read_bytes() if fault in (not_a_database, torn) else None
    store = SqliteStore(where, wall=lambda: 1_700_000_000.0)

    with pytest.raises(StoreFailed, match=word) as failure:
        await store.open()
        await store.save(SITE, FIRST)
    if octets is not None:
        await store.save(SITE, FIRST)
        assert await store.load(SITE) == FIRST
        assert Path(f"{path}.corrupt-20231114T221320Z").read_bytes() == octets
    await store.close()

    assert str(where) in str(failure.value)


@pytest.mark.parametrize("new", [b"the new one", None])
async def test_a_corrupt_file_that_another_process_has_set_aside_leaves_the_new_one_alone(path, new):
    await filled(path)
    file = RobotsDatabase(path)
    file.read([(str(SITE), Snapshot)])
    path.rename(path.parent / "elsewhere")
    if new is not None:
        path.write_bytes(new)
    error = sqlite3.DatabaseError("malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT

    said = file.database._failure(error)
    file.close()

    assert "another process has already renamed it" in str(said)
    assert [file.read_bytes() for file in path.parent.glob("crawl.sqlite")] == ([] if new is None else [new])


async def test_a_file_that_stays_locked_is_an_error_that_names_the_option(opened, path):
    store = opened(busy_timeout=0.01)
    await store.save(OTHER, FIRST)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match="busy timeout of 0.01 s"):
            await store.save(SITE, FIRST)

    await store.save(SITE, FIRST)

    assert await store.load(SITE) == FIRST


async def test_a_full_disk_is_an_error_and_loses_nothing_that_was_acknowledged(opened):
    store = opened()
    store._file.max_bytes = 16 * 4096
    await store.save(SITE, FIRST)

    with pytest.raises(StoreFailed, match="disk is full"):
        found = Found(random.Random(1).randbytes(200_000), 200, "")
        await store.save(OTHER, renewed(None, found, POLICY, 1.0))

    assert await store.load(SITE) == FIRST
    assert await store.load(OTHER) is None


async def test_a_row_that_cannot_be_read_counts_as_none_and_is_saved_anew(opened, path, caplog):
    store = opened()
    store.hold(SITE, HOUR)
    await store.save(SITE, FIRST)
    raw(path, "UPDATE robots SET reason = 'HUNCH'")
    raw(path, "UPDATE back_offs SET because = CAST(X'fffe' AS TEXT)")

    found = await store.load(SITE), await store.held(SITE)
    await store.save(SITE, SECOND)

    assert found == (None, None)
    assert [record.polite_event for record in caplog.records] == ["row_damaged"] * 3
    assert await store.load(SITE) == SECOND


@pytest.mark.parametrize("seed", range(0, 100, 25))
async def test_a_damaged_file_raises_nothing_but_store_failed_and_what_is_saved_next_is_there(path, seed):
    await filled(path)
    sound = path.read_bytes()
    for each in range(seed, seed + 25):
        chance, octets = random.Random(each), bytearray(sound)
        for _ in range(chance.choice((1, 3, 20))):
            octets[chance.randrange(len(octets))] = chance.randrange(256)
        damaged = path.parent / f"{each}.sqlite"
        damaged.write_bytes(octets)
        store = SqliteStore(damaged)
        for number in range(50):
            with suppress(StoreFailed):
                await store.load(Origin.of(f"https://h{number}.test"))
        with suppress(StoreFailed):
            await store.save(SITE, FIRST)
            assert await store.load(SITE) == FIRST, each
        await store.close()


@pytest.mark.parametrize("happening", [removed, replaced])
@pytest.mark.parametrize("call", ["save", "load"])
async def test_a_file_that_is_removed_or_replaced_while_in_use_is_noticed_by_the_next_call(
    opened, path, happening, call
):
    store = opened()
    await store.save(SITE, FIRST)
    word = await asyncio.to_thread(happening, path)

    with pytest.raises(StoreFailed, match=f"crawl.sqlite was {word} while it was in use"):
        await (store.save(SITE, FIRST) if call == "save" else store.load(SITE))
    assert await store.load(SITE) is None
    await store.save(SITE, SECOND)

    assert await opened().load(SITE) == SECOND
    assert (await opened().load(OTHER) is None) == (happening is removed)


async def test_what_no_caller_gets_an_error_for_waits_in_memory_until_the_file_works(opened, path, caplog):
    store, page, tag = opened(busy_timeout=0.0), Target.of("https://site.test/1"), Validators('"1"')
    await store.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        store.remember(page, tag)
        store.hold(SITE, HOUR)
        with pytest.raises(StoreFailed, match="locked"):
            await store.save(SITE, FIRST)
        known = await store.load(SITE), await store.held(SITE), await store.validators(page)
    await store.close()

    assert known == (None, HOUR, tag)
    assert {"back_offs_unsaved", "validators_unsaved"} <= {each.polite_event for each in caplog.records}
    again = opened()
    assert (await again.load(SITE), await again.held(SITE), await again.validators(page)) == known


@pytest.mark.parametrize("fault", FAULTS)
async def test_memory_takes_over_from_a_failing_file_and_says_so_once(path, fault, caplog):
    if fault in (torn, read_only):
        await filled(path)
    where, _ = fault(path)
    store = SqliteStore(where, on_failure="memory")

    await store.open()
    for origin in (SITE, OTHER):
        store.hold(origin, HOUR)
        await store.save(origin, FIRST)
    known = [(await store.load(origin), await store.held(origin)) for origin in (SITE, OTHER)]
    await store.close()

    assert known == [(FIRST, HOUR)] * 2
    assert [each.polite_event for each in caplog.records].count("store_failed") == 1
    assert await store.load(SITE) == FIRST
    await store.close()


async def test_what_memory_kept_goes_into_the_file_when_it_works_again(opened, path, monkeypatch, caplog):
    monkeypatch.setattr(module, "_TRY_EVERY_S", 0.0)
    store = opened(busy_timeout=0.0, on_failure="memory")
    await store.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        await store.save(SITE, FIRST)
        store.hold(SITE, HOUR)
        await store.save(SITE, SECOND)
    await store.save(OTHER, FIRST)
    again = opened()
    written = [await again.load(origin) for origin in (SITE, OTHER)]
    await again.save(SITE, THIRD)

    assert written == [SECOND, FIRST]
    assert await again.held(SITE) == HOUR
    assert await store.load(SITE) == THIRD
    assert caplog.records[-1].polite_event == "store_works"


def test_what_waits_in_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_PENDING_ROWS", 3)
    monkeypatch.setattr(module, "_PENDING_BYTES", 25_000)
    waiting = PendingWrites()

    for name in "abcda":
        waiting.add(name, large(1))
        waiting.add(name, Validators(f'"{name}"'))
    for name, until in (("a", 50.0), ("b", 10.0), ("c", 30.0), ("d", 20.0), ("a", 5.0)):
        waiting.add(name, SavedBackOff(0.0, until, ""))
    waiting.shrink()
    few = list(waiting.snapshots), list(waiting.pages), sorted(waiting.back_offs)
    for name in "xyz":
        waiting.add(name, large(10_000))
    waiting.shrink()

    assert few == (["c", "d", "a"], ["c", "d", "a"], ["a", "c", "d"])
    assert list(waiting.snapshots) == ["y", "z"]


@pytest.fixture
def of_version_1(path):
    raw(path, robots_database.STEPS[0])
    raw(path, f"PRAGMA application_id = {database.ROBOTS_ID}")
    raw(path, "PRAGMA user_version = 1")
    raw(
        path,
        "INSERT INTO robots (origin, outcome, reason, url, status, hops, elapsed_s, capped, octets, body, fetched_at, "
        "expires_at, failures, good_at, good_outcome) "
        "VALUES (?, 'found', 'OK', 'https://site.test/robots.txt', 200, 0, 0.5, 0, 6, ?, 5, 9, 0, 5, 'same')",
        str(SITE),
        b"Allow:",
    )
    return path


@pytest.fixture
def of_version_4(of_version_1):
    """With checksums, which files had from version 3 on."""
    with closing(sqlite3.connect(of_version_1, isolation_level=None)) as connection:
        connection.executescript(";".join(robots_database.STEPS[1:4]))
        connection.executescript(
            """
            ALTER TABLE robots ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE back_offs ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
            DROP TABLE validators;
            CREATE TABLE validators (
                saved INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, etag TEXT, last_modified TEXT, checksum INTEGER NOT NULL
            );
            INSERT INTO validators VALUES (1, 'https://site.test/1', '"1"', NULL, 7)
            """
        )
        connection.execute("INSERT INTO back_offs VALUES (?, 10, 3610, 'status 429', 5)", (str(SITE),))
        connection.execute("CREATE TABLE unsummed (since_version INTEGER)")
        connection.execute("PRAGMA user_version = 4")
    return of_version_1


@pytest.mark.parametrize("version", ["of_version_1", "of_version_4"])
async def test_a_file_of_an_earlier_version_is_upgraded_and_loses_nothing(request, path, version):
    request.getfixturevalue(version)
    store = SqliteStore(path)

    snapshot, held = await store.load(SITE), await store.held(SITE)
    tag = await store.validators(Target.of("https://site.test/1"))
    await store.save(SITE, snapshot)
    again = await store.load(SITE)
    await store.close()

    assert (snapshot.access.body, snapshot.expires_at, snapshot.good) == (b"Allow:", 9.0, snapshot.access)
    assert again == snapshot
    assert (held is None, bool(tag)) == (version == "of_version_1", version == "of_version_4")
    assert raw(path, "PRAGMA user_version") == [(robots_database.VERSION,)]


async def test_an_upgrade_that_fails_half_way_leaves_the_old_file(of_version_1, monkeypatch):
    monkeypatch.setattr(robots_database, "STEPS", (*robots_database.STEPS[:4], "this is no SQL"))
    store = SqliteStore(of_version_1)
    with pytest.raises(StoreFailed, match="syntax error"):
        await store.open()
    await store.close()
    tables = raw(of_version_1, "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert (tables, raw(of_version_1, "PRAGMA user_version")) == ([("robots",)], [(1,)])


@pytest.mark.parametrize(
    ("mark", "word"),
    [
        ("CREATE TABLE mine (a)", "another program"),
        ("PRAGMA user_version = 3", "another program"),
        ("PRAGMA application_id = 77", "another program"),
        ("PRAGMA user_version = 7", "newer polite .schema 7, this one knows 6"),
    ],
)
async def test_the_file_of_another_program_or_of_a_newer_polite_is_left_alone(path, mark, word):
    if word.startswith("newer"):
        await filled(path)
    raw(path, mark)
    before, store = path.read_bytes(), SqliteStore(path)

    with pytest.raises(StoreFailed, match=word):
        await store.open()
    await store.close()

    assert path.read_bytes() == before


@pytest.mark.slow("kills processes in real time")
def test_killed_five_times_nothing_acknowledged_is_lost():
    command = [sys.executable, "-m", "tests.system.soak", "kill", "5"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) acknowledged, none lost, integrity check ok", done.stdout)[1]) > 100
