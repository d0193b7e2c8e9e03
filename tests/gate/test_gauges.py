"""How many permits wait and are inside, whether most wait for one origin, and what `repr` says of a gate and its permits."""

import asyncio
from typing import Any

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, RULES, opened, visit
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time


def gauges(gate: polite.Gate) -> tuple[int, int]:
    return gate.waiting, gate.inside


async def test_permits_wait_for_rules_then_for_their_turn_and_are_inside_from_the_grant() -> None:
    transport = ScriptedTransport({"https://site.test/robots.txt": Reply(200, RULES)})
    async with opened(transport) as (gate, _):
        transport.hold()
        assert gauges(gate) == (0, 0)
        tasks = [asyncio.ensure_future(gate.acquire(PAGE)) for _ in range(3)]
        await asyncio.sleep(1)
        assert gauges(gate) == (3, 0)
        transport.let_go()
        await asyncio.sleep(2)
        assert gauges(gate) == (2, 1)
        tasks[0].result().report(status=200)
        tasks[0].result().leave()
        assert gauges(gate) == (2, 0)
        await asyncio.sleep(2)
        assert gauges(gate) == (1, 1)
        tasks[1].result().unsent()
        await asyncio.sleep(0.1)
        assert gauges(gate) == (0, 1)
        tasks[2].result().leave()

        assert gauges(gate) == (0, 0)


async def test_a_permit_says_how_far_it_is_and_shows_no_credentials() -> None:
    async with opened() as (gate, _):
        permit = gate.permit("https://user:secret@site.test/page")
        said = [repr(permit)]
        await visit(gate)
        entering = asyncio.ensure_future(permit.enter())
        await asyncio.sleep(0)
        said.append(repr(permit))
        await entering
        said.append(repr(permit))
        permit.began()
        said.append(repr(permit))
        permit.report(status=404)
        said.append(repr(permit))
        permit.leave()
        said.append(repr(permit))

    states = ["not entered", "waiting", "granted", "granted, response began", "granted, status 404", "left"]
    assert said == [f"<Permit {PAGE}: {state}>" for state in states]


EIGHT_HOSTS = [f"https://{host}.test/{page}" for host in "abcdefgh" for page in range(5)]


async def fetched_by(
    workers: int, urls: list[str], caplog: pytest.LogCaptureFixture
) -> tuple[float, list[Any]]:
    """Fetch a list with workers that share it; return when they were done, and the origins that the log names."""
    left = iter(urls)

    async def work(gate: polite.Gate) -> None:
        for url in left:
            async with gate.permit(url) as permit:
                permit.report(status=200)
                await asyncio.sleep(0.1)

    async with scripted_gate() as gate:
        await asyncio.gather(*(work(gate) for _ in range(workers)))
    hints = [line for line in caplog.records if line.polite_event == "one_origin_awaited"]
    return now(), [line.polite_origin for line in hints]


async def test_workers_that_all_wait_for_one_origin_are_slow_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    took, hints = await fetched_by(4, EIGHT_HOSTS, caplog)

    assert round(took) == 22
    assert len(hints) == 1
    assert "polite.Frontier" in caplog.text


IN_TURN = [f"https://{host}.test/{page}" for page in range(5) for host in "abcdefgh"]


ONE_HOST = [f"https://a.test/{page}" for page in range(200)]


@pytest.mark.parametrize(
    ("workers", "urls"),
    [
        pytest.param(8, ONE_HOST, id="one site"),
        pytest.param(8, IN_TURN + ONE_HOST, id="the largest site is left"),
        pytest.param(240, EIGHT_HOSTS + ONE_HOST, id="a task for each URL"),
        pytest.param(8, IN_TURN * 20, id="hosts in turn"),
    ],
)
async def test_a_crawl_that_a_frontier_would_not_quicken_gets_no_hint(
    workers: int, urls: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert (await fetched_by(workers, urls, caplog))[1] == []
