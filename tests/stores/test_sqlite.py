"""The store in a file: one thread, group commit, shared between stores, loops and processes, and within its limit."""

import asyncio
import logging
import random
import sqlite3
import threading
from contextlib import closing

import pytest

from polite.errors import InvalidOption, Overloaded, StoreFailed
from polite.origin import Origin, Target
from polite.ports import SavedBackOff
from polite.recrawl import Validators
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import renewed
from polite.stores import codec
from polite.stores import sqlite as module
from polite.stores.sqlite import SqliteStore
from tests.stores.support import FIRST, HOUR, OTHER, POLICY, SECOND, SITE, raw

PAGE, TAG = Target.of("https://site.test/1"), Validators('"1"')
NUMBERED = [Origin.of(f"https://h{number}.test") for number in range(500)]


def batches_of(store, monkeypatch):
    batches, write = [], store._file.write

    def noted(snapshots, back_offs, pages):
        write(snapshots, back_offs, pages)
        batches.append((len(snapshots), len(pages)))

    monkeypatch.setattr(store._file, "write", noted)
    return batches


async def test_what_was_saved_is_there_for_another_process_at_once(opened, path):
    await opened().save(SITE, FIRST)
    assert await opened().load(SITE) == FIRST
    assert raw(path, "SELECT origin, outcome, status, body FROM robots") == [
        ("https://site.test", "found", 200, b"User-agent: *")
    ]
    # Written ahead, so that a reader never waits.
    assert raw(path, "PRAGMA journal_mode") == [("wal",)]


async def test_a_closed_store_is_whole_in_its_file_though_another_connection_is_open(opened, path, tmp_path):
    store, alone = opened(), tmp_path / "alone.sqlite"
    await store.save(SITE, FIRST)
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT count(*) FROM robots").fetchall()
        await store.close()
        alone.write_bytes(path.read_bytes())
    assert raw(alone, "SELECT origin FROM robots") == [("https://site.test",)]


async def test_saves_that_come_together_are_one_transaction_of_so_many_at_most(opened, monkeypatch):
    monkeypatch.setattr(module, "_MAX_BATCH", 100)
    store = opened()
    batches = batches_of(store, monkeypatch)
    await asyncio.gather(*(store.save(origin, FIRST) for origin in NUMBERED))
    assert (sum(saved for saved, _ in batches), max(saved for saved, _ in batches)) == (500, 100)
    assert len(batches) < 20


async def test_validators_are_written_together_a_second_later(opened, monkeypatch, path):
    monkeypatch.setattr(module, "_WRITE_AFTER_S", 0.01)
    store = opened()
    batches = batches_of(store, monkeypatch)

    for number in range(500):
        store.remember(Target.of(f"https://site.test/{number}"), TAG)
    while not batches:
        await asyncio.sleep(0)

    assert batches == [(0, 500)]
    assert raw(path, "SELECT url, etag, last_modified FROM validators LIMIT 1") == [
        ("https://site.test/0", '"1"', None)
    ]


async def test_closing_writes_what_was_asked_for_although_nothing_waits_for_it(opened, path):
    store = opened()
    saving = asyncio.create_task(store.save(SITE, FIRST))
    await asyncio.sleep(0)

    closing_it = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    closing_it.cancel()
    await saving
    await store.close()

    assert raw(path, "SELECT origin FROM robots") == [("https://site.test",)]
    assert not any(str(path) in thread.name for thread in threading.enumerate())


async def test_the_loop_goes_on_while_the_file_is_locked(opened, path):
    store = opened(busy_timeout=60.0)
    await store.save(OTHER, FIRST)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        saving = asyncio.create_task(store.save(SITE, FIRST))
        for _ in range(100):
            await asyncio.sleep(0)
        waiting = not saving.done()
        rival.execute("ROLLBACK")
    await saving

    assert waiting


async def test_event_loops_of_several_threads_share_a_store(opened):
    store = opened()

    async def use(origins):
        await asyncio.gather(*(store.save(origin, FIRST) for origin in origins))
        return await asyncio.gather(*map(store.load, origins))

    async def leave():
        store._queue(module._Job(str(SITE), SECOND, asyncio.get_running_loop().create_future()))

    await asyncio.to_thread(asyncio.run, leave())  # its loop has ended when the job is done
    elsewhere = asyncio.to_thread(asyncio.run, use(NUMBERED[:250]))
    assert await asyncio.gather(use(NUMBERED[250:]), elsewhere) == [[FIRST] * 250] * 2
    assert await store.load(SITE) == SECOND


async def test_two_stores_write_to_one_file_and_nothing_is_lost(opened):
    one, other = opened(), opened()
    copy = renewed(None, Found(b"Disallow: /", 200, SITE.robots_url), POLICY, 10.0)
    failure = renewed(None, Unreachable(Reason.SERVER_ERROR, SITE.robots_url, 503), POLICY, 11.0)

    await asyncio.gather(
        *(one.save(origin, copy) for origin in NUMBERED),
        *(other.save(origin, failure) for origin in reversed(NUMBERED)),
    )
    kept = [await one.load(origin) for origin in NUMBERED]

    assert {(each.access, each.good, each.expires_at) for each in kept} == {
        (failure.access, copy.access, failure.expires_at)
    }


async def test_more_than_the_disk_takes_is_refused(opened, monkeypatch, caplog):
    monkeypatch.setattr(module, "_MAX_WAITING", 0)
    store = opened()
    with pytest.raises(Overloaded, match="does not keep up"):
        await store.save(SITE, FIRST)
    store.hold(SITE, HOUR)
    store.remember(PAGE, TAG)
    assert caplog.text.count("saved: ") == 2


