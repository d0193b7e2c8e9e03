"""SharedPacer: turns only at homes that this process holds, whatever happens to them meanwhile."""

import asyncio
import random
from itertools import pairwise
from typing import Any

import pytest

from polite.errors import GateClosed, InvalidOption, Overloaded, StoreFailed, TurnLost
from polite.origin import Origin, Target
from polite.pacers.shared import SharedPacer
from polite.pacing.circuit import CircuitLimits
from polite.pacing.effective_policy import EffectivePolicies, OpeningHours
from polite.pacing.homes import HomeNames, TakenHome
from polite.pacing.pacer import LocalPacer
from polite.pacing.policy import PacingPolicy
from polite.pacing.process_delays import ProcessDelays
from polite.pacing.scopes import CustomScope, ScopeLimit, ScopeName, ScopeResolver, Scopes
from polite.pacing.turn import Turn
from polite.testing import LoopClock
from tests.pacers.homes import FakeHome, FakeHomes, FakeStore
from tests.support import now

pytestmark = pytest.mark.virtual_time

A, B = Origin.of("https://a.test"), Origin.of("https://b.test")
PLAIN_A = Origin.of("http://a.test")


def shared(
    store: FakeStore, policy: PacingPolicy | None = None, homes: FakeHomes | None = None
) -> tuple[SharedPacer, FakeHomes]:
    policies = EffectivePolicies(policy or PacingPolicy())
    resolver = policies.scopes
    divided: Any = resolver.divided if isinstance(resolver, ScopeResolver) else lambda _: False
    homes = homes or store.process()
    pacer = SharedPacer(LoopClock(), homes, HomeNames(divided=divided), policies, lease_s=store.lease_s)
    homes.tenant = pacer
    return pacer, homes


def store(**options: Any) -> FakeStore:
    return FakeStore(LoopClock(), **options)


async def fetch(pacer: SharedPacer, *scopes: Any, takes_s: float = 0.0, delay_s: float = 1.0) -> float:
    turn = await pacer.acquire(scopes)
    granted = now()
    await asyncio.sleep(takes_s)
    pacer.settle(turn, delay_s)
    pacer.release(turn)
    return granted


# Turns.


async def test_a_turn_takes_its_home_and_the_next_one_finds_it() -> None:
    kept = store()
    pacer, homes = shared(kept)
    turn = await pacer.acquire([A])
    opened = homes.homes["a.test"].open
    pacer.give_back(turn)
    again = await pacer.acquire([PLAIN_A])

    assert (turn.waited, again.waited, opened, kept.takes) == (True, False, 1, 1)


async def test_a_kept_turn_keeps_its_home_open_beyond_its_end() -> None:
    pacer, homes = shared(store())
    turn = await pacer.acquire([A])
    leave = pacer.keep(turn)
    pacer.release(turn)
    opened = homes.homes["a.test"].open
    leave()

    assert (opened, homes.homes["a.test"].open) == (1, 0)


async def test_a_turn_holds_while_its_home_does() -> None:
    pacer, homes = shared(store())
    turn = await pacer.acquire([A])
    held = pacer.holds(turn)
    homes.lose_all()

    assert held
    assert not pacer.holds(turn)


async def test_a_turn_does_not_hold_after_the_deadline_of_its_lease() -> None:
    pacer, homes = shared(store())
    turn = await pacer.acquire([A])
    homes.good_until = now() + 3.0
    await asyncio.sleep(2.9)
    before = pacer.holds(turn)
    await asyncio.sleep(0.2)

    assert before
    assert not pacer.holds(turn)


async def test_a_home_that_is_lost_during_the_wait_is_taken_anew_before_the_turn() -> None:
    kept = store(lease_s=20.0)
    pacer, homes = shared(kept)
    await fetch(pacer, A, delay_s=5.0)
    waiting = asyncio.create_task(fetch(pacer, A))
    await asyncio.sleep(1.0)
    homes.lose_all()
    granted = await waiting

    assert granted >= 21.0 + 1.0
    assert kept.takes == 2


async def test_a_home_that_closes_during_the_wait_gives_no_turn() -> None:
    kept = store()
    pacer, homes = shared(kept)
    await fetch(pacer, A, delay_s=5.0)
    waiting = asyncio.create_task(fetch(pacer, A))
    await asyncio.sleep(1.0)
    homes.leave_all()
    granted = await waiting

    assert granted >= 5.0
    assert kept.takes == 2


