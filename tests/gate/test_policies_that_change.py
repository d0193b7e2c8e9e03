"""Policies and throttles that change while requests wait: no delay is lost by it, and each grant keeps the delay of its moment."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import polite
from polite.events import BackedOff, Event
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, SITE, gaps, opened, serving, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


class Own:
    """A throttle of the user's own that asks for `seconds`; it fails if these are None."""

    def __init__(self, seconds: Any) -> None:
        self.seconds = seconds

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        if self.seconds is None:
            raise ValueError("broken")
        return Pause(self.seconds, "ours")


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
    async with opened(site) as (gate, _):
        await visit(gate, status=429, Retry_After="86400")
        results = await asyncio.gather(*(visit(gate) for _ in range(3)), return_exceptions=True)

    assert [isinstance(result, float) for result in results] == granted
    assert gate.counters.skipped == skipped


async def test_an_origin_is_delayed_by_a_multiple_of_its_latency() -> None:
    pacing = polite.PacingPolicy(latency_factor=5.0, max_latency_delay=12.0)
    async with opened(pacing=pacing) as (gate, _):
        visits = [await visit(gate, took=took) for took in (0.1, 2.0, 100.0, 0.0)]

    assert gaps(visits) == [0.1 + 1.0, 2.0 + 10.0, 100.0 + 12.0]


@pytest.mark.parametrize("min_delay", [0.25, 30.0])
async def test_a_policy_that_changes_rules_from_the_next_response_on_and_a_running_delay_stays(
    min_delay: float,
) -> None:
    async with opened(pacing=polite.PacingPolicy(min_delay=4.0)) as (gate, _):
        visits = [await visit(gate), await visit(gate)]
        gate.pacing = gate.pacing.override(PAGE, min_delay=min_delay)
        visits += [await visit(gate), await visit(gate)]

    assert gaps(visits) == [4.0, 4.0, min_delay]


async def test_one_origin_may_be_asked_for_several_pages_at_one_time_also_from_now_on() -> None:
    async with opened(pacing=polite.PacingPolicy().override(PAGE, concurrency=3)) as (gate, _):
        several = await asyncio.gather(*(visit(gate, took=100) for _ in range(3)))
        gate.pacing = gate.pacing.override(PAGE, concurrency=1)
        alone = await asyncio.gather(*(visit(gate, took=100) for _ in range(2)))
        one = asyncio.create_task(visit(gate, took=100))
        await asyncio.sleep(2)
        gate.pacing = gate.pacing.override(PAGE, concurrency=2)
        other = await visit(gate)
        started = await one
        elsewhere = await asyncio.gather(*(visit(gate, "https://b.test/", took=100) for _ in range(2)))

    assert gaps(several) == [1.0, 1.0]
    assert gaps(alone) == gaps(elsewhere) == [101.0]
    # Not before the delay that a grant would have armed, counted from the change.
    assert other - started == pytest.approx(2.0, abs=0.01)


async def test_scopes_cannot_change_while_the_gate_is_open() -> None:
    async with opened() as (gate, _):
        with pytest.raises(polite.InvalidOption, match="PacingPolicy: scopes cannot change"):
            gate.pacing = polite.PacingPolicy(scopes=lambda target: (target.origin.host,))
        with pytest.raises(polite.InvalidOption, match="pacing must be a PacingPolicy"):
            gate.pacing = 5  # type: ignore[assignment]
        assert gate.pacing == polite.PacingPolicy()


@pytest.mark.parametrize("seconds", [0.0, None, float("inf")])
async def test_a_throttle_that_is_quick_or_fails_shortens_no_delay(seconds: Any) -> None:
    throttle = Own(0.5)
    async with opened(serving(b"User-agent: *\nCrawl-delay: 7\n"), throttle=throttle) as (gate, _):
        throttle.seconds = seconds
        visits = [await visit(gate), await visit(gate, status=429, Retry_After="3600"), await visit(gate)]

        assert gaps(visits) == [7.0, 3600.0]
        assert gate.counters.slowed == 1


@pytest.mark.parametrize(
    ("robots", "options", "before", "after"),
    [
        (b"", {"throttle": Own(30.0)}, {}, {"concurrency": 5}),
        (
            b"User-agent: *\nCrawl-delay: 30\n",
            {},
            {"concurrency": 20, "max_crawl_delay": 5},
            {"max_crawl_delay": 300},
        ),
    ],
    ids=["more at one time", "a longer Crawl-delay"],
)
async def test_permits_that_waited_before_the_policy_changed_keep_the_delay_of_now(
    robots: bytes, options: Any, before: Any, after: Any
) -> None:
    pacing = polite.PacingPolicy(**before)
    async with opened(serving(robots), pacing=pacing, **options) as (gate, _):
        visits = [asyncio.create_task(visit(gate, took=40)) for _ in range(8)]
        await asyncio.sleep(12)
        changed = now()
        gate.pacing = replace(gate.pacing, **after)
        granted = sorted(await asyncio.gather(*visits))

    # What runs already stays as it is.
    later = [at for at in granted if at > changed]
    assert len(later) >= 6
    assert min(gaps(later)) >= 30.0


@pytest.mark.parametrize("before", polite.Anchor)
@pytest.mark.parametrize("after", polite.Anchor)
async def test_an_anchor_that_changes_between_report_and_exit_settles_exactly_once(
    before: polite.Anchor, after: polite.Anchor
) -> None:
    events: list[Event] = []
    async with opened(listener=events.append, pacing=polite.PacingPolicy(anchor=before)) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "600"})
            reported = now()
            gate.pacing = replace(gate.pacing, anchor=after)
            await asyncio.sleep(5)

        assert await visit(gate) - reported == (600 if before is polite.Anchor.FIRST_BYTE else 605)
    assert [each.origin for each in events if isinstance(each, BackedOff)] == [SITE]
