"""robots.txt results and back-offs on a real server: dates, expiry, octets, damage, and what happens while it is away."""

import asyncio
import time

import pytest
import redis

from polite.clock import SystemClock
from polite.errors import StoreFailed
from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.stores.redis import link as link_module
from polite.stores.redis import robots as robots_module
from polite.stores.redis.address import Address
from polite.stores.redis.link import RedisLink
from polite.stores.redis.robots import RedisStore

SITE = Origin.of("https://site.example/")
KEY = "polite:{r:https://site.example}"
SMALL = b"User-agent: *\nDisallow: /private/\n"
DAY = 86_400.0


class AheadClock(SystemClock):
    def wall(self) -> float:  # type: ignore[override]
        return time.time() + 3_600.0


def found(at: float, body: bytes = SMALL) -> Snapshot:
    return renewed(None, Found(body, 200, SITE.robots_url), RobotsPolicy(), at)


@pytest.fixture
async def open_store(valkey):
    links: list[RedisLink] = []

    def make(clock=None, server=valkey, patience_s=60.0):
        links.append(RedisLink.to(Address.of(server.url)))
        return RedisStore(links[-1], clock or SystemClock(), patience_s=patience_s)

    yield make
    for link in links:
        await link.close()


async def test_dates_are_shifted_by_each_hosts_offset_to_the_server(open_store):
    now = float(int(time.time()))
    ahead, right = open_store(AheadClock()), open_store()
    failure = renewed(found(now + 3_600), Unreachable(Reason.TIMEOUT, ""), RobotsPolicy(), now + 3_700.0)

    await ahead.save(SITE, failure)
    ahead.hold(SITE, SavedBackOff(now + 3_600.0, now + 7_200.0, "status 503"))
    await ahead.close()

    assert await ahead.load(SITE) == failure
    assert await right.load(SITE) == failure.shifted(-3_600.0)
    assert await right.held(SITE) == SavedBackOff(now, now + 3_600.0, "status 503")


async def test_a_result_is_kept_for_a_month_beyond_its_end_and_a_back_off_until_its_own(valkey, open_store):
    store, now = open_store(), time.time()

    await store.save(SITE, found(now))
    store.hold(SITE, SavedBackOff(now, now + 500.0, "status 503"))
    await store.close()

    assert valkey.client.ttl(KEY) == pytest.approx(31 * DAY, abs=5)
    assert valkey.client.ttl(f"{KEY}:b") == pytest.approx(501, abs=5)

    await store.save(SITE, Snapshot(found(now).access, now + 1, float("inf")))
    assert valkey.client.ttl(KEY) == -1


async def test_a_back_off_read_with_a_snapshot_answers_only_at_once(open_store, monkeypatch):
    store, other, now = open_store(), open_store(), time.time()
    monkeypatch.setattr(robots_module, "_READ_FOR_S", 0.0)
    await store.load(SITE)
    other.hold(SITE, SavedBackOff(now, now + 500.0, "status 503"))
    await other.close()
    assert await store.held(SITE) is not None


async def test_a_damaged_value_is_fetched_again_and_replaced(valkey, open_store, caplog):
    store, snapshot = open_store(), found(float(int(time.time())))
    await store.save(SITE, snapshot)
    whole = redis_bytes(valkey, KEY)

    changed = (b"2" + whole[1:], whole[:-1], whole.replace(b"private", b"public!"))
    for damaged in (b"", b"1", b"1[[1]]\n", b"1{}\n", *changed):
        raw(valkey).set(KEY, damaged)
        assert await store.load(SITE) is None, damaged
        await store.save(SITE, snapshot)
        assert await store.load(SITE) == snapshot

    assert "it is fetched again" in caplog.text


def raw(valkey):
    return redis.Redis(port=valkey.port)


def redis_bytes(valkey, key):
    value = raw(valkey).get(key)
    assert isinstance(value, bytes)
    return value


async def test_after_their_patience_calls_fail_and_say_since_when_and_why(start_valkey, open_store):
    server = start_valkey()
    store = open_store(server=server, patience_s=0.3)
    await store.load(SITE)
    server.kill()
    began = time.monotonic()

    outcomes = await asyncio.gather(
        *(store.load(Origin.of(f"https://h{number}.example/")) for number in range(200)),
        return_exceptions=True,
    )

    assert time.monotonic() - began < 10.0
    assert {type(each) for each in outcomes} == {StoreFailed}
    message = str(outcomes[0])
    assert message.startswith(f"redis://127.0.0.1:{server.port}/0 has not responded since ")
    assert " UTC (" in message
    assert "; the last error: " in message
    assert "Connect" in message


async def test_closing_while_the_server_is_away_ends_and_tells_what_was_not_saved(
    start_valkey, open_store, monkeypatch, caplog
):
    monkeypatch.setattr(robots_module, "_CLOSE_S", 0.2)
    monkeypatch.setattr(link_module, "CALL_S", 0.1)
    server = start_valkey()
    store, now = open_store(server=server), time.time()
    server.pause()

    store.hold(SITE, SavedBackOff(now, now + 900.0, "status 503"))
    async with asyncio.timeout(2):
        await store.close()
    server.resume()
    warned = caplog.text
    store.hold(SITE, SavedBackOff(now, now + 1_000.0, "late"))
    await store.close()

    assert "1 back-off was not saved within 0.2 s" in warned
    assert "came after" in caplog.text
    assert await store.held(SITE) == SavedBackOff(now, now + 1_000.0, "late")
