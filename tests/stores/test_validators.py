"""Validators of pages in memory and in a file: bounded, written together, and never sent if they are damaged."""

import asyncio
import sqlite3
from contextlib import closing
from random import Random

import pytest

from polite.errors import InvalidOption, StoreFailed
from polite.origin import Target
from polite.recrawl import Validators
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from polite.stores import sqlite as sqlite_store
from polite.stores import sqlite as unwritten_validators
from polite.stores.database import checksum
from polite.stores.memory import MemoryValidators
from polite.stores.sqlite import UnwrittenValidators
from tests.stores.support import FIRST, POLICY, SITE, raw

TAG = Validators('"1"')


def page(number):
    return Target.of(f"https://site.test/{number}")


async def known(store, numbers):
    return [number for number in numbers if await store.validators(page(number))]


async def test_memory_forgets_the_page_that_was_reported_least_recently():
    store = MemoryValidators(max_urls=3)
    for number in (1, 2, 3, 1, 4):
        store.remember(page(number), TAG)

    assert await known(store, range(5)) == [1, 3, 4]


async def test_memory_is_bounded_in_octets_and_counts_back_to_nothing():
    store = MemoryValidators(max_memory=1 << 16)
    for number in range(1_000):
        store.remember(page(number), TAG)
        assert store.memory_used <= 1 << 16
    for number in range(1_000):
        store.remember(page(number), Validators())

    assert store.memory_used == 0


@pytest.mark.parametrize("options", [{"max_urls": 0}, {"max_urls": 1.5}, {"max_memory": 1}])
def test_memory_refuses_limits_that_are_none(options):
    with pytest.raises(InvalidOption, match=f"MemoryValidators: {next(iter(options))}"):
        MemoryValidators(**options)


async def test_a_file_keeps_at_most_max_urls(opened, path, monkeypatch):
    monkeypatch.setattr("polite.stores.robots_database._COUNT_EVERY", 10)
    store = opened(max_urls=100)
    for number in range(300):
        store.remember(page(number), TAG)
        if number % 30 == 29:
            store._write_unwritten()
            await store.open()
    await store.close()

    (count,) = raw(path, "SELECT count(*) FROM validators")[0]
    assert 90 <= count <= 100
    assert await known(opened(), range(295, 300)) == list(range(295, 300))


async def test_a_full_file_loses_validators_before_robots(opened, path):
    store = opened(max_bytes=1 << 20)
    await store.save(SITE, FIRST)
    for number in range(20_000):
        store.remember(page(number), Validators(f'"{"x" * 200}"'))
    await store.close()

    assert 0 < raw(path, "SELECT count(*) FROM validators")[0][0] < 5_000
    assert await opened(max_bytes=1 << 20).load(SITE) == FIRST
    again = opened(max_bytes=1 << 20)
    packs_not = Found(Random(1).randbytes(1_000_000), 200, SITE.robots_url)
    await again.save(SITE, renewed(None, packs_not, POLICY, 1.0))
    assert raw(path, "SELECT count(*) FROM validators") == [(0,)]


async def test_many_pages_are_one_transaction_a_second(opened, path, monkeypatch):
    batches = []
    write = sqlite_store.RobotsDatabase.write_validators
    monkeypatch.setattr(
        sqlite_store.RobotsDatabase,
        "write_validators",
        lambda self, pages: (batches.append(len(pages)), write(self, pages))[1],
    )
    monkeypatch.setattr(sqlite_store, "_WRITE_AFTER_S", 0.0)
    store = opened()
    await store.open()
    for number in range(500):
        store.remember(page(number), TAG)
    while not batches:
        await asyncio.sleep(0)
    await store.open()

    assert batches == [500]
    assert raw(path, "SELECT count(*) FROM validators") == [(500,)]
    assert raw(path, "SELECT url, etag, last_modified FROM validators LIMIT 1") == [
        ("https://site.test/0", '"1"', None)
    ]


async def test_a_row_that_was_changed_is_not_used(opened, path, caplog):
    store = opened()
    for number in range(3):
        store.remember(page(number), TAG)
    await store.close()
    raw(path, "UPDATE validators SET etag = ? WHERE url = ?", '"2"', page(0).url)
    forged = (page(1).url, '"a\r\nX: y"', None)
    raw(
        path,
        "UPDATE validators SET etag = ?, checksum = ? WHERE url = ?",
        forged[1],
        checksum(forged),
        forged[0],
    )

    assert await known(opened(), range(3)) == [2]
    assert "checksum is wrong" in caplog.text


async def test_while_the_file_is_locked_pages_wait_and_are_known(opened, path, caplog):
    store = opened(busy_timeout=0.0)
    await store.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        store.remember(page(1), TAG)
        store._write_unwritten()
        with pytest.raises(StoreFailed, match="locked"):
            await store.open()
        assert await store.validators(page(1)) == TAG
    store.remember(page(2), TAG)
    await store.close()

    assert "the validators of 1 page were not saved" in caplog.text
    assert await known(opened(), range(3)) == [1, 2]


def test_what_waits_is_bounded_and_the_oldest_goes(monkeypatch):
    monkeypatch.setattr(unwritten_validators, "_MOST_WAITING", 3)
    waiting = UnwrittenValidators()
    for number in range(4):
        waiting.put(str(number), TAG)
    assert [waiting.get(str(number)) for number in range(4)] == [None, TAG, TAG, TAG]

    waiting.take()
    waiting.put("4", TAG)
    waiting.put("1", Validators())
    waiting.put_back()

    assert len(waiting) == 3
    assert waiting.get("1") == Validators()
    assert waiting.get("2") is None


async def test_a_file_of_an_earlier_version_gets_the_table(opened, path):
    store = opened()
    await store.save(SITE, FIRST)
    await store.close()
    raw(path, "DROP TABLE validators")
    raw(path, "PRAGMA user_version = 3")

    store = opened()
    store.remember(page(1), TAG)
    await store.close()

    assert await known(opened(), [1]) == [1]
    assert await opened().load(SITE) == FIRST
