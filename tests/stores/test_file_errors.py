"""A file that is missing, corrupt, locked, full or read-only: the error is clear, and nothing acknowledged is lost."""

import asyncio
import logging
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from polite.errors import Overloaded, StoreFailed
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from polite.stores import batch_worker as worker
from polite.stores.robots_database import RobotsDatabase
from polite.stores.sqlite import SqliteStore
from tests.stores.support import (
    FAULTS,
    FIRST,
    HOUR,
    OTHER,
    POLICY,
    SECOND,
    SITE,
    filled,
    not_a_database,
    raw,
    read_only,
    removed,
    torn,
)

ROOT = Path(__file__).resolve().parents[2]


def noise(octets):
    """Octets that do not pack."""
    state, made = 1, bytearray()
    while len(made) < octets:
        state = state * 6364136223846793005 % 2**64 + 1442695040888963407
        made += (state >> 24 & 0xFFFFFFFF).to_bytes(4, "big")
    return bytes(made)


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
    file = RobotsDatabase(path)
    file.load(str(SITE))
    path.rename(path.parent / "elsewhere")
    if new is not None:
        path.write_bytes(new)
    error = sqlite3.DatabaseError("malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT

    said = file._database._failure(error)
    file.close()

    assert "another process has already renamed it" in str(said)
    assert [file.read_bytes() for file in path.parent.glob("crawl.sqlite")] == ([] if new is None else [new])


async def test_a_corrupt_file_that_cannot_be_set_aside_stays(path, monkeypatch):
    path.write_bytes(b"nonsense " * 100)
    monkeypatch.setattr(type(path), "rename", lambda *_: (_ for _ in ()).throw(PermissionError("not here")))
    store = SqliteStore(path)

    with pytest.raises(StoreFailed, match="could not be renamed .not here"):
        await store.open()
    await store.close()

    assert path.exists()


async def test_a_file_that_stays_locked_is_an_error_that_names_the_option(opened, path):
    store = opened(busy_timeout=0.01)
    await store.save(OTHER, FIRST)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match="busy timeout of 0.01 s"):
            await store.save(SITE, FIRST)

    await store.save(SITE, FIRST)

    assert await store.load(SITE) == FIRST


async def test_a_new_file_that_another_process_is_writing_is_waited_for(opened, path):
    store = opened(busy_timeout=0.02)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match="busy timeout"):
            await store.open()

    await store.open()


async def test_a_full_disk_is_an_error_and_loses_nothing_that_was_acknowledged(opened):
    store = opened()
    store._write_file._max_bytes = 16 * 4096
    await store.save(SITE, FIRST)

    with pytest.raises(StoreFailed, match="disk is full"):
        await store.save(OTHER, renewed(None, Found(noise(200_000), 200, ""), POLICY, 1.0))

    assert await store.load(SITE) == FIRST
    assert await store.load(OTHER) is None


def test_a_file_that_may_not_grow_is_an_error_too(path):
    """The kernel refuses, as it does when the disk is full or a quota is reached."""
    program = """
import asyncio, os, resource, sys
from polite.errors import StoreFailed
from polite.origin import Origin
from polite.robots.result import Found
from polite.robots.snapshot import Snapshot
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


async def test_reading_that_fails_is_an_error_of_load(path):
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
    monkeypatch.setattr(worker, "_MAX_WAITING", 0)
    store = opened()

    with pytest.raises(Overloaded, match="does not keep up"):
        await store.save(SITE, FIRST)
    store.hold(SITE, HOUR)

    assert "was not saved" in caplog.text


async def test_a_defect_of_ours_is_raised_to_the_caller_and_the_thread_goes_on(opened, monkeypatch, caplog):
    store = opened()
    with monkeypatch.context() as patched:
        patched.setattr(store._write_file, "write", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            await store.save(SITE, FIRST)
    caplog.set_level(logging.ERROR)

    await store.save(SITE, FIRST)

    assert await store.load(SITE) == FIRST


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
