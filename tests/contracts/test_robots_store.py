"""What every RobotsStore does; a new one joins with a line."""

from collections.abc import Callable

import pytest

from polite.errors import InvalidOption
from polite.origin import Origin
from polite.ports import RobotsStore
from polite.robots.access import Found, Unreachable
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.snapshot import renewed
from polite.stores.memory import MemoryStore

SITE, OTHER = Origin.of("https://site.test/"), Origin.of("http://site.test/")
POLICY = RobotsPolicy()
FIRST = renewed(None, Found(b"User-agent: *", 200, SITE.robots_url), POLICY, 1.0)
SECOND = renewed(FIRST, Unreachable(Reason.TIMEOUT, SITE.robots_url), POLICY, 2.0)

stores = pytest.mark.parametrize("make", [MemoryStore])


@stores
async def test_what_was_never_saved_is_not_there(make: Callable[[], RobotsStore]) -> None:
    assert await make().load(SITE) is None


@stores
async def test_the_latest_snapshot_comes_back_whole(make: Callable[[], RobotsStore]) -> None:
    store = make()

    await store.save(SITE, FIRST)
    await store.save(SITE, SECOND)

    assert await store.load(SITE) == SECOND


@stores
async def test_origins_are_kept_apart(make: Callable[[], RobotsStore]) -> None:
    store = make()

    await store.save(SITE, FIRST)

    assert await store.load(OTHER) is None


@stores
async def test_closing_twice_is_harmless(make: Callable[[], RobotsStore]) -> None:
    store = make()

    await store.close()
    await store.close()


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
