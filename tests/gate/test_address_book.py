"""The addresses of hosts: asked for once, remembered for a while, refreshed, bounded."""

import asyncio

import pytest

from polite.gate.addresses import UNKNOWN, AddressBook
from polite.testing import ManualClock

HOST = "site.test"


class Source:
    def __init__(self, *found: str, ttl_s: float = 300.0) -> None:
        self.found, self.ttl_s = found, ttl_s
        self.asked: list[str] = []
        self.closed, self.open = 0, asyncio.Event()
        self.open.set()

    async def addresses(self, host):
        self.asked.append(host)
        await self.open.wait()
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found, self.ttl_s

    async def close(self) -> None:
        self.closed += 1


async def test_a_host_is_asked_for_once_however_many_wait_and_one_that_is_cancelled_disturbs_no_other():
    source = Source("192.0.2.1")
    book = AddressBook(source, ManualClock())
    assert book.known(HOST) == ()

    source.open.clear()
    finds = [asyncio.ensure_future(book.find(HOST)) for _ in range(10)]
    await asyncio.sleep(0)
    finds[0].cancel()
    await asyncio.sleep(0)
    source.open.set()

    assert await asyncio.gather(*finds[1:]) == [True] * 9
    assert source.asked == [HOST]
    assert book.known(HOST) == ("192.0.2.1",)
    assert not await book.find(HOST)


@pytest.mark.parametrize(("ttl_s", "good_s"), [(0.0, 60.0), (300.0, 300.0), (1e9, 3_600.0)])
async def test_an_answer_is_good_for_as_long_as_it_says_within_limits(ttl_s: float, good_s: float) -> None:
    source, clock = Source("192.0.2.1", ttl_s=ttl_s), ManualClock()
    book = AddressBook(source, clock)
    await book.find(HOST)

    clock.advance(good_s - 1.0)
    assert not await book.find(HOST)
    source.found = ("192.0.2.9",)
    clock.advance(1.0)
    assert await book.find(HOST)

    assert book.known(HOST) == ("192.0.2.9",)


async def test_all_addresses_count_each_in_one_spelling_and_in_order() -> None:
    source = Source("2001:DB8:0::1", "192.0.2.10", "::ffff:192.0.2.10", "192.0.2.2", "fe80::1%eth0")
    book = AddressBook(source, ManualClock())
    await book.find(HOST)
    assert book.known(HOST) == ("192.0.2.10", "192.0.2.2", "2001:db8::1", "fe80::1")


@pytest.mark.parametrize(
    ("host", "address"),
    [("192.0.2.1", "192.0.2.1"), ("[2001:db8::1]", "2001:db8::1"), ("[::ffff:c000:201]", "192.0.2.1")],
)
async def test_a_host_that_is_an_address_is_not_asked_for(host: str, address: str) -> None:
    source = Source()
    book = AddressBook(source, ManualClock())
    assert not await book.find(host)
    assert book.known(host) == (address,)
    assert source.asked == []


@pytest.mark.parametrize(
    "error", [OSError("no such name"), ZeroDivisionError("one's own"), asyncio.CancelledError()]
)
@pytest.mark.parametrize("before", [(), ("192.0.2.1",)])
async def test_a_host_that_fails_keeps_its_addresses_or_shares_one_scope_and_is_asked_for_again(
    error: BaseException, before: tuple[str, ...]
) -> None:
    source, clock = Source(*before), ManualClock()
    book = AddressBook(source, clock)
    if before:
        await book.find(HOST)
        clock.advance(300.0)

    source.found = error
    assert await book.find(HOST)
    assert book.known(HOST) == (before or UNKNOWN)
    assert not await book.find(HOST)
    source.found = ("192.0.2.9",)
    clock.advance(60.0)
    await book.find(HOST)

    assert book.known(HOST) == ("192.0.2.9",)


async def test_the_host_asked_for_longest_ago_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.gate.addresses._MOST_HOSTS", 2)
    book = AddressBook(Source("192.0.2.1"), ManualClock())
    for host in ("a.test", "b.test", "c.test"):
        await book.find(host)
    assert [bool(book.known(host)) for host in ("a.test", "b.test", "c.test")] == [False, True, True]


async def test_closing_ends_the_questions_and_the_source() -> None:
    source = Source("192.0.2.1")
    source.open.clear()
    book = AddressBook(source, ManualClock())
    waiting = asyncio.create_task(book.find(HOST))
    await asyncio.sleep(0)

    await book.close()
    await book.close()

    assert await waiting
    assert source.closed == 2
    # A question that was cancelled leaves its host with those whose address is not known.
    assert book.known(HOST) == UNKNOWN
    source.open.set()
    assert await book.find(HOST)
    assert book.known(HOST) == ("192.0.2.1",)
