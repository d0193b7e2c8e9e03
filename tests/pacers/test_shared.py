"""SharedPacer: turns only at homes that this process holds, whatever happens to them meanwhile."""

import asyncio

import pytest

from polite.errors import InvalidOption, Overloaded, TurnLost
from polite.origin import Origin, Target
from polite.pacers.homes import Home, HomeNames, TakenHome
from polite.pacers.shared import SharedPacer
from polite.pacing.effective_policy import EffectivePolicies, OpeningHours
from polite.pacing.learned_pace import SIZE
from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import CustomScope, ScopeLimit, ScopeName, ScopeResolver, Scopes
from polite.testing import LoopClock
from tests.pacers.homes import FakeHomes, FakeStore
from tests.support import now

pytestmark = pytest.mark.virtual_time

A, B = Origin.of("https://a.test"), Origin.of("https://b.test")
PLAIN_A = Origin.of("http://a.test")


def shared(store, policy=None, homes=None, *, one=False):
    """Return the pacer and the homes of a new process. `one`: all scopes have one home."""
    policies = EffectivePolicies(policy or PacingPolicy())
    resolver = policies.scopes
    divided = resolver.divided if isinstance(resolver, ScopeResolver) else lambda _: False
    names = HomeNames(lambda _: "everything") if one else HomeNames(divided=divided)
    homes = homes or store.process()
    pacer = SharedPacer(LoopClock(), homes, names, policies, lease_s=store.lease_s)
    homes.tenant = pacer
    return pacer, homes


def store(**options):
    return FakeStore(LoopClock(), **options)


async def fetch(pacer, *scopes, takes_s=0.0, delay_s=1.0):
    turn = await pacer.acquire(scopes)
    granted = now()
    await asyncio.sleep(takes_s)
    pacer.settle(turn, delay_s)
    pacer.release(turn)
    return granted


@pytest.mark.parametrize("lost", [True, False])
async def test_a_turn_holds_while_its_home_does_and_its_lease_lasts(lost: bool) -> None:
    pacer, homes = shared(store())
    turn = await pacer.acquire([A])
    homes.lease.until = now() + 3.0
    await asyncio.sleep(2.9)
    held = pacer.holds(turn)
    if lost:
        homes.lose_all()
    else:
        await asyncio.sleep(0.2)

    assert held
    assert not pacer.holds(turn)


@pytest.mark.parametrize(("lost", "from_s"), [(True, 21.0 + 1.0), (False, 5.0)])
async def test_a_home_that_is_lost_or_left_during_the_wait_is_taken_anew_before_the_turn(lost, from_s):
    kept = store(lease_s=20.0)
    pacer, homes = shared(kept)
    await fetch(pacer, A, delay_s=5.0)
    waiting = asyncio.create_task(fetch(pacer, A))
    await asyncio.sleep(1.0)
    wanted = pacer.waits("a.test")
    homes.lose_all() if lost else homes.leave_all()

    assert await waiting >= from_s
    assert kept.takes == 2
    assert (wanted, pacer.waits("a.test")) == (True, False)


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
    await asyncio.gather(first, asyncio.create_task(noted("second")))

    assert order == ["first", "second"]


async def test_acquire_later_calls_back_at_a_held_home_only() -> None:
    pacer, homes = shared(store())
    calls = []
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
    errors = []
    pacer.acquire_later([A], lambda _, error: errors.append((now(), type(error))))
    homes.lose_all()
    await asyncio.sleep(6.0)

    assert errors == [(pytest.approx(5.0, abs=0.2), TurnLost)]
    assert pacer.outlook([A]).open == 0


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


async def test_opening_hours_need_no_home_and_a_scope_without_a_name_for_all_processes_is_refused() -> None:
    kept = store()
    pacer, homes = shared(kept)
    hours = (OpeningHours(A),)
    pacer.hold(hours, 20.0, "closed")
    pacer.give_back(await pacer.acquire(hours))

    assert (kept.takes, homes.rested) == (0, [])
    with pytest.raises(InvalidOption, match=r"\(1, 2\)"):
        await pacer.acquire([(1, 2)])


@pytest.mark.parametrize(
    ("taken", "free_at"),
    [
        (TakenHome(0.0, None, clean=True, state=None), 0.0),
        (TakenHome(4.0, 1.0, clean=True, state=None), 4.0),
        (TakenHome(0.0, 0.3, clean=True, state=None), 0.0),
        (TakenHome(0.0, 0.3, clean=False, state=None), 1.7),
        (TakenHome(4.0, 0.3, clean=False, state=None), 4.0),
        (TakenHome(0.0, 3.0, clean=False, state=None), 0.0),
        (TakenHome(0.0, 0.3, clean=True, state="no JSON"), 2.0),
        (TakenHome(0.0, 0.3, clean=True, state='{"u":0.5}'), 1.2),
        (TakenHome(0.0, 0.5, clean=True, state='{"s":[["https://a.test",6]]}'), 5.5),
        (TakenHome(0.0, 0.5, clean=True, state='{"s":[["http://a.test",6]]}'), 0.0),
        (TakenHome(0.0, 0.5, clean=False, state='{"s":[["https://a.test",0,30]]}'), 29.5),
    ],
)
async def test_a_home_that_is_taken_delays_its_scopes(taken: TakenHome, free_at: float) -> None:
    class Given(FakeHomes):
        async def take(self, name: str) -> Home:
            home = self.homes[name] = Home(name, 1, self.lease, now())
            self.tenant.take_over(home, taken)
            return home

    kept = store()
    pacer, _ = shared(kept, PacingPolicy(min_delay=2.0), homes=Given(kept))

    await pacer.acquire([A])

    assert now() == pytest.approx(free_at)


