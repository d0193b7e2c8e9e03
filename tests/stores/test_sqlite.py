"""The store in a file: kept between runs, shared between stores, and clear when the file cannot be used."""

import asyncio
import logging
import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from polite.errors import InvalidOption, Overloaded, StoreFailed
from polite.origin import Origin
from polite.ports import BackOffStore, RobotsStore, SavedBackOff
from polite.robots.fetching.result import Found, Unreachable
from polite.robots.fetching.snapshot import renewed
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.stores import batch_worker as worker
from polite.stores import fallback as outage
from polite.stores.robots_database import StoreFile
from polite.stores.sqlite import SqliteStore

ROOT = Path(__file__).resolve().parents[2]
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


async def test_it_is_a_robots_store_that_keeps_back_offs(opened):
    store = opened()

    assert isinstance(store, RobotsStore)
    assert isinstance(store, BackOffStore)


async def test_what_was_saved_is_there_after_a_restart(opened):
    first = opened()
    await first.save(SITE, SECOND)
    await first.close()

    assert await opened().load(SITE) == SECOND


async def test_what_was_saved_is_there_for_another_process_at_once(opened, path):
    await opened().save(SITE, FIRST)

    assert await opened().load(SITE) == FIRST
    assert raw(path, "SELECT origin, outcome, status, body FROM robots") == [
        ("https://site.test", "found", 200, b"User-agent: *")
    ]


async def test_a_closed_store_is_whole_in_its_file_although_another_connection_is_open(
    opened, path, tmp_path
):
    store, alone = opened(), tmp_path / "alone.sqlite"
    await store.save(SITE, FIRST)
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT count(*) FROM robots").fetchall()

        await store.close()

        alone.write_bytes(path.read_bytes())
    assert raw(alone, "SELECT origin FROM robots") == [("https://site.test",)]


async def test_the_file_is_written_ahead_so_that_a_reader_never_waits(opened, path):
    await opened().save(SITE, FIRST)

    assert raw(path, "PRAGMA journal_mode") == [("wal",)]


async def test_saves_that_come_together_are_one_transaction(opened, monkeypatch):
    store, batches = opened(), []
    write = store._written.write
    monkeypatch.setattr(store._written, "write", lambda s, *more: (batches.append(len(s)), write(s, *more)))

    await asyncio.gather(*(store.save(Origin.of(f"https://h{n}.test"), FIRST) for n in range(500)))

    assert sum(batches) == 500
    assert len(batches) < 10


async def test_of_two_saves_of_one_origin_the_later_counts(opened):
    store = opened()

    await asyncio.gather(store.save(SITE, FIRST), store.save(SITE, SECOND))

    assert await store.load(SITE) == SECOND


async def test_a_save_that_nobody_waits_for_any_more_is_written_all_the_same(opened):
    store = opened()
    saving = asyncio.create_task(store.save(SITE, FIRST))
    await asyncio.sleep(0)

    saving.cancel()
    await asyncio.gather(saving, return_exceptions=True)
    await store.close()

    assert await store.load(SITE) == FIRST


async def test_a_hold_is_kept_when_the_store_is_closed(opened):
    first = opened()
    first.hold(SITE, HOUR)
    await first.close()

    assert await opened().held(SITE) == HOUR
    assert await opened().held(OTHER) is None


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_hold_never_becomes_shorter(opened, at_once):
    store, shorter, longer = (
        opened(),
        SavedBackOff(20.0, 30.0, "shorter"),
        SavedBackOff(30.0, 9_000.0, "longer"),
    )

    for hold in (HOUR, shorter, longer, shorter):
        store.hold(SITE, hold)
        if not at_once:
            await store.save(OTHER, FIRST)
    await store.save(OTHER, FIRST)

    assert await store.held(SITE) == longer


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_hold_of_a_clock_that_was_ahead_hides_no_longer_one(opened, at_once):
    store, year = opened(), 365 * 86_400.0
    ahead, behind, longer = (
        SavedBackOff(year, year + 20.0, "ahead"),
        SavedBackOff(5.0, 15.0, "behind"),
        SavedBackOff(10.0, 80_010.0, "longer"),
    )

    for hold in (ahead, behind, longer, behind):
        store.hold(SITE, hold)
        if not at_once:
            await store.save(OTHER, FIRST)
    await store.save(OTHER, FIRST)

    assert await store.held(SITE) == longer


