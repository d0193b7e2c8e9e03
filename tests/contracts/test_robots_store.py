"""What every RobotsStore does; a new one joins with a line."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from polite.clock import SystemClock
from polite.errors import InvalidOption
from polite.origin import Origin
from polite.ports import RobotsStore
from polite.robots.fetching.result import Found, Unavailable, Unreachable
from polite.robots.fetching.snapshot import Snapshot, renewed
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.stores.memory import MemoryStore
from polite.stores.redis.address import Address
from polite.stores.redis.link import RedisLink
from polite.stores.redis.robots import RedisStore
from polite.stores.sqlite import SqliteStore

SITE, OTHER = Origin.of("https://site.test/"), Origin.of("http://site.test/")
POLICY = RobotsPolicy()
FIRST = renewed(None, Found(b"User-agent: *", 200, SITE.robots_url), POLICY, 1.0)
SECOND = renewed(FIRST, Unreachable(Reason.TIMEOUT, SITE.robots_url), POLICY, 2.0)


class EarlyClock(SystemClock):
    """A host whose wall clock is decades behind the server's, at 120 s when a test begins."""

    def __init__(self) -> None:
        self._began = int(time.time())

    def wall(self) -> float:  # type: ignore[override]
        return time.time() - self._began + 120.0


@pytest.fixture(params=["memory", "sqlite", "sqlite, with memory to fall back on", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path) -> AsyncIterator[RobotsStore]:
    if request.param == "redis":
        link = RedisLink.to(Address.of(request.getfixturevalue("valkey").url))
        yield RedisStore(link, EarlyClock())
        await link.close()
        return
    stores = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "crawl.sqlite", wall=lambda: 120.0),
        "sqlite, with memory to fall back on": lambda: SqliteStore(tmp_path, on_failure="memory"),
    }
    made = stores[request.param]()
    yield made
    await made.close()


async def test_what_was_never_saved_is_not_there(store: RobotsStore) -> None:
    assert await store.load(SITE) is None


async def test_the_latest_snapshot_comes_back_whole(store: RobotsStore) -> None:
    await store.save(SITE, FIRST)
    await store.save(SITE, SECOND)

    assert await store.load(SITE) == SECOND


# What two gates learn of one origin: which of it is kept, whoever saves first.

EARLIER, LATER = 100.0, 110.0


def good(at: float, body: bytes = b"Disallow: /") -> Snapshot:
    return renewed(None, Found(body, 200, SITE.robots_url), POLICY, at)


def gone(at: float) -> Snapshot:
    return renewed(None, Unavailable(Reason.UNAVAILABLE, SITE.robots_url, 404), POLICY, at)


def failed(at: float, before: Snapshot | None = None, retry_after_s: float | None = None) -> Snapshot:
    access = Unreachable(Reason.SERVER_ERROR, SITE.robots_url, 503, retry_after_s=retry_after_s)
    return renewed(before, access, POLICY, at)


async def both_ways(store: RobotsStore, one: Snapshot, other: Snapshot) -> Snapshot:
    """What is kept of both, which must be the same whichever is saved first."""
    for origin, snapshots in ((SITE, (one, other)), (OTHER, (other, one))):
        for snapshot in snapshots:
            await store.save(origin, snapshot)
    kept, reversed_ = await store.load(SITE), await store.load(OTHER)
    assert kept is not None
    assert kept == reversed_
    return kept


@pytest.mark.parametrize("earlier", [good(EARLIER, b"Allow: /"), gone(EARLIER), failed(EARLIER)])
@pytest.mark.parametrize("later", [good(LATER), gone(LATER)])
async def test_a_later_answer_of_the_server_counts_as_it_is(
    store: RobotsStore, earlier: Snapshot, later: Snapshot
) -> None:
    assert await both_ways(store, earlier, later) == later


@pytest.mark.parametrize("copy", [good(EARLIER), gone(EARLIER)])
async def test_a_later_failure_leaves_the_good_copy_for_as_long_as_it_was_good(
    store: RobotsStore, copy: Snapshot
) -> None:
    failure = failed(LATER, before=failed(EARLIER - 50), retry_after_s=86_000)

    kept = await both_ways(store, copy, failure)

    assert (kept.access, kept.expires_at) == (failure.access, failure.expires_at)
    assert (kept.good, kept.good_at, kept.good_until) == (copy.access, EARLIER, copy.expires_at)
    # The answer in between ended the row of failures that this gate saw.
    assert (kept.unreachable_since, kept.failures) == (LATER, 1)


async def test_an_earlier_failure_that_is_saved_late_changes_nothing(store: RobotsStore) -> None:
    copy = good(LATER)

    assert await both_ways(store, copy, failed(EARLIER, retry_after_s=86_000)) == copy


async def test_of_two_failures_the_younger_copy_and_the_longer_back_off_are_kept(store: RobotsStore) -> None:
    copy = good(EARLIER - 50)
    longer, later = (
        failed(EARLIER, copy, retry_after_s=86_000),
        failed(LATER, good(EARLIER - 90, b"Allow: /")),
    )

    kept = await both_ways(store, longer, later)

    assert (kept.access, kept.fetched_at, kept.expires_at) == (later.access, LATER, longer.expires_at)
    assert (kept.good, kept.good_until) == (copy.good, copy.expires_at)


