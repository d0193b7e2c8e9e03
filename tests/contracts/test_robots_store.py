"""What every RobotsStore does; a new one joins with a line."""

import asyncio
import time
from dataclasses import replace

import pytest

from polite.clock import SystemClock
from polite.errors import InvalidOption
from polite.origin import Origin
from polite.ports import RobotsStore, SavedBackOff, merged
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.stores.memory import MemoryStore
from polite.stores.redis.address import Address
from polite.stores.redis.link import RedisLink
from polite.stores.redis.robots import RedisStore
from polite.stores.sqlite import SqliteStore
from polite.testing import STORE_CONTRACT

SITE = Origin.of("https://site.test/")
POLICY = RobotsPolicy()


class EarlyClock(SystemClock):
    """A host whose wall clock is decades behind the server's, at 120 s when a test begins."""

    def __init__(self) -> None:
        self._began = int(time.time())

    def wall(self) -> float:  # type: ignore[override]
        return time.time() - self._began + 120.0


@pytest.fixture(params=["memory", "sqlite", "sqlite, with memory to fall back on", "redis"])
async def store(request, tmp_path):
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


@pytest.mark.parametrize("check", STORE_CONTRACT, ids=lambda check: check.__name__)
async def test_a_store_keeps_the_contract(store, check):
    await check(lambda: store, now=120.0)


class Careless(MemoryStore):
    def __init__(self, defect: str) -> None:
        super().__init__()
        self._defect, self._own = defect, {}

    async def load(self, origin):
        return self._own.get(origin.host if self._defect == "hosts" else origin)

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        key = origin.host if self._defect == "hosts" else origin
        kept = self._own.get(key)
        if self._defect == "two steps":
            await asyncio.sleep(0)
        if self._defect == "status":
            snapshot = replace(snapshot, access=replace(snapshot.access, status=200))
        self._own[key] = snapshot if self._defect == "last" else merged(kept, snapshot)

    async def close(self) -> None:
        if self._defect == "close":
            self._own.clear()

    def hold(self, origin: Origin, back_off: SavedBackOff) -> None:
        if self._defect == "shorter" or origin not in self._held or self._held[origin].until < back_off.until:
            self._held[origin] = back_off

    async def held(self, origin: Origin) -> SavedBackOff | None:
        return self._held.get(origin)

    @property
    def _held(self):
        return self._own.setdefault("held", {})


@pytest.mark.parametrize(
    ("defect", "failing"),
    [
        ("none", set()),
        ("hosts", {"returns_none_for_an_unknown_origin"}),
        ("status", {"returns_what_was_saved", "keeps_the_later_answer"}),
        ("last", {"keeps_the_good_copy_beside_a_failure", "keeps_the_longer_back_off_of_two_failures"}),
        ("two steps", {"saves_at_one_time_end_as_if_in_turn"}),
        ("close", {"can_be_used_after_close", "keeps_the_back_off_that_ends_last"}),
        ("shorter", {"keeps_the_back_off_that_ends_last"}),
    ],
)
async def test_the_contract_finds_what_a_careless_store_does(defect: str, failing: set[str]) -> None:
    found = set()
    for check in STORE_CONTRACT:
        try:
            await check(lambda: Careless(defect))
        except AssertionError:
            found.add(check.__name__)

    assert found >= failing
    assert bool(found) is bool(failing)


EARLIER, LATER = 100.0, 110.0


def good(at: float, body: bytes = b"Disallow: /") -> Snapshot:
    return renewed(None, Found(body, 200, SITE.robots_url), POLICY, at)


def failed(at: float, before: Snapshot | None = None, retry_after_s: float | None = None) -> Snapshot:
    access = Unreachable(Reason.SERVER_ERROR, SITE.robots_url, 503, retry_after_s=retry_after_s)
    return renewed(before, access, POLICY, at)


async def test_a_failure_that_is_older_than_the_copy_does_not_count_for_the_thirty_days(store: RobotsStore):
    copy = good(EARLIER)
    other = failed(EARLIER + 5, before=copy)
    ours = failed(LATER, before=failed(EARLIER - 40 * 86_400))
    await store.save(SITE, other)
    await store.save(SITE, ours)
    kept = await store.load(SITE)
    assert (kept.unreachable_since, kept.good, kept.failures) == (EARLIER + 5, copy.good, 1)


async def test_what_a_clock_dated_that_was_set_back_since_gives_way(store: RobotsStore) -> None:
    ahead, now = good(EARLIER + 3_600, b"Allow: /"), good(EARLIER)
    await store.save(SITE, ahead)
    await store.save(SITE, now)
    assert await store.load(SITE) == now


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

    assert (kept.access, kept.expires_at, kept.good) == (failure.access, failure.expires_at, None)
    assert await store.load(SITE) is None
    assert sum([await store.load(numbered(number)) is not None for number in range(50)]) == 20
    assert store.memory_used < 50_000


@pytest.mark.parametrize("option", [{"max_origins": 0}, {"max_memory": 1_000}, {"max_memory": 1e9}])
def test_a_memory_store_without_capacity_is_refused(option):
    (name,) = option
    with pytest.raises(InvalidOption, match=f"MemoryStore: {name} must be an integer"):
        MemoryStore(**option)