async def test_a_hold_and_a_snapshot_do_not_disturb_each_other(opened):
    store = opened()

    store.hold(SITE, HOUR)
    await store.save(SITE, FIRST)

    assert (await store.load(SITE), await store.held(SITE)) == (FIRST, HOUR)


@pytest.mark.parametrize(("now", "left"), [(10.0, 3600.0), (3_600.0, 10.0), (4_000.0, 0.0), (-1e9, 3_600.0)])
def test_a_hold_is_never_longer_than_it_was_however_a_clock_is_set(now, left):
    assert HOUR.left_s(now) == left


async def test_a_closed_store_may_be_used_again_and_leaves_no_thread(opened):
    store = opened()
    await store.save(SITE, FIRST)
    await store.load(SITE)
    await store.close()
    await store.close()

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("polite")]
    assert await store.load(SITE) == FIRST


async def test_the_loop_goes_on_while_the_file_is_locked(opened, path):
    store = opened(busy_timeout=60.0)
    await store.save(OTHER, FIRST)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        saving = asyncio.create_task(store.save(SITE, FIRST))
        for _ in range(100):
            await asyncio.sleep(0)
        read_meanwhile, waiting = await store.load(OTHER), not saving.done()
        rival.execute("ROLLBACK")
    await saving

    assert waiting
    assert read_meanwhile == FIRST


async def test_two_stores_write_to_one_file_and_nothing_is_lost(opened):
    stores = [opened(), opened()]
    origins = [Origin.of(f"https://h{n}.test") for n in range(400)]

    await asyncio.gather(*(stores[n % 2].save(origin, FIRST) for n, origin in enumerate(origins)))

    assert [await stores[0].load(origin) for origin in origins] == [FIRST] * 400


