"""`on_failure="memory"`: memory takes over while the file fails, and the file has all of it afterwards."""

import sqlite3
from contextlib import closing

import pytest

from polite.errors import StoreFailed
from polite.stores import fallback as outage
from polite.stores.sqlite import SqliteStore
from tests.stores.support import FAULTS, FIRST, HOUR, OTHER, SECOND, SITE, THIRD, filled, read_only, torn


@pytest.mark.parametrize("fault", FAULTS)
async def test_memory_takes_over_and_says_so_once(path, fault, caplog):
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
    store._write_file.write = lambda *_: tries.append(1)
    store._read_file.load_batch = lambda *_: tries.append(1)
    store._read_breaker.record_failure(StoreFailed("x"))

    await store.save(SITE, FIRST)
    await store.load(OTHER)

    assert tries == []
    await store.close()


async def test_what_could_not_be_written_is_tried_once_more_at_the_end(opened, path, caplog):
    lost, saved = SqliteStore(path.parent, on_failure="memory"), opened(on_failure="memory")
    saved._write_breaker.record_failure(StoreFailed("x"))

    for store in (lost, saved):
        await store.save(SITE, FIRST)
        await store.close()

    assert await opened().load(SITE) == FIRST
    assert "1 result stays in memory" in caplog.text
    assert await lost.load(SITE) == FIRST


async def test_memory_takes_over_from_a_file_that_was_removed(opened, path, caplog, monkeypatch):
    monkeypatch.setattr(outage, "_TRY_EVERY_S", 0.0)
    store = opened(on_failure="memory")
    await store.save(OTHER, FIRST)
    path.unlink()

    await store.save(SITE, FIRST)
    await store.save(SITE, SECOND)

    assert "was removed while it was in use" in caplog.text
    assert await opened().load(SITE) == SECOND