async def test_a_closing_home_gives_no_turn_while_another_turn_is_still_open() -> None:
    kept = store()
    pacer, homes = shared(kept)
    await fetch(pacer, PLAIN_A, delay_s=2.0)
    long = asyncio.create_task(fetch(pacer, A, takes_s=10.0))
    waiting = asyncio.create_task(fetch(pacer, PLAIN_A))
    await asyncio.sleep(1.0)
    homes.leave_all()
    granted = await waiting
    await long

    assert granted >= 10.0


async def test_a_request_that_begins_anew_is_the_first_of_its_queue() -> None:
    pacer, homes = shared(store(slow_s=0.0))
    await fetch(pacer, A, delay_s=2.0)
    order: list[str] = []

    async def noted(name: str) -> None:
        turn = await pacer.acquire([A])
        order.append(name)
        pacer.settle(turn, 1.0)
        pacer.release(turn)

    first = asyncio.create_task(noted("first"))
    await asyncio.sleep(1.0)
    homes.leave_all()
    await asyncio.sleep(0.5)
    second = asyncio.create_task(noted("second"))
    await asyncio.gather(first, second)

    assert order == ["first", "second"]


async def test_acquire_later_calls_back_at_a_held_home_only() -> None:
    pacer, homes = shared(store())
    calls: list[Any] = []
    without = pacer.acquire_later([A], lambda *call: calls.append(call))
    await homes.take("a.test")
    request = pacer.acquire_later([A], lambda *call: calls.append(call))
    await asyncio.sleep(0.0)

    assert without is None
    assert request is not None
    [(turn, error)] = calls
    assert error is None
    assert pacer.holds(turn)
    assert homes.homes["a.test"].open == 1


async def test_acquire_later_tells_of_a_home_that_is_lost_when_the_turn_comes() -> None:
    pacer, homes = shared(store())
    await fetch(pacer, A, delay_s=5.0)
    errors: list[Any] = []
    pacer.acquire_later([A], lambda _, error: errors.append((now(), type(error))))
    homes.lose_all()
    await asyncio.sleep(6.0)

    assert errors == [(pytest.approx(5.0, abs=0.2), TurnLost)]
    assert pacer.outlook([A]).open == 0


async def test_a_cancelled_request_leaves_no_demand() -> None:
    kept = store()
    other, others = shared(kept)
    turn = await other.acquire([A])
    pacer, _ = shared(kept)
    waiting = asyncio.create_task(pacer.acquire([A]))
    await asyncio.sleep(1.0)
    wanted = pacer.waits("a.test")
    waiting.cancel()
    await asyncio.wait([waiting])

    assert wanted
    assert not pacer.waits("a.test")
    other.give_back(turn)
    assert others.homes == {}


async def test_a_request_that_waits_for_its_delay_is_demand() -> None:
    pacer, _ = shared(store())
    await fetch(pacer, A, delay_s=5.0)
    idle = pacer.waits("a.test")
    waiting = asyncio.create_task(pacer.acquire([A]))
    await asyncio.sleep(1.0)

    assert not idle
    assert pacer.waits("a.test")
    await waiting
    assert not pacer.waits("a.test")


async def test_requests_that_wait_for_homes_are_bounded() -> None:
    kept = store()
    other, _ = shared(kept)
    await other.acquire([A])
    pacer, _ = shared(kept, PacingPolicy(max_waiting=2))
    waiting = [asyncio.create_task(pacer.acquire([A])) for _ in range(2)]
    await asyncio.sleep(1.0)

    with pytest.raises(Overloaded, match="max_waiting=2"):
        await pacer.acquire([A])
    for task in waiting:
        task.cancel()


async def test_a_turn_that_outlives_its_pacer_delays_other_gates_of_the_process_when_it_ends() -> None:
    delays = ProcessDelays()
    local, plain = LocalPacer(LoopClock()), LocalPacer(LoopClock())
    plain.join(delays)
    pacer, _ = shared(store())
    pacer.join(delays, instead_of=local)
    turn = await pacer.acquire([A])
    await pacer.close()
    waiting = asyncio.create_task(plain.acquire([A]))
    await asyncio.sleep(20.0)
    pacer.settle(turn, 5.0)
    pacer.release(turn)

    assert (await waiting).granted_at == pytest.approx(25.0, abs=0.1)