@pytest.mark.parametrize("later", [False, True])
async def test_the_delay_by_rules_counts_after_an_owner_that_ended_without_a_word(later: bool) -> None:
    kept = store()
    pacer, _ = shared(kept)
    row = kept.row("a.test")
    row.since, row.clean = now() - 2.0, False
    if later:  # that the rules are learned
        pacer.give_back(await pacer.acquire([A]))
    await pacer.acquire([A], provisional_s=lambda: 30.0)

    assert now() == pytest.approx(28.0)


async def handed_over(homes, kept, policy=None):
    homes.leave_all()
    assert homes.homes == {}
    return shared(kept, policy)


async def test_each_origin_of_a_home_keeps_its_own_delay_also_over_a_process_that_never_used_it() -> None:
    kept = store()
    first, homes = shared(kept)
    await fetch(first, A, delay_s=100.0)
    await fetch(first, PLAIN_A, delay_s=10.0)
    second, others = await handed_over(homes, kept)
    sooner = await fetch(second, PLAIN_A)
    third, _ = await handed_over(others, kept)
    await third.acquire([A])

    assert (sooner, now()) == (pytest.approx(10.0, abs=0.2), pytest.approx(100.0, abs=0.2))


async def test_what_was_learned_and_failures_go_with_the_home() -> None:
    kept = store()
    first, homes = shared(kept)
    circuits, memories = first._tenancies._policies.circuits, first._tenancies._policies.memories
    turn = await first.acquire([A])
    memories.keep(A, b"\x01".ljust(SIZE, b"\0"))
    first.settle(turn, 1.0, refused=True)
    circuits.failed(A, turn.granted_at, now(), PacingPolicy(circuit_failures=1))
    first.release(turn)
    second, others = await handed_over(homes, kept)
    learned, remembered = second._tenancies._policies.circuits, second._tenancies._policies.memories
    again = await second.acquire([A])
    counted = remembered.strikes(A), learned.failures(A), learned.openings(A), learned.is_open(A)
    second.settle(again, 1.0)
    remembered.keep(A, b"")
    second.release(again)
    others.leave_all()
    await first.acquire([A])

    assert counted == (1, 1, 1, True)
    # The state has no space for all memories: one that it lacks is perhaps not forgotten.
    assert memories.strikes(A) == 1


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ("open", (7.0, '{"s":[["https://a.test",7.0]]}')),
        ("never used", (pytest.approx(30.0), None)),
        ("unknown", (7.0, None)),
    ],
)
async def test_what_is_left_of_a_delay_when_its_turn_is_open_or_it_was_not_used(how, left):
    pacer, homes = shared(store(), PacingPolicy(min_delay=7.0))
    if how == "open":
        await pacer.acquire([A])
    elif how == "never used":
        pacer.take_over(Home("a.test", 1, homes.lease, now()), TakenHome(50.0, 1.0, clean=True, state=None))
        await asyncio.sleep(20.0)
    assert pacer.hand_over("a.test") == left


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
    pacer, _ = shared(store(), PacingPolicy(min_delay=0.0), one=True)
    for number in range(3_000):
        delay_s = 1_000.0 if number == 7 else 0.0
        await fetch(pacer, Origin.of(f"https://h{number}.test"), delay_s=delay_s)
    remembered = len(pacer._by_scope)
    _, state = pacer.hand_over("~ everything")

    assert remembered < 1_500
    assert (len(pacer._by_scope), state) == (0, '{"s":[["https://h7.test",1000.0]]}')


async def test_delays_that_have_no_space_in_the_state_delay_the_whole_home() -> None:
    pacer, _ = shared(store(), one=True)
    for number in range(200):
        await fetch(pacer, Origin.of(f"https://h{number}.test"), delay_s=100.0 + number)
    rest_s, state = pacer.hand_over("~ everything")
    assert len(state.encode()) <= 1_000
    assert rest_s == pytest.approx(100.0 + 199 - state.count("https://"), abs=0.1)


CRAWL = ScopeName("crawl", "")
DIVIDED = Scopes(
    crawl=ScopeLimit(delay=1.0, concurrency=10),
    custom=[CustomScope("customer", lambda _: "acme", ScopeLimit(delay=0.5), divide=True)],
)


async def test_divided_scopes_need_no_home_and_have_a_share() -> None:
    pacer, homes = shared(store(), PacingPolicy(scopes=DIVIDED))
    homes.counted = 4
    pacer.give_back(await pacer.acquire(ScopeResolver(DIVIDED)(Target.of("https://a.test/"))))

    policies = pacer._divided._scopes
    assert policies is not None
    assert list(homes.homes) == ["a.test"]
    assert policies.limit(CRAWL) == ScopeLimit(delay=4.0, concurrency=2)
    assert policies.limit(ScopeName("customer", "acme")) == ScopeLimit(delay=2.0, concurrency=1)


@pytest.mark.parametrize("again", [False, True])
async def test_a_process_that_joins_others_or_lost_its_session_waits_for_one_lease(again: bool) -> None:
    kept = store(lease_s=15.0)
    alone, _ = shared(kept, PacingPolicy(scopes=DIVIDED))
    first = await fetch(alone, A, CRAWL)
    pacer, homes = shared(kept, PacingPolicy(scopes=DIVIDED))
    began = now()
    if again:
        await fetch(pacer, B, CRAWL)
        await asyncio.sleep(100.0)
        homes.lose_all()
        began = now()
    second = await fetch(pacer, B, CRAWL)
    third = await fetch(pacer, B, CRAWL)

    assert first < 1.0
    assert began + 14.0 < second
    assert again or second < began + 16.0
    assert third < second + 5.0
    assert homes.live == 2