async def test_thirty_days_count_from_the_first_failure_of_the_row_that_goes_on(store: RobotsStore) -> None:
    first = failed(EARLIER)
    again = failed(LATER, before=first)

    kept = await both_ways(store, first, again)

    assert (kept.unreachable_since, kept.failures) == (EARLIER, 2)


async def test_a_failure_that_is_older_than_the_copy_does_not_count_for_the_thirty_days(
    store: RobotsStore,
) -> None:
    copy = good(EARLIER)
    other = failed(EARLIER + 5, before=copy)
    ours = failed(LATER, before=failed(EARLIER - 40 * 86_400))

    kept = await both_ways(store, other, ours)

    assert (kept.unreachable_since, kept.good, kept.failures) == (EARLIER + 5, copy.good, 1)


async def test_what_a_clock_dated_that_was_set_back_since_gives_way(store: RobotsStore) -> None:
    ahead, now = good(EARLIER + 3_600, b"Allow: /"), good(EARLIER)

    await store.save(SITE, ahead)
    await store.save(SITE, now)

    assert await store.load(SITE) == now


async def test_many_saves_of_one_origin_at_one_time_end_as_if_they_came_in_turn(store: RobotsStore) -> None:
    copy = good(LATER)

    await asyncio.gather(
        *(store.save(SITE, s) for s in (copy, failed(EARLIER), failed(EARLIER + 1), gone(EARLIER)))
    )

    assert await store.load(SITE) == copy


async def test_origins_are_kept_apart(store: RobotsStore) -> None:
    await store.save(SITE, FIRST)

    assert await store.load(OTHER) is None


async def test_many_at_one_time_do_not_disturb_each_other(store: RobotsStore) -> None:
    origins = [Origin.of(f"https://host{number}.test/") for number in range(200)]
    snapshots = [
        renewed(None, Found(b"Disallow: /%d" % number, 200, ""), POLICY, 1.0) for number in range(200)
    ]

    await asyncio.gather(*map(store.save, origins, snapshots))

    assert await asyncio.gather(*map(store.load, origins)) == snapshots


async def test_closing_twice_is_harmless(store: RobotsStore) -> None:
    await store.close()
    await store.close()


async def test_what_is_kept_stays_for_the_next_gate(store: RobotsStore) -> None:
    await store.save(SITE, FIRST)
    await store.close()

    assert await store.load(SITE) == FIRST


async def test_a_memory_store_is_bounded_and_drops_what_was_used_longest_ago() -> None:
    store = MemoryStore(max_origins=2)
    third = Origin.of("https://third.test/")

    await store.save(SITE, FIRST)
    await store.save(OTHER, FIRST)
    await store.load(SITE)
    await store.save(third, FIRST)

    assert [await store.load(origin) is not None for origin in (SITE, OTHER, third)] == [True, False, True]


def large(at: float, octets: int = 400_000) -> Snapshot:
    return good(at, b"#" * octets)


def numbered(number: int) -> Origin:
    return Origin.of(f"https://host{number}.test/")


async def test_a_memory_store_is_bounded_in_octets_and_says_how_many_it_uses() -> None:
    store = MemoryStore(max_memory=1 << 20)

    for number in range(50):
        await store.save(numbered(number), large(100.0 + number))
    kept = [number for number in range(50) if await store.load(numbered(number)) is not None]

    assert kept == [48, 49]
    assert 800_000 < store.memory_used < 1 << 20


async def test_a_memory_store_never_forgets_a_running_back_off_for_want_of_memory() -> None:
    store = MemoryStore(max_origins=10, max_memory=1 << 20)
    failure = failed(100.0, large(50.0), retry_after_s=600.0)

    await store.save(SITE, failure)
    for number in range(50):
        await store.save(numbered(number), large(100.0 + number))
    kept = await store.load(SITE)
    for number in range(50):
        await store.save(numbered(number), failed(failure.expires_at + number, retry_after_s=600.0))

    assert kept is not None
    assert (kept.access, kept.expires_at, kept.good) == (failure.access, failure.expires_at, None)
    assert await store.load(SITE) is None
    assert sum([await store.load(numbered(number)) is not None for number in range(50)]) == 20
    assert store.memory_used < 50_000


async def test_a_memory_store_leaves_half_of_its_memory_to_files_however_many_back_offs_run() -> None:
    store = MemoryStore(max_memory=1 << 20)

    for number in range(3_000):
        await store.save(numbered(number), failed(100.0, retry_after_s=600.0))
    for number in range(4_000, 4_003):
        await store.save(numbered(number), large(101.0, 150_000))
    kept = [number for number in range(4_003) if await store.load(numbered(number)) is not None]

    assert kept == [*range(3_000), *range(4_000, 4_003)]


async def test_a_memory_store_keeps_what_is_larger_than_its_limit_until_the_next_is_saved() -> None:
    store = MemoryStore(max_memory=1 << 20)

    await store.save(SITE, large(100.0, 2_000_000))
    alone = await store.load(SITE)
    await store.save(OTHER, large(101.0))

    assert alone is not None
    assert await store.load(SITE) is None


@pytest.mark.parametrize("option", [{"max_origins": 0}, {"max_memory": 1_000}, {"max_memory": 1e9}])
def test_a_memory_store_without_capacity_is_refused(option: dict[str, Any]) -> None:
    (name,) = option

    with pytest.raises(InvalidOption, match=f"MemoryStore: {name} must be an integer"):
        MemoryStore(**option)