def test_processes_that_open_a_new_file_at_once_all_succeed(path):
    program = (
        "import asyncio, sys\n"
        "from polite.stores.sqlite import SqliteStore\n"
        "async def main():\n"
        "    store = SqliteStore(sys.argv[1])\n"
        "    await store.open()\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=ROOT) for _ in range(6)]

    assert [process.wait(60) for process in processes] == [0] * 6


# What can be wrong with a file, and the word by which the error is known.
def missing_folder(path):
    return path.parent / "none" / "crawl.sqlite", "is there such a folder"


def folder(path):
    path.mkdir()
    return path, "cannot be opened"


def not_a_database(path):
    path.write_bytes(b"User-agent: *\nDisallow: /\n" * 100)
    return path, "corrupt.*set aside"


def torn(path):
    """A page in the middle was overwritten."""
    octets = bytearray(path.read_bytes())
    octets[4096:8192] = b"\xff" * 4096
    path.write_bytes(octets)
    return path, "corrupt.*set aside"


def read_only(path):
    """SQLite takes a file whose write version is greater than it knows for a read-only one; root may write any other."""
    octets = bytearray(path.read_bytes())
    octets[18] = 3
    path.write_bytes(octets)
    return path, "read-only"


async def filled(path):
    store = SqliteStore(path)
    await asyncio.gather(*(store.save(Origin.of(f"https://h{n}.test"), large(500)) for n in range(50)))
    await store.close()


FAULTS = [missing_folder, folder, not_a_database, torn, read_only]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_file_that_cannot_be_used_is_a_clear_error(path, fault):
    if fault in (torn, read_only):
        await filled(path)
    where, word = fault(path)
    store = SqliteStore(where)

    with pytest.raises(StoreFailed, match=word) as failure:
        await store.open()
        await store.save(SITE, FIRST)
    await store.close()

    assert str(where) in str(failure.value)


@pytest.mark.parametrize("fault", FAULTS)
async def test_by_policy_memory_takes_its_place_and_says_so_once(path, fault, caplog):
    if fault in (torn, read_only):
        await filled(path)
    where, _ = fault(path)
    store = SqliteStore(where, on_failure="memory")

    await store.open()
    for origin in (SITE, OTHER):
        store.hold(origin, HOUR)
        await store.save(origin, FIRST)
    known = [(await store.load(origin), await store.held(origin)) for origin in (SITE, OTHER)]

    assert known == [(FIRST, HOUR)] * 2
    warnings = [record for record in caplog.records if "memory takes its place" in record.getMessage()]
    assert len(warnings) <= 2  # one for writing, one for reading
    assert len([record for record in warnings if "writing" in record.getMessage()]) == 1
    await store.close()


@pytest.mark.parametrize("fault", [not_a_database, torn])
async def test_a_corrupt_file_is_set_aside_whole_and_a_new_one_begun(path, fault):
    if fault is torn:
        await filled(path)
    fault(path)
    octets = path.read_bytes()
    store = SqliteStore(path, wall=lambda: 1_700_000_000.0)

    with pytest.raises(StoreFailed, match=r"corrupt-20231114T221320Z"):
        await store.open()
        await store.save(SITE, FIRST)
    await store.save(SITE, FIRST)

    assert (path.parent / "crawl.sqlite.corrupt-20231114T221320Z").read_bytes() == octets
    assert await store.load(SITE) == FIRST
    await store.close()


async def test_what_was_set_aside_before_is_not_overwritten(path):
    store = SqliteStore(path, wall=lambda: 1_700_000_000.0)
    for octets in (b"first " * 100, b"second " * 100):
        path.write_bytes(octets)
        with pytest.raises(StoreFailed, match="corrupt"):
            await store.open()
    await store.close()

    assert sorted(file.read_bytes()[:6] for file in path.parent.glob("*.corrupt-*")) == [b"first ", b"second"]


@pytest.mark.parametrize("new", [b"the new one", None])
async def test_a_corrupt_file_that_another_process_has_set_aside_leaves_the_new_one_alone(path, new):
    await filled(path)
    file = StoreFile(path)
    file.load(str(SITE))
    path.rename(path.parent / "elsewhere")
    if new is not None:
        path.write_bytes(new)
    error = sqlite3.DatabaseError("malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT

    said = file._database._failure(error)
    file.close()

    assert "another process has set it aside already" in str(said)
    assert [file.read_bytes() for file in path.parent.glob("crawl.sqlite")] == ([] if new is None else [new])


async def test_a_corrupt_file_that_cannot_be_set_aside_stays(path, monkeypatch):
    path.write_bytes(b"nonsense " * 100)
    monkeypatch.setattr(type(path), "rename", lambda *_: (_ for _ in ()).throw(PermissionError("not here")))
    store = SqliteStore(path)

    with pytest.raises(StoreFailed, match="could not be set aside .not here"):
        await store.open()
    await store.close()

    assert path.exists()


async def test_a_file_that_stays_locked_is_an_error_that_names_the_option(opened, path):
    store = opened(busy_timeout=0.01)
    await store.save(OTHER, FIRST)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match="busy_timeout=0.01"):
            await store.save(SITE, FIRST)

    await store.save(SITE, FIRST)

    assert await store.load(SITE) == FIRST


async def test_a_new_file_that_another_process_is_writing_is_waited_for(opened, path):
    store = opened(busy_timeout=0.02)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match="busy_timeout"):
            await store.open()

    await store.open()


async def test_a_full_disk_is_an_error_and_loses_nothing_that_was_acknowledged(opened):
    store = opened()
    store._written._max_bytes = 16 * 4096
    await store.save(SITE, FIRST)

    with pytest.raises(StoreFailed, match="disk is full"):
        await store.save(OTHER, renewed(None, Found(noise(200_000), 200, ""), POLICY, 1.0))

    assert await store.load(SITE) == FIRST
    assert await store.load(OTHER) is None


