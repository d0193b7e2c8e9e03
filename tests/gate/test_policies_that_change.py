"""Policies and throttles that change while requests wait: no delay is lost by it, and each grant keeps the delay of its moment."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.events import BackedOff, Event
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.timed_visits import OTHER, PAGE, ROBOTS, opened, serving, visit
from tests.support import OpenedGate, now, scripted_gate

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


SITE = "https://site.test"


def opened_with(robots: bytes = b"User-agent: *\n", **options: Any) -> OpenedGate:
    script = {f"{SITE}/robots.txt": Reply(200, robots)}
    return scripted_gate(script, **options)


class Thirty:
    """A throttle of the user's own that asks for more than the policy does."""

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        return Pause(30.0, "ours")


async def test_nor_do_permits_that_waited_before_the_policy_changed() -> None:
    granted: list[float] = []

    async def visit(gate: polite.Gate) -> None:
        async with gate.permit(PAGE) as permit:
            granted.append(now())
            await asyncio.sleep(10)
            permit.report(status=200)

    async with opened_with(throttle=Thirty()) as gate:
        tasks = [asyncio.create_task(visit(gate)) for _ in range(6)]
        await asyncio.sleep(45)
        gate.pacing = replace(gate.pacing, concurrency=5)
        await asyncio.gather(*tasks)

    assert all(later - earlier >= 30.0 for earlier, later in pairwise(granted))


@pytest.mark.parametrize("before", polite.Anchor)
@pytest.mark.parametrize("after", polite.Anchor)
async def test_an_anchor_that_changes_between_report_and_exit_settles_exactly_once(
    before: polite.Anchor, after: polite.Anchor
) -> None:
    events: list[Event] = []

    async with opened_with(listener=events.append, pacing=polite.PacingPolicy(anchor=before)) as gate:
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "600"})
            reported = now()
            gate.pacing = replace(gate.pacing, anchor=after)
            await asyncio.sleep(5)
        async with gate.permit(PAGE) as permit:
            waited = now() - reported
            permit.report(status=200)

    assert waited == (600 if before is polite.Anchor.FIRST_BYTE else 605)
    assert len([event for event in events if isinstance(event, BackedOff)]) == 1


async def grants(
    gate: polite.Gate, count: int, change: Callable[[], Any] = lambda: None, at: float = 0.0
) -> list[float]:
    """When `count` pages go that ask at one time and take longer than the whole crawl; `change` is called meanwhile."""
    granted: list[float] = []

    async def page(number: int) -> None:
        async with gate.permit(f"{SITE}/{number}") as permit:
            granted.append(asyncio.get_running_loop().time())
            await asyncio.sleep(3_000)
            permit.report(status=200)

    pages = [asyncio.create_task(page(number)) for number in range(count)]
    await asyncio.sleep(at)
    change()
    await asyncio.gather(*pages)
    return granted


def opened_wide(robots: bytes, **pacing: Any) -> Any:
    script = {f"{SITE}/robots.txt": Reply(200, robots)}
    return scripted_gate(script, pacing=polite.PacingPolicy(concurrency=20, **pacing))


async def test_permits_that_wait_keep_the_crawl_delay_that_a_new_policy_allows() -> None:
    async with opened_wide(b"User-agent: *\nCrawl-delay: 30\n", max_crawl_delay=5) as gate:

        def change() -> None:
            gate.pacing = replace(gate.pacing, max_crawl_delay=300)

        granted = await grants(gate, 8, change, at=12.0)

    # What runs already stays as it is: 5, 10, 15.
    assert all(later - earlier >= 30.0 for earlier, later in pairwise(granted[2:]))
