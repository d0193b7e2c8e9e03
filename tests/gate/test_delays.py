"""An origin keeps its delay, hours, quota and concurrency, also when the policy changes meanwhile; other origins do not wait."""

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

import polite
from polite.events import BackedOff, Event, Skipped
from polite.pacing.hours import Hours
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, SITE, gaps, opened, serving, visit
from tests.support import now, scripted_gate


class Own:
    """A throttle of the user's own that asks for `seconds`; it fails if these are None."""

    def __init__(self, seconds):
        self.seconds = seconds

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        if self.seconds is None:
            raise ValueError("broken")
        return Pause(self.seconds, "ours")


@pytest.mark.parametrize(
    ("rule", "pacing", "gap", "because"),
    [
        ("", {"min_delay": 2.5}, 2.5, "min_delay 2.5 s"),
        ("Crawl-delay: 0.5", {}, 1.0, "min_delay 1 s"),
        ("Crawl-delay: nan", {}, 1.0, "min_delay 1 s"),
        ("Crawl-delay: 1.5", {}, 1.5, "Crawl-delay 1.5 s"),
        ("Request-rate: 1/30", {}, 30.0, "Request-rate 1/30"),
        ("Crawl-delay: 4000", {}, 300.0, "Crawl-delay 4000 s, held to max_crawl_delay 300 s"),
        ("Request-rate: 1/4000", {}, 300.0, "Request-rate 1/4000, held to max_crawl_delay 300 s"),
        ("Crawl-delay: 300", {"on_long_delay": "refuse"}, 300.0, "Crawl-delay 300 s"),
        ("Crawl-delay: 4000", {"on_long_delay": "obey"}, 4000.0, "and obeyed (on_long_delay)"),
        ("Request-rate: 1/4000", {"on_long_delay": "obey"}, 4000.0, "and obeyed (on_long_delay)"),
    ],
)
async def test_t3_what_a_file_asks_for_and_min_delay_give_the_larger(rule, pacing, gap, because):
    opening = opened(serving(f"User-agent: *\n{rule}\n".encode()), pacing=polite.PacingPolicy(**pacing))
    async with opening as (gate, _):
        times = sorted(await asyncio.gather(*(visit(gate) for _ in range(3))))
        explanation = await gate.explain(PAGE)
    assert times == pytest.approx([gap, 2 * gap, 3 * gap])
    assert because in explanation.pause.because
    assert f"delay: {gap:g} s between requests ({explanation.pause.because})" in str(explanation)


async def test_t3_a_long_delay_may_be_refused() -> None:
    pacing = polite.PacingPolicy(on_long_delay="refuse")
    async with opened(serving(b"User-agent: *\nCrawl-delay: 301"), pacing=pacing) as (gate, _):
        with pytest.raises(polite.OriginDeclined, match=r"max_crawl_delay=300: robots\.txt requests 301 s"):
            await visit(gate)
        assert "turn: never. PacingPolicy.max_crawl_delay=300" in str(await gate.explain(PAGE))


@pytest.mark.parametrize(
    ("min_delay", "crawl_delay", "gap"), [(5.0, b"", 5.0), (0.0, b"4", 4.0), (1.0, b"7", 7.0)]
)
async def test_t3_with_concurrency_grants_keep_the_delay_too(min_delay, crawl_delay, gap):
    pacing = polite.PacingPolicy(min_delay=min_delay, concurrency=3)
    async with opened(serving(b"User-agent: *\nCrawl-delay: " + crawl_delay), pacing=pacing) as (gate, _):
        times = await asyncio.gather(*(visit(gate, took=1.5 * gap) for _ in range(6)))
    assert min(gaps(times)) >= gap - 1e-6
    assert gaps(times)[0] == pytest.approx(gap)


async def test_too_many_waiting_requests_are_refused_by_name_of_the_option() -> None:
    async with opened(pacing=polite.PacingPolicy(max_waiting=2)) as (gate, _):
        await gate.check(PAGE)
        tasks = [asyncio.create_task(visit(gate)) for _ in range(3)]
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, polite.Overloaded) for result in results] == [False, False, True]
    assert "max_waiting" in str(results[2])


async def test_a_policy_holds_for_responses_that_do_not_repeat_it() -> None:
    async with opened() as (gate, _):
        times = [await visit(gate, RateLimit_Policy='"d";q=10;w=60'), await visit(gate), await visit(gate)]
        assert gaps(times) == [10, 10]
        await asyncio.sleep(60)
        assert "delay: 6 s between requests (RateLimit-Policy: 10 in 60 s)" in str(await gate.explain(ROBOTS))