async def test_a_closed_pacer_gives_no_turn() -> None:
    pacer, homes = shared(store())
    await homes.take("a.test")
    taking = asyncio.create_task(pacer.acquire([B]))
    await asyncio.sleep(0.0)
    await pacer.close()

    with pytest.raises(GateClosed):
        await pacer.acquire([A])
    with pytest.raises(GateClosed):
        pacer.acquire_now([A])
    with pytest.raises(GateClosed):
        pacer.acquire_later([A], lambda *_: None)
    with pytest.raises(GateClosed):
        await taking


async def test_a_store_that_is_away_fails_the_request_and_leaves_no_demand() -> None:
    class Away(FakeHomes):
        async def take(self, name: str) -> FakeHome:
            raise StoreFailed("away since long ago")

    kept = store()
    pacer, _ = shared(kept, homes=Away(kept))

    with pytest.raises(StoreFailed):
        await pacer.acquire([A])
    assert not pacer.waits("a.test")


async def test_opening_hours_need_no_home() -> None:
    kept = store()
    pacer, homes = shared(kept)
    hours = (OpeningHours(A),)
    pacer.hold(hours, 20.0, "closed")
    turn = await pacer.acquire(hours)
    pacer.give_back(turn)

    assert kept.takes == 0
    assert homes.rested == []


async def test_a_scope_without_a_name_for_all_processes_is_refused() -> None:
    pacer, _ = shared(store())

    with pytest.raises(InvalidOption, match=r"\(1, 2\)"):
        await pacer.acquire([(1, 2)])


# Several homes for one turn.


async def test_a_turn_takes_the_homes_of_all_its_scopes_in_order_of_name() -> None:
    kept = store()
    pacer, homes = shared(kept)
    taken: list[str] = []
    take = homes.take

    async def noted(name: str) -> FakeHome:
        taken.append(name)
        return await take(name)

    homes.take = noted  # type: ignore[method-assign]
    turn = await pacer.acquire([B, ScopeName("customer", "acme"), ScopeName("address", "192.0.2.1")])

    assert taken == ["address 192.0.2.1", "b.test", "customer acme"]
    assert {home.open for home in homes.homes.values()} == {1}
    homes.homes["customer acme"].over = True
    assert not pacer.holds(turn)


async def test_processes_that_need_two_homes_each_go_on_for_ever() -> None:
    kept = store(seed=3)
    customer = ScopeName("customer", "acme")
    granted: dict[int, list[float]] = {}

    async def crawl(number: int, origin: Origin) -> None:
        pacer, homes = shared(kept)
        homes.quantum_s = 1.0
        for _ in range(5):
            granted.setdefault(number, []).append(await fetch(pacer, origin, customer, takes_s=0.1))

    async with asyncio.timeout(600.0), asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(crawl(number, A if number % 2 else B))

    times = sorted(time for each in granted.values() for time in each)
    assert len(times) == 20
    assert min(later - sooner for sooner, later in pairwise(times)) >= 1.0


# Homes that come and go.


@pytest.mark.parametrize(
    ("taken", "free_at"),
    [
        (TakenHome("a.test", 0.0, None, clean=True, state=None), 0.0),
        (TakenHome("a.test", 4.0, 1.0, clean=True, state=None), 4.0),
        (TakenHome("a.test", 0.0, 0.3, clean=True, state=None), 0.0),
        (TakenHome("a.test", 0.0, 0.3, clean=False, state=None), 1.7),
        (TakenHome("a.test", 4.0, 0.3, clean=False, state=None), 4.0),
        (TakenHome("a.test", 0.0, 3.0, clean=False, state=None), 0.0),
        (TakenHome("a.test", 0.0, 0.3, clean=True, state="no JSON"), 2.0),
        (TakenHome("a.test", 0.0, 0.3, clean=True, state='{"u":0.5}'), 1.2),
        (TakenHome("a.test", 0.0, 0.5, clean=True, state='{"s":[["https://a.test",6]]}'), 5.5),
        (TakenHome("a.test", 0.0, 0.5, clean=True, state='{"s":[["http://a.test",6]]}'), 0.0),
        (TakenHome("a.test", 0.0, 0.5, clean=False, state='{"s":[["https://a.test",0,30]]}'), 29.5),
    ],
)
async def test_a_home_that_is_taken_delays_its_scopes(taken: TakenHome, free_at: float) -> None:
    class Given(FakeHomes):
        async def take(self, name: str) -> FakeHome:
            self.tenant.take_over(taken)
            home = self.homes[name] = FakeHome(name, 1, self)
            return home

    kept = store()
    pacer, _ = shared(kept, PacingPolicy(min_delay=2.0), homes=Given(kept))

    await pacer.acquire([A])

    assert now() == pytest.approx(free_at)


