"""Several gates of one process: for a site they are one machine, so each keeps the delays of the others."""

import asyncio
import os
import random
import threading
import time
import warnings
from contextlib import AsyncExitStack
from itertools import count

import pytest

import polite
from polite.clock import SystemClock
from polite.pacing import process_delays as module
from polite.pacing.pacer import process_delays
from polite.pacing.process_delays import ProcessDelays
from polite.pacing.turnstile import Turnstile
from polite.robots.exchange import Reply
from polite.testing import LoopClock
from tests.gate.support import AGENT, PAGE, ROBOTS, gaps, visit
from tests.support import TimedTransport, now, scripted_gate


def serving(robots_txt: bytes = b"") -> TimedTransport:
    return TimedTransport({ROBOTS: Reply(200, robots_txt)})


@pytest.fixture
def clock() -> LoopClock:
    return LoopClock()


@pytest.fixture(autouse=True)
def told():
    """The warnings of the test. None is an error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield told


def opened(site, clock, agent=AGENT, **options):
    return scripted_gate(site, agent=agent, clock=clock, **options)


async def test_a_gate_for_each_call_keeps_the_delay_and_is_warned_of_once(clock, told):
    site = serving(b"User-agent: *\nCrawl-delay: 2")
    for _ in range(4):
        async with opened(site, clock) as gate:
            site.times.append(await visit(gate))

    assert site.times == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    assert [each.category for each in told] == [UserWarning]
    assert "https://site.test, so this one waits for 2 s. Open one gate or session for the whole" in str(
        told[0].message
    )


async def test_gates_that_are_open_together_share_the_turns_of_an_origin(clock: LoopClock) -> None:
    site = serving()
    turns: list[asyncio.Future[list[float]]] = []

    async with AsyncExitStack() as stack:
        for agent in (AGENT, "OtherBot/1.0", "ThirdBot/1.0"):
            gate = await stack.enter_async_context(opened(site, clock, agent=agent))
            turns.append(asyncio.gather(*(visit(gate, f"{PAGE}/{page}") for page in range(20))))
            await asyncio.sleep(0.3)
        each = await asyncio.gather(*turns)

    times = sorted([*site.times, *each[0], *each[1], *each[2]])
    assert len(times) == 63
    assert 1.0 <= min(gaps(times)) <= max(gaps(times)) <= 1.1
    # None of them waits until another is done.
    assert [len([at for at in times if at < 33]) for times in each] == [10, 10, 10]


async def test_a_task_that_holds_the_turn_of_one_gate_does_not_wait_for_ever_for_another(clock: LoopClock):
    async with opened(serving(), clock) as one, opened(serving(), clock) as other, one.permit(PAGE):
        assert await visit(other) < 70


@pytest.mark.parametrize(("first", "second"), [(1, 10), (10, 1), (0, 3)])
async def test_the_longer_delay_of_two_gates_counts(clock: LoopClock, first: float, second: float) -> None:
    async with opened(serving(), clock, pacing=polite.PacingPolicy(min_delay=first)) as gate:
        ended = await visit(gate)
    site = serving()
    async with opened(site, clock, pacing=polite.PacingPolicy(min_delay=second)) as gate:
        await visit(gate)
    assert site.times == [ended + max(first, second)]


async def test_a_back_off_outlives_its_gate(clock: LoopClock, told: list[warnings.WarningMessage]) -> None:
    async with opened(serving(), clock) as gate:
        ended = await visit(gate, status=429, Retry_After="600")
    await asyncio.sleep(100)
    site = serving()
    async with opened(site, clock) as gate:
        await visit(gate, "https://elsewhere.test/")
        assert not told
        await visit(gate)

    assert (site.times[1:], len(told)) == ([ended + 600], 1)


async def test_a_request_in_flight_when_its_gate_closes_begins_its_delay_at_its_end(clock: LoopClock) -> None:
    async with opened(serving(), clock) as gate:
        permit = await gate.acquire(PAGE)
    await asyncio.sleep(100)
    permit.report(status=503, headers={"Retry-After": "30"})
    permit.leave()
    site = serving()
    async with opened(site, clock) as gate:
        await visit(gate)

    assert site.times == [1.0 + 100 + 30]


@pytest.mark.parametrize("seed", range(12))
async def test_gates_of_other_limits_that_hold_turns_for_long_keep_the_longer_delay(clock, seed: int):
    chance = random.Random(seed)
    policies = [
        polite.PacingPolicy(min_delay=chance.choice([1, 2, 5, 10]), concurrency=chance.choice([1, 1, 2, 3]))
        for _ in range(2)
    ]
    sites, sent = [serving(), serving()], []

    async def crawl(number: int, gate: polite.Gate) -> None:
        for _ in range(6):
            await asyncio.sleep(chance.choice([0, 0, 1, 30]))
            async with gate.permit(PAGE) as permit:
                await asyncio.sleep(chance.choice([0, 0, 0.3, 3, 12, 70]))
                await permit.ready()
                sent.append((now(), number))
                await asyncio.sleep(chance.choice([0, 0.5, 4]))
                permit.report(status=200)

    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for number, (site, pacing) in enumerate(zip(sites, policies, strict=True)):
            gate = await stack.enter_async_context(opened(site, clock, pacing=pacing))
            for _ in range(3):
                group.create_task(crawl(number, gate))
        await asyncio.sleep(5_000)

    sent += [(at, number) for number, site in enumerate(sites) for at in site.times]
    longer = max(policy.min_delay for policy in policies)
    gaps = [abs(at - other) for at, gate in sent for other, other_gate in sent if gate and not other_gate]
    assert min(gaps) >= longer - 1e-9


async def test_delays_of_wider_scopes_are_kept_but_not_those_of_a_whole_crawl(clock: LoopClock) -> None:
    limit = polite.ScopeLimit(delay=7)
    scopes = polite.Scopes(crawl=limit, custom=[polite.CustomScope("customer", lambda _: "acme", limit)])
    pacing = polite.PacingPolicy(scopes=scopes)
    async with opened(serving(), clock, pacing=pacing) as gate:
        ended = await visit(gate)
    other = serving()
    async with opened(other, clock, pacing=polite.PacingPolicy(scopes=polite.Scopes(crawl=limit))) as gate:
        await visit(gate, "https://other.test/")
    third = serving()
    async with opened(third, clock, pacing=pacing) as gate:
        await visit(gate, "https://third.test/")

    assert (other.times, third.times) == ([ended], [ended + 7])


async def test_gates_with_clocks_of_their_own_know_nothing_of_each_other(told: list[warnings.WarningMessage]):
    site = serving()
    for _ in range(3):
        async with opened(site, LoopClock()) as gate:
            await gate.check(PAGE)
    assert site.times == [0.0] * 3
    assert not told


async def test_the_delays_of_closed_gates_are_forgotten(clock: LoopClock, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MOST_LEFT", 100)
    delays = process_delays(clock)
    async with opened(serving(), clock) as gate:
        for host in range(300):
            await visit(gate, f"https://host{host}.test/", status=429, Retry_After=str(1_000 + host))
    kept = set(delays.left)
    async with opened(serving(), clock) as gate:
        await asyncio.sleep(2_000)
        await visit(gate)
        await visit(gate)
        alone = not gate.services.turns.pacer._turnstile.member.active

    assert {str(each) for each in kept} == {f"https://host{host}.test" for host in range(210, 300)}
    assert alone
    assert len(delays.left) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_begins_without_delays() -> None:
    before = process_delays(SystemClock())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that other tests left
        child = os.fork()
    if not child:
        os._exit(process_delays(SystemClock()) is before)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_never_have_a_turn_of_one_origin_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread opens turnstiles anew, as a gate for each call does; time is counted in requests."""
    delays, ticks, seed = ProcessDelays(), count(), random.randrange(2**32)
    looked = module.Member.delay

    def look_and_dawdle(member, scope, at):
        looked(member, scope, at)
        time.sleep(random.choice([0, 0, 0.0001]))

    monkeypatch.setattr(module, "_OPEN_S", 1e9)
    monkeypatch.setattr(module.Member, "delay", look_and_dawdle)
    ends: list[int] = [-10]
    inside = threading.Lock()
    broken: list[str] = []
    stop_at = time.monotonic() + 2.0

    def crawl(number: int) -> None:
        chance, turns = random.Random(seed + number), 0
        while turns < 300 and not broken and time.monotonic() < stop_at:
            turnstile = Turnstile(provisional_s=5)
            member = turnstile.join(delays, lambda _: None)
            for _ in range(chance.randrange(1, 4)):
                turns += take(turnstile, chance)
            member.leave(next(ticks))

    def take(turnstile: Turnstile, chance: random.Random) -> bool:
        turn = turnstile.request(("https://site.test",), next(ticks), wait=False)
        if turn.granted_at is None:
            return False
        if not inside.acquire(blocking=False):
            broken.append("two turns at once")
        elif turn.granted_at - ends[-1] < 5:
            broken.append(f"a turn {turn.granted_at - ends[-1]} after the last")
        time.sleep(chance.choice([0, 0, 0.0001]))
        ends.append(next(ticks))
        turnstile.settle(turn, ends[-1], 5)
        inside.release()
        turnstile.release(turn, next(ticks))
        return True

    threads = [threading.Thread(target=crawl, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (broken, seed) == ([], seed)
    assert len(ends) > 100


@pytest.mark.parametrize("meanwhile", ["a turn is given back", "the gate visits others"])
async def test_the_longer_delay_counts_from_the_last_request_of_the_other_gate(clock, meanwhile: str):
    slower = polite.PacingPolicy(min_delay=300)
    async with opened(serving(), clock) as one, opened(serving(), clock, pacing=slower) as other:
        await visit(other)
        await visit(one)
        await asyncio.sleep(100)
        last = await visit(one)
        await asyncio.sleep(61)
        if meanwhile == "a turn is given back":
            permit = one.permit(PAGE)
            await permit.enter()
            permit.unsent()
        else:
            await asyncio.gather(*[visit(one, f"https://t{number}.test/") for number in range(100)])

        assert await visit(other) >= last + 300
