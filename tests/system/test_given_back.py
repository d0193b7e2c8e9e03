"""Whatever a user's own part raises, a cancellation too: the turn is given back, and the next request has it; in virtual time."""

import asyncio
from typing import Any

import pytest

import polite
from polite.events import Event, Granted
from polite.pacing.outcome import Pause
from polite.pacing.scopes import ScopeLimit, Scopes
from polite.robots.exchange import Reply
from tests.support import OpenedGate, scripted_gate

pytestmark = pytest.mark.virtual_time

SITE = "https://site.test"
PAGE = f"{SITE}/page"
ERRORS = [asyncio.CancelledError, ZeroDivisionError]


def opened(**options: Any) -> OpenedGate:
    script = {f"{SITE}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /no\n")}
    return scripted_gate(script, **options)


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
    async with opened(listener=listen) as gate:
        # Entered by hand: a task that such an error ends would take the whole loop with it.
        entering = gate.permit(PAGE).__aenter__().__await__()
        with pytest.raises(error):
            await _Driven(entering)
        await visit(gate)

        assert len(raised) == 1


class _Driven:
    """Awaits by hand what an iterator of an awaitable yields."""

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __await__(self) -> Any:
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
    async with opened(throttle=throttle) as gate:
        throttle.opened = True
        for _ in range(3):
            await visit(gate)
        await visit(gate, status=429)
        await visit(gate)

        assert gate.counters.granted == 5


@pytest.mark.parametrize("error", ERRORS)
async def test_an_address_source_that_raises_loses_no_turn_and_is_not_asked_each_time(
    error: type[BaseException],
) -> None:
    class Failing:
        asked = 0

        async def addresses(self, host: str) -> tuple[list[str], float]:
            self.asked += 1
            raise error

        async def close(self) -> None: ...

    source = Failing()
    pacing = polite.PacingPolicy(scopes=Scopes(address=ScopeLimit()))
    async with opened(addresses=source, pacing=pacing) as gate:
        for _ in range(5):
            await visit(gate)

    assert source.asked == 1


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("method", ["add", "ready", "next"])
async def test_a_scheduler_that_raises_ends_the_frontier_and_no_task_is_lost(
    error: type[BaseException], method: str
) -> None:
    scheduler = polite.schedulers.Fifo()

    def fail(*_: object) -> None:
        raise error

    setattr(scheduler, method, fail)
    async with opened() as gate, polite.open_frontier(gate, scheduler=scheduler) as frontier:
        async with asyncio.timeout(10_000):
            with pytest.raises(polite.SchedulerFailed):
                await frontier.put(PAGE)
                async for permit in frontier:
                    async with permit:
                        permit.report(status=200)
            left = await frontier.drain()
        await visit(gate)

    assert [task.url for task in left] == [PAGE]


@pytest.mark.parametrize("error", ERRORS)
async def test_a_function_of_scopes_that_raises_is_an_error_of_that_permit_only(
    error: type[BaseException],
) -> None:
    def scopes(target: polite.Target) -> tuple[str, ...]:
        if failing:
            raise error
        return (target.origin.host,)

    failing = False
    async with (
        opened(pacing=polite.PacingPolicy(scopes=scopes)) as gate,
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