async def test_the_delay_by_known_rules_counts_after_an_owner_that_ended_without_a_word() -> None:
    kept = store()
    pacer, _ = shared(kept)
    row = kept.row("a.test")
    row.since, row.clean = now() - 2.0, False
    await pacer.acquire([A], provisional_s=lambda: 30.0)

    assert now() == pytest.approx(28.0)


async def test_rules_that_are_learned_later_count_for_the_last_owners_request_too() -> None:
    kept = store()
    pacer, _ = shared(kept)
    row = kept.row("a.test")
    row.since, row.clean = now() - 2.0, False
    pacer.give_back(await pacer.acquire([A]))
    await pacer.acquire([A], provisional_s=lambda: 30.0)

    assert now() == pytest.approx(28.0)


async def handed_over(
    first: SharedPacer, homes: FakeHomes, kept: FakeStore, policy: PacingPolicy | None = None
) -> tuple[SharedPacer, FakeHomes, EffectivePolicies]:
    """Have all homes leave, and return another process that takes them."""
    homes.leave_all()
    assert homes.homes == {}
    policies = EffectivePolicies(policy or PacingPolicy())
    others = kept.process()
    second = SharedPacer(LoopClock(), others, HomeNames(), policies, lease_s=kept.lease_s)
    others.tenant = second
    return second, others, policies


async def test_what_is_left_of_a_delay_goes_with_the_home() -> None:
    kept = store()
    first, homes = shared(kept)
    await fetch(first, A, delay_s=100.0)
    await asyncio.sleep(40.0)
    second, _, _ = await handed_over(first, homes, kept)
    await second.acquire([A])

    assert now() == pytest.approx(100.0, abs=0.2)


async def test_each_origin_of_a_home_keeps_its_own_delay() -> None:
    kept = store()
    first, homes = shared(kept)
    await fetch(first, A, delay_s=100.0)
    await fetch(first, PLAIN_A, delay_s=10.0)
    second, _, _ = await handed_over(first, homes, kept)
    await second.acquire([PLAIN_A])
    sooner = now()
    await second.acquire([A])

    assert (sooner, now()) == (pytest.approx(10.0, abs=0.2), pytest.approx(100.0, abs=0.2))


async def test_the_state_of_a_scope_that_this_process_never_used_goes_on() -> None:
    kept = store()
    first, homes = shared(kept)
    await fetch(first, A, delay_s=100.0)
    await fetch(first, PLAIN_A, delay_s=10.0)
    second, others, _ = await handed_over(first, homes, kept)
    await fetch(second, PLAIN_A)
    third, _, _ = await handed_over(second, others, kept)
    await third.acquire([A])

    assert now() == pytest.approx(100.0, abs=0.2)


async def test_refusals_and_failures_go_with_the_home() -> None:
    kept = store()
    policies = EffectivePolicies(PacingPolicy())
    homes = kept.process()
    first = SharedPacer(LoopClock(), homes, HomeNames(), policies, lease_s=15.0)
    homes.tenant = first
    turn = await first.acquire([A])
    first.settle(turn, 1.0, strike=True)
    policies.circuits.failed(A, turn.granted_at, now(), CircuitLimits(1, 60.0, 60.0))
    first.release(turn)
    second, _, learned = await handed_over(first, homes, kept)
    await second.acquire([A])

    assert second.strikes(A) == 1
    assert learned.circuits.failures(A) == 1
    assert learned.circuits.openings(A) == 1
    assert learned.circuits.is_open(A)


async def test_what_another_owner_forgave_is_forgotten_here() -> None:
    kept = store()
    first, homes = shared(kept)
    turn = await first.acquire([A])
    first.settle(turn, 1.0, strike=True)
    first.release(turn)
    second, others, _ = await handed_over(first, homes, kept)
    await fetch(second, A)
    counted = second.strikes(A)
    others.leave_all()
    await first.acquire([A])

    assert (counted, first.strikes(A)) == (0, 0)


