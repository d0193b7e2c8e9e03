"""A price or a licence that a server asks for is told, and neither retried nor paid."""

from http import HTTPStatus
from typing import Any

import pytest

import polite
from polite.events import Dropped, LicenseRequired, PaymentRequired, Retried
from tests.gate.support import PAGE, opened, visit
from tests.support import now, scripted_gate

CHALLENGE = 'License error="invalid_token"'
DEMANDS: list[tuple[int, dict[str, str], Any]] = [
    (402, {"crawler-price": "USD 0.01"}, PaymentRequired(PAGE, "https://site.test", "USD 0.01")),
    (401, {"WWW-Authenticate": CHALLENGE}, LicenseRequired(PAGE, "https://site.test", 401, CHALLENGE)),
    (402, {"www-authenticate": CHALLENGE}, LicenseRequired(PAGE, "https://site.test", 402, CHALLENGE)),
]


@pytest.mark.parametrize(("status", "headers", "event"), DEMANDS)
@pytest.mark.parametrize("recrawl", [None, polite.RecrawlPolicy()])
async def test_a_demand_is_told_and_delays_nothing(status, headers, event, recrawl):
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
async def test_a_task_that_meets_a_demand_is_not_sent_out_again(status, headers, _, how):
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