async def test_robots_txt_tells_a_quota_too() -> None:
    reply = Reply(200, b"", rate_limit='"d";r=0;t=30', rate_limit_policy='"d";q=10;w=60')
    async with opened(ScriptedTransport({ROBOTS: reply})) as (gate, _):
        assert await visit(gate) == pytest.approx(31)
        assert "6 s between requests" in str(await gate.explain(ROBOTS))


async def test_a_long_wait_for_a_quota_is_kept_in_a_store(tmp_path):
    store = str(tmp_path / "robots.sqlite")
    async with opened(store=store) as (gate, _):
        await visit(gate, RateLimit='"d";r=0;t=3000')
    async with opened(store=store) as (gate, _):
        assert await visit(gate) >= 2_900


MIDNIGHT, HOUR = 19_676 * 86_400.0, 3_600.0
OFFICE = b"User-agent: *\nVisit-time: 0600-0845\n"


def opened_at(hour, robots=OFFICE, **options):
    return scripted_gate(serving(robots), clock=LoopClock(epoch=MIDNIGHT + hour * HOUR), **options)


async def test_a_request_that_waits_when_the_site_closes_waits_until_it_opens_again() -> None:
    events: list[Event] = []
    async with opened_at(8.74, OFFICE + b"Crawl-delay: 20\n", listener=events.append) as gate:
        visits = await asyncio.gather(*(visit(gate) for _ in range(4)))
    opening = (24 + 6 - 8.74) * HOUR
    assert visits == pytest.approx([20.0, opening, opening + 20.0, opening + 40.0], abs=0.01)
    assert Skipped(PAGE, "the site closed while it waited") in events


async def test_explain_says_until_when_the_site_is_closed_and_why_before_any_request_waits() -> None:
    async with opened_at(9.0) as gate:
        explanation = await gate.explain(PAGE)
    assert explanation.wait_s == pytest.approx(21 * HOUR)
    assert explanation.held_s == pytest.approx(0.25 * HOUR)
    assert str(explanation.outlook.scope) == f"the opening hours of {SITE}"
    assert f"at 2023-11-16 06:00:00 UTC, held by the opening hours of {SITE}" in str(explanation)
    assert "(Visit-time 06:00-08:45 UTC: the site is closed)" in str(explanation)


async def test_a_policy_may_disregard_opening_hours() -> None:
    async with opened_at(12.0, pacing=polite.PacingPolicy(obey_visit_time=False)) as gate:
        assert await visit(gate) == pytest.approx(1.0)
        assert (await gate.explain(PAGE)).wait_s == pytest.approx(1.0)


NIGHT = polite.PacingPolicy().override(SITE, hours="01:00-05:00 Europe/Berlin")


@pytest.mark.parametrize(
    ("robots", "hour", "visits"),
    [
        (b"", 23.0, [HOUR, HOUR + 1]),  # UTC+1
        (b"", 1.0, [1.0, 2.0]),
        (b"User-agent: *\nVisit-time: 0200-0300\n", 23.0, [3 * HOUR, 3 * HOUR + 1]),
    ],
)
async def test_pages_wait_for_the_hours_of_the_policy_and_of_the_site_and_other_origins_do_not(
    robots: bytes, hour: float, visits: list[float]
) -> None:
    async with opened_at(hour, robots, pacing=NIGHT) as gate:
        assert await visit(gate, "https://other.test/") == pytest.approx(1.0)
        waiting = str(await gate.explain(PAGE))
        assert [await visit(gate), await visit(gate)] == pytest.approx(visits, abs=1.1)
    assert ("PacingPolicy.hours 01:00-05:00 Europe/Berlin: the site is closed" in waiting) == (hour == 23.0)


async def test_a_site_that_is_never_open_within_the_hours_gets_no_requests() -> None:
    async with opened_at(2.0, pacing=NIGHT) as gate:
        with pytest.raises(polite.OriginDeclined, match="Visit-time 06:00-08:45 UTC is never") as raised:
            await visit(gate)
        assert (raised.value.option, raised.value.limit) == ("hours", "01:00-05:00 Europe/Berlin")
        gate.pacing = polite.PacingPolicy(hours="08:30-09:00")
        assert await visit(gate) == pytest.approx(6.5 * HOUR)


async def test_rules_of_a_site_that_is_never_open_are_fetched_again() -> None:
    async with opened_at(2.0, pacing=NIGHT) as gate:
        assert (await gate.check(PAGE)).allowed
        await asyncio.sleep(30 * 24 * HOUR)
        assert gate.counters.robots == 1
        await gate.check(PAGE)
        assert gate.counters.robots == 2


