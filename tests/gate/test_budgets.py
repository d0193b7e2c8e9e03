"""Budgets of an origin, as permits of a gate see them; and how they move with a home of a shared crawl."""

import asyncio
import contextlib
import itertools

import pytest

import polite
from polite.compose.shared import share_turns
from polite.errors import OriginDeclined
from polite.events import BudgetSpent
from polite.testing import LoopClock
from tests.gate.support import PAGE, ROBOTS, opened, visit
from tests.pacers.homes import FakeStore
from tests.support import now, scripted_gate


async def test_a_permit_beyond_the_budget_is_refused_by_url_limit_and_option() -> None:
    events = []
    async with opened(pacing=polite.PacingPolicy(max_pages=2), listener=events.append) as (gate, transport):
        await visit(gate)
        await visit(gate)
        with pytest.raises(OriginDeclined) as caught:
            await visit(gate)

        assert (caught.value.url, caught.value.option, caught.value.limit) == (PAGE, "max_pages", 2)
        assert str(caught.value) == (
            f"{PAGE}: no more requests to this origin. PacingPolicy.max_pages=2: so many pages were requested"
        )
        assert (gate.counters.declined, transport.asked) == (1, [ROBOTS])
        text = str(await gate.explain(PAGE))
        assert "turn: never. PacingPolicy.max_pages=2" in text
        assert "budget: 2 of 2 pages" in text
        assert (await gate.check(PAGE)).allowed

    assert [each for each in events if isinstance(each, BudgetSpent)] == [
        BudgetSpent(
            "https://site.test", "max_pages", 2, "PacingPolicy.max_pages=2: so many pages were requested"
        )
    ]


async def test_only_requests_that_were_perhaps_sent_count() -> None:
    async with opened(pacing=polite.PacingPolicy(max_pages=1, max_hold=10)) as (gate, _):
        await gate.check(PAGE)
        waiting = asyncio.create_task(visit(gate))
        waiting.cancel()
        await asyncio.wait([waiting])
        (await gate.acquire(PAGE)).unsent()
        permit = await gate.acquire(PAGE)
        await asyncio.sleep(20)
        permit.leave()

        with pytest.raises(OriginDeclined):
            await visit(gate)


@pytest.mark.parametrize(
    ("status", "headers", "told", "octets"),
    [
        *(
            (200, {"Content-Length": "70"}, told, octets)
            for told, octets in (([], 70), ([5, 6], 11), ([0], 0))
        ),
        *((status, {"Content-Length": "70"}, [], 0) for status in (304, 204)),
        *((200, headers, [], 0) for headers in ({}, {"Content-Length": "-70"}, {"Content-Length": "9" * 30})),
        (404, [("content-length", "7"), ("Content-Length", b"70")], [], 70),
    ],
)
async def test_octets_are_those_that_came_or_those_that_were_announced(status, headers, told, octets):
    async with opened(pacing=polite.PacingPolicy(max_bytes=1_000)) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=status, headers=headers)
            for each in told:
                permit.received(each)
        assert f"budget: {octets} of 1000 octets" in str(await gate.explain(PAGE))


def of_customer(**budget: int) -> polite.PacingPolicy:
    """Return a policy with a budget for each host's second label: "acme" of "a.acme.test"."""
    limit = polite.ScopeLimit(delay=0.0, concurrency=9, **budget)
    custom = polite.CustomScope("customer", lambda target: target.origin.host.split(".")[-2], limit)
    return polite.PacingPolicy(scopes=polite.Scopes(custom=[custom]))


@pytest.mark.parametrize(("budget", "limit"), [({"max_pages": 3}, 3), ({"max_bytes": 21}, 21)])
async def test_the_origins_of_a_scope_have_one_budget(budget: dict[str, int], limit: int) -> None:
    events = []
    async with opened(pacing=of_customer(**budget), listener=events.append) as (gate, _):
        (await gate.acquire("https://a.acme.test/")).unsent()
        for host in ("a", "b", "c"):
            await visit(gate, f"https://{host}.acme.test/", Content_Length="7")
        for host in ("a", "d"):
            with pytest.raises(OriginDeclined, match=f"ScopeLimit.max_.*={limit} of customer acme: "):
                await visit(gate, f"https://{host}.acme.test/")
        await visit(gate, "https://a.other.test/")
        text = str(await gate.explain("https://d.acme.test/"))

    assert f"budget: {limit} of {limit}" in text
    assert " of customer acme" in text
    assert [each.limit for each in events if isinstance(each, BudgetSpent)] == [limit]


