"""What a user's own part raises, a cancellation or what is no Exception too, reaches each caller, and no turn is lost."""

import asyncio
from contextlib import asynccontextmanager

import pytest

import polite
from polite.events import Event, Granted
from polite.pacing.outcome import Pause
from polite.robots.exchange import Ask, Reply
from polite.stores.memory import MemoryStore
from polite.testing import ScriptedTransport
from tests.support import Abort, end_next, scripted_gate

pytestmark = pytest.mark.virtual_time

SITE = "https://a.test"


class Broken(ScriptedTransport):
    """Serves rules for an hour, and raises from the `first` request on."""

    def __init__(self, first: int, error: BaseException) -> None:
        super().__init__({})
        self.first, self.error, self.asked = first, error, 0

    async def get(self, ask: Ask) -> Reply:
        await asyncio.sleep(1)
        self.asked += 1
        if self.asked >= self.first:
            raise self.error
        return Reply(200, b"User-agent: *\nDisallow: /secret\n", cache_control="max-age=3600")


class BrokenStore(MemoryStore):
    async def save(self, *_):
        raise Abort("store")


@asynccontextmanager
async def opened(first=1000, **options):
    site = Broken(first, Abort("transport"))
    async with scripted_gate(site, **options) as gate:
        yield gate, site


def abort(event: object) -> None:
    raise Abort("listener")


@pytest.mark.parametrize(
    ("first", "options"),
    [(1, {}), (1000, {"listener": abort}), (1000, {"store": BrokenStore()})],
    ids=["transport", "listener", "store"],
)
async def test_each_request_for_the_rules_gets_the_error(first, options):
    async with opened(first, **options) as (gate, _), asyncio.timeout(1_000):
        asking = gate.check(SITE), gate.explain(SITE), gate.permit(SITE).__aenter__()
        ended = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(each) for each in ended] == [Abort] * 3


async def test_a_frontier_fails_with_it() -> None:
    async with opened(1) as (gate, _), asyncio.timeout(1_000):
        with pytest.raises(RuntimeError, match=r"Abort\('transport'\)"):
            async with polite.open_frontier(gate) as frontier:
                await frontier.put(SITE)
                await anext(frontier)


@pytest.mark.parametrize(("max_tries", "kind"), [(1, polite.events.Dropped), (3, polite.events.Retried)])
async def test_a_task_outlives_what_a_listener_raises_when_its_block_is_left(max_tries, kind):
    def listen(event: object) -> None:
        if isinstance(event, kind):
            raise Abort("listener")

    async with opened(listener=listen) as (gate, _), asyncio.timeout(1_000):
        frontier = polite.Frontier(gate, max_tries=max_tries)
        await frontier.put(f"{SITE}/1")
        with pytest.raises(Abort):
            async with await anext(frontier) as permit:
                permit.retry()
        if kind is polite.events.Retried:
            await end_next(frontier)
        await frontier.join()

        assert (frontier.waiting, frontier.done + frontier.dropped) == (0, 1)


async def test_rules_asked_for_ahead_of_time_in_vain_are_not_asked_for_at_each_question() -> None:
    async with opened(2) as (gate, site), asyncio.timeout(10_000):
        await gate.check(SITE)
        await asyncio.sleep(3_300)
        for _ in range(20):
            assert await gate.check(SITE)
            await asyncio.sleep(5)
    assert site.asked == 2


PAGE = f"{SITE}/page"
ERRORS = [asyncio.CancelledError, ZeroDivisionError]


def open_scripted(**options):
    return scripted_gate({f"{SITE}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /no\n")}, **options)


async def visit(gate: polite.Gate, url: str = PAGE, status: int = 200) -> None:
    async with asyncio.timeout(100_000), gate.permit(url) as permit:
        permit.report(status=status)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_what_ends_the_program_goes_through_and_gives_the_turn_back(error: type[BaseException]) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, Granted) and not raised:
            raised.append(event)
            raise error

    raised: list[Event] = []
    async with open_scripted(listener=listen) as gate:
        # Entered by hand: a task that such an error ends would take the whole loop with it.
        entering = gate.permit(PAGE).__aenter__().__await__()
        with pytest.raises(error):
            await _Driven(entering)
        await visit(gate)

        assert len(raised) == 1


class _Driven:
    """Awaits by hand what an iterator of an awaitable yields."""

    def __init__(self, steps):
        self._steps = steps

    def __await__(self):
        return (yield from self._steps)


@pytest.mark.parametrize("error", ERRORS)
async def test_a_throttle_that_raises_loses_no_turn(error: type[BaseException]) -> None:
    class Failing:
        opened = False

        def rest(self, outcome: object, context: object) -> Pause:
            if self.opened:
                raise error
            return Pause(0.0, "until the gate is open")

    throttle = Failing()
    async with open_scripted(throttle=throttle) as gate:
        throttle.opened = True
        for _ in range(3):
            await visit(gate)
        await visit(gate, status=429)
        await visit(gate)

        assert gate.counters.granted == 5


@pytest.mark.parametrize("error", ERRORS)
async def test_a_function_of_scopes_that_raises_is_an_error_of_that_permit_only(error):
    def scopes(target: polite.Target) -> tuple[str, ...]:
        if failing:
            raise error
        return (target.origin.host,)

    failing = False
    async with (
        open_scripted(pacing=polite.PacingPolicy(scopes=scopes)) as gate,
        polite.open_frontier(gate) as frontier,
    ):
        await visit(gate)
        failing = True
        await frontier.put(PAGE)
        frontier.close()
        taking = asyncio.create_task(anext(frontier))
        await asyncio.sleep(60)
        failing = False
        async with asyncio.timeout(10_000):
            async with await taking as permit:
                permit.report(status=200)
            await frontier.join()

        assert frontier.done == 1
