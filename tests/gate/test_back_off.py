"""Retry-After, refusals in a row and statuses below 100 delay an origin, and only that origin."""

from itertools import pairwise
from typing import Any

import pytest

import polite
from polite import throttles
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, opened, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize("status", [429, 503])
async def test_t4_retry_after_moves_the_origins_next_turn(status: int) -> None:
    async with opened() as (gate, _):
        first = await visit(gate, status=status, Retry_After="120")

        assert await visit(gate) == pytest.approx(first + 120)


@pytest.mark.parametrize("value", ["soon", "-5", "", "1e3", "\udcff"])
async def test_t4_a_retry_after_that_says_nothing_leaves_the_back_off(value: str) -> None:
    async with opened() as (gate, _):
        first = await visit(gate, status=429, Retry_After=value)

        assert 10.0 <= await visit(gate) - first <= 12.5


async def test_t4_refusals_in_a_row_are_waited_for_ever_longer() -> None:
    async with opened() as (gate, _):
        times = [await visit(gate, status=429) for _ in range(4)]

    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[1] > gaps[0] * 1.5
    assert gaps[2] > gaps[1] * 1.5


async def test_statuses_that_only_an_own_throttle_refuses_are_waited_for_ever_longer() -> None:
    throttle = throttles.Longest(
        throttles.MinDelay(1.0), throttles.BackOff(10.0, statuses=frozenset({403}), random=lambda: 0.0)
    )
    async with opened(throttle=throttle) as (gate, _):
        times = [await visit(gate, status=403) for _ in range(4)]

    assert [after - before for before, after in pairwise(times)] == pytest.approx([10, 20, 40])


async def test_t4_a_429_on_robots_txt_allows_and_slows_the_origin_down() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(429, retry_after="30")})

    async with opened(transport) as (gate, _):
        assert await visit(gate) == pytest.approx(30)


@pytest.mark.parametrize("status", [0, 1, 99])
async def test_a_status_below_100_is_a_failure_and_ends_no_worker(status: int) -> None:
    async with opened(pacing=polite.PacingPolicy(circuit_failures=2)) as (gate, _):
        for _ in range(2):
            await visit(gate, status=status)

        assert gate.counters.opened == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-AFTER": "30"},
        {b"Retry-After": b"30"},
        [("x", "y"), ("Retry-After", "30")],
        [(b"retry-after", b"30")],
        {"Retry-After": 30},
    ],
)
async def test_t4_retry_after_is_found_in_whatever_headers_a_client_has(headers: Any) -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers=headers)
            start = now()

        assert await visit(gate) == pytest.approx(start + 30)


async def test_one_origins_retry_after_does_not_stop_what_other_origins_share() -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        return (target.origin, "the whole crawl")

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (gate, _):
        first = await visit(gate, status=429, Retry_After="600")
        elsewhere = await visit(gate, "https://other.test/")
        again = await visit(gate)

    assert elsewhere == pytest.approx(first + 2.0)
    assert again == pytest.approx(first + 600)
