"""`Gate.explain` names all that decides about a URL and its delay."""

import asyncio

import pytest

import polite
from polite.robots.exchange import Failed, Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, RULES, opened, visit

pytestmark = pytest.mark.virtual_time


async def test_explain_tells_everything_that_decides() -> None:
    async with opened() as (gate, _):
        await visit(gate)
        explanation = await gate.explain("https://site.test/private")
        text = str(explanation)

    assert not explanation.decision
    assert explanation.wait_s == pytest.approx(1.0)
    assert explanation.outlook.scope == polite.Origin.of(PAGE)
    for part in ("https://site.test/private", "line 2", "min_delay 1 s", "turn: in 1.0 s", "status 200"):
        assert part in text


async def test_explain_tells_of_failures_and_the_copy_that_serves() -> None:
    transport = ScriptedTransport(
        {ROBOTS: [Reply(200, RULES), Failed(polite.Reason.DNS_NXDOMAIN, "no such name")]}
    )

    async with opened(transport) as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(86_400)
        text = str(await gate.explain(PAGE))

    assert "failed once; the last good copy" in text
    assert "the last good copy decides (no such name)" in text
    assert "turn: in 1.0 s" in text


async def test_explain_of_a_failure_that_cannot_pass_names_no_times() -> None:
    transport = ScriptedTransport({ROBOTS: Failed(polite.Reason.ADDRESS_REFUSED, "it is private")})

    async with opened(transport) as (gate, _):
        text = str(await gate.explain(PAGE))

    assert "requested 0 s ago\n  waiting cannot help; there is no earlier copy (it is private)" in text
    assert "good for" not in text


async def test_explain_names_the_request_rate_that_sets_the_delay() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nRequest-rate: 1/30\n")})

    async with opened(transport) as (gate, _):
        text = str(await gate.explain(PAGE))

    assert "delay: 30 s between requests (Request-rate 1/30)" in text
