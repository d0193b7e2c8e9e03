"""Gates that share turns, each in a process of its own: each gap of a host is kept, and a turn that was lost sends nothing."""

import asyncio
from contextlib import asynccontextmanager

import pytest

import polite
from polite.compose.shared import share_turns
from polite.events import Event, Skipped
from polite.pacing.pacer import LocalPacer
from polite.robots.exchange import Ask, Failed, Reply
from polite.stores.memory import MemoryStore
from polite.testing import LoopClock
from tests.gate.support import PAGE, ROBOTS, RULES, SITE
from tests.pacers.homes import FakeStore
from tests.support import TimedTransport, now, scripted_gate

pytestmark = pytest.mark.pure("its pacer inherits from one of polite's, which the compiled form forbids")


class SharedStore(MemoryStore):
    async def close(self) -> None: ...


async def test_a_gate_that_has_sent_requests_cannot_be_shared() -> None:
    store = FakeStore(LoopClock())
    async with scripted_gate() as gate:
        await gate.check("https://a.test/")
        with pytest.raises(polite.InvalidOption, match="before the first permit"):
            share_turns(gate, store.process(), lease_s=15.0)


class LosingPacer(LocalPacer):
    """Turns granted before `lost_at` do not hold any more."""

    def __init__(self) -> None:
        super().__init__(LoopClock())
        self.lost_at = -1.0

    def holds(self, turn):
        return turn.granted_at is None or turn.granted_at > self.lost_at

    def lose_all(self) -> None:
        self.lost_at = now()


@asynccontextmanager
async def opened_losing(pacer, transport=None, **options):
    events: list[Event] = []
    async with scripted_gate(transport, listener=events.append, **options) as gate:
        gate.services.turns.share(pacer)
        yield gate, events


@pytest.mark.parametrize(
    ("lost", "because"), [(True, r"granted 11.0 s ago.*another process"), (False, "max_hold is 10 s")]
)
async def test_a_permit_whose_turn_is_lost_says_why_and_requires_another(lost: bool, because: str) -> None:
    pacer, pacing = LosingPacer(), polite.PacingPolicy(max_hold=3_600.0 if lost else 10.0)
    async with opened_losing(pacer, pacing=pacing) as (gate, _), gate.permit(PAGE) as permit:
        await asyncio.sleep(11.0)
        if lost:
            pacer.lose_all()

        assert not permit.valid
        with pytest.raises(polite.TurnLost, match=because) as caught:
            permit.require()

    assert caught.value.url == PAGE


async def test_a_task_whose_turn_is_lost_goes_back_untried() -> None:
    pacer = LosingPacer()
    async with opened_losing(pacer) as (gate, events), polite.open_frontier(gate) as frontier:
        await frontier.put(PAGE)
        permits = aiter(frontier)
        lost = await anext(permits)
        pacer.lose_all()
        await asyncio.sleep(1.0)
        with pytest.raises(polite.TurnLost):
            await lost.__aenter__()
        again = await anext(permits)
        async with again:
            again.report(status=200)

    assert (again.task.url, again.task.tries) == (PAGE, 0)
    assert [event.because for event in events if isinstance(event, Skipped)] == ["its permit was not entered"]


class SlowTransport(TimedTransport):
    """Notes when requests came; the first one takes so long that others wait for its connection."""

    async def get(self, ask: Ask) -> Reply | Failed:
        self.times.append(now())
        if len(self.times) == 1:
            await asyncio.sleep(8.0)
        return Reply(404, b"")


async def test_robots_txt_whose_turn_is_lost_while_it_waits_for_a_connection_is_not_sent() -> None:
    pacer, transport = LosingPacer(), SlowTransport({})
    async with opened_losing(pacer, transport, fetching=polite.FetchPolicy(connections=1)) as (gate, _):
        first = asyncio.create_task(gate.check("https://slow.test/"))
        await asyncio.sleep(1.0)
        second = asyncio.create_task(gate.check(PAGE))
        await asyncio.sleep(1.0)
        pacer.lose_all()
        pacer.hold([polite.Origin.of(SITE)], 20.0, "another process sends")
        await asyncio.gather(first, second)

    assert transport.times == [pytest.approx(0.0), pytest.approx(22.0)]


async def saved_by_another(store):
    async with scripted_gate({ROBOTS: Reply(200, RULES)}, store=store) as other:
        await other.check(PAGE)


async def test_a_file_that_another_process_saved_during_the_wait_is_not_fetched_again() -> None:
    pacer, store = LosingPacer(), SharedStore()
    transport = TimedTransport({})
    async with opened_losing(pacer, transport, store=store) as (gate, _):
        pacer.hold([polite.Origin.of(SITE)], 5.0, "another process sends")
        asked = asyncio.create_task(gate.check(f"{SITE}/private"))
        await asyncio.sleep(1.0)
        await saved_by_another(store)
        decision = await asked
        counted = gate.counters.robots
        free_at = gate.services.turns.outlook(polite.Target.of(PAGE)).ready_at

    assert not decision.allowed
    assert (transport.times, counted) == ([], 0)
    assert free_at == pytest.approx(5.0)