async def test_a_defect_of_ours_is_raised_to_the_caller_and_the_thread_goes_on(opened, monkeypatch, caplog):
    store = opened()
    with monkeypatch.context() as patched:
        patched.setattr(codec, "row", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            await store.save(SITE, FIRST)
    caplog.set_level(logging.ERROR)

    await store.save(SITE, FIRST)

    assert await store.load(SITE) == FIRST


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_hold_never_becomes_shorter(opened, at_once):
    store, year = opened(), 365 * 86_400.0
    shorter, longer = SavedBackOff(20.0, 30.0, "shorter"), SavedBackOff(30.0, 9_000.0, "longer")
    # A hold of a clock that was ahead hides no longer one.
    ahead, behind = SavedBackOff(year, year + 20.0, "ahead"), SavedBackOff(5.0, 15.0, "behind")

    for origin, holds in ((SITE, (HOUR, shorter, longer, shorter)), (OTHER, (ahead, behind, longer, behind))):
        for hold in holds:
            store.hold(origin, hold)
            if not at_once:
                await store.save(origin, FIRST)
        await store.save(origin, FIRST)

    assert (await store.held(SITE), await store.held(OTHER)) == (longer, longer)
    assert await store.load(SITE) == FIRST


@pytest.mark.parametrize(("now", "left"), [(10.0, 3600.0), (3_600.0, 10.0), (4_000.0, 0.0), (-1e9, 3_600.0)])
def test_a_hold_is_never_longer_than_it_was_however_a_clock_is_set(now, left):
    assert HOUR.left_s(now) == left


@pytest.mark.parametrize("then", ["used", "closed"])
async def test_what_comes_after_closing_starts_no_thread_and_is_saved_later(opened, caplog, path, then):
    store = opened()
    await store.save(SITE, FIRST)
    await store.close()

    store.hold(SITE, HOUR)
    store.remember(PAGE, TAG)
    await asyncio.sleep(0)
    threads = [each for each in threading.enumerate() if str(path) in each.name]
    await (store.save(OTHER, FIRST) if then == "used" else store.close())

    assert not threads
    assert caplog.text.count("came after") == 1
    again = opened()
    assert (await again.held(SITE), await again.validators(PAGE)) == (HOUR, TAG)


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b", 3, None, b"crawl.sqlite"])
def test_a_name_that_is_none_of_a_file_is_refused(path):
    with pytest.raises(InvalidOption, match="name of a file"):
        SqliteStore(path)


@pytest.mark.parametrize("option", [{"max_bytes": 1000}, {"busy_timeout": -1.0}, {"on_failure": "ignore"}])
def test_an_option_outside_its_limits_is_refused(option):
    (name,) = option
    with pytest.raises(InvalidOption, match=f"SqliteStore: {name} must be"):
        SqliteStore("x", **option)


# The limit: validators go first, then what was saved longest ago, a back-off that still runs never.

MIB = 1 << 20


def site(number):
    return Origin.of(f"https://h{number}.test")


def found(octets):
    return renewed(None, Found(random.Random(octets).randbytes(octets), 200, ""), POLICY, 15.0)


async def known(store, numbers):
    return [number for number in numbers if await store.load(site(number)) is not None]


async def test_what_was_saved_longest_ago_goes_first(opened, path):
    store = opened(max_bytes=MIB)

    await store.save(SITE, FIRST)
    for number in range(200):
        await store.save(site(number), found(40_000))
        await store.save(SITE, FIRST)
    kept = await known(store, range(200))
    await store.close()

    assert kept == list(range(200 - len(kept), 200))
    assert 10 < len(kept) <= MIB / 40_000
    assert await store.load(SITE) == FIRST
    assert path.stat().st_size < 1.5 * MIB


async def test_a_server_that_failed_is_not_forgotten_while_it_may_not_be_asked_again(opened):
    now = 20.0
    store = opened(max_bytes=MIB, wall=lambda: now)
    failed = renewed(None, Unreachable(Reason.TIMEOUT, "", retry_after_s=600.0), POLICY, 20.0)

    await store.save(site(0), failed)
    for number in range(1, 101):
        await store.save(site(number), found(40_000))
    while_it_runs = await known(store, range(2))
    now = failed.expires_at
    for number in range(101, 201):
        await store.save(site(number), found(40_000))

    assert while_it_runs == [0]
    assert await known(store, range(2)) == []


async def test_validators_go_before_robots_txt(opened, path):
    store = opened(max_bytes=MIB)
    await store.save(SITE, FIRST)
    for number in range(20_000):
        store.remember(Target.of(f"https://site.test/{number}"), Validators(f'"{"x" * 200}"'))
    await store.close()

    assert 0 < raw(path, "SELECT count(*), max(url) FROM validators")[0][0] < 5_000
    assert await store.validators(Target.of("https://site.test/19999"))
    assert await store.load(SITE) == FIRST
    await store.save(site(1), found(1_000_000))
    assert raw(path, "SELECT count(*) FROM validators") == [(0,)]


async def test_back_offs_that_run_stay_when_all_else_has_gone(opened):
    store = opened(max_bytes=MIB)
    for number in range(5_000):
        store.hold(site(number), SavedBackOff(0.0, 4_000.0, "x" * 220))

    for number in range(3):
        await store.save(site(number), found(200_000))

    assert all([await store.held(site(number)) for number in range(0, 5_000, 99)])
    # Beyond twice the limit, saving fails.
    for number in range(5_000, 12_000):
        store.hold(site(number), SavedBackOff(0.0, 4_000.0, "x" * 220))
    with pytest.raises(StoreFailed, match="may not be forgotten"):
        await store.open()