@pytest.mark.parametrize("fails_at", range(1, 14))
async def test_a_function_of_scopes_that_fails_once_loses_no_turn(fails_at: int) -> None:
    calls = itertools.count(1)

    def by(target: polite.Target) -> str:
        if next(calls) == fails_at:
            raise RuntimeError("flaky")
        return "acme"

    custom = polite.CustomScope("customer", by, polite.ScopeLimit(max_pages=99))
    pacing = polite.PacingPolicy(scopes=polite.Scopes(custom=[custom]), max_pages=99)
    async with opened(pacing=pacing) as (gate, _):
        for _ in range(3):
            with contextlib.suppress(polite.InvalidOption):
                await asyncio.wait_for(visit(gate), 100)


class Racks:
    """Scopes of the user's own, with a budget for the origin itself; none for broken.test."""

    def __call__(self, target: polite.Target) -> tuple[object, ...]:
        return (target.origin,)

    def limit(self, scope: object) -> polite.ScopeLimit:
        if "broken" in str(scope):
            raise RuntimeError("no limit")
        return polite.ScopeLimit(max_pages=2)


async def test_an_origin_with_two_budgets_counts_each_page_once_and_one_that_fails_stops_no_other() -> None:
    async with (
        opened(pacing=polite.PacingPolicy(scopes=Racks(), max_pages=2)) as (gate, _),
        polite.open_frontier(gate) as frontier,
    ):
        await frontier.put_many(["https://broken.test/", f"{PAGE}1", f"{PAGE}2", f"{PAGE}3"])
        frontier.close()
        sent = []
        async for permit in frontier:
            async with permit:
                sent.append(permit.url)
    assert sent == [f"{PAGE}1", f"{PAGE}2"]


@pytest.mark.parametrize(("concurrency", "times"), [(1, [0, 10, 20, 30]), (2, [0, 1, 20, 21])])
async def test_the_octets_of_a_host_keep_to_a_ceiling_in_a_second(concurrency, times):
    pacing = polite.PacingPolicy(max_bytes_per_second=100, concurrency=concurrency)
    async with opened(pacing=pacing) as (gate, _):
        began: list[float] = []

        async def read() -> None:
            async with gate.permit(PAGE) as permit:
                began.append(now())
                permit.report(status=200)
                for _ in range(10):
                    await asyncio.sleep(0.2)
                    permit.received(100)

        await asyncio.gather(*(read() for _ in times))
        text = str(await gate.explain(PAGE))
        if concurrency == 1:
            assert await visit(gate, "http://site.test/") == pytest.approx(began[-1] + 11)

    assert [each - began[0] for each in began] == pytest.approx(times, abs=0.1)
    assert "(PacingPolicy.max_bytes_per_second=100: 1000 octets came)" in text


async def test_a_length_that_nobody_can_send_does_not_end_the_crawl_of_a_host() -> None:
    pacing = polite.PacingPolicy(max_bytes_per_second=100, max_retry_after=50)
    async with opened(pacing=pacing) as (gate, _):
        began = await visit(gate, Content_Length="9" * 15)
        assert await visit(gate) == pytest.approx(began + 50)
        assert await visit(gate) == pytest.approx(began + 51)
        async with gate.permit(PAGE) as permit:
            permit.received(10**400)
        assert await visit(gate) == pytest.approx(began + 102)


@pytest.mark.parametrize(
    "pacing", [polite.PacingPolicy(max_pages=3, max_bytes=10_000), of_customer(max_pages=3)]
)
async def test_a_budget_moves_with_its_home(pacing: polite.PacingPolicy) -> None:
    store = FakeStore(LoopClock())
    async with scripted_gate(pacing=pacing) as one, scripted_gate(pacing=pacing) as other:
        for gate in (one, other):
            share_turns(gate, store.process(), lease_s=store.lease_s)
        for gate in (one, other, one):
            await visit(gate, Content_Length="10")
        for gate in (one, other):
            with pytest.raises(OriginDeclined, match="max_pages=3"):
                await visit(gate)


async def test_a_budget_that_processes_would_divide_is_refused() -> None:
    store = FakeStore(LoopClock())
    pacing = polite.PacingPolicy(scopes=polite.Scopes(crawl=polite.ScopeLimit(max_pages=9)))
    async with scripted_gate(pacing=pacing) as gate:
        with pytest.raises(
            polite.InvalidOption, match="max_bytes of 'crawl' cannot be kept in a shared crawl"
        ):
            share_turns(gate, store.process(), lease_s=store.lease_s)