def noise(octets):
    """Octets that do not pack."""
    state, made = 1, bytearray()
    while len(made) < octets:
        state = state * 6364136223846793005 % 2**64 + 1442695040888963407
        made += (state >> 24 & 0xFFFFFFFF).to_bytes(4, "big")
    return bytes(made)


def test_a_file_that_may_not_grow_is_an_error_too(path):
    """The kernel refuses, as it does when the disk is full or a quota is reached."""
    program = """
import asyncio, os, resource, sys
from polite.errors import StoreFailed
from polite.origin import Origin
from polite.robots.fetching.result import Found
from polite.robots.fetching.snapshot import Snapshot
from polite.stores.sqlite import SqliteStore

async def main():
    store, site = SqliteStore(sys.argv[1]), Origin.of("https://site.test")
    await store.open()
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, most))
    snapshot = Snapshot(Found(os.urandom(200_000), 200, ""), 1.0, 2.0)
    try:
        await store.save(site, snapshot)
    except StoreFailed as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    await store.save(site, snapshot)
    print("works again" if await store.load(site) == snapshot else "lost")
    await store.close()

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )

    assert re.fullmatch(r".*crawl.sqlite: .*(disk|I/O).*\nworks again\n", done.stdout), (
        done.stdout + done.stderr
    )


async def test_what_memory_kept_goes_into_the_file_when_it_works_again(opened, path, monkeypatch, caplog):
    monkeypatch.setattr(outage, "_TRY_EVERY_S", 0.0)
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
    assert [r.getMessage() for r in caplog.records][-1] == f"writing {path} works again"


async def test_a_failing_file_is_left_alone_for_a_while(path):
    store = SqliteStore(path.parent, on_failure="memory")
    await store.open()
    tries = []
    store._written.write = lambda *_: tries.append(1)
    store._read.answers = lambda *_: tries.append(1)
    store._no_reading.began(StoreFailed("x"))

    await store.save(SITE, FIRST)
    await store.load(OTHER)

    assert tries == []
    await store.close()


async def test_what_could_not_be_written_is_tried_once_more_at_the_end(opened, path, caplog):
    lost, saved = SqliteStore(path.parent, on_failure="memory"), opened(on_failure="memory")
    saved._no_writing.began(StoreFailed("x"))

    for store in (lost, saved):
        await store.save(SITE, FIRST)
        await store.close()

    assert await opened().load(SITE) == FIRST
    assert "1 results stay in memory" in caplog.text
    assert await lost.load(SITE) == FIRST


async def test_a_back_off_that_cannot_be_written_is_logged(path, caplog):
    store = SqliteStore(path.parent)

    store.hold(SITE, HOUR)
    await store.close()

    assert "1 back-offs were not kept" in caplog.text


async def test_reading_that_fails_is_an_error_for_who_asked(path):
    store = SqliteStore(path.parent)

    for question in (store.load(SITE), store.held(SITE)):
        with pytest.raises(StoreFailed):
            await question
    await store.close()


async def test_a_row_that_was_changed_is_as_good_as_none(opened, path, caplog):
    store = opened()
    await store.save(SITE, FIRST)
    raw(path, "UPDATE robots SET reason = 'HUNCH'")

    assert await store.load(SITE) is None
    assert "site.test" in caplog.text


async def test_more_than_the_disk_takes_is_refused(opened, monkeypatch, caplog):
    monkeypatch.setattr(worker, "_MOST", 0)
    store = opened()

    with pytest.raises(Overloaded, match="does not keep up"):
        await store.save(SITE, FIRST)
    store.hold(SITE, HOUR)

    assert "was not kept" in caplog.text


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b", 3, None, b"crawl.sqlite"])
def test_a_name_that_is_none_of_a_file_is_refused(path):
    with pytest.raises(InvalidOption, match="name of a file"):
        SqliteStore(path)


@pytest.mark.parametrize(
    "option",
    [
        {"max_origins": 0},
        {"max_bytes": 1000},
        {"busy_timeout": -1.0},
        {"on_failure": "ignore"},
    ],
)
def test_an_option_outside_its_limits_is_refused(option):
    (name,) = option

    with pytest.raises(InvalidOption, match=f"SqliteStore.{name}"):
        SqliteStore("x", **option)


async def test_a_defect_of_ours_reaches_who_waits_and_the_thread_goes_on(opened, monkeypatch, caplog):
    store = opened()
    with monkeypatch.context() as patched:
        patched.setattr(store._written, "write", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            await store.save(SITE, FIRST)
    caplog.set_level(logging.ERROR)

    await store.save(SITE, FIRST)

    assert await store.load(SITE) == FIRST


async def test_two_processes_that_save_the_same_origins_lose_neither_the_copy_nor_the_back_off(opened):
    one, other = opened(), opened()
    copy = renewed(None, Found(b"Disallow: /", 200, SITE.robots_url), POLICY, 10.0)
    failure = renewed(None, Unreachable(Reason.SERVER_ERROR, SITE.robots_url, 503), POLICY, 11.0)
    origins = [Origin.of(f"https://h{number}.test") for number in range(300)]

    await asyncio.gather(
        *(one.save(origin, copy) for origin in origins),
        *(other.save(origin, failure) for origin in reversed(origins)),
    )
    kept = [await one.load(origin) for origin in origins]

    assert {(each.access, each.good, each.expires_at) for each in kept} == {
        (failure.access, copy.access, failure.expires_at)
    }


async def test_a_hold_that_comes_after_closing_opens_nothing_and_is_kept_when_the_store_is_used_again(
    opened, caplog
):
    store = opened()
    await store.save(SITE, FIRST)
    await store.close()

    store.hold(SITE, HOUR)
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("polite")]
    await store.save(OTHER, FIRST)

    assert threads == []
    assert "came after" in caplog.text
    assert await store.held(SITE) == HOUR


async def test_a_hold_that_comes_after_closing_is_kept_when_the_store_is_closed_once_more(opened):
    store = opened()
    await store.open()
    await store.close()

    store.hold(SITE, HOUR)
    await store.close()

    assert await opened().held(SITE) == HOUR


def removed(path):
    path.unlink()
    return "removed"


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


@pytest.mark.parametrize("happening", [removed, replaced])
async def test_a_file_that_is_removed_or_replaced_while_in_use_is_noticed_by_the_next_save(
    opened, path, happening
):
    store = opened()
    await store.save(SITE, FIRST)
    word = await asyncio.to_thread(happening, path)

    with pytest.raises(StoreFailed, match=f"crawl.sqlite was {word} while it was in use"):
        await store.save(SITE, FIRST)
    await store.save(SITE, SECOND)

    assert await opened().load(SITE) == SECOND
    assert (await opened().load(OTHER) is None) == (happening is removed)


@pytest.mark.parametrize("happening", [removed, replaced])
async def test_a_file_that_is_removed_or_replaced_while_in_use_is_noticed_by_the_next_load(
    opened, path, happening
):
    store = opened()
    await store.save(SITE, FIRST)
    await store.load(SITE)
    word = await asyncio.to_thread(happening, path)

    with pytest.raises(StoreFailed, match=word):
        await store.load(SITE)

    assert await store.load(SITE) is None


async def test_by_policy_memory_takes_the_place_of_a_file_that_was_removed(opened, path, caplog, monkeypatch):
    monkeypatch.setattr(outage, "_TRY_EVERY_S", 0.0)
    store = opened(on_failure="memory")
    await store.save(OTHER, FIRST)
    path.unlink()

    await store.save(SITE, FIRST)
    await store.save(SITE, SECOND)

    assert "was removed while it was in use" in caplog.text
    assert await opened().load(SITE) == SECOND