async def test_an_owner_that_never_used_a_home_hands_on_that_it_is_unclean() -> None:
    kept = store()
    first, homes = shared(kept)
    row = kept.row("a.test")
    row.since, row.clean = now(), False
    await homes.take("a.test")
    second, _, _ = await handed_over(first, homes, kept, PacingPolicy(min_delay=5.0))
    await second.acquire([A])

    assert now() == pytest.approx(5.0, abs=0.01)


async def test_a_home_that_leaves_with_a_turn_open_waits_for_its_whole_delay() -> None:
    pacer, _ = shared(store(), PacingPolicy(min_delay=7.0))
    await pacer.acquire([A])

    assert pacer.hand_over("a.test") == (7.0, '{"s":[["https://a.test",7.0]]}')


async def test_a_home_that_was_never_used_hands_on_what_is_left_of_its_delay() -> None:
    pacer, _ = shared(store())
    pacer.take_over(TakenHome("a.test", 50.0, 1.0, clean=True, state=None))
    await asyncio.sleep(20.0)

    assert pacer.hand_over("a.test") == (pytest.approx(30.0), None)


async def test_a_home_that_is_not_known_any_more_waits_for_the_longest_delay() -> None:
    pacer, _ = shared(store(), PacingPolicy(min_delay=7.0))

    assert pacer.hand_over("a.test") == (7.0, None)


async def test_long_delays_are_written_through() -> None:
    pacer, homes = shared(store())
    turn = await pacer.acquire([A])
    pacer.settle(turn, 9.9)
    pacer.settle(turn, 10)
    pacer.settle(turn, {A: 30.0})
    pacer.hold([A], 9.0, "a short one")
    pacer.hold([A, B], 40.0, "a long one")

    assert homes.rested == [("a.test", 10), ("a.test", 30.0), ("a.test", 40.0)]


async def test_many_scopes_of_a_home_are_bounded_and_the_rest_is_handed_over() -> None:
    kept = store()
    policies = EffectivePolicies(PacingPolicy(min_delay=0.0))
    homes = kept.process()
    one_home = HomeNames(lambda _: "everything")
    pacer = SharedPacer(LoopClock(), homes, one_home, policies, lease_s=15.0)
    homes.tenant = pacer
    for number in range(3_000):
        delay_s = 1_000.0 if number == 7 else 0.0
        await fetch(pacer, Origin.of(f"https://h{number}.test"), delay_s=delay_s)
    remembered = len(pacer._by_scope)
    _, state = pacer.hand_over("~ everything")

    assert remembered < 1_500
    assert len(pacer._by_scope) == 0
    assert state == '{"s":[["https://h7.test",1000.0]]}'


async def test_delays_that_have_no_space_in_the_state_delay_the_whole_home() -> None:
    kept = store()
    policies = EffectivePolicies(PacingPolicy())
    homes = kept.process()
    pacer = SharedPacer(LoopClock(), homes, HomeNames(lambda _: "everything"), policies, lease_s=15.0)
    homes.tenant = pacer
    for number in range(200):
        await fetch(pacer, Origin.of(f"https://h{number}.test"), delay_s=100.0 + number)
    rest_s, state = pacer.hand_over("~ everything")

    assert state is not None
    assert len(state.encode()) <= 1_000
    told = state.count("https://")
    assert rest_s == pytest.approx(100.0 + 199 - told, abs=0.1)


# Divided scopes.

CRAWL = ScopeName("crawl", "")
DIVIDED = Scopes(
    crawl=ScopeLimit(delay=1.0, concurrency=10),
    custom=[CustomScope("customer", lambda _: "acme", ScopeLimit(delay=0.5), divide=True)],
)


async def test_divided_scopes_need_no_home_and_have_a_share() -> None:
    kept = store()
    pacer, homes = shared(kept, PacingPolicy(scopes=DIVIDED))
    homes.counted = 4
    scopes = ScopeResolver(DIVIDED)(Target.of("https://a.test/"))
    pacer.give_back(await pacer.acquire(scopes))

    policies = pacer._divided._scopes
    assert policies is not None
    assert list(homes.homes) == ["a.test"]
    assert policies.limit(CRAWL) == ScopeLimit(delay=4.0, concurrency=2)
    assert policies.limit(ScopeName("customer", "acme")) == ScopeLimit(delay=2.0, concurrency=1)


