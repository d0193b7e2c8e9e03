"""`RobotsPolicy.max_memory`: rules that are too much for it go, a running back-off never does, and a gauge says what is used."""

import asyncio

import pytest

import polite
from polite.errors import Overloaded
from polite.gate.rules_cache import OriginRules, RulesCache, RulesInUse
from polite.origin import Origin
from polite.robots.exchange import Reply
from polite.robots.reason import Reason
from polite.robots.result import Unreachable
from polite.robots.rules import RuleSet
from polite.robots.snapshot import renewed
from polite.stores.memory import MemoryStore
from polite.testing import ManualClock, ScriptedTransport
from tests.support import scripted_gate

MIB = 1 << 20
# About 2 MB once it has been asked.
HOSTILE = Reply(200, b"User-agent: *\n" + b"".join(b"Disallow: /%d*x%d\n" % (n, n) for n in range(5_000)))


def page(number: int) -> str:
    return f"https://host{number}.test/1xx1"


def serving(*numbers: int, answer: Reply = HOSTILE) -> ScriptedTransport:
    return ScriptedTransport({f"https://host{number}.test/robots.txt": answer for number in numbers})


def opened(transport, store=None, **robots):
    return scripted_gate(
        transport, store=store, robots=polite.RobotsPolicy(**{"max_memory": 8 * MIB, **robots})
    )


async def test_rules_beyond_the_limit_go_and_the_least_recently_used_go_first() -> None:
    transport = serving(*range(20))

    async with opened(transport) as gate:
        for number in range(20):
            assert not await gate.check(page(number))
            assert gate.memory_used <= 8 * MIB
        known = gate.memory_used
        for number in (19, 18):
            await gate.check(page(number))
        asked = len(transport.asked)
        await gate.check(page(0))

    assert known > 4 * MIB
    assert (asked, len(transport.asked)) == (20, 21)


@pytest.mark.parametrize("store", [None, MemoryStore()], ids=["no store", "a store"])
async def test_a_running_back_off_stays_when_its_rules_go(store: MemoryStore | None) -> None:
    transport = serving(*range(1, 20))
    down = "https://host0.test/robots.txt"
    transport.answer(down, HOSTILE)

    async with opened(transport, store, default_ttl=300.0, refresh_ahead=0) as gate:
        await gate.check(page(0))
        transport.answer(down, Reply(503, retry_after="86000"))

        await asyncio.sleep(301)
        await gate.check(page(0))
        asked = transport.asked.count(down)
        for number in range(1, 20):
            await gate.check(page(number))
            assert gate.memory_used <= 8 * MIB
        decision = await gate.check(page(0))

    assert asked == transport.asked.count(down) == 2
    assert not decision.allowed
    assert decision.reason is (polite.Reason.UNREACHABLE if store is None else polite.Reason.RULE)


LIVE = [f"https://live{number}.test" for number in range(3)]


async def test_back_offs_beyond_the_memory_keep_no_origin_out_and_leave_half_of_it_to_rules() -> None:
    transport = serving(*range(2_000), answer=Reply(500, retry_after="86000"))
    # About 400 kB together.
    rules = b"User-agent: *\n" + b"".join(b"Disallow: /private/%d\n" % n for n in range(500))
    for origin in LIVE:
        transport.answer(f"{origin}/robots.txt", Reply(200, rules))

    async with opened(transport, max_memory=MIB) as gate:
        for origin in LIVE:
            assert await gate.check(origin)
        alone = gate.memory_used
        for number in range(2_000):
            assert not await gate.check(page(number))
        for _ in range(3):
            for origin in LIVE:
                assert await gate.check(origin)
        for number in range(2_000):
            assert not await gate.check(page(number))
        used = gate.memory_used

    assert len(transport.asked) == 2_003
    assert 300_000 < alone < MIB // 2
    assert used > 2 * MIB


def failing(number: int) -> tuple[Origin, OriginRules]:
    origin = Origin.of(f"https://some-host-{number}.example.com")
    access = Unreachable(Reason.DNS_NXDOMAIN, f"{origin}/robots.txt")
    snapshot = renewed(None, access, polite.RobotsPolicy(), 1e9 + number / 3, jitter=0.3)
    denied, clock = RuleSet.deny_all(Reason.UNREACHABLE, access=access), ManualClock(monotonic=0.0, wall=1e9)
    return origin, OriginRules.of(denied, snapshot, clock, ahead=0.1).bare()


async def test_rules_that_a_decision_refers_to_count_until_it_is_gone() -> None:
    async with opened(serving(*range(10)), max_memory=8 * MIB) as gate:
        await gate.check(page(0))
        one = gate.memory_used
        kept = [await gate.check(page(number)) for number in range(10)]
        with_kept, known = gate.memory_used, gate.known_origins
        kept.clear()
        await gate.check("https://other.test/")

        assert with_kept >= 8 * one
        # Half of the memory is for those that are remembered: the newest.
        assert known == 1
        assert gate.memory_used <= 8 * MIB


def test_rules_that_are_gone_leave_nothing_however_seldom_their_memory_is_asked_for() -> None:
    in_use = RulesInUse()
    for _ in range(100):
        in_use.add(polite.parse(b"User-agent: *\n" + b"Disallow: /a\n" * 5_000).rules_for("Bot"))
    assert len(in_use.freed) <= 1


def test_a_new_origin_looks_at_few_of_many_back_offs_and_is_let_in_once_some_are_over(monkeypatch):
    looked: list[object] = []
    real = OriginRules.back_off_left_s
    monkeypatch.setattr(OriginRules, "back_off_left_s", lambda *of: looked.append(of) or real(*of))
    cache = RulesCache(2_500)
    for number in range(5_000):
        cache.put(*failing(number), now=0.0)
    new = Origin.of("https://new.test")

    with pytest.raises(Overloaded):
        cache.admit(new, 0.0)
    looked.clear()
    # Those of the first thousand are over.
    cache.admit(new, 978.0)

    assert 0 < len(looked) <= 1_000
