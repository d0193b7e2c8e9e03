"""Driving an exchange: each hop in its turn, one deadline for the network, a missing file inferred, no error but a cancellation."""

import asyncio
from collections import Counter

import pytest

import polite
from polite.events import Event, RobotsFetched
from polite.gate.fetcher import Downloads, RobotsFetcher
from polite.gate.turns import Turns
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.pacer import LocalPacer
from polite.pacing.policy import PacingPolicy
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.testing import LoopClock, ScriptedTransport
from tests.gate.support import PAGE, PRIVATE, ROBOTS, RULES, opened
from tests.gate.support import SITE as SITE_URL
from tests.support import TimedTransport, now

SITE = Origin.of(SITE_URL)
INFERRING = RobotsPolicy(infer_missing=True)


def named(*hosts: str) -> list[Origin]:
    return [Origin.of(f"https://{host}.test/") for host in hosts]


def fetcher(transport, pacing=None, robots=None, **fetching):
    clock = LoopClock()
    policies = EffectivePolicies(pacing or PacingPolicy())
    concurrency, delay = policies.limits
    pacer = LocalPacer(clock, concurrency=concurrency, provisional_s=delay)
    turns = Turns(pacer, policies, clock, lambda _: None)
    downloads = Downloads({"https": transport}, FetchPolicy(**fetching))  # type: ignore[arg-type]
    return RobotsFetcher(downloads, turns, clock, robots or RobotsPolicy(), missing=lambda: "no-such-page")


# /robots.txt -> /1 -> /2 ... -> the file at the last.
CHAIN = {
    ROBOTS: Reply(302, location="/1"),
    **{f"{SITE_URL}/{number}": Reply(302, location=f"/{number + 1}") for number in range(1, 5)},
    f"{SITE_URL}/5": Reply(200, b"User-agent: *"),
}


async def test_h2_a_chain_of_five_redirects_is_followed_each_hop_in_its_turn() -> None:
    transport = TimedTransport(CHAIN)
    access = await fetcher(transport).fetch(SITE)
    assert isinstance(access, Found)
    assert (access.hops, transport.times) == (5, pytest.approx([0, 1, 2, 3, 4, 5]))


async def test_the_deadline_is_for_all_hops_and_counts_no_waiting() -> None:
    within = await fetcher(TimedTransport(CHAIN, delay_s=4.0), timeout=24.5).fetch(SITE)
    beyond = await fetcher(TimedTransport(CHAIN, delay_s=4.0), timeout=23.5).fetch(SITE)
    assert isinstance(within, Found)
    assert within.elapsed_s == pytest.approx(24.0)
    assert isinstance(beyond, Unreachable)
    assert beyond.reason is Reason.TIMEOUT
    assert "FetchPolicy.timeout" in beyond.detail


async def test_a_cancelled_fetch_gives_its_turn_back() -> None:
    transport = TimedTransport({}, delay_s=50.0)
    fetching = fetcher(transport)
    cancelled = asyncio.create_task(fetching.fetch(SITE))
    await asyncio.sleep(10)
    cancelled.cancel()
    await fetching.fetch(SITE)
    assert transport.times == pytest.approx([0, 11])


async def test_so_many_fetches_are_on_the_network_at_one_time() -> None:
    transport = TimedTransport({}, delay_s=1.0)
    await asyncio.gather(*map(fetcher(transport, connections=7).fetch, named(*map(str, range(50)))))
    assert Counter(transport.times) == {float(second): 7 for second in range(7)} | {7.0: 1}


async def test_a_hostile_redirect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    access = await fetcher(TimedTransport({ROBOTS: Reply(302, location="file:///etc/passwd")})).fetch(SITE)
    assert access.reason.hostile
    assert "the robots.txt of https://site.test was not fetched" in caplog.text
    assert "file:///etc/passwd" in caplog.text


async def test_redirects_of_many_origins_into_one_hold_its_pages_up_by_one_turn() -> None:
    away = "https://away.test/robots.txt"
    evil = named(*(f"evil{number}" for number in range(40)))
    transport = TimedTransport({origin.robots_url: Reply(302, location=away) for origin in evil})
    fetching = fetcher(transport)
    redirected = [asyncio.create_task(fetching.fetch(origin)) for origin in evil]
    await asyncio.sleep(1.5)

    page = await fetching.turns.take(Target.of("https://away.test/page"))
    fetching.turns.release(page)
    waited = now() - 1.5
    await asyncio.gather(*redirected)

    assert waited <= 2.0
    assert transport.asked.count(away) == 40


MISSING = {ROBOTS: Reply(500), f"{SITE_URL}/no-such-page": Reply(500), f"{SITE_URL}/": Reply(200)}


@pytest.mark.parametrize(
    ("takes_s", "pace", "at"), [(2.0, None, [0, 3, 6]), (0.0, RequestedPace(20.0), [0, 20, 40])]
)
async def test_h7_the_two_questions_take_their_turns_and_are_counted(takes_s, pace, at):
    transport = TimedTransport(MISSING, delay_s=takes_s)
    access = await fetcher(transport, robots=INFERRING).fetch(SITE, pace_of=lambda _: pace)
    assert isinstance(access, Unavailable)
    assert (access.reason, access.probes) == (Reason.INFERRED_MISSING, 2)
    assert (access.elapsed_s, transport.asked) == (pytest.approx(3 * takes_s), list(MISSING))
    assert transport.times == pytest.approx(at)


async def test_h7_a_site_that_answers_5xx_for_missing_pages_has_no_robots_txt() -> None:
    class OnlyTheFrontPage(ScriptedTransport):
        async def get(self, ask: Ask) -> Reply | Failed:
            self.asked.append(ask.target.url)
            return Reply(200 if ask.target.path == "/" else 500)

    events: list[Event] = []
    async with opened(OnlyTheFrontPage(), robots=INFERRING, listener=events.append) as (gate, transport):
        decision = await gate.check(PAGE)
        explained = str(await gate.explain(PAGE))
        await asyncio.sleep(0.8 * 86_400)
        await gate.check(PAGE)
        asked_in_a_day = len(transport.asked)
        await asyncio.sleep(0.3 * 86_400)
        await gate.check(PAGE)

    assert decision.allowed
    assert (decision.reason, decision.cause) == (polite.Reason.UNAVAILABLE, polite.Reason.INFERRED_MISSING)
    assert "5xx, as it does for any page that does not exist, status 500, and 2 other pages" in explained
    assert "RobotsPolicy.infer_missing" in explained
    assert events[0] == RobotsFetched(SITE_URL, "unavailable", "INFERRED_MISSING", 500, 0, 0.0, 86_400.0, 2)
    assert (asked_in_a_day, len(transport.asked)) == (3, 6)


async def test_h7_the_copy_of_a_file_that_was_there_goes_on_deciding() -> None:
    transport = ScriptedTransport({ROBOTS: [Reply(200, RULES), Reply(500)]})
    async with opened(transport, robots=INFERRING) as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(2 * 86_400)
        assert not (await gate.check(PRIVATE)).allowed
    assert transport.asked == [ROBOTS, ROBOTS]
