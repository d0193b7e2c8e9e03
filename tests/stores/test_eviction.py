"""The file stays within its bounds: what was used longest ago goes first, a back-off that still runs never."""

import asyncio
import sqlite3
from contextlib import closing

from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import renewed

MIB = 1 << 20
DAY = 86_400.0
POLICY = RobotsPolicy()


def site(number):
    return Origin.of(f"https://h{number}.test")


def found(octets=10):
    """Nothing that packs."""
    body = b"".join(hash((octets, n)).to_bytes(8, "big", signed=True) for n in range(octets // 8 + 1))
    return renewed(None, Found(body, 200, ""), POLICY, 15.0)


async def known(store, numbers):
    return [number for number in numbers if await store.load(site(number)) is not None]


def origins(path):
    """What is in the file, in the order in which it goes."""
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT origin FROM robots ORDER BY saved")]


async def test_beyond_max_origins_what_was_saved_longest_ago_goes(opened):
    store = opened(max_origins=3)

    for number in (1, 2, 3, 1, 4):
        await store.save(site(number), found())

    assert await known(store, range(1, 5)) == [1, 3, 4]


async def test_what_was_read_goes_later_than_what_was_not(opened):
    store = opened(max_origins=10)
    for number in range(10):
        await store.save(site(number), found())

    await known(store, (0, 2, 9))
    await store.save(site(10), found())
    await store.save(site(11), found())

    assert await known(store, range(12)) == [0, 2, *range(4, 12)]


async def test_what_was_read_is_as_it_was(opened, path):
    store = opened()
    for number in range(4):
        await store.save(site(number), found(number))

    await known(store, (0, 1, 3))
    await store.save(site(4), found())
    await store.close()

    assert origins(path) == [str(site(number)) for number in (2, 3, 0, 1, 4)]
    again = opened()
    assert [await again.load(site(number)) for number in range(4)] == [found(number) for number in range(4)]


async def test_so_many_reads_are_told_with_one_write(opened):
    store = opened()
    await asyncio.gather(*(store.save(site(number), found()) for number in range(1_500)))

    await known(store, range(1_500))

    assert len(store._used) == 1_000


async def test_a_batch_that_is_larger_than_the_bound_does_not_break_it(opened):
    store = opened(max_origins=100)

    await asyncio.gather(*(store.save(site(n), found()) for n in range(1_000)))

    assert await known(store, range(1_000)) == list(range(905, 1_000))


async def test_the_bound_holds_whatever_was_there_before(opened):
    first = opened()
    await asyncio.gather(*(first.save(site(n), found()) for n in range(50)))
    await first.close()

    store = opened(max_origins=10)
    await store.save(site(50), found())

    assert await known(store, range(51)) == list(range(41, 51))


async def test_a_server_that_failed_is_not_forgotten_while_it_may_not_be_asked_again(opened, path):
    now = 20.0
    store = opened(max_origins=2, wall=lambda: now)
    failed = renewed(None, Unreachable(Reason.TIMEOUT, "", retry_after_s=600.0), POLICY, 20.0)

    await store.save(site(0), failed)
    for number in range(1, 5):
        await store.save(site(number), found())
    while_it_runs = origins(path)
    now = failed.expires_at
    await store.save(site(5), found())

    assert while_it_runs == [str(site(0)), str(site(4))]
    assert await known(store, range(6)) == [4, 5]


async def test_max_bytes_bounds_what_the_file_holds(opened, path):
    store = opened(max_bytes=MIB)

    for number in range(200):
        await store.save(site(number), found(40_000))
    kept = await known(store, range(200))
    await store.close()

    assert kept == list(range(200 - len(kept), 200))
    assert 10 < len(kept) <= MIB / 40_000
    assert path.stat().st_size < 1.5 * MIB


async def test_back_offs_that_run_stay_when_all_else_has_gone(opened):
    store = opened(max_bytes=MIB, max_origins=1)
    for number in range(5_000):
        store.hold(site(number), SavedBackOff(0.0, 4_000.0, "status 429, Retry-After 4000 s"))

    await asyncio.gather(*(store.save(site(n), found(200_000)) for n in range(3)))

    assert all([await store.held(site(number)) for number in range(0, 5_000, 99)])


async def test_what_only_back_offs_fill_is_left_to_the_hard_limit(opened):
    store = opened(max_bytes=MIB)

    for number in range(2_000):
        store.hold(site(number), SavedBackOff(0.0, 4_000.0, "x" * 1_000))
    await store.open()

    assert all([await store.held(site(number)) for number in range(0, 2_000, 99)])
    assert (await store.held(site(0))).because == "x" * 500


async def test_back_offs_are_forgotten_long_after_their_end(opened):
    now = 4_000.0
    store = opened(wall=lambda: now)
    store.hold(site(1), SavedBackOff(0.0, 3_600.0, "over"))
    await store.save(site(1), found())
    over_for_a_moment = await store.held(site(1))

    now += 30 * DAY
    store._write_file._evictor._saves_left = 0
    await store.save(site(2), found())
    a_month_ahead = await store.held(site(1))
    now += 10 * DAY
    store._write_file._evictor._saves_left = 0
    await store.save(site(2), found())

    assert over_for_a_moment is not None
    assert a_month_ahead is not None
    assert await store.held(site(1)) is None


async def test_a_full_store_forgets_back_offs_a_day_after_their_end(opened):
    now = 4_000.0
    store = opened(max_bytes=MIB, wall=lambda: now)
    store.hold(site(1), SavedBackOff(0.0, 3_600.0, "over"))
    store.hold(site(2), SavedBackOff(0.0, 3_600.0 + DAY, "over for an hour"))

    now += DAY
    for number in range(50):
        await store.save(site(number), found(40_000))

    assert await store.held(site(1)) is None
    assert await store.held(site(2)) is not None
