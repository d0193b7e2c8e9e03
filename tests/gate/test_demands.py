"""A price or a licence that a server asks for is told, and neither retried nor paid; statuses that back off can be chosen."""

from http import HTTPStatus
from typing import Any

import pytest

import polite
from polite.events import BackedOff, Dropped, LicenseRequired, PaymentRequired, Retried
from tests.gate.support import PAGE, ROBOTS, opened, visit
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time
CHALLENGE = 'License error="invalid_token"'
DEMANDS: list[tuple[int, dict[str, str], Any]] = [
    (402, {"crawler-price": "USD 0.01"}, PaymentRequired(PAGE, "https://site.test", "USD 0.01")),
    (401, {"WWW-Authenticate": CHALLENGE}, LicenseRequired(PAGE, "https://site.test", 401, CHALLENGE)),
    (402, {"www-authenticate": CHALLENGE}, LicenseRequired(PAGE, "https://site.test", 402, CHALLENGE)),
]


@pytest.mark.parametrize(("status", "headers", "event"), DEMANDS)
@pytest.mark.parametrize("recrawl", [None, polite.RecrawlPolicy()])
async def test_a_demand_is_told_and_delays_nothing(
    status: int, headers: dict[str, str], event: Any, recrawl: Any
) -> None:
    events: list[Any] = []
    async with opened(listener=events.append, recrawl=recrawl) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=HTTPStatus(status), headers=iter(headers.items()))
            first = now()

        assert permit.demand is not None
        assert await visit(gate) == pytest.approx(first + 1)
        assert gate.counters.slowed == 0

    assert [each for each in events if type(each) is type(event)] == [event]


class PageFailed(Exception):
    """What `raise_for_status` raises."""


def fail() -> None:
    raise PageFailed


@pytest.mark.parametrize(("status", "headers", "_"), DEMANDS)
@pytest.mark.parametrize("how", ["retry", "error"])
async def test_a_task_that_meets_a_demand_is_not_sent_out_again(
    status: int, headers: dict[str, str], _: Any, how: str
) -> None:
    events: list[Any] = []
    async with scripted_gate(listener=events.append) as gate:
        frontier = polite.Frontier(gate)
        await frontier.put(PAGE)
        frontier.close()
        given = 0
        async for permit in frontier:
            given += 1
            try:
                async with permit:
                    permit.report(status=status, headers=headers)
                    if how == "error":
                        fail()
                    assert not permit.retry()
            except PageFailed:
                pass

        assert (given, frontier.dropped, frontier.done) == (1, 1, 0)

    dropped = [each for each in events if isinstance(each, Dropped)]
    assert [(each.url, each.tries) for each in dropped] == [(PAGE, 1)]
    assert dropped[0].because.startswith("the server asks for a ")
    assert not [each for each in events if isinstance(each, Retried)]


# Statuses that back off.


@pytest.mark.parametrize("status", [403, 500])
async def test_t4_statuses_that_are_named_back_the_origin_off(status: int) -> None:
    events: list[Any] = []
    pacing = polite.PacingPolicy(backoff_statuses={429, 503, status})
    async with opened(pacing=pacing, listener=events.append) as (gate, _):
        times = [await visit(gate, status=status) for _ in range(3)]

        assert 10.0 <= times[1] - times[0] <= 12.5
        assert 20.0 <= times[2] - times[1] <= 25.0
        assert gate.counters.slowed == 3

    assert [each.status for each in events if isinstance(each, BackedOff)] == [status] * 3


async def test_t4_a_429_that_is_not_named_is_an_ordinary_response() -> None:
    async with opened(pacing=polite.PacingPolicy(backoff_statuses=set())) as (gate, _):
        first = await visit(gate, status=429)

        assert await visit(gate) == pytest.approx(first + 1)


async def test_t4_the_statuses_of_one_origin_may_differ() -> None:
    pacing = polite.PacingPolicy().override("https://site.test", backoff_statuses={403})
    async with opened(pacing=pacing) as (gate, _):
        first = await visit(gate, status=403)
        second = await visit(gate, status=429)

        assert 10.0 <= second - first <= 12.5
        assert await visit(gate) == pytest.approx(second + 1)
        assert gate.pacing.at(polite.Origin.of(PAGE)).backoff_statuses == frozenset({403})


@pytest.mark.parametrize("status", [200, 301, 304, 403, 404, 500])
async def test_t4_retry_after_counts_on_any_status(status: int) -> None:
    async with opened() as (gate, _):
        first = await visit(gate, status=status, Retry_After="50")

        assert await visit(gate) == pytest.approx(first + 50)


# A long Crawl-delay.


@pytest.mark.parametrize(("rule", "delay_s"), [("Crawl-delay: 4000", 4_000), ("Request-rate: 1/4000", 4_000)])
async def test_t3_a_long_delay_is_held_to_the_limit_or_obeyed(rule: str, delay_s: float) -> None:
    body = f"User-agent: *\n{rule}\n".encode()
    capped, obeyed = polite.PacingPolicy(), polite.PacingPolicy(on_long_delay="obey")
    for pacing, expected, why in (
        (capped, 300, "held to max_crawl_delay 300 s"),
        (obeyed, delay_s, "and obeyed (on_long_delay)"),
    ):
        async with scripted_gate({ROBOTS: polite.ports.Reply(200, body)}, pacing=pacing) as gate:
            first = await visit(gate)
            assert await visit(gate) == pytest.approx(first + expected)
            assert why in str(await gate.explain(PAGE))
