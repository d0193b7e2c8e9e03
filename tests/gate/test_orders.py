"""An operator's orders: requests wait, or none is sent, here and in other processes, until they are released."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import polite
from polite.errors import InvalidOption, Overloaded, StoreFailed, TurnLost
from polite.events import Event, OperatorActed
from polite.orders import pattern_of
from polite.robots.exchange import Reply
from polite.robots.reason import Reason
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, SITE, opened, visit
from tests.support import now

WHY = {"because": "the owner called", "by": "ann@ops"}


@pytest.mark.parametrize(
    ("given", "pattern"),
    [
        ("https://Example.com:443", "https://example.com"),
        ("https://example.com/", "https://example.com"),
        ("*.Bücher.example", "*.xn--bcher-kva.example"),
        ("http://example.com:8080/a b?c#d", "http://example.com:8080/a%20b?c"),
    ],
)
def test_patterns_are_canonical(given: str, pattern: str) -> None:
    assert pattern_of(given) == pattern


@pytest.mark.parametrize(
    "given",
    [
        *"example.com * *. *.192.0.2.1 *.example.com/a *.a.b:8 https://".split(),
        *("https://*.a.test", "https://a.test/*.pdf", "", None),
    ],
)
def test_what_is_no_pattern_is_refused(given):
    with pytest.raises(InvalidOption, match="pattern"):
        pattern_of(given)


@pytest.mark.parametrize(
    ("pattern", "url", "covered"),
    [
        (SITE, PAGE, True),
        (SITE, "http://site.test/page", False),
        ("*.site.test", "http://a.b.site.test:81/", True),
        ("*.site.test", "https://site.test./", True),
        ("*.site.test", "https://mysite.test/", False),
        (f"{SITE}/page", f"{SITE}/page2?x", True),
        (f"{SITE}/page/", PAGE, False),
        (f"{SITE}/%73ecret", f"{SITE}/s%65cret/a", True),
        (f"{SITE}/k%c3%a4", f"{SITE}/k%C3%A4se", True),
    ],
)
async def test_a_pattern_forbids_the_urls_that_it_is_about(pattern: str, url: str, covered: bool) -> None:
    async with opened(ScriptedTransport({})) as (gate, transport):
        gate.forbid(pattern, **WHY)
        decision = await gate.check(url)

        assert bool(decision) is not covered
        if not covered:
            return
        assert decision.reason is Reason.OPERATOR
        assert str(decision) == "disallowed: forbidden by ann@ops: the owner called"
        with pytest.raises(polite.Disallowed, match="the owner called"):
            await visit(gate, url)
        assert not transport.asked
        if pattern.startswith(f"{SITE}/"):
            assert (await gate.explain(url)).decision == decision
        else:
            # Nothing is known of the rules, and no request goes there.
            with pytest.raises(polite.Disallowed):
                await gate.explain(url)
        gate.release(pattern)
        await visit(gate, url)


async def test_all_requests_to_a_held_origin_wait_until_it_is_released() -> None:
    events: list[Event] = []
    async with opened(listener=events.append) as (gate, transport):
        order = await gate.hold(SITE, **WHY)
        visiting = asyncio.create_task(visit(gate))
        await asyncio.sleep(5_000)

        assert not transport.asked  # not even robots.txt
        assert gate.orders == [order]
        await gate.release(SITE, by="bob")
        assert await visiting >= 5_000
        assert gate.orders == []
    assert [each for each in events if isinstance(each, OperatorActed)] == [
        OperatorActed("hold", SITE, "ann@ops", "the owner called"),
        OperatorActed("release", SITE, "bob", "released"),
    ]


async def test_a_hold_ends_by_itself() -> None:
    async with opened() as (gate, _):
        await visit(gate)
        began = now()
        gate.hold("*.site.test", for_=100, **WHY)
        assert "held by ann@ops: the owner called" in str(await gate.explain(PAGE))
        assert await visit(gate) == pytest.approx(began + 100)
        assert gate.orders == []


async def test_the_beginning_of_urls_is_held_and_the_rest_of_the_origin_goes_on() -> None:
    async with opened(ScriptedTransport({})) as (gate, _):
        gate.hold(f"{SITE}/search", **WHY)
        held = asyncio.create_task(visit(gate, f"{SITE}/search?q"))
        await visit(gate, f"{SITE}/a")
        await visit(gate, f"{SITE}/b")
        assert not held.done()
        gate.release(f"{SITE}/search")
        await held


async def test_what_waits_for_its_turn_is_held_or_forbidden_when_it_comes() -> None:
    async with opened(ScriptedTransport({}), pacing=polite.PacingPolicy(min_delay=10)) as (gate, _):
        await visit(gate)
        first, second = (asyncio.create_task(visit(gate, f"{SITE}/{each}")) for each in "ab")
        await asyncio.sleep(1)
        gate.hold(SITE, for_=60, **WHY)
        gate.forbid(f"{SITE}/b", **WHY)

        assert await first == pytest.approx(now(), abs=0.1)
        with pytest.raises(polite.Disallowed):
            await second
        assert now() >= 60


async def test_a_permit_that_was_granted_before_is_not_ready_any_more() -> None:
    async with opened() as (gate, _), gate.permit(PAGE) as permit:
        gate.hold(SITE, **WHY)
        with pytest.raises(TurnLost, match="an operator"):
            await permit.ready()
        permit.unsent()


async def test_a_robots_file_that_is_being_fetched_when_its_origin_is_forbidden_gives_no_permit() -> None:
    async with opened(ScriptedTransport({}), pacing=polite.PacingPolicy(min_delay=10)) as (gate, transport):
        visiting = asyncio.create_task(visit(gate))
        while not transport.asked:
            await asyncio.sleep(0)
        gate.forbid(SITE, **WHY)
        with pytest.raises(polite.Disallowed, match="ann@ops"):
            await visiting
        assert transport.asked == [ROBOTS]


async def test_a_gate_that_closes_ends_the_wait_and_no_more_may_wait_than_the_limit() -> None:
    async with opened(pacing=polite.PacingPolicy(max_waiting=1)) as (gate, _):
        await visit(gate)
        gate.hold(SITE, **WHY)
        waiting = asyncio.create_task(visit(gate))
        await asyncio.sleep(1)
        with pytest.raises(Overloaded, match="max_waiting"):
            await gate.permit(f"{SITE}/b").enter()
    with pytest.raises(polite.GateClosed):
        await waiting


@pytest.mark.parametrize(
    "options",
    [
        {"because": ""},
        {"because": "a\nb"},
        {"because": "x", "by": "y" * 1_001},
        {"because": "x", "for_": 0},
        {"because": "x", "until": 1.0},
        {"because": "x", "until": 9e9, "for_": 5},
    ],
)
async def test_wrong_arguments_are_refused_at_once(options):
    async with opened() as (gate, _):
        with pytest.raises(InvalidOption, match="because|by|for_|until"):
            gate.hold(SITE, **options)
        with pytest.raises(
            InvalidOption, match=r"no order stands for https://site.test; patterns with orders: none"
        ):
            gate.release(SITE)


async def test_orders_outlive_the_process_and_reach_others_on_the_same_file(tmp_path: Path) -> None:
    store = str(tmp_path / "robots.sqlite")
    async with opened(store=store) as (gate, _):
        assert not Path(f"{store}.orders").exists()
        held = await gate.hold("*.site.test", **WHY)
        forbidden = await gate.forbid("https://b.test", because="x")
        async with opened(store=store) as (other, _):
            assert other.orders == gate.orders == [held, forbidden]
            await other.release("*.site.test")
            # Another process looks once in a second.
            visiting = asyncio.create_task(visit(gate))
            await visiting
            assert gate.orders == other.orders == [forbidden]
            await gate.hold(SITE, **WHY)
            await asyncio.sleep(1.1)
            waiting = asyncio.create_task(visit(other))
            await asyncio.sleep(10)
            assert not waiting.done()
            await gate.release(SITE)
            await waiting


async def test_an_order_that_cannot_be_kept_is_in_force_and_says_so(tmp_path: Path) -> None:
    store = tmp_path / "robots.sqlite"
    async with opened(store=str(store)) as (gate, _):
        Path(f"{store}.orders").mkdir()
        given = gate.forbid(SITE, **WHY)
        with pytest.raises(StoreFailed, match="orders"):
            await given
        assert not await gate.check(PAGE)


async def test_permits_that_wait_already_learn_of_an_order_of_another_process(tmp_path: Path) -> None:
    store = str(tmp_path / "robots.sqlite")
    async with opened(store=store) as (gate, _), opened(store=store) as (other, _):
        waiting = [asyncio.create_task(visit(gate, f"{SITE}/{number}")) for number in range(9)]
        await asyncio.sleep(3.5)
        await other.forbid(SITE, **WHY)
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(each, polite.Disallowed) for each in results) >= 5


@pytest.mark.parametrize(
    ("pattern", "holds"), [("https://b.test", False), ("https://b.test/x", False), ("https://b.test/x", True)]
)
async def test_a_redirect_of_robots_txt_goes_to_no_url_that_an_operator_stops(pattern, holds):
    script = {ROBOTS: Reply(302, location="https://b.test/x/robots.txt")}
    async with opened(ScriptedTransport(script)) as (gate, transport):
        await (gate.hold if holds else gate.forbid)(pattern, **WHY)
        visiting = asyncio.create_task(visit(gate))
        await asyncio.sleep(100)
        assert transport.asked[:1] == [ROBOTS]
        assert not any("b.test" in url for url in transport.asked)
        if holds:
            await gate.release(pattern)
            await visiting
        else:
            with pytest.raises(polite.RobotsUnreachable, match="an operator"):
                await visiting


async def test_a_held_origin_without_known_rules_is_told_at_once() -> None:
    async with opened() as (gate, transport):
        gate.hold(SITE, **WHY)
        assert (
            str(await gate.check(PAGE))
            == "disallowed: held by ann@ops: the owner called; its robots.txt is not known"
        )
        with pytest.raises(polite.Disallowed, match="held by"):
            await gate.explain(PAGE)
        assert not transport.asked


async def test_writes_go_one_after_the_other_and_a_locked_file_is_looked_at_again(tmp_path: Path) -> None:
    store = str(tmp_path / "robots.sqlite")
    async with opened(store=store) as (gate, _), opened(store=store) as (other, _):
        for number in range(30):
            gate.forbid(f"{SITE}/{number}", **WHY)
            last = gate.release(f"{SITE}/{number}")
        await last
        await asyncio.sleep(3)
        assert gate.orders == other.orders == []
        with closing(sqlite3.connect(f"{store}.orders")) as connection:
            connection.execute("INSERT INTO orders VALUES ('forbid', ?, 'x', 'y', 1.0, NULL)", (SITE,))
            connection.execute("INSERT INTO orders VALUES ('newer kind', 'z', 'x', 'y', 1.0, NULL)")
            connection.commit()
            connection.execute("BEGIN EXCLUSIVE")
            await asyncio.sleep(2)
            assert gate.orders == []
            connection.rollback()
        await asyncio.sleep(2)
        assert [order.pattern for order in gate.orders] == [SITE]