async def test_hours_that_are_set_hold_for_what_waits_and_for_a_permit_that_asks_again() -> None:
    async with opened_at(12.0, b"", pacing=polite.PacingPolicy(min_delay=10)) as gate:
        async with polite.open_frontier(gate) as frontier:
            await frontier.put_many(f"https://other.test/{n}" for n in range(2))
            frontier.close()
            waiting = [asyncio.create_task(visit(gate)) for _ in range(3)]
            async with await anext(frontier):
                await asyncio.sleep(5)
                gate.pacing = replace(gate.pacing, hours="13:00-14:00", concurrency=2)
            visits = sorted(await asyncio.gather(*waiting))
            async with await anext(frontier):
                assert now() == pytest.approx(HOUR, abs=30)
        assert visits[1:] == pytest.approx([HOUR, HOUR + 10], abs=1)
        await asyncio.sleep(2 * HOUR - 25 - now())
        late, refused = await gate.acquire(PAGE), gate.permit(PAGE)
        await asyncio.sleep(11)
        async with refused as permit:
            permit.report(status=429, headers={"Retry-After": "60"})
        with pytest.raises(polite.TurnLost, match="the site closed meanwhile"):
            await late.ready()


@pytest.mark.parametrize(
    ("hours", "now", "opens"),
    [
        # The clocks of Berlin go from 2:00 to 3:00 on 31 March 2024, and from 3:00 to 2:00 on 27 October.
        ("04:00-05:00 Europe/Berlin", "2024-03-30T10:00", "2024-03-31T02:00"),
        ("02:30-05:00 Europe/Berlin", "2024-03-31T00:00", "2024-03-31T01:30"),
        ("04:00-05:00 Europe/Berlin", "2024-10-27T00:00", "2024-10-27T03:00"),
        ("22:00-06:00 America/New_York", "2024-07-01T10:30", "2024-07-02T02:00"),
        ("00:00-24:00", "2024-07-01T10:30", "2024-07-01T10:30"),
    ],
)
def test_hours_keep_summer_time(hours: str, now: str, opens: str) -> None:
    wall = datetime.fromisoformat(f"{now}Z").timestamp()
    opened = wall + Hours.of(hours).opens_in_s(wall)
    assert opened == datetime.fromisoformat(f"{opens}Z").timestamp()
    assert not Hours.of(hours).opens_in_s(opened)


async def test_t3_a_rate_counts_in_its_hours_only() -> None:
    rates = b"User-agent: *\nRequest-rate: 1/60 0000-0100\nRequest-rate: 1/5 0100-0000\n"
    async with opened_at(0.9, rates) as gate:
        visits = [await visit(gate) for _ in range(9)]
    assert gaps(visits) == pytest.approx([60] * 5 + [5] * 3, abs=0.1)


@pytest.mark.parametrize(
    ("renewed", "granted", "skipped"),
    [
        (b"User-agent: *\nDisallow: /other\n", [True, True, True], 1),
        (b"User-agent: *\nDisallow: /page\n", [False, False, False], 3),
        (b"User-agent: *\nCrawl-delay: 30\n", [True, True, True], 3),
    ],
    ids=["as before", "stricter", "slower"],
)
async def test_requests_that_waited_while_the_rules_were_renewed_obey_the_new_ones(renewed, granted, skipped):
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
async def test_a_policy_that_changes_rules_from_the_next_response_on_and_a_running_delay_stays(min_delay):
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


@pytest.mark.parametrize("before", polite.Anchor)
@pytest.mark.parametrize("after", polite.Anchor)
async def test_an_anchor_that_changes_between_report_and_exit_settles_exactly_once(before, after):
    events: list[Event] = []
    async with opened(listener=events.append, pacing=polite.PacingPolicy(anchor=before)) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "600"})
            reported = now()
            gate.pacing = replace(gate.pacing, anchor=after)
            await asyncio.sleep(5)

        assert await visit(gate) - reported == (600 if before is polite.Anchor.FIRST_BYTE else 605)
    assert [each.origin for each in events if isinstance(each, BackedOff)] == [SITE]


async def test_cancelling_a_waiter_loses_nothing_and_shortens_no_delay() -> None:
    async with opened() as (gate, _):
        tasks = [asyncio.create_task(visit(gate)) for _ in range(6)]
        await asyncio.sleep(1.5)
        for task in tasks[1:5]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [results[0], results[5]] == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize("seconds", [0.0, None, float("inf")])
async def test_a_throttle_that_is_quick_or_fails_shortens_no_delay(seconds):
    throttle = Own(0.5)
    async with opened(serving(b"User-agent: *\nCrawl-delay: 7\n"), throttle=throttle) as (gate, _):
        throttle.seconds = seconds
        visits = [await visit(gate), await visit(gate, status=429, Retry_After="3600"), await visit(gate)]
        assert gaps(visits) == [7.0, 3600.0]
        assert gate.counters.slowed == 1
