"""The store in a file: kept between runs, shared between stores and processes, and its options checked."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from polite.errors import InvalidOption
from polite.origin import Origin
from polite.ports import BackOffStore, RobotsStore
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import renewed
from polite.stores.sqlite import SqliteStore
from tests.stores.support import (
    FIRST,
    OTHER,
    POLICY,
    SECOND,
    SITE,
    raw,
)
from tests.support import started_since

ROOT = Path(__file__).resolve().parents[2]


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
    write = store._write_file.write
    monkeypatch.setattr(
        store._write_file, "write", lambda s, *more: (batches.append(len(s)), write(s, *more))
    )

    await asyncio.gather(*(store.save(Origin.of(f"https://h{n}.test"), FIRST) for n in range(500)))

    assert sum(batches) == 500
    assert len(batches) < 10


async def test_of_two_saves_of_one_origin_the_later_counts(opened):
    store = opened()

    await asyncio.gather(store.save(SITE, FIRST), store.save(SITE, SECOND))

    assert await store.load(SITE) == SECOND


async def test_a_save_whose_caller_was_cancelled_is_written_all_the_same(opened):
    store = opened()
    saving = asyncio.create_task(store.save(SITE, FIRST))
    await asyncio.sleep(0)

    saving.cancel()
    await asyncio.gather(saving, return_exceptions=True)
    await store.close()

    assert await store.load(SITE) == FIRST


async def test_a_closed_store_may_be_used_again_and_leaves_no_thread(opened):
    before = set(threading.enumerate())
    store = opened()
    await store.save(SITE, FIRST)
    await store.load(SITE)
    await store.close()
    await store.close()

    assert not started_since(before)
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


@pytest.mark.slow("starts processes")
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

    with pytest.raises(InvalidOption, match=f"SqliteStore: {name} must be"):
        SqliteStore("x", **option)


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