async def test_the_rate_of_all_processes_keeps_the_limit_of_a_divided_scope() -> None:
    kept = store()
    scopes = Scopes(crawl=ScopeLimit(delay=1.0, concurrency=8))
    times: list[float] = []

    async def crawl(number: int) -> None:
        policy = PacingPolicy(scopes=scopes)
        pacer, _ = shared(kept, policy)
        await asyncio.sleep(0.01)
        for page in range(50):
            origin = Origin.of(f"https://h{number}-{page}.test")
            times.append(await fetch(pacer, origin, CRAWL, takes_s=0.2))

    await asyncio.gather(*(crawl(number) for number in range(4)))

    # In any minute, one request a second, and one more for each process.
    times.sort()
    assert max(sum(start <= time < start + 60.0 for time in times) for start in times) <= 64


async def test_a_process_that_joins_others_waits_for_one_lease_before_it_uses_its_share() -> None:
    kept = store(lease_s=15.0)
    alone, homes = shared(kept, PacingPolicy(scopes=DIVIDED))
    first = await fetch(alone, A, CRAWL)
    joined, _ = shared(kept, PacingPolicy(scopes=DIVIDED))
    second = await fetch(joined, B, CRAWL)
    third = await fetch(joined, B, CRAWL)

    assert first < 1.0
    assert second == pytest.approx(15.0, abs=1.0)
    assert third < 20.0
    assert homes.live == 2


async def test_a_process_that_lost_its_session_joins_anew() -> None:
    kept = store(lease_s=15.0)
    shared(kept)
    pacer, homes = shared(kept, PacingPolicy(scopes=DIVIDED))
    await fetch(pacer, A, CRAWL)
    await asyncio.sleep(100.0)
    homes.lose_all()
    lost = now()
    granted = await fetch(pacer, B, CRAWL)

    assert granted >= lost + 15.0


async def test_a_share_that_shrinks_is_adopted_at_the_next_grant() -> None:
    kept = store()
    pacer, homes = shared(kept, PacingPolicy(scopes=Scopes(crawl=ScopeLimit(delay=1.0, concurrency=4))))
    times: list[float] = []

    async def wait(number: int) -> None:
        times.append(await fetch(pacer, Origin.of(f"https://h{number}.test"), CRAWL))

    waiting = [asyncio.create_task(wait(number)) for number in range(10)]
    await asyncio.sleep(2.5)
    homes.counted = 2
    await asyncio.gather(*waiting)

    gaps = [later - sooner for sooner, later in pairwise(times)]
    assert gaps[:2] == [pytest.approx(1.0, abs=0.1)] * 2
    assert gaps[4:] == [pytest.approx(2.0, abs=0.1)] * 5


# All at once.


@pytest.mark.parametrize("seed", range(20))
async def test_no_gap_is_short_whatever_happens_to_homes(seed: int) -> None:
    kept = store(lease_s=6.0, seed=seed, slow_s=0.5)
    draw = random.Random(seed)
    sent: dict[Origin, list[float]] = {A: [], B: [], PLAIN_A: []}
    done = 0

    async def worker(pacer: SharedPacer) -> None:
        nonlocal done
        while done < 150:
            origin = draw.choice(list(sent))
            turn: Turn = await pacer.acquire([origin])
            await asyncio.sleep(draw.random() * 0.3)
            if not pacer.holds(turn):
                pacer.give_back(turn)
                continue
            sent[origin].append(now())
            done += 1
            await asyncio.sleep(draw.choice([0.0, 0.2, 2.0]))
            pacer.settle(turn, 1.0)
            pacer.release(turn)

    async def trouble(homes: FakeHomes) -> None:
        while True:
            await asyncio.sleep(draw.random() * 20.0)
            if draw.random() < 0.5:
                homes.leave_all()
            else:
                homes.lose_all()

    processes = [shared(kept) for _ in range(3)]
    for _, homes in processes:
        homes.quantum_s = 2.0
    troubles = [asyncio.create_task(trouble(homes)) for _, homes in processes]
    async with asyncio.timeout(3_600.0):
        await asyncio.gather(*(worker(pacer) for pacer, _ in processes for _ in range(3)))
    for each in troubles:
        each.cancel()

    for times in sent.values():
        assert all(later - sooner >= 1.0 - 1e-6 for sooner, later in pairwise(times))
