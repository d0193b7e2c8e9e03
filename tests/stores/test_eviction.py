"""The file stays within its limit: validators go first, then what was saved longest ago, a back-off that still runs never."""

import random

import pytest

from polite.errors import StoreFailed
from polite.origin import Origin, Target
from polite.ports import SavedBackOff
from polite.recrawl import Validators
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import renewed
from tests.stores.support import FIRST, POLICY, SITE, raw

MIB = 1 << 20
DAY = 86_400.0


def site(number):
    return Origin.of(f"https://h{number}.test")


def found(octets):
    """A body that does not compress."""
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

    counts = raw(path, "SELECT count(*), max(url) FROM validators")
    assert 0 < counts[0][0] < 5_000
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
