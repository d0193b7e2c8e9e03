"""Driving an exchange: each hop in its turn, one deadline for the network, a missing file inferred, no error but a cancellation."""

import asyncio
from collections.abc import Callable

import pytest

import polite
from polite.events import Event, RobotsFetched
from polite.gate.fetcher import RobotsFetcher
from polite.gate.turns import Turns
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.outcome import Outcome
from polite.pacing.pacer import LocalPacer
from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import CustomScope, ScopeLimit, Scopes
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable
from polite.testing import LoopClock, ScriptedTransport
from tests.gate.support import PAGE, PRIVATE, ROBOTS, RULES, opened
from tests.support import now

pytestmark = pytest.mark.virtual_time


SITE = Origin.of("https://site.test/")


AWAY = "https://away.test"


class TimedTransport:
    """Takes its time over each hop, and notes when it was asked for what."""

    def __init__(self, answer: Callable[[str], Reply | Failed], takes_s: float = 0.0) -> None:
        self._answer = answer
        self._takes_s = takes_s
        self.asked: list[tuple[float, str]] = []
        self.busy = self.busiest = 0

    async def get(self, ask: Ask) -> Reply | Failed:
        self.asked.append((now(), ask.target.url))
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            await asyncio.sleep(self._takes_s)
        finally:
            self.busy -= 1
        return self._answer(ask.target.url)

    async def close(self) -> None:
        pass


def fetcher(
    transport: TimedTransport | ScriptedTransport,
    pacing: PacingPolicy | None = None,
    robots: RobotsPolicy | None = None,
    **fetching: float,
) -> RobotsFetcher:
    clock = LoopClock()
    events: list[Event] = []
    policies = EffectivePolicies(pacing or PacingPolicy())
    concurrency, delay = policies.limits
    pacer = LocalPacer(clock, concurrency=concurrency, provisional_s=delay)
    turns = Turns(pacer, policies, clock, events.append)
    policy = FetchPolicy(**fetching)  # type: ignore[arg-type]
    return RobotsFetcher(
        {"https": transport}, turns, clock, policy, robots or RobotsPolicy(), missing=lambda: "no-such-page"
    )


def chain(hops: int) -> Callable[[str], Reply]:
    """/robots.txt -> /1 -> /2 ... -> the file at the last."""

    def answer(url: str) -> Reply:
        stop = int(url.rpartition("/")[2].replace("robots.txt", "0"))
        return Reply(200, b"User-agent: *") if stop == hops else Reply(302, location=f"/{stop + 1}")

    return answer


async def test_h2_a_chain_of_five_redirects_is_followed_each_hop_in_its_turn() -> None:
    transport = TimedTransport(chain(5))

    access = await fetcher(transport).fetch(SITE)

    assert isinstance(access, Found)
    assert access.hops == 5
    assert [at for at, _ in transport.asked] == pytest.approx([0, 1, 2, 3, 4, 5])


async def test_the_deadline_is_for_all_hops_and_counts_no_waiting() -> None:
    slow = TimedTransport(chain(5), takes_s=4.0)

    within = await fetcher(slow, timeout=24.5).fetch(SITE)
    beyond = await fetcher(TimedTransport(chain(5), takes_s=4.0), timeout=23.5).fetch(SITE)

    assert isinstance(within, Found)
    assert within.elapsed_s == pytest.approx(24.0)
    assert isinstance(beyond, Unreachable)
    assert beyond.reason is Reason.TIMEOUT
    assert "FetchPolicy.timeout" in beyond.detail


async def test_a_cancelled_fetch_gives_its_turn_back() -> None:
    transport = TimedTransport(lambda _: Reply(200), takes_s=50.0)
    fetching = fetcher(transport)
    cancelled = asyncio.create_task(fetching.fetch(SITE))
    await asyncio.sleep(10)

    cancelled.cancel()
    await fetching.fetch(SITE)

    assert [at for at, _ in transport.asked] == pytest.approx([0, 11])


async def test_so_many_fetches_are_on_the_network_at_one_time() -> None:
    transport = TimedTransport(lambda _: Reply(200), takes_s=1.0)
    fetching = fetcher(transport, connections=7)

    results: list[FetchResult] = await asyncio.gather(
        *(fetching.fetch(Origin.of(f"https://site{n}.test/")) for n in range(50))
    )

    assert transport.busiest == 7
    assert all(isinstance(access, Found) for access in results)


async def test_a_hostile_redirect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    transport = TimedTransport(lambda _: Reply(302, location="file:///etc/passwd"))

    access = await fetcher(transport).fetch(SITE)

    assert access.reason.hostile
    assert "the robots.txt of https://site.test was not fetched" in caplog.text
    assert "file:///etc/passwd" in caplog.text


INFERRING = RobotsPolicy(infer_missing=True)


def only_the_front_page(url: str) -> Reply:
    return Reply(200 if url == f"{SITE}/" else 500)


