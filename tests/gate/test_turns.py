"""Throttles, counters and policies as the turns of a gate obey them, while requests wait and policies change."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.timed_visits import OTHER, PAGE, ROBOTS, opened, serving, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


def gaps(visits: list[float]) -> list[float]:
    return [round(after - before, 6) for before, after in pairwise(visits)]


class Failing:
    """A throttle that fails in one of its ways once it is `broken`, whatever it is asked about."""

    def __init__(self, seconds: object) -> None:
        self.seconds = seconds
        self.broken = False

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        if not self.broken:
            return Pause(0.5, "ours")
        if self.seconds is None:
            raise ValueError("broken")
        return Pause(self.seconds, "ours")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("renewed", "granted", "skipped"),
    [
        (b"User-agent: *\nDisallow: /other\n", [True, True, True], 1),
        (b"User-agent: *\nDisallow: /page\n", [False, False, False], 3),
        (b"User-agent: *\nCrawl-delay: 30\n", [True, True, True], 3),
    ],
    ids=["as before", "stricter", "slower"],
)
async def test_requests_that_waited_while_the_rules_were_renewed_obey_the_new_ones(
    renewed: bytes, granted: list[bool], skipped: int
) -> None:
    site = ScriptedTransport({ROBOTS: [Reply(200, b"User-agent: *\nAllow: /\n"), Reply(200, renewed)]})
    async with opened(site) as gate:
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "86400"})
        results = await asyncio.gather(*(visit(gate) for _ in range(3)), return_exceptions=True)

    assert [isinstance(result, float) for result in results] == granted
    assert gate.counters.skipped == skipped


async def test_an_origin_is_delayed_by_a_multiple_of_its_latency() -> None:
    async with opened(pacing=polite.PacingPolicy(latency_factor=5.0, max_latency_delay=12.0)) as gate:
        visits = [await visit(gate, took=took) for took in (0.1, 2.0, 100.0, 0.0)]

    gaps = [after - before for before, after in pairwise(visits)]
    assert gaps == pytest.approx([0.1 + 1.0, 2.0 + 10.0, 100.0 + 12.0])


@pytest.mark.parametrize(("min_delay", "gap"), [(0.25, 0.25), (30.0, 30.0)])
async def test_a_policy_that_changes_rules_from_the_next_response_on_and_a_running_delay_stays(
    min_delay: float, gap: float
) -> None:
    async with opened(pacing=polite.PacingPolicy(min_delay=4.0)) as gate:
        visits = [await visit(gate), await visit(gate)]
        gate.pacing = gate.pacing.override(PAGE, min_delay=min_delay)
        visits += [await visit(gate), await visit(gate)]

    assert gaps(visits) == [4.0, 4.0, gap]


async def test_one_origin_may_be_asked_for_several_pages_at_one_time_also_from_now_on() -> None:
    pacing = polite.PacingPolicy().override(PAGE, concurrency=3)
    async with opened(pacing=pacing) as gate:
        several = await asyncio.gather(*(visit(gate, took=100) for _ in range(3)))
        gate.pacing = gate.pacing.override(PAGE, concurrency=1)
        alone = await asyncio.gather(*(visit(gate, took=100) for _ in range(2)))
        one = asyncio.create_task(visit(gate, took=100))
        await asyncio.sleep(2)
        gate.pacing = gate.pacing.override(PAGE, concurrency=2)
        other = await visit(gate)
        started = await one
        elsewhere = await asyncio.gather(*(visit(gate, OTHER, took=100) for _ in range(2)))

    assert gaps(several) == [1.0, 1.0]
    assert gaps(alone) == [101.0]
    # Not before the rest that a grant would have armed, counted from the change.
    assert other - started == pytest.approx(2.0, abs=0.01)
    assert gaps(elsewhere) == [101.0]


async def test_scopes_cannot_change_while_the_gate_is_open() -> None:
    async with opened() as gate:
        with pytest.raises(polite.InvalidOption, match="PacingPolicy: scopes cannot change"):
            gate.pacing = polite.PacingPolicy(scopes=lambda target: (target.origin.host,))
        with pytest.raises(polite.InvalidOption, match="pacing must be a PacingPolicy"):
            gate.pacing = 5  # type: ignore[assignment]
        assert gate.pacing == polite.PacingPolicy()


async def test_a_throttle_of_ones_own_drops_neither_retry_after_nor_crawl_delay() -> None:
    class Quick:
        def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
            return Pause(0.0, "quick")

    async with opened(serving(b"User-agent: *\nCrawl-delay: 7\n"), throttle=Quick()) as gate:
        first = await visit(gate)
        async with gate.permit(PAGE) as permit:
            second = now()
            permit.report(status=429, headers={"Retry-After": "60"})
        third = await visit(gate)

        assert gaps([first, second, third]) == [7.0, 60.0]
        assert gate.counters.slowed == 1


@pytest.mark.parametrize("seconds", [None, float("nan"), float("inf"), -1.0, "soon"])
async def test_a_throttle_that_fails_shortens_no_delay_and_lets_no_request_wait_for_ever(
    seconds: object, caplog: pytest.LogCaptureFixture
) -> None:
    throttle = Failing(seconds)
    async with opened(throttle=throttle) as gate:
        throttle.broken = True
        first = await visit(gate)
        assert await visit(gate) - first == 1.0

        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "3600"})
            refused = now()
        assert await visit(gate) - refused == 3600.0
        assert gate.counters.slowed == 1
    assert "the throttle" in caplog.text
