"""What every RobotsStore does; a new one joins with a line."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from polite.errors import InvalidOption
from polite.origin import Origin
from polite.ports import RobotsStore
from polite.robots.access import Found, Unreachable
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.snapshot import renewed
from polite.stores.memory import MemoryStore
from polite.stores.sqlite import SqliteStore

SITE, OTHER = Origin.of("https://site.test/"), Origin.of("http://site.test/")
POLICY = RobotsPolicy()
FIRST = renewed(None, Found(b"User-agent: *", 200, SITE.robots_url), POLICY, 1.0)
SECOND = renewed(FIRST, Unreachable(Reason.TIMEOUT, SITE.robots_url), POLICY, 2.0)


@pytest.fixture(params=["memory", "sqlite", "sqlite, with memory to fall back on"])
async def store(request: pytest.FixtureRequest, tmp_path) -> AsyncIterator[RobotsStore]:
    stores = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "crawl.sqlite"),
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


def test_a_memory_store_without_room_is_refused() -> None:
    with pytest.raises(InvalidOption, match="max_origins"):
        MemoryStore(max_origins=0)