@pytest.mark.parametrize(
    ("takes_s", "pace", "at"), [(2.0, None, [0, 3, 6]), (0.0, RequestedPace(20.0), [0, 20, 40])]
)
async def test_h7_the_two_questions_take_their_turns_and_are_counted(
    takes_s: float, pace: RequestedPace | None, at: list[float]
) -> None:
    transport = TimedTransport(only_the_front_page, takes_s)

    access = await fetcher(transport, robots=INFERRING).fetch(SITE, pace_of=lambda _: pace)

    assert isinstance(access, Unavailable)
    assert (access.reason, access.probes) == (Reason.INFERRED_MISSING, 2)
    assert access.elapsed_s == pytest.approx(3 * takes_s)
    assert [url for _, url in transport.asked] == [SITE.robots_url, f"{SITE}/no-such-page", f"{SITE}/"]
    assert [time for time, _ in transport.asked] == pytest.approx(at)


class Slow(TimedTransport):
    """A transport whose connection to the slow host comes when `connected` is set."""

    def __init__(self, takes_s: float = 0.0) -> None:
        super().__init__(lambda _: Reply(200), takes_s=takes_s)
        self.connected = asyncio.Event()

    async def get(self, ask: Ask) -> Reply | Failed:
        if "slow" in ask.target.url:
            await self.connected.wait()
            await ask.ready()
        return await super().get(ask)


WIDE = PacingPolicy(
    scopes=Scopes(custom=[CustomScope("customer", lambda _: "acme", ScopeLimit(delay=2.0, concurrency=3))])
)


async def test_a_fetch_that_is_cancelled_while_its_scopes_are_delayed_frees_its_connection() -> None:
    transport = Slow()
    fetching = fetcher(transport, WIDE, connections=1)
    hosts = ("slow", "a", "b")
    fetches = [asyncio.create_task(fetching.fetch(Origin.of(f"https://{host}.test/"))) for host in hosts]
    await asyncio.sleep(20.5)
    transport.connected.set()
    await asyncio.sleep(0.5)

    fetches[1].cancel()
    await fetches[2]

    assert [url for _, url in transport.asked] == [
        "https://slow.test/robots.txt",
        "https://b.test/robots.txt",
    ]


async def test_redirects_of_many_origins_into_one_hold_its_pages_up_by_one_turn() -> None:
    transport = TimedTransport(
        lambda url: Reply(302, location=f"{AWAY}/robots.txt") if "evil" in url else Reply(404)
    )
    fetching = fetcher(transport)
    redirected = [asyncio.create_task(fetching.fetch(Origin.of(f"https://evil{n}.test/"))) for n in range(40)]
    await asyncio.sleep(1.5)

    page = await fetching._turns.take(Target.of(f"{AWAY}/page"))
    fetching._turns.release(page)
    waited = now() - 1.5
    await asyncio.gather(*redirected)

    assert waited <= 2.0
    assert sum(url.startswith(AWAY) for _, url in transport.asked) == 40


async def test_a_back_off_that_is_met_while_a_fetch_waits_for_a_connection_keeps_none_from_others() -> None:
    transport = TimedTransport(lambda _: Reply(200, b""), takes_s=20.0)
    fetching = fetcher(transport, PacingPolicy(concurrency=2), connections=1, timeout=30.0)
    page = Target.of("https://site.test/page")
    turn = await fetching._turns.take(page)
    hosts = [Origin.of(f"https://{name}.test/") for name in ("slow", "site", "other")]
    fetches = [asyncio.create_task(fetching.fetch(origin)) for origin in hosts]
    await asyncio.sleep(10)
    fetching._turns.settle(turn, page, Outcome(429, retry_after_s=600.0), None)
    fetching._turns.release(turn)
    await asyncio.gather(*fetches)

    assert transport.asked == [
        (0.0, "https://slow.test/robots.txt"),
        (20.0, "https://other.test/robots.txt"),
        # A delay later, as of a turn that was given back.
        (611.0, "https://site.test/robots.txt"),
    ]


async def test_h7_a_site_that_answers_5xx_for_missing_pages_has_no_robots_txt() -> None:
    events: list[Event] = []
    transport = TimedTransport(lambda url: Reply(200 if url == f"{SITE}/" else 500))

    async with opened(transport, robots=INFERRING, listener=events.append) as (gate, _):
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
    assert events[0] == RobotsFetched(
        "https://site.test", "unavailable", "INFERRED_MISSING", 500, 0, 0.0, 86_400.0, 2
    )
    assert (asked_in_a_day, len(transport.asked)) == (3, 6)


async def test_h7_explain_says_why_nothing_was_inferred() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(500)})

    async with opened(transport, robots=INFERRING) as (gate, _):
        explained = str(await gate.explain(PAGE))

    assert "disallowed" in explained
    assert "not inferred to be missing: the result of a page that cannot exist is: status 404" in explained
    assert len(transport.asked) == 2


async def test_h7_the_copy_of_a_file_that_was_there_goes_on_deciding() -> None:
    transport = ScriptedTransport({ROBOTS: [Reply(200, RULES), Reply(500)]})

    async with opened(transport, robots=INFERRING) as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(2 * 86_400)
        decision = await gate.check(PRIVATE)

    assert not decision.allowed
    assert transport.asked == [ROBOTS, ROBOTS]
